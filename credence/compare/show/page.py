"""The page of an experiment: one HTML file that needs nothing else, verdict first."""

import math
from typing import Any

from credence.compare import conclusions as verdict
from credence.compare.results import COLUMNS, DOUBT
from credence.compare.seeds import of_seeds
from credence.compare.show import charts
from credence.html.document import document
from credence.html.markup import Html, element, join
from credence.html.parts import columns, figure, key, masthead, section, settings, table
from credence.html.wording import count, duration, number, percent
from credence.report.page import verdict_block

Problem = dict[str, Any]
Row = dict[str, Any]

TITLES = {
    "rmse": "RMSE",
    "mse": "MSE",
    "nll": "NLL",
    "nll_floor": "NLL, p ≥ 0.001",
    "crps": "CRPS",
    "coverage_95": "Coverage, 95 % predictive",
    "coverage_95_credible": "Coverage, 95 % credible",
    "accuracy": "Accuracy",
    "brier": "Brier",
    "auroc": "AUROC",
    "ece": "ECE, top label",
    "ece_equal_mass": "ECE, equal mass",
    "ece_all_classes": "ECE, all classes",
    "epistemic_id": "All",
    "epistemic_correct": "Right",
    "epistemic_wrong": "Wrong",
    "epistemic_others": "Strangers",
    "ood_auroc": "AUROC, total",
    "ood_auroc_epistemic": "AUROC, epistemic",
    "ess_share": "Weight ESS / particles",
}
SHARES = frozenset({"coverage_95", "coverage_95_credible", "accuracy"})
PUBLISHED = {
    "mse": "MSE",
    "accuracy": "Accuracy",
    "nll": "NLL",
    "auroc": "AUROC",
    "ood_auroc": "AUROC of strangers",
    "epistemic_id": "Epistemic entropy",
    "epistemic_others": "of strangers",
    "coverage_95": "Coverage",
    "ece": "ECE",
    "total_seconds": "Seconds",
    "ess_weights": "ESS, weights",
    "ess_weights_per_second": "Min ESS / s",
    "draws_per_effective_draw": "Draws per effective draw, weights",
    "draws_per_effective_draw_per_second": "smallest per second",
    "speed_up": "Speed-up",
}
"""What the papers print, in the order of the page; our number stands beside each."""
TRIPLES = ("ess_weights", "draws_per_effective_draw")
"""Smallest, median and largest."""


def render(summary: dict[str, Any]) -> str:
    """The page as text; all text in `summary` is escaped."""
    title = f"Comparison: {summary['experiment']}"
    main = element(
        "main",
        _header(summary),
        _verdict(summary),
        *(_problem(each, i, summary) for i, each in enumerate(summary["problems"])),
        _about(summary),
    )
    return document(title, main)


def _header(summary: dict[str, Any]) -> Html:
    facts = (
        f"Credence · {count(len(summary['problems']), 'problem')} · size {summary['size']} · "
        f"{_seed_range(summary)}"
    )
    return masthead(summary["description"], facts)


def _seed_range(summary: dict[str, Any]) -> str:
    first, most = summary["seed"], summary.get("num_seeds", 1)
    return f"seed {first}" if most == 1 else f"seeds {first} to {first + most - 1}"


def _verdict(summary: dict[str, Any]) -> Html:
    level, word, headline = verdict.overall(summary)
    caveat = (
        "Standard errors are of paired differences over the test rows; another split or seed may "
        "change the order. Effective draws and speed-ups count converged chains only."
    )
    found = verdict.conclusions(summary)
    checks = (each._replace(subject=each.subject.replace("_", " ")) for each in found)
    return verdict_block(level, word, headline, checks, caveat)


def _problem(problem: Problem, index: int, summary: dict[str, Any]) -> Html:
    done = [row for row in problem["rows"] if row["status"] == "done"]
    parts: list[Html] = [element("p", _facts(problem))]
    if done:
        parts += [*_figures(problem, done, f"p{index}"), _scores(problem, done), *_doubt(done)]
        if any(row["converged"] is not None for row in done):
            parts.append(_convergence(done, summary["baseline"]))
        parts.append(_costs(done))
    parts += _published(problem)
    told = [sentence for row in problem["rows"] for sentence in of_seeds(row)]
    parts += _list("Failed, or converged in part", told)
    parts += _list("About the data and the published numbers",
                   [*problem["notes"], *problem["reasons"]])  # fmt: skip
    return section(problem["name"], *parts, is_converged=True)


def _facts(problem: Problem) -> str:
    if "n_train" not in problem:
        return f"{problem['description']} Nothing could be run."
    weights = problem["num_weights"]
    return (
        f"{problem['description']} {count(problem['n_train'], 'training row')}, "
        f"{count(problem['n_test'], 'test row')}, {count(problem['n_features'], 'input')}, "
        f"{count(weights, 'unknown weight')}; prior {_prior(problem['model'])}."
    )


def _prior(model: dict[str, Any]) -> str:
    """The prior's name, and in brackets what is different in it."""
    settings = model.get("prior_settings", {}).items()
    changed = ", ".join(f"{name} {number(value)}" for name, value in settings)
    return f"{model['prior']} ({changed})" if changed else model["prior"]


def _figures(problem: Problem, done: list[Row], name: str) -> list[Html]:
    is_regression = problem["task"] == "regression"
    score, title = ("rmse", "RMSE") if is_regression else ("accuracy", "Accuracy")
    better = "Lower left is better." if is_regression else "Upper left is better."
    legend = key(**charts.LEGEND)
    figures = []
    if any(row[score] is not None for row in done):
        chart = charts.error_chart(done, score, title, f"{name}-error", better)
        figures.append(figure("What an answer costs", better, chart, legend))
    figures += _calibration(problem, done, name, is_regression)
    chains = [row for row in done if row["ess_per_second"]]
    if chains:
        reading = "Effective draws of the worst prediction per second of all phases."
        chart = charts.speed_chart(chains, f"{name}-speed", reading)
        note = "Bars of chains that did not converge mean little."
        figures.append(figure("How fast the chains mix", reading, chart, note=note))
    return [columns(figures[:1], figures[1:])] if len(figures) > 1 else figures


def _calibration(problem: Problem, done: list[Row], name: str, is_regression: bool) -> list[Html]:
    if is_regression and any(row["coverage_95"] is not None for row in done):
        reading = (
            "Full dots: predictive intervals, which should hold 95 % of the truths; the band is "
            "what chance explains of one seed's rows. Rings: intervals of the prediction without "
            "noise."
        )
        chart = charts.coverage_chart(done, problem["n_test"], f"{name}-coverage", reading)
        return [figure("Do the intervals keep their word?", reading, chart)]
    if not is_regression and any(row["ece"] is not None for row in done):
        reading = "How far stated probabilities are from observed frequencies; 0 is perfect."
        chart = charts.ece_chart(done, f"{name}-ece", reading)
        return [figure("Do the probabilities keep their word?", reading, chart)]
    return []


def _scores(problem: Problem, done: list[Row]) -> Html:
    names = list(COLUMNS[problem["task"]])
    if any(row["nll"] is None and row.get("nll_floor") for row in done):
        names.insert(names.index("nll") + 1, "nll_floor")
    rows = [[row["label"], *(_own(row, name) for name in names)] for row in done]
    head = ["Method", *(TITLES[name] for name in names)]
    return _titled("Scores on the test rows", head, rows, _seeds(done))


def _doubt(done: list[Row]) -> list[Html]:
    """How far members disagree, where they could and on what; nothing where nobody knows."""
    names = [name for name in DOUBT if any(row.get(name) for row in done)]
    if not names:
        return []
    rows = [[row["label"], *(_own(row, name) for name in names)] for row in done]
    note = (
        "Mean epistemic entropy in nats, which is what the networks of an ensemble disagree by: of "
        "all test rows, of those labelled rightly and wrongly, and of strangers, inputs of classes "
        "that no label stands for. The AUROC says how well the total (the epistemic) entropy tells "
        "strangers from test rows; it proves little without the calibration above."
    )
    if "ess_share" in names:
        note += " Weight ESS / particles: of the weights between two levels."
    return [_titled("Doubt", ["Method", *(TITLES[name] for name in names)], rows, note)]


def _seeds(done: list[Row]) -> str:
    """What the numbers behind ± are."""
    most = max(row.get("num_seeds", 1) for row in done)
    if most == 1:
        return ""
    return (
        f"Means of {most} seeds, and their standard errors. A seed moves the split of the rows, "
        "too, unless the data set comes with its own."
    )


def _own(row: Row, name: str) -> str:
    """A score, with its standard error where there are several seeds."""
    shown, error = _score(row.get(name), name), row.get("standard_errors", {}).get(name)
    if error is None:
        return shown
    return f"{shown} ± {_score(error, name) if name in SHARES else f'{error:.1g}'}"


def _convergence(done: list[Row], baseline: str) -> Html:
    head = [
        "Method", "Chains x draws", "R-hat", "ESS, predictions", "ESS, weights", "Min ESS / s",
        "Speed-up", "Verdict",
    ]  # fmt: skip
    rows = [
        [
            row["label"],
            _draws(row),
            _score(row["max_rhat_function"], "rhat"),
            _triple(row["ess_function"]),
            _triple(row["ess_weights"]),
            _score(row["ess_per_second"], "ess"),
            row["speed_up_text"],
            _verdict_cell(row),
        ]
        for row in done
    ]
    subset = [row for row in done if 0 < row["weights_judged"] < row["num_weights"]]
    note = (
        "ESS: smallest / median / largest. Min ESS / s: of predictions, by the second of all "
        f"phases; speed-up: its ratio to that of {baseline}. Over several seeds, geometric means."
    )
    if subset:
        total = number(subset[0]["num_weights"])
        note += f" Weights: {number(subset[0]['weights_judged'])} of {total}, drawn at random."
    return _titled("Convergence, judged by predictions at test rows", head, rows, note)


def _draws(row: Row) -> str:
    """Chains and draws, and what the time budget cut short, if it did."""
    early = ""
    if row["stopped"] == "time":
        has_all = row["num_draws"] >= row["settings"].get("num_draws", math.inf)
        before = "training" if row["converged"] is None else "warm-up"
        early = f", {before} cut short" if has_all else ", out of time"
    return f"{row['num_chains']} x {row['num_draws']}{early}"


def _verdict_cell(row: Row) -> Html:
    words = {True: "converged", False: "not converged", None: "not a chain"}
    class_ = "missed" if row["converged"] is False else None
    return element("td", words[row["converged"]], class_=class_)


def _costs(done: list[Row]) -> Html:
    found = dict.fromkeys(phase for row in done for phase in row["seconds"])
    phases = sorted(found, key=("compile", "other").__contains__)  # these two last
    head = [
        "Method",
        "Total",
        *phases,
        "Likelihoods",
        "Gradients",
        "Operations",
        "Peak memory, MiB",
    ]
    rows = [
        [
            row["label"],
            duration(row["total_seconds"]),
            *(duration(row["seconds"][p]) if p in row["seconds"] else "–" for p in phases),
            number(row["likelihood_evaluations"]),
            number(row["gradient_evaluations"]),
            number(row.get("flops")),
            _score(row["peak_memory_mib"], "memory"),
        ]
        for row in done
    ]
    before = next((row["memory_before_mib"] for row in done if row["memory_before_mib"]), None)
    note = (
        "Likelihoods and gradients are counted in single data points, whatever the network; "
        "floating-point operations are counted by its size."
    ) + (f" The programs and data alone take {number(before)} MiB." if before else "")
    return _titled("Where the time went", head, rows, note)


def _published(problem: Problem) -> list[Html]:
    """Published numbers, ours in brackets behind them; nothing where there are none."""
    rows = {row["label"]: row for row in problem["rows"]}
    lines = {label: row["published"] for label, row in rows.items() if row["published"]}
    lines |= problem["published_only"]
    if not lines:
        return []
    names = [name for name in PUBLISHED if any(name in values for values in lines.values())]
    body = [
        [label, *(_beside(values.get(name), rows.get(label, {}), name) for name in names)]
        for label, values in lines.items()
    ]
    note = "First the published number, then ours. Methods without ours are not in this comparison."
    head = ["Method", *(PUBLISHED[name] for name in names)]
    return [_titled("Published numbers beside ours", head, body, note)]


def _beside(published: Any, row: Row, name: str) -> str:
    """'published | ours'."""
    theirs = _triple(published) if isinstance(published, list) else _score(published, name)
    if row.get("status") != "done":
        return f"{theirs} | –"
    if name == "speed_up":
        return f"{theirs} | {row['speed_up_text']}"
    own = _triple(row.get(name)) if name in TRIPLES else _own(row, name)
    return f"{theirs} | {own}"


def _about(summary: dict[str, Any]) -> Html:
    facts = [
        ("Source", summary["source"] or "–"),
        ("Baseline", summary["baseline"]),
        ("Cells at a time", _jobs(summary["n_jobs"])),
        *((name, str(version)) for name, version in summary["versions"].items()),
    ]
    parts = [settings(facts), *_list("Why numbers may differ from the paper", summary["reasons"])]
    return section("What was run", *parts, is_converged=True)


def _jobs(n_jobs: int) -> str:
    return "1" if n_jobs == 1 else f"{n_jobs}: they shared the machine, so times are not exact"


def _titled(title: str, head: list[str], rows: list[list[str]], note: str = "") -> Html:
    foot = [element("p", note, class_="small")] if note else []
    return element("div", element("h3", title), table(head, rows), *foot)


def _list(title: str, items: list[str]) -> list[Html]:
    if not items:
        return []
    listed = element("ul", *(element("li", item) for item in items), class_="notes")
    return [element("div", join([element("h3", title), listed]))]


def _score(value: float | None, name: str) -> str:
    if value is None:
        return "–"
    return percent(value, 1) if name in SHARES else number(value)


def _triple(values: list[float] | None) -> str:
    return "–" if values is None else " / ".join(number(round(value)) for value in values)
