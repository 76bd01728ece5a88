"""A convolution without padding."""

import jax
from jaxtyping import Array, Float


def conv(x: Float[Array, "B H W C"], kernel: Float[Array, "h w C O"], stride: int = 1) -> Float[Array, "B H2 W2 O"]:
    """Slide `kernel` over pictures, without padding."""
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
