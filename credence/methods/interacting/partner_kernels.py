"""How partners move on minibatches: as the particles do, or by a kernel with settings of its own.

No jump ever overwrites a partner, so that its kernel may remember where the partner has been: a
velocity, a running mean of squared gradients. A particle's kernel may not, because a jump takes the
particle elsewhere and what it remembers would belong to no law.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from credence.density.posterior import LogDensity
from credence.errors import InputError, check_name, require_positive
from credence.kernels.base import Kernel, Scalar, Settings
from credence.kernels.sgmcmc.rms_sgld import rms_sgld
from credence.kernels.sgmcmc.sghmc import check_friction, sghmc
from credence.methods.minibatch_steps import friction_noise, rms_settings, usual_friction

AS_PARTICLES = "sgld"
"""The name under which partners move as particles do."""


class PartnerKernel(NamedTuple):
    """A kernel of partners, and its settings while it is tuned and while particles jump."""

    build: Callable[..., Kernel]
    tuning: Settings
    settings: Settings
    has_warmup: bool


class Wanted(NamedTuple):
    """What a user asks of the partners' kernel."""

    kernel: str
    step_size: float | None
    friction: float | None

    def check(self) -> None:
        """Refuse an unknown kernel, and a setting that nothing would read."""
        check_name("auxiliary kernel", self.kernel, (AS_PARTICLES, *APART))
        require_positive(auxiliary_step_size=self.step_size)
        if self.friction is None:
            return
        if self.kernel != "sghmc":
            raise InputError(
                f"auxiliary_friction={self.friction} is of auxiliary_kernel='sghmc' and nothing to "
                f"'{self.kernel}': leave it out."
            )
        check_friction(self.friction)


class Particles(NamedTuple):
    """What partners have in common with particles, and their temperature."""

    build: Callable[..., Kernel]
    settings: Settings
    """Those of `ula`: a step size and a metric."""
    num_rows: int
    """Rows of a step."""
    num_points: int
    """Rows of the data."""
    temperature: float
    """The temperature at which partners live."""

    def scalar(self, value: float) -> np.ndarray:
        """A setting in the precision of the others."""
        return np.asarray(value, self.settings["step_size"].dtype)


def partner_kernel(wanted: Wanted, particles: Particles) -> PartnerKernel:
    """The kernel of the partners.

    A step that nobody has chosen makes partners drift as fast as particles do: their gradients are
    divided by the temperature, so their step h, a square of lengths, is multiplied by it.
    """
    return {AS_PARTICLES: _as_particles, **APART}[wanted.kernel](wanted, particles)


def on_tempered(
    log_density: LogDensity,
    *,
    kernel: Callable[..., Kernel],
    partners_temperature: Scalar,
    **settings: Any,
) -> Kernel:
    """A kernel on the target to the power 1/T: how partners move while there are no jumps.

    Args:
        log_density: of the target, (position, data) -> nats.
        kernel: builder, with these settings.
        partners_temperature: T > 0.
    """
    return kernel(
        lambda position, data: log_density(position, data) / partners_temperature, **settings
    )


def _as_particles(wanted: Wanted, particles: Particles) -> PartnerKernel:
    """The particles' own kernel and metric."""
    found = particles.settings
    usual = particles.temperature * float(found["step_size"])
    settings = {**found, "step_size": particles.scalar(wanted.step_size or usual)}
    return PartnerKernel(particles.build, settings, settings, has_warmup=False)


def _rms(wanted: Wanted, particles: Particles) -> PartnerKernel:
    """Langevin with an RMSprop metric, which carries the temperature: a step is as everywhere."""
    tuning, frozen = rms_settings(wanted.step_size, particles.num_points, particles.scalar)
    return PartnerKernel(rms_sgld, tuning, frozen, has_warmup=True)


def _sghmc(wanted: Wanted, particles: Particles) -> PartnerKernel:
    """SGHMC in the particles' metric; its step is a length, as stable as the method `sghmc`'s."""
    friction = wanted.friction or usual_friction(particles.num_rows, particles.num_points)
    batches = particles.num_points / particles.num_rows
    leapfrog_square = float(particles.settings["step_size"]) * batches
    noise = friction_noise(friction, particles.num_rows, particles.num_points)
    usual = (particles.temperature * (leapfrog_square / (1 + noise))) ** 0.5
    settings = {
        "step_size": particles.scalar(wanted.step_size or usual),
        "friction": particles.scalar(friction),
        "inverse_mass": particles.settings["inverse_mass"],
    }
    return PartnerKernel(sghmc, settings, settings, has_warmup=True)


APART: Mapping[str, Callable[[Wanted, Particles], PartnerKernel]] = {"rms": _rms, "sghmc": _sghmc}
"""Kernels that are the partners' own, by name."""
