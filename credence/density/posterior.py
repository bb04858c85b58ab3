"""The posterior: log densities as pure functions of (params, data).

`BayesianModel` is the static half (network, prior, likelihood): frozen, hashable, so compiled
programs are shared by all data sets of one shape. `Posterior` adds the data, which are always
*arguments* of compiled functions.

Samplers see a parameter set as one flat vector, a *position* of shape (weight,);
`unravel` turns it back into `Params`.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from credence.density.chunks import chunked
from credence.density.compiling import jit_quickly
from credence.density.data import Data, Targets, checked_data, like, num_targets, some_rows
from credence.environment import require_own_process
from credence.errors import InputError
from credence.models.likelihoods.base import Likelihood
from credence.models.networks.mlp import Network
from credence.models.priors import Prior

Position = Float[Array, " weight"]


class Params(NamedTuple):
    """Everything unknown, unconstrained: weights, noise (likelihood), hyperparameters (prior)."""

    network: Any
    likelihood: Any
    prior: Any


MOST_IMAGES = 256
"""Rows of more than one axis that a network takes at a time."""
LogDensity = Callable[[Position, Data], Float[Array, ""]]


@dataclass(frozen=True)
class BayesianModel:
    """Network, prior and likelihood: the joint density of parameters and data."""

    network: Network
    prior: Prior
    likelihood: Likelihood

    def init(self, key: PRNGKeyArray, data: Data) -> Params:
        """Parameters where optimisation may start."""
        network = self.network.init(key, data.rows.example())
        return Params(
            network,
            self.likelihood.init(num_targets(data)),
            self.prior.init(self.network, network),
        )

    def sample_prior(self, key: PRNGKeyArray, data: Data) -> Params:
        """A draw from the prior; data gives the shapes only."""
        key_network, key_likelihood = jax.random.split(key)
        template = self.template(data)
        network, hyper = self.prior.sample(key_network, self.network, template.network)
        likelihood = self.likelihood.sample_prior(key_likelihood, num_targets(data))
        return Params(network, likelihood, hyper)

    def simulate(self, key: PRNGKeyArray, params: Params, x: Float[Array, "point *feature"]) -> Any:
        """Targets drawn from the likelihood at the rows of x."""
        return self.likelihood.sample(key, params.likelihood, self.network.apply(params.network, x))

    def log_prior(self, params: Params) -> Float[Array, ""]:
        """Normalised log prior of all parameters, Jacobians included, in nats."""
        weights = self.prior.log_density(self.network, params.network, params.prior)
        return weights + self.likelihood.log_prior(params.likelihood)

    def pointwise_log_likelihood(
        self, params: Params, x: Float[Array, "point *feature"], y: Targets
    ) -> Float[Array, " point"]:
        """Log likelihood of each row, in nats."""
        return self.likelihood.log_prob(params.likelihood, self.outputs(params.network, x), y)

    def outputs(
        self, params: Any, x: Float[Array, "point *feature"]
    ) -> Float[Array, "point output"]:
        """The network's outputs; of many images in chunks.

        A gradient computes every chunk again, because a convolutional network keeps up to megabytes
        of every image.
        """
        num, size = len(x), MOST_IMAGES
        if x.ndim == 2 or num <= size:
            return self.network.apply(params, x)

        @jax.checkpoint
        def chunk(start: Array) -> Array:
            return self.network.apply(params, jax.lax.dynamic_slice_in_dim(x, start, size))

        starts = jnp.arange(0, num, size)
        chunks = jax.lax.map(chunk, jnp.minimum(starts, num - size))
        num_repeated = len(starts) * size - num
        whole = chunks[:-1].reshape(-1, chunks.shape[-1])
        return jnp.concatenate([whole, chunks[-1, num_repeated:]])

    def log_likelihood(self, params: Params, data: Data) -> Float[Array, ""]:
        """Weighted sum over the rows, in nats; less its value at the anchor, where there is one."""
        others = (data.y, data.anchor)
        return data.rows.sum_over(self._log_likelihood_of, params, others, data.weight)

    def _log_likelihood_of(
        self, params: Params, x: Any, others: tuple[Targets, Array | None], weight: Array
    ) -> Float[Array, ""]:
        """Weighted sum over rows that are all in memory."""
        y, anchor = others
        pointwise = self.pointwise_log_likelihood(params, x, y)
        if anchor is not None:
            pointwise = pointwise - anchor
        return jnp.dot(weight, pointwise, precision="highest")

    def log_density(self, params: Params, data: Data) -> Float[Array, ""]:
        """Log of prior times likelihood, in nats."""
        return self.log_prior(params) + self.log_likelihood(params, data)

    def template(self, data: Data) -> Params:
        """Shapes and dtypes of the parameters, without computing them."""
        return shapes(self, like(data))[0]

    def unravel(self, position: Position, data: Data) -> Params:
        """Flat vector to parameters; data gives the shapes only."""
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), self.template(data))
        return ravel_pytree(zeros)[1](position)


@lru_cache(maxsize=1024)
def shapes(model: BayesianModel, data: Data) -> tuple[Params, jax.ShapeDtypeStruct]:
    """Shapes and dtypes of parameters and outputs for data of given shapes, traced once."""
    params = jax.eval_shape(model.init, jax.random.key(0), data)
    return params, jax.eval_shape(model.network.apply, params.network, data.x)


@lru_cache(maxsize=256)
def flat_log_density(model: BayesianModel) -> LogDensity:
    """log_density(position, data) of a model: what kernels move on.

    The same model gives the same function, so programs compiled for it are found again. Many
    particles are worked through in chunks that fit the cache; see `credence.density.chunks`.
    """

    def log_density(position: Position, data: Data) -> Float[Array, ""]:
        return model.log_density(model.unravel(position, data), data)

    return chunked(log_density)


@lru_cache(maxsize=256)
def flat_log_prior(model: BayesianModel) -> LogDensity:
    """log_prior(position, data) of a model; data gives the shapes only.

    A part of other densities, hence not in chunks: whoever maps their sum over many particles
    wraps the sum in `chunked`. The same model gives the same function.
    """
    return lambda position, data: model.log_prior(model.unravel(position, data))


def flat_prior_draw(model: BayesianModel, key: PRNGKeyArray, data: Data) -> Position:
    """A draw from a model's prior, as one flat vector; data gives the shapes only."""
    return ravel_pytree(model.sample_prior(key, data))[0]


@lru_cache(maxsize=256)
def flat_log_likelihood(model: BayesianModel) -> LogDensity:
    """log_likelihood(position, data) of a model, a part of other densities as `flat_log_prior`.

    Without chunks it may also be differentiated twice.
    """
    return lambda position, data: model.log_likelihood(model.unravel(position, data), data)


class Posterior:
    """A model and the data it is conditioned on.

    Args:
        network: what maps inputs to outputs; see `credence.models.networks.mlp`.
        prior: see `credence.models.priors`.
        likelihood: see `credence.models.likelihoods`.
        data: (x, y) or (x, y, weight): x (point, feature); y (point,) or (point, target) for
            regression, integer labels (point,) from 0 for classification; weight (point,) >= 0.
            x may stay on disk: see `credence.density.stored_rows.open_rows`.
        groups: (point,) whole numbers: rows with the same one belong together, such as those of a
            patient, and a method that leaves rows out leaves them out together. None where no two
            do.
    Attributes:
        model: the network, prior and likelihood (`BayesianModel`).
        data: the rows (`Data`).
        groups: as given.
        num_weights: length of a position: weights, hyperparameters and those of the noise.
        num_outputs: of the network.
    Raises:
        InputError: where shapes disagree, values are not finite, or labels exceed the outputs.
    """

    model: BayesianModel
    data: Data
    groups: Int[np.ndarray, " point"] | None

    def __init__(
        self,
        network: Network,
        prior: Prior,
        likelihood: Likelihood,
        data: Any,
        groups: Any = None,
    ) -> None:
        require_own_process()
        for kind, part, function in (
            ("network", network, "apply"),
            ("prior", prior, "log_density"),
            ("likelihood", likelihood, "log_prob"),
        ):
            _check_part(kind, part, function)
        self.model = BayesianModel(network, prior, likelihood)
        x, y, *weight = data
        self.data = checked_data(x, likelihood.checked_targets(y), *weight)
        self.groups = None if groups is None else self._checked_groups(groups)
        template, outputs = shapes(self.model, like(self.data))
        self._check_outputs(outputs.shape)
        self.num_outputs = int(outputs.shape[-1])
        self.num_weights = sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(template))

    def _checked_groups(self, groups: Any) -> Int[np.ndarray, " point"]:
        groups = np.asarray(groups)
        if groups.shape != (self.num_points,) or groups.dtype.kind not in "iu":
            raise InputError(
                f"groups must be {self.num_points} whole numbers, one per row, got shape "
                f"{groups.shape} of {groups.dtype}."
            )
        return groups

    def _check_outputs(self, shape: tuple[int, ...]) -> None:
        labels = self.data.y.ndim == 1
        classes = int(self.data.y.max()) + 1 if labels else num_targets(self.data)
        expected = self.model.likelihood.num_outputs(classes)
        may_be_more = labels and getattr(self.model.likelihood, "max_label", None) is None
        is_wrong = shape[-1] < expected if may_be_more else shape[-1] != expected
        if len(shape) != 2 or shape[0] != self.num_points or is_wrong:
            raise InputError(
                f"The network's outputs have shape {shape}, but {self.num_points} rows and "
                f"{self.model.likelihood} need ({self.num_points}, {expected})."
            )

    @property
    def num_points(self) -> int:
        """Number of rows."""
        return self.data.x.shape[0]

    @property
    def log_density(self) -> LogDensity:
        """The flat log density (position, data) -> scalar, in nats."""
        return flat_log_density(self.model)

    def part(self, key: PRNGKeyArray, num_rows: int | None) -> "Posterior":
        """The posterior of some rows at random, each counting for several; see `some_rows`.

        Without a number of rows it is this posterior, unless its inputs lie on disk.
        """
        if num_rows is None and self.data.rows.in_memory:
            return self
        part = copy(self)
        part.data, part.groups = some_rows(key, self.data, num_rows), None
        return part

    def anchored(self, position: Position) -> Data:
        """The data with every row's log likelihood measured from that at a position.

        The log density changes by a constant only, but its sum over N rows no longer grows with N:
        differences between positions, on which a Metropolis test decides, then survive float32.
        """
        position = jnp.asarray(np.asarray(position))  # on no device in particular, as the data
        return self.data._replace(anchor=pointwise(position, self.data, model=self.model))

    def init(self, key: PRNGKeyArray, num_members: int) -> Float[Array, "member weight"]:
        """Flat starting vectors for optimisation."""
        return _init(jax.random.split(key, num_members), self.data, model=self.model)

    def ravel(self, params: Params) -> Position:
        """One parameter set to a flat vector: the inverse of `unravel`."""
        return ravel_pytree(params)[0]

    def unravel(self, position: Float[Array, "*batch weight"]) -> Params:
        """Flat vectors to parameters, leading axes kept."""
        return _unravel(position, self.data, model=self.model)

    def __repr__(self) -> str:
        model = self.model
        return (
            f"Posterior({model.network}, {model.prior}, {model.likelihood}, "
            f"{self.num_points} points, {self.num_weights} weights)"
        )


def _check_part(kind: str, part: Any, function: str) -> None:
    """Refuse what is no network, prior or likelihood: a name, a class, or another part.

    Args:
        function: one that only this kind of part has.
    """
    if isinstance(part, str | type) or not callable(getattr(part, function, None)):
        raise InputError(
            f"The {kind} must be an object of credence.models or one like it, which has "
            f"{function}(), got {part!r}."
        )
    try:
        hash(part)
    except TypeError as error:
        raise InputError(
            f"The {kind} must be hashable, because programs are compiled for it: make its class a "
            f"frozen dataclass, whose settings are numbers, words and tuples. ({error}.)"
        ) from error


@partial(jit_quickly, static_argnames="model")
def _init(
    keys: Key[Array, " member"], data: Data, *, model: BayesianModel
) -> Float[Array, "member weight"]:
    return jax.vmap(lambda key: ravel_pytree(model.init(key, data))[0])(keys)


@partial(jax.jit, static_argnames="model")
def pointwise(position: Position, data: Data, *, model: BayesianModel) -> Float[Array, " point"]:
    """Log likelihood of each row at a flat position, in nats."""
    params = model.unravel(position, data)
    return data.rows.map_over(partial(model.pointwise_log_likelihood, params), data.y)


@partial(jit_quickly, static_argnames="model")
def _unravel(
    position: Float[Array, "*batch weight"], data: Data, *, model: BayesianModel
) -> Params:
    unravel = lambda vector: model.unravel(vector, data)  # noqa: E731
    for _ in position.shape[:-1]:
        unravel = jax.vmap(unravel)
    return unravel(position)
