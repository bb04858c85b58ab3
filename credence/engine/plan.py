"""The plan of a phase: which kernel moves the chains, what tunes it, for how long, and what it
costs.

A method builds a plan once and varies it by `dataclasses.replace` (not its thinning: that and the
number of draws are given to `sampling` together):

    plan = Plan(recipe, "warmup", adapter, num_steps=500, keep_draws=False, budget_share=0.5)
    warmup = driver.phase("warmup", key_warmup, plan, positions, data)
    plan = replace(plan.sampling(warmup.memory, num_draws=1000), batch_size=128)
    sample = driver.phase("sample", key_sample, plan, warmup.states, data)
"""

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from credence.engine.phases import Adapter, fixed
from credence.errors import require_positive
from credence.kernels.base import Recipe, Settings


@dataclass(frozen=True)
class Plan:
    """Everything that the driver must know of a phase beside its name, key, start and data.

    Args:
        recipe: builds the kernel that moves every chain.
        cost_class: the name under which the phase's seconds are summed up: "train", "warmup",
            "sample", or any word of the method's own.
        adapter: the kernel's settings, and how they change between blocks.
        num_steps: kernel steps per chain; every `thinning`-th is a draw. None: until the adapter
            has finished.
        block_steps: most steps of a block; blocks are equal and cover num_steps. Phases of as
            long blocks share a program.
        batch_size: rows per step, from shuffled epochs; None uses all rows in every step.
        keep_draws: return (and save) positions of all draws.
        budget_share: share of max_seconds used up when the phase must end.
        may_stop_early: True where an interrupted phase leaves a usable result.
        streams: whether a run's `Stream`, if there is one, takes the place of these draws.
        monitored: whether draws are chains of networks, whose R-hat a person wants to watch.
        num_weights: weights of the networks that one evaluation runs; None: those of a position.
        surrogate_flops: work of one evaluation of the surrogate, if the kernel counts any.
    """

    recipe: Recipe
    cost_class: str
    adapter: Adapter = field(default_factory=fixed)
    _: KW_ONLY
    num_steps: int | None
    thinning: int = 1
    block_steps: int = 100
    batch_size: int | None = None
    keep_draws: bool = True
    budget_share: float = 1.0
    may_stop_early: bool = False
    streams: bool = False
    monitored: bool = True
    num_weights: int | None = None
    surrogate_flops: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a phase without a step."""
        require_positive(
            num_steps=self.num_steps,
            thinning=self.thinning,
            block_steps=self.block_steps,
            batch_size=self.batch_size,
        )

    @property
    def settings(self) -> Settings:
        """The kernel's settings in the first block."""
        return self.adapter.settings(self.adapter.memory)

    @property
    def num_draws(self) -> int | None:
        """Draws of the phase; None where it is open-ended."""
        return None if self.num_steps is None else -(-self.num_steps // self.thinning)

    @property
    def room(self) -> int:
        """Draws that a block has room for."""
        room = max(1, self.block_steps // self.thinning)
        return room if self.num_draws is None else min(room, self.num_draws)

    @property
    def block_draws(self) -> int:
        """Number of draws of a block: the blocks of a phase are equal."""
        if self.num_draws is None:
            return self.room
        return -(-self.num_draws // -(-self.num_draws // self.room))

    def sampling(self, memory: Any, *, num_draws: int, thinning: int | None = None) -> "Plan":
        """The plan of the draws after this warm-up: the same kernel, its settings frozen.

        Args:
            memory: what the warm-up's adapter remembers at its end.
            num_draws: of every chain, each after `thinning` steps.
            thinning: steps per draw; by default as many as in the warm-up.
        """
        thinning = self.thinning if thinning is None else thinning
        return replace(
            self,
            cost_class="sample",
            adapter=fixed(**self.adapter.tuned(memory)),
            num_steps=num_draws * thinning,
            thinning=thinning,
            keep_draws=True,
            budget_share=1.0,
            may_stop_early=True,
            streams=True,
        )
