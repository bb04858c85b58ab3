"""Further starts see a mode that no chain has visited, and see none where there is none."""

import numpy as np
import pytest
from tools.exact import linear_regression

from credence.density.posterior import Posterior
from credence.ensembles.diagnostics import assess, with_starts
from credence.ensembles.ensemble import Ensemble
from credence.methods import MCLMC
from credence.models import MLP, Gaussian, StudentT

QUICK = MCLMC(num_draws=500, num_warmup=50, num_chains=2)
ONE = np.ones((1, 1))


def two_modes() -> Posterior:
    """Groups that contradict each other: the mean is near one or the other, 60 scales apart."""
    noise = np.random.default_rng(0).normal(size=40)
    y = np.repeat([-3.0, 3.0], 20) + 0.1 * noise
    likelihood = StudentT(df=2.1, scale=0.1)
    return Posterior(MLP(1, hidden=()), Gaussian(bias_std=3.0), likelihood, (np.ones((40, 1)), y))


def modes(ensemble: Ensemble) -> set[float]:
    """Those that the chains are in; no chain crosses."""
    signs = np.sign(ensemble.functions(ONE)[..., 0, 0])
    assert np.all(signs == signs[:, :1])
    return set(signs[:, 0])


def test_a_mode_that_no_chain_visits_is_found() -> None:
    posterior = two_modes()
    ensembles = [QUICK.run(seed, posterior) for seed in range(3)]
    in_one_mode = [ensemble for ensemble in ensembles if len(modes(ensemble)) == 1]
    assert 0 < len(in_one_mode) < 3
    for ensemble in ensembles:
        is_in_one = len(modes(ensemble)) == 1
        verdict = assess(ensemble.monitored(ONE))
        assert verdict.converged is is_in_one  # all that R-hat can see
        starts = ensemble.provenance.found["starts"]
        assert starts["num_starts"] == 2
        assert (starts["num_elsewhere"] > 0) is is_in_one
        judged = with_starts(verdict, starts)
        assert judged.converged is False
        if is_in_one:
            assert "settled in a mode that no chain has visited" in judged.reason


def test_a_posterior_with_one_mode_raises_no_alarm() -> None:
    problem = linear_regression()
    ensemble = QUICK.run(0, problem.posterior)
    starts = ensemble.provenance.found["starts"]
    assert starts == {"num_starts": 2, "num_elsewhere": 0, "log_density_gap": None}
    assert ensemble.cost.seconds["scout"] > 0


@pytest.mark.parametrize("limits", [{"num_draws": 499}, {"num_draws": 500, "max_seconds": 1e4}])
def test_short_and_limited_runs_do_not_look_elsewhere(limits: dict[str, float]) -> None:
    method = MCLMC(num_draws=int(limits["num_draws"]), num_warmup=25, num_chains=2)
    posterior = linear_regression().posterior
    ensemble = method.run(0, posterior, max_seconds=limits.get("max_seconds"))
    assert "starts" not in ensemble.provenance.found
    assert "scout" not in ensemble.cost.seconds
