"""Results of a run with some of the problems stand beside older results of the others."""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "make"))
import kept
from kept import beside, mixtures


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


def summary(*commits: str, **about: Any) -> dict[str, Any]:
    """Results of one problem, a row for each commit."""
    rows = [
        {"problem": "line", "label": f"method {i}", "commits": [each]}
        for i, each in enumerate(commits)
    ]
    return {
        "experiment": "sample", "size": "smoke", "converged": True,
        "commits": sorted(set(commits)), "problems": [{"name": "line", "rows": rows}], **about,
    }  # fmt: skip


def test_rows_of_several_commits_are_listed(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(kept, "RESULTS", tmp_path)

    def keep(*commits: str) -> dict[str, Any]:
        (tmp_path / "results.json").write_text(json.dumps(summary(*commits)))
        return json.loads(kept.keep(tmp_path).read_text())

    mixed = keep("aaa", "bbb")
    assert mixed["commit"] == "aaa, bbb"
    assert mixtures(mixed) == [
        "Made by aaa, bbb:",
        "  line, method 0: aaa",
        "  line, method 1: bbb",
    ]
    assert mixtures(keep("aaa", "aaa")) == []
    assert mixtures(keep("unknown")) == [
        "Made by unknown:",
        "  line, method 0: unknown",
    ]


def test_a_part_adds_its_commits() -> None:
    old = summary("old", commit="old")
    found = beside(old, summary("new", commit="new"))
    assert found["commits"] == ["new", "old"]
    del old["commits"]
    assert beside(old, summary("new", commit="new"))["commits"] == ["new", "old"]
