"""Results of a run with some of the problems stand beside older results of the others."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "make"))
from kept import beside


def test_rows_of_other_problems_stay_and_tell_their_commit() -> None:
    old = {
        "commit": "old",
        "converged": True,
        "problems": [{"name": "a", "x": 1}, {"name": "b", "x": 2, "commit": "older"}],
        "measures": {"flops": "work"},
    }
    new = {
        "commit": "new",
        "converged": False,
        "problems": [{"name": "a", "x": 3}, {"name": "c", "x": 4}],
        "measures": {"flops": "operations"},
        "notes": ["text", 1],
    }
    found = beside(old, new)
    assert [(row["name"], row["x"], row["commit"]) for row in found["problems"]] == [
        ("a", 3, "new"),
        ("b", 2, "older"),
        ("c", 4, "new"),
    ]
    assert found["commit"] == "new"
    assert found["converged"] is False
    assert found["measures"] == {"flops": "operations"}
    assert found["notes"] == ["text", 1]
