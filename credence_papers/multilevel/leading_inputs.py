"""Two levels that differ in the inputs they see, and ways from the coarse to the fine.

Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class Neural Networks",
section 5.6.1. The coarse model sees the leading share of the inputs, or inputs of its own; its
weights are the leading block of the fine model's. These methods serve comparisons only: `mlsmc` is
the one to use, whose steps between levels are tempered wherever the levels are too far apart.

One run per seed: what several seeds disagree by is the Monte Carlo error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from credence.density.posterior import Position, Posterior
from credence.engine.driver import Driver
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.findings import Finding
from credence.errors import InputError, check_name, require_positive
from credence.kernels.resampling import effective_sample_size
from credence.methods.approximate.deep_ensemble import MAP, DeepEnsemble
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
from credence.models.networks.wrappers import LeadingInputs, OfInputs


@dataclass(frozen=True)
class TrailingInputs(OfInputs):
    """A network of the last columns: f(x) = network(x[-num_inputs:]).

    Args:
        network: what is applied.
        num_inputs: how many columns it sees.
    """

    num_inputs: int

    def inputs(self, x: Float[Array, "point feature"]) -> Float[Array, "point trailing"]:
        """The last columns of x."""
        return x[:, x.shape[-1] - self.num_inputs :]


def both_levels(posterior: Posterior, share: float, coarse_inputs: int = 0) -> list[Posterior]:
    """The posteriors of the coarse and of the fine level.

    Args:
        share: of the inputs that the coarse level sees, where it has none of its own.
        coarse_inputs: number of last inputs that the coarse level alone sees; the fine level sees
            the others. 0: the levels differ by `share`.
    Raises:
        InputError: for a share that is not in (0, 1], or leaves no input; or where the coarse level
            has as many inputs of its own as the fine one, or more, or the network has hidden
            layers then.
    """
    if not 0 < share <= 1:
        raise InputError(f"share must be in (0, 1], got {share}; 0.5 sees the first half.")
    network, num_inputs = posterior.model.network, posterior.data.x.shape[-1]
    if not coarse_inputs:
        coarse = LeadingInputs(network, round(share * num_inputs))
        return levels.with_networks(posterior, (coarse, network))
    if not 0 < 2 * coarse_inputs < num_inputs:
        raise InputError(
            f"coarse_inputs is {coarse_inputs} of {num_inputs} inputs: it must be at least 1, and "
            "the coarse level must have fewer inputs than the fine one."
        )
    if len(posterior.model.template(posterior.data).network) != 1:
        raise InputError("coarse_inputs needs a network without hidden layers: hidden=().")
    fine = LeadingInputs(network, num_inputs - coarse_inputs)
    return levels.with_networks(posterior, (TrailingInputs(network, coarse_inputs), fine))


def of_all_inputs(
    positions: Float[Any, "run particle fine"],
    is_coarse: Bool[np.ndarray, "run particle"],
    fine: Posterior,
    coarse_inputs: int,
) -> Float[np.ndarray, "run particle whole"]:
    """Networks of the fine level as networks of all inputs, with zeros for those that they lack.

    A coarse network comes as the leading block of a fine one with zeros behind it; its weights go
    to the inputs of its own.

    Args:
        positions: weights of networks of the fine level's inputs, without hidden layers.
        is_coarse: which of them are coarse networks.
        fine: the posterior of the fine level.
    """

    def one(position: Position, is_coarse: Bool[Array, ""]) -> Float[Array, " whole"]:
        params = fine.model.unravel(position, fine.data)
        (layer,) = params.network
        own = jnp.where(is_coarse, layer.kernel[:coarse_inputs], 0)
        others = jnp.where(is_coarse, 0, layer.kernel)
        layer = layer._replace(kernel=jnp.concatenate([others, own]))
        return ravel_pytree(params._replace(network=(layer,)))[0]

    placed = jax.jit(jax.vmap(jax.vmap(one)))
    return np.asarray(placed(jnp.asarray(positions), jnp.asarray(is_coarse)))


@dataclass(frozen=True, kw_only=True)
class TwoLevels(Method):
    """What these methods share.

    Args:
        num_runs: independent runs.
        share: of the inputs that the coarse level sees, where coarse_inputs is 0.
        coarse_inputs: number of last inputs that the coarse level alone sees, or 0.
        mutation: how particles move, resample, and how fast they are tempered.
    """

    is_chain: ClassVar[bool] = False
    aliases: ClassVar[Mapping[str, str]] = PARTICLES_AND_RUNS

    num_runs: int = 1
    share: float = 0.5
    coarse_inputs: int = 0
    mutation: Mutation = field(default=Mutation())

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(num_runs=self.num_runs)

    def levels(self, posterior: Posterior) -> list[Posterior]:
        """The coarse and the fine one."""
        return both_levels(posterior, self.share, self.coarse_inputs)

    def placed(self, drawn: Drawn, is_coarse: Any, fine: Posterior) -> Drawn:
        """Draws of the fine level as networks of all inputs."""
        if not self.coarse_inputs:
            return drawn
        is_coarse = np.broadcast_to(is_coarse, drawn.positions.shape[:2])
        whole = of_all_inputs(drawn.positions, is_coarse, fine, self.coarse_inputs)
        return drawn._replace(positions=whole)


@dataclass(frozen=True, kw_only=True)
class LeadingSMC(TwoLevels):
    """SMC of one level alone.

    Args:
        level: "coarse" or "fine".
    """

    name: ClassVar[str] = "smc_leading"
    summary: ClassVar[str] = "one SMC run of the network of the leading inputs"

    num_particles: int = 250
    level: str = "fine"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_name("level", self.level, ("coarse", "fine"))

    def prepared(self, posterior: Posterior) -> Posterior:
        """The posterior of that level."""
        coarse, fine = self.levels(posterior)
        return coarse if self.level == "coarse" else fine

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
        coarse, fine = self.levels(posterior)
        *keys, key_resample = jax.random.split(key, 7)
        tempering, count = Tempering(self.mutation, self.num_runs), self.num_particles
        memory, data, _ = from_prior(keys[0], coarse, driver, tempering, count)
        bridge = to_posterior(coarse.model, coarse.num_weights)
        _, memory = tempering.temper("temper", keys[1], driver, bridge, memory, data)
        cloud, *_ = tempering.move("sample", keys[2], driver, bridge, memory, data, count)
        equal = np.full((self.num_runs, count), 1 / count, cloud.position.dtype)
        first = cloud.position
        if self.increment:
            memory = memory._replace(
                key=jax.random.key_data(key_resample),  # not that of the last resampling
                cloud=jax.tree.map(jnp.asarray, cloud),
                weights=equal,
            )
            cloud, *_ = tempering.move("mutate", keys[3], driver, bridge, memory, data, count)
        new = prior_draws(jax.random.split(keys[4], (self.num_runs, count)), data, model=fine.model)
        models = {"coarse": coarse.model, "fine": fine.model}
        extended = levels.extended(jnp.asarray(cloud.position), new, data, **models)
        num_weights = coarse.num_weights + fine.num_weights
        between = levels.to_level(coarse.model, fine.model, num_weights)
        weighed = tempering.weigh("weigh levels", keys[5], driver, between, extended, data)
        ratios = log_ratios(weighed)
        weights = np.asarray(jax.nn.softmax(ratios, axis=-1))
        share = np.broadcast_to(_ess_share(ratios)[:, None], weights.shape)
        if not self.increment:
            drawn = Drawn(extended, {"ess_share": share}, weights=weights / self.num_runs)
            return self.placed(drawn, False, fine)
        before, after = (
            np.asarray(levels.embedded(jnp.asarray(positions), data, **models))
            for positions in (first, cloud.position)
        )
        drawn = Drawn(
            np.concatenate([before, extended, after], axis=1),
            {"ess_share": np.concatenate([share] * 3, axis=1)},
            weights=np.concatenate([equal, weights, -equal], axis=1) / self.num_runs,
        )
        return self.placed(drawn, np.repeat([True, False, True], count), fine)


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
        coarse, fine = self.levels(posterior)
        method = MLSMC(
            coarse=(coarse.model.network,),
            num_particles=self.num_particles,
            num_runs=self.num_runs,
            mutation=self.mutation,
        )
        drawn = method.draw(key, fine, driver)
        return self.placed(drawn, np.asarray(drawn.scalars["level"]) == 0, fine)


@dataclass(frozen=True, kw_only=True)
class FineTrained(Method):
    """Networks of the fine level, trained: one (MAP), or a deep ensemble.

    Args:
        coarse_inputs: number of last inputs that the coarse level alone sees.
        num_members: of the ensemble; None trains one network on all rows.
    """

    name: ClassVar[str] = "trained_fine"
    summary: ClassVar[str] = "trained networks of the fine level's inputs"
    is_chain: ClassVar[bool] = False

    coarse_inputs: int
    num_members: int | None = None

    def prepared(self, posterior: Posterior) -> Posterior:
        """The posterior of the fine level."""
        return both_levels(posterior, 1.0, self.coarse_inputs)[1]

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        number = self.num_members
        method = MAP() if number is None else DeepEnsemble(num_members=number)
        return method.draw(key, posterior, driver)
