"""It learns: real tasks, solved."""

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from sunrise import SAC, TD3, Rainbow
from sunrise.config.ensemble import Weighting
from tests.support.image_task import Lights


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_five_sac_agents_solve_pendulum_within_8000_steps(seed: int) -> None:
    model = SAC(
        "MlpPolicy",
        "Pendulum-v1",
        learning_rate=1e-3,
        batch_size=64,
        net_arch=(64, 64),
        seed=seed,
        eval_freq=0,
    )
    assert model.evaluate(5).mean < -800
    model.learn(8000, progress_bar=False)
    assert model.evaluate(10).mean >= -250


@pytest.mark.slow
@pytest.mark.parametrize("members", [1, 5])
def test_rainbow_alone_and_with_sunrise_balances_the_pole_within_20000_steps(members: int) -> None:
    model = Rainbow(
        "MlpPolicy",
        "CartPole-v1",
        ensemble_size=members,
        net_arch=(64,),
        learning_rate=1e-3,
        learning_starts=500,
        batch_size=64,
        n_step=10,
        v_min=0.0,
        v_max=100.0,
        target_update_interval=500,
        buffer_size=20_000,
        eval_freq=0,
        seed=1,
    )
    assert model.evaluate(10).mean < 100
    returns = [0.0]
    while returns[-1] < 450 and model.num_timesteps < 20_000:
        model.learn(4000, progress_bar=False, reset_num_timesteps=False)
        returns.append(model.evaluate(10).mean)
    assert returns[-1] >= 450, returns  # of at most 500


@pytest.mark.slow
def test_rainbow_learns_from_pictures() -> None:
    """Naming the bright quarter every time is worth 10, guessing 2.5."""
    gym.register("toy/Lights-v0", Lights, kwargs={"size": 50})  # type: ignore[arg-type]
    model = Rainbow(
        "CnnPolicy",
        "toy/Lights-v0",
        ensemble_size=2,
        net_arch=(32,),
        learning_rate=1e-3,
        learning_starts=200,
        n_step=1,
        v_min=0.0,
        v_max=10.0,
        target_update_interval=100,
        buffer_size=3000,
        eval_freq=0,
        seed=1,
    )
    assert model.evaluate(5).mean < 6
    model.learn(2000, progress_bar=False)
    assert model.evaluate(10).mean >= 9.5


@pytest.mark.slow
def test_other_scales_of_rewards_leave_the_relative_weight_as_it_is_and_kill_the_papers(tmp_path: Path) -> None:
    """TD3 on Pendulum, where nothing else depends on the scale."""

    def late(weighting: Weighting, scale: float) -> dict[str, float]:
        """The last row of metrics with the rewards times `scale`."""
        run = tmp_path / f"{weighting}{scale}"
        env = gym.wrappers.TransformReward(gym.make("Pendulum-v1"), lambda reward: scale * float(reward))
        small: dict[str, Any] = {"net_arch": (64, 64), "batch_size": 64, "learning_starts": 300, "eval_freq": 0}
        model = TD3(
            "MlpPolicy", env, weighting=weighting, log_freq=1000, save_freq=0, run_dir=str(run), seed=1, **small
        )
        model.learn(2000, log_interval=None, progress_bar=False)
        row: dict[str, float] = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
        return row

    def quantiles(row: dict[str, float]) -> list[float]:
        return [row[f"train/weight_{at}"] for at in ("p05", "p50", "p95")]

    small, usual, large = (late("relative", scale) for scale in (0.01, 1.0, 100.0))
    assert large["train/disagreement_mean"] > 20 * usual["train/disagreement_mean"]
    for other in (small, large):
        np.testing.assert_allclose(quantiles(other), quantiles(usual), atol=0.08)
    low, _, high = quantiles(late("confidence", 100.0))
    assert high - low < 0.01
