"""The powers of a ladder are placed where exchanges are refused equally often."""

import jax.numpy as jnp
import numpy as np
import pytest

from credence.adaptation.ladder import (
    first_powers,
    ladder_adaptation,
    mean_rates,
    placed_anew,
    rung_metrics,
)
from credence.engine.blocks import Block


def test_powers_divide_a_known_barrier_evenly() -> None:
    """A barrier of 6 t^(1/3), of which a pair's rate of refusal is the difference."""
    powers = first_powers(13)
    for _ in range(5):
        refused = np.diff(6 * powers ** (1 / 3))
        powers = placed_anew(powers, np.minimum(refused, 1))
    np.testing.assert_allclose(np.diff(6 * powers ** (1 / 3)), 0.5, rtol=0.02)
    assert powers[0] == 0
    assert powers[-1] == 1
    assert np.abs(np.diff(6 * first_powers(13) ** (1 / 3)) - 0.5).max() > 0.2, "they were not"


def test_powers_that_are_right_stay() -> None:
    powers = first_powers(9)
    np.testing.assert_allclose(placed_anew(powers, np.full(8, 0.4)), powers, atol=1e-12)


def test_metrics_lie_between_prior_and_posterior_by_their_precisions() -> None:
    """Those of a regression with one weight: a precision grows by its share of the data."""
    prior, posterior = np.array([4.0, 1.0]), np.array([0.5, 1.0])
    found = rung_metrics(prior, posterior, np.array([0.0, 0.25, 1.0]))
    np.testing.assert_allclose(found, [[4, 1], [1 / (0.75 / 4 + 0.25 * 2), 1], [0.5, 1]])


def test_rates_are_means_over_the_turns_of_a_pair() -> None:
    rates = np.full((2, 3, 3), np.nan)
    rates[:, ::2, 0] = [[0.9, 0.5], [0.9, 0.5]]
    rates[:, 1, 1] = 0.2
    np.testing.assert_allclose(mean_rates(rates), [0.7, 0.2, 0.0])


@pytest.mark.parametrize("barrier", [3.0, 12.0])
def test_every_rung_gets_the_step_that_suits_it(barrier: float) -> None:
    """Blocks whose acceptance follows from the step: rung i is best at 0.02 t^(-1/4), at most 1."""
    num_rungs, rounds = 12, 40
    adapter = ladder_adaptation(
        jnp.ones(3), num_rungs=num_rungs, num_rounds=rounds, target_acceptance_rate=0.9
    )
    memory = adapter.memory

    def best(powers: np.ndarray) -> np.ndarray:
        return np.minimum(0.02 * np.maximum(powers, 1e-9) ** -0.25, 1.0)

    for number in range(rounds):
        settings = adapter.settings(memory)
        rates = np.exp(np.log(0.9) * (settings["step_size"] / best(settings["powers"])) ** 2)
        rates[0] = 1.0
        refused = np.minimum(np.diff(barrier * settings["powers"] ** (1 / 3)), 1)
        draws = jnp.asarray(np.random.default_rng(number).normal(size=(4, 25, 3)))
        info = {
            "acceptance_rate": jnp.broadcast_to(rates, (4, 25, num_rungs)),
            "exchange_rate": jnp.broadcast_to(1 - refused, (4, 25, num_rungs - 1)),
        }
        memory = adapter.update(memory, Block(None, draws, info))
    tuned = adapter.tuned(memory)
    np.testing.assert_allclose(tuned["step_size"][1:], best(tuned["powers"])[1:], rtol=0.1)
    assert np.all(tuned["step_size"] < 2)
