"""Counting the floating-point operations of matrix products and convolutions in a JAX function."""

import math
from collections.abc import Callable
from typing import Any

import jax


def matmul_flops(function: Callable[..., Any], *arguments: Any, branch: Callable[..., int] = max) -> int:
    """Multiply-adds, counted as two, of every matrix product and convolution that `function` would do.

    Of a choice between branches the largest counts, or the smallest with `branch=min`.
    """
    return _count(jax.make_jaxpr(function)(*arguments).jaxpr, branch)


def _count(jaxpr: Any, branch: Callable[..., int]) -> int:
    total = 0
    for equation in jaxpr.eqns:
        name, parameters = equation.primitive.name, equation.params
        if name == "dot_general":
            (contracted, _), _ = parameters["dimension_numbers"]
            inner = math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
            total += 2 * math.prod(equation.outvars[0].aval.shape) * inner
        elif name == "conv_general_dilated":
            kernel = equation.invars[1].aval.shape
            out_axis = parameters["dimension_numbers"].rhs_spec[0]
            per_output = math.prod(size for axis, size in enumerate(kernel) if axis != out_axis)
            total += 2 * math.prod(equation.outvars[0].aval.shape) * per_output
        times = parameters.get("length", 1) if name == "scan" else 1
        for value in parameters.values():
            branches = value if isinstance(value, tuple | list) else (value,)
            inner_counts = [
                _count(getattr(b, "jaxpr", b), branch) for b in branches if hasattr(getattr(b, "jaxpr", b), "eqns")
            ]
            total += times * branch(inner_counts, default=0)
    return total
