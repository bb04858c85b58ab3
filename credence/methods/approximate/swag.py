"""SWAG: a Gaussian fitted to the path of stochastic gradient descent.

Maddox, Izmailov, Garipov, Vetrov & Wilson, "A simple baseline for Bayesian uncertainty in deep
learning" (2019), Algorithm 1. From a trained network, SGD with momentum and a constant learning
rate wanders around; its weights after every epoch (snapshots) have

    mean, variance (of every weight), D = last `rank` deviations from the running mean

and a draw is  w = mean + sqrt(variance / 2) z + D' z' / sqrt(2 (rank - 1)),  z, z' ~ N(0, I);
with rank 0 (SWAG-diagonal) w = mean + sqrt(variance) z.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import BayesianModel, Position, Posterior, flat_log_likelihood
from credence.engine.driver import Driver
from credence.engine.phases import fixed
from credence.engine.plan import Plan
from credence.errors import InputError, require_positive
from credence.kernels.ascent.optimizer import sgd
from credence.kernels.base import Recipe
from credence.methods.base import Drawn, Method
from credence.methods.training import Training, train
from credence.spacing import evenly_spaced

ROUND = 5
"""Epochs between checkpoints."""

CURVATURE_ROWS = 128
"""Rows on which the learning rate's curvature is measured."""

HALF_CONTRACTION = 1.9611
"""Solves b - tanh(b) = 1; see `matched_learning_rate`."""


@dataclass(frozen=True, kw_only=True)
class SWAG(Method):
    """Stochastic weight averaging, Gaussian.

    Args:
        num_draws: independent draws of the Gaussian.
        rank: deviations that make the covariance's low-rank part; 0 is SWAG-diagonal.
        num_snapshots: epochs of SGD whose last weights are kept.
        num_warmup: epochs of SGD before.
        learning_rate: of SGD, for the log posterior PER DATA POINT, in squared units of the
            weights. None takes `matched_learning_rate`, which follows the size and noise of any
            data.
        momentum: of SGD, in [0, 1).
        batch_size: rows per step, fewer than there are; None uses a tenth of the rows, at most 128.
        training: of the network where SGD starts.
    """

    name: ClassVar[str] = "swag"
    summary: ClassVar[str] = "Gaussian fitted to the path of SGD (approximate)"
    sources: ClassVar[tuple[str, ...]] = (
        (
            'Maddox, Izmailov, Garipov, Vetrov & Wilson, "A simple baseline for Bayesian '
            'uncertainty in deep learning" (2019)'
        ),
    )
    is_chain: ClassVar[bool] = False

    num_draws: int = 1000
    rank: int = 20
    num_snapshots: int = 100
    num_warmup: int = 20
    learning_rate: float | None = None
    momentum: float = 0.9
    batch_size: int | None = None
    training: Training = field(default=Training())

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(
            num_draws=self.num_draws,
            num_warmup=self.num_warmup,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
        )
        if not 0 <= self.momentum < 1:
            raise InputError(f"momentum must be in [0, 1), got {self.momentum}; 0.9 is usual.")
        if self.rank < 0 or self.rank == 1:
            raise InputError(
                f"rank must be 0 (diagonal) or at least 2, got {self.rank}: one deviation has no "
                "covariance; 20 is usual."
            )
        if self.num_snapshots < max(2, self.rank):
            raise InputError(
                f"num_snapshots must be at least 2 and at least rank={self.rank}, got "
                f"{self.num_snapshots}."
            )

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        batch_size = self._rows_per_step(posterior.num_points)
        key_train, key_rate, key_warmup, key_sample, key_draw = jax.random.split(key, 5)
        start = train(key_train, posterior, driver, 1, self.training, budget_share=0.25)
        learning_rate = self.learning_rate or float(
            matched_learning_rate(
                key_rate,
                start.positions[0],
                spaced_rows(posterior.data, CURVATURE_ROWS),
                batch_size / float(np.sum(posterior.data.weight)),
                self.momentum,
                model=posterior.model,
            )
        )
        steps_per_epoch = -(-posterior.num_points // batch_size)
        plan = Plan(
            Recipe(sgd, posterior.log_density),
            "warmup",
            fixed(learning_rate=np.float32(learning_rate), momentum=np.float32(self.momentum)),
            num_steps=self.num_warmup * steps_per_epoch,
            thinning=steps_per_epoch,
            block_steps=ROUND * steps_per_epoch,
            batch_size=batch_size,
            keep_draws=False,
            budget_share=0.5,
        )
        data = posterior.data
        warm = driver.phase("warmup", key_warmup, plan, start.positions, data)
        plan = plan.sampling(warm.memory, num_draws=self.num_snapshots)
        path = driver.phase("sample", key_sample, plan, warm.positions, data)
        refuse_divergence(learning_rate, warm.info["is_finite"], path.info["is_finite"])
        draws = draw(key_draw, summarise(path.draws[0], self.rank), num_draws=self.num_draws)
        return Drawn(draws[None], {})

    def _rows_per_step(self, num_points: int) -> int:
        """Rows per step.

        Raises:
            InputError: where these are all rows, so that gradients have no noise.
        """
        batch_size = self.batch_size or min(128, max(1, num_points // 10))
        if batch_size >= num_points:
            raise InputError(
                f"swag lives on the noise of minibatches, but batch_size={batch_size} takes all "
                f"{num_points} rows at every step: use fewer, or another method."
            )
        return batch_size


class Moments(NamedTuple):
    """What is kept of the snapshots."""

    mean: Float[Array, " weight"]
    variance: Float[Array, " weight"]
    deviations: Float[Array, "rank weight"]
    """Deviations of the last snapshots from the mean of all up to them; none for SWAG-diagonal."""


def summarise(snapshots: Float[np.ndarray, "snapshot weight"], rank: int) -> Moments:
    """Moments of the path, as in the paper: variances have the denominator `snapshot`."""
    path = np.asarray(snapshots, np.float64)
    running_mean = np.cumsum(path, axis=0) / np.arange(1, len(path) + 1)[:, None]
    deviations = (path - running_mean)[len(path) - min(rank, len(path)) :]
    moments = (running_mean[-1], path.var(axis=0), deviations)
    return Moments(*(jnp.asarray(leaf, snapshots.dtype) for leaf in moments))


@partial(jax.jit, static_argnames="num_draws")
def draw(key: PRNGKeyArray, moments: Moments, *, num_draws: int) -> Float[Array, "draw weight"]:
    """Independent draws of the Gaussian with these moments; see the module's docstring."""
    key_own, key_shared = jax.random.split(key)
    mean, variance, deviations = moments
    rank = len(deviations)
    own = jax.random.normal(key_own, (num_draws, len(mean)), mean.dtype)
    if rank == 0:
        return mean + jnp.sqrt(variance) * own
    shared = jax.random.normal(key_shared, (num_draws, rank), mean.dtype)
    low_rank = shared @ deviations / jnp.sqrt(2 * (rank - 1))
    return mean + jnp.sqrt(variance / 2) * own + low_rank


@partial(jax.jit, static_argnames="model")
def matched_learning_rate(
    key: PRNGKeyArray,
    position: Position,
    data: Data,
    batch_share: float | Float[Array, ""],
    momentum: float | Float[Array, ""],
    *,
    model: BayesianModel,
) -> Float[Array, ""]:
    """The rate at which SGD spreads about as widely as the posterior, where the data decide.

    Take a quadratic with curvature c per data point, and gradient noise of variance c per row (true
    of a well-specified model, whose Fisher information is its curvature). SGD with rate h and
    momentum m contracts by the factor exp(-a) per epoch, a = h c num_points / ((1 - m) batch_size),
    and with independent minibatches has a / 2 times the posterior's variance 1 / (num_points c)
    (Mandt, Hoffman & Blei, "Stochastic gradient descent as approximate Bayesian inference", 2017).
    Shuffled epochs make the noise a Brownian bridge, which takes the factor 1 - tanh(a/2) / (a/2)
    off at the end of an epoch. So the variances agree where a/2 - tanh(a/2) = 1:

        h = 2 b (1 - m) (batch_size / num_points) / c,    b = 1.9611

    c is the mean curvature tr(F^2) / tr(F), weighted by itself, of the Fisher information F per
    data point: from targets that the network itself draws, so that it vanishes for no residuals.
    With few rows c comes out too large by tr(F) / rows, which is the safe side.

    Args:
        position: of a trained network.
        data: rows to measure the curvature on.
        batch_share: rows of a step / observations of all rows.
        momentum: in [0, 1).
    Returns:
        In squared units of the weights, for the log posterior per data point.
    """
    params = model.unravel(position, data)
    simulated = data._replace(y=model.simulate(key, params, data.x))

    def score(row: Data) -> Float[Array, " weight"]:
        one = jax.tree.map(lambda leaf: leaf[None], row._replace(weight=jnp.ones(())))
        return jax.grad(flat_log_likelihood(model))(position, one)

    scores = jax.lax.map(score, simulated, batch_size=16)
    gram = scores @ scores.T / len(scores)
    curvature = jnp.sum(gram**2) / jnp.trace(gram)
    return 2 * HALF_CONTRACTION * (1 - momentum) * batch_share / curvature


def spaced_rows(data: Data, num_rows: int) -> Data:
    """Return at most num_rows rows, evenly spaced."""
    index = evenly_spaced(data.x.shape[0], num_rows)
    return jax.tree.map(lambda leaf: leaf[index], data)


def refuse_divergence(learning_rate: float, *is_finite: np.ndarray) -> None:
    """Refuse a path with steps that were not finite.

    Raises:
        InputError: if there is one.
    """
    if not all(np.all(flags == 1) for flags in is_finite):
        raise InputError(
            f"SGD diverged with learning_rate={learning_rate:.3g} per data point: pass a tenth."
        )
