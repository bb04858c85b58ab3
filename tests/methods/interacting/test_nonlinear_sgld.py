"""Nonlinear SGLD: the exact posterior where its potentials are, and its known bias where not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tools.exact import linear_regression, weights
from tools.moments import moment_z

from credence.density.posterior import Posterior
from credence.errors import InputError
from credence.methods import METHODS, NonlinearSGLD
from credence.methods.interacting import nonlinear_sgld
from credence.methods.interacting.partner_warnings import (
    DegenerateAuxiliaryWarning,
    StuckPartnersWarning,
)
from credence.methods.training import Training
from credence.models import Categorical, Gaussian, ResNet

PROBLEM = linear_regression()
NUM_RUNS = 32
SMALL = NonlinearSGLD(
    num_chains=32,
    num_draws=240,
    num_warmup=1500,
    step_size=0.04,  # so small that its bias is; and the same in all runs, or tuning spreads them
    thinning=40,
    jump_probability=0.2,
    training=Training(max_epochs=300),
)


def runs(method: NonlinearSGLD) -> np.ndarray:
    """Weights of independent runs: (run, particle and draw, weight)."""
    ensembles = [method.run(seed, PROBLEM.posterior) for seed in range(NUM_RUNS)]
    return np.stack([weights(each).reshape(-1, 4) for each in ensembles])


@pytest.mark.slow
@pytest.mark.parametrize("rows", [None, 12])
def test_posterior_of_linear_regression_with_all_rows(rows: int | None) -> None:
    draws = runs(replace(SMALL, potential_rows=rows))
    wrong = PROBLEM._replace(noise_std=1.1 * PROBLEM.noise_std)
    z, planted = moment_z(draws, PROBLEM), moment_z(draws, wrong)
    print(f"potential rows {rows}: z {z:.1f}; another noise {planted:.1f}")
    assert z < 4.5
    assert planted > 8


@pytest.mark.slow
def test_a_potential_upside_down_is_caught(monkeypatch: Any) -> None:
    tempered = nonlinear_sgld.tempered

    def upside_down(log_density: Any) -> Any:
        right = tempered(log_density)
        return right._replace(log_potential=lambda *of: -right.log_potential(*of))

    monkeypatch.setattr(nonlinear_sgld, "tempered", upside_down)
    z = moment_z(runs(SMALL), PROBLEM)
    print(f"upside down: z {z:.1f}")
    assert z > 8


QUICK = replace(
    SMALL, num_chains=4, num_draws=20, num_warmup=100, thinning=5, training=Training(max_epochs=20)
)


@pytest.mark.filterwarnings(
    "ignore::credence.methods.interacting.partner_warnings.DegenerateAuxiliaryWarning"
)
def test_all_rows_as_potential_rows_are_the_whole_batch() -> None:
    """The same draws, whichever way the potentials are computed, and the cost of both."""
    whole = QUICK.run(3, PROBLEM.posterior)
    rows = replace(QUICK, potential_rows=12).run(3, PROBLEM.posterior)
    np.testing.assert_allclose(weights(whole), weights(rows), rtol=1e-4, atol=1e-5)
    few = replace(QUICK, batch_size=4, potential_rows=12).run(3, PROBLEM.posterior)
    steps = QUICK.thinning
    assert np.all(whole.scalars["num_evaluations"] == 2 * steps)  # at the partner, at the particle
    assert np.all(few.scalars["num_evaluations"] == 3 * 2 * steps)
    assert np.all(whole.scalars["num_gradients"] == 2 * steps)


class TestWarnings:
    """Those of `interacting`; they are about what jumps lead to."""

    MANY = replace(QUICK, num_chains=8, num_draws=120, target_acceptance_rate=0.9)

    def test_potentials_that_degenerate(self) -> None:
        """Nearly all partners are far from the posterior at a temperature of 50."""
        method = replace(self.MANY, temperature=50.0, num_draws=50, thinning=40)
        with pytest.warns(DegenerateAuxiliaryWarning, match=r"are worth 1\.\d of 8 particles"):
            method.run(1, PROBLEM.posterior)

    def test_partners_that_do_not_meet(self) -> None:
        """Two networks far apart, and steps too short to get from one to the other."""
        method = replace(self.MANY, step_size=1e-6)
        with pytest.warns(StuckPartnersWarning, match="R-hat of their potentials is"):
            method.run(1, PROBLEM.posterior)

    def test_all_is_well(self) -> None:
        replace(self.MANY, num_warmup=400, thinning=20).run(1, PROBLEM.posterior)


@pytest.mark.slow
def test_images_and_a_residual_network() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(24, 4, 4, 3))
    y = (x.mean(axis=(1, 2, 3)) > 0).astype(int)
    posterior = Posterior(ResNet(2, 2, (1,)), Gaussian(), Categorical(), (x, y))
    method = replace(
        QUICK,
        num_chains=2,
        num_draws=3,
        num_warmup=10,
        batch_size=8,
        training=Training(max_epochs=3),
    )
    ensemble = method.run(0, posterior)
    assert ensemble.predictive(x[:5]).mean().shape == (5, 2)
    assert np.mean(ensemble.scalars["is_finite"]) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_chains": 1}, "at least 2 particles, got 1"),
        ({"jump_probability": 1.0}, "jump_probability must be strictly between 0 and 1, got 1.0"),
        ({"temperature": 1.0}, "temperature must be > 1 and finite, got 1.0"),
        ({"jump": "BG"}, "Unknown jump 'BG'"),
        ({"preconditioner": "rms"}, "preconditioner='rms' remembers where its chain was"),
        ({"potential_rows": 0}, "potential_rows must be > 0"),
        ({"exploration_share": 0.4}, "exploration_share=0.4 is of cycles"),
        ({"num_cycles": 2}, "num_cycles and gibbs do not go together with jumps"),
    ],
)
def test_refusals_are_sentences(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        NonlinearSGLD(**settings)


def test_it_is_known_by_name() -> None:
    assert METHODS["nonlinear_sgld"] is NonlinearSGLD
