"""Figure 1b: ten networks on twenty points of a cubic, on the same ensemble as everything else."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.compilation import use_cache
from sunrise.config.ensemble import EnsembleSettings
from sunrise.ensemble import EnsembleNumbers, Numbers, bootstrap_mask, build
from sunrise.networks.layers import MLP, mlp
from sunrise.types import Backup, Batch, Info, Learner, Observation, Sample

POINTS, MEMBERS, PROB, HIDDEN = 20, 10, 0.3, (50, 50)
"""The paper's: 20 points of y = x³ + N(0, 3²), ten networks of 2 x 50 ReLU, β = 0.3."""
RANGE = 4.0
"""Points lie in [-4, 4]; the paper does not say, this is the literature's custom."""
STEPS, LEARNING_RATE = 2000, 1e-2


class RegressionState(NamedTuple):
    """A network and its optimiser."""

    net: MLP
    opt: optax.OptState


def regression(numbers: Any) -> Learner:
    """One network that predicts y from x, as a learner: its opinion of any action is its prediction."""
    adam = optax.adam(LEARNING_RATE)

    def init(key: PRNGKeyArray) -> RegressionState:
        net = mlp(key, (1, *HIDDEN, 1), "default", last_bound=0.0)
        return RegressionState(net, adam.init(net))

    def judge(state: RegressionState, obs: Observation, action: Array, key: PRNGKeyArray | None) -> Array:
        return state.net(obs)[None, :, 0]

    def learn(
        state: RegressionState, batch: Batch, mask: Array, backup: Backup, weight: Array, step: Array, key: PRNGKeyArray
    ) -> tuple[RegressionState, Info]:
        def loss(net: MLP) -> tuple[Array, Array]:
            error = net(batch.obs)[:, 0] - backup.target
            return jnp.sum(mask * weight * error**2) / mask.size, error

        (value, error), gradient = jax.value_and_grad(loss, has_aux=True)(state.net)
        change, opt = adam.update(gradient, state.opt)
        new = RegressionState(optax.apply_updates(state.net, change), opt)
        return new, Info(jnp.abs(error)[None], {"loss": value})

    return Learner(
        init=init,
        propose=lambda state, obs, key: state.net(obs),
        judge=judge,
        bellman=lambda state, batch, mask, key: Backup(batch.reward, batch.action, jnp.zeros((1, batch.reward.size))),
        judge_next=lambda state, batch, action, key: judge(state, batch.next_obs, action, key),
        learn=learn,
        metrics=("loss",),
    )


class Fit(NamedTuple):
    """The points, a grid, and what the ensemble says on it."""

    x: Float[np.ndarray, "points"]
    y: Float[np.ndarray, "points"]
    grid: Float[np.ndarray, "grid"]
    mean: Float[np.ndarray, "grid"]
    std: Float[np.ndarray, "grid"]

    @property
    def spread_inside(self) -> float:
        """Mean deviation where there are points."""
        return float(self.std[(self.grid >= self.x.min()) & (self.grid <= self.x.max())].mean())

    @property
    def spread_outside(self) -> float:
        """Mean deviation where there are none."""
        return float(self.std[(self.grid < self.x.min()) | (self.grid > self.x.max())].mean())


def fit_cubic(seed: int = 0) -> Fit:
    """Train the ensemble and ask it for its mean and its spread."""
    use_cache()
    rng = np.random.default_rng(seed)
    x = rng.uniform(-RANGE, RANGE, POINTS).astype(np.float32)
    y = (x**3 + rng.normal(0, 3, POINTS)).astype(np.float32)
    functions = build(regression, EnsembleSettings(ensemble_size=MEMBERS, weighting="none"))
    numbers = Numbers(EnsembleNumbers(*jnp.zeros(3)), ())
    key = jax.random.key(seed)
    ensemble, tally = functions.init(key, numbers)
    rows, nothing = x[:, None] / RANGE, np.zeros((POINTS, 1), np.float32)
    batch = Batch(rows, nothing, y, np.zeros(POINTS, np.float32), rows)
    sample = Sample(batch, bootstrap_mask(rng, POINTS, MEMBERS, PROB), np.ones(POINTS, np.float32))
    for _ in range(STEPS):
        ensemble, tally, _ = functions.update(ensemble, tally, sample, key, numbers)
    grid = np.linspace(-1.5 * RANGE, 1.5 * RANGE, 241, dtype=np.float32)
    inputs = grid[:, None] / RANGE
    std = functions.uncertainty(ensemble.members, inputs, np.zeros((len(grid), 1), np.float32), numbers)
    mean = functions.exploit(ensemble.members, inputs, numbers)[:, 0]
    return Fit(x, y, grid, np.asarray(mean), np.asarray(std))


def draw_cubic(fit: Fit, picture: Path) -> None:
    """Truth, points, mean and bands."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 4.2), layout="constrained")
    axis.plot(fit.grid, fit.grid**3, color="black", label="y = x³")
    axis.plot(fit.grid, fit.mean, color="tab:blue", label=f"mean of {MEMBERS} networks")
    for width in (1, 2, 3):
        label = "± 1, 2, 3 standard deviations" if width == 1 else None
        low, high = fit.mean - width * fit.std, fit.mean + width * fit.std
        axis.fill_between(fit.grid, low, high, color="tab:blue", alpha=0.15, label=label)
    axis.scatter(fit.x, fit.y, color="tab:red", zorder=3, label=f"{POINTS} points, noise N(0, 3²)")
    axis.set(xlabel="x", ylabel="y", ylim=(-220, 220), title=f"Bootstrap with random initialisation, β = {PROB}")
    axis.legend(fontsize=8)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=120)
    plt.close(figure)
