"""Results of a run with some of the problems stand beside older results of the others."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "make"))
import kept
from kept import beside, mixtures

from credence.environment import machine


def test_rows_of_other_problems_stay_and_tell_what_made_them() -> None:
    old = {
        "commit": "old",
        "machine": "slow",
        "converged": True,
        "problems": [{"name": "a", "x": 1}, {"name": "b", "x": 2, "commit": "older"}],
        "measures": {"flops": "work"},
    }
    new = {
        "commit": "new",
        "machine": "fast",
        "converged": False,
        "problems": [{"name": "a", "x": 3}, {"name": "c", "x": 4}],
        "measures": {"flops": "operations"},
        "notes": ["text", 1],
    }
    found = beside(old, new)
    told = [(row["name"], row["x"], row["commit"], row["machine"]) for row in found["problems"]]
    assert told == [("a", 3, "new", "fast"), ("b", 2, "older", "slow"), ("c", 4, "new", "fast")]
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
    monkeypatch.setattr(kept, "commit", lambda **_: "abc")

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


def test_what_no_commit_made_is_kept_only_on_request(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(kept, "RESULTS", tmp_path / "results")
    clean, dirty = {"commit": "aaa"}, {"commit": "bbb-dirty"}
    kept.keep_rows("some", [clean], is_dirty=False)
    with pytest.raises(SystemExit, match=r"bbb-dirty.*say --dirty"):
        kept.keep_rows("some", [clean, dirty])
    assert kept.kept_rows("some") == [clean]
    kept.keep_rows("some", [dirty], [clean], is_dirty=True)
    kept.keep_rows("some", [clean], [dirty])  # which is there already
    assert kept.kept_rows("some") == [dirty, clean]

    (tmp_path / "results.json").write_text(json.dumps(summary("aaa", "bbb-dirty")))
    with pytest.raises(SystemExit, match="say --dirty"):
        kept.keep(tmp_path)
    assert not kept.path_of("sample", "smoke").exists()
    assert kept.keep(tmp_path, is_dirty=True).exists()


def test_several_machines_are_told(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(kept, "RESULTS", tmp_path / "results")

    def keep(**about: Any) -> str:
        (tmp_path / "results.json").write_text(json.dumps(summary("aaa", **about)))
        return json.loads(kept.keep(tmp_path).read_text())["machine"]

    assert keep(machines=["slow", "fast"]) == f"slow{kept.SEVERAL}fast"
    assert keep() == machine()


DIRTY = {"fbnn_as_published", "friction", "transdimensional_models"}
"""Results of older runs that no commit made; none is added."""


def test_results_are_those_of_commits() -> None:
    files = [*kept.RESULTS.glob("*/*.json"), *kept.RESULTS.glob("*/rows.jsonl")]
    dirty = re.compile(r'"[0-9a-f]{7,}-dirty')
    assert {path.parent.name for path in files if dirty.search(path.read_text("utf-8"))} == DIRTY


def test_a_part_adds_its_commits() -> None:
    old = summary("old", commit="old")
    found = beside(old, summary("new", commit="new"))
    assert found["commits"] == ["new", "old"]
    del old["commits"]
    assert beside(old, summary("new", commit="new"))["commits"] == ["new", "old"]
