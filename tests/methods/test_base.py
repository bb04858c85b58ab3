"""Methods of one's own: phases of any name, another posterior, a method within a method."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import jax
import numpy as np
import pytest
from jaxtyping import PRNGKeyArray
from tools.exact import linear_regression
from tools.stops import Stop

from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.engine.phases import fixed
from credence.engine.plan import Plan
from credence.errors import InputError, StorageError
from credence.kernels.base import Recipe
from credence.kernels.mcmc.mala import mala
from credence.methods.base import Drawn, Method
from credence.models import LeadingInputs

PROBLEM = linear_regression()
NETWORK = PROBLEM.posterior.model.network


def steps(key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
    """Langevin steps, in phases that nobody has heard of."""
    settings = fixed(step_size=np.float32(0.1), inverse_mass=np.ones(posterior.num_weights))
    plan = Plan(Recipe(mala, posterior.log_density), "burning in", settings, num_steps=8)
    start = posterior.init(key, 2)
    first = driver.phase("burn_in", key, plan, start, posterior.data)
    plan = replace(plan, cost_class="sample", num_steps=4)
    return Drawn.by(driver.phase("more of it", key, plan, first.states, posterior.data))


@dataclass(frozen=True, kw_only=True)
class Own(Method):
    """A method of one's own."""

    name: ClassVar[str] = "own"
    summary: ClassVar[str] = "a method of one's own"

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        return steps(key, posterior, driver)


@dataclass(frozen=True, kw_only=True)
class OfOneInput(Method):
    """The same, of a network that sees the first input alone."""

    name: ClassVar[str] = "of_one_input"
    summary: ClassVar[str] = "a method with a posterior of its own"

    def prepared(self, posterior: Posterior) -> Posterior:
        model, (x, y, *_) = posterior.model, posterior.data
        if x.shape[1] < 2:
            raise InputError("There is only one input.")
        return Posterior(LeadingInputs(model.network, 1), model.prior, model.likelihood, (x, y))

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        return steps(key, posterior, driver)


@dataclass(frozen=True, kw_only=True)
class Within(Method):
    """Another method's draws."""

    name: ClassVar[str] = "within"
    summary: ClassVar[str] = "a method within a method"

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        with driver.part("first", cost_class="calibrate"), driver.part("again"):
            return OfOneInput().draw(key, posterior, driver)


def test_phases_of_any_name_run_to_the_end_and_count_as_declared() -> None:
    """They used to end in a ValueError, when all the work was done."""
    ensemble = Own().run(0, PROBLEM.posterior)
    assert ensemble.num_draws == 4
    assert list(ensemble.cost.seconds) == ["burning in", "sample", "compile", "other"]
    num_points = PROBLEM.posterior.num_points
    # The second phase goes on from states: none of its gradients is computed twice.
    assert ensemble.cost.gradient_evaluations == 2 * (8 + 4) * num_points


def test_an_infinite_budget_is_none() -> None:
    ensemble = Own().run(0, PROBLEM.posterior, max_seconds=float("inf"))
    assert (ensemble.num_draws, ensemble.provenance.stopped) == (4, "finished")
    with pytest.raises(InputError, match="max_seconds must be > 0, got nan"):
        Own().run(0, PROBLEM.posterior, max_seconds=float("nan"))


def test_the_posterior_is_prepared_once_and_before_anything_else() -> None:
    posterior = PROBLEM.posterior
    ensemble = OfOneInput().run(0, posterior)
    assert ensemble.model.network == LeadingInputs(posterior.model.network, 1)
    with pytest.raises(InputError, match="only one input"):
        OfOneInput().run(0, PROBLEM._replace(x=PROBLEM.x[:, :1]).posterior)


def test_a_method_within_a_method_draws_the_same_and_counts_together() -> None:
    """The part's posterior is prepared too, and its phases have names and a class of its own."""
    posterior = PROBLEM.posterior
    with Driver() as driver:
        inner = Within().draw(jax.random.key(0), posterior, driver)
    assert list(driver.results) == ["first again burn_in", "first again more of it"]
    assert {result.cost_class for result in driver.results.values()} == {"calibrate"}
    with Driver() as driver:
        alone = OfOneInput().draw(jax.random.key(0), posterior, driver)
    np.testing.assert_array_equal(inner.positions, alone.positions)


@dataclass(frozen=True, kw_only=True)
class Stopped(Method):
    """Ends as soon as the folder is its own."""

    name: ClassVar[str] = "stopped"
    summary: ClassVar[str] = "a method that has no time"

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        raise Stop


class Theirs:
    """A network from outside: the outputs of another, scaled."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __repr__(self) -> str:
        return f"<Theirs({self.scale}) at {hex(id(self))}>"

    def init(self, key: PRNGKeyArray, x: Any) -> Any:
        return NETWORK.init(key, x)

    def apply(self, params: Any, x: Any) -> Any:
        return self.scale * NETWORK.apply(params, x)

    def fan_in(self, params: Any) -> Any:
        return NETWORK.fan_in(params)


class Others(Theirs):
    """Another class of the same settings."""


def test_a_checkpoint_is_of_one_network_from_outside(tmp_path: Path) -> None:
    """The same one goes on, though it lies elsewhere in memory."""
    model, (x, y, *_) = PROBLEM.posterior.model, PROBLEM.posterior.data

    def run(network: Theirs) -> None:
        posterior = Posterior(network, model.prior, model.likelihood, (x, y))
        Stopped().run(0, posterior, folder=tmp_path)

    for _ in range(2):
        with pytest.raises(Stop):
            run(Theirs(1.0))
    for other in (Theirs(2.0), Others(1.0)):
        with pytest.raises(StorageError, match="holds another run: model was"):
            run(other)
