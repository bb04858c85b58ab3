"""Convolutions as matrix products are the convolutions."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credence.models.networks.convolutions import by_products

pytestmark = pytest.mark.usefixtures("float64")
RNG = np.random.default_rng(0)


class Network:
    """One convolution by JAX, then a mean."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def apply(self, params: Any, x: Any) -> jax.Array:
        return jnp.tanh(jax.lax.conv_general_dilated(x, params, **self.settings))


class Product(Network):
    """The same by matrix products."""

    apply = by_products(Network.apply)


SETTINGS = [
    ({"window_strides": (1, 1), "padding": "SAME"}, ("NHWC", "HWIO", "NHWC"), (3, 3, 2, 5)),
    ({"window_strides": (2, 1), "padding": "VALID"}, ("NHWC", "HWIO", "NHWC"), (3, 2, 2, 5)),
    (
        {"window_strides": (2, 3), "padding": [(1, 0), (2, 2)]},
        ("NHWC", "OIHW", "NCHW"),
        (5, 2, 4, 3),
    ),
    ({"window_strides": (2, 2), "padding": "SAME"}, ("NCHW", "OIHW", "NCHW"), (4, 7, 3, 3)),
]


@pytest.mark.parametrize(("settings", "layout", "shape"), SETTINGS)
def test_values_and_gradients_are_those_of_the_convolution(
    settings: dict[str, Any], layout: tuple[str, str, str], shape: tuple[int, ...]
) -> None:
    x_shape = (3, 7, 8, 2) if layout[0] == "NHWC" else (3, 7, 9, 8)
    x, kernel = (jnp.asarray(RNG.normal(size=size)) for size in (x_shape, shape))
    settings = {**settings, "dimension_numbers": layout}

    def loss(network: type[Network]) -> Any:
        return lambda kernel: jnp.sum(network(**settings).apply(kernel, x) ** 2)

    expected, exact = jax.value_and_grad(loss(Network))(kernel)
    value, gradient = jax.jit(jax.value_and_grad(loss(Product)))(kernel)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, exact, rtol=1e-10, atol=1e-10)
    assert "conv_general_dilated" not in str(jax.make_jaxpr(loss(Product))(kernel))


@pytest.mark.parametrize("holes", [{"rhs_dilation": (2, 2)}, {"feature_group_count": 2}])
def test_groups_and_holes_stay_as_they_are(holes: dict[str, Any]) -> None:
    x = jnp.asarray(RNG.normal(size=(2, 8, 8, 2)))
    kernel = jnp.asarray(RNG.normal(size=(3, 3, 2 // holes.get("feature_group_count", 1), 4)))
    layout = ("NHWC", "HWIO", "NHWC")
    settings = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": layout, **holes}
    np.testing.assert_array_equal(
        Product(**settings).apply(kernel, x), Network(**settings).apply(kernel, x)
    )
