"""Choices of an agent that takes the best action by values it sees through noise.

Inverse reinforcement learning: Sell & Singh, "Trace-class Gaussian priors for Bayesian learning of
neural networks with MCMC" (2023); Chada, Jasra, Law & Singh, eqs (5.2)-(5.3). The probability of a
choice is an integral over one variable, done by Gauss-Hermite quadrature around its mode.
"""

from dataclasses import dataclass
from math import pi

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, logsumexp
from jaxtyping import Array, Float, PRNGKeyArray

from credence.errors import require_positive
from credence.models.likelihoods.base import Labels, Outputs
from credence.models.likelihoods.labels import Classification

# With up to 18 actions, 20 nodes leave an error below 1e-6 nats, whatever the gaps (16 nodes
# 6e-6). Newton's method approaches the mode from one side, never overshoots, and is within 1e-11
# of it after 6 steps.
_NODES, _WEIGHTS = np.polynomial.hermite.hermgauss(20)
_NEWTON_STEPS = 6

# Gap of the chosen action to itself: Phi is exactly 1 at all nodes. (A gather of the other
# actions' gaps is fused into every use of them, five times as slow inside a loop on a CPU.)
_NO_RIVAL = -50.0


@dataclass(frozen=True)
class NoisyArgmax(Classification):
    """The label is the largest output after noise: y = argmax_a (output_a + noise_std * e_a).

        P(y = a) = int phi((t - v_a) / s) / s  prod_{i != a} Phi((t - v_i) / s) dt

    with values v = outputs, s = noise_std and independent standard normal e. Log probabilities are
    right far into the tails, where a choice was many s from the best. Only differences of
    outputs matter.

    Args:
        noise_std: s > 0, in units of the outputs.
    """

    noise_std: float

    def __post_init__(self) -> None:
        require_positive(noise_std=self.noise_std)

    def num_outputs(self, num_targets: int) -> int:
        """One value per action: for labels, num_targets is the number of actions."""
        return num_targets

    def log_prob(self, params: tuple[()], outputs: Outputs, y: Labels) -> Float[Array, " point"]:
        """Log probability of the label, in nats."""
        is_chosen = y[:, None] == jnp.arange(outputs.shape[-1])
        chosen = jnp.sum(jnp.where(is_chosen, outputs, 0), axis=-1, keepdims=True)
        gaps = jnp.where(is_chosen, _NO_RIVAL, (outputs - chosen) / self.noise_std)
        return log_probability_of_largest(gaps.T)

    def mean(self, params: tuple[()], outputs: Outputs) -> Float[Array, "point output"]:
        """Probabilities of all actions."""
        labels = jnp.arange(outputs.shape[-1])
        log_prob = jax.vmap(
            lambda label: self.log_prob(params, outputs, jnp.full(len(outputs), label)), out_axes=-1
        )
        return jax.nn.softmax(log_prob(labels))

    def sample(self, key: PRNGKeyArray, params: tuple[()], outputs: Outputs) -> Labels:
        """One label per point."""
        noise = jax.random.normal(key, outputs.shape, outputs.dtype)
        return jnp.argmax(outputs + self.noise_std * noise, axis=-1).astype(jnp.int32)


def log_probability_of_largest(gaps: Float[Array, "rival point"]) -> Float[Array, " point"]:
    """log P(e_0 > gap_i + e_i for all i), e independent standard normal, in nats.

    The integrand is log-concave. Quadrature nodes lie around its mode, scaled by its curvature
    there, and are constants for differentiation: any nodes integrate the same function.
    """
    mode, curvature = jax.lax.stop_gradient(_mode(gaps))
    scale = jnp.sqrt(2 / curvature)
    t = mode + scale * jnp.asarray(_NODES, gaps.dtype)[:, None]  # (node, point)
    log_weights = jnp.asarray(_NODES**2 + np.log(_WEIGHTS), gaps.dtype)
    log_integrand = jnp.sum(log_cdf(t[:, None] - gaps), axis=1) - 0.5 * (t**2 + jnp.log(2 * pi))
    return jnp.log(scale) + logsumexp(log_weights[:, None] + log_integrand, axis=0)


def _mode(
    gaps: Float[Array, "rival point"],
) -> tuple[Float[Array, " point"], Float[Array, " point"]]:
    """The point at which the log integrand is largest, and minus its second derivative there.

    Its derivative is convex and decreasing, and >= 0 at the start: Newton's steps stay on that
    side of the root.
    """

    def derivatives(t: Float[Array, " point"]) -> tuple[Array, Array]:
        ratio, excess = mills_ratio(t - gaps)
        return jnp.sum(ratio, axis=0) - t, 1 + jnp.sum(ratio * excess, axis=0)

    mode = jnp.zeros(gaps.shape[1], gaps.dtype)
    for _ in range(_NEWTON_STEPS):
        slope, curvature = derivatives(mode)
        mode = mode + slope / curvature
    return mode, derivatives(mode)[1]


@jax.custom_jvp
def log_cdf(z: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Log of the standard normal distribution function, with a derivative right in the tail."""
    return log_ndtr(z)


@log_cdf.defjvp
def _log_cdf_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return log_cdf(*primals), mills_ratio(*primals)[0] * tangents[0]


def mills_ratio(z: Float[Array, "*shape"]) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """r = phi(z) / Phi(z), the derivative of log Phi, and r + z; minus its second is r (r + z).

    Below -10 by a continued fraction: exp(log phi - log Phi) and the sum lose their digits there.
    """
    near, far = jnp.maximum(z, -10.0), jnp.maximum(-z, 10.0)
    direct = jnp.exp(-0.5 * near**2 - log_ndtr(near)) / (2 * pi) ** 0.5
    fraction = far
    for k in range(8, 1, -1):
        fraction = far + k / fraction
    is_far = z < -10
    return (
        jnp.where(is_far, far + 1 / fraction, direct),
        jnp.where(is_far, 1 / fraction, near + direct),
    )
