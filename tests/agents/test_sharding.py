"""Members over devices: an ensemble that is spread over the devices of a process is the one that is not.

On a CPU's forced devices this shows that it is right, not that it is fast. In double precision, because Adam turns the
last bit of a small gradient into a step.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import pytest

from sunrise import SAC
from sunrise.ensemble import over_devices
from sunrise.errors import SunriseError

SMALL: dict[str, Any] = {"net_arch": (4,), "batch_size": 4, "buffer_size": 100, "learning_starts": 5, "eval_freq": 0}
PROGRAM = """
import json, sys
import jax
import numpy as np
from sunrise import SAC

root, settings = sys.argv[1], json.loads(sys.argv[2])

def trained(name, **more):
    model = SAC("MlpPolicy", "Pendulum-v1", run_dir=f"{root}/{name}", **settings, **more)
    model.learn(20, log_interval=None, progress_bar=False)
    model.folder.close()
    return model

def apart(one, other):
    leaves = zip(jax.tree.leaves(one.ensemble), jax.tree.leaves(other.ensemble), strict=True)
    return max(float(np.abs(np.asarray(a, float) - np.asarray(b, float)).max()) for a, b in leaves)

def shares(model):
    "How many members each device has, for each array of the members."
    shards = [leaf.addressable_shards for leaf in jax.tree.leaves(model.ensemble.members)]
    return sorted({tuple(shard.data.shape[0] for shard in each) for each in shards})

def compiled(model):
    return [model.sunrise.update._cache_size(), model.sunrise.explore._cache_size()]

plain, spread = trained("plain"), trained("spread", shard_members=True)
found = {"apart": apart(plain, spread), "shares": [shares(plain), shares(spread)]}
joined, parted = SAC.resume(f"{root}/spread", shard_members=False), SAC.resume(f"{root}/plain", shard_members=True)
found["as loaded"] = [apart(spread, joined), apart(plain, parted)]
for model in (joined, parted):
    model.learn(10, log_interval=None, progress_bar=False, reset_num_timesteps=False)
    model.folder.close()
found["gone on"] = apart(joined, parted)
found["shares then"] = [shares(joined), shares(parted)]
found["compilations"] = [compiled(model) for model in (plain, spread, joined, parted)]
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("devices", "members"), [(5, 5), (2, 4)])
def test_spread_members_learn_what_they_learn_on_one_device_and_checkpoints_pass_between_the_two(
    devices: int, members: int, tmp_path: Path
) -> None:
    settings = {**SMALL, "ensemble_size": members, "bootstrap_prob": 0.5, "weight_votes": "shared", "log_freq": 5}
    forced = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), json.dumps(settings)],
        env={**os.environ, **forced, "JAX_ENABLE_X64": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    one, equal = [[members]], [[members // devices] * devices]
    assert found["shares"] == found["shares then"] == [one, equal]
    assert found["apart"] < 1e-10
    assert found["as loaded"] == [0, 0]
    assert found["gone on"] < 1e-10
    assert found["compilations"] == [[1, 1]] * 4
    begun = {name: json.loads((tmp_path / name / "config.json").read_text()) for name in ("plain", "spread")}
    assert [run["machine"]["mesh"] for run in begun.values()] == ["none", f"members={devices}"]
    assert [run["settings"]["shard_members"] for run in begun.values()] == [True, False]  # as they went on
    assert f"began with mesh none and goes on with members={devices}" in done.stderr
    assert f"began with mesh members={devices} and goes on with none" in done.stderr


@pytest.mark.parametrize(("members", "devices", "used"), [(5, 5, 5), (5, 4, 1), (6, 4, 3), (2, 8, 2), (1, 3, 1)])
def test_as_many_devices_are_used_as_divide_the_members(
    members: int, devices: int, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []

    class Seen:
        def __init__(self, devices: Any, names: Any) -> None:
            taken.append(len(devices))

    monkeypatch.setattr("sunrise.ensemble.placement.Mesh", Seen)
    monkeypatch.setattr("sunrise.ensemble.placement.NamedSharding", lambda mesh, spec: None)
    assert over_devices([jax.devices()[0]] * devices, members).mesh == f"members={used}"
    assert taken == [used]


def test_one_device_by_its_number_is_refused_where_members_are_to_be_spread() -> None:
    with pytest.raises(SunriseError, match="device is 'cpu:0', but shard_members spreads the members over all"):
        SAC("MlpPolicy", "Pendulum-v1", device="cpu:0", shard_members=True, **SMALL)


def test_one_device_is_a_mesh_too_and_a_saved_model_is_loaded_on_one_device(tmp_path: Path) -> None:
    model = SAC("MlpPolicy", "Pendulum-v1", device="cpu", ensemble_size=2, shard_members=True, **SMALL)
    assert model.placement.mesh == "members=1"
    model.save(tmp_path / "model")
    assert SAC.load(tmp_path / "model", device="cpu:0").placement.mesh == "none"
