"""Nonlinear SGLD: the exact posterior where its potentials are, and its known bias where not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tools.exact import linear_regression, weights
from tools.moments import moment_z

from credence.density.posterior import Posterior
from credence.errors import InputError
from credence.kernels.sgmcmc.ula import ula
from credence.methods import METHODS, NonlinearSGLD
from credence.methods.interacting import nonlinear_sgld
from credence.methods.interacting.kernel import interacting
from credence.methods.interacting.partner_kernels import Particles, Wanted, partner_kernel
from credence.methods.interacting.partner_warnings import (
    ColdPartnersWarning,
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
@pytest.mark.parametrize("kernel", ["rms", "sghmc"])
def test_posterior_of_linear_regression_with_partners_that_remember(
    kernel: str, monkeypatch: Any
) -> None:
    """Planted: the potential of another temperature than the partners'."""
    own = {"rms": {"auxiliary_step_size": 0.004}, "sghmc": {"auxiliary_friction": 0.3}}[kernel]
    method = replace(SMALL, auxiliary_kernel=kernel, temperature=2.0, **own)
    z = moment_z(runs(method), PROBLEM)
    tempered = nonlinear_sgld.tempered
    monkeypatch.setattr(
        nonlinear_sgld,
        "tempered",
        lambda log_density: tempered(log_density)._replace(
            log_potential=lambda log, *_: (1 - 1 / 4.0) * log
        ),
    )
    planted = moment_z(runs(method), PROBLEM)
    print(f"{kernel} partners: z {z:.1f}; potential at temperature 4: {planted:.1f}")
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


@pytest.mark.parametrize(
    ("settings", "is_minibatch"),
    [
        ({}, False),  # all 12 rows are in every step
        ({"batch_size": 4}, True),
        ({"batch_size": 4, "potential_rows": 8}, False),
    ],
)
def test_only_rows_that_partners_move_along_weigh_them_before(
    settings: dict[str, int], is_minibatch: bool
) -> None:
    method = replace(QUICK, **settings)
    assert method._weighs_minibatches(PROBLEM.posterior) == is_minibatch


@pytest.mark.filterwarnings(
    "ignore::credence.methods.interacting.partner_warnings.DegenerateAuxiliaryWarning"
)
def test_the_order_of_a_step_reaches_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []

    def watched(*args: Any, moves_last: bool, **rest: Any) -> Any:
        found.append(moves_last)
        return interacting(*args, moves_last=moves_last, **rest)

    monkeypatch.setattr(nonlinear_sgld, "interacting", watched)
    replace(QUICK, num_draws=2, num_warmup=4, thinning=1, batch_size=4).run(0, PROBLEM.posterior)
    assert set(found) == {True}


class TestPartnersByAKernelOfTheirOwn:
    @pytest.mark.filterwarnings(
        "ignore::credence.methods.interacting.partner_warnings.DegenerateAuxiliaryWarning"
    )
    @pytest.mark.parametrize(
        ("kernel", "settings"),
        [
            ("rms", {"auxiliary_step_size": 0.01}),
            ("sghmc", {"auxiliary_friction": 0.5}),
            ("sghmc", {"auxiliary_step_size": 0.2}),
            ("sgld", {"auxiliary_step_size": 0.01}),
        ],
    )
    def test_each_setting_has_an_effect(self, kernel: str, settings: dict[str, float]) -> None:
        method = replace(QUICK, auxiliary_kernel=kernel)
        plain, set_by_hand = (
            weights(each.run(3, PROBLEM.posterior))
            for each in (method, replace(method, **settings))
        )
        assert np.isfinite(plain).all()
        assert not np.allclose(plain, set_by_hand)

    def test_steps_that_nobody_chose_drift_as_particles_do(self) -> None:
        """h / 2 times the tempered gradient is that of the particles, at every temperature."""
        found = {"step_size": np.float32(0.02), "inverse_mass": np.ones(3, np.float32)}
        for temperature in (0.01, 1.0, 4.0):
            particles = Particles(ula, found, 10, 100, temperature)
            langevin = partner_kernel(Wanted("sgld", None, None), particles).settings["step_size"]
            assert langevin / temperature == pytest.approx(0.02, rel=1e-5)
            momentum = partner_kernel(Wanted("sghmc", None, 0.5), particles).settings["step_size"]
            leapfrog = 0.02 * 10 / (1 + 36)  # h N / b, less the noise of ten batches at friction .5
            assert momentum**2 / temperature == pytest.approx(leapfrog, rel=1e-5)

    def test_the_rms_metric_is_frozen_when_particles_jump(self) -> None:
        found = {"step_size": np.float32(0.02), "inverse_mass": np.ones(3, np.float32)}
        rms = partner_kernel(Wanted("rms", None, None), Particles(ula, found, 10, 100, 1.5))
        assert (float(rms.tuning["decay"]), float(rms.settings["decay"])) == (
            pytest.approx(0.99),
            1.0,
        )
        assert rms.settings["step_size"] == pytest.approx(1e-5)

    @pytest.mark.filterwarnings(
        "ignore::credence.methods.interacting.partner_warnings.DegenerateAuxiliaryWarning"
    )
    def test_partners_colder_than_the_posterior_are_allowed_with_a_warning(self) -> None:
        method = replace(QUICK, auxiliary_kernel="rms", temperature=0.5)
        with pytest.warns(ColdPartnersWarning, match="the published variant"):
            cold = method.run(1, PROBLEM.posterior)
        assert np.isfinite(weights(cold)).all()


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
        ({"temperature": 1.0}, "temperature must be > 0, finite and not 1, got 1.0"),
        ({"temperature": -0.5}, "temperature must be > 0, finite and not 1, got -0.5"),
        ({"auxiliary_kernel": "hmc"}, "Unknown auxiliary kernel 'hmc'"),
        ({"auxiliary_friction": 0.1}, "auxiliary_friction=0.1 is of auxiliary_kernel='sghmc'"),
        ({"auxiliary_kernel": "sghmc", "auxiliary_friction": 2.0}, "friction must be in"),
        ({"auxiliary_step_size": -1.0}, "auxiliary_step_size must be > 0"),
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
