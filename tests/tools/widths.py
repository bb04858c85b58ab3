"""Laws of widths and weights with exact draws, and scores of draws that should follow them.

Two of them: the prior of a network, and Legendre regression with an unknown number of terms, whose
coefficients and evidence are known in closed form.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.polynomial import legendre
from scipy import stats

from credence.density.data import Data
from credence.density.posterior import BayesianModel
from credence.kernels.mcmc.hmc import leapfrogs
from credence.methods.transdimensional.active_neurons import (
    activity,
    largest_widths,
    only_active,
)
from credence.methods.transdimensional.moves.base import Move, Proposal, jump
from credence.methods.transdimensional.moves.by_name import build_move
from credence.methods.transdimensional.size_priors import DepthPrior, WidthPrior
from credence.methods.transdimensional.target import Point, VariableWidth
from credence.models import MLP, Gaussian, Layer, Normal
from credence.models.networks.variable_depth import VariableDepthMLP
from credence.models.priors import normal_sample

jitted = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 1})
"""Compiled in half the time: these programs run for a second."""

Ratio = Callable[[Any, Any], Any]


def network_target(
    *,
    largest: tuple[int, ...] = (16,),
    prior: Any = None,
    likelihood: Any = None,
    width_prior: WidthPrior | None = None,
    depth_prior: DepthPrior | None = None,
    num_outputs: int = 1,
    activation: str = "tanh",
) -> VariableWidth:
    """Networks of one to `largest` neurons, N(0, 1) weights unless said otherwise.

    With a prior over the depth, of one to len(largest) hidden layers.
    """
    prior = prior or Gaussian(scaling="unit")
    kind = MLP if depth_prior is None else VariableDepthMLP
    network = kind(num_outputs, largest, activation)
    model = BayesianModel(network, prior, likelihood or Normal(noise_std=0.3))
    return VariableWidth(model, width_prior or WidthPrior(), depth_prior)


def no_data(num_outputs: int = 1) -> Data:
    """Rows that do not count: the posterior is the prior."""
    return Data(jnp.ones((3, 2)), jnp.zeros((3, num_outputs)), jnp.zeros(3))


def prior_point(key: PRNGKeyArray, target: VariableWidth, data: Data) -> Point:
    """An exact draw of depth, widths, then weights."""
    key_depth, key_widths, key_weights = jax.random.split(key, 3)
    params = target.model.sample_prior(key_weights, data)
    layers = params.network
    widths = jnp.stack(
        [
            jax.random.categorical(key, target.log_width_probs(layers, layer))
            for layer, key in enumerate(jax.random.split(key_widths, len(layers) - 1))
        ]
    ).astype(jnp.int32)
    if target.depth_prior is not None:
        depth = jax.random.categorical(key_depth, target.log_depth_probs(layers))
        widths = jnp.where(jnp.arange(len(widths)) < depth, widths, 0)
    draws = normal_sample(key_weights, layers, target.stds(params, widths))
    params = params._replace(network=only_active(draws, widths))
    return Point(params, widths, target.log_likelihood(params, data))


@partial(jax.jit, static_argnames=("target", "num"))
def prior_points(key: PRNGKeyArray, target: VariableWidth, data: Data, num: int) -> Point:
    """Independent exact draws, leaves (chain, ...)."""
    return jax.vmap(lambda key: prior_point(key, target, data))(jax.random.split(key, num))


class Legendre(NamedTuple):
    """A network whose neuron j is the Legendre polynomial of order j for any hidden weights."""

    num_outputs: int
    largest: int

    def init(self, key: PRNGKeyArray, x: Float[Array, "point 1"]) -> tuple[Layer, ...]:
        shapes = ((1, self.largest), (self.largest, 1))
        return tuple(Layer(jnp.zeros(shape), jnp.zeros(shape[1])) for shape in shapes)

    def apply(self, params: Any, x: Float[Array, "point 1"]) -> Float[Array, "point output"]:
        return legendre_features(x, self.largest) @ params[-1].kernel + params[-1].bias

    def fan_in(self, params: Any) -> Any:
        return (Layer(1, 0), Layer(self.largest, 0))  # type: ignore[arg-type]


def legendre_features(x: Float[Array, "point 1"], count: int) -> Float[Array, "point term"]:
    """P_0, ..., P_{count - 1}, by Bonnet's recursion."""
    z = x[:, 0]
    terms = [jnp.ones_like(z), z]
    for order in range(1, count - 1):
        terms.append(((2 * order + 1) * z * terms[-1] - order * terms[-2]) / (order + 1))
    return jnp.stack(terms[:count], axis=-1)


@dataclass(frozen=True)
class OrderedWidth(VariableWidth):
    """Neurons are told apart: the last one is born and dies."""

    @property
    def is_ordered(self) -> bool:
        return True


class Toy(NamedTuple):
    """Regression on 1 to `largest` Legendre polynomials, coefficients N(0, 1), noise known."""

    x: Float[np.ndarray, "point 1"]
    y: Float[np.ndarray, " point"]
    noise_std: float = 0.3
    largest: int = 6

    @property
    def target(self) -> VariableWidth:
        """The output bias exists, but with a prior that pins it to zero."""
        prior = Gaussian(scaling="unit", bias_std=1e-6)
        model = BayesianModel(Legendre(1, self.largest), prior, Normal(noise_std=self.noise_std))
        return OrderedWidth(model, WidthPrior())

    @property
    def data(self) -> Data:
        return Data(jnp.asarray(self.x), jnp.asarray(self.y[:, None]), jnp.ones(len(self.y)))

    def features(self, k: int) -> Float[np.ndarray, "point term"]:
        return legendre.legvander(self.x[:, 0], k - 1)

    def solve(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of the coefficients of k terms."""
        features = self.features(k)
        covariance = np.linalg.inv(np.eye(k) + features.T @ features / self.noise_std**2)
        return covariance @ features.T @ self.y / self.noise_std**2, covariance

    @property
    def widths(self) -> np.ndarray:
        return np.arange(1, self.largest + 1)

    def probabilities(self) -> Float[np.ndarray, " width"]:
        """p(k | data), k = 1, ..., largest."""
        noise = self.noise_std**2 * np.eye(len(self.y))
        log_evidence = np.array(
            [
                stats.multivariate_normal.logpdf(self.y, cov=noise + f @ f.T)
                for f in map(self.features, self.widths)
            ]
        )
        probability = np.exp(log_evidence - log_evidence.max())
        return probability / probability.sum()

    def mean_log_likelihood(self) -> float:
        """Mean of the log likelihood under the posterior."""
        count = len(self.y)
        found = []
        for k in self.widths:
            features = self.features(k)
            mean, covariance = self.solve(k)
            squares = np.sum((self.y - features @ mean) ** 2)
            squares += np.trace(features @ covariance @ features.T)
            found.append(-0.5 * squares / self.noise_std**2)
        constant = -0.5 * count * np.log(2 * np.pi * self.noise_std**2)
        return float(self.probabilities() @ np.array(found) + constant)

    def points(self, seed: int, num: int, width: int | None = None) -> Point:
        """Exact draws from the posterior, or given a width."""
        rng = np.random.default_rng(seed)
        k = rng.choice(self.widths, size=num, p=self.probabilities())
        k = k if width is None else np.full(num, width)
        coefficients = np.zeros((num, self.largest, 1))
        for value in np.unique(k):
            mean, covariance = self.solve(value)
            rows = k == value
            draws = rng.multivariate_normal(mean, covariance, size=rows.sum())
            coefficients[rows, :value, 0] = draws
        hidden = (
            rng.normal(size=(num, 1, self.largest)),
            1e-6 * rng.normal(size=(num, self.largest)),
        )
        layers = (
            Layer(jnp.asarray(hidden[0]), jnp.asarray(hidden[1])),
            Layer(jnp.asarray(coefficients), jnp.zeros((num, 1))),
        )
        widths = jnp.asarray(k[:, None], jnp.int32)
        return points_of(self.target, layers, widths, self.data)


@partial(jax.jit, static_argnames="target")
def points_of(target: VariableWidth, layers: Any, widths: Any, data: Data) -> Point:
    """Points of weights in all slots, leaves (chain, ...)."""
    template = target.model.template(data)

    def one(layers: Any, widths: Any) -> Point:
        params = template._replace(network=only_active(layers, widths))
        return Point(params, widths, target.log_likelihood(params, data))

    return jax.vmap(one)(layers, widths)


def toy() -> Toy:
    """20 points of a weak cubic: from 2 to 54 % for each number of terms."""
    x = np.linspace(-1, 1, 20)
    curve = 0.15 * (1 - x + legendre.legval(x, [0, 0, 0, 1]))
    return Toy(x[:, None], curve + 0.3 * np.random.default_rng(0).normal(size=20))


SETTINGS: dict[str, Any] = {"num_temperatures": 4, "num_integration_steps": 3}


def move_of(name: str, target: VariableWidth, data: Data, layer: int = 0, **settings: Any) -> Move:
    """A move with Hamiltonian steps that suit weights of standard deviation 1 (biases: theirs)."""
    tuning = tuning_of(target, data, step_size=settings.pop("step_size", 0.15))
    return build_move(name, target, layer, tuning=tuning, settings=SETTINGS | settings)


def tuning_of(target: VariableWidth, data: Data, *, step_size: float = 0.15) -> dict[str, Any]:
    """Step size and inverse mass of Hamiltonian steps: the prior's variances, and 1 for others."""
    params = jax.tree.map(
        lambda leaf: jnp.ones(leaf.shape, leaf.dtype), target.model.template(data)
    )
    room = jnp.asarray(largest_widths(params.network))
    variances = target.prior_variances(params, room)
    inverse_mass = ravel_pytree(params._replace(network=variances))[0]
    return {"step_size": step_size, "inverse_mass": inverse_mass}


def hamiltonian(
    target: VariableWidth, point: Point, key: PRNGKeyArray, data: Data, *, inverse_mass: Any,
    step_size: float = 0.15, num_steps: int = 5,
) -> Point:  # fmt: skip
    """A step of the weights at fixed widths, exact."""
    key_refresh, key_step = jax.random.split(key)
    full = target.refreshed(key_refresh, point.params, point.widths)
    start, unravel = ravel_pytree(full)
    kernel = leapfrogs(
        lambda position, data: target.log_density(unravel(position), point.widths, data),
        step_size=step_size,
        inverse_mass=inverse_mass,
        num_integration_steps=num_steps,
    )
    state, _ = kernel.step(key_step, kernel.init(start, data), data)
    params = unravel(state.position)
    params = params._replace(network=only_active(params.network, point.widths))
    return Point(params, point.widths, target.log_likelihood(params, data))


def with_error(move: Move, birth: Ratio | None = None, death: Ratio | None = None) -> Move:
    """Planted: what the log ratio of a birth or a death has too much, given widths and proposal."""
    zero: Ratio = lambda width, proposal: 0.0  # noqa: E731

    def wrong(propose: Any, error: Ratio) -> Any:
        def changed(key: Any, point: Point, data: Data) -> Proposal:
            proposal = propose(key, point, data)
            extra = error(point.widths[move.layer], proposal)
            return proposal._replace(log_ratio=proposal.log_ratio + extra)

        return changed

    return move._replace(
        birth=wrong(move.birth, birth or zero), death=wrong(move.death, death or zero)
    )


def always(move: Move, target: VariableWidth) -> Any:
    """A jump whose proposal is accepted whatever its ratio."""
    huge: Ratio = lambda width, proposal: 1e6 - proposal.log_ratio  # noqa: E731
    return partial(jump, target=target, move=with_error(move, huge, huge))


def balance_z(probabilities: Float[np.ndarray, "2"], rates: tuple[np.ndarray, np.ndarray]) -> float:
    """Flow up between two neighbours less flow down, in standard errors.

    Args:
        probabilities: of the two.
        rates: min(1, R) of births from the lower and of deaths from the upper, at exact draws.
    """
    up, down = (p * rate for p, rate in zip(probabilities, rates, strict=True))
    error = np.hypot(up.std(), down.std()) / len(up) ** 0.5
    return float(abs(up.mean() - down.mean()) / max(error, 1e-12))  # collapsed rates are constants


def check_flows(
    probabilities: Float[np.ndarray, "2"], rates: tuple[np.ndarray, np.ndarray], name: str
) -> None:
    """Check that rates are in balance, none above its ceiling; arguments as of `balance_z`."""
    ratio = probabilities[1] / probabilities[0]
    for each, ceiling in zip(rates, (min(1, ratio), min(1, 1 / ratio)), strict=True):
        assert each.mean() < ceiling + 4.5 * each.std() / len(each) ** 0.5 + 1e-9
    z = balance_z(probabilities, rates)
    print(f"{name}: up {rates[0].mean():.3f} down {rates[1].mean():.3f} z {z:.1f}")
    assert z < 4.5


def in_chunks(chain: Any, *arguments: Any) -> Any:
    """jax.vmap over many chains, as many at a time as stay in the cache."""
    return jax.lax.map(lambda each: chain(*each), arguments, batch_size=500)


def chi_squared(counts: np.ndarray, probabilities: np.ndarray) -> tuple[float, float]:
    """Statistic and p-value of counts against exact probabilities."""
    found = stats.chisquare(counts, counts.sum() * probabilities)
    return float(found.statistic), float(found.pvalue)


def count_widths(widths: Any, largest: int) -> np.ndarray:
    """How many chains are at 1, ..., largest neurons."""
    return np.bincount(np.asarray(widths).ravel(), minlength=largest + 1)[1:]


def prior_scores(target: VariableWidth, points: Point) -> dict[str, float]:
    """z-scores of the active weights against the prior: squares by array, and means by array."""
    mask = jax.vmap(activity)(points.params.network, points.widths)
    stds = jax.vmap(target.stds)(points.params, points.widths)
    scores, everything = {}, []
    for name, values in _leaves(points.params.network, stds, mask):
        scores[f"{name} square"] = (np.sum(values**2) - len(values)) / (2 * len(values)) ** 0.5
        scores[f"{name} mean"] = np.sum(values) / len(values) ** 0.5
        everything.append(values**2)
    squares = np.concatenate(everything)
    scores["square"] = (squares.sum() - squares.size) / (2 * squares.size) ** 0.5
    return scores


def _leaves(layers: Any, stds: Any, mask: Any) -> Any:
    paths = jax.tree_util.tree_leaves_with_path(layers)
    for (path, leaf), std, active in zip(
        paths, jax.tree.leaves(stds), jax.tree.leaves(mask), strict=True
    ):
        std = np.asarray(std)
        std = std.reshape(std.shape + (1,) * (leaf.ndim - std.ndim))
        whitened = np.asarray(leaf) / std
        yield jax.tree_util.keystr(path), whitened[np.asarray(active)]
