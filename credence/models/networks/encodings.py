"""Networks of encoded inputs: a number as its place between knots.

Gorishniy, Rubachev & Babenko, "On embeddings for numerical features in tabular deep learning"
(2022), Section 3.2: networks of smooth activations hardly follow a target that jumps or bends at
some values of an input, as trees do; of inputs encoded like this they do.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from credence.errors import InputError, require_positive
from credence.models.networks.wrappers import OfInputs


@dataclass(frozen=True)
class PiecewiseLinear(OfInputs):
    """A network of the inputs and of their piecewise-linear encodings.

        f(x) = network(x, r(x_1), ..., r(x_d)),
        r_t(u) = spread / sqrt(T) * clip((u - b_{t-1}) / (b_t - b_{t-1}), 0, 1),    t = 1..T

    with the knots b_0 < ... < b_T of each input. The sum of T such ramps with independent weights
    of variance 1 is a random walk at the knots, with a variance of spread^2 from the first to the
    last. So under a prior `unit` a neuron of the first layer sees of every input a line and a path
    as rough as Brownian motion.

    Args:
        network: what is applied; its first layer has 1 + T inputs for each input with T + 1 knots.
        knots: of every input, ascending; () for one that is not encoded.
        spread: standard deviation of the random walk's end.
    Raises:
        InputError: for knots that do not ascend or a single one, or a spread that is not > 0.
    """

    knots: tuple[tuple[float, ...], ...]
    spread: float = 2.0

    def __post_init__(self) -> None:
        require_positive(spread=self.spread)
        for index, of_input in enumerate(self.knots):
            if len(of_input) == 1 or not np.all(np.diff(of_input) > 0):
                raise InputError(f"Knots must be at least 2 and ascend, input {index} has others.")

    def inputs(self, x: Float[Array, "point feature"]) -> Float[Array, "point encoded"]:
        """The inputs, and beside them the ramps of every encoded one.

        Raises:
            InputError: if there are more or fewer inputs than tuples of knots.
        """
        if x.shape[-1] != len(self.knots):
            raise InputError(
                f"The network has knots for {len(self.knots)} inputs, but there are {x.shape[-1]}."
            )
        encoded = [
            self._ramps(x[:, index], jnp.asarray(of_input, x.dtype))
            for index, of_input in enumerate(self.knots)
            if of_input
        ]
        return jnp.concatenate([x, *encoded], axis=1)

    def _ramps(
        self, values: Float[Array, " point"], knots: Float[Array, " knot"]
    ) -> Float[Array, "point ramp"]:
        lower, upper = knots[:-1], knots[1:]
        share = jnp.clip((values[:, None] - lower) / (upper - lower), 0, 1)
        return self.spread / len(lower) ** 0.5 * share


def quantile_knots(x: Any, num_pieces: int) -> tuple[tuple[float, ...], ...]:
    """Knots with as many rows between any two: those of its values that are quantiles.

    An input with fewer than three different ones, a mark of yes and no say, is a line already and
    has none.

    Args:
        x: inputs (row, feature).
        num_pieces: most pieces between knots.
    """
    levels = np.linspace(0, 1, num_pieces + 1)
    found = [
        np.unique(np.quantile(values, levels, method="nearest"))
        for values in np.asarray(x, np.float32).T
    ]
    return tuple(tuple(knots.tolist()) if len(knots) > 2 else () for knots in found)
