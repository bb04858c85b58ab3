"""What chains over architectures say, and when they are not to be believed."""

import json
from typing import Any

import numpy as np
import pytest

from credence.ensembles.diagnostics import assess
from credence.ensembles.findings import with_findings
from credence.methods.transdimensional.architecture.posterior import (
    Architecture,
    architecture_posterior,
    width_posterior,
)

CHAINS, DRAWS = 4, 400


def scalars(*widths: np.ndarray, accepted: int = 1, **more: np.ndarray) -> dict[str, np.ndarray]:
    """Scalars of chains that were at these widths of their layers."""
    ones = np.ones(widths[0].shape)
    layers = {f"width_{i}": w.astype(float) for i, w in enumerate(widths, 1)}
    total = np.sum(widths, axis=0).astype(float)
    jumps = {"num_jumps_plain": 2 * ones, "num_jumps_accepted_plain": accepted * ones}
    return {"width": total, **layers, **jumps, "has_moved": ones, **more}


def law(*values: int, seed: int = 0, p: Any = None) -> np.ndarray:
    """Independent draws of the values."""
    return np.random.default_rng(seed).choice(values, size=(CHAINS, DRAWS), p=p)


def found(*widths: np.ndarray, **more: Any) -> Any:
    return architecture_posterior(scalars(*widths, **more))


def test_probabilities_and_map() -> None:
    first, second = law(2, 3, p=(0.7, 0.3)), law(1, 5, seed=1, p=(0.2, 0.8))
    about = found(first, second)
    best = about.likeliest[0]
    assert best.widths == (2, 5)
    assert best.probability == pytest.approx(0.56, abs=5 * best.standard_error)
    assert best.standard_error == pytest.approx((0.56 * 0.44 / 1600) ** 0.5, rel=0.3)
    assert about.num_architectures == 4
    assert about.width.mean == pytest.approx((first + second).mean())
    assert [each.mode for each in about.layers] == [2, 5]
    assert about.depth is None
    assert (about.jumps["plain"].tried, about.jumps["plain"].rate) == (3200, 0.5)
    assert about.num_states == about.num_draws == CHAINS * DRAWS
    assert about.settled
    assert json.loads(json.dumps(about.to_dict(), allow_nan=False))["likeliest"][0]["widths"] == [
        2,
        5,
    ]


def test_chains_that_stay_apart_are_read_back_as_such() -> None:
    """R-hat is infinite where no chain leaves a size of its own."""
    apart = np.repeat(np.arange(1, CHAINS + 1)[:, None], DRAWS, axis=1)
    about = found(apart, law(2, 3))
    assert about.max_rhat == np.inf
    saved = json.loads(json.dumps(about.entries(), allow_nan=False))
    again = type(about).read(saved, {})
    assert again.max_rhat == np.inf
    assert "R-hat at most inf" in again.sentences()[0] == about.sentences()[0]
    assert "inf" in str(again.section({}, is_converged=False))


def test_three_draws_settle_nothing() -> None:
    few = {name: each[:, :3] for name, each in scalars(law(2, 3)).items()}
    about = architecture_posterior(few)
    assert about is not None
    assert not about.settled
    assert "3 draws per chain cannot be judged" in about.reason


def test_one_chain_settles_nothing() -> None:
    one = {name: each[:1] for name, each in scalars(law(2, 3)).items()}
    about = architecture_posterior(one)
    assert about is not None
    assert np.isnan(about.max_rhat)
    assert not about.settled
    assert "One chain cannot be compared" in about.reason


def test_absent_layers_have_no_units() -> None:
    second = law(0, 4)
    about = found(law(3, 3), second, depth=1.0 + (second > 0))
    assert about.likeliest[0].widths in ((3,), (3, 4))
    assert about.layers[1].widths[0] == 0
    assert about.depth.mode in (1, 2)
    assert about.settled


def test_chains_that_disagree_about_a_width_have_not_converged() -> None:
    apart = law(2, 3) + np.array([0, 0, 1, 1])[:, None]
    about = found(apart, law(1, 2, seed=1))
    assert not about.settled
    assert "disagree about the width of layer 1" in about.reason
    functions = np.random.default_rng(2).normal(size=(CHAINS, DRAWS, 5))
    judged = with_findings(assess(functions), [about])
    assert assess(functions).converged
    assert judged.converged is False
    assert judged.reason == about.reason


def test_layers_may_disagree_where_their_sum_agrees() -> None:
    first = law(2, 3) + np.array([0, 0, 1, 1])[:, None]
    about = found(first, 6 - first)
    assert np.isnan(about.width.rhat)
    assert not about.settled


def test_seldom_changes_and_refused_jumps_are_faults() -> None:
    slow = np.repeat(law(2, 3), 40, axis=1)[:, :DRAWS]
    assert "ESS" in found(slow).reason
    assert not found(slow).settled
    still = found(law(2, 2), accepted=0)
    assert "No jump between architectures was accepted" in still.reason
    assert not still.settled


def test_both_must_have_converged() -> None:
    functions = np.random.default_rng(3).normal(size=(CHAINS, DRAWS, 5))
    good, about = assess(functions), found(law(2, 3))
    assert with_findings(good, []) is good
    assert with_findings(good, [about]).converged
    assert "Of the architecture" in with_findings(good, [about]).reason
    bad = assess(functions + np.arange(CHAINS)[:, None, None])
    assert with_findings(bad, [about]).reason == bad.reason


def test_fixed_architectures_have_no_posterior() -> None:
    assert architecture_posterior({"acceptance_rate": np.ones((2, 3))}) is None


def test_depth_and_neurons_are_counted_together() -> None:
    first, second = law(2, 3, p=(0.7, 0.3)), law(0, 4, seed=1)
    depth = 1.0 + (second > 0)
    about = found(first, second, depth=depth)
    shares = {(each.depth, each.neurons): each.probability for each in about.joint}
    assert set(shares) == {(1, 2), (1, 3), (2, 6), (2, 7)}
    assert sum(shares.values()) == pytest.approx(1)
    assert shares[2, 7] == np.mean((depth == 2) & (first + second == 7))
    page = str(about.section({}, is_converged=True))
    assert "Depth and neurons together" in page
    assert "Most probable together: 1 layer with 2 neurons" in page or "2 layers with 6" in page
    told = found(law(3, 3), second, depth=depth)
    assert told.joint == (), "the depth tells the neurons"
    assert "Depth and neurons together" not in str(told.section({}, is_converged=True))


def test_few_draws_give_no_errors() -> None:
    few = width_posterior(np.array([[1.0, 2.0]]))
    assert np.isnan(few.rhat)
    assert np.isnan(few.standard_errors).all()


def test_what_is_written_is_read_back() -> None:
    """What went through JSON is the same, with NaN where a count never changes."""
    second = law(0, 4)
    depth = 1.0 + (second > 0)
    posteriors = (
        found(law(3, 3), second, depth=depth),
        found(law(2, 3), second, depth=depth),
        found(law(2, 2), accepted=0),
    )
    for about in posteriors:
        entries = json.loads(json.dumps(about.entries(), allow_nan=False))
        again = Architecture.read(entries, {})
        assert again is not None
        assert again.entries() == entries
        assert again.sentences() == about.sentences()
        assert (again.settled, again.reason) == (about.settled, about.reason)
        empty = {"architecture": {**entries["architecture"], "likeliest": []}}
        with pytest.raises(ValueError, match=r"architecture\.likeliest is empty"):
            Architecture.read(empty, {})
    assert Architecture.read({}, {}) is None


def test_a_terminal_is_told_sizes_and_jumps() -> None:
    second = law(0, 4)
    said = found(law(3, 3), second, depth=1.0 + (second > 0)).sentences()
    assert "are the most probable" in said[0]
    assert said[1].startswith("p(width given the data): 3: 0.")
    assert said[2].startswith("p(depth given the data): 1: 0.")
    assert said[3].startswith("Jumps accepted: plain 50.0% of 3,200;")
