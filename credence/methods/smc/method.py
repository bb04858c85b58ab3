"""Sequential Monte Carlo by adaptive tempering: posterior and evidence."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

from credence.adaptation.reference import prior_reference
from credence.adaptation.tunable_kernels import check_weights
from credence.density.data import Data
from credence.density.posterior import (
    BayesianModel,
    Posterior,
    flat_log_likelihood,
    flat_log_prior,
    flat_prior_draw,
)
from credence.engine.driver import Driver
from credence.ensembles.findings import Finding
from credence.errors import InputError, check_particles, require_positive
from credence.methods.base import Drawn, Method
from credence.methods.evidence import LogEvidence
from credence.methods.smc.bridge import Bridge
from credence.methods.smc.budget import Counts, within_budget
from credence.methods.smc.clouds import Memory
from credence.methods.smc.mutation import Mutation, Tuning, check_mutation
from credence.methods.smc.tempering import Tempering

PARTICLES_AND_RUNS = {"num_draws": "num_particles", "num_chains": "num_runs"}


@dataclass(frozen=True, kw_only=True)
class SMC(Method):
    """Particles from the prior to the posterior (Del Moral, Doucet & Jasra, 2006).

    Each temperature is the next at which the weights keep their own effective sample size; the
    product of the mean weights estimates the evidence. Runs are independent; they are the chains
    of the ensemble, so that R-hat compares runs.

    Args:
        num_particles: per run; with a time budget at most so many, and as many as it affords.
        num_runs: independent runs; their spread is the Monte Carlo error.
        chain_length: above 1, waste-free SMC (Dau & Chopin, 2022): num_particles / chain_length
            particles move, and all states on their way are particles.
        mutation: how particles move, resample, and how fast they are tempered.

    Scalars: acceptance_rate of the last mutation; family, the draw from the prior from which a
    particle descends (effective sample sizes count families, see
    `credence.ensembles.diagnostics.convergence`); of the run log_evidence (nats) and
    num_temperatures.
    """

    name: ClassVar[str] = "smc"
    summary: ClassVar[str] = "tempered sequential Monte Carlo: exact, with evidence"
    sources: ClassVar[tuple[str, ...]] = (
        'Del Moral, Doucet & Jasra, "Sequential Monte Carlo samplers" (2006)',
        'Dau & Chopin, "Waste-free sequential Monte Carlo" (2022)',
    )
    findings: ClassVar[tuple[type[Finding], ...]] = (LogEvidence,)

    aliases: ClassVar[Mapping[str, str]] = PARTICLES_AND_RUNS

    num_particles: int = 250
    num_runs: int = 4
    chain_length: int = 1
    mutation: Mutation = field(default=Mutation())

    def __post_init__(self) -> None:
        super().__post_init__()
        check_mutation(self.mutation)
        require_positive(num_runs=self.num_runs, chain_length=self.chain_length)
        check_particles(self.num_particles)
        if self.num_particles % self.chain_length or self.num_particles == self.chain_length:
            raise InputError(
                "num_particles must be a multiple of chain_length and at least twice as large, got "
                f"{self.num_particles} and {self.chain_length}."
            )

    def prepared(self, posterior: Posterior) -> Posterior:
        """The posterior itself; refuses fewer weights than the mutation can move."""
        check_weights(self.mutation.tunable, posterior.num_weights)
        return posterior

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        run = partial(self._tempered, posterior, driver)
        return within_budget(key, driver, (self.num_particles,), run, multiple=self.chain_length)

    def _tempered(
        self, posterior: Posterior, driver: Driver, key: PRNGKeyArray, counts: Counts
    ) -> Drawn:
        """Take so many particles from the prior to the posterior."""
        (num_particles,) = counts
        key_prior, key_temper, key_sample = jax.random.split(key, 3)
        tempering = Tempering(self.mutation, self.num_runs, self.chain_length)
        memory, data, log_anchor = from_prior(
            key_prior, posterior, driver, tempering, num_particles
        )
        bridge = to_posterior(posterior.model, posterior.num_weights)
        _, memory = tempering.temper("temper", key_temper, driver, bridge, memory, data)
        moved = tempering.move("sample", key_sample, driver, bridge, memory, data, num_particles)
        shape = moved.acceptance_rate.shape
        log_evidence = np.asarray(memory.log_evidence) + log_anchor
        return Drawn(
            moved.cloud.position,
            {
                "acceptance_rate": moved.acceptance_rate,
                "family": moved.family.astype(float),
                "log_evidence": np.broadcast_to(log_evidence[:, None], shape),
                "num_temperatures": np.full(shape, float(memory.stage)),
            },
        )


def from_prior(
    key: PRNGKeyArray,
    posterior: Posterior,
    driver: Driver,
    tempering: Tempering,
    num_particles: int,
) -> tuple[Memory, Data, float]:
    """Prior draws weighed for the first temperature.

    Returns:
        The memory; data measured from the likeliest draw, for differences that survive float32
        (see `Posterior.anchored`); and the log likelihood there in nats, which the evidence lacks.
    """
    key_draw, key_weigh, key_resample = jax.random.split(key, 3)
    tuning = first_tuning(posterior, tempering.mutation)  # may refuse the prior
    keys = jax.random.split(key_draw, (tempering.num_runs, num_particles))
    positions = prior_draws(keys, posterior.data, model=posterior.model)
    bridge = to_posterior(posterior.model, posterior.num_weights)
    plain = posterior.data._replace(anchor=jnp.zeros_like(posterior.data.weight))
    cloud = tempering.weigh("weigh", key_weigh, driver, bridge, positions, plain)
    best = int(np.argmax(np.where(np.isfinite(cloud.log_end), cloud.log_end, -np.inf)))
    data = posterior.anchored(positions.reshape(-1, positions.shape[-1])[best])
    with np.errstate(invalid="ignore"):  # where all are infinite, `start` refuses them
        cloud = cloud._replace(log_end=cloud.log_end - cloud.log_end.ravel()[best])
    return tempering.start(key_resample, cloud, tuning), data, data.log_anchor


def first_tuning(posterior: Posterior, mutation: Mutation) -> Tuning:
    """Tuning of the mutation at the start; pCN alone needs the prior, which must be Gaussian."""
    if mutation.tunable.reference == "prior":
        return mutation.first(*prior_reference(posterior))
    zero = jnp.zeros(posterior.num_weights, posterior.data.x.dtype)
    return mutation.first(zero, zero + 1)


@lru_cache(maxsize=256)
def to_posterior(model: BayesianModel, num_weights: int) -> Bridge:
    """The bridge from a model's prior to its posterior."""
    nothing: Callable[..., Any] = lambda position, data: jnp.zeros((), position.dtype)  # noqa: E731
    return Bridge(flat_log_prior(model), nothing, flat_log_likelihood(model), num_weights)


@partial(jax.jit, static_argnames="model")
def prior_draws(
    keys: Key[Array, "run particle"], data: Data, *, model: BayesianModel
) -> Float[Array, "run particle weight"]:
    """Independent draws from a model's prior."""
    one = partial(flat_prior_draw, model, data=data)
    return jax.vmap(jax.vmap(one))(keys)
