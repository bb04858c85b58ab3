"""What samplers share: train a member per chain, warm up, then sample with settings frozen."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from jaxtyping import Array, Float, PRNGKeyArray

from credence.errors import check_share
from credence.kernels.base import Recipe
from credence.methods.base import Method
from credence.methods.deep_ensemble import Training, train
from credence.methods.scouts import scout
from credence.models.priors import require_positive
from credence.models.stored import StoredRows
from credence.phases import Adapter, PhaseResult
from credence.posterior import Data, Posterior
from credence.run import Driver


def shares_passes(posterior: Posterior) -> bool:
    """Whether chains should move abreast, whatever their steps cost: a pass over rows on disk costs
    more than to wait for the longest trajectory."""
    return isinstance(posterior.data.x, StoredRows)


@dataclass(frozen=True, kw_only=True)
class Chains(Method):
    """Chains that start from trained members and are tuned together.

    Args:
        num_draws: per chain, after warm-up.
        num_chains: independent chains; 4 so that R-hat means something.
        num_warmup: steps per chain to tune the kernel's settings.
        thinning: steps per draw.
        target_acceptance_rate: what the step size is tuned to.
        training: of the members where chains start.
    """

    round_draws: ClassVar[int] = 25
    """Draws in a round of the warm-up, and between checkpoints: one program serves both."""

    num_draws: int = 1000
    num_chains: int = 4
    num_warmup: int = 500
    thinning: int | None = 1
    target_acceptance_rate: float = 0.8
    training: Training = field(default=Training())

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(
            num_draws=self.num_draws,
            num_chains=self.num_chains,
            num_warmup=self.num_warmup,
            thinning=1 if self.thinning is None else self.thinning,
        )
        check_share(
            f"{type(self).target_acceptance_rate} is usual",
            target_acceptance_rate=self.target_acceptance_rate,
        )

    def _start(
        self, key: PRNGKeyArray, posterior: Posterior, driver: Driver, *, budget_share: float = 0.25
    ) -> Float[Array, "chain weight"]:
        """Phase "train": where the chains start."""
        best = train(
            key, posterior, driver, self.num_chains, self.training, budget_share=budget_share
        )
        return best.positions

    def _num_rounds(self, thinning: int = 1) -> int:
        """Blocks of the warm-up."""
        return -(-self.num_warmup // (self.round_draws * thinning))

    def _warm_up(
        self,
        key: PRNGKeyArray,
        driver: Driver,
        recipe: Recipe,
        positions: Float[Array, "chain weight"],
        data: Data,
        adapter: Adapter,
        *,
        thinning: int = 1,
        batch_size: int | None = None,
        budget_share: float = 0.5,
        states: Any = None,
        surrogate_flops: float = 0.0,
        keep_draws: bool = False,
    ) -> PhaseResult:
        """Phase "warmup": the adapter finds the settings."""
        return driver.phase(
            "warmup",
            key,
            recipe,
            positions,
            data,
            adapter,
            num_steps=self.num_warmup,
            thinning=thinning,
            block_steps=self.round_draws * thinning,
            batch_size=batch_size,
            keep_draws=keep_draws,
            budget_share=budget_share,
            states=states,
            surrogate_flops=surrogate_flops,
        )

    def _scout(
        self,
        key: PRNGKeyArray,
        posterior: Posterior,
        driver: Driver,
        recipe: Recipe,
        sample: PhaseResult,
        data: Data,
        adapter: Adapter,
    ) -> dict[str, Any]:
        """Phases "scout ...": what further starts found, for `Drawn.found`; see `scouts`."""
        starts = scout(
            key,
            posterior,
            driver,
            recipe,
            sample,
            data,
            adapter,
            self.training,
            thinning=self.thinning or 1,
            block_steps=self.round_draws * (self.thinning or 1),
        )
        return {} if starts is None else {"starts": starts.to_dict()}

    def _sample(
        self,
        key: PRNGKeyArray,
        driver: Driver,
        recipe: Recipe,
        positions: Float[Array, "chain weight"],
        data: Data,
        adapter: Adapter,
        *,
        thinning: int,
        batch_size: int | None = None,
        states: Any = None,
        surrogate_flops: float = 0.0,
    ) -> PhaseResult:
        """Phase "sample": draws, with the settings that the warm-up found."""
        return driver.phase(
            "sample",
            key,
            recipe,
            positions,
            data,
            adapter,
            num_steps=self.num_draws * thinning,
            thinning=thinning,
            block_steps=self.round_draws * thinning,
            batch_size=batch_size,
            may_stop_early=True,
            states=states,
            surrogate_flops=surrogate_flops,
        )
