"""A neural network that emulates a neural network's outputs, or their likelihood."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.data import Data, like, rows_at
from credence.density.posterior import BayesianModel, Position, Posterior, shapes
from credence.engine.driver import Driver
from credence.errors import InputError, check_name, refuse_unread, require_positive
from credence.kernels.ascent.dropout import dropout, masked_log_density
from credence.kernels.base import Recipe
from credence.methods.surrogate.emulators.base import CUT_SHORT, Emulated, Emulator, Points
from credence.methods.surrogate.emulators.components import Basis, principal_components
from credence.methods.surrogate.emulators.published_networks import published_settings
from credence.methods.training import Trained, Training, train
from credence.models.likelihoods.numbers import Normal
from credence.models.networks.mlp import MLP
from credence.models.priors import Gaussian

TARGETS = ("outputs", "log_likelihood")
MOST_NUMBERS = 250_000_000
"""Components times outputs of all rows: 1 GB in single precision."""
USUAL_COMPONENTS = 50
"""Components of the outputs, at most, where nobody says how many."""
FEWEST_COMPONENTS = 8
"""Components with which outputs are worth emulating."""
AT_A_TIME = 4_000_000
"""Draws times outputs of the rows that are in memory at a time: 32 MB in double precision."""
RESOLUTION = 0.05
"""Standard deviation, in those of the targets, to which the emulator is trained."""
MASKED = (0, 1)
"""Dropout masks the inputs and the first hidden layer, as published."""


@dataclass(frozen=True, kw_only=True)
class Network(Emulator):
    """A network from weights to outputs at all rows, or to the log likelihood.

    Moslemi, Meng, Lan & Shahbaba, "Scaling up Bayesian neural networks with neural networks"
    (2024), section 3.3. Outputs are emulated by their principal components over the calibration
    draws: a last layer fitted by least squares could say no more, since it lies in the span of the
    draws' outputs. With r neurons in the first layer the emulated posterior equals the prior in all
    but r directions: expect little where weights are many. `Network.published(dataset)` has the
    settings that the paper gives.

    Args:
        target: "outputs", as published, of which memory must hold as many numbers as there are rows
            times components; or "log_likelihood".
        hidden, activation: widths of the emulator, and one of `models.ACTIVATIONS`.
        dropout: rate at which its inputs and first hidden layer are masked in training.
        num_components: of the outputs, at most; what they leave out is said. None is 50.
        per_chain: whether every chain has an emulator that its own draws teach, as published, or
            all have one.
        training: of the emulator, by default with early stopping on held-out draws.
    """

    needs_draws: ClassVar[bool] = True

    name: str = field(default="network", init=False)

    target: str = "outputs"
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    dropout: float = 0.0
    num_components: int | None = None
    per_chain: bool = False
    training: Training = field(default=Training(validation_fraction=0.2))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_name("target", self.target, TARGETS)
        require_positive(num_components=self.num_components)
        if self.target == "log_likelihood":
            refuse_unread(
                self, "of target='outputs' and nothing to 'log_likelihood'", "num_components"
            )
        MLP(1, self.hidden, self.activation)  # may refuse
        if not 0 <= self.dropout < 1 or (self.dropout and not self.hidden):
            raise InputError(
                f"dropout must be in [0, 1), of a network with hidden layers; got {self.dropout} "
                f"and hidden={self.hidden}."
            )

    @classmethod
    def published(cls, dataset: str) -> "Network":
        """The emulator that the FBNN paper gives for a data set, or that of its "public_code".

        Raises:
            InputError: for a data set that it was not made for.
        """
        return cls(**published_settings(dataset))

    def check(self, posterior: Posterior, num_draws: int) -> None:
        """Refuse more outputs than can be emulated; see `Emulator.check`."""
        num_outputs = _num_outputs(posterior)
        if self.target == "outputs" and num_outputs * FEWEST_COMPONENTS > MOST_NUMBERS:
            raise InputError(
                f"{FEWEST_COMPONENTS} components of {num_outputs:,} outputs are too many to "
                "emulate: use Network(target='log_likelihood'), or Coreset(), which sees a few "
                "inputs only."
            )

    def fit(
        self, key: PRNGKeyArray, points: Points, posterior: Posterior, data: Data, driver: Driver
    ) -> Emulated:
        """Train a network on the points, or one on those of every chain."""
        parts = [points]
        if self.per_chain:
            chains = range(len(points.positions))
            parts = [Points(*(each[i : i + 1] for each in points)) for i in chains]
        fitted = []
        for number, part in enumerate(parts):
            key_member = jax.random.fold_in(key, number)
            with driver.part(f"member {number}"):
                fitted.append(self._fit_one(key_member, part, posterior, data, driver, len(parts)))
        arrays = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[each.parts for each in fitted])
        network = MLP(arrays.components.shape[1], self.hidden, self.activation)
        likelihood = NetworkLikelihood(posterior.model, network, self.target)
        cut_short = [each.trained.num_epochs for each in fitted if not each.trained.is_whole]
        about = {CUT_SHORT: min(cut_short)} if cut_short else {}
        return Emulated(likelihood, arrays, fitted[0].flops, about)

    def _fit_one(
        self,
        key: PRNGKeyArray,
        points: Points,
        posterior: Posterior,
        data: Data,
        driver: Driver,
        num_members: int,
    ) -> "Fitted":
        """One network that has learnt."""
        flat = points.positions.reshape(-1, posterior.num_weights)
        mean, std = flat.mean(axis=0), np.maximum(flat.std(axis=0), 1e-6)
        first = rows_at(data, slice(1))
        kept = first
        if self.target == "log_likelihood":
            targets, basis = _likelihoods(points)
        else:
            room = max(1, MOST_NUMBERS // (num_members * _num_outputs(posterior)))
            most = min(room, self.num_components or USUAL_COMPONENTS)
            outputs = partial(_output_chunks, flat, data, posterior)
            targets, basis, missing = principal_components(outputs, most)
            driver.progress.say(
                f"{targets.shape[1]} components leave {missing:.2%} of the outputs' variance."
            )
            kept = data._replace(x=first.x)
        scale = max(float(targets.std()), 1e-12)
        network = MLP(targets.shape[1], self.hidden, self.activation)
        learning = Posterior(
            network,
            Gaussian(scaling="fan_in"),
            Normal(RESOLUTION),
            ((flat - mean) / std, targets / scale),
        )
        trained = self._trained(key, learning, driver)
        weights = learning.unravel(trained.positions[0]).network
        numbers = (mean, 1 / std, scale, basis.mean, basis.components)
        centre, inverse, unit, mean, rows = (np.asarray(each, flat.dtype) for each in numbers)
        parts = Parts(weights, centre, inverse, unit, mean, rows, kept)
        return Fitted(parts, 2.0 * (learning.num_weights + basis.components.size), trained)

    def _trained(self, key: PRNGKeyArray, learning: Posterior, driver: Driver) -> Trained:
        """Train the network."""
        masking: dict[str, Any] = {}
        if self.dropout:
            recipe = Recipe(dropout, masked_log_density(learning.model, MASKED))
            masking = {"recipe": recipe, "rate": np.float32(self.dropout)}
        return train(key, learning, driver, 1, self.training, **masking)


def _likelihoods(points: Points) -> tuple[Float[np.ndarray, "draw 1"], Basis]:
    """Log likelihoods as what is to be learnt."""
    values = points.log_likelihoods.reshape(-1, 1)
    average = values.mean(axis=0)
    return values - average, Basis(average, np.ones((1, 1)))


def _num_outputs(posterior: Posterior) -> int:
    """Rows times outputs."""
    return int(np.prod(shapes(posterior.model, like(posterior.data))[1].shape))


def _output_chunks(
    flat: Float[np.ndarray, "draw weight"], data: Data, posterior: Posterior
) -> Iterator[Float[np.ndarray, "draw output"]]:
    """The outputs of all draws at some rows at a time."""
    positions, num_rows = jnp.asarray(flat), posterior.num_points
    per_row = len(flat) * _num_outputs(posterior) // num_rows
    step = max(1, AT_A_TIME // per_row)
    for start in range(0, num_rows, step):
        rows = rows_at(data, slice(start, min(start + step, num_rows)))
        yield np.asarray(_outputs(positions, rows, model=posterior.model))


class Parts(NamedTuple):
    """Arrays of a fitted emulator; leaves (member, ...)."""

    weights: Any
    centre: Any
    inverse_std: Any
    scale: Any
    mean: Any
    components: Any
    data: Data
    """All targets with their weights, and the inputs of one row, which give the shapes."""


class Fitted(NamedTuple):
    """A network that has learnt."""

    parts: Parts
    flops: float
    """Operations of an evaluation."""
    trained: Trained


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
        outputs = emulated.reshape(len(data.y), -1)
        each = self.model.likelihood.log_prob(params.likelihood, outputs, data.y)
        anchor = 0.0 if data.anchor is None else data.anchor
        return jnp.dot(data.weight, each - anchor, precision="highest")


@partial(jax.jit, static_argnames="model")
def _outputs(
    positions: Float[Array, "draw weight"], data: Data, *, model: BayesianModel
) -> Float[Array, "draw output"]:
    def outputs(position: Position) -> Float[Array, " output"]:
        return model.network.apply(model.unravel(position, data).network, data.x).ravel()

    return jax.lax.map(outputs, positions)
