"""Convolutions as matrix products, because samplers are loops.

XLA runs a convolution inside a loop ten to thirty times slower on CPUs than outside of one
(jax-ml/jax, issue 12868; `benchmarks/images.py`). A product of a matrix is not affected.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_jaxpr
from jax.extend.core import Jaxpr, Literal
from jaxtyping import Array, Float

Apply = Callable[[Any, Any, Any], Array]


def by_products(apply: Apply) -> Apply:
    """Decorate a network's `apply`: on CPUs its convolutions of images become matrix products.

    Convolutions in groups or with holes stay as they are.
    """

    @wraps(apply)
    def wrapped(self: Any, params: Any, x: Any) -> Array:
        if x.ndim == 2 or jax.default_backend() != "cpu":
            return apply(self, params, x)
        traced = jax.make_jaxpr(lambda params, x: apply(self, params, x))(params, x)
        (outputs,) = _evaluated(traced, jax.tree.leaves((params, x)))
        return outputs

    return wrapped


def as_product(
    kernel: Float[Array, "*size fan_in fan_out"],
    z: Float[Array, "point *pixel fan_in"],
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
) -> Float[Array, "point *new_pixel fan_out"]:
    """Cross-correlate images with a kernel, by one matrix product.

    Args:
        padding: zeros before and after the pixels of every axis.
    """
    *size, fan_in, fan_out = kernel.shape
    padded = jnp.pad(z, ((0, 0), *padding, (0, 0)))
    spans = [
        (length - width) // stride * stride + 1
        for length, width, stride in zip(padded.shape[1:-1], size, strides, strict=True)
    ]
    shifted = [
        jax.lax.slice(
            padded,
            (0, *corner, 0),
            (len(z), *np.add(corner, spans), fan_in),
            (1, *strides, 1),
        )
        for corner in np.ndindex(*size)
    ]
    return jnp.concatenate(shifted, axis=-1) @ kernel.reshape(-1, fan_out)


def _evaluated(traced: Any, leaves: Sequence[Any]) -> list[Any]:
    """Outputs of a traced function, equation by equation."""
    jaxpr = traced.jaxpr
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*traced.consts, *leaves], strict=True))
    read = lambda name: name.val if isinstance(name, Literal) else values[name]  # noqa: E731
    for equation in jaxpr.eqns:
        outputs = _outputs(equation, *map(read, equation.invars))
        values.update(zip(equation.outvars, outputs, strict=True))
    return [read(name) for name in jaxpr.outvars]


def _outputs(equation: Any, *inputs: Any) -> list[Any]:
    name, params = equation.primitive.name, equation.params
    if name == "conv_general_dilated" and _is_plain(params):
        z, kernel = inputs
        return [_product(z, kernel, params)]
    if name == "jit":
        return _evaluated(params["jaxpr"], inputs)
    known = zip(equation.invars, inputs, strict=True)
    variables = {name: value for name, value in known if not isinstance(name, Literal)}
    alone = Jaxpr((), list(variables), equation.outvars, [equation])
    return eval_jaxpr(alone, (), *variables.values())


def _is_plain(params: dict[str, Any]) -> bool:
    """Whether a convolution has neither groups nor holes, and adds no negative number of zeros."""
    factors = (*params["lhs_dilation"], *params["rhs_dilation"])
    groups = (params["feature_group_count"], params["batch_group_count"])
    is_padded = all(zeros >= 0 for ends in params["padding"] for zeros in ends)
    return {*factors, *groups} == {1} and is_padded


def _product(z: Array, kernel: Array, params: dict[str, Any]) -> Array:
    """The convolution that these parameters of JAX's describe."""
    numbers = params["dimension_numbers"]
    fan_out, *others = numbers.rhs_spec
    point, channel, *pixels = numbers.lhs_spec
    outputs = as_product(
        kernel.transpose(*others[1:], others[0], fan_out),
        z.transpose(point, *pixels, channel),
        params["window_strides"],
        [(int(before), int(after)) for before, after in params["padding"]],  # JAX 0.8 has NumPy's
    )
    point, channel, *pixels = numbers.out_spec
    order = np.argsort([point, *pixels, channel])
    return outputs.transpose(*order).astype(params["preferred_element_type"] or outputs.dtype)
