"""Replay of sequences: n-step returns from single transitions, drawn uniformly or by priority."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from sunrise.errors import SunriseError
from sunrise.replay import memory
from sunrise.replay.priority import SumTree
from sunrise.replay.state import put_back, state_of
from sunrise.replay.storage import Store
from sunrise.rings import ReplayState, Ring, Rows
from sunrise.types import Batch, Collected, Sample


class SequenceReplay:
    """A ring of single transitions for each environment; a sample is a window of up to `n_step` of them.

    The window of the t-th transition of an environment ends n steps later, or with its episode:

        R_t = Σ_{j<k} γ^j r_{t+j},  discount γ^k (0 where the episode terminated),  next_obs = s_{t+k},  k ≤ n

    A transition can be drawn once its window is closed. So the rows that can be drawn are those from `tail` to
    `ready` (counted from the first transition ever), those stored are from `tail` to `head`. With one step, the
    transitions themselves are drawn.

    Prioritised: P(t) ∝ |error|^exponent, the running maximum until the first error is known, and importance
    (min P / P(t))^β within the batch, where β goes from `importance` to 1 between the timesteps `importance_from` and
    `importance_until`.
    """

    def __init__(
        self,
        store: Store,
        action_shape: tuple[int, ...],
        action_dtype: np.dtype[Any],
        members: int,
        rng: np.random.Generator,
        gamma: float,
        n_step: int = 1,
        prioritised: bool = False,
        exponent: float = 0.5,
        importance: float = 0.4,
        importance_from: int = 0,
        importance_until: int = 100_000,
    ) -> None:
        if not 1 <= n_step <= store.rows:
            raise SunriseError(
                f"n_step is {n_step}, but must be from 1 to {store.rows}, what an environment may store."
            )
        if not 0 <= importance_from < importance_until:
            raise SunriseError("importance_until must be later than importance_from.")
        self.store, self.rng, self.prioritised = store, rng, prioritised
        self.gamma, self.n_step, self.exponent = gamma, n_step, exponent
        self.importance, self.importance_from, self.importance_until = importance, importance_from, importance_until
        slots = store.envs * store.rows
        row = int(np.prod(action_shape, dtype=int)) * np.dtype(action_dtype).itemsize + 4 + 1 + 1 + members
        tree = SumTree.bytes_for(slots) if prioritised else 0
        self.nbytes = store.nbytes + slots * row + 3 * 8 * store.envs + tree
        memory.require(self.nbytes, f"a replay buffer of {slots:,} transitions", "lower buffer_size")
        self.action = np.zeros((slots, *action_shape), action_dtype)
        self.reward: Float[np.ndarray, "slots"] = np.zeros(slots, np.float32)
        self.goes_on: Bool[np.ndarray, "slots"] = np.zeros(slots, bool)
        """Whether the value of what follows counts: false where the episode terminated."""
        self.ended: Bool[np.ndarray, "slots"] = np.zeros(slots, bool)
        """Whether the episode ended here, in whatever way."""
        self.mask: Bool[np.ndarray, "slots N"] = np.zeros((slots, members), bool)
        self.tail, self.ready, self.head = np.zeros((3, store.envs), np.int64)
        self.tree = SumTree(slots) if prioritised else None

    def __len__(self) -> int:
        return int((self.head - self.tail).sum())

    @property
    def ready_to_sample(self) -> bool:
        """Whether there is a whole window yet, and one that has a priority."""
        return bool((self.ready > self.tail).any()) and (self.tree is None or self.tree.total > 0)

    def add(self, collected: Collected, mask: Bool[np.ndarray, "rows N"]) -> None:
        """Transitions[rows], one of an environment at most, with the masks[rows, N] that the updates will use."""
        env, batch = collected.env, collected.batch
        if not env.size:
            return
        assert len(np.unique(env)) == len(env), "one transition of an environment at a time"
        tail, ready, head = self.tail.copy(), self.ready.copy(), self.head[env]
        slot = self._slot(env, head)
        follows = self.store.write(env, slot, batch.obs, batch.next_obs)
        broken = ~follows & (head > 0)  # a new episode although the last did not end: somebody reset the environment
        self.ended[self._slot(env, head - 1)[broken]] = True
        self.ready[env[broken]] = head[broken]
        self.action[slot], self.reward[slot], self.mask[slot] = batch.action, batch.reward, mask
        self.goes_on[slot], self.ended[slot] = batch.discount > 0, collected.ended
        self.head[env] += 1
        closed = np.where(collected.ended, head + 1, head + 2 - self.n_step)
        self.tail[env] = np.maximum(self.tail[env], self.head[env] - self.store.rows)
        for e in env.tolist():
            while self.tail[e] < self.head[e] and self.store.lost(int(self._slot(e, self.tail[e]))):
                self.tail[e] += 1
        self.ready[env] = np.maximum.reduce([self.ready[env], closed, self.tail[env]])
        if self.tree is not None:
            gone = self._between(env, tail, self.tail)
            new = self._between(env, np.maximum(ready, self.tail), self.ready)
            priority = np.repeat([0.0, float(self.tree.highest)], [len(gone), len(new)])
            self.tree.set(np.concatenate([gone, new]), priority)

    def sample(self, rows: int, timesteps: int) -> tuple[Sample, Int[np.ndarray, "B"]]:
        """B, timesteps so far -> B windows in fresh arrays, and the slots[B] of their first transitions.

        A window has the mask of its first transition.
        """
        if not self.ready_to_sample:
            raise SunriseError(f"no window of {self.n_step} steps can be sampled yet: raise learning_starts.")
        slot = self._uniform(rows) if self.tree is None else self.tree.draw(rows, self.rng)
        window = self._slot((slot // self.store.rows)[:, None], slot[:, None] + np.arange(self.n_step))
        inside: Bool[np.ndarray, "B n"] = np.ones(window.shape, bool)
        np.logical_and.accumulate(~self.ended[window[:, :-1]], axis=1, out=inside[:, 1:])
        steps = inside.sum(1)
        last = window[np.arange(rows), steps - 1]
        powers = self.gamma ** np.arange(self.n_step + 1)
        batch = Batch(
            obs=self.store.obs(slot),
            action=self.action[slot],
            reward=(self.reward[window] * inside * powers[:-1]).sum(1).astype(np.float32),
            discount=(powers[steps] * self.goes_on[last]).astype(np.float32),
            next_obs=self.store.next_obs(last),
        )
        return Sample(batch, self.mask[slot], self._importance(slot, timesteps)), slot

    def reprioritise(self, index: Int[np.ndarray, "B"], error: Float[np.ndarray, "B"]) -> None:
        """slots[B] that were sampled, errors[B]: these are now their priorities; what is not finite is left out."""
        if self.tree is None:
            return
        noted = np.isfinite(error) & (self.tree[index] > 0)  # a row without priority was not sampled
        self.tree.set(index[noted], np.abs(error[noted], dtype=np.float64) ** self.exponent)

    def rings(self) -> dict[str, Ring]:
        """What is appended: the transitions of each environment, and what the store keeps apart."""
        names = ("action", "reward", "goes_on", "ended", "mask")
        arrays = {name: getattr(self, name) for name in names} | self.store.beside()
        size = self.store.rows
        transitions = {
            f"transitions.{e}": Ring({n: a[e * size : (e + 1) * size] for n, a in arrays.items()}, int(self.head[e]))
            for e in range(self.store.envs)
        }
        return transitions | self.store.rings()

    def counters(self) -> dict[str, np.ndarray]:
        """What else changes, the generator apart, to be read and written in place."""
        own = {"tail": self.tail, "ready": self.ready, "head": self.head, **self.store.counters()}
        if self.tree is not None:
            leaves = self.tree.nodes[self.tree.leaves :][: len(self.reward)]
            own |= {"priority": leaves, "highest": self.tree.highest}
        return own

    def state(self) -> ReplayState:
        return state_of(self)

    def restore(self, state: ReplayState, segments: Iterable[Rows]) -> None:
        """Become what it was, with the rows of the segments."""
        put_back(self, state, segments)
        if self.tree is not None:
            self.tree.rebuild()

    def _slot(self, env: Any, t: Any) -> Any:
        """Where the t-th transition of an environment is stored."""
        return env * self.store.rows + t % self.store.rows

    def _between(self, env: Any, start: Any, stop: Any) -> Int[np.ndarray, "slots"]:
        """The slots of the transitions from `start` to `stop` of each of some environments."""
        return np.concatenate([self._slot(e, np.arange(start[e], stop[e])) for e in env.tolist()])

    def _uniform(self, rows: int) -> Int[np.ndarray, "B"]:
        """Every transition that can be drawn is as likely as any other, with replacement."""
        upto = np.cumsum(self.ready - self.tail)
        number = self.rng.integers(upto[-1], size=rows)
        env = np.searchsorted(upto, number, side="right")
        return np.asarray(self._slot(env, self.ready[env] - (upto[env] - number)))

    def _importance(self, slot: Int[np.ndarray, "B"], timesteps: int) -> Float[np.ndarray, "B"]:
        if self.tree is None:
            return np.ones(len(slot), np.float32)
        annealed = (timesteps - self.importance_from) / (self.importance_until - self.importance_from)
        beta = self.importance + (1 - self.importance) * min(max(annealed, 0.0), 1.0)
        priority = self.tree[slot]
        return np.asarray((priority.min() / priority) ** beta, np.float32)
