"""Mean and variance of all that has been seen, one row after another or many at once: in NumPy or in JAX."""

from typing import NamedTuple

from jaxtyping import Float

from sunrise.types import AnyArray

EPS = 1e-8
"""Added to a variance before its root is divided by."""
FIRST_COUNT = 1e-4
"""Rows that the first mean of 0 and variance of 1 count for."""


class Moments(NamedTuple):
    """Mean and variance of the rows so far, and how many they were."""

    mean: Float[AnyArray, "in"]
    variance: Float[AnyArray, "in"]
    total: Float[AnyArray, ""]

    def including(self, rows: Float[AnyArray, "B in"]) -> "Moments":
        """The moments with these rows in them too (Chan et al., 1979)."""
        more = rows.shape[0]
        total, step = self.total + more, rows.mean(axis=0) - self.mean
        squares = self.variance * self.total + rows.var(axis=0) * more + step**2 * self.total * more / total
        return Moments(self.mean + step * more / total, squares / total, total)
