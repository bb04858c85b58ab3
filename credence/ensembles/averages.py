"""Averages of predictions at rows that are known beforehand: what large ensembles leave behind.

Members are added one by one and forgotten, so that memory does not grow with their number. What is
left answers what averages can: means, variances, entropies, the log of the mean probability, and
R-hat of the plain kind. Quantiles, and predictions elsewhere, need the members.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp, xlogy
from jaxtyping import Array, Float

from credence.density.data import Data
from credence.density.posterior import BayesianModel, Posterior
from credence.ensembles.diagnostics.convergence import RHAT_LIMIT
from credence.ensembles.diagnostics.cost import Cost
from credence.ensembles.predictor import num_divergences
from credence.ensembles.provenance import Provenance
from credence.errors import InputError
from credence.models.likelihoods.labels import Classification
from credence.models.likelihoods.numbers import LocationScale

PATHS = ("error", "nll", "cloud_error", "cloud_nll")
"""What is kept of every draw: of the average so far, and of the chains' networks at that draw."""


class Averages(NamedTuple):
    """Averages over the draws so far."""

    num_draws: Float[Any, ""]
    mean: Float[Any, "chain point target"]
    """Noise-free predictions, or class probabilities."""
    squares: Float[Any, "chain point target"]
    """Sums of their squared deviations from the mean."""
    noise: Float[Any, "chain point quantity"]
    """Variances of the noise; of labels the entropy of a member's probabilities, in nats."""
    log_prob: Float[Any, " point"]
    """Log of the mean probability (density) of the truth, in nats; 0 where nobody gave one."""
    paths: Mapping[str, Float[Any, " draw"]]
    """Error (RMSE, or the share of wrong labels) and NLL draw by draw; NaN before their turn."""


@dataclass(frozen=True, eq=False)
class AverageStream:
    """Adds the predictions of each draw to `Averages`: a `credence.engine.streams.Stream`.

    Args:
        model: network, prior and likelihood.
        data: the rows at which predictions are averaged. Those of weight 1 count in the paths,
            the others, which come last, have weight 0. y holds zeros where there are no truths.
        has_truths: whether y are truths, as the network sees them.
    """

    model: BayesianModel
    data: Data
    has_truths: bool

    def start(self, num_chains: int, num_draws: int) -> Averages:
        """No draw yet."""
        position = jax.eval_shape(lambda: self._example())
        mean, noise, log_prob = jax.eval_shape(
            partial(_predicted, model=self.model), position, self.data
        )
        zeros = lambda like: np.zeros((num_chains, *like.shape), like.dtype)  # noqa: E731
        return Averages(
            np.zeros((), mean.dtype),
            zeros(mean),
            zeros(mean),
            zeros(noise),
            np.full(log_prob.shape, -np.inf, log_prob.dtype),
            {name: np.full(num_draws, np.nan, mean.dtype) for name in PATHS},
        )

    def add(self, kept: Averages, draws: Float[Array, "chain draw weight"]) -> Averages:
        """What is kept after these draws."""
        for index in range(draws.shape[1]):
            kept = _added(kept, draws[:, index], self.data, model=self.model)
        return kept

    def _example(self) -> Float[Array, " weight"]:
        from jax.flatten_util import ravel_pytree

        return ravel_pytree(self.model.init(jax.random.key(0), self.data))[0]


@dataclass(frozen=True, eq=False)
class AveragedPredictions:
    """What a run leaves that averaged its predictions and kept no network.

    Args:
        averages: at the rows that were given.
        model: of the networks.
        has_truths: whether `log_prob` means something, and `paths`, which are of all rows together
            and NaN for some of them.
        cost, provenance, scalars: as of `Ensemble`.
        others: the same at the other rows; None where none were given.
    """

    averages: Averages
    model: BayesianModel
    has_truths: bool
    cost: Cost
    provenance: Provenance
    scalars: Mapping[str, Float[np.ndarray, "chain draw"]]
    others: "AveragedPredictions | None" = None

    @property
    def is_chain(self) -> bool:
        """Whether draws form Markov chains: only those are averaged as they come."""
        return True

    @property
    def num_chains(self) -> int:
        """Number of chains."""
        return len(self.averages.mean)

    @property
    def num_divergences(self) -> int:
        """Draws at the end of a trajectory that diverged."""
        return num_divergences(self.scalars)

    @property
    def num_draws(self) -> int:
        """Draws per chain."""
        return int(self.averages.num_draws)

    def rows(self, start: int, stop: int | None = None) -> "AveragedPredictions":
        """The same of some of the rows, whose paths are not known.

        Args:
            start, stop: the first row, and the one after the last; None goes to the end.
        Raises:
            InputError: where there are no such rows.
        """
        number = len(self.averages.log_prob)
        if not 0 <= start < (number if stop is None else stop) <= number:
            raise InputError(f"There are {number} rows, and none from {start} to {stop}.")
        nothing = {name: np.full_like(path, np.nan) for name, path in self.averages.paths.items()}
        kept = parted(self.averages, start, stop)._replace(paths=nothing)
        return replace(self, averages=kept, others=None)

    def apart(self, number: int) -> "AveragedPredictions":
        """The same of the first rows, the remaining ones as its `others`."""
        others = replace(self.rows(number), has_truths=False)
        return replace(self, averages=parted(self.averages, 0, number), others=others)

    def mean(self) -> Float[np.ndarray, "point target"]:
        """Predictive mean; of labels the class probabilities."""
        return np.asarray(self.averages.mean, float).mean(axis=0)

    def epistemic_variance(self) -> Float[np.ndarray, "point target"]:
        """Variance of the noise-free prediction between members."""
        means = np.asarray(self.averages.mean, float)
        within = np.asarray(self.averages.squares, float).sum(axis=0)
        return within / (self.num_draws * self.num_chains) + means.var(axis=0)

    def std(self) -> Float[np.ndarray, "point target"]:
        """Predictive standard deviation, noise included (regression)."""
        if isinstance(self.model.likelihood, Classification):
            raise InputError("These are averages of class probabilities: use mean().")
        noise = np.asarray(self.averages.noise, float).mean(axis=0)
        return np.sqrt(noise + self.epistemic_variance())

    def entropy_aleatoric(self) -> Float[np.ndarray, " point"]:
        """Expected entropy of a member's probabilities, in nats (classification)."""
        if not isinstance(self.model.likelihood, Classification):
            raise InputError("These are averages of numbers: use std().")
        return np.asarray(self.averages.noise, float).mean(axis=0)[:, 0]

    def log_prob(self) -> Float[np.ndarray, " point"]:
        """Log of the predictive density (probability) of each row's truth, in nats."""
        if not self.has_truths:
            raise InputError("No truths were given: pass y to `run_averaged`.")
        return np.asarray(self.averages.log_prob, float)

    def max_rhat(self) -> float | None:
        """The largest R-hat of all noise-free predictions; None for one chain or draw.

        Gelman and Rubin's (1992), neither split nor rank-normalised, which need the draws.
        """
        num = self.num_draws
        if self.num_chains < 2 or num < 2:
            return None
        within = np.asarray(self.averages.squares, float).sum(axis=0) / (
            self.num_chains * (num - 1)
        )
        between = np.asarray(self.averages.mean, float).var(axis=0, ddof=1)
        changes = (within > 0) | (between > 0)
        if not changes.any():
            return None
        with np.errstate(divide="ignore"):
            found = np.sqrt((num - 1) / num + between[changes] / within[changes])
        return float(found.max())

    def verdict(self) -> tuple[bool | None, str]:
        """Whether chains have converged, and why: averages can show only that they have not."""
        if not np.isfinite(np.asarray(self.averages.mean)).all():
            return False, "Some averaged predictions are not finite: the chains have diverged."
        found = self.max_rhat()
        if found is None:
            return None, "One chain or draw shows nothing of convergence."
        said = f"R-hat of the averaged predictions is {found:.2f}"
        if found < RHAT_LIMIT:
            return None, f"{said}; the effective sample size is not known without the draws."
        return False, f"{said}, not below {RHAT_LIMIT:g}: draw more."


def parted(averages: Averages, start: int, stop: int | None = None) -> Averages:
    """The averages at some of the rows."""
    chosen = slice(start, stop)
    return averages._replace(
        mean=averages.mean[:, chosen],
        squares=averages.squares[:, chosen],
        noise=averages.noise[:, chosen],
        log_prob=averages.log_prob[chosen],
    )


def average_stream(
    posterior: Posterior,
    x: Float[Any, "point *feature"],
    y: Any,
    others: Float[Any, "other *input"] | None = None,
) -> AverageStream:
    """The stream of predictions at the rows of x, beside the truths y if there are any, and at the
    others after them.

    Raises:
        InputError: where x, y or others have another shape than the data of the fit.
    """
    data, likelihood = posterior.data, posterior.model.likelihood
    for name, inputs in (("x", x), ("others", others)):
        if inputs is not None:
            _check_inputs(name, inputs, data.x.shape[1:])
    target = np.shape(data.y)[1:]
    if y is None:
        truths = np.zeros((len(x), *target), data.y.dtype)
    else:
        truths = np.asarray(likelihood.checked_targets(y))
        if truths.shape != (len(x), *target):
            raise InputError(f"y has shape {np.shape(y)}, but x has {len(x)} rows.")
        if isinstance(likelihood, Classification):
            likelihood.check_known(truths, posterior.num_outputs)
    inputs, weight = jnp.asarray(x, data.x.dtype), jnp.ones(len(x), data.weight.dtype)
    if others is not None:
        inputs = jnp.concatenate([inputs, jnp.asarray(others, data.x.dtype)])
        weight = jnp.pad(weight, (0, len(others)))
        truths = np.concatenate([truths, np.zeros((len(others), *target), truths.dtype)])
    rows = Data(inputs, jnp.asarray(truths, data.y.dtype), weight)
    return AverageStream(posterior.model, rows, y is not None)


def _check_inputs(name: str, inputs: Float[Any, "point *feature"], shape: tuple[int, ...]) -> None:
    """Refuse rows of another shape than those of the fit, none, and numbers that are not finite."""
    if np.shape(inputs)[1:] != shape or len(inputs) == 0:
        raise InputError(f"{name} has shape {np.shape(inputs)}, but the fit saw rows of {shape}.")
    if not np.isfinite(inputs).all():
        raise InputError(f"{name} holds values that are not finite: drop these rows, or fill them.")


def _predicted(
    position: Float[Array, " weight"], data: Data, *, model: BayesianModel
) -> tuple[Float[Array, "point target"], Float[Array, "point quantity"], Float[Array, " point"]]:
    """Noise-free prediction, size of the noise, log probability of the truth, of one network."""
    params = model.unravel(position, data)
    outputs = model.outputs(params.network, data.x)
    likelihood = model.likelihood
    mean = likelihood.mean(params.likelihood, outputs)
    if isinstance(likelihood, LocationScale):
        noise = likelihood.variance(params.likelihood, outputs)
    else:
        noise = -jnp.sum(xlogy(mean, mean), axis=-1, keepdims=True)
    return mean, noise, likelihood.log_prob(params.likelihood, outputs, data.y)


@partial(jax.jit, static_argnames="model")
def _added(
    kept: Averages, positions: Float[Array, "chain weight"], data: Data, *, model: BayesianModel
) -> Averages:
    """Welford's update with one draw of every chain."""
    predicted = lambda position: _predicted(position, data, model=model)  # noqa: E731
    mean, noise, log_prob = jax.lax.map(predicted, positions)
    index, count = kept.num_draws.astype(int), kept.num_draws + 1
    moved = mean - kept.mean
    average = kept.mean + moved / count
    cloud = logsumexp(log_prob, axis=0) - jnp.log(len(positions))
    log_average = jnp.logaddexp(kept.log_prob + jnp.log(kept.num_draws), cloud) - jnp.log(count)
    found = {
        "error": _error(average.mean(axis=0), data),
        "nll": -_over_truths(log_average, data),
        "cloud_error": _error(mean.mean(axis=0), data),
        "cloud_nll": -_over_truths(cloud, data),
    }
    return Averages(
        count,
        average,
        kept.squares + moved * (mean - average),
        kept.noise + (noise - kept.noise) / count,
        log_average,
        {name: path.at[index].set(found[name]) for name, path in kept.paths.items()},
    )


def _error(mean: Float[Array, "point target"], data: Data) -> Float[Array, ""]:
    """Root mean square of the residuals; of labels the share of wrong ones."""
    if data.y.ndim == 1:
        return _over_truths(jnp.argmax(mean, axis=-1) != data.y, data)
    return jnp.sqrt(_over_truths(jnp.mean((mean - data.y) ** 2, axis=-1), data))


def _over_truths(values: Array, data: Data) -> Float[Array, ""]:
    """The mean over the rows that count; what the others have is not looked at."""
    counts = data.weight > 0
    return jnp.sum(jnp.where(counts, values, 0)) / jnp.sum(counts)
