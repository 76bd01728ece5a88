"""DrQ (Kostrikov et al., 2020): SAC from pictures whose values are averaged over random shifts."""

from sunrise.config.learners import DrQSettings
from sunrise.learners.pixel_sac import PixelNumbers, pixel_sac
from sunrise.networks.augmentation import PictureShape, Sight, each, shift
from sunrise.types import Learner


def drq(shape: PictureShape | Sight, action_dim: int, settings: DrQSettings, numbers: PixelNumbers) -> Learner:
    """From the shape of pictures, A, settings and numbers to DrQ as a learner.

    Its encoders end in a tanh, and log π is exact, as in its own code.
    """
    shifts = each(shape, lambda picture: shift(picture, settings.shift_pad))
    counts = settings.views, settings.target_views
    return pixel_sac(shape, action_dim, shifts, settings.pixel, numbers, counts=counts, tanh=True, exact=True)
