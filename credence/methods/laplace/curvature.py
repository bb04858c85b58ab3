"""The generalised Gauss-Newton curvature of a log likelihood in the weights of a network.

    H = sum_n weight_n J_n^T L_n J_n,    J_n = d outputs / d weights at row n,

with L_n the Fisher information of the outputs (Martens, "New insights and perspectives on the
natural gradient method", 2020, where the two curvatures are one). H is positive semi-definite
everywhere, and exact for a network that is linear in its weights.

`Spectrum` holds H in the coordinates weights / prior standard deviations, where the prior's
precision is the identity, by eigenvalues and eigenvectors: any multiple of the prior can then be
added exactly. Sums over rows run in compiled batches, eigenvectors in double precision on the host;
so do the sums of a full H, whose small eigenvalues single precision would drown in the rounding of
the largest: with little noise these are 10^8 times the prior's precision.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from credence.adaptation.reference import network_stds
from credence.density.data import Data, like
from credence.density.posterior import BayesianModel, Params, Position, Posterior, shapes
from credence.errors import InputError
from credence.models.likelihoods.base import Likelihood
from credence.models.likelihoods.numbers import LocationScale
from credence.models.networks.mlp import ACTIVATIONS, MLP
from credence.models.priors import GaussianPrior

Outputs = Float[Array, " output"]

MOST_FULL_WEIGHTS = 10_000
"""Weights of a full curvature: its eigenvectors in double precision then take 0.8 GB."""
BATCH_NUMBERS = 2**24
"""Entries that the Jacobians of a batch of rows may have, 64 MiB in single precision."""


@dataclass(frozen=True)
class Spectrum:
    """Curvature in prior units: eigenvalues, and bases that are Kronecker products block by block.

    Args:
        values: eigenvalues >= 0, block after block.
        bases: a pair (left, right) of orthogonal matrices per block: eigenvector (i, j) of a block
            is the matrix left[:, i] right[:, j]^T; none at all for the identity.
    """

    values: Float[np.ndarray, " weight"]
    bases: tuple[tuple[np.ndarray, np.ndarray], ...] = ()

    def to_eigen(self, vectors: Float[np.ndarray, "*batch weight"]) -> np.ndarray:
        """Coordinates along the eigenvectors."""
        return self._rotate(vectors, lambda basis: basis)

    def from_eigen(self, vectors: Float[np.ndarray, "*batch weight"]) -> np.ndarray:
        """The inverse of `to_eigen`."""
        return self._rotate(vectors, lambda basis: basis.T)

    def inverse_diagonal(self) -> Float[np.ndarray, " weight"]:
        """Variance of every weight under the curvature and the prior's: the diagonal of the inverse
        of their sum, in units of the prior variance."""
        inverse = 1 / (self.values + 1)
        if not self.bases:
            return inverse
        found = [
            left**2 @ block.reshape(len(left), len(right)) @ (right**2).T
            for block, (left, right) in zip(self._blocks(inverse), self.bases, strict=True)
        ]
        return np.concatenate([block.ravel() for block in found])

    def _blocks(self, vectors: Float[np.ndarray, "*batch weight"]) -> list[np.ndarray]:
        """The part of every block."""
        ends = np.cumsum([len(left) * len(right) for left, right in self.bases])[:-1]
        return np.split(vectors, ends, axis=-1)

    def _rotate(self, vectors: np.ndarray, turn: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Every block turned on both sides, each side in one matrix product for the batch."""
        if not self.bases:
            return vectors
        parts = []
        for block, (left, right) in zip(self._blocks(vectors), self.bases, strict=True):
            matrices = block.reshape(-1, len(left), len(right))
            matrices = np.tensordot(np.tensordot(matrices, turn(left), (1, 0)), turn(right), (1, 0))
            parts.append(matrices.reshape(block.shape))
        return np.concatenate(parts, axis=-1)


def active_weights(posterior: Posterior, layers: str) -> slice:
    """The slice of a position whose weights have a curvature.

    Raises:
        InputError: for the last layer of a network whose layers are unknown.
    """
    template = posterior.model.template(posterior.data).network
    stop = _size(template)
    if layers == "all":
        return slice(0, stop)
    _require_mlp(posterior.model, "layers='last'")
    return slice(stop - _size(template[-1]), stop)


def check_structure(posterior: Posterior, structure: str, layers: str) -> None:
    """Refuse what cannot be computed, before anything is.

    Raises:
        InputError: for a prior that is not Gaussian, a network that is no MLP where its layers must
            be known, more weights than a full curvature allows, or prior standard deviations
            without Kronecker structure.
    """
    prior, network = posterior.model.prior, posterior.model.network
    if not isinstance(prior, GaussianPrior):
        raise InputError(
            f"A Laplace approximation needs a Gaussian prior, got {prior}: a mode over its "
            "precisions too says little about them. Use prior='fan_in', for method 'laplace' with "
            "prior_precision='evidence', or sample with method='nuts'."
        )
    active = active_weights(posterior, layers)
    size = active.stop - active.start
    if structure == "full" and size > MOST_FULL_WEIGHTS:
        raise InputError(
            f"structure='full' needs a {size:,} x {size:,} matrix, and {MOST_FULL_WEIGHTS:,} "
            "weights are the most: use structure='kronecker' or 'diagonal', or layers='last'."
        )
    if structure == "kronecker":
        _require_mlp(posterior.model, "structure='kronecker'")
        for stds in _blocks(posterior, layers):
            if not np.allclose(stds * stds[0, 0], np.outer(stds[:, 0], stds[0]), rtol=1e-5):
                raise InputError(
                    f"structure='kronecker' needs prior standard deviations that are products of "
                    f"one factor per input and one per output, and {prior} of {network} has "
                    "others: use structure='full' or 'diagonal'."
                )


def prior_stds(posterior: Posterior, layers: str) -> Float[np.ndarray, " weight"]:
    """Prior standard deviation of every active weight."""
    return network_stds(posterior)[active_weights(posterior, layers)]


def spectrum(position: Position, posterior: Posterior, structure: str, layers: str) -> Spectrum:
    """Curvature of the log likelihood at a position, in units of the prior.

    Args:
        position: of all parameters; its likelihood parameters set the noise.
        structure: "full", "kronecker" (one block per layer: Ritter, Botev & Barber, "A scalable
            Laplace approximation for neural networks", 2018) or "diagonal".
        layers: "all" or "last".
    """
    stds = prior_stds(posterior, layers)
    if structure == "full":
        values, vectors = _eigen(stds[:, None] * _full_sum(position, posterior, layers) * stds)
        return Spectrum(values, ((vectors, np.ones((1, 1))),))
    sums = _summed(
        position, posterior.data, model=posterior.model, structure=structure, layers=layers
    )
    sums = jax.tree.map(lambda leaf: np.asarray(leaf, float), sums)
    if structure == "diagonal":
        return Spectrum(sums * stds**2)
    values, bases = [], []
    for (inputs, gradients), block in zip(sums, _blocks(posterior, layers), strict=True):
        from_inputs, from_outputs = block[:, 0], block[0] / block[0, 0]
        left, left_basis = _eigen(from_inputs[:, None] * inputs * from_inputs)
        right, right_basis = _eigen(from_outputs[:, None] * gradients * from_outputs)
        values.append(np.outer(left, right).ravel())
        bases.append((left_basis, right_basis))
    return Spectrum(np.concatenate(values), tuple(bases))


def output_curvature(
    likelihood: Likelihood, params: Any, outputs: Outputs, y: Array
) -> Float[Array, "output output"]:
    """Fisher information of the outputs at one point, in nats per squared unit of output.

    It is the mean of minus the Hessian of the log probability: over the labels, or over the noise
    by the trapezoidal rule in t for noise z = sinh(t), where even heavy tails end.
    """

    def negative_log_prob(outputs: Outputs, y: Array) -> Float[Array, ""]:
        return -likelihood.log_prob(params, outputs[None], y[None])[0]

    hessian = jax.hessian(negative_log_prob)
    if not isinstance(likelihood, LocationScale):
        probability = likelihood.mean(params, outputs[None])[0]
        labels = jnp.arange(len(probability), dtype=y.dtype)
        at_label = jax.vmap(lambda label: hessian(outputs, label))(labels)
        return jnp.einsum("l,lij->ij", probability, at_label, precision="highest")
    t = jnp.linspace(-8.0, 8.0, 65, dtype=outputs.dtype)
    noise = jnp.sinh(t)
    probability = jax.nn.softmax(likelihood.noise_log_density(noise) + jnp.log(jnp.cosh(t)))
    location, scale = likelihood.location_scale(params, outputs[None])
    at_noise = jax.vmap(lambda z: hessian(outputs, location[0] + scale[0] * z))(noise)
    return jnp.einsum("z,zij->ij", probability, at_noise, precision="highest")


def _root(curvature: Float[Array, "output output"]) -> Float[Array, "output output"]:
    """R with R R^T = the positive part of a symmetric matrix."""
    values, vectors = jnp.linalg.eigh(curvature)
    return vectors * jnp.sqrt(jnp.maximum(values, 0.0))


@partial(jax.jit, static_argnames=("model", "structure", "layers"))
def _summed(
    position: Position, data: Data, *, model: BayesianModel, structure: str, layers: str
) -> Any:
    """The diagonal of H, or the Kronecker factors (inputs, gradients) of every layer."""
    params = model.unravel(position, data)
    row_term = {"diagonal": _full_row, "kronecker": _kronecker_row}[structure]
    combine = {"diagonal": _squares, "kronecker": _factors}[structure]

    def batch_term(rows: Data) -> Any:
        return combine(_row_terms(row_term, model, params, layers, rows), rows.weight)

    num_points = data.x.shape[0]
    num_batches, size = _batching(model, data)
    index = jnp.arange(num_batches * size)
    rows = jax.tree.map(lambda leaf: leaf[jnp.minimum(index, num_points - 1)], data)
    rows = rows._replace(weight=jnp.where(index < num_points, rows.weight, 0.0))
    batches = jax.tree.map(lambda leaf: leaf.reshape(num_batches, size, *leaf.shape[1:]), rows)

    first = jax.tree.map(lambda leaf: leaf[0], batches)
    zeros = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(batch_term, first)
    )
    add = lambda total, rows: (jax.tree.map(jnp.add, total, batch_term(rows)), None)  # noqa: E731
    totals, _ = jax.lax.scan(add, zeros, batches)
    if structure != "kronecker":
        return totals
    count = jnp.sum(data.weight)
    return [(inputs / count, gradients) for inputs, gradients in totals]


def _full_sum(
    position: Position, posterior: Posterior, layers: str
) -> Float[np.ndarray, "active active"]:
    """H, summed in double precision over rows whose Jacobians are computed as the data are."""
    data = jax.tree.map(np.asarray, posterior.data)
    num_batches, size = _batching(posterior.model, data)
    active = active_weights(posterior, layers)
    size_active = active.stop - active.start
    total = np.zeros((size_active, size_active))
    for index in np.arange(num_batches * size).reshape(num_batches, size):
        rows = jax.tree.map(lambda leaf, index=index: leaf[index % len(leaf)], data)
        terms = _full_rows(position, rows, model=posterior.model, layers=layers)
        weight = np.where(index < posterior.num_points, rows.weight, 0.0)
        scaled = (np.asarray(terms, float) * np.sqrt(weight)[:, None, None]).reshape(-1, len(total))
        total += scaled.T @ scaled
    return total


@partial(jax.jit, static_argnames=("model", "layers"))
def _full_rows(
    position: Position, rows: Data, *, model: BayesianModel, layers: str
) -> Float[Array, "row output active"]:
    """R^T J of every row."""
    return _row_terms(_full_row, model, model.unravel(position, rows), layers, rows)


def _row_terms(
    row_term: Callable[..., Any], model: BayesianModel, params: Params, layers: str, rows: Data
) -> Any:
    """What every row adds, leaves (row, ...)."""

    def one(x: Array, y: Array) -> Any:
        outputs = model.network.apply(params.network, x[None])[0]
        root = _root(output_curvature(model.likelihood, params.likelihood, outputs, y))
        return row_term(model, params, layers, x, root)

    return jax.vmap(one)(rows.x, rows.y)


def _batching(model: BayesianModel, data: Data) -> tuple[int, int]:
    """Number of batches, and rows of each; the last may be filled up."""
    template, outputs = shapes(model, like(data))
    num_points = data.x.shape[0]
    most = BATCH_NUMBERS // (outputs.shape[-1] * _size(template.network))
    num_batches = -(-num_points // max(1, min(num_points, most)))
    return num_batches, -(-num_points // num_batches)


def _full_row(
    model: BayesianModel, params: Params, layers: str, x: Array, root: Array
) -> Float[Array, "output weight"]:
    """R^T J of a row."""
    network = params.network
    frozen = network[:-1] if layers == "last" else ()
    flat, unravel = ravel_pytree(network[-1] if layers == "last" else network)

    def outputs(flat: Float[Array, " weight"]) -> Outputs:
        weights = (*frozen, unravel(flat)) if layers == "last" else unravel(flat)
        return model.network.apply(weights, x[None])[0]

    return jnp.matmul(root.T, jax.jacrev(outputs)(flat), precision="highest")


def _squares(rows: Float[Array, "row output weight"], weight: Float[Array, " row"]) -> Array:
    return jnp.einsum("n,now->w", weight, rows**2, precision="highest")


def _kronecker_row(
    model: BayesianModel, params: Params, layers: str, x: Array, root: Array
) -> list[tuple[Array, Array]]:
    """Inputs of every layer of an MLP, with a one for the bias, and R^T d outputs / d affine."""
    network, activation = params.network, ACTIVATIONS[model.network.activation]  # type: ignore

    def forward(shifts: list[Array]) -> tuple[Outputs, list[Array]]:
        z, inputs = x, []
        for depth, (layer, shift) in enumerate(zip(network, shifts, strict=True)):
            z = activation(z) if depth else z
            inputs.append(jnp.append(z, 1.0))
            z = jnp.matmul(z, layer.kernel, precision="highest") + layer.bias + shift
        return z, inputs

    none = [jnp.zeros_like(layer.bias) for layer in network]
    jacobians, inputs = jax.jacrev(forward, has_aux=True)(none)
    found = [
        (layer_inputs, jnp.matmul(root.T, jacobian, precision="highest"))
        for layer_inputs, jacobian in zip(inputs, jacobians, strict=True)
    ]
    return found[-1:] if layers == "last" else found


def _factors(
    rows: list[tuple[Array, Array]], weight: Float[Array, " row"]
) -> list[tuple[Array, Array]]:
    """Sums over rows: of the inputs' products, and of the Gauss-Newton terms of the outputs."""
    return [
        (
            jnp.einsum("n,ni,nj->ij", weight, inputs, inputs, precision="highest"),
            jnp.einsum("n,nri,nrj->ij", weight, jacobians, jacobians, precision="highest"),
        )
        for inputs, jacobians in rows
    ]


def _blocks(posterior: Posterior, layers: str) -> list[Float[np.ndarray, "input output"]]:
    """Prior standard deviations of an MLP, a matrix per layer whose last row is the bias."""
    template = posterior.model.template(posterior.data).network
    shapes = [(layer.kernel.shape[0] + 1, layer.kernel.shape[1]) for layer in template]
    shapes = shapes[-1:] if layers == "last" else shapes
    ends = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
    parts = np.split(prior_stds(posterior, layers), ends)
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _require_mlp(model: BayesianModel, wanted: str) -> None:
    """Refuse a network whose layers are unknown."""
    if not isinstance(model.network, MLP):
        raise InputError(
            f"{wanted} needs the layers of an MLP, got {model.network}: use structure='full' or "
            "'diagonal' with layers='all'."
        )


def _eigen(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, rounding errors below zero removed, and eigenvectors."""
    values, vectors = np.linalg.eigh(matrix)
    return np.maximum(values, 0.0), vectors


def _size(tree: Any) -> int:
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(tree))
