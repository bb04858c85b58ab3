"""Steps on minibatches: of how many rows, and how long they may be."""

from collections.abc import Callable
from typing import Any

from credence.density.posterior import Posterior
from credence.errors import InputError, require_positive
from credence.kernels.base import Settings
from credence.methods.training import IMAGES_PER_STEP

MOST_IN_ONE = 8192
"""Most rows that a step sees all of by default."""
ROWS_PER_STEP = 1024
"""Rows of a step by default where there are more."""
USUAL_FRICTION = 0.1
"""Share of its velocity that SGHMC loses per step by default, where steps see some of the rows."""
FRICTION_OF_ALL = 0.01
"""The same where every step sees all rows (`usual_friction`)."""
RMS_DECAY = 0.99
"""Memory of the RMSprop metric's squared gradients while it is tuned."""


def check_batch_size(batch_size: int | str | None) -> None:
    """Refuse a number of rows that is none, and words but "all"."""
    if not isinstance(batch_size, str):
        require_positive(batch_size=batch_size)
    elif batch_size != "all":
        raise InputError(f"batch_size must be a number, 'all' or None, got {batch_size!r}.")


def minibatch_rows(batch_size: int | str | None, posterior: Posterior) -> int:
    """Rows of a step; by default all of few rows, which at stationarity costs nothing.

    With b of N rows the gradients' noise bounds the square of the step by a multiple of b / N, so
    that a pass over the data moves the weights no farther for a small b, and farther without the
    noise (`benchmarks/stochastic_gradient.py wine`; Nagapetyan et al., "The true cost of stochastic
    gradient Langevin dynamics", 2017). What small batches make quick is the way to the posterior,
    which training is for.

    Raises:
        InputError: for more rows than there are.
    """
    num_points = posterior.num_points
    if isinstance(batch_size, str):
        return num_points
    if batch_size is not None and batch_size > num_points:
        raise InputError(
            f"batch_size={batch_size} is more than the {num_points} rows: use at most "
            "that, 'all', or None for the usual."
        )
    if batch_size is not None:
        return batch_size
    if len(posterior.data.x.shape) > 2:
        return min(IMAGES_PER_STEP, num_points)
    return num_points if num_points <= MOST_IN_ONE else ROWS_PER_STEP


def usual_friction(num_rows: int, num_points: int) -> float:
    """SGHMC's friction by default, with so many rows of a step.

    The gradients' noise bounds step^2 / friction, and with it how fast the weights drift, whatever
    the friction is. Without that noise the step is a leapfrog's, and a lower friction lets the
    weights keep their direction for longer.
    """
    return FRICTION_OF_ALL if num_rows == num_points else USUAL_FRICTION


def friction_noise(friction: float, num_rows: int, num_points: int) -> float:
    """The gradients' noise of SGHMC against what its step itself adds to the variance.

    Along a direction of precision p (in the metric) the step adds step^2 p / 4 of the variance, and
    the noise of b of N rows step^2 p (N/b - 1) / (2 friction).
    """
    return 2 * (num_points / num_rows - 1) / friction


def rms_settings(
    step_size: float | None, num_points: int, number: Callable[[float], Any]
) -> tuple[Settings, Settings]:
    """Settings of `rms_sgld` while its metric is tuned, and when that is frozen.

    Args:
        step_size: None is 1e-3 / rows.
        number: makes a setting of a Python number.
    """
    size = number(step_size or 1e-3 / num_points)
    tuning, frozen = ({"step_size": size, "decay": number(decay)} for decay in (RMS_DECAY, 1.0))
    return tuning, frozen
