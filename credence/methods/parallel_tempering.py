"""Parallel tempering: chains on a ladder of temperatures, from the prior to the posterior."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from credence.adaptation.ladder import ladder_adaptation, prior_variances
from credence.adaptation.tunable_kernels import (
    Tunable,
    check_weights,
    checked_kernel,
    tunable_kernel,
)
from credence.density.data import Data
from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.ensembles.findings import Finding
from credence.errors import InputError, refuse_unread
from credence.kernels.base import Recipe
from credence.kernels.mcmc.replica_exchange import ladder_of, replica_exchange
from credence.methods.base import Drawn
from credence.methods.chains import TrainedChains
from credence.methods.evidence import LogEvidence
from credence.methods.exchanges import Exchanges, told_of_ladder

USUAL_LEAPFROGS = 8
"""Usual mean number of leapfrogs of a move."""

MOST_LEAPFROGS = 42
"""Most leapfrogs of a move in the mean: kernels bound the longest, half as long again, at 64."""


@dataclass(frozen=True, kw_only=True)
class ParallelTempering(TrainedChains):
    """Parallel tempering, or replica exchange: exact, for posteriors with several modes.

    Every chain is a ladder of `num_rungs` copies of the network. Each sees the likelihood to a
    power between 0, the prior, and 1, the posterior; neighbours exchange their weights now and
    then. Draws are those of the coldest copy. The prior is drawn from anew in every step, so that
    what comes down the ladder has forgotten the mode where it was. The warm-up places the powers.

    The ladder gives the evidence, too: the ratios of the normalising constants of neighbours by
    bridge sampling, multiplied.

    Args beyond those of `TrainedChains`:
        num_rungs: of the ladder; about twice the barrier that the run reports.
        kernel: that moves every rung: the name of a kernel that takes a metric, or a `Tunable`.
        num_leapfrogs: mean number of leapfrogs of a move, where the kernel takes a length; at most
            `MOST_LEAPFROGS`; None is 8.
        target_acceptance_rate: what step sizes are tuned to; None is what suits the kernel.
        thinning: moves between exchanges, that is for each draw.

    Scalars: log_likelihood (nats), acceptance_rate and exchange_rate, means over the rungs,
    is_restart (see `credence.kernels.mcmc.replica_exchange`), and log_evidence of the chain.
    """

    name: ClassVar[str] = "parallel_tempering"
    summary: ClassVar[str] = "chains on a ladder of temperatures: exact, crosses between modes"
    sources: ClassVar[tuple[str, ...]] = (
        'Geyer, "Markov chain Monte Carlo maximum likelihood" (1991)',
        (
            'Syed, Bouchard-Côté, Deligiannidis & Doucet, "Non-reversible parallel tempering: a '
            'scalable highly parallel MCMC scheme" (2022)'
        ),
        ('Bennett, "Efficient estimation of free energy differences from Monte Carlo data" (1976)'),
    )
    findings: ClassVar[tuple[type[Finding], ...]] = (LogEvidence, Exchanges)

    num_warmup: int = 1000
    target_acceptance_rate: float | None = None  # type: ignore[assignment]
    num_rungs: int = 16
    kernel: str = "mclmc"
    num_leapfrogs: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", checked_kernel("kernel", self.kernel, _why_not))
        super().__post_init__()
        if not self._takes_length:
            reader = f"of kernels that take a length and nothing to kernel='{self.kernel}'"
            refuse_unread(self, reader, "num_leapfrogs")
        if not 1 <= self._num_leapfrogs <= MOST_LEAPFROGS:
            raise InputError(
                f"num_leapfrogs must be between 1 and {MOST_LEAPFROGS}, got {self.num_leapfrogs}; "
                "take more moves (thinning) in place of longer ones."
            )
        if self.num_rungs < 2:
            raise InputError(f"num_rungs must be at least 2, got {self.num_rungs}; 16 is usual.")

    def prepared(self, posterior: Posterior) -> Posterior:
        """The posterior itself; refuses fewer weights than the kernel can move."""
        check_weights(tunable_kernel(self.kernel), posterior.num_weights)
        return posterior

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        key_train, key_prior, key_warmup, key_sample = jax.random.split(key, 4)
        start = self._start(key_train, posterior, driver)
        data = posterior.anchored(start[0])
        ladder, tunable = ladder_of(posterior.model), tunable_kernel(self.kernel).for_particles
        adapter = ladder_adaptation(
            prior_variances(key_prior, data, draw=ladder.from_prior),
            num_rungs=self.num_rungs,
            num_rounds=self._rounds().number,
            target_acceptance_rate=self.target_acceptance_rate or tunable.target_acceptance_rate,
            order=tunable.order,
            largest=tunable.largest_step,
        )
        recipe = Recipe(replica_exchange, ladder, self._static(tunable))  # type: ignore[arg-type]
        plan = self._rounds().plan(recipe, adapter)
        rungs = jnp.repeat(start[:, None], self.num_rungs, axis=1)
        warmup = driver.phase("warmup", key_warmup, plan, rungs, data)
        plan = self._sample_plan(plan, warmup.memory, thinning=1)
        sample = driver.phase("sample", key_sample, plan, warmup.states, data)
        powers = np.asarray(plan.settings["powers"], float)
        return self._drawn(sample.draws, sample.info, powers, data)

    @property
    def _takes_length(self) -> bool:
        """Whether the kernel takes the length of a move."""
        return "trajectory_length" in tunable_kernel(str(self.kernel)).options

    @property
    def _num_leapfrogs(self) -> int:
        return USUAL_LEAPFROGS if self.num_leapfrogs is None else self.num_leapfrogs

    def _static(self, tunable: Tunable) -> tuple[tuple[str, object], ...]:
        """What the program of the kernel depends on."""
        static = {
            "build": (tunable.reversible_together or tunable).build,
            "num_leapfrogs": self._num_leapfrogs if self._takes_length else None,
            "num_moves": self.thinning,
        }
        return tuple(sorted(static.items()))

    def _drawn(
        self,
        draws: Float[np.ndarray, "chain draw weight"],
        info: dict[str, np.ndarray],
        powers: Float[np.ndarray, " rung"],
        data: Data,
    ) -> Drawn:
        """Draws of the coldest rungs, with what the ladder says beside them."""
        scalars, found = told_of_ladder(info, powers, data.log_anchor)
        return Drawn(draws, scalars, found=found)


def _why_not(tunable: Tunable) -> str | None:
    """Why a kernel cannot move the rungs."""
    if tunable.reference is not None:
        return "it takes no metric. Use 'mclmc', 'hmc', 'nuts' or 'mala'."
    if tunable.for_particles.reversible_together is None:
        return "its steps are reversible only one by one. Use 'mclmc', 'hmc', 'nuts' or 'mala'."
    return None
