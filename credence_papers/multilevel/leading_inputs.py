"""Two levels that differ in the number of inputs they see, and ways from the coarse to the fine.

Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class Neural Networks",
section 5.6.1. The coarse model sees the leading share of the inputs; its weights are the leading
block of the fine model's. These methods serve comparisons only: `mlsmc` is the one to use, whose
steps between levels are tempered wherever the levels are too far apart.

One run per seed: what several seeds disagree by is the Monte Carlo error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.findings import Finding
from credence.errors import InputError, require_positive
from credence.kernels.resampling import effective_sample_size
from credence.methods.base import Drawn, Method
from credence.methods.smc.clouds import log_ratios
from credence.methods.smc.method import (
    PARTICLES_AND_RUNS,
    SMC,
    from_prior,
    prior_draws,
    to_posterior,
)
from credence.methods.smc.multilevel import levels
from credence.methods.smc.multilevel.method import MLSMC
from credence.methods.smc.mutation import Mutation
from credence.methods.smc.tempering import Tempering
from credence.models.networks.wrappers import LeadingInputs


def both_levels(posterior: Posterior, share: float) -> list[Posterior]:
    """The posterior of the leading share of the inputs, and the posterior itself.

    Raises:
        InputError: for a share that is not in (0, 1], or leaves no input.
    """
    if not 0 < share <= 1:
        raise InputError(f"share must be in (0, 1], got {share}; 0.5 sees the first half.")
    network, num_inputs = posterior.model.network, posterior.data.x.shape[-1]
    coarse = LeadingInputs(network, round(share * num_inputs))
    return levels.with_networks(posterior, (coarse, network))


@dataclass(frozen=True, kw_only=True)
class TwoLevels(Method):
    """What these methods share.

    Args:
        num_runs: independent runs.
        share: of the inputs that the coarse level sees.
        mutation: how particles move, resample, and how fast they are tempered.
    """

    is_chain: ClassVar[bool] = False
    aliases: ClassVar[Mapping[str, str]] = PARTICLES_AND_RUNS

    num_runs: int = 1
    share: float = 0.5
    mutation: Mutation = field(default=Mutation())

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(num_runs=self.num_runs)


@dataclass(frozen=True, kw_only=True)
class LeadingSMC(TwoLevels):
    """SMC of the model that sees the leading share of the inputs: all, or the coarse level."""

    name: ClassVar[str] = "smc_leading"
    summary: ClassVar[str] = "one SMC run of the network of the leading inputs"

    num_particles: int = 250
    share: float = 1.0

    def prepared(self, posterior: Posterior) -> Posterior:
        """The coarse level alone."""
        return both_levels(posterior, self.share)[0]

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        method = SMC(
            num_particles=self.num_particles, num_runs=self.num_runs, mutation=self.mutation
        )
        return method.draw(key, posterior, driver)


@dataclass(frozen=True)
class WeightShare(Finding):
    """The worth of the weights between two levels: their effective sample size as a share."""

    name: ClassVar[str] = "ess_share"

    share: float

    @classmethod
    def of(cls, ensemble: Ensemble) -> Self | None:
        """Average the scalar over runs."""
        found = ensemble.scalars.get(cls.name)
        return None if found is None else cls(float(np.mean(found)))

    @classmethod
    def read(cls, metrics: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self | None:
        """Read back what `entries` wrote."""
        return cls(float(metrics[cls.name])) if cls.name in metrics else None

    def entries(self) -> dict[str, Any]:
        """Return the share as one number."""
        return {self.name: self.share}

    def scores(self) -> dict[str, Any]:
        """Return the share as one column."""
        return self.entries()


@dataclass(frozen=True, kw_only=True)
class Reweighted(TwoLevels):
    """Coarse particles with the new weights from the prior, weighed by G = L_fine / L_coarse.

        importance sampling (5.6)    sum W f_fine
        with increment               mean f_coarse + (sum W f_fine - mean f_coarse),

    where the increment's particles are the coarse ones after another mutation. Not tempered: where
    G varies much, one particle has all the weight, which the scalar ess_share tells.

    Args:
        increment: the second of the two.

    Scalars: ess_share, the effective sample size of the weights W over the number of particles.
    """

    name: ClassVar[str] = "reweighted"
    summary: ClassVar[str] = "coarse SMC particles weighed for the fine model, not tempered"
    findings: ClassVar[tuple[type[Finding], ...]] = (WeightShare,)

    num_particles: int = 250
    increment: bool = False

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        coarse, fine = both_levels(posterior, self.share)
        keys = jax.random.split(key, 6)
        tempering, count = Tempering(self.mutation, self.num_runs), self.num_particles
        memory, data, _ = from_prior(keys[0], coarse, driver, tempering, count)
        bridge = to_posterior(coarse.model, coarse.num_weights)
        _, memory = tempering.temper("temper", keys[1], driver, bridge, memory, data)
        cloud, *_ = tempering.move("sample", keys[2], driver, bridge, memory, data, count)
        equal = np.full((self.num_runs, count), 1 / count, cloud.position.dtype)
        first = cloud.position
        if self.increment:
            memory = memory._replace(cloud=jax.tree.map(jnp.asarray, cloud), weights=equal)
            cloud, *_ = tempering.move("mutate", keys[3], driver, bridge, memory, data, count)
        new = prior_draws(jax.random.split(keys[4], (self.num_runs, count)), data, model=fine.model)
        models = {"coarse": coarse.model, "fine": fine.model}
        extended = levels.extended(jnp.asarray(cloud.position), new, data, **models)
        num_weights = coarse.num_weights + fine.num_weights
        between = levels.to_level(coarse.model, fine.model, num_weights)
        weighed = tempering.weigh("weigh", keys[5], driver, between, extended, data)
        ratios = log_ratios(weighed)
        weights = np.asarray(jax.nn.softmax(ratios, axis=-1))
        share = np.broadcast_to(_ess_share(ratios)[:, None], weights.shape)
        if not self.increment:
            return Drawn(extended, {"ess_share": share}, weights=weights / self.num_runs)
        before, after = (
            np.asarray(levels.embedded(jnp.asarray(positions), data, **models))
            for positions in (first, cloud.position)
        )
        return Drawn(
            np.concatenate([before, extended, after], axis=1),
            {"ess_share": np.concatenate([share] * 3, axis=1)},
            weights=np.concatenate([equal, weights, -equal], axis=1) / self.num_runs,
        )


def _ess_share(ratios: Float[Array, "run particle"]) -> Float[np.ndarray, " run"]:
    """Effective sample size of every run's weights over the number of particles."""
    return np.asarray(jax.vmap(effective_sample_size)(ratios)) / ratios.shape[1]


@dataclass(frozen=True, kw_only=True)
class LeadingMLSMC(TwoLevels):
    """Multilevel SMC from the network of the leading inputs to that of all of them.

    Args:
        num_particles: as of `MLSMC`.
    """

    name: ClassVar[str] = "mlsmc_leading"
    summary: ClassVar[str] = "multilevel SMC over numbers of inputs"
    prior: ClassVar[str] = MLSMC.prior

    num_particles: int | tuple[int, ...] = 500

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        coarse, _ = both_levels(posterior, self.share)
        method = MLSMC(
            coarse=(coarse.model.network,),
            num_particles=self.num_particles,
            num_runs=self.num_runs,
            mutation=self.mutation,
        )
        return method.draw(key, posterior, driver)
