"""DrQ (Kostrikov et al., 2020): SAC from pictures whose values are averaged over random shifts."""

from dataclasses import dataclass, field

from sunrise.learners.pixel_sac import PixelNumbers, PixelSettings, pixel_sac
from sunrise.pixels import PictureShape, shift
from sunrise.types import Learner

DRQ_PIXEL = PixelSettings(alpha_learning_rate=1e-3, alpha_beta=0.9, encoder_tau=0.01, kernel_init="orthogonal")
"""Where DrQ differs from RAD: the entropy weight is stepped like the rest, one τ holds for everything, and the first
kernels are orthogonal as a whole."""


@dataclass(frozen=True)
class DrQSettings:
    """How one DrQ agent learns."""

    pixel: PixelSettings = field(default_factory=lambda: DRQ_PIXEL)
    """The agent that sees what the augmentation leaves."""
    shift_pad: int = 4
    """How many pixels a picture is shifted at most."""
    views: int = 2
    """M: views of an observation, over which the critic's loss is summed."""
    target_views: int = 2
    """K: views of the next observation, over which the target is averaged."""


def drq(shape: PictureShape, action_dim: int, settings: DrQSettings, numbers: PixelNumbers) -> Learner:
    """DrQ as a learner: its encoders end in a tanh, and log π is exact, as in its own code."""
    shifts, counts = shift(shape, settings.shift_pad), (settings.views, settings.target_views)
    return pixel_sac(shape, action_dim, shifts, settings.pixel, numbers, counts=counts, tanh=True, exact=True)
