"""RAD (Laskin et al., 2020): SAC from pictures that are cropped or moved at random; unmoved, plain SAC from pixels."""

from dataclasses import dataclass, field
from typing import Literal

from sunrise.learners.pixel_sac import PixelNumbers, PixelSettings, pixel_sac
from sunrise.pixels import Augmentation, PictureShape, crop, translate
from sunrise.types import Learner


@dataclass(frozen=True)
class RADSettings:
    """How one RAD agent learns."""

    pixel: PixelSettings = field(default_factory=PixelSettings)
    """The agent that sees what the augmentation leaves."""
    augmentation: Literal["crop", "translate", "none"] = "crop"
    """Random crops, random places in a larger black picture (one for an observation and the next), or none: the centre
    crop always, which is plain SAC."""
    crop_size: int = 84
    """Side of a crop."""
    translate_size: int = 108
    """Side of the black picture in which the whole one, of `render_size`, is placed."""


def rad_augmentation(shape: PictureShape, settings: RADSettings) -> Augmentation:
    """The augmentation that the settings ask for."""
    if settings.augmentation == "translate":
        return translate(shape, settings.translate_size)
    return crop(shape, settings.crop_size, random=settings.augmentation == "crop")


def rad(shape: PictureShape, action_dim: int, settings: RADSettings, numbers: PixelNumbers) -> Learner:
    """RAD as a learner."""
    return pixel_sac(shape, action_dim, rad_augmentation(shape, settings), settings.pixel, numbers)
