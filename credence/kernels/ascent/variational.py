"""Variational inference with Gaussians: one step of stochastic ascent on the evidence bound.

    ELBO(q) = E_q[log p(data, w)] + H(q) = log p(data) - KL(q || posterior)

The family is q = N(mean, S (I + L L') S) with S = diag(std) and L of shape (weight, rank), which is
diag(std^2) + F F' with F = S L: mean field for rank 0, every Gaussian for rank = weight. Gradients
are reparameterised (Kingma & Welling, "Auto-encoding variational Bayes", 2014): a draw is

    w = mean + S (z + L z'),    z ~ N(0, I_weight), z' ~ N(0, I_rank).

Draws come in antithetic pairs (z, z'), (-z, -z'): where the log density is quadratic, the gradient
for the mean has no noise at all. The entropy is exact. The low-rank family is that of Ong, Nott &
Smith, "Gaussian variational approximation with a factor covariance structure" (2018).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.errors import InputError
from credence.kernels.ascent.optimizer import Objective, ascend, clipped_adam
from credence.kernels.base import Kernel


class LowRankNormal(NamedTuple):
    """N(mean, S (I + factor factor') S) with S = diag(exp(log_std))."""

    mean: Float[Array, " weight"]
    log_std: Float[Array, " weight"]
    factor: Float[Array, "weight rank"]
    """Low-rank part in units of std; no columns for mean field."""

    def ravel(self) -> Float[Array, " parameter"]:
        """All parameters as one flat vector: what the kernel moves."""
        return jnp.concatenate([self.mean, self.log_std, self.factor.ravel()])

    @classmethod
    def unravel(cls, flat: Float[Array, " parameter"], rank: int) -> "LowRankNormal":
        """The inverse of `ravel`."""
        num_weights = flat.shape[0] // (2 + rank)
        mean, log_std, factor = jnp.split(flat, [num_weights, 2 * num_weights])
        return cls(mean, log_std, factor.reshape(num_weights, rank))

    @classmethod
    def near(
        cls,
        key: PRNGKeyArray,
        mean: Float[Array, " weight"],
        std: float | Float[Array, ""],
        rank: int,
    ) -> "LowRankNormal":
        """A narrow start; the factor is random, because at zero its gradient vanishes."""
        factor = jax.random.normal(key, (mean.shape[0], rank), mean.dtype)
        log_std = jnp.full_like(mean, jnp.log(std))
        return cls(mean, log_std, 0.1 * factor / max(rank, 1) ** 0.5)

    def draws(self, noise: Float[Array, "draw noise"]) -> Float[Array, "draw weight"]:
        """Draws from standard normal noise, weight + rank numbers each."""
        own, shared = jnp.split(noise, [self.mean.shape[0]], axis=1)
        return self.mean + jnp.exp(self.log_std) * (own + shared @ self.factor.T)

    def entropy(self) -> Float[Array, ""]:
        """The entropy in nats; log det(I + L L') = log det(I + L' L)."""
        num_weights, rank = self.factor.shape
        inner = jnp.eye(rank, dtype=self.factor.dtype) + self.factor.T @ self.factor
        log_det = 2 * jnp.sum(self.log_std) + jnp.linalg.slogdet(inner)[1]
        return 0.5 * (log_det + num_weights * jnp.log(2 * jnp.pi * jnp.e))


def check_samples(num_samples: int) -> None:
    """Refuse numbers of draws that are no pairs.

    Raises:
        InputError: unless the number is even and positive.
    """
    if num_samples < 1 or num_samples % 2:
        raise InputError(
            f"num_samples must be even, because draws come in pairs, got {num_samples}: use "
            f"{max(num_samples + 1, 2)}."
        )


def elbo(log_density: LogDensity, *, num_samples: int, rank: int) -> Objective:
    """Unbiased estimate of the evidence lower bound, in nats.

    Args:
        log_density: (position, data) -> log of prior times likelihood, not normalised over w.
        num_samples: draws of q, even, because they come in antithetic pairs.
        rank: of q.
    Returns:
        (key, parameters of q as a flat vector, data) -> estimate.
    Raises:
        InputError: for draws that are no pairs.
    """
    check_samples(num_samples)

    def estimate(key: PRNGKeyArray, position: Position, data: Data) -> Float[Array, ""]:
        q = LowRankNormal.unravel(position, rank)
        half = jax.random.normal(key, (num_samples // 2, sum(q.factor.shape)), position.dtype)
        weights = q.draws(jnp.concatenate([half, -half]))
        return jnp.mean(jax.vmap(log_density, (0, None))(weights, data)) + q.entropy()

    return estimate


def variational(
    log_density: LogDensity,
    *,
    learning_rate: float | Float[Array, ""],
    num_samples: int,
    rank: int,
) -> Kernel:
    """One Adam step on `elbo`; the position is that of q's parameters, `LowRankNormal.ravel`.

    q is N(mean, diagonal + low rank), and the bound is in nats: Kucukelbir et al., "Automatic
    differentiation variational inference" (2017).

    Args:
        log_density, num_samples, rank: see `elbo`.
        learning_rate: step in units of the weights (mean) and of 1 (log_std, factor).
    A non-finite update is refused: q stays, is_finite is False.
    """
    objective = elbo(log_density, num_samples=num_samples, rank=rank)
    return ascend(objective, clipped_adam(learning_rate), num_gradients=num_samples)
