"""What a table of results says, in sentences: who is best at what, and whom not to believe."""

from typing import Any, NamedTuple

from credence.html.wording import duration, number, percent
from credence.report.judging.verdict import Level

Problem = dict[str, Any]
Summary = dict[str, Any]


class Conclusion(NamedTuple):
    """One problem's sentence and how far to rely on it."""

    level: Level
    subject: str
    sentence: str


def conclusions(summary: Summary) -> list[Conclusion]:
    """Draw one conclusion per problem."""
    return [
        Conclusion(_level(p["rows"]), p["name"], " ".join(_sentences(p, summary["baseline"])))
        for p in summary["problems"]
    ]


def overall(summary: Summary) -> tuple[Level, str, str]:
    """The level, a word and a headline for the whole experiment."""
    rows = [row for problem in summary["problems"] for row in problem["rows"]]
    chains = sum(row["num_seeds"] for row in rows if row["converged"] is not None)
    good = sum(row["num_converged"] for row in rows)
    failed = sum(row["num_failed"] for row in rows)
    cells = failed + sum(row["num_seeds"] for row in rows)
    parts = [f"{good} of {chains} chain runs converged"] if chains else []
    parts += [f"{failed} of {cells} cells failed"] if failed else []
    headline = "; ".join(parts) + "." if parts else "No method here is a Markov chain."
    if failed == cells:
        return Level.DO_NOT_TRUST, "Nothing to compare", headline
    if chains and not good:
        return Level.DO_NOT_TRUST, "None converged", headline
    if failed or good < chains:
        return Level.CARE, "Compare with care", headline
    return Level.TRUST, "Comparable", headline


def _level(rows: list[dict[str, Any]]) -> Level:
    chains = [row for row in rows if row["converged"] is not None]
    none_converged = bool(chains) and not any(row["num_converged"] for row in chains)
    if none_converged or not any(row["num_seeds"] for row in rows):
        return Level.DO_NOT_TRUST
    is_sound = all(row["converged"] for row in chains) and not any(r["num_failed"] for r in rows)
    return Level.TRUST if is_sound else Level.CARE


def _sentences(problem: Problem, baseline: str) -> list[str]:
    """Sentences on error, likelihood, calibration, speed, and which rows are not to be believed."""
    rows = {row["label"]: row for row in problem["rows"] if row["status"] == "done"}
    found = []
    if rows:
        is_regression = problem["task"] == "regression"
        score, title = ("rmse", "squared error") if is_regression else ("accuracy", "accuracy")
        found += [
            _best(rows, problem["best"]["error"], score, title),
            _best(rows, problem["best"]["nll"], "nll", "NLL"),
            _calibrated(rows, is_regression),
            *_fastest(rows, baseline),
        ]
    missed = [
        f"{label}{_part(row['num_seeds'] - row['num_converged'], row['num_seeds'])}"
        for label, row in rows.items()
        if row["converged"] is False
    ]
    failed = [
        f"{row['label']}{_part(row['num_failed'], row['num_seeds'] + row['num_failed'])}"
        for row in problem["rows"]
        if row["num_failed"]
    ]
    found += [f"Not converged: {', '.join(missed)}."] if missed else []
    found += [f"Failed: {', '.join(failed)}."] if failed else []
    return [sentence for sentence in found if sentence]


def _part(some: int, every: int) -> str:
    """Say in how many of the seeds, if not in all."""
    return "" if some == every else f" ({some} of {every} seeds)"


def _best(rows: dict[str, Any], winner: dict[str, Any], score: str, title: str) -> str:
    """Name the best by the rows of all seeds together, which may not be so by their mean score."""
    label = winner["label"]
    if label not in rows:
        return ""
    shown = percent(rows[label][score], 1) if score == "accuracy" else number(rows[label][score])
    shown = f"RMSE {shown}" if score == "rmse" else shown
    draws = [other for other in winner["draws"] if other in rows]
    equal = f" (within two standard errors: {', '.join(draws)})" if draws else ""
    return f"Best {title}, over all rows: {label}, {shown}{equal}."


def _calibrated(rows: dict[str, Any], is_regression: bool) -> str:
    """Whose intervals come nearest to 95 %, or whose ECE is smallest."""
    name = "coverage_95" if is_regression else "ece"
    target = 0.95 if is_regression else 0.0
    known = {label: row[name] for label, row in rows.items() if row[name] is not None}
    if not known:
        return ""
    label = min(known, key=lambda each: abs(known[each] - target))
    if is_regression:
        return f"95 % intervals nearest to their claim: {label}, {percent(known[label], 1)}."
    return f"Smallest ECE: {label}, {number(known[label])}."


def _fastest(rows: dict[str, Any], baseline: str) -> list[str]:
    """The converged chain with most effective draws per second."""
    chains = {
        label: row["ess_per_second"]
        for label, row in rows.items()
        if row["converged"] and row["ess_per_second"]
    }
    if not chains:
        return []
    label = max(chains, key=lambda each: chains[each])
    row = rows[label]
    compiled = {each: chains[each] / _share_after_compiling(rows[each]) for each in chains}
    sooner = max(compiled, key=lambda each: compiled[each])
    without = f" Compilation left out, {sooner}: {number(compiled[sooner])}."
    is_relative = row["speed_up"] is not None and label != baseline
    relative = f", {row['speed_up_text']} {baseline}" if is_relative else ""
    return [
        f"Most effective draws per second: {label}, {number(chains[label])}{relative}, "
        f"in {duration(row['total_seconds'])} altogether.{without}"
    ]


def _share_after_compiling(row: dict[str, Any]) -> float:
    """Share of a run's seconds in which it did not compile, as a longer run does once too."""
    total = row["total_seconds"]
    return max(total - row["seconds"].get("compile", 0.0), 1e-9) / total if total else 1.0
