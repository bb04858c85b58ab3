"""The method of docs/how_to/own_method.md samples the posterior, and its finding is found."""

import runpy
from pathlib import Path
from typing import Any

import jax
import pytest
from tools.exact import LinearRegression, weights
from tools.moments import moment_z

from credence.ensembles.findings import found_in
from credence.errors import InputError
from credence.models import MLP, Gaussian, HierarchicalGamma, Normal

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "own_method.md"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The names that the page defines, its blocks run one after the other."""
    blocks = PAGE.read_text(encoding="utf-8").split("```python\n")[1:]
    path = tmp_path_factory.mktemp("page") / "page.py"
    path.write_text("\n".join(block.split("```")[0] for block in blocks), encoding="utf-8")
    return runpy.run_path(str(path), run_name="credence_page")


def test_it_draws_from_the_posterior(page: dict[str, Any]) -> None:
    problem = LinearRegression(page["x"], page["y"], Gaussian(), 0.5)
    method = page["Elliptical"](num_chains=16, num_draws=500, num_warmup=100, thinning=2)
    draws = weights(method.run(1, page["posterior"]))
    assert moment_z(draws, problem) < 4.5
    wrong = problem._replace(noise_std=1.0)
    assert moment_z(draws, wrong) > 4.5  # planted: the posterior at twice the noise


def test_its_finding_is_found(page: dict[str, Any]) -> None:
    found = found_in(page["ensemble"], page["Elliptical"].findings)["reach"]
    assert 0 < found.shrinkages < 8
    assert found.settled
    assert page["Reach"].read(found.entries(), {}) == found


def test_it_refuses_other_priors_and_learnt_noise(page: dict[str, Any]) -> None:
    data = (page["x"], page["y"])
    for prior, noise in ((HierarchicalGamma(), Normal(0.5)), (Gaussian(), Normal())):
        posterior = page["Posterior"](MLP(1, hidden=()), prior, noise, data)
        with pytest.raises(InputError, match="needs a Gaussian prior"):
            page["Elliptical"]().run(0, posterior)
    assert jax.tree.leaves(Normal().init(1))
