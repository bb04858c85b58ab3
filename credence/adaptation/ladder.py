"""Warm-up of chains on a ladder of temperatures: powers, step sizes and metrics.

A round is a block of steps with fixed settings, as in `credence.adaptation.windows`. After each the
step size of every rung moves towards the target acceptance rate, by itself. At the end of windows
that double in length the powers of the likelihood are placed anew, so that all exchanges between
neighbours are refused equally often, and the metric is renewed.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.adaptation.windows import (
    AddDraws,
    Memory,
    add_variances,
    metric_ends,
    move_step_size,
    renew_metric,
)
from credence.density.data import Data
from credence.engine.blocks import Block
from credence.engine.phases import Adapter
from credence.kernels.base import Settings

ROOT = 4
"""Powers are interpolated by their fourth root: they lie densely near 0."""
FIRST_STEP = 0.1
"""Step size of every rung at the start, in standard deviations of the prior."""
NUM_PRIOR_DRAWS = 500
"""Draws of the prior from which its variances are estimated."""


class LadderMemory(NamedTuple):
    """What the warm-up remembers between rounds (numpy, fixed shapes)."""

    windows: Memory
    """Step sizes, one for each rung, and the metric of the coldest one."""
    powers: Float[np.ndarray, " rung"]
    refused: Float[np.ndarray, " pair"]
    """Sums over the rounds since the powers last changed, of the rates at which exchanges fail."""


def first_powers(num_rungs: int) -> Float[np.ndarray, " rung"]:
    """Powers of the likelihood at the start: from 0 to 1, densely near 0."""
    return np.linspace(0, 1, num_rungs) ** ROOT


def ladder_adaptation(
    prior_variances: Float[Array, " weight"],
    *,
    num_rungs: int,
    num_rounds: int,
    target_acceptance_rate: float,
    order: float = 2.0,
    largest: float = np.inf,
    add_draws: AddDraws = add_variances,
) -> Adapter:
    """Adapter of `powers`, `step_size` and `inverse_mass`, each with an entry for every rung.

    Args:
        prior_variances: of the weights, the metric of the hottest rung.
        num_rungs: of the ladder, at least 2.
        num_rounds: blocks in the warm-up phase.
        target_acceptance_rate, order, largest: of the kernel, as in `window_adaptation`.
        add_draws: what a round's draws of the coldest rung say of the metric.
    """
    ends, zero = metric_ends(num_rounds), np.zeros(())
    variances = np.asarray(prior_variances)
    log_steps = np.full(num_rungs, np.log(FIRST_STEP))
    start = LadderMemory(
        Memory(
            round=zero,
            rounds_since_metric=zero,
            log_step_size=log_steps,
            mean_log_step_size=np.zeros(num_rungs),
            inverse_mass=variances,
            sum_of_squares=np.zeros_like(variances),
            degrees_of_freedom=zero,
        ),
        first_powers(num_rungs),
        np.zeros(num_rungs - 1),
    )

    def settings(memory: LadderMemory, log_step_size: Float[np.ndarray, " rung"]) -> Settings:
        return {
            "powers": memory.powers.astype(variances.dtype),
            "step_size": np.minimum(np.exp(log_step_size), largest).astype(variances.dtype),
            "inverse_mass": rung_metrics(variances, memory.windows.inverse_mass, memory.powers),
        }

    def update(memory: LadderMemory, block: Block) -> LadderMemory:
        rates = np.asarray(block.info["acceptance_rate"]).mean(axis=(0, 1))
        rates[0] = target_acceptance_rate  # of what is drawn, and has no step
        windows = move_step_size(memory.windows, rates, target_acceptance_rate, order=order)
        windows = add_draws(windows, np.asarray(block.draws))
        windows = windows._replace(round=windows.round + 1)
        refused = memory.refused + 1 - mean_rates(np.asarray(block.info["exchange_rate"]))
        memory = LadderMemory(windows, memory.powers, refused)
        return _renewed(memory, variances) if int(windows.round) in ends else memory

    return Adapter(
        start,
        lambda memory: settings(memory, memory.windows.log_step_size),
        update,
        tuned=lambda memory: settings(memory, memory.windows.mean_log_step_size),
    )


@partial(jax.jit, static_argnames="draw")
def prior_variances(
    key: PRNGKeyArray, data: Data, *, draw: Callable[[PRNGKeyArray, Data], Array]
) -> Float[Array, " weight"]:
    """Variances of the prior's weights by their quartiles, which heavy tails do not move.

    Args:
        draw: (key, data) -> a draw from the prior; equal functions share a program.
    """
    keys = jax.random.split(key, NUM_PRIOR_DRAWS)
    draws = jax.vmap(lambda key: draw(key, data))(keys)
    low, high = jnp.nanquantile(draws, jnp.array([0.25, 0.75], draws.dtype), axis=0)
    return jnp.clip(((high - low) / 1.349) ** 2, 1e-19, 1e19)


def rung_metrics(
    prior: Float[np.ndarray, " weight"],
    posterior: Float[np.ndarray, " weight"],
    powers: Float[np.ndarray, " rung"],
) -> Float[np.ndarray, "rung weight"]:
    """Variances at every power: precisions add up, as those of a Gaussian likelihood do."""
    shares = powers[:, None].astype(prior.dtype)
    return 1 / ((1 - shares) / prior + shares / posterior)


def placed_anew(
    powers: Float[np.ndarray, " rung"], refused: Float[np.ndarray, " pair"]
) -> Float[np.ndarray, " rung"]:
    """Powers between which all exchanges should be refused equally often.

    The rates of refusal add up along the ladder to a barrier that does not depend on the powers
    chosen, as long as these are close (Syed, Bouchard-Cote, Deligiannidis & Doucet,
    "Non-reversible parallel tempering", 2022, section 5.2). It is divided evenly.

    Args:
        refused: rate of refusal of every pair of neighbours.
    """
    barrier = np.concatenate([[0.0], np.cumsum(np.clip(refused, 1e-3, 1.0))])
    wanted = np.linspace(0, barrier[-1], len(powers))
    placed = np.interp(wanted, barrier, powers ** (1 / ROOT)) ** ROOT
    placed[0], placed[-1] = 0.0, 1.0
    return placed


def mean_rates(
    rates: Float[np.ndarray, "chain draw pair"],
) -> Float[np.ndarray, " pair"]:
    """Average rates of exchanges over the steps in which a pair had a turn; 0 without any.

    Args:
        rates: of acceptance, NaN where the pair had no turn.
    """
    num_turns = np.sum(~np.isnan(rates), axis=(0, 1))
    return np.nansum(rates, axis=(0, 1)) / np.maximum(num_turns, 1)


def _renewed(memory: LadderMemory, prior: Float[np.ndarray, " weight"]) -> LadderMemory:
    """New powers and a new metric; every rung keeps the step that it has in its own metric."""
    old = memory.windows
    rounds = max(float(old.rounds_since_metric), 1.0)
    powers = placed_anew(memory.powers, memory.refused / rounds)
    windows = renew_metric(old)
    before = np.log(rung_metrics(prior, old.inverse_mass, memory.powers)).mean(axis=1)
    after = np.log(rung_metrics(prior, windows.inverse_mass, powers)).mean(axis=1)
    at_old = old.mean_log_step_size + 0.5 * before
    at_old[0] = at_old[1]
    new_places, old_places = powers ** (1 / ROOT), memory.powers ** (1 / ROOT)
    log_step_size = np.interp(new_places, old_places, at_old) - 0.5 * after
    windows = windows._replace(
        rounds_since_metric=np.zeros(()),
        log_step_size=log_step_size,
        mean_log_step_size=log_step_size,
    )
    return LadderMemory(windows, powers, np.zeros_like(memory.refused))
