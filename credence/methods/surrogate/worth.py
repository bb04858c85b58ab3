"""Can an emulator of the likelihood pay? What is said before it is tried, and once it is measured.

The rule is a simple one, of few measurements (docs/explanation/ces.md), and stands here alone:

    rows      a network of 38 weights: MCLMC on all rows took a third of the emulator's time at
              10,000 rows, and 3.4 times as long at 100,000
    weights   at 38 the emulator pays; with hundreds of weights no emulator is known to be right to
              a few nats at draws of the posterior, where one nat is much
              (docs/explanation/ces.md, docs/results/fbnn.md)
"""

import numpy as np

from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.errors import InputError
from credence.methods.surrogate.emulators import Emulator, Error

FEWEST_ROWS = 50_000
"""Rows below which MCLMC on all of them was sooner."""
MOST_WEIGHTS = 300
"""Weights above which no emulator is known to be good enough."""
INSTEAD = "method='mclmc' takes gradients of all rows, and is likely to be sooner"
STUCK = (
    "The chain that led to these draws has not moved: explore for longer (num_warmup, or more "
    "seconds), or calibrate by draws (calibration='sghmc'). "
)
"""What an infinite error means."""


class HopelessEmulator(InputError):
    """An emulator that does not know the likelihood."""


def outlook(posterior: Posterior, emulator: Emulator, sampler: str) -> str:
    """Say in a sentence or two, before anything is computed, whether emulation can pay."""
    rows, weights = posterior.num_points, posterior.num_weights
    size = f"{rows:,} rows, {weights:,} weights"
    if emulator.is_whole(posterior):
        return (
            f"With {size}, emulator='{emulator.name}' takes all rows as they are: nothing is "
            f"emulated, and this is {sampler} on all rows. {INSTEAD}."
        )
    reasons = []
    if rows < FEWEST_ROWS:
        reasons.append(f"below some {FEWEST_ROWS:,} rows a likelihood costs too little")
    if weights > MOST_WEIGHTS:
        reasons.append(
            f"above some {MOST_WEIGHTS} weights no emulator is known to be right to a few nats, "
            "and this one is likely to be refused"
        )
    if reasons:
        return f"With {size} an emulator can hardly pay: {'; '.join(reasons)}. {INSTEAD}."
    return f"With {size} an emulator can pay. How far it is off is said before the chain begins."


def checked_error(error: Error, driver: Driver, max_error: float, num_calibration: int) -> Error:
    """The emulator's error at held-out points, said.

    Raises:
        HopelessEmulator: where it is too large.
    """
    found = (
        f"The emulator is off by {error.nats:.2g} nats at draws that it has not seen "
        f"({error.share:.0%} of the variance there)"
    )
    driver.progress.say(f"{found}.")
    if not error.nats <= max_error:
        raise HopelessEmulator(
            f"{found}, more than max_error={max_error:g}: its chain would lead nowhere. "
            f"{'' if np.isfinite(error.nats) else STUCK}"
            "Use more pseudo-observations (emulator=Coreset(num_inputs=...)), more draws "
            f"to learn from (num_calibration={num_calibration} per chain), or fewer "
            f"weights; max_error={'1e9' if np.isfinite(error.nats) else 'inf'} samples all the "
            "same. Or use method='mclmc', which needs no emulator."
        )
    return error
