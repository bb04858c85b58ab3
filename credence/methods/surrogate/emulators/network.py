"""A neural network that emulates a neural network's outputs, or their likelihood."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.posterior import (
    BayesianModel,
    Data,
    Position,
    Posterior,
    like,
    rows_at,
    shapes,
)
from credence.engine.driver import Driver
from credence.errors import InputError, check_name, check_numbers, require_positive
from credence.methods.surrogate.emulators.base import Emulated, Emulator, Points
from credence.methods.training import Training, train
from credence.models.likelihoods import Normal
from credence.models.networks.mlp import MLP
from credence.models.priors import Gaussian

TARGETS = ("outputs", "log_likelihood")
MOST_OUTPUTS = 50_000_000
"""Draws times outputs of all rows: 200 MB in single precision."""
RESOLUTION = 0.05
"""Standard deviation, in those of the targets, to which the emulator is trained."""


@dataclass(frozen=True, kw_only=True)
class Network(Emulator):
    """A network from weights to outputs at all rows, or to the log likelihood.

    Moslemi, Meng, Lan & Shahbaba, "Scaling up Bayesian neural networks with neural networks"
    (2024), section 3.3. Outputs are emulated by their principal components over the calibration
    draws: a last layer fitted by least squares could say no more, since it lies in the span of the
    draws' outputs. With r neurons in the first layer the emulated posterior equals the prior in all
    but r directions: expect little where weights are many.

    Args:
        target: "outputs", as published, whose number of rows times draws must fit memory; or
            "log_likelihood".
        hidden: widths of the emulator.
        num_components: of the outputs, at most; what they leave out is said.
        training: of the emulator, early stopping on held-out draws.
    """

    needs_draws: ClassVar[bool] = True

    name: str = field(default="network", init=False)

    target: str = "outputs"
    hidden: tuple[int, ...] = (64, 64)
    num_components: int = 50
    training: Training = field(default=Training(validation_fraction=0.2))

    def __post_init__(self) -> None:
        check_numbers(self)
        check_name("target", self.target, TARGETS)
        require_positive(num_components=self.num_components)

    def check(self, posterior: Posterior, num_draws: int) -> None:
        """Refuse more outputs than can be emulated; see `Emulator.check`."""
        num_outputs = int(np.prod(shapes(posterior.model, like(posterior.data))[1].shape))
        if self.target == "outputs" and num_outputs * num_draws > MOST_OUTPUTS:
            raise InputError(
                f"{num_draws:,} draws of {num_outputs:,} outputs are too many to emulate: use "
                "Network(target='log_likelihood'), or Coreset(), which sees a few inputs only."
            )

    def fit(
        self, key: PRNGKeyArray, points: Points, posterior: Posterior, data: Data, driver: Driver
    ) -> Emulated:
        """Train a network on the points."""
        model = posterior.model
        flat = points.positions.reshape(-1, posterior.num_weights)
        mean, std = flat.mean(axis=0), np.maximum(flat.std(axis=0), 1e-6)
        targets, basis = self._targets(points, jnp.asarray(flat), model, data, driver)
        scale = max(float(targets.std()), 1e-12)
        network = MLP(targets.shape[1], self.hidden)
        learning = Posterior(
            network,
            Gaussian(scaling="fan_in"),
            Normal(RESOLUTION),
            ((flat - mean) / std, targets / scale),
        )
        best = train(key, learning, driver, 1, self.training)
        weights = learning.unravel(best.positions[0]).network
        kept = data if self.target == "outputs" else rows_at(data, slice(1))
        dtype = flat.dtype
        parts = Parts(
            weights, mean, 1 / std, np.asarray(scale, dtype), basis.mean, basis.components, kept
        )
        arrays = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], parts)
        flops = 2.0 * (learning.num_weights + basis.components.size)
        return Emulated(NetworkLikelihood(model, network, self.target), arrays, flops)

    def _targets(
        self, points: Points, flat: Any, model: BayesianModel, data: Data, driver: Driver
    ) -> tuple[Float[np.ndarray, "draw target"], "Basis"]:
        """What the network learns, and how it is turned into outputs."""
        dtype = np.asarray(flat).dtype
        if self.target == "log_likelihood":
            values = points.log_likelihoods.reshape(-1, 1)
            average = values.mean(axis=0)
            return values - average, Basis(average.astype(dtype), np.ones((1, 1), dtype))
        outputs = np.asarray(_all_outputs(flat, data, model=model), float)
        average = outputs.mean(axis=0)
        left, sizes, right = np.linalg.svd(outputs - average, full_matrices=False)
        kept = min(self.num_components, len(flat) - 1)
        missing = np.sum(sizes[kept:] ** 2) / max(np.sum(sizes**2), 1e-300)
        driver.progress.say(f"{kept} components leave {missing:.2%} of the outputs' variance.")
        return left[:, :kept] * sizes[:kept], Basis(
            average.astype(dtype), right[:kept].astype(dtype)
        )


class Basis(NamedTuple):
    """outputs = mean + targets @ components, rows times outputs flattened."""

    mean: Float[np.ndarray, " output"]
    components: Float[np.ndarray, "target output"]


class Parts(NamedTuple):
    """Arrays of a fitted emulator; leaves (member, ...)."""

    weights: Any
    centre: Any
    inverse_std: Any
    scale: Any
    mean: Any
    components: Any
    data: Data


@dataclass(frozen=True)
class NetworkLikelihood:
    """Log likelihood by an emulator's outputs, or by the emulator itself."""

    model: BayesianModel
    network: MLP
    target: str

    def __call__(self, position: Position, parts: Parts) -> Float[Array, ""]:
        inputs = (position - parts.centre) * parts.inverse_std
        found = parts.scale * self.network.apply(parts.weights, inputs[None])[0]
        emulated = parts.mean + found @ parts.components
        if self.target == "log_likelihood":
            return emulated[0]
        data = parts.data
        params = self.model.unravel(position, data)
        outputs = emulated.reshape(len(data.x), -1)
        each = self.model.likelihood.log_prob(params.likelihood, outputs, data.y)
        anchor = 0.0 if data.anchor is None else data.anchor
        return jnp.dot(data.weight, each - anchor, precision="highest")


def _outputs(position: Position, data: Data, *, model: BayesianModel) -> Float[Array, " output"]:
    return model.network.apply(model.unravel(position, data).network, data.x).ravel()


@partial(jax.jit, static_argnames="model")
def _all_outputs(
    positions: Float[Array, "draw weight"], data: Data, *, model: BayesianModel
) -> Float[Array, "draw output"]:
    return jax.lax.map(lambda position: _outputs(position, data, model=model), positions)
