"""Likelihoods of numeric targets: noise with a location and a scale, learnt or of the inputs."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.stats as stats
import numpy as np
from jax.scipy.special import betainc
from jaxtyping import Array, Float, PRNGKeyArray

from credence.errors import InputError, refuse_unread, require_positive
from credence.models.likelihoods.base import Noise, NoParameters, Outputs, Targets


class LocationScale(ABC):
    """Regression likelihoods y = location + scale * noise; subclasses give the three parts."""

    def checked_targets(self, y: Any) -> np.ndarray:
        """Numbers (point, target), integers among them; (point,) is one target.

        Raises:
            InputError: for text, or more than two axes.
        """
        y = np.asarray(y)
        if y.ndim not in (1, 2) or y.dtype.kind not in "biuf":
            raise InputError(
                f"{type(self).__name__} needs numbers y (point,) or (point, target), "
                f"got shape {y.shape} of {y.dtype}."
            )
        return y.reshape(len(y), -1).astype(float)

    @abstractmethod
    def location_scale(self, params: Any, outputs: Outputs) -> tuple[Targets, Targets]:
        """Location and scale of every target, in units of y."""

    @abstractmethod
    def noise_log_density(self, z: Noise) -> Noise:
        """Log density of the standardised noise."""

    @abstractmethod
    def noise_cdf(self, z: Noise) -> Noise:
        """Distribution function of the standardised noise."""

    @abstractmethod
    def noise_sample(self, key: PRNGKeyArray, template: Noise) -> Noise:
        """Standardised noise in the shape and dtype of template."""

    @property
    def noise_variance(self) -> float:
        """Variance of the standardised noise."""
        return 1.0

    def log_prob(self, params: Any, outputs: Outputs, y: Targets) -> Float[Array, " point"]:
        """Log density of each point, summed over targets, in nats."""
        location, scale = self.location_scale(params, outputs)
        scale = scale.T  # points last: a CPU works along the last axis
        log_density = self.noise_log_density((y - location).T / scale) - jnp.log(scale)
        return jnp.sum(log_density, axis=0)

    def mean(self, params: Any, outputs: Outputs) -> Targets:
        """Expected target, in units of y."""
        return self.location_scale(params, outputs)[0]

    def variance(self, params: Any, outputs: Outputs) -> Targets:
        """Variance of the noise, in squared units of y."""
        return self.noise_variance * self.location_scale(params, outputs)[1] ** 2

    def cdf(self, params: Any, outputs: Outputs, y: Targets) -> Targets:
        """P(target <= y), target by target."""
        location, scale = self.location_scale(params, outputs)
        return self.noise_cdf((y - location) / scale)

    def sample(self, key: PRNGKeyArray, params: Any, outputs: Outputs) -> Targets:
        """One draw of every target."""
        location, scale = self.location_scale(params, outputs)
        return location + scale * self.noise_sample(key, location)


class LearntScale(LocationScale):
    """A location-scale likelihood with one scale per target, fixed or learnt.

    A learnt scale has prior HalfNormal(scale_prior_std) and is stored as its logarithm.
    """

    fixed_scale: float | None = None
    scale_prior_std: float = 1.0

    def num_outputs(self, num_targets: int) -> int:
        """One output, the location, per target."""
        return num_targets

    def init(self, num_targets: int) -> Float[Array, " target"] | tuple[()]:
        """Log scale of a noise that explains a quarter of the prior's variance."""
        if self.fixed_scale is not None:
            return ()
        return jnp.full(num_targets, jnp.log(0.5 * self.scale_prior_std))

    def log_prior(self, params: Any) -> Float[Array, ""]:
        """HalfNormal on the scale, Jacobian of the logarithm included."""
        if self.fixed_scale is not None:
            return jnp.zeros(())
        log_half_normal = jnp.log(2.0) + stats.norm.logpdf(
            jnp.exp(params), scale=self.scale_prior_std
        )
        return jnp.sum(log_half_normal + params)

    def sample_prior(self, key: PRNGKeyArray, num_targets: int) -> Any:
        """Log scale of a HalfNormal draw."""
        if self.fixed_scale is not None:
            return ()
        return jnp.log(self.scale_prior_std * jnp.abs(jax.random.normal(key, (num_targets,))))

    def location_scale(self, params: Any, outputs: Outputs) -> tuple[Targets, Targets]:
        """The outputs, and the same scale at every point."""
        scale = jnp.exp(params) if self.fixed_scale is None else self.fixed_scale
        return outputs, jnp.broadcast_to(scale, outputs.shape).astype(outputs.dtype)


class NormalNoise(LocationScale):
    """Standard normal noise."""

    def noise_log_density(self, z: Noise) -> Noise:
        """Log density of N(0, 1), in nats."""
        return stats.norm.logpdf(z)

    def noise_cdf(self, z: Noise) -> Noise:
        """Distribution function of N(0, 1)."""
        return stats.norm.cdf(z)

    def noise_sample(self, key: PRNGKeyArray, template: Noise) -> Noise:
        """Draws of N(0, 1)."""
        return jax.random.normal(key, template.shape, template.dtype)


@dataclass(frozen=True)
class Normal(NormalNoise, LearntScale):
    """y ~ N(output, noise_std^2), the same noise everywhere.

    Args:
        noise_std: fixed standard deviation in units of y; None learns one per target.
        scale_prior_std: noise sd ~ HalfNormal(scale_prior_std) where it is learnt.
    """

    noise_std: float | None = None
    scale_prior_std: float = 1.0

    def __post_init__(self) -> None:
        require_positive(scale_prior_std=self.scale_prior_std)
        if self.noise_std is not None:
            require_positive(noise_std=self.noise_std)
            refuse_unread(
                self, "of noise that is learnt, and noise_std is given", "scale_prior_std"
            )

    @property
    def fixed_scale(self) -> float | None:  # type: ignore[override]
        """The noise's standard deviation where it is given; None where it is learnt."""
        return self.noise_std


class StudentNoise(LocationScale):
    """Student's t with scale 1: heavier tails than the normal law."""

    df: float

    @property
    def noise_variance(self) -> float:
        """Variance of Student's t with scale 1: df / (df - 2)."""
        return self.df / (self.df - 2)

    def noise_log_density(self, z: Noise) -> Noise:
        """Log density of Student's t with scale 1, in nats."""
        half = 0.5 * (self.df + 1)
        constant = math.lgamma(half) - math.lgamma(0.5 * self.df)
        constant -= 0.5 * math.log(math.pi * self.df)
        return constant - half * jnp.log1p(z**2 / self.df)

    def noise_cdf(self, z: Noise) -> Noise:
        """Distribution function of Student's t with scale 1."""
        far = self.df / (self.df + z**2)  # rounds to 1 near 0, where what is left of it counts
        if self.df == 4:
            u = 1 / jnp.hypot(1.0, 2.0 / jnp.abs(z))  # of an infinite z too
            tail = (far / (1 + u)) ** 2 * (2 + u) / 4
        else:
            half, is_near = 0.5 * self.df, jnp.abs(z) < 1
            first, second = jnp.where(is_near, 0.5, half), jnp.where(is_near, half, 0.5)
            share = betainc(first, second, jnp.where(is_near, z**2 / (self.df + z**2), far))
            tail = 0.5 * jnp.where(is_near, 1 - share, share)
        return jnp.where(z > 0, 1 - tail, tail)

    def noise_sample(self, key: PRNGKeyArray, template: Noise) -> Noise:
        """Draws of Student's t with scale 1, without rejection.

        Bailey, "Polar generation of random variates with the t-distribution" (1994).
        """
        key_radius, key_angle = jax.random.split(key)
        smallest = jnp.finfo(template.dtype).tiny
        u = jax.random.uniform(key_radius, template.shape, template.dtype, minval=smallest)
        angle = jax.random.uniform(key_angle, template.shape, template.dtype, maxval=2 * math.pi)
        return jnp.sqrt(self.df * jnp.expm1(-2 / self.df * jnp.log(u))) * jnp.cos(angle)


def _check_df(df: float) -> None:
    """Refuse degrees of freedom without a variance."""
    if not df > 2:
        raise InputError(f"df must be > 2 for a finite variance, got {df}; 4 is usual.")


@dataclass(frozen=True)
class StudentT(StudentNoise, LearntScale):
    """y ~ output + scale * t(df): heavier tails, so that outliers pull less.

    Args:
        df: degrees of freedom, > 2 so that the variance exists.
        scale: fixed scale in units of y (not the standard deviation); None learns one per target.
        scale_prior_std: scale ~ HalfNormal(scale_prior_std) where it is learnt.
    """

    df: float = 4.0
    scale: float | None = None
    scale_prior_std: float = 1.0

    def __post_init__(self) -> None:
        require_positive(scale_prior_std=self.scale_prior_std)
        _check_df(self.df)
        if self.scale is not None:
            require_positive(scale=self.scale)
            refuse_unread(self, "of noise that is learnt, and scale is given", "scale_prior_std")

    @property
    def fixed_scale(self) -> float | None:  # type: ignore[override]
        """The noise's scale where it is given; None where it is learnt."""
        return self.scale


class ScaleOutputs(NoParameters, LocationScale):
    """A location-scale likelihood whose scale depends on the inputs: the network's second half of
    outputs is its logarithm, over `scale_gain`."""

    scale_gain: float

    def num_outputs(self, num_targets: int) -> int:
        """A location and a log scale per target."""
        return 2 * num_targets

    def location_scale(self, params: Any, outputs: Outputs) -> tuple[Targets, Targets]:
        """The first half of the outputs, and exp of scale_gain times the second half."""
        location, log_scale = jnp.split(outputs, 2, axis=-1)
        return location, jnp.exp(self.scale_gain * log_scale)


@dataclass(frozen=True)
class HeteroscedasticNormal(NormalNoise, ScaleOutputs):
    """y ~ N(m(x), s(x)^2): the network's second half of outputs is log s.

    After Nix & Weigend, "Estimating the mean and variance of the target probability distribution"
    (1994), with the logarithm of the standard deviation as output.

    Args:
        scale_gain: log s is so many times the output. Under a wide prior of the weights a small one
            keeps the noise from being anything at all.
    """

    scale_gain: float = 1.0

    def __post_init__(self) -> None:
        require_positive(scale_gain=self.scale_gain)


@dataclass(frozen=True)
class HeteroscedasticStudentT(StudentNoise, ScaleOutputs):
    """y ~ m(x) + s(x) * t(df): noise that depends on the inputs, and outliers.

    As `HeteroscedasticNormal`, with the tails of Student's t.

    Args:
        df: degrees of freedom, > 2 so that the variance exists.
        scale_gain: log s is so many times the output.
    """

    df: float = 4.0
    scale_gain: float = 1.0

    def __post_init__(self) -> None:
        require_positive(scale_gain=self.scale_gain)
        _check_df(self.df)
