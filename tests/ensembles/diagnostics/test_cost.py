"""Costs add up, survive storage, and a speed-up counts every phase of converged runs only."""

import dataclasses
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

from credence.ensembles.diagnostics import (
    Convergence,
    Cost,
    assess,
    ess_per_second,
    format_speed_up,
    speed_up,
)

COST = Cost(10, 5, 1e9, {"compile": 1.0, "warmup": 2.0, "sample": 5.0})


def converged(min_ess):
    return Convergence(1.001, min_ess, 2 * min_ess, min_ess, 4, 1000, True, "Converged.")


def test_addition():
    total = COST + Cost(1, 2, 3.0, {"sample": 4.0, "train": 0.5})
    assert total.seconds == {"compile": 1, "train": 0.5, "warmup": 2, "sample": 9}
    assert list(total.seconds) == ["compile", "warmup", "sample", "train"]
    assert dataclasses.astuple(total)[:3] == (11, 7, 1e9 + 3)
    assert total.total_seconds == 12.5
    assert COST + Cost() == COST == sum([COST], Cost())


def test_any_word_is_a_cost_class():
    total = COST + Cost(seconds={"burning in": 3.0})
    assert Cost.from_dict(total.to_dict()).seconds["burning in"] == 3.0
    assert total.total_seconds == 11.0


def test_storage():
    assert Cost.from_dict(json.loads(json.dumps(COST.to_dict()))) == COST
    assert pickle.loads(pickle.dumps(COST)) == COST
    assert COST.to_dict()["seconds"] is not COST.seconds


def test_numbers_of_numpy_become_pythons():
    try:
        counted = Cost(np.int64(3), np.int32(2), np.float32(1), {"sample": np.float32(2)})
    except TypeError:
        pytest.skip("annotations are checked: they already refuse integers of numpy")
    assert json.loads(json.dumps(counted.to_dict())) == {
        "likelihood_evaluations": 3,
        "gradient_evaluations": 2,
        "flops": 1.0,
        "seconds": {"sample": 2.0},
    }


def test_frozen():
    seconds = {"sample": 1.0}
    cost = Cost(seconds=seconds)
    seconds["sample"] = 2.0
    assert cost.total_seconds == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        cost.flops = 1.0  # pyright: ignore[reportAttributeAccessIssue]


def test_refuses_bad_input():
    for wrong in ({"flops": -1.0}, {"flops": float("nan")}, {"seconds": {"sample": -1.0}}):
        with pytest.raises(ValueError, match="finite number >= 0"):
            Cost(**wrong)
    with pytest.raises(TypeError):
        Cost(likelihood_evaluations=1.5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"unknown entries \['joules'\]"):
        Cost.from_dict({"joules": 1.0})


def test_every_phase_counts():
    assert ess_per_second(80.0, COST) == 10
    with pytest.raises(ValueError, match="no seconds"):
        ess_per_second(80.0, Cost())


def test_speed_up():
    slow = COST + COST
    assert speed_up(converged(80.0), COST, converged(40.0), slow) == pytest.approx(4)
    assert format_speed_up(4.0) == "4x"


def test_no_speed_up_without_convergence():
    stuck = assess(np.ones((4, 100, 3, 1)))
    members = assess(None)
    disagreeing = dataclasses.replace(converged(1000.0), max_rhat_function=1.2, converged=False)
    for bad in (stuck, members, disagreeing):
        assert speed_up(bad, COST, converged(40.0), COST) is None
        assert speed_up(converged(40.0), COST, bad, COST) is None
    assert format_speed_up(None) == "n/a: not converged"


def test_importing_the_room_is_cheap():
    heavy = ("scipy", "sklearn", "arviz", "xarray", "jax", "matplotlib", "pandas")
    room = "credence.ensembles.diagnostics"
    code = f"import sys, {room}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
