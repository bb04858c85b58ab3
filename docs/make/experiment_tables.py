"""Tables of finished experiments: ours beside the published numbers, from `results/NAME`."""

import re
from itertools import chain
from typing import Any

from kept import kept
from parts import markdown

from credence.compare import find
from credence.compare.seeds import of_seeds


def sections(name: str, max_seconds: float | None = None, size: str | None = None) -> str:
    """Tell what ran an experiment; then a heading, a table and its reasons for every problem.

    Args:
        max_seconds: time limit of each method in a run whose results do not tell it.
        size: of the experiment; the largest by default.
    """
    summary = {"max_seconds": max_seconds, **kept(name, size)}
    of_size = f", size {size}" if size == "paper" else ""
    each = (section(problem, summary["baseline"], of_size) for problem in summary["problems"])
    return "\n".join([made_by(summary), "", legend(summary), *chain.from_iterable(each)])


def reasons(name: str) -> str:
    """List why numbers of an experiment differ from the published ones."""
    return "\n".join(bullets(kept(name)["reasons"]))


def bullets(sentences: list[str]) -> list[str]:
    """Write a list."""
    return [f"- {sentence}" for sentence in sentences]


def made_by(summary: dict[str, Any]) -> str:
    """The command, and what ran it: commits and machines of all problems, where they differ."""
    commits, machines = (
        "; ".join(dict.fromkeys(each.get(name, summary[name]) for each in summary["problems"]))
        for name in ("commit", "machine")
    )
    return (
        f"`credence experiment run {summary['experiment']} --size {summary['size']} --seed "
        f"{summary['seed']}{seeds(summary)}{problems(summary)} --jobs {summary['n_jobs']}"
        f"{limit(summary)}`; "
        f"{versions(summary['versions'])}; {machines}; commit {commits}."
    )


def section(problem: dict[str, Any], baseline: str, of_size: str = "") -> list[str]:
    """What a problem is, its table, and reasons for differences.

    Args:
        of_size: what the heading says of the size, beside a section of another.
    """
    found = [
        "",
        f"### {problem['name']}{of_size}",
        "",
        sizes(problem),
        "",
        table(problem, baseline),
        "",
    ]
    told = [without_advice(sentence) for row in problem["rows"] for sentence in of_seeds(row)]
    return [*found, *bullets([*told, *problem["reasons"]])]


FAILED = " failed: "
"""What stands in a sentence between the name of a method and its error."""
WORDLESS = "AssertionError: "
"""The error of a program that found itself wrong, and had no words for it."""


def without_advice(sentence: str) -> str:
    """What a method failed by, and not what whoever runs it could do: the first sentence."""
    label, failed, error = sentence.partition(FAILED)
    if not failed:
        return sentence
    if error == WORDLESS:
        return f"{label} failed by a fault of our program, which gave no message."
    if "off by inf nats" in error:
        return (
            f"{label} failed: the chain that led to the draws has not moved, so that the "
            "emulator's error there is infinite."
        )
    first = re.match(r".*?\.(?= [A-Z]|$)", error)
    return sentence if first is None else f"{label}{failed}{first[0]}"


def seeds(summary: dict[str, Any]) -> str:
    """The option that repeats cells."""
    most = summary.get("num_seeds", 1)
    return "" if most == 1 else f" --seeds {most}"


def limit(summary: dict[str, Any]) -> str:
    """The option that limits the time of each method."""
    seconds = summary.get("max_seconds")
    return "" if seconds is None else f" --max-seconds {seconds:g}"


def problems(summary: dict[str, Any]) -> str:
    """The option that names the problems, where some have not been run."""
    names = [each["name"] for each in summary["problems"]]
    is_all = len(names) == len(find(summary["experiment"]).problems)
    return "" if is_all else f" --problems {','.join(names)}"


def legend(summary: dict[str, Any]) -> str:
    """What the numbers are."""
    if all(row["converged"] is None for each in summary["problems"] for row in each["rows"]):
        errors = ", with standard errors over the seeds" if seeds(summary) else ""
        return (
            f"Published / ours{errors}. Entropies are in nats; the epistemic one is what the "
            "networks of an ensemble disagree by."
        )
    return (
        f"Published / ours{of_splits(summary)}. ESS (min ; median ; max) is of predictions at the "
        "test rows, of all chains together. Draws per effective draw are those of single weights "
        "in single chains: 1 is best, and a large number is a chain that stands still. Speed-up "
        f"over {summary['baseline']} is in ESS per second of all phases, between converged chains"
        f"{over_splits(summary)}.{of_cells(summary)}"
    )


def of_splits(summary: dict[str, Any]) -> str:
    """What the numbers behind ± are."""
    most = summary.get("num_seeds", 1)
    if most == 1:
        return ", one split"
    return f", mean and standard error over {most} splits of the data, the worst one's R-hat"


def of_cells(summary: dict[str, Any]) -> str:
    """Legend of the column "beaten?", and of what stands in place of numbers that would mislead."""
    rows = [row for each in summary["problems"] for row in each["rows"] if row["status"] == "done"]
    told = ""
    if any(row["published"] for row in rows):
        told += (
            " Beaten: published numbers that ours equal, at the precision printed, or improve on; "
            "of speed-ups only where ours is known."
        )
        if any(row["stopped"] == "time" for row in rows):
            told += " Seconds are not compared where time ended a run."
    if any(map(stands_still, rows)):
        told += " R-hat is ∞ where chains stand still in different places."
    if any(row["ess_function"] and ess_of(row, "ess_function") == "-" for row in rows):
        told += f" There is no ESS of fewer than {FEWEST_DRAWS} draws."
    return told


def over_splits(summary: dict[str, Any]) -> str:
    """How the speed-ups of several splits become one."""
    return "" if summary.get("num_seeds", 1) == 1 else ", geometric mean of those of single splits"


def versions(found: Any) -> str:
    """The versions that matter."""
    flat = found[0] if isinstance(found, list) and found else found
    names = ("credence", "jax", "blackjax")
    return ", ".join(f"{name} {flat[name]}" for name in names if name in flat)


def sizes(problem: dict[str, Any]) -> str:
    return (
        f"{problem['description']} {problem['n_train']:,} training and {problem['n_test']:,} test "
        f"rows, {problem['n_features']} inputs."
    )


COLUMNS = {
    "accuracy": "accuracy",
    "nll": "NLL",
    "nll_floor": "NLL, p >= 0.001",
    "ece": "ECE",
    "auroc": "AUROC",
    "ood_auroc": "AUROC of strangers, total entropy",
    "ood_auroc_epistemic": "epistemic",
    "epistemic_id": "epistemic entropy",
    "epistemic_correct": "right answers",
    "epistemic_wrong": "wrong answers",
    "epistemic_others": "strangers",
    "ess_share": "ESS / particles",
    "total_seconds": "seconds",
}
"""Columns of the tables of methods that are no chains: the name in the results, and the heading."""


def table(problem: dict[str, Any], baseline: str) -> str:
    """One row per method."""
    done = [row for row in problem["rows"] if row["status"] == "done"]
    if all(row["converged"] is None for row in done):
        return table_without_chains(problem, done)
    return table_of_chains(problem, baseline)


def table_without_chains(problem: dict[str, Any], done: list[dict[str, Any]]) -> str:
    """Published / ours, with standard errors where there are several seeds."""
    names = [name for name in COLUMNS if any(row.get(name) is not None for row in done)]
    if all(row["nll"] is not None for row in done) and "nll_floor" in names:
        names.remove("nll_floor")
    rows = []
    for row in problem["rows"]:
        cells = [with_error(row, name) for name in names]
        if row["status"] != "done":
            cells = ["failed", *[""] * (len(names) - 1)]
        rows.append([row["label"], *cells])
    return markdown(["method", *(COLUMNS[name] for name in names)], rows)


def with_error(row: dict[str, Any], name: str) -> str:
    """'published / ours ± standard error', as far as there are such numbers."""
    published, error = row["published"].get(name), row.get("standard_errors", {}).get(name)
    own = number(row.get(name), 4 if name in ("accuracy", "auroc", "ood_auroc") else 3)
    own += f" ± {number(error, 1)}" if error is not None else ""
    return own if published is None else f"{number(published, 4)} / {own}"


def table_of_chains(problem: dict[str, Any], baseline: str) -> str:
    """ESS and speed-ups beside two scores."""
    regression = problem["task"] == "regression"
    heads = [
        "method",
        "MSE" if regression else "accuracy",
        "95 % coverage" if regression else "ECE",
        "NLL",
        "chains x draws",
        "R-hat",
        "ESS",
        "ESS of weights",
        "draws per effective draw",
        "seconds",
        "speed-up",
        "MiB",
    ]
    has_published = any(row["published"] for row in problem["rows"])
    heads += ["beaten?"] if has_published else []
    is_emulated = any(row.get("emulator_error") is not None for row in problem["rows"])
    heads += ["emulator's error, nats", "k-hat or accepted"] if is_emulated else []
    rows = []
    for row in problem["rows"]:
        has_result = row["status"] == "done"
        found = (chain_cells if has_result else failed_cells)(row, regression)
        is_baseline = row["label"] == baseline
        more = [beaten(row, regression, is_baseline)] if has_result and has_published else []
        more += emulator(row) if has_result and is_emulated else []
        rows.append(
            [row["label"], *found, *more, *[""] * (len(heads) - 1 - len(found) - len(more))]
        )
    return markdown(heads, rows)


def chain_cells(row: dict[str, Any], regression: bool) -> list[str]:
    """Published / ours, of a method that has a result."""
    published = row["published"] or {}
    first, second = scores_of(regression)
    return [
        scored(row, first, not regression),
        scored(row, second, regression),
        scored(row, "nll"),
        drawn(row),
        rhat_of(row),
        ess_of(row, "ess_function"),
        ess_of(row, "ess_weights"),
        f"{triple(published.get(RATIO))} / {ess_of(row, RATIO)}",
        both(published.get("total_seconds"), row["total_seconds"]),
        f"{number(published.get('speed_up'))} / {row['speed_up_text']}",
        number(row["peak_memory_mib"]),
    ]


def beaten(row: dict[str, Any], regression: bool, is_baseline: bool) -> str:
    """Name the published numbers that ours equal, as they are printed, or better, and others.

    Seconds of a run that time ended are left out, and the baseline's speed-up over itself.
    """
    published, (score, _) = row["published"] or {}, scores_of(regression)
    titles = {score: score, "total_seconds": "seconds", "speed_up": "speed-up"}
    if row.get("stopped") == "time":
        del titles["total_seconds"]
    if is_baseline:
        del titles["speed_up"]
    told: dict[bool, list[str]] = {True: [], False: []}
    for name, title in titles.items():
        theirs, ours = published.get(name), row.get(name)
        if theirs is None or ours is None:
            continue
        ours = round(ours, 2) if name == score else ours
        told[ours <= theirs if name in SMALLER else ours >= theirs].append(title)
    words = ((True, "yes"), (False, "no"))
    return "; ".join(f"{word}: {', '.join(told[is_good])}" for is_good, word in words
                     if told[is_good]) or "-"  # fmt: skip


def failed_cells(row: dict[str, Any], regression: bool) -> list[str]:
    """Published / failed; the reason stands below the table."""
    published = row["published"] or {}
    first, second = (published.get(name) for name in scores_of(regression))
    return [
        f"{number(first) if regression else in_percent(first)} / failed",
        f"{in_percent(second) if regression else number(second)} / failed",
        *["-"] * 5,
        f"{triple(published.get(RATIO))} / -",
        f"{number(published.get('total_seconds'))} / -",
        f"{number(published.get('speed_up'))} / -",
    ]


def in_percent(share: float | None) -> str:
    return number(share) if share is None else f"{number(100 * share)} %"


def scores_of(regression: bool) -> tuple[str, str]:
    """The two scores that tables of chains show."""
    return ("mse", "coverage_95") if regression else ("accuracy", "ece")


SMALLER = ("mse", "total_seconds")
"""Numbers that are the better the smaller they are."""
FEWEST_DRAWS = 50
"""Draws of all chains together from which on an ESS is shown."""
RATIO = "draws_per_effective_draw"
"""What the FBNN paper prints as ESS: the number of draws over the ESS."""


def scored(row: dict[str, Any], name: str, percent: bool = False) -> str:
    """'published / ours ± standard error', as far as there are such numbers."""
    published, error = row["published"].get(name), row.get("standard_errors", {}).get(name)
    spread = "" if error is None else f" ± {number((100 if percent else 1) * error, 2)}"
    shown = number(row[name]) if name == "nll" else both(published, row[name])
    if percent:
        shown = both(*(None if v is None else 100 * v for v in (published, row[name])))
    return f"{shown}{spread}{' %' if percent else ''}"


def drawn(row: dict[str, Any]) -> str:
    """Chains and draws of each, and whether the time budget ended them."""
    early = ", out of time" if row["stopped"] == "time" else ""
    return f"{row['num_chains']} x {row['num_draws']:,}{early}"


def emulator(row: dict[str, Any]) -> list[str]:
    """How far the emulator was off along the chain, and what that means for the draws."""
    if row.get("emulator_error") is None:
        return ["-", "-"]
    if row.get("emulator_is_likelihood"):
        return ["all rows: nothing emulated", "-"]
    error, k, rate = (row.get(f"emulator_{name}") for name in ("error", "pareto_k", "acceptance"))
    accepted = "-" if rate is None else f"accepted {float(rate):.2g}"
    accepted = "stands still" if stands_still(row) else accepted  # to stay is always accepted
    meaning = accepted if k is None else f"k-hat {float(k):.2g}"
    return [f"{float(error):.2g}", meaning]


def both(published: float | None, ours: float | None) -> str:
    return " / ".join(number(value) for value in (published, ours))


def number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"


def stands_still(row: dict[str, Any]) -> bool:
    """Whether chains stand still in different places; JSON has no infinite R-hat."""
    return row.get("max_rhat_function") is None and "R-hat is inf" in (row.get("reason") or "")


def rhat_of(row: dict[str, Any]) -> str:
    """The R-hat of predictions, where there is one."""
    return "∞" if stands_still(row) else rhat(row["max_rhat_function"])


def ess_of(row: dict[str, Any], name: str) -> str:
    """Effective sample sizes of one kind; none of too few draws."""
    return "-" if row["num_chains"] * row["num_draws"] < FEWEST_DRAWS else triple(row.get(name))


def rhat(value: float | None) -> str:
    return "> 10" if value is not None and value > 10 else number(value, 4)


def triple(values: Any) -> str:
    if not values:
        return "-"
    three = values.values() if isinstance(values, dict) else values
    return " ; ".join("-" if value is None else f"{value:,.0f}" for value in three)
