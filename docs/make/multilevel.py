"""Figures and tables of docs/results/multilevel.md, from `results/prior_rates` and the like."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from kept import SEVERAL, kept, origin
from parts import markdown, write_figure
from scipy.stats import f

from credence.html.wording import number
from credence_papers.multilevel.error_cost.charts import cost_chart
from credence_papers.multilevel.error_cost.page import interval, scientific
from credence_papers.multilevel.error_cost.results import comparable, ratio_of_narrower
from credence_papers.multilevel.prior_rates_page import panel_chart, panels
from credence_papers.multilevel.steps import cells

MEASURES = ("flops", "seconds", "nominal")
DRAWN = ("flops", "seconds")
PUBLISHED = ("multilevel_published", "multilevel_published_256", "multilevel_published_spiral")
"""Studies with the published design."""


def problems() -> Iterator[dict[str, Any]]:
    """The problems of the published design, each of which tells what made it."""
    for results in map(kept, PUBLISHED):
        yield from ({**origin(results), **problem} for problem in results["problems"])


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
    for problem in problems():
        for measure in (each for each in DRAWN if compares(problem, each)):
            chart = cost_chart(problem, measure, "cost", "Cost against mean square error.")
            write_figure(folder, f"{problem['name']}-{measure}", chart)


def compares(problem: dict[str, Any], measure: str) -> bool:
    """Whether runs of a problem compare by a measure of cost: seconds of machines that are told."""
    is_told = all("machine" in row for row in problem["points"])
    return measure != "seconds" or is_told or SEVERAL not in problem["machine"]


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
    rows = []
    for problem in problems():
        fits, theory = problem["fits"], problem["theory"]
        ladder = next(row["widths"] for row in problem["points"] if row["method"] == "mlsmc")
        cells = [
            problem["name"].removeprefix("published "),
            ", ".join(map(str, ladder)),
            scientific(_lowest_at(ladder[-1], problem)),
            *(_told(problem, each, fits[each]["ratio_widest"]) for each in MEASURES),
            *(_told(problem, each, narrower(problem, each)) for each in DRAWN),
            *(interval(fits["flops"]["slopes"][method]) for method in ("smc", "mlsmc")),
            f"{theory['smc']:.2f}, {theory['mlsmc']:.2f}",
            problem["commit"],
        ]
        rows.append(cells)
    return markdown(heads, rows)


def _told(problem: dict[str, Any], measure: str, ratio: dict[str, Any]) -> str:
    """A ratio of costs with its interval, and a dash where runs cannot be compared."""
    return interval(ratio) if compares(problem, measure) else "–"


def narrower(problem: dict[str, Any], measure: str) -> dict[str, Any]:
    """The ratio of costs against one level at its best width below the widest."""
    noise = problem["reference"]["noise"]
    points = comparable(problem["points"], measure)
    return ratio_of_narrower(points, measure, noise)._asdict()


def evidence() -> str:
    """The log evidence by one level and by several, and what an equal spread costs."""
    heads = ("problem", "widths", "particles", "runs", "log evidence", "spread of a run", "work",
             "seconds", "work over that of several at equal spread")  # fmt: skip
    rows = []
    for problem in problems():
        settings = evidence_settings(problem)
        several = settings[-1]
        for row in settings:
            values = np.array(row["log_evidence"])
            spread = values.std(ddof=1)
            ratio = "" if row is several else interval(work_at_equal_spread(row, several))
            rows.append(
                [
                    problem["name"].removeprefix("published ") if row is settings[0] else "",
                    *_setting(row),
                    f"{values.mean():.2f} ± {spread / len(values) ** 0.5:.2f}",
                    f"{spread:.2f}",
                    scientific(row["flops"]),
                    number(row["seconds"], 2),
                    ratio,
                ]
            )
    return markdown(heads, rows)


def evidence_settings(problem: dict[str, Any]) -> list[dict[str, Any]]:
    """One level at the narrow width, one at the finest, and both: most particles, long moves."""
    points = problem["points"]
    of_levels = [row for row in points if row["method"] == "mlsmc"]
    several = min(of_levels, key=lambda row: len(row["family"]))  # long moves, fewest tries
    narrow, *_, wide = several["widths"]
    families = f"smc {narrow}", f"smc {wide}", several["family"]
    by_family = [[row for row in points if row["family"] == family] for family in families]
    return [max(rows, key=lambda row: row["particles"]) for rows in by_family]


def work_at_equal_spread(one: dict[str, Any], other: dict[str, Any]) -> dict[str, float]:
    """The ratio of work x variance of the log evidence, with the interval of normal samples."""
    logs = [np.array(row["log_evidence"]) for row in (one, other)]
    ratio = one["flops"] * logs[0].var(ddof=1) / (other["flops"] * logs[1].var(ddof=1))
    low, high = f.ppf([0.025, 0.975], len(logs[0]) - 1, len(logs[1]) - 1)
    return {"value": ratio, "low": ratio / high, "high": ratio / low}


def _setting(row: dict[str, Any]) -> list[str]:
    """Widths and moves, particles and number of runs."""
    _, *manner = row["family"].split(", ")
    return [
        ", ".join([*map(str, row["widths"]), *manner]),
        ", ".join(map(str, row["particles"])),
        f"{row['replicates']}",
    ]


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
    for problem in problems():
        name = problem["name"].removeprefix("published ")
        timed = comparable(problem["points"], "seconds")
        for row in sorted(problem["points"], key=lambda row: (row["widths"], row["mse"])):
            cells = [
                name,
                *_setting(row),
                f"{number(1e6 * row['mse'], 2)} ± {number(1e6 * row['mse_error'], 1)}",
                scientific(row["flops"]),
                number(row["seconds"], 2) if row in timed else "–",
                scientific(row["mse"] * row["flops"]),
            ]
            rows.append(cells)
            name = ""
    return markdown(heads, rows)
