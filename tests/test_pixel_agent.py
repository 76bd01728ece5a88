"""RAD, DrQ and CURL as users meet them: settings, real pictures, files, the command line, and that they learn."""

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from sunrise import CURL, RAD, SAC, DrQ, SunriseError
from sunrise.agents import load_run
from sunrise.algorithms import starting
from sunrise.cli import main
from sunrise.envs.dmc import PAPER_TASKS
from sunrise.envs.renderers import resolve
from sunrise.experiments.paper import SEARCH
from sunrise.replay.uniform import UniformReplay
from sunrise.settings import flatten_config
from tests.image_control import Dot

TINY: dict[str, Any] = {
    "net_arch": (8, 8),
    "filters": 4,
    "conv_layers": 2,
    "feature_dim": 6,
    "batch_size": 8,
    "ensemble_size": 2,
    "learning_starts": 20,
    "buffer_size": 300,
    "eval_freq": 0,
}
CROP: dict[str, Any] = {"crop_size": 18}


@pytest.fixture(scope="module", autouse=True)
def register() -> None:
    for layout in ("stack", "last", "first"):
        gym.register(f"toy/Dot-{layout}-v0", Dot, kwargs={"layout": layout})  # type: ignore[arg-type]


# -- the paper's numbers -----------------------------------------------------------------------------------------------


def test_the_defaults_are_the_papers() -> None:
    rad = flatten_config(starting("rad"))
    paper = {
        "pixels": True,
        "render_size": 100,
        "crop_size": 84,
        "frame_stack": 3,
        "buffer_size": 100_000,
        "learning_starts": 1000,
        "batch_size": 256,
        "gamma": 0.99,
        "learning_rate": 1e-3,
        "alpha_learning_rate": 1e-4,
        "alpha_beta": 0.5,
        "tau": 0.01,
        "encoder_tau": 0.05,
        "ent_coef": "auto_0.1",
        "net_arch": (1024, 1024),
        "filters": 32,
        "conv_layers": 4,
        "feature_dim": 50,
        "policy_delay": 2,
        "target_update_interval": 2,
    }
    assert {name: rad[name] for name in paper} == paper
    assert SEARCH["dmc"] == {"weight_temperature": (10, 100), "bootstrap_prob": (0.5, 1.0), "ucb_lambda": (1, 5, 10)}
    for name, values in SEARCH["dmc"].items():
        assert rad[name] in values
    drq = flatten_config(starting("drq"))
    own = {"render_size": 84, "batch_size": 512, "alpha_learning_rate": 1e-3, "alpha_beta": 0.9}
    own |= {"tau": 0.01, "encoder_tau": 0.01, "views": 2, "target_views": 2, "shift_pad": 4}
    assert {name: drq[name] for name in own} == own


def test_a_task_of_the_paper_brings_its_settings_and_the_user_has_the_last_word() -> None:
    assert {i.removeprefix("dmc/"): t.action_repeat for i, t in PAPER_TASKS.items()} == {
        "finger-spin": 2,
        "cartpole-swingup": 8,
        "reacher-easy": 4,
        "cheetah-run": 4,
        "walker-walk": 2,
        "ball_in_cup-catch": 4,
        "cartpole-swingup_sparse": 8,
    }
    cheetah = flatten_config(starting("rad", "dmc/cheetah-run"))
    assert (cheetah["action_repeat"], cheetah["learning_rate"], cheetah["batch_size"]) == (4, 2e-4, 512)
    state = flatten_config(starting("sac", "dmc/cheetah-run"))
    assert (state["action_repeat"], state["learning_rate"], state["batch_size"]) == (4, 3e-4, 256)
    assert flatten_config(starting("sac", "dmc/humanoid-run"))["action_repeat"] == 1
    model = SAC("MlpPolicy", "dmc/cartpole-swingup", action_repeat=5, net_arch=(4,))
    assert (model.action_repeat, model.config.env.action_repeat) == (5, 5)


def test_the_help_shows_the_tasks_own_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for env_id in ("dmc/cheetah-run", "dmc/humanoid-run"):
        with pytest.raises(SystemExit):
            main(["train", "rad", "--env-id", env_id, "--help"])
        shown.append(capsys.readouterr().out)
    assert "0.0002" in shown[0]
    assert "0.0002" not in shown[1]


# -- bad input ---------------------------------------------------------------------------------------------------------


def test_states_and_pictures_are_not_mixed_up() -> None:
    with pytest.raises(SunriseError, match="SAC learns from states: for pixels=True use rad, drq or curl"):
        SAC("MlpPolicy", "dmc/cartpole-swingup", pixels=True, render_size=16)
    with pytest.raises(SunriseError, match="RAD learns from pictures: for pixels=False use sac"):
        RAD("CnnPolicy", "dmc/cartpole-swingup", pixels=False)
    with pytest.raises(SunriseError, match="RAD learns from pictures, a Box of uint8"):
        RAD("CnnPolicy", "Pendulum-v1")
    with pytest.raises(SunriseError, match="policy is 'MlpPolicy', but rad takes CnnPolicy"):
        RAD("MlpPolicy", "toy/Dot-stack-v0")


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SunriseError, match="crop_size is 84, but the pictures are 20 x 20"):
        RAD("CnnPolicy", "toy/Dot-stack-v0")
    with pytest.raises(SunriseError, match="pictures of 9 x 9 are too small for 4 convolutions"):
        RAD("CnnPolicy", "toy/Dot-stack-v0", crop_size=9)
    with pytest.raises(SunriseError, match="filters is 0, but must be at least 1"):
        RAD("CnnPolicy", "toy/Dot-stack-v0", filters=0)


# -- training ----------------------------------------------------------------------------------------------------------


def test_one_picture_a_step_is_learned_from() -> None:
    model = RAD("CnnPolicy", "toy/Dot-last-v0", augmentation="translate", translate_size=24, **TINY)
    model.learn(26, progress_bar=False)
    assert model.trainer is not None
    assert int(model.trainer.ensemble.step) == 6
    assert isinstance(model.trainer.replay, UniformReplay)  # there is no stack whose frames could be kept once


def test_colours_may_come_first() -> None:
    model = RAD("CnnPolicy", "toy/Dot-first-v0", **TINY | CROP)
    obs = np.stack([Dot(layout="first").reset(seed=seed)[0] for seed in range(2)])
    np.testing.assert_allclose(model.predict(obs)[0][1], model.predict(obs[1])[0], rtol=1e-5)


@pytest.mark.parametrize("cls", [DrQ, CURL])
def test_a_model_survives_a_file(cls: Any, tmp_path: Path) -> None:
    own = {} if cls is DrQ else CROP
    model = cls("CnnPolicy", "toy/Dot-stack-v0", **TINY, **own)
    obs = np.stack([Dot().reset(seed=seed)[0] for seed in range(3)])
    action, _ = model.predict(obs)
    assert action.shape == (3, 1)
    assert np.abs(action).max() <= 1
    model.save(tmp_path / "model")
    again = cls.load(tmp_path / "model", env="toy/Dot-stack-v0")
    np.testing.assert_array_equal(again.predict(obs)[0], action)
    np.testing.assert_array_equal(again.uncertainty(obs, action), model.uncertainty(obs, action))
    assert (model.uncertainty(obs, action) > 0).all()


def test_rad_trains_on_real_pictures_and_the_run_knows_how_they_were_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mujoco_warp", reason="needs the extra dmc")
    flags = "--render-size 24 --crop-size 20 --net-arch 8 8 --filters 4 --conv-layers 2 --feature-dim 6 --batch-size 8"
    flags += " --ensemble-size 2 --learning-starts 20 --buffer-size 300 --total-env-steps 240 --eval-freq 0"
    run = tmp_path / "run"
    main(
        ["train", "rad", "--env-id", "dmc/cartpole-swingup", "--run-dir", str(run), "--log-freq", "10", *flags.split()]
    )
    settings = json.loads((run / "config.json").read_text())["settings"]
    assert (settings["action_repeat"], settings["pixels"], settings["render_size"]) == (8, True, 24)
    assert settings["renderer"] == resolve("auto")
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert (rows[-1]["timesteps"], rows[-1]["env_steps"], rows[-1]["updates"]) == (30, 240, 10)
    assert np.isfinite(rows[-1]["train/critic_loss"])
    model = load_run(run)
    assert model.env is not None
    assert model.env.single_observation_space.shape == (3, 24, 24, 3)
    assert model.action_repeat == 8
    capsys.readouterr()
    main(["evaluate", str(run), "--episodes", "1"])
    assert json.loads(capsys.readouterr().out)["episodes"] == 1


def test_an_environment_that_is_made_already_says_its_own_options() -> None:
    env = gym.make("dmc/cartpole-swingup", disable_env_checker=True, action_repeat=4)
    model = SAC("MlpPolicy", env, net_arch=(4,))
    assert (model.action_repeat, model.config.env.action_repeat, model.config.env.pixels) == (4, 4, False)


# -- learning ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_rad_members_learn_from_pictures_to_hold_the_dot_in_the_middle() -> None:
    """Standing in the middle from the second step on is worth about 11; wherever one starts, doing nothing is 0."""
    model = RAD(
        "CnnPolicy",
        "toy/Dot-stack-v0",
        **TINY | CROP | {"net_arch": (32, 32), "filters": 8, "feature_dim": 16, "batch_size": 32},
        seed=1,
    )
    before = model.evaluate(10).mean
    model.learn(1500, progress_bar=False)
    after = model.evaluate(10).mean
    assert before < 6
    assert after > 9
