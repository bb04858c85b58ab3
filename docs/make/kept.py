"""Results of the published experiments, kept in `results/NAME/SIZE.json`.

Who has imported this module finds the benchmarks, which others here import by name.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
SEVERAL = "; "
"""What stands between the machines that made results."""
sys.path.insert(0, str(ROOT / "benchmarks"))
from rows import add_dirty, commit, done, refuse_dirty, short  # noqa: E402

from credence.environment import UNKNOWN_COMMIT  # noqa: E402


def path_of(name: str, size: str | None = None) -> Path:
    """Name the file of an experiment's results: of a size, or of the largest that was kept."""
    paper, laptop = (RESULTS / name / f"{each}.json" for each in ("paper", "laptop"))
    if size:
        return RESULTS / name / f"{size}.json"
    return paper if paper.exists() else laptop


def is_kept(name: str) -> bool:
    """Whether an experiment has results."""
    return path_of(name).exists()


def kept(name: str, size: str | None = None) -> dict[str, Any]:
    """The results of an experiment, of a size or of the largest that was kept."""
    return json.loads(path_of(name, size).read_text(encoding="utf-8"))


def kept_rows(name: str) -> list[dict[str, Any]]:
    """The rows of a benchmark or of several runs, one a line in `results/NAME/rows.jsonl`."""
    return done(RESULTS / name)


def rows_by(name: str, key: str, **asked: Any) -> dict[Any, dict[str, Any]]:
    """The newest of these rows with the entries that are asked for, by another entry."""
    return {row[key]: row for row in kept_rows(name) if asked.items() <= row.items()}


def rows_by_label(
    name: str, problem: str | None = None, size: str | None = None
) -> dict[str, dict[str, Any]]:
    """The rows of a problem of an experiment, by their labels; of the only one by default.

    Args:
        size: of the experiment; the largest by default.
    """
    (found,) = (each for each in kept(name, size)["problems"] if problem in (None, each["name"]))
    return {row["label"]: row for row in found["rows"]}


def reads_dirty(description: str | None) -> bool:
    """Read whether the command line says --dirty, and refuse at once what would not be kept."""
    parser = argparse.ArgumentParser(description=description)
    add_dirty(parser)
    is_dirty = parser.parse_args().dirty
    if not is_dirty:
        refuse_dirty(commit())
    return is_dirty


def keep_rows(
    name: str,
    new: Iterable[dict[str, Any]],
    old: Iterable[dict[str, Any]] = (),
    *,
    is_dirty: bool = False,
) -> None:
    """Keep rows in place of those that are there, their numbers with six digits.

    Args:
        new: rows just made, which tell their commit.
        old: rows to stay, before these.
        is_dirty: keep new rows though files differed from their commit.
    Raises:
        SystemExit: where files did, and nobody said so.
    """
    new = list(new)
    if not is_dirty:
        refuse_dirty(*(row["commit"] for row in new))
    path = RESULTS / name / "rows.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps(short(row))}\n" for row in (*old, *new))
    path.write_text(text, encoding="utf-8")


def keep(folder: Path, *, is_part: bool = False, is_dirty: bool = False) -> Path:
    """Copy the results of a finished run, with the commit and the machine that made them.

    They are that, or those, which its cells tell; see `mixtures`. Several are joined.

    Args:
        is_part: keep what is there of problems that this run did not have.
        is_dirty: keep them though files differed from the commit.
    Raises:
        SystemExit: where files did, and nobody said so.
    """
    from credence.ensembles.provenance import package_versions
    from credence.environment import machine

    summary = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    told = [each for each in summary.get("commits", []) if each != UNKNOWN_COMMIT]
    about = {
        "commit": ", ".join(told) or commit(is_needed=True),
        "machine": SEVERAL.join(summary.get("machines", [])) or machine(),
        "versions": package_versions(),
    }
    if not is_dirty:
        refuse_dirty(about["commit"])
    path = path_of(summary["experiment"], summary["size"])
    found = {**about, **short(summary)}
    if is_part and path.exists():
        found = beside(kept(summary["experiment"], summary["size"]), found)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(lines(found), encoding="utf-8")
    return path


def mixtures(summary: dict[str, Any]) -> list[str]:
    """Say which commits made results, and which rows, where there are several, or unknown ones."""
    commits = summary.get("commits", [])
    if len(commits) < 2 and UNKNOWN_COMMIT not in commits:
        return []
    rows = [row for each in summary.get("problems", []) for row in each.get("rows", [])]
    told = [
        f"  {row['problem']}, {row['label']}: {', '.join(row['commits'])}"
        for row in rows
        if row.get("commits")
    ]
    return [f"Made by {', '.join(commits)}:", *told]


def beside(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Add rows of problems that only older results have; every row then tells what made it.

    Rows are lists of objects with a name; older ones keep their order. The whole has converged if
    both results have.
    """
    found = dict(new)
    for key, rows in new.items():
        if not (
            isinstance(rows, list)
            and rows
            and all(isinstance(row, dict) and "name" in row for row in rows)
        ):
            continue
        known = [{**origin(old), **row} for row in old.get(key, [])]
        told = [{**origin(new), **row} for row in rows]
        own = {row["name"] for row in told}
        names = dict.fromkeys(row["name"] for row in (*known, *told))
        found[key] = [
            row for name in names for row in (told if name in own else known) if row["name"] == name
        ]
    found["converged"] = old["converged"] and new["converged"]
    if "commits" in new:
        found["commits"] = sorted({*old.get("commits", [old["commit"]]), *new["commits"]})
    return found


def origin(results: dict[str, Any]) -> dict[str, str]:
    """The commit and the machine, where they are told."""
    return {name: results[name] for name in ("commit", "machine") if name in results}


def lines(found: dict[str, Any]) -> str:
    """JSON with a line for each entry."""
    entries = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
    return "{\n" + ",\n".join(entries) + "\n}\n"
