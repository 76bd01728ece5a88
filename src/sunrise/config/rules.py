"""What a setting may be, written beside its kind: `gamma: Fraction = 0.99`."""

import math
from typing import Annotated, Any, NamedTuple, Protocol


class Rule(Protocol):
    """What holds for the value of a setting; its text ends the sentence `gamma is 2, but must be ...`."""

    def allows(self, value: Any) -> bool:
        """Whether the value is right; one that the rule does not speak of is."""


class Between(NamedTuple):
    """A finite number with bounds, which are allowed; words such as `auto`, and None, are none of its business."""

    low: float = -math.inf
    high: float = math.inf

    def allows(self, value: Any) -> bool:
        """Whether it is within the bounds, if it is a number."""
        return not isinstance(value, int | float) or (math.isfinite(value) and self.low <= value <= self.high)

    def __str__(self) -> str:
        if self.high < math.inf:
            return f"between {self.low:g} and {self.high:g}"
        return f"at least {self.low:g}" if self.low > -math.inf else "a finite number"


class Not(NamedTuple):
    """Any value but one; `wanted` says what it must be, and why."""

    value: Any
    wanted: str

    def allows(self, value: Any) -> bool:
        """Whether it is another."""
        return bool(value != self.value)

    def __str__(self) -> str:
        return self.wanted


class Sizes(NamedTuple):
    """One or more sizes of at least 1, or `exactly` so many of them."""

    wanted: str
    exactly: int | None = None
    empty: bool = False
    """Whether there may be none."""

    def allows(self, value: Any) -> bool:
        """Whether it is a tuple of such sizes."""
        some = isinstance(value, tuple) and (bool(value) or self.empty)
        right = some and all(isinstance(n, int) and n > 0 for n in value)
        return right and self.exactly in (None, len(value))

    def __str__(self) -> str:
        return self.wanted


Count = Annotated[int, Between(1)]
CountOrZero = Annotated[int, Between(0)]
Fraction = Annotated[float, Between(0, 1)]
LessThanOne = Annotated[float, Between(0, 0.999999)]
NotNegative = Annotated[float, Between(0)]
AnyNumber = Annotated[float, Between()]
NumberOrWord = Annotated[str | float, Between()]
Layers = Annotated[tuple[int, ...], Sizes("one or more layers of at least 1 unit")]
WidthAndBlocks = Annotated[tuple[int, int], Sizes("a width and a number of blocks of at least 1", exactly=2)]
