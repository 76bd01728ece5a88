"""Minari datasets: what a plain loop does is what is in them, and what is in them is what replay begins with."""

import json
import shutil
from pathlib import Path
from typing import Any

import gymnasium as gym
import h5py
import minari
import numpy as np
import pytest
from minari.data_collector import EpisodeBuffer

from sunrise import RAD, SAC, Rainbow
from sunrise.agents import load_run
from sunrise.agents.collecting import Length, collect
from sunrise.cli import main
from sunrise.config.algorithms import algorithm
from sunrise.config.settings import with_settings
from sunrise.errors import DamagedError, SunriseError
from sunrise.offline.dataset import open_dataset, place_of
from sunrise.offline.prefill import prefill
from sunrise.replay.uniform import UniformReplay
from sunrise.run.building import make_replay
from tests.support import runs, toys
from tests.support.image_control import Dot

toys.register()
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:minari")
SMALL: dict[str, Any] = {"ensemble_size": 2, "net_arch": (8, 8), "batch_size": 8, "buffer_size": 90, "seed": 3}
QUIET: dict[str, Any] = {"log_interval": None, "progress_bar": False}


@pytest.fixture(autouse=True, scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", str(tmp_path_factory.mktemp("datasets")))
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run of a policy with noise."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    SAC("MlpPolicy", "Pendulum-v1", **SMALL, run_dir=str(folder), learning_starts=100, eval_freq=0).learn(3, **QUIET)
    return folder


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_dataset_is_what_a_plain_loop_does(
    run: Path, deterministic: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"pendulum/{'noiseless' if deterministic else 'exploring'}-v0"
    flags = ["--episodes", "2", "--seed", "11", *(["--deterministic"] if deterministic else [])]
    main(["collect", str(run), "--out", name, *flags])
    found = minari.load_dataset(name)
    assert capsys.readouterr().out.strip().endswith(name)
    assert (found.total_episodes, found.total_steps) == (2, 400)
    assert found.env_spec.id == "Pendulum-v1"
    said = found.storage.metadata
    assert said["algorithm_name"] == "sac"
    assert "code_permalink" not in said
    assert said["sunrise"]["settings"]["seed"] == 3
    model, env = load_run(run), gym.make("Pendulum-v1")
    seeds = [entry["seed"] for entry in found.storage.get_episode_metadata([0, 1])]
    assert len(set(seeds)) == 2
    for episode, seed in zip(found.iterate_episodes(), seeds, strict=True):
        obs, _ = env.reset(seed=seed)
        for t in range(200):
            assert np.array_equal(episode.observations[t], obs)
            action, _ = model.predict(obs, deterministic=deterministic)
            assert np.array_equal(episode.actions[t], action)
            obs, reward, terminated, truncated, _ = env.step(action)
            assert episode.rewards[t] == reward
            assert (episode.terminations[t], episode.truncations[t]) == (terminated, truncated)
        assert np.array_equal(episode.observations[200], obs)


def test_so_many_timesteps_are_collected_and_the_last_episode_is_truncated(run: Path) -> None:
    assert collect(load_run(run), "pendulum/cut-v0", Length(timesteps=250), deterministic=True) == (2, 250)
    first, second = minari.load_dataset("pendulum/cut-v0").iterate_episodes()
    assert (len(first.rewards), len(second.rewards)) == (200, 50)
    assert second.truncations.tolist() == [False] * 49 + [True]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "nonsense"], "must be like hopper/sunrise-v0"),
        (["--out", "../escape-v0"], "must be like"),
        (["--out", "pendulum/twice-v0"], "there is a dataset pendulum/twice-v0 already"),
        (["--out", "a-v0", "--episodes", "0"], "episodes is 0, but must be at least 1"),
        (["--out", "a-v0", "--episodes", "1", "--timesteps", "1"], "not both"),
    ],
)
def test_what_cannot_be_collected_is_refused(
    run: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "twice" in words[1]:
        collect(load_run(run), "pendulum/twice-v0", Length(timesteps=2), deterministic=True)
    with pytest.raises(SystemExit):
        main(["collect", str(run), *words])
    assert said in capsys.readouterr().err


def test_nothing_is_left_of_a_dataset_that_is_not_finished(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, calls = load_run(run), 0
    predict = model.predict

    def fail(*arguments: Any, **settings: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 300:
            raise KeyboardInterrupt
        return predict(*arguments, **settings)

    monkeypatch.setattr(model, "predict", fail)
    with pytest.raises(KeyboardInterrupt):
        collect(model, "pendulum/broken-v0", Length(episodes=2), deterministic=True)
    assert "pendulum/broken-v0" not in minari.list_local_datasets()


def test_a_dataset_that_somebody_else_made_meanwhile_stays(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_run(run)
    predict = model.predict

    def slowly(*arguments: Any, **settings: Any) -> Any:
        if not place_of("pendulum/theirs-v0").exists():
            counted("pendulum/theirs-v0")
        return predict(*arguments, **settings)

    monkeypatch.setattr(model, "predict", slowly)
    with pytest.raises(SunriseError, match="there is a dataset pendulum/theirs-v0 already"):
        collect(model, "pendulum/theirs-v0", Length(timesteps=2), deterministic=True)
    assert minari.load_dataset("pendulum/theirs-v0").total_steps == 12


# -- prefill -----------------------------------------------------------------------------------------------------------


def counted(name: str, length: int = 4, ends: str = "terminated", episodes: int = 3, **changes: Any) -> str:
    """A dataset whose every number is known: episode i has the observations (t, i) and the actions of a half circle."""
    space = toys.Counter()
    buffers = [
        EpisodeBuffer(
            observations=np.stack([np.arange(length + 1), np.full(length + 1, i)], 1).astype(np.float32),
            actions=np.linspace(-2, 4, length, dtype=np.float32)[:, None],
            rewards=[float(t + 1) for t in range(length)],
            terminations=[ends == "terminated" and t == length - 1 for t in range(length)],
            truncations=[ends == "truncated" and t == length - 1 for t in range(length)],
        )
        for i in range(episodes)
    ]
    spaces = {"observation_space": space.observation_space, "action_space": space.action_space} | changes
    minari.create_dataset_from_buffers(name, buffers, **spaces)
    return name


def filled(name: str, envs: int = 1, algo: str = "sac", **changes: Any) -> Any:
    """The replay buffer that begins with a dataset."""
    known, toy = algorithm(algo), toys.Counter()
    settings = {"net_arch": (8, 8), "ensemble_size": 4, "buffer_size": 100, "prefill": name, "num_envs": envs} | changes
    config = with_settings(known.defaults, settings)
    parts = known.fit(config, toy.observation_space, toy.action_space)
    replay = make_replay(config, toy.observation_space, parts, envs, np.random.default_rng(0))
    prefill(replay, config, toy.observation_space, toy.action_space, envs)
    return replay


def test_replay_has_the_transitions_of_the_dataset() -> None:
    replay = filled(counted("toy/ends-v0"), bootstrap_prob=0.5)
    batch = replay.batch
    assert len(replay) == 12
    np.testing.assert_array_equal(batch.obs[:12, 0], [0, 1, 2, 3] * 3)
    np.testing.assert_array_equal(batch.obs[:12, 1], [0] * 4 + [1] * 4 + [2] * 4)
    np.testing.assert_array_equal(batch.next_obs[:12, 0], [1, 2, 3, 4] * 3)
    np.testing.assert_array_equal(batch.reward[:12], [1, 2, 3, 4] * 3)
    np.testing.assert_allclose(batch.action[:12, 0], [-1, -1 / 3, 1 / 3, 1] * 3, atol=1e-6)
    np.testing.assert_array_equal(batch.discount[:12], np.array([0.99, 0.99, 0.99, 0] * 3, np.float32))
    assert 10 < replay.mask[:12].sum() < 38  # drawn: neither all nor none of 48


def test_a_time_limit_is_bootstrapped_unless_it_is_to_count_as_the_end() -> None:
    name = counted("toy/limit-v0", ends="truncated")
    assert (filled(name).batch.discount[:12] == np.float32(0.99)).all()
    np.testing.assert_array_equal(
        filled(name, truncation="terminal").batch.discount[:4], np.array([0.99] * 3 + [0], np.float32)
    )


def test_only_the_last_transitions_are_kept_where_there_is_no_room(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "sunrise"):
        replay = filled(counted("toy/long-v0"), buffer_size=6)
    assert (len(replay), int(replay.written)) == (6, 6)
    np.testing.assert_array_equal(replay.batch.obs[:, :2], [[2, 1], [3, 1], [0, 2], [1, 2], [2, 2], [3, 2]])
    assert "Replay begins with 6 transitions of toy/long-v0 (the last of 12: buffer_size is 6)." in caplog.text


@pytest.mark.parametrize("ends", ["terminated", "truncated", "cut"])
def test_windows_of_several_steps_end_with_their_episode(ends: str) -> None:
    replay = filled(counted(f"toy/windows-{ends}-v0", ends=ends), envs=2, n_step=3)
    assert len(replay) == 12
    sample, _ = replay.sample(400, 0)
    gamma = 0.99
    sums = {0: 1 + 2 * gamma + 3 * gamma**2, 1: 2 + 3 * gamma + 4 * gamma**2, 2: 3 + 4 * gamma, 3: 4.0}
    for obs, reward, discount, after in zip(
        sample.batch.obs, sample.batch.reward, sample.batch.discount, sample.batch.next_obs, strict=True
    ):
        t = int(obs[0])
        assert reward == pytest.approx(sums[t], rel=1e-6)
        assert after.tolist() == [min(t + 3, 4), obs[1]]
        last = t > 0
        assert discount == pytest.approx(0 if last and ends == "terminated" else gamma ** min(3, 4 - t), rel=1e-6)
    assert {tuple(obs) for obs in sample.batch.obs.tolist()} == {(t, i) for t in range(4) for i in range(3)}


def test_what_does_not_fit_is_refused_by_name() -> None:
    box = gym.spaces.Box
    counted("toy/narrow-v0", action_space=box(-1, 1, (1,), np.float32))
    counted("toy/other-v0", observation_space=box(-1, 1, (3,), np.float32))
    for name, said in (
        ("toy/narrow-v0", "the dataset toy/narrow-v0's actions are Box"),
        ("toy/other-v0", "the dataset toy/other-v0's observations are Box"),
        ("toy/nowhere-v0", "there is no dataset toy/nowhere-v0 in"),
        ("nonsense", "is no id of a dataset"),
    ):
        with pytest.raises(SunriseError, match=said):
            filled(name)
    model = SAC("MlpPolicy", "Pendulum-v1", **SMALL, prefill="toy/narrow-v0")
    with pytest.raises(SunriseError, match="observations are"):
        model.learn(3, **QUIET)


@pytest.mark.parametrize(
    ("array", "value", "said"),
    [("rewards", np.nan, "not finite"), ("actions", 9.0, "an action outside of"), ("observations", np.inf, "finite")],
)
def test_bad_values_are_refused(array: str, value: float, said: str) -> None:
    name = counted(f"toy/bad-{array}-v0")
    with h5py.File(file_of(name), "a") as file:
        file["episode_1"][array][0] = value
    with pytest.raises(DamagedError, match=said):
        filled(name)


def file_of(name: str) -> Path:
    return Path(str(minari.load_dataset(name).storage.data_path)) / "main_data.hdf5"


def test_a_strangers_dataset_runs_nothing_and_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('it ran')")
    monkeypatch.syspath_prepend(tmp_path)
    name = counted("toy/evil-v0")
    path = file_of(name).parent / "metadata.json"
    said = json.loads(path.read_text())
    spec = {**json.loads(gym.spec("Pendulum-v1").to_json()), "id": "evil:Evil-v0", "entry_point": "evil:Evil"}
    path.write_text(json.dumps({**said, "env_spec": json.dumps(spec)}))
    assert len(filled(name)) == 12  # read, and the environment that it names is never made
    without = {key: value for key, value in said.items() if key != "observation_space"}
    path.write_text(json.dumps({**without, "env_spec": json.dumps(spec)}))
    with pytest.raises(SystemExit, match="it ran"):
        minari.load_dataset(name)  # Minari itself would run it
    with pytest.raises(SunriseError, match="does not say its spaces"):
        open_dataset(name)
    for way in ("link", "external"):
        other = counted(f"toy/{way}-v0")
        (tmp_path / "secret").write_bytes(bytes(64))
        with h5py.File(file_of(other), "a") as file:
            del file["episode_0"]["rewards"]
            if way == "link":
                file["episode_0"]["rewards"] = h5py.ExternalLink(str(tmp_path / "secret"), "/x")
            else:
                file["episode_0"].create_dataset("rewards", (4,), "f8", external=[(str(tmp_path / "secret"), 0, 32)])
        with pytest.raises(DamagedError, match="leads to another file"):
            open_dataset(other)


def test_a_run_that_began_with_a_dataset_resumes_exactly_and_counts_its_own_steps(run: Path, tmp_path: Path) -> None:
    collect(load_run(run), "pendulum/start-v0", Length(timesteps=60), deterministic=False)
    often = {"eval_freq": 0, "log_freq": 5, "save_freq": 10, "learning_starts": 4, "bootstrap_prob": 0.5}

    def begin(name: str) -> SAC:
        settings = {**SMALL, **often, "prefill": "pendulum/start-v0"}
        return SAC("MlpPolicy", "Pendulum-v1", run_dir=str(tmp_path / name), **settings)

    whole = begin("whole").learn(20, **QUIET)
    assert whole.trainer is not None
    assert (whole.num_timesteps, len(whole.trainer.replay)) == (20, 80)
    begin("parts").learn(10, **QUIET)
    SAC.resume(tmp_path / "parts").learn(10, **QUIET, reset_num_timesteps=False)
    runs.assert_same(tmp_path / "whole", tmp_path / "parts")
    begin("early").learn(10, **QUIET)
    for step in (tmp_path / "early" / "checkpoints").glob("step-*"):
        shutil.rmtree(step)  # as if it had been killed before its first checkpoint
    SAC.resume(tmp_path / "early").learn(20, **QUIET, reset_num_timesteps=False)
    runs.assert_same(tmp_path / "whole", tmp_path / "early")


def test_a_finite_set_of_actions_is_counted_from_0() -> None:
    model = Rainbow("MlpPolicy", "CartPole-v1", **SMALL, n_atoms=5, learning_starts=1000, eval_freq=0, n_step=2)
    env = gym.make("CartPole-v1")
    rng = np.random.default_rng(0)
    actions = rng.integers(2, size=6)
    minari.create_dataset_from_buffers(
        "cart/six-v0",
        [
            EpisodeBuffer(
                observations=rng.normal(size=(7, 4)).astype(np.float32),
                actions=actions,
                rewards=[1.0] * 6,
                terminations=[False] * 5 + [True],
                truncations=[False] * 6,
            )
        ],
        observation_space=env.observation_space,
        action_space=env.action_space,
    )
    model.config = with_settings(model.config, {"prefill": "cart/six-v0"})
    model.learn(3, **QUIET)
    assert model.trainer is not None
    replay: Any = model.trainer.replay
    assert len(replay) == 9
    np.testing.assert_array_equal(replay.action[:6], actions)


@pytest.mark.parametrize(("layout", "size"), [("stack", 20), ("last", 32)])
def test_pictures_come_back_as_they_were_seen(layout: str, size: int) -> None:
    env, name = Dot(size, layout=layout), f"dot/{layout}-v0"
    small: dict[str, Any] = {"filters": 4, "conv_layers": 2, "feature_dim": 6, "crop_size": size - 2, "prefill": name}
    model = RAD("CnnPolicy", env, **SMALL, **small)
    seen, buffers = [], []
    for seed in range(3):
        pictures = [env.reset(seed=seed)[0], *(env.step(np.array([0.3]))[0] for _ in range(env.length))]
        seen.append(np.stack(pictures))
        ends = [False] * (env.length - 1) + [True]
        parts = {"rewards": [1.0] * env.length, "terminations": [False] * env.length, "truncations": ends}
        actions = np.full((env.length, 1), 0.3, np.float32)
        buffers.append(EpisodeBuffer(observations=seen[-1], actions=actions, **parts))
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    minari.create_dataset_from_buffers(name, buffers, jpeg_encoding=False, **spaces)
    replay: Any = model._new_replay()
    prefill(replay, model.config, model.observation_space, model.action_space, 1)
    slots = np.arange(3 * env.length)
    if isinstance(replay, UniformReplay):
        before, after = replay.batch.obs[slots], replay.batch.next_obs[slots]
    else:  # each frame once
        before, after = replay.store.obs(slots), replay.store.next_obs(slots)
    np.testing.assert_array_equal(before, np.concatenate([pictures[:-1] for pictures in seen]))
    np.testing.assert_array_equal(after, np.concatenate([pictures[1:] for pictures in seen]))
