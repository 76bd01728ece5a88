"""RAD, DrQ and CURL as users meet them: settings, real pictures, files, the command line, and that they learn."""

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from sunrise import CURL, RAD, SAC, DrQ, SunriseError
from sunrise.agents import load_run
from sunrise.cli import main
from sunrise.config.algorithms import algorithm
from sunrise.config.resolve import defaults_for, without_auto
from sunrise.config.settings import flatten_config
from sunrise.config.tasks import PAPER_TASKS
from sunrise.envs.renderers import resolve
from sunrise.experiments.paper import SEARCH
from sunrise.replay.mixed import moves_on
from sunrise.replay.sequence import SequenceReplay
from sunrise.replay.uniform import UniformReplay
from tests.support.image_control import Dot

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
CONTEXT: dict[str, dict[str, str]] = {"sync": {}, "async": {"context": "forkserver"}}


@pytest.fixture(scope="module", autouse=True)
def register() -> None:
    for layout in ("stack", "last", "first", "grey"):
        gym.register(f"toy/Dot-{layout}-v0", Dot, kwargs={"layout": layout})  # type: ignore[arg-type]


# -- the paper's numbers -----------------------------------------------------------------------------------------------


def test_the_defaults_are_the_papers() -> None:
    rad = flatten_config(without_auto(defaults_for(algorithm("rad"))))
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
    drq = flatten_config(defaults_for(algorithm("drq")))
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
    cheetah = flatten_config(defaults_for(algorithm("rad"), "dmc/cheetah-run"))
    assert (cheetah["action_repeat"], cheetah["learning_rate"], cheetah["batch_size"]) == (4, 2e-4, 512)
    state = flatten_config(defaults_for(algorithm("sac"), "dmc/cheetah-run"))
    assert (state["action_repeat"], state["learning_rate"], state["batch_size"]) == (4, 3e-4, 256)
    assert flatten_config(defaults_for(algorithm("sac"), "dmc/humanoid-run"))["action_repeat"] == 1
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
    assert int(model.ensemble.step) == 6
    assert isinstance(model.trainer.replay, UniformReplay)  # there is no stack whose frames could be kept once


def test_colours_may_come_first_and_fill_the_buffer_as_any_picture_does() -> None:
    model = RAD("CnnPolicy", "toy/Dot-first-v0", **TINY | CROP | {"buffer_size": 40, "learning_starts": 50})
    obs = np.stack([Dot(layout="first").reset(seed=seed)[0] for seed in range(2)])
    np.testing.assert_allclose(
        model.predict(obs, deterministic=True)[0][1], model.predict(obs[1], deterministic=True)[0], rtol=1e-5
    )
    model.learn(50, progress_bar=False)
    assert model.trainer is not None
    assert len(model.trainer.replay) == 40


def test_three_grey_frames_are_a_stack_where_a_wrapper_made_them() -> None:
    space = gym.spaces.Box(0, 255, (3, 20, 20), np.uint8)
    assert not moves_on(space, 0)
    assert moves_on(space, 3)
    assert moves_on(gym.spaces.Box(0, 255, (4, 20, 20), np.uint8), 0)
    env = gym.wrappers.FrameStackObservation(gym.make("toy/Dot-grey-v0"), 3)
    model = RAD("CnnPolicy", env, **TINY | CROP | {"learning_starts": 50})
    model.learn(30, progress_bar=False)
    assert model.trainer is not None
    assert isinstance(model.trainer.replay, SequenceReplay)  # where frames are kept once each


@pytest.mark.parametrize("cls", [DrQ, CURL])
def test_a_model_survives_a_file(cls: Any, tmp_path: Path) -> None:
    own = {} if cls is DrQ else CROP
    model = cls("CnnPolicy", "toy/Dot-stack-v0", **TINY, **own)
    obs = np.stack([Dot().reset(seed=seed)[0] for seed in range(3)])
    action, _ = model.predict(obs, deterministic=True)
    assert action.shape == (3, 1)
    assert np.abs(action).max() <= 1
    model.save(tmp_path / "model")
    again = cls.load(tmp_path / "model", env="toy/Dot-stack-v0")
    np.testing.assert_array_equal(again.predict(obs, deterministic=True)[0], action)
    np.testing.assert_array_equal(again.uncertainty(obs, action), model.uncertainty(obs, action))
    assert (model.uncertainty(obs, action) > 0).all()


@pytest.mark.parametrize("algo", ["rad", "drq", "curl"])
def test_it_trains_on_real_pictures_and_the_run_knows_how_they_were_made(
    algo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mujoco_warp", reason="needs the extra dmc")
    flags = "--render-size 24 --net-arch 8 8 --filters 4 --conv-layers 2 --feature-dim 6 --batch-size 8 --log-freq 10"
    flags += " --ensemble-size 2 --learning-starts 20 --buffer-size 300 --total-env-steps 247 --eval-freq 30"
    flags += " --eval-episodes 1" + (" --crop-size 20" if algo != "drq" else "")
    run = tmp_path / "run"
    main(["train", algo, "--env-id", "dmc/cartpole-swingup", "--run-dir", str(run), *flags.split()])
    shown = " ".join(capsys.readouterr().err.split())
    drawn = resolve("auto")
    assert f"{algo} with 2 members on dmc/cartpole-swingup, 30 timesteps (240 simulator steps)" in shown
    assert f"pictures by {drawn}" in shown
    assert "30 timesteps (240 simulator steps) evaluation: mean return" in shown
    config = json.loads((run / "config.json").read_text())
    settings = config["settings"]
    assert (settings["action_repeat"], settings["pixels"], settings["render_size"]) == (8, True, 24)
    assert (settings["renderer"], config["action_repeat"]) == (drawn, 8)
    assert {"dm-control", "mujoco-warp"} <= config["versions"].keys()
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert (rows[-1]["timesteps"], rows[-1]["env_steps"], rows[-1]["updates"]) == (30, 240, 10)
    assert np.isfinite(rows[-1]["train/critic_loss"])
    assert ("train/contrastive_loss" in rows[-1]) == (algo == "curl")
    main(["inspect", str(run), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["timesteps"], found["env_steps"], found["renderer"]) == (30, 240, drawn)
    main(["resume", str(run), "--total-env-steps", "240"])
    assert "is finished: 30 timesteps (240 simulator steps)" in " ".join(capsys.readouterr().err.split())


def test_a_run_of_pictures_can_be_looked_at_with_another_renderer_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mujoco_warp", reason="needs the extra dmc")
    if (drawn := resolve("auto")) == "warp":
        pytest.skip("there is only one renderer on this machine")
    run = tmp_path / "run"
    own = {"render_size": 24, "crop_size": 20, "learning_starts": 100, "run_dir": str(run)}
    RAD("CnnPolicy", "dmc/cartpole-swingup", **TINY | own).learn(10, progress_bar=False)
    model = load_run(run)
    assert model.env is not None
    assert model.env.single_observation_space.shape == (3, 24, 24, 3)
    assert model.action_repeat == 8
    main(["evaluate", str(run), "--episodes", "1", "--renderer", "warp"])
    told = capsys.readouterr()
    assert json.loads(told.out)["episodes"] == 1
    assert f"trained on pictures by {drawn} and see pictures by warp" in told.err


def test_another_action_repeat_is_told_of_and_not_resumed_with(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run"
    tiny: dict[str, Any] = {"net_arch": (4,), "eval_freq": 0, "learning_starts": 100, "run_dir": str(run)}
    SAC("MlpPolicy", "dmc/cartpole-swingup", **tiny).learn(10, progress_bar=False)
    other = gym.make("dmc/cartpole-swingup", disable_env_checker=True, action_repeat=2)
    model = load_run(run)
    assert "learned with" not in caplog.text
    model.set_env(other)
    assert "learned with action_repeat = 8; this environment has 2" in caplog.text
    with pytest.raises(SunriseError, match="action_repeat is 8, but that is an option of dmc/"):
        SAC.resume(run, env=other)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_vector_of_environments_knows_its_action_repeat(mode: Any) -> None:
    env = gym.make_vec("dmc/cartpole-swingup", 2, mode, vector_kwargs=CONTEXT[mode], action_repeat=4)
    model = SAC("MlpPolicy", env, net_arch=(4,))
    assert (model.action_repeat, model.config.env.action_repeat) == (4, 4)
    env.close()


def test_an_option_that_would_have_no_effect_is_refused() -> None:
    with pytest.raises(SunriseError, match="action_repeat is 4, but that is an option of dmc/"):
        SAC("MlpPolicy", "Pendulum-v1", action_repeat=4)
    with pytest.raises(SunriseError, match="render_size is 60, but that is an option of dmc/"):
        RAD("CnnPolicy", "toy/Dot-stack-v0", **TINY | CROP, render_size=60)
    with pytest.raises(SunriseError, match="there is no setting 'total_env_steps'"):
        SAC("MlpPolicy", "Pendulum-v1", total_env_steps=100)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--total-env-steps 7", "total_env_steps is 7, but must be at least 8"),
        ("--total-env-steps 80 --total-timesteps 200000", "total_timesteps and total_env_steps are both given"),
        ("--preset authors", "the authors published no code for rad"),
    ],
)
def test_a_length_or_a_preset_that_makes_no_sense_is_refused(
    flags: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = "--render-size 24 --crop-size 20 --net-arch 8 8 --filters 4 --conv-layers 2 --buffer-size 10 --eval-freq 0"
    run = ["--env-id", "dmc/cartpole-swingup", "--run-dir", str(tmp_path / "run")]
    with pytest.raises(SystemExit):
        main(["train", "rad", *run, *small.split(), *flags.split()])
    assert sentence in capsys.readouterr().err


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
