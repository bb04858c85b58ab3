"""Variational inference: the Gaussian nearest to the posterior, mean field or low rank.

Blundell, Cornebise, Kavukcuoglu & Wierstra, "Weight uncertainty in neural networks" (2015), with
the factor covariance of Ong, Nott & Smith, "Gaussian variational approximation with a factor
covariance structure" (2018). Nearest means the smallest KL(q || posterior): q settles in one mode,
and mean field is narrower than the posterior wherever weights depend on each other.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.adaptation.schedules import cosine_decay, rows_per_step
from credence.density.posterior import Position, Posterior
from credence.engine.driver import Driver
from credence.engine.plan import Plan
from credence.errors import InputError, require_positive
from credence.kernels.ascent.variational import LowRankNormal, check_samples, variational
from credence.kernels.base import Recipe
from credence.methods.base import Drawn, Method
from credence.methods.training import Training, train

ROUND = 50
"""Steps between changes of the learning rate, checkpoints and points of the loss's trace."""


@dataclass(frozen=True, kw_only=True)
class Variational(Method):
    """Maximise the evidence lower bound by Adam, then draw from q.

    The trace of minus the bound per data point is `loss` of the driver's phase "refine"; the scalar
    `elbo` of the ensemble is the bound in nats, averaged over the last tenth of the steps.

    Args:
        num_draws: independent draws of q.
        rank: of the covariance's low-rank part; 0 is mean field.
        num_steps: of Adam, rounded up to whole rounds of 50.
        num_samples: draws of q per step, even because they come in antithetic pairs.
        learning_rate: at the start; it falls to zero along half a cosine. In units of the weights.
        batch_size: rows per step; None uses all rows up to 1024 and 128 beyond.
        initial_std: of every weight at the start, in units of the weights.
        training: of the network where q is centred at the start.
    """

    name: ClassVar[str] = "variational"
    summary: ClassVar[str] = "nearest Gaussian, mean field or low rank (approximate)"
    sources: ClassVar[tuple[str, ...]] = (
        (
            'Blundell, Cornebise, Kavukcuoglu & Wierstra, "Weight uncertainty in neural '
            'networks" (2015)'
        ),
        (
            'Ong, Nott & Smith, "Gaussian variational approximation with a factor '
            'covariance structure" (2018)'
        ),
    )
    is_chain: ClassVar[bool] = False

    num_draws: int = 1000
    rank: int = 0
    num_steps: int = 5000
    num_samples: int = 8
    learning_rate: float = 0.01
    batch_size: int | None = None
    initial_std: float = 0.01
    training: Training = field(default=Training())

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(
            num_draws=self.num_draws,
            num_steps=self.num_steps,
            num_samples=self.num_samples,
            learning_rate=self.learning_rate,
            initial_std=self.initial_std,
            batch_size=self.batch_size,
        )
        if self.rank < 0:
            raise InputError(f"rank must be >= 0, got {self.rank}; 0 is mean field.")
        check_samples(self.num_samples)

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        if self.rank > posterior.num_weights:
            raise InputError(
                f"rank={self.rank} exceeds the {posterior.num_weights} weights: "
                f"use at most {posterior.num_weights}, which makes every covariance possible."
            )
        key_train, key_start, key_fit, key_draw = jax.random.split(key, 4)
        start = train(key_train, posterior, driver, 1, self.training, budget_share=0.25)
        num_rounds = -(-self.num_steps // ROUND)
        plan = Plan(
            Recipe(
                variational,
                posterior.log_density,
                (("num_samples", self.num_samples), ("rank", self.rank)),
            ),
            "refine",
            cosine_decay(self.learning_rate, num_rounds),
            num_steps=num_rounds * ROUND,
            thinning=ROUND,
            block_steps=ROUND,
            batch_size=rows_per_step(self.batch_size, posterior.num_points),
            keep_draws=False,
            may_stop_early=True,
        )
        first = _narrow(key_start, start.positions[0], self.initial_std, rank=self.rank)
        fit = driver.phase("refine", key_fit, plan, first[None], posterior.data)
        draws = _draw(key_draw, fit.positions[0], rank=self.rank, num_draws=self.num_draws)
        last = fit.info["loss"][0, -max(1, num_rounds // 10) :]
        elbo = -np.mean(last) * float(np.sum(posterior.data.weight))
        return Drawn(draws[None], {"elbo": np.full((1, self.num_draws), elbo)})


@partial(jax.jit, static_argnames="rank")
def _narrow(
    key: PRNGKeyArray, mean: Position, std: float | Float[Array, ""], *, rank: int
) -> Float[Array, " parameter"]:
    return LowRankNormal.near(key, mean, std, rank).ravel()


@partial(jax.jit, static_argnames=("rank", "num_draws"))
def _draw(
    key: PRNGKeyArray, position: Float[Array, " parameter"], *, rank: int, num_draws: int
) -> Float[Array, "draw weight"]:
    q = LowRankNormal.unravel(position, rank)
    noise = jax.random.normal(key, (num_draws, sum(q.factor.shape)), position.dtype)
    return q.draws(noise)
