"""The records that pass between the parts.

Axes have letters: N members, K critics of one agent, V = N·K voters, B rows of a batch, E environments,
C candidate actions, A action dimensions.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from sunrise.rings import ReplayState, Ring, Rows

if TYPE_CHECKING:
    AnyArray: TypeAlias = Any
else:
    AnyArray = Array | np.ndarray
"""On the host a NumPy array, in a compiled function a JAX one."""

Observation: TypeAlias = Any
"""One array, or a dict of arrays; each leaf has the batch on axis 0."""

State: TypeAlias = Any
"""Everything one agent learns: a pytree of arrays. An ensemble's has N on axis 0 of every leaf."""


class Batch(NamedTuple):
    """Transitions (s_t, a_t, r_t, s_{t+1}), one a row."""

    obs: Observation
    action: Shaped[AnyArray, "B *A"]
    reward: Float[AnyArray, "B"]
    """r_t, or the discounted sum of n rewards."""
    discount: Float[AnyArray, "B"]
    """What multiplies the value of `next_obs`: γ, or γ^n; 0 where the episode terminated."""
    next_obs: Observation


class Sample(NamedTuple):
    """What a replay buffer hands to an update."""

    batch: Batch
    mask: Shaped[AnyArray, "B N"]
    """The bootstrap mask m_{t,i} that was stored with the transition."""
    importance: Float[AnyArray, "B"]
    """Corrects for sampling that is not uniform; ones where it is."""


class Episode(NamedTuple):
    """A finished training episode."""

    env: int
    total: float
    length: int


class Seen(NamedTuple):
    """A step of every environment as it was seen, for whoever watches; a row an environment."""

    action: AnyArray
    """As the environments took it."""
    reward: AnyArray
    """Without noise of ours."""
    terminated: AnyArray
    truncated: AnyArray
    info: Any
    """What the vector environment said beside."""
    last_obs: Observation
    """What each step led to."""
    obs: Observation
    """What is acted on next: where an episode ended, the first observation of another."""


class Collected(NamedTuple):
    """What one step of every environment gave: a row a transition."""

    batch: Batch
    env: Int[np.ndarray, "rows"]
    """The environment each row came from."""
    ended: Bool[np.ndarray, "rows"]
    """Whether the episode ended with this row, by termination or by truncation."""
    episodes: list[Episode]
    seen: Seen | None = None


@runtime_checkable
class Replay(Protocol):
    """Where transitions wait, with the bootstrap masks they were stored with."""

    prioritised: bool
    """Whether it wants to hear of errors."""
    nbytes: int
    """Memory it takes when full."""
    rng: np.random.Generator

    def __len__(self) -> int: ...

    @property
    def ready_to_sample(self) -> bool:
        """Whether there is anything to sample yet."""
        ...

    def add(self, collected: Collected, mask: Bool[np.ndarray, "rows N"]) -> None:
        """Store transitions with the masks that the updates will use."""

    def sample(self, rows: int, timesteps: int) -> tuple[Sample, Int[np.ndarray, "B"]]:
        """A minibatch in fresh arrays (JAX may read them after this returns), and where its rows came from."""

    def reprioritise(self, index: Int[np.ndarray, "B"], error: Float[np.ndarray, "B"]) -> None:
        """Take note of the errors of rows that were sampled."""

    def rings(self) -> dict[str, Ring]:
        """What is appended, as views."""

    def counters(self) -> dict[str, np.ndarray]:
        """What else changes, the generator apart, to be read and written in place."""

    def state(self) -> ReplayState:
        """All that changes, as views."""

    def restore(self, state: ReplayState, segments: Iterable[Rows]) -> None:
        """Become what it was when `state` was taken, with the rows of the segments."""


class Backup(NamedTuple):
    """One agent's Bellman backup of a batch."""

    target: Float[Array, "B *atoms"]
    action: Shaped[Array, "B *A"]
    """The next action that `votes` judge: the target's own, unless the learner draws another for the weight."""
    votes: Float[Array, "K B"]
    """This agent's target critics at its own next action."""


class Info(NamedTuple):
    """What one agent reports of one update."""

    error: Float[Array, "K B"]
    """|TD error| or cross-entropy before the step, neither weighted nor masked."""
    metrics: dict[str, Float[Array, ""]]
    """Scalars to log. An update is refused if one is not finite, so a norm of the gradients or of the new parameters
    is among them."""
    surprise: Float[Array, "K B"] | None = None
    """|Q(s, a) − y| in units of value, where `error` is something else."""


def unchanged(batch: Batch, key: PRNGKeyArray) -> Batch:
    """States are learned from as they are."""
    return batch


class Learner(NamedTuple):
    """An algorithm, written for ONE agent with K critics: pure functions, in the manner of an Optax transformation."""

    init: Callable[[PRNGKeyArray], State]
    propose: Callable[[State, Observation, PRNGKeyArray | None], Array]
    """state, obs[B], key -> action[B]: what I would do; without a key, without noise."""
    judge: Callable[[State, Observation, Array, PRNGKeyArray | None], Array]
    """state, obs[B], action[B], key -> votes[K, B]: my critics' opinion of somebody's action."""
    bellman: Callable[[State, Batch, Array, PRNGKeyArray], Backup]
    """state, batch, mask[B], key -> backup."""
    judge_next: Callable[[State, Batch, Array, PRNGKeyArray], Array]
    """state, batch, action[B], key -> votes[K, B]: my target critics' opinion of somebody's next action."""
    learn: Callable[[State, Batch, Array, Backup, Array, Array, PRNGKeyArray], tuple[State, Info]]
    """state, batch, mask[B], backup, weight[B], step, key -> state, info."""
    metrics: tuple[str, ...]
    """The names of what `learn` reports."""
    actions: Int[Array, "C"] | None = None
    """A finite set of actions to rank; None: rank what the members propose."""
    augment: Callable[[Batch, PRNGKeyArray], Batch] = unchanged
    """batch, key -> batch: done once for all members before `bellman`, `judge_next` and `learn` see the batch. It may
    put views on a new axis in front of the observations."""
    observe: Callable[[State, Observation], State] | None = None
    """state, obs[E] -> state: take note of observations that are acted on in training; None: nothing to note."""
    elapse: Callable[[State, Array, Array], State] | None = None
    """state, steps of the environments, E -> state: what goes by those steps and not by updates, told before each round
    of updates; None: nothing does."""


def rows(obs: Observation) -> int:
    """How many rows an observation has."""
    return int(jax.tree.leaves(obs)[0].shape[0])
