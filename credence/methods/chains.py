"""What samplers share: chains that are tuned together, and then sample with settings frozen."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.engine.phases import Adapter, PhaseResult
from credence.engine.plan import Plan
from credence.errors import check_share, require_positive
from credence.kernels.base import Recipe
from credence.methods.base import Method
from credence.methods.scouts import scout
from credence.methods.training import Training, train


def shares_passes(posterior: Posterior) -> bool:
    """Whether chains should move abreast, whatever their steps cost: a pass over rows on disk costs
    more than to wait for the longest trajectory."""
    return not posterior.data.rows.in_memory


class Rounds(NamedTuple):
    """A warm-up in rounds, between which an adapter changes the kernel's settings."""

    num_steps: int
    """Steps of the warm-up, per chain."""
    round_draws: int
    """Draws in a round, and between checkpoints: one program serves both."""
    thinning: int
    """Steps per draw."""

    @property
    def round_steps(self) -> int:
        """Steps in a round."""
        return self.round_draws * self.thinning

    @property
    def number(self) -> int:
        """Number of rounds."""
        return -(-self.num_steps // self.round_steps)

    def plan(self, recipe: Recipe, adapter: Adapter) -> Plan:
        """The plan of phase "warmup", in which the adapter finds the settings."""
        return Plan(
            recipe,
            "warmup",
            adapter,
            num_steps=self.num_steps,
            thinning=self.thinning,
            block_steps=self.round_steps,
            keep_draws=False,
            budget_share=0.5,
        )


@dataclass(frozen=True, kw_only=True)
class Chains(Method):
    """Chains that are tuned together.

    Args:
        num_draws: per chain, after warm-up.
        num_chains: independent chains; 4 so that R-hat means something.
        num_warmup: steps per chain to tune the kernel's settings.
        thinning: steps per draw.
        target_acceptance_rate: what the step size is tuned to.
    """

    round_draws: ClassVar[int] = 25
    """Draws in a round of the warm-up; see `Rounds`."""

    num_draws: int = 1000
    num_chains: int = 4
    num_warmup: int = 500
    thinning: int = 1
    target_acceptance_rate: float = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(
            num_draws=self.num_draws,
            num_chains=self.num_chains,
            num_warmup=self.num_warmup,
            thinning=self.thinning,
        )
        usual = type(self).target_acceptance_rate or Chains.target_acceptance_rate
        check_share(
            f"{usual} is usual",
            target_acceptance_rate=self.target_acceptance_rate,
        )

    def _rounds(self, thinning: int = 1) -> Rounds:
        """The rounds of the warm-up."""
        return Rounds(self.num_warmup, self.round_draws, thinning)

    def _sample_plan(self, warmup: Plan, memory: Any, *, thinning: int) -> Plan:
        """The plan of phase "sample", with the settings that the warm-up's adapter remembers."""
        plan = replace(warmup, thinning=thinning, block_steps=self._rounds(thinning).round_steps)
        return plan.sampling(memory, num_draws=self.num_draws)


@dataclass(frozen=True, kw_only=True)
class TrainedChains(Chains):
    """Chains that start from trained members: one started at random wastes its warm-up.

    Args beyond those of `Chains`:
        training: of the members where chains start.
    """

    training: Training = field(default=Training())

    def _start(
        self, key: PRNGKeyArray, posterior: Posterior, driver: Driver, *, budget_share: float = 0.25
    ) -> Float[Array, "chain weight"]:
        """Train the chains' starting positions, in phase "train"."""
        return train(
            key, posterior, driver, self.num_chains, self.training, budget_share=budget_share
        ).positions

    def _scout(
        self,
        key: PRNGKeyArray,
        posterior: Posterior,
        driver: Driver,
        plan: Plan,
        sample: PhaseResult,
        data: Data,
    ) -> dict[str, Any]:
        """What further starts found, for `Drawn.found`; see `scouts`."""
        starts = scout(key, posterior, driver, plan, sample, data, self.training)
        return {} if starts is None else {"starts": starts.to_dict()}
