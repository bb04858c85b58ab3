"""Networks of encoded inputs: a number as its place between knots, or as a logarithm.

Gorishniy, Rubachev & Babenko, "On embeddings for numerical features in tabular deep learning"
(2022), Section 3.2: networks of smooth activations hardly follow a target that jumps or bends at
some values of an input, as trees do; of inputs encoded like this they do.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from credence.errors import InputError, require_positive
from credence.models.networks.dense import Layer, affine, after_first
from credence.models.networks.mlp import ACTIVATIONS, MLP
from credence.models.networks.wrappers import OfInputs

MOST_SUMMED = 96
"""Ramps of an input that are summed up; a path of more is looked up, which is faster on a CPU."""
FEWEST_ROWS = 1000
"""Rows, below which ramps are summed up however many there are: heights of all knots take time."""
COST_OF_A_PATH = 80
"""Ramps that take about as long to sum up as a path of hundreds does to be looked up, on a CPU."""
REPEATS = 10
"""Rows for each different value of an input, in the mean, where its values are called repeated."""
LONG_TAIL = 25
"""Mean distances from the median at which a value is far out: of a million normal or exponential
ones none is."""
LINEAR_PART = 0.2
"""Mean distances from the median within which a logarithm of a distance is nearly a line."""


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
        self._check(x)
        return self._with_ramps(x, self._places())

    def apply(self, params: Any, x: Float[Array, "point feature"]) -> Float[Array, "point output"]:
        """Outputs at the rows of x; what the first layer of an MLP sees of an input with many
        knots is looked up between them, in place of a sum over its ramps."""
        self._check(x)
        if not self._long() or len(x) < FEWEST_ROWS:
            return super().apply(params, x)
        first, *rest = params
        short = [index for index in self._places() if index not in self._long()]
        places = [slice(x.shape[1]), *(self._places()[index] for index in short)]
        kernel = jnp.concatenate([first.kernel[place] for place in places])
        z = affine(Layer(kernel, first.bias), self._with_ramps(x, short).T)
        for index, place in self._long().items():
            knots = jnp.asarray(self.knots[index], x.dtype)
            z = z + self._path(first.kernel[place], x[:, index], knots).T
        activation: str = self.network.activation  # type: ignore[attr-defined]  # an MLP's
        return after_first(rest, z, ACTIVATIONS[activation])

    def uses_per_weight(self, params: Any, shape: int | tuple[int, ...]) -> float:
        """How often a weight is used for one row, in the mean. A path that is looked up counts as
        the ramps that take as long."""
        num_weights = sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(params))
        saved = sum(
            (place.stop - place.start - COST_OF_A_PATH) * params[0].kernel.shape[-1]
            for place in self._long().values()
        )
        return 1 - saved / num_weights

    def _check(self, x: Float[Array, "point feature"]) -> None:
        if x.shape[-1] != len(self.knots):
            raise InputError(
                f"The network has knots for {len(self.knots)} inputs, but there are {x.shape[-1]}."
            )

    def _places(self) -> dict[int, slice]:
        """The rows of the first layer's weights that belong to the ramps of an input."""
        places, start = {}, len(self.knots)
        for index, of_input in enumerate(self.knots):
            if of_input:
                places[index] = slice(start, start + len(of_input) - 1)
                start = places[index].stop
        return places

    def _long(self) -> dict[int, slice]:
        """Those of inputs whose paths are looked up."""
        if type(self.network) is not MLP:
            return {}
        places = self._places().items()
        return {index: place for index, place in places if place.stop - place.start > MOST_SUMMED}

    def _with_ramps(
        self, x: Float[Array, "point feature"], encoded: Iterable[int]
    ) -> Float[Array, "point encoded"]:
        """The inputs, and the ramps of some of them."""
        ramps = (self._ramps(x[:, i], jnp.asarray(self.knots[i], x.dtype)) for i in encoded)
        return jnp.concatenate([x, *ramps], axis=1)

    def _ramps(
        self, values: Float[Array, " point"], knots: Float[Array, " knot"]
    ) -> Float[Array, "point ramp"]:
        lower, upper = knots[:-1], knots[1:]
        share = jnp.clip((values[:, None] - lower) / (upper - lower), 0, 1)
        return self._height(len(lower)) * share

    def _path(
        self,
        weights: Float[Array, "ramp neuron"],
        values: Float[Array, " point"],
        knots: Float[Array, " knot"],
    ) -> Float[Array, "point neuron"]:
        """The sum of an input's ramps times their weights: what it is at the knot below, and a
        share of the ramp that begins there."""
        steps = self._height(len(weights)) * weights
        below = jnp.clip(jnp.searchsorted(knots, values, side="right") - 1, 0, len(steps) - 1)
        share = jnp.clip((values - knots[below]) / (knots[below + 1] - knots[below]), 0, 1)
        heights = jnp.cumsum(steps, axis=0) - steps
        height, step = jnp.split(jnp.concatenate([heights, steps], axis=1)[below], 2, axis=1)
        return height + share[:, None] * step

    def _height(self, num_ramps: int) -> float:
        """The height at which a ramp ends."""
        return self.spread / num_ramps**0.5


@dataclass(frozen=True)
class Logarithmic(OfInputs):
    """A network of inputs some of which are measured in orders of magnitude from a centre.

        f(x) = network(s(x_1), ..., s(x_d)),
        s(u) = (sign(u - center) log(1 + |u - center| / linear) - mean) / std

    Near its centre s is a line, and far out a logarithm: Webber, "A bi-symmetric log
    transformation for wide-range data" (2013). Of an amount that is mostly small and
    sometimes huge, a network of the input itself sees hardly more than the huge ones.

    Args:
        network: what is applied.
        scales: of every input (center, linear, mean, std); () for one that is left as it is.
    Raises:
        InputError: for scales that are not four numbers with linear > 0 and std > 0.
    """

    scales: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        for index, scale in enumerate(self.scales):
            if scale and not (len(scale) == 4 and scale[1] > 0 and scale[3] > 0):
                raise InputError(
                    f"Scales are center, linear > 0, mean and std > 0, input {index} has {scale}."
                )

    def inputs(self, x: Float[Array, "point feature"]) -> Float[Array, "point feature"]:
        """The inputs, those with scales in orders of magnitude.

        Raises:
            InputError: if there are more or fewer inputs than scales.
        """
        if x.shape[-1] != len(self.scales):
            raise InputError(
                f"The network has scales of {len(self.scales)} inputs, but there are {x.shape[-1]}."
            )
        places = [index for index, scale in enumerate(self.scales) if scale]
        if not places:
            return x
        center, linear, mean, std = jnp.asarray([self.scales[i] for i in places], x.dtype).T
        place = jnp.asarray(places)
        return x.at[:, place].set((_orders(x[:, place], center, linear) - mean) / std)


def _orders(values: Any, center: Any, linear: Any) -> Any:
    """Signed logarithms of distances from the centre."""
    return jnp.sign(values - center) * jnp.log1p(jnp.abs(values - center) / linear)


def usual_scales(x: Any) -> tuple[tuple[float, ...], ...]:
    """Scales of inputs with a long tail, which become logarithms with mean 0 and variance 1.

    An input with fewer than three different values has no tail.

    Args:
        x: inputs (row, feature).
    """
    return tuple(_usual_scale(values) for values in np.asarray(x, np.float32).T)


def _usual_scale(values: Float[np.ndarray, " row"]) -> tuple[float, ...]:
    center = np.median(values)
    distances = np.abs(values - center)
    mean_distance = distances.mean()
    if distances.max() <= LONG_TAIL * mean_distance or len(np.unique(values)) < 3:
        return ()
    linear = LINEAR_PART * mean_distance
    orders = np.asarray(_orders(values, center, linear))
    return tuple(float(each) for each in (center, linear, orders.mean(), orders.std()))


def usual_knots(
    x: Any, num_pieces: int, whole: frozenset[int] = frozenset()
) -> tuple[tuple[float, ...], ...]:
    """Knots with as many rows between any two: those of its values that are quantiles; or all.

    An input with fewer than three different ones, a mark of yes and no say, is a line already and
    has none.

    Args:
        x: inputs (row, feature).
        num_pieces: most pieces between knots.
        whole: inputs that have a knot at every value, see `repeated`.
    """
    levels = np.linspace(0, 1, num_pieces + 1)
    found = [
        np.unique(values if index in whole else np.quantile(values, levels, method="nearest"))
        for index, values in enumerate(np.asarray(x, np.float32).T)
    ]
    return tuple(tuple(knots.tolist()) if len(knots) > 2 else () for knots in found)


def repeated(num_values: Sequence[int], num_rows: int, least: int, most: int) -> frozenset[int]:
    """Inputs with more than `least` different values that repeat, ten rows for each in the mean.

    Those with few values come first, as long as all together have at most `most`.

    Args:
        num_values: of every input.
    """
    bound = min(num_rows / REPEATS, most)
    some = [index for index, count in enumerate(num_values) if least < count <= bound]
    some.sort(key=num_values.__getitem__)
    totals = np.cumsum([num_values[index] for index in some])
    return frozenset(some[: int(np.sum(totals <= most))])
