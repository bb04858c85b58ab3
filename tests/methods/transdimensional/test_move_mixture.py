"""How often each kind of jump is tried, and how many jumps go with a step."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from credence.density.posterior import Posterior
from credence.engine.blocks import Block
from credence.engine.phases import fixed
from credence.methods import Transdimensional
from credence.methods.transdimensional.kernel import FIRST_JUMPS
from credence.methods.transdimensional.move_mixture import (
    MOST_JUMPS,
    SHARED,
    MixtureMemory,
    kind_probs,
    with_mixture,
)
from credence.models import MLP, Gaussian, Normal

pytestmark = pytest.mark.rotates(3)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=30)
POSTERIOR = Posterior(MLP(1, (6,)), Gaussian(scaling="unit"), Normal(0.3), (X, Y))
MOVES = ("collapsed", "plain", "plain_by_3")


def run(**settings: Any) -> Any:
    quick: dict[str, Any] = {"num_chains": 4, "num_draws": 60, "num_warmup": 100}
    return Transdimensional(**quick, **settings).run(0, POSTERIOR)


def memory_of(gained: Any, spent: Any, tried: Any) -> MixtureMemory:
    gained, spent, tried = (np.asarray(each) for each in (gained, spent, tried))
    return MixtureMemory((), gained, spent, tried, np.asarray(10.0))


def test_work_goes_to_what_changes_most_for_it() -> None:
    """Squared changes per evaluation are 1 and 1 / 3; a jump of the second kind costs 3."""
    groups = (("plain", "plain_by_3"), ("layer",))
    memory = memory_of([10.0, 9.0, 0.0], [10.0, 27.0, 5.0], [10.0, 9.0, 5.0])
    work = np.array([0.1 + 0.8 * 0.75, 0.1 + 0.8 * 0.25])
    tries = work / np.array([1.0, 3.0])
    np.testing.assert_allclose(kind_probs(memory, groups), [*(tries / tries.sum()), 1.0], rtol=1e-6)


def test_without_any_knowledge_all_kinds_are_equally_likely() -> None:
    found = kind_probs(memory_of(*np.zeros((3, 3))), (("plain", "collapsed"), ("layer",)))
    np.testing.assert_allclose(found, [0.5, 0.5, 1.0])


def test_the_warm_up_learns_which_jumps_pay() -> None:
    """Sampled with what is said; every kind gets its share of the work; equal where not asked
    for."""
    found = run(moves=MOVES)
    shares = found.provenance.found["move_probabilities"]
    assert set(shares) == set(MOVES)
    assert abs(sum(shares.values()) - 1) < 1e-6
    tried = np.array([found.scalars[f"num_jumps_{name}"].sum() for name in MOVES])
    assert np.all(np.abs(tried / tried.sum() - list(shares.values())) < 0.15)  # borders refuse some
    work = np.array([found.scalars[f"jump_cost_{name}"].sum() for name in MOVES])
    assert np.all(work / work.sum() > 0.5 * SHARED / len(MOVES))
    equal = run(moves=MOVES, tune_moves=False)
    assert "move_probabilities" not in equal.provenance.found
    assert not np.array_equal(equal.scalars["width"], found.scalars["width"])


def block_of(jump_cost: Any, step_cost: float) -> Block:
    """A round of two chains and three steps, every one of them alike."""
    cost = np.broadcast_to(np.asarray(jump_cost), (2, 3, len(jump_cost)))
    info = {
        "jump_cost": cost,
        "num_jumps": np.ones_like(cost),
        "num_jumps_accepted": np.ones_like(cost),
        "step_cost": np.full((2, 3), step_cost),
    }
    return Block((), jnp.zeros((2, 3, 1)), info)


@pytest.mark.parametrize(
    ("jump_cost", "step_cost", "number"),
    [
        ([20, 20], 120.0, 30),  # ten jumps cost a third of the step
        ([60, 180], 120.0, 5),
        ([1, 0], 1e6, MOST_JUMPS),
        ([4000, 0], 1.0, 1),
        ([0, 0], 120.0, FIRST_JUMPS),  # none were tried
    ],
)
def test_jumps_take_as_much_work_as_the_step(jump_cost: Any, step_cost: float, number: int) -> None:
    groups = (("plain", "collapsed"),)
    for given, expected in ((None, number), (7, 7)):
        adapter = with_mixture(fixed(step_size=1.0), groups, num_jumps=given, is_tuned=False)
        memory = adapter.update(adapter.memory, block_of(jump_cost, step_cost))
        assert adapter.tuned(memory) == {"step_size": 1.0, "num_jumps": expected}


@pytest.mark.parametrize("num_rungs", [1, 3])
def test_a_run_has_the_jumps_that_its_warm_up_found(num_rungs: int) -> None:
    found = run(moves=("collapsed",), num_rungs=num_rungs, max_doublings=4)
    number = found.provenance.found["jumps_per_step"]
    assert 1 < number < MOST_JUMPS
    assert number != FIRST_JUMPS
    assert 0.5 * number < found.scalars["num_jumps"].mean() <= number  # borders refuse some
    balance = found.scalars["jump_cost"].mean() / found.scalars["step_cost"].mean()
    assert 0.5 < balance < 2.0
