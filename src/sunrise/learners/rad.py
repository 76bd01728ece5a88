"""RAD (Laskin et al., 2020): SAC from pictures that are cropped or moved at random; unmoved, plain SAC from pixels."""

from sunrise.config.learners import RADSettings
from sunrise.learners.pixel_sac import PixelNumbers, pixel_sac
from sunrise.networks.augmentation import Augmentation, PictureShape, Sight, crop, each, translate
from sunrise.types import Learner


def rad_augmentation(shape: PictureShape, settings: RADSettings) -> Augmentation:
    """Shape of a picture, settings -> the augmentation that they ask for."""
    if settings.augmentation == "translate":
        return translate(shape, settings.translate_size)
    return crop(shape, settings.crop_size, random=settings.augmentation == "crop")


def rad(shape: PictureShape | Sight, action_dim: int, settings: RADSettings, numbers: PixelNumbers) -> Learner:
    """From the shape of pictures, A, settings and numbers to RAD as a learner."""
    augmentation = each(shape, lambda picture: rad_augmentation(picture, settings))
    return pixel_sac(shape, action_dim, augmentation, settings.pixel, numbers)
