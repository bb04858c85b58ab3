"""Posteriors at every hidden width, and what is asked of them: problems of multilevel methods.

Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class Neural Networks",
section 5. All have a trace-class prior, under which a narrow network is the leading block of a wide
one; what is estimated is a posterior mean, of a function's value or of a class's probability.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credence.datasets.prepared.digits import principal_digits
from credence.datasets.prepared.inverse_rl import halfcheetah, mountain_car
from credence.datasets.prepared.simulated import spiral
from credence.density.posterior import Posterior
from credence.errors import InputError
from credence.models import MLP, Categorical, NoisyArgmax, Normal, PerAction, TraceClass


@dataclass(frozen=True, kw_only=True)
class WidthProblem:
    """A posterior for every hidden width.

    Args:
        name, description: for people.
        source: one of `SOURCES`.
        alpha, scale, decay_inputs: of the trace-class prior; with decay over the inputs it is
            (4.2) as printed.
        depth: hidden layers, all of one width.
        noise_std: of a regression's targets, or of the values an agent sees.
        num_points: data points.
        num_features: inputs of the regression; principal components of images.
        num_interest: inputs at which predictions are estimated.
        truth_width: of the network that a regression's targets are drawn from.
        seed: of the data.
    """

    name: str
    description: str = field(compare=False)
    source: str
    alpha: float = 2.0
    scale: float = 1.0
    decay_inputs: bool = False
    depth: int = 1
    activation: str = "tanh"
    noise_std: float = 0.1
    num_points: int = 100
    num_features: int = 10
    num_interest: int = 10
    truth_width: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise InputError(f"Unknown source '{self.source}': use {', '.join(SOURCES)}.")
        if min(self.num_points, self.num_interest, self.depth) < 1:
            raise InputError("A problem needs data points, inputs of interest and hidden layers.")

    @property
    def prior(self) -> TraceClass:
        """The trace-class prior of the weights."""
        return TraceClass(self.alpha, self.scale, self.decay_inputs)

    def posterior(self, width: int) -> Posterior:
        """The posterior of networks with hidden layers of that width."""
        data = arrays(self)
        network, likelihood = SOURCES[self.source].model(self, width)
        return Posterior(network, self.prior, likelihood, (data.x, data.y))

    def at(self, changes: Mapping[str, Any], seed: int) -> "WidthProblem":
        """The same with some settings changed, and with the data of a seed."""
        return replace(self, **changes, seed=self.seed + seed)

    def interest(self) -> np.ndarray:
        """Inputs at which predictions are estimated."""
        return arrays(self).interest


class Arrays(NamedTuple):
    """Data, and inputs of interest that are not among them."""

    x: np.ndarray
    y: np.ndarray
    interest: np.ndarray


@lru_cache(maxsize=8)
def arrays(problem: WidthProblem) -> Arrays:
    """The data of a problem: the same at every width.

    Raises:
        InputError: where a data set is not to be had, or is smaller than asked for.
    """
    return SOURCES[problem.source].arrays(problem)


def regression(problem: WidthProblem) -> Arrays:
    """Section 5.1: x ~ N(2, 0.5) (variance), targets of a wide network from the prior, plus noise.

    The first input of interest is (2, ..., 2).
    """
    rng = np.random.default_rng(problem.seed)
    shape = problem.num_points + problem.num_interest - 1, problem.num_features
    x = rng.normal(2.0, 0.5**0.5, shape)
    truth = _mlp(problem, 1, problem.truth_width)
    key_template, key_draw = jax.random.split(jax.random.key(problem.seed))
    template = jax.eval_shape(truth.init, key_template, jnp.asarray(x))
    params, _ = problem.prior.sample(key_draw, truth, template)
    noise_free = np.asarray(truth.apply(params, jnp.asarray(x)), float)[: problem.num_points, 0]
    y = noise_free + problem.noise_std * rng.normal(size=problem.num_points)
    centre = np.full((1, problem.num_features), 2.0)
    return Arrays(x[: problem.num_points], y, np.vstack([centre, x[problem.num_points :]]))


def two_spirals(problem: WidthProblem) -> Arrays:
    """Section 5.2, the inputs as published: up to 16 from the origin."""
    per_class = -(-(problem.num_points + problem.num_interest) // 2)
    x, y = spiral(per_class, seed=problem.seed)
    return _split(problem, x, y)


def digits(problem: WidthProblem) -> Arrays:
    """Section 5.3: images of 0 and 1 by their first principal components."""
    found = principal_digits(problem.num_features, num_train=problem.num_points, seed=problem.seed)
    return Arrays(found.x_train, found.y_train, found.x_test[_some(problem, len(found.x_test))])


def cheetah(problem: WidthProblem) -> Arrays:
    """Section 5.4: what an expert runner chose. There are 100 decisions."""
    found = halfcheetah()
    return _split(problem, found.x, found.y)


def car(problem: WidthProblem) -> Arrays:
    """Section 5.4, smaller: what a driver in a valley chose."""
    found = mountain_car(problem.num_points + problem.num_interest, seed=problem.seed)
    return _split(problem, found.x, found.y)


class Source(NamedTuple):
    """How a problem gets its data, network and likelihood."""

    arrays: Callable[[WidthProblem], Arrays]
    model: Callable[[WidthProblem, int], tuple[Any, Any]]
    quantity: str


def _values(problem: WidthProblem, width: int) -> tuple[Any, Any]:
    return _mlp(problem, 1, width), Normal(problem.noise_std)


def _classes(problem: WidthProblem, width: int) -> tuple[Any, Any]:
    return _mlp(problem, 2, width), Categorical()


def _choices(problem: WidthProblem, width: int) -> tuple[Any, Any]:
    return PerAction(_mlp(problem, 1, width)), NoisyArgmax(problem.noise_std)


SOURCES: dict[str, Source] = {
    "regression": Source(regression, _values, "the function's value"),
    "spiral": Source(two_spirals, _classes, "class probabilities"),
    "digits": Source(digits, _classes, "class probabilities"),
    "halfcheetah": Source(cheetah, _choices, "probabilities of the actions"),
    "mountain_car": Source(car, _choices, "probabilities of the actions"),
}
"""Sources by name: data, what models them, and what the posterior mean is estimated of."""


def _mlp(problem: WidthProblem, num_outputs: int, width: int) -> MLP:
    return MLP(num_outputs, (width,) * problem.depth, activation=problem.activation)


def _split(problem: WidthProblem, x: np.ndarray, y: np.ndarray) -> Arrays:
    """The first rows of a random order are data, those after them of interest."""
    num, rest = problem.num_points, problem.num_interest
    if num + rest > len(y):
        raise InputError(f"{problem.source} has {len(y)} rows, but {num} + {rest} were asked for.")
    order = np.random.default_rng(problem.seed).permutation(len(y))
    data, interest = order[:num], order[num : num + rest]
    return Arrays(x[data], y[data], x[interest])


def _some(problem: WidthProblem, size: int) -> np.ndarray:
    return np.random.default_rng(problem.seed).permutation(size)[: problem.num_interest]
