"""Priorities: a sum tree that draws rows in proportion to theirs."""

import numpy as np
from jaxtyping import Float, Int


class SumTree:
    """Priorities of `capacity` rows, as the leaves of a binary tree in which a parent is the sum of its children.

    A parent is always `left + right`, computed anew and never changed by a difference. The tree is therefore a
    function of its leaves alone: one rebuilt from them draws the same rows, bit for bit.
    """

    def __init__(self, capacity: int) -> None:
        self.leaves = 1 << max(capacity - 1, 0).bit_length()
        self.nodes: Float[np.ndarray, "nodes"] = np.zeros(2 * self.leaves)
        """Node 1 is the root; the children of i are 2i and 2i + 1; the leaves come last."""
        self.highest: Float[np.ndarray, ""] = np.ones(())
        """The highest priority that any row ever had, 1 to begin with."""

    @staticmethod
    def bytes_for(capacity: int) -> int:
        """Rows -> bytes of a tree, known before it is made."""
        return 8 * (2 * (1 << max(capacity - 1, 0).bit_length()) + 1)

    @property
    def total(self) -> float:
        """The sum of all priorities."""
        return float(self.nodes[1])

    def __getitem__(self, row: Int[np.ndarray, "B"]) -> Float[np.ndarray, "B"]:
        return np.asarray(self.nodes[self.leaves + row])

    def set(self, row: Int[np.ndarray, "B"], priority: Float[np.ndarray, "B"] | float) -> None:
        """rows[B], priorities[B]: of a row that is named twice, the last counts."""
        if np.size(row) == 0:
            return
        assert np.all(np.isfinite(priority) & np.greater_equal(priority, 0)), "a priority is finite and not negative"
        node = self.leaves + np.asarray(row)
        self.nodes[node] = priority
        self.highest[...] = max(float(self.highest), float(np.max(priority)))
        for _ in range(self.leaves.bit_length() - 1):
            node = node >> 1
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1]

    def rebuild(self) -> None:
        """Sum up the whole tree from its leaves."""
        children = self.leaves
        while children > 1:
            level = self.nodes[children : 2 * children]
            self.nodes[children // 2 : children] = level[0::2] + level[1::2]
            children //= 2

    def find(self, mass: Float[np.ndarray, "B"]) -> Int[np.ndarray, "B"]:
        """mass[B] in [0, total) -> the rows[B] whose shares of the running sum of priorities hold them.

        A row without priority is never found, whatever rounding does to the mass on its way down.
        """
        node = np.ones(len(mass), np.int64)
        for _ in range(self.leaves.bit_length() - 1):
            left, right = self.nodes[2 * node], self.nodes[2 * node + 1]
            goes_right = (mass >= left) & (right > 0)
            mass = np.where(goes_right, mass - left, mass)
            node = 2 * node + goes_right
        return node - self.leaves

    def draw(self, rows: int, rng: np.random.Generator) -> Int[np.ndarray, "B"]:
        """B, generator -> rows[B], stratified: one from each of B equal shares of the total."""
        return self.find((np.arange(rows) + rng.random(rows)) * (self.total / rows))
