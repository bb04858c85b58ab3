"""Figures and tables of docs/explanation/multilevel.md, from `results/prior_rates` and the like."""

from pathlib import Path
from typing import Any

import numpy as np
from kept import kept
from parts import markdown, write_figure

from credence.html.wording import number
from credence_papers.multilevel.error_cost.charts import cost_chart
from credence_papers.multilevel.error_cost.page import interval, scientific
from credence_papers.multilevel.error_cost.results import ratio_of_narrower
from credence_papers.multilevel.prior_rates_page import panel_chart, panels
from credence_papers.multilevel.steps import cells

MEASURES = ("flops", "seconds", "nominal")
DRAWN = ("flops", "seconds")
PUBLISHED = "multilevel_published"
SMALL_ERROR_NATS = 0.3
"""Error of a run's log evidence that the table of its costs allows."""


def rate_figures(folder: Path) -> None:
    """Second moments of the increments against width, a chart for each prior and network."""
    for title, rows in panels(kept("prior_rates")).items():
        write_figure(folder, f"rates-{title}", panel_chart(rows, "rates"))


def rates() -> str:
    """Slopes under the prior: a row for each prior, a column for each network."""
    found: dict[tuple[str, float], dict[str, float]] = {}
    for title, rows in panels(kept("prior_rates")).items():
        network = title.partition(": ")[2]
        for row in rows:
            found.setdefault((row["name"], row["theory"]), {})[network] = row["slope"]
    networks = list(dict.fromkeys(name for slopes in found.values() for name in slopes))
    rows = []
    for (prior, theory), slopes in found.items():
        cells = [f"{slopes[name]:.2f}" if name in slopes else "-" for name in networks]
        rows.append([prior, f"{theory:.1f}", *cells])
    return markdown(["prior", "theory", *networks], rows).replace("-0.00", "0.00")


def steps() -> str:
    """Nats of every step, a row for each problem and alpha."""
    return markdown(*cells(kept("multilevel_steps")))


def cost_figures(folder: Path) -> None:
    """Cost against mean square error, a chart for each problem and measure of cost."""
    for problem in kept(PUBLISHED)["problems"]:
        for measure in DRAWN:
            chart = cost_chart(problem, measure, "cost", "Cost against mean square error.")
            write_figure(folder, f"{problem['name']}-{measure}", chart)


def savings() -> str:
    """How many times as much one level costs as several, a row for each problem."""
    heads = (
        "problem",
        "widths of several levels",
        "at a mean square error of",
        "one level at the finest width: work",
        "seconds",
        "nominal cost",
        "one level at its best narrower width: work",
        "seconds",
        "slope, one level",
        "several levels",
        "theory",
        "commit",
    )
    rows, results = [], kept(PUBLISHED)
    for problem in results["problems"]:
        fits, theory = problem["fits"], problem["theory"]
        ladder = next(row["widths"] for row in problem["points"] if row["method"] == "mlsmc")
        cells = [
            problem["name"].removeprefix("published "),
            ", ".join(map(str, ladder)),
            scientific(_lowest_at(ladder[-1], problem)),
            *(interval(fits[measure]["ratio_widest"]) for measure in MEASURES),
            *(interval(narrower(problem, measure)) for measure in DRAWN),
            *(interval(fits["flops"]["slopes"][method]) for method in ("smc", "mlsmc")),
            f"{theory['smc']:.2f}, {theory['mlsmc']:.2f}",
            problem.get("commit", results["commit"]),
        ]
        rows.append(cells)
    return markdown(heads, rows)


def narrower(problem: dict[str, Any], measure: str) -> dict[str, Any]:
    """The ratio of costs against one level at its best width below the widest."""
    noise = problem["reference"]["noise"]
    return ratio_of_narrower(problem["points"], measure, noise)._asdict()


def evidence() -> str:
    """What the log evidence costs by one level and by several: the cheapest setting of each."""
    heads = ("problem", "widths", "particles", "runs", "log evidence", "error of a run", "work",
             "seconds")  # fmt: skip
    rows = []
    for problem in kept(PUBLISHED)["problems"]:
        name = problem["name"].removeprefix("published ")
        for row in cheapest_evidence(problem):
            values = np.array(row["log_evidence"])
            _, *manner = row["family"].split(", ")
            cells = [
                name,
                ", ".join([*map(str, row["widths"]), *manner]),
                ", ".join(map(str, row["particles"])),
                f"{len(values)}",
                f"{values.mean():.2f} ± {values.std(ddof=1) / len(values) ** 0.5:.2f}",
                f"{evidence_error(row, best_known(problem)):.2f}",
                scientific(row["flops"]),
                number(row["seconds"], 2),
            ]
            rows.append(cells)
            name = ""
    return markdown(heads, rows)


def cheapest_evidence(problem: dict[str, Any]) -> list[dict[str, Any]]:
    """The least work for a small error: one level below the finest width, at it, and several."""
    exact = best_known(problem)
    good = [row for row in problem["points"] if evidence_error(row, exact) <= SMALL_ERROR_NATS]
    singles = [row for row in good if row["method"] == "smc"]
    widest = max(row["widths"] for row in singles)
    groups = (
        [row for row in singles if row["widths"] != widest],
        [row for row in singles if row["widths"] == widest],
        [row for row in good if row["method"] == "mlsmc"],
    )
    return [min(rows, key=lambda row: row["flops"]) for rows in groups]


def best_known(problem: dict[str, Any]) -> float:
    """The mean log evidence of the setting whose runs say it best."""
    all_runs = (np.array(row["log_evidence"]) for row in problem["points"])
    best = min(all_runs, key=lambda values: values.std(ddof=1) / len(values) ** 0.5)
    return float(best.mean())


def evidence_error(row: dict[str, Any], exact: float) -> float:
    """The root mean square error of one run's log evidence, in nats."""
    return float(np.mean((np.array(row["log_evidence"]) - exact) ** 2) ** 0.5)


def _lowest_at(widest: int, problem: dict[str, Any]) -> float:
    """The smallest error that one level at a width and several levels both reach."""
    rows = problem["points"]
    alone = [row["mse"] for row in rows if row["widths"] == [widest]]
    several = [row["mse"] for row in rows if row["method"] == "mlsmc"]
    return max(min(alone), min(several))


def runs() -> str:
    """What every setting costs and how far off it is, a row for each."""
    heads = ("problem", "widths", "particles", "runs", "10⁶ MSE", "work", "seconds", "MSE x work")
    rows = []
    for problem in kept(PUBLISHED)["problems"]:
        name = problem["name"].removeprefix("published ")
        for row in sorted(problem["points"], key=lambda row: (row["widths"], row["mse"])):
            _, *manner = row["family"].split(", ")
            cells = [
                name,
                ", ".join([*map(str, row["widths"]), *manner]),
                ", ".join(map(str, row["particles"])),
                f"{row['replicates']}",
                f"{1e6 * row['mse']:.2g} ± {1e6 * row['mse_error']:.1g}",
                scientific(row["flops"]),
                number(row["seconds"], 2),
                scientific(row["mse"] * row["flops"]),
            ]
            rows.append(cells)
            name = ""
    return markdown(heads, rows)
