"""It learns: real tasks, solved."""

import pytest

from sunrise import SAC


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
