"""SUNRISE (Lee et al., ICML 2021) is three array functions, and none of them knows an algorithm.

`votes` holds every opinion on axis 0. For SAC the voters are the 2N critics; for Rainbow, the N networks.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

Number = float | Float[Array, ""]


def bootstrap_mask(
    rng: np.random.Generator, rows: int, members: int, prob: float, force: bool = True
) -> Bool[np.ndarray, "rows N"]:
    """generator, rows, N, β -> mask[rows, N]: m_{t,i} ~ Bernoulli(β) for each transition and member.

    A row of zeros, of use to nobody, gets one 1, unless `force` is false.
    """
    mask = rng.random((rows, members)) < prob
    forced = rng.integers(members, size=rows)
    empty = ~mask.any(axis=1) & force
    mask[empty, forced[empty]] = True
    return mask


def confidence_weight(votes: Float[Array, "V *rest"], temperature: Number) -> Float[Array, "*rest"]:
    """votes[V, ...], T -> weight[...]: σ(−Q̄_std · T) + 0.5, in [0.5, 1] (equation 6).

    The less the target critics agree, the less a backup counts.
    """
    return confidence(jnp.std(votes, axis=0), temperature)


def confidence(std: Float[Array, "*rest"], temperature: Number) -> Float[Array, "*rest"]:
    """std[...], T -> weight[...]: σ(−std · T) + 0.5 of a standard deviation that is known already."""
    return jax.nn.sigmoid(-std * temperature) + 0.5


def ucb_scores(votes: Float[Array, "V *rest"], ucb_lambda: Number) -> Float[Array, "*rest"]:
    """votes[V, ...], λ -> score[...]: Q_mean + λ Q_std of each candidate action (equation 7).

    Optimism where the critics disagree.
    """
    return jnp.mean(votes, axis=0) + ucb_lambda * jnp.std(votes, axis=0)
