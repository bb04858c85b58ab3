"""How long a model takes, measured on two cores; and what a time budget is enough for."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from credence.density.posterior import Posterior
from credence.methods.stacking.folds import SAMPLING_SHARE, FoldChains

SECONDS_OF_A_MODEL = 9.5
"""Time in which a model of a small table can be compiled and sampled at all."""
SECONDS_TO_COMPILE = 5.5
"""How long it takes to compile a model's programs on two cores, measured."""
WORK_PER_SECOND = 5.4e10
"""Rows times weights times gradients that a model may use, for each second that it takes, of tables
of at most 1000 rows on two cores, measured. Most models end before they have used all."""
SLOWER_BY_ROWS = 0.28
"""The power of the rows with which that falls in larger tables: measured up to 41,000 rows, where
forecasts were 0.96 to 1.4 times what it took; and 2 times with wide networks on 100,000."""
LEAST_PASSES = 100
"""Gradients at all rows, in training and after it, below which a chain is not worth its time."""
SECONDS_TO_WEIGH = 1.0
"""Models of a small table are scored and weighed in so long."""
ROWS_WEIGHED_PER_SECOND = 6000
"""Rows of large tables that are scored and weighed in a second, measured with four models."""
MOST_TO_WEIGH = 0.2
"""Share of a time budget that is kept to weigh the models at most."""


@dataclass(frozen=True)
class Budget:
    """The time that there is to sample all models."""

    ends_at: float
    """The end, by the clock of `perf_counter`; infinite without a limit."""

    @classmethod
    def of(cls, max_seconds: float | None, num_points: int, spent: float = 0.0) -> "Budget":
        """The time of a whole run, less what is kept to score and weigh the models in the end.

        Args:
            spent: seconds of it that earlier processes took.
        """
        if max_seconds is None:
            return cls(np.inf)
        kept = SECONDS_TO_WEIGH + num_points / ROWS_WEIGHED_PER_SECOND
        max_seconds = max(max_seconds - spent, 0.0)
        return cls(perf_counter() + max_seconds - min(kept, MOST_TO_WEIGH * max_seconds))

    @property
    def seconds_left(self) -> float:
        """What is left from now on."""
        return max(self.ends_at - perf_counter(), 1e-3)

    def share(self, needed: Sequence[float]) -> float:
        """Seconds of the first of the models that are not sampled yet, in proportion to the least
        that each needs."""
        return self.seconds_left * needed[0] / sum(needed)


def expected_seconds(chains: FoldChains, posterior: Posterior, max_work: float) -> float:
    """How long one model is expected to take, compiling included."""
    most = chains.training.max_epochs
    most += (chains.num_warmup + chains.num_draws) * chains.max_integration_steps
    bound = (1 + SAMPLING_SHARE) * chains.affordable_passes(posterior, max_work)
    return SECONDS_TO_COMPILE + _seconds_of(chains, posterior, min(most, bound))


def least_seconds(chains: FoldChains, posterior: Posterior) -> float:
    """The shortest time that is worth giving to a model."""
    passes = _seconds_of(chains, posterior, LEAST_PASSES)
    return max(SECONDS_TO_COMPILE + passes, SECONDS_OF_A_MODEL)


def work_within(chains: FoldChains, posterior: Posterior, seconds: float) -> float:
    """The bound `max_work` of `FoldChains.within` with which chains run for so many seconds.

    Programs may be there already, so compiling is not subtracted: a run that needs it is cut short
    by the clock.
    """
    num_passes = seconds / _seconds_of(chains, posterior, 1) / (1 + SAMPLING_SHARE)
    return num_passes / chains.affordable_passes(posterior, 1.0)


def affordable(needed: Sequence[float], seconds: float) -> list[int]:
    """Choose the models there is time for: the first, and of the others, in order, all that fit.

    Args:
        needed: the least seconds of every model.
        seconds: that there are, maybe infinite.
    """
    chosen, left = [0], seconds - needed[0]
    for index, each in enumerate(needed[1:], start=1):
        if each <= left:
            chosen.append(index)
            left -= each
    return chosen


def work_per_second(posterior: Posterior) -> float:
    """Rows times weights times gradients in a second; of larger tables fewer."""
    return WORK_PER_SECOND / max(posterior.num_points / 1000, 1.0) ** SLOWER_BY_ROWS


def _seconds_of(chains: FoldChains, posterior: Posterior, num_passes: float) -> float:
    return chains.work(posterior, num_passes) / work_per_second(posterior)
