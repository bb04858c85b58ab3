"""Starts that settled elsewhere: only where predictions and densities say so."""

import json

import numpy as np

from credence.ensembles.diagnostics import Starts, assess, compare_starts, with_starts

RNG = np.random.default_rng(0)
CHAINS = RNG.normal(size=(1000, 20))
LOG_DENSITY = -0.5 * np.sum(CHAINS**2, axis=1)


def compared(shift: float, lower: float = 0.0, seed: int = 1) -> Starts:
    """Two starts, the first of which settled so many standard deviations away in one prediction."""
    draws = np.random.default_rng(seed).normal(size=(2, 25, 20))
    log_density = -0.5 * np.sum(draws**2, axis=2)
    draws[0, :, 3] += shift
    log_density[0] -= lower
    return compare_starts(CHAINS, LOG_DENSITY, draws, log_density)


def test_a_start_where_no_chain_has_been_is_elsewhere() -> None:
    found = compared(shift=10)
    assert (found.num_starts, found.num_elsewhere) == (2, 1)
    assert found.log_density_gap is not None
    assert abs(found.log_density_gap) < 4.5 * (20 / 2 / 25) ** 0.5  # of 25 means of chi2(20) / 2
    assert compared(shift=-10).num_elsewhere == 1


def test_a_much_less_likely_start_does_not_count() -> None:
    std = 10**0.5  # of the log density of 20 Gaussian numbers
    assert compared(shift=10, lower=1.5 * std).num_elsewhere == 1
    assert compared(shift=10, lower=5 * std).num_elsewhere == 0
    assert compared(shift=10, lower=-5 * std).num_elsewhere == 1  # likelier counts all the more


def test_starts_from_the_posterior_itself_raise_no_alarm() -> None:
    assert not any(compared(shift=0, seed=seed).num_elsewhere for seed in range(200))


def test_a_start_that_stands_still_raises_an_alarm_only_far_away() -> None:
    """A start is one draw at worst: an alarm is a prediction beyond all 1000 by a deviation."""
    still = np.random.default_rng(2).normal(size=(2000, 1, 20)).repeat(25, axis=1)
    log_density = -0.5 * np.sum(still**2, axis=2)
    found = compare_starts(CHAINS, LOG_DENSITY, still, log_density)
    assert found.num_elsewhere <= 8  # 40,000 numbers beyond +-4: 2.5 expected


def test_the_verdict_says_what_was_found_and_what_it_cannot_say() -> None:
    chains = np.random.default_rng(3).normal(size=(4, 500, 2))
    judged = assess(chains)
    assert "would not show" in with_starts(judged, None).reason
    nowhere = with_starts(judged, Starts(4, 0, None).to_dict())
    assert nowhere.converged is True
    assert "4 further starts led to no other mode" in nowhere.reason
    elsewhere = with_starts(judged, json.loads(json.dumps(Starts(4, 1, -0.5).to_dict())))
    assert elsewhere.converged is False
    assert "1 of 4 further starts settled in a mode that no chain has visited" in elsewhere.reason
    apart = assess(chains + np.arange(4)[:, None, None])
    assert with_starts(apart, Starts(4, 1, 0.0).to_dict()) is apart
    unjudged = assess(None)
    assert with_starts(unjudged, None) is unjudged
