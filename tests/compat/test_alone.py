"""What a Stable-Baselines3 user knows, where Stable-Baselines3 is not needed."""

import json
import sys
import zipfile
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import sunrise
from sunrise import SAC, SunriseError
from sunrise.agents.policies import CnnPolicy, MlpPolicy
from sunrise.compat.archive import save
from sunrise.compat.infos import each
from sunrise.compat.logger import Logger
from sunrise.compat.vec_env import HandSteps
from sunrise.envs.vector import SyncEnvs
from tests.compat.models import LENGTH, SMALL, Walk, dqn, sac
from tests.support import tiny

RUN: dict[str, Any] = {"progress_bar": False, "log_interval": None}


class Follower(sunrise.Callback):
    """Writes down what it is told."""

    def __init__(self, stop_at: int = 0) -> None:
        super().__init__()
        self.seen: list[Any] = []
        self.stop_at = stop_at

    def _on_training_start(self) -> None:
        self.seen.append(("start", self.locals["total_timesteps"]))

    def _on_step(self) -> bool:
        step = {name: self.locals[name] for name in ("rewards", "dones", "new_obs", "actions", "infos")}
        self.seen.append((self.num_timesteps, self.model.num_timesteps, step))
        return self.num_timesteps != self.stop_at

    def _on_training_end(self) -> None:
        self.seen.append("end")


@pytest.fixture(scope="module")
def trained() -> SAC:
    return sac().learn(30, **RUN)


def test_a_callback_sees_each_step_as_it_was() -> None:
    follower = Follower(stop_at=13)
    sac(Walk("terminated")).learn(30, callback=follower, **RUN)
    assert follower.seen[0] == ("start", 30)
    assert follower.seen[-1] == "end"
    steps = follower.seen[1:-1]
    assert [(known, counted) for known, counted, _ in steps] == [(t, t) for t in range(1, 14)]
    for t, _, step in steps:
        place = (t - 1) % LENGTH + 1  # within the episode
        assert step["rewards"] == place
        assert step["dones"] == (place == LENGTH)
        assert step["new_obs"][0, 0] == (0 if place == LENGTH else place)
        assert step["actions"].shape == (1, 1)
        info = step["infos"][0]
        assert (info["lap"], info["TimeLimit.truncated"]) == (place, False)
        assert ("episode" in info) == ("terminal_observation" in info) == (place == LENGTH)
    last = steps[LENGTH - 1][2]["infos"][0]
    assert last["terminal_observation"][0] == LENGTH
    assert (last["episode"]["r"], last["episode"]["l"]) == (15, LENGTH)


def test_of_several_callbacks_each_is_called_and_each_may_stop() -> None:
    first, calls = Follower(stop_at=3), []
    model = sac().learn(30, callback=[first, lambda own, _: calls.append(own["self"].num_timesteps)], **RUN)
    assert calls == [1, 2, 3]
    assert model.num_timesteps == 3
    with pytest.raises(SunriseError, match="callback"):
        model.learn(3, callback=7, **RUN)  # type: ignore[arg-type]


def test_a_zip_of_json_and_safetensors_is_the_same_model(trained: SAC, tmp_path: Path) -> None:
    trained.save(tmp_path / "model.zip")
    with zipfile.ZipFile(tmp_path / "model.zip") as archive:
        assert sorted(archive.namelist()) == ["model.json", "model.safetensors"]
        assert json.loads(archive.read("model.json"))["algo"] == "sac"
    for name in ("model.zip", "model"):
        again = SAC.load(tmp_path / name)
        assert tiny.same_bits(again.ensemble, trained.ensemble)
        assert again.num_timesteps == 30
    trained.save(tmp_path / "other")
    assert tiny.same_bits(SAC.load(tmp_path / "other.zip").ensemble, trained.ensemble)


def test_custom_objects_that_are_settings_replace_them(trained: SAC, tmp_path: Path) -> None:
    trained.save(tmp_path / "model")
    theirs = {"learning_rate": 0.5, "lr_schedule": lambda _: 0.0, "clip_range": lambda _: 0.0}
    model = SAC.load(tmp_path / "model", custom_objects=theirs, gamma=0.5)
    assert (model.learning_rate, model.gamma) == (0.5, 0.5)


@pytest.mark.parametrize("damage", ["bomb", "names", "half", "edited", "comment", "pickle"])
def test_a_zip_that_is_not_ours_is_refused_by_a_sentence(trained: SAC, tmp_path: Path, damage: str) -> None:
    good, bad = tmp_path / "good.zip", tmp_path / "bad.zip"
    trained.save(good)
    with zipfile.ZipFile(good) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    kind = zipfile.ZIP_DEFLATED if damage == "bomb" else zipfile.ZIP_STORED
    with zipfile.ZipFile(bad, "w", kind) as archive:
        if damage == "bomb":
            parts["model.safetensors"] = bytes(10_000_000)
        elif damage == "names":
            parts = {"../../escaped": b"", **parts}
        elif damage == "edited":
            parts["model.json"] = parts["model.json"].replace(b'"sac"', b'"td3"')
        elif damage == "pickle":
            parts = {"data": b"", "policy.pth": b"", "pytorch_variables.pth": b""}
        for name, content in parts.items():
            archive.writestr(name, content)
        archive.comment = b"!" if damage == "comment" else b""
    if damage == "half":
        bad.write_bytes(good.read_bytes()[: good.stat().st_size // 2])
    with pytest.raises(SunriseError, match="Stable-Baselines3" if damage == "pickle" else "damaged"):
        SAC.load(bad)
    assert not (tmp_path.parent / "escaped").exists()


@pytest.mark.parametrize("settings", [{}, {"n_step": 3, "prioritised": True}], ids=["uniform", "prioritised"])
def test_a_replay_buffer_comes_back_from_its_file(tmp_path: Path, settings: dict[str, Any]) -> None:
    model = sac(**settings).learn(23, **RUN)
    model.save_replay_buffer(tmp_path / "rows.pkl")
    model.save(tmp_path / "model")
    again = SAC.load(tmp_path / "model")
    assert again.replay_buffer.size() == 0
    again.load_replay_buffer(tmp_path / "rows.pkl")
    assert again.replay_buffer.size() == 23
    again.set_env(Walk())
    again.learn(2, reset_num_timesteps=False, **RUN)
    assert again.replay_buffer.size() == 25
    assert model.trainer is not None
    assert again.trainer is not None
    ours, theirs = model.trainer.replay.rings(), again.trainer.replay.rings()
    for name, ring in ours.items():
        for key, array in ring.arrays.items():
            if key != "ended":  # an open episode ends where it was saved
                np.testing.assert_array_equal(array[: ring.written], theirs[name].arrays[key][: ring.written])
    with pytest.raises(SunriseError, match="fit"):
        sac(**settings, buffer_size=400, ensemble_size=1).load_replay_buffer(tmp_path / "rows.pkl")
    with pytest.raises(SunriseError, match="not a replay buffer"):
        again.load_replay_buffer(tmp_path / "model.safetensors")


def test_parameters_are_read_and_set_by_name(trained: SAC, tmp_path: Path) -> None:
    other = sac(seed=8)
    assert not tiny.same_bits(other.ensemble, trained.ensemble)
    other.set_parameters(trained.get_parameters())
    assert tiny.same_bits(other.ensemble, trained.ensemble)
    name = next(iter(trained.get_parameters()["policy"]))
    changed = trained.get_parameters()["policy"][name] * 0
    other.set_parameters({"policy": {name: changed}}, exact_match=False)
    np.testing.assert_array_equal(other.get_parameters()["policy"][name], changed)
    trained.save(tmp_path / "model.zip")
    other.set_parameters(str(tmp_path / "model.zip"))
    assert tiny.same_bits(other.ensemble, trained.ensemble)
    with pytest.raises(SunriseError, match="one side only"):
        other.set_parameters({"policy": {name: changed}})
    with pytest.raises(SunriseError, match="expected"):
        other.set_parameters({"policy": {name: np.zeros(3)}}, exact_match=False)


def test_a_policy_is_its_name_acts_and_is_saved_by_itself(trained: SAC, tmp_path: Path) -> None:
    policy, obs = trained.policy, np.ones((4, 3), np.float32)
    assert policy == "MlpPolicy"
    assert json.dumps({"policy": policy}) == '{"policy": "MlpPolicy"}'
    policy.save(tmp_path / "acts")
    again = MlpPolicy.load(tmp_path / "acts")
    same = sac_from(trained, tmp_path)
    for deterministic in (True, False):
        of_model = same.predict(obs, deterministic=deterministic)[0]
        np.testing.assert_array_equal(again.predict(obs, deterministic=deterministic)[0], of_model)
    np.testing.assert_array_equal(
        policy.predict(obs, deterministic=True)[0], trained.predict(obs, deterministic=True)[0]
    )
    about, arrays = trained._about() | {"algo": "antigravity:SAC"}, trained.ensemble
    save(tmp_path / "odd.zip", arrays, about)
    with pytest.raises(SunriseError, match="not ours"):  # and nothing is imported
        MlpPolicy.load(tmp_path / "odd.zip")
    assert "antigravity" not in sys.modules
    by_class: Any = MlpPolicy
    assert SAC(by_class, Walk(), **SMALL).policy == "MlpPolicy"
    with pytest.raises(SunriseError, match="takes"):
        SAC(cast(Any, CnnPolicy), Walk(), **SMALL)


def sac_from(model: SAC, folder: Path) -> SAC:
    model.save(folder / "same")
    return SAC.load(folder / "same")


def test_a_policys_arrays_are_read_and_set_by_name(trained: SAC) -> None:
    other = sac(seed=8)
    other.policy.load_state_dict(trained.policy.state_dict())
    assert tiny.same_bits(other.ensemble, trained.ensemble)
    name, value = next(iter(trained.policy.state_dict().items()))
    other.policy.load_state_dict({name: value * 0}, strict=False)
    assert not other.policy.state_dict()[name].any()


def test_what_of_pytorch_is_not_here_is_named_and_a_policy_cannot_be_replaced(trained: SAC) -> None:
    with pytest.raises(SunriseError, match="members"):
        _ = trained.actor
    with pytest.raises(SunriseError, match="members"):
        _ = trained.policy.actor
    with pytest.raises(SunriseError, match="members"):
        trained.policy(np.ones(3))
    assert not hasattr(trained, "critic")
    assert not hasattr(trained.policy, "to")
    with pytest.raises(SunriseError, match="policy_kwargs"):
        trained.policy = "CnnPolicy"


def test_environments_made_by_their_id_can_be_drawn_as_there() -> None:
    model = SAC("MlpPolicy", "Pendulum-v1", **SMALL)
    by_hand = model.get_env()
    by_hand.reset()
    picture = np.asarray(by_hand.render(mode="rgb_array"))
    assert picture.dtype == np.uint8
    assert picture.std() > 0
    inside: Any = model.env
    with pytest.raises(SunriseError, match="get_env"):
        inside.render(mode="rgb_array")
    model = sac(Walk())  # the user's own is left as it is
    model.get_env()
    vector: Any = model.env
    assert vector.envs[0].render_mode is None


@pytest.mark.parametrize("ends", ["terminated", "truncated"])
def test_environments_are_stepped_by_hand_as_a_vec_env(ends: str) -> None:
    hand = HandSteps(SyncEnvs([lambda: Walk(ends)] * 2))
    obs = hand.reset()
    np.testing.assert_array_equal(obs, np.zeros((2, 3)))
    for t in range(1, LENGTH + 1):
        obs, rewards, dones, infos = hand.step(np.zeros((2, 1), np.float32))
        assert rewards.tolist() == [t, t]
        assert dones.tolist() == [t == LENGTH] * 2
    np.testing.assert_array_equal(obs, np.zeros((2, 3)))
    assert infos[1]["terminal_observation"][0] == LENGTH
    assert infos[1]["TimeLimit.truncated"] == (ends == "truncated")
    assert (infos[1]["episode"]["r"], infos[1]["episode"]["l"]) == (15, LENGTH)
    assert hand.get_attr("ends") == [ends, ends]


def test_a_training_goes_on_in_new_episodes_once_its_environments_were_stepped_by_hand() -> None:
    env, follower = Walk(), Follower()
    model = sac(env).learn(12, **RUN)
    by_hand = model.get_env()
    by_hand.reset()
    by_hand.step(np.zeros((1, 1), np.float32))
    model.learn(5, callback=follower, reset_num_timesteps=False, **RUN)
    assert [step["rewards"][0] for _, _, step in follower.seen[1:-1]] == [1, 2, 3, 4, 5]


def test_a_training_that_nobody_disturbed_goes_on_where_it_was() -> None:
    follower = Follower()
    model = sac().learn(12, **RUN)
    model.learn(3, callback=follower, reset_num_timesteps=False, **RUN)
    assert [step["rewards"][0] for _, _, step in follower.seen[1:-1]] == [3, 4, 5]


def test_what_is_recorded_is_written_with_the_next_row() -> None:
    class Kept:
        def __init__(self) -> None:
            self.rows: list[Any] = []

        def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
            self.rows.append((step, dict(key_values)))

        def close(self) -> None:
            pass

    kept = Kept()
    logger = Logger(None, [kept])
    logger.record("a", 1)
    logger.record("a", 2)
    logger.record_mean("b", 1)
    logger.record_mean("b", 4)
    logger.dump(7)
    logger.dump(8)
    assert kept.rows == [(7, {"a": 2, "b": 2.5}), (8, {})]


def test_infos_of_arrays_become_a_dict_for_each_environment() -> None:
    info = {"x": np.asarray([1, 2]), "_x": np.asarray([True, False]), "in": {"y": np.asarray([3, 4])}, "sunrise/z": 1}
    assert each(info, 2) == [{"x": 1, "in": {"y": 3}}, {"in": {"y": 4}}]


def test_settings_are_attributes_and_a_seed_can_be_given_later(tmp_path: Path) -> None:
    model = sac(gamma=0.9)
    assert (model.gamma, model.batch_size, model.n_envs, model.learning_rate) == (0.9, 4, 1, 3e-4)
    with pytest.raises(AttributeError, match="colour"):
        _ = model.colour
    model.set_random_seed(11)
    assert model.config.run.seed == 11
    with pytest.raises(SunriseError, match="folder"):
        sac(run_dir=str(tmp_path / "run")).set_random_seed(1)


def test_dqn_acts_at_random_as_often_as_it_says() -> None:
    model = dqn(exploration_fraction=0.5, exploration_final_eps=0.0, learning_starts=0).learn(40, **RUN)
    assert model.exploration_rate == 0
    np.testing.assert_array_equal(
        model.predict(np.zeros((50, 3)))[0], model.predict(np.zeros((50, 3)), deterministic=True)[0]
    )
    always = dqn(exploration_final_eps=1.0)
    assert 10 < np.sum(always.predict(np.zeros((50, 3)))[0]) < 40


def test_a_round_of_updates_may_come_after_episodes() -> None:
    model = sac(train_freq=(2, "episode"), gradient_steps=3, learning_starts=0).learn(4 * LENGTH + 3, **RUN)
    assert model.trainer is not None
    assert model.trainer.updates == 6
    assert SMALL["learning_starts"] == 10


def test_a_training_too_short_for_a_round_says_so_also_of_several_environments(caplog: Any) -> None:
    SAC("MlpPolicy", Walk, num_envs=2, train_freq=20, **(SMALL | {"learning_starts": 36})).learn(38, **RUN)
    assert "train_freq is 20 steps of 2 environments" in caplog.text
