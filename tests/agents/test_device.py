"""Agents live where they are told to: on the second of two devices, in a process that has two."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import json, sys
import jax
from sunrise import SAC

small = dict(ensemble_size=2, net_arch=(4,), batch_size=4, buffer_size=100, learning_starts=5, eval_freq=0)
model = SAC("MlpPolicy", "Pendulum-v1", device="cpu:1", run_dir=sys.argv[1], **small)
model.learn(15, log_interval=None, progress_bar=False)
model.save(sys.argv[1] + "/saved")

def where(model):
    members = model.ensemble
    return sorted({str(device) for leaf in jax.tree.leaves(members) for device in leaf.devices()})

again = SAC.load(sys.argv[1] + "/saved", env="Pendulum-v1", device="cpu:1")
found = {"learned": where(model), "loaded": where(again)}
again.predict(again.env.single_observation_space.sample())
again.learn(10, progress_bar=False)
found["gone on"] = where(again)
found["compilations"] = model.sunrise.update._cache_size()
print(json.dumps(found))
"""


def test_every_array_stays_on_the_device_that_was_asked_for(tmp_path: Path) -> None:
    flags = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "run")], env=flags, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    second = '["cpu:1"]'
    assert done.stdout.strip() == (
        f'{{"learned": {second}, "loaded": {second}, "gone on": {second}, "compilations": 1}}'
    )
