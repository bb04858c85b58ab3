"""The page of the trans-dimensional experiments: one HTML file."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from credence.html.document import document
from credence.html.markup import Html, element
from credence.html.parts import columns, figure, masthead, section, table
from credence.html.svg import ACCENT, CHAINS, SECOND, label, new_figure, to_svg
from credence.html.wording import count, duration, number
from credence.methods.transdimensional.architecture.section import (
    probability_chart,
    read_jumps,
    read_likeliest,
    read_posterior,
)
from credence_papers.transdimensional.draw_by_draw import shown_chains

NAMES = {
    "mode": "Most probable size",
    "mean": "Mean size",
    "across": "Jumps accepted",
    "within": "Steps accepted",
    "rmse": "RMSE, thousand dollars",
    "coverage_95": "Coverage of 95 % intervals",
    "best_chain": "RMSE of the best of {chains} chains, chosen by the test rows, as published",
    "modal_size": "RMSE of the likeliest size alone",
    "accuracy": "Accuracy",
    "top_2": "Truth among the first 2",
    "top_3": "Truth among the first 3",
    "precision_20": "Precision above confidence 0.2",
    "recall_20": "Recall above confidence 0.2",
    "precision_40": "Precision above confidence 0.4",
    "recall_40": "Recall above confidence 0.4",
    "nll": "Negative log likelihood",
    "ece": "Calibration error",
}
"""Rows of a table; {chains} is how many there are."""


def render(summary: dict[str, Any]) -> str:
    """The page as text; all text in `summary` is escaped."""
    facts = f"Credence · size {summary['size']} · seed {summary['seed']}"
    head = masthead(summary["description"], facts)
    parts = [_over_seeds(row) for row in summary["means"]]
    parts += [_problem(row) for row in summary["architectures"]]
    source = element("p", f"Published: {summary['source']}.", class_="small")
    return document(
        f"Architectures: {summary['experiment']}", element("main", head, *parts, source)
    )


def size_of(row: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Choose what a run varies: its posterior, and a name for it."""
    found = row["architecture"]
    is_deep = found["depth"] is not None
    return (found["depth"], "Hidden layers") if is_deep else (found["width"], "Hidden neurons")


def _over_seeds(row: Mapping[str, Any]) -> Html:
    """Mean scores of a problem with several seeds, with standard errors, beside the published."""
    rows = [
        [
            title.format(**row),
            f"{_value(name, row['scores'][name])} ± {_value(name, row['standard_errors'][name])}",
            _value(name, row["published"].get(name)),
        ]
        for name, title in NAMES.items()
        if row["scores"].get(name) is not None
    ]
    title = f"{row['name']}: means of {row['num_seeds']} seeds, with standard errors"
    return section(title, table(["", "Ours", "Published"], rows), is_converged=True)


def _problem(row: Mapping[str, Any]) -> Html:
    """p(size), the chains' way, and our numbers beside the published ones."""
    found, name = row["architecture"], row["name"]
    posterior, noun = size_of(row)
    reading = read_posterior(posterior)
    if "mode" in row["published"]:
        reading += f" Published mode: {number(row['published']['mode'])}."
    shown = min(row["chains"], len(CHAINS))
    left = [
        figure(
            f"How {'wide' if found['depth'] is None else 'deep'}?",
            reading,
            probability_chart(posterior, noun, f"{name}-size", reading),
            note="Lines: two Monte Carlo standard errors.",
        ),
        figure(
            "The chains' way",
            read_jumps(found),
            trace_chart(row, noun, f"{name}-traces"),
            note=f"{shown} of {count(row['chains'], 'chain')}, started at different sizes.",
        ),
    ]
    right = [
        figure("Ours and published", read_likeliest(found), _numbers(row)),
        figure("Did it converge?", row["convergence"]["reason"], Html("")),
        *([three_ways(row["ways"], noun, f"{name}-ways")] if row.get("ways") else []),
        *([figure("Why they differ", "", _reasons(row))] if row["published"] else []),
    ]
    return section(
        f"{name}: {row['description']}",
        columns(left, right),
        is_converged=row["convergence"]["converged"],
    )


def trace_chart(row: Mapping[str, Any], noun: str, name: str) -> Html:
    """Size draw by draw, of a few chains; below it how good each network is, and how probable."""
    panels = {noun: [row["traces"][chain] for chain in shown_chains(len(row["traces"]))]}
    if "single" in row:
        score = "RMSE of the draw" if "rmse" in row["scores"] else "Accuracy of the draw"
        panels |= {score: row["single"], "Log density, nats": row["log_density"]}
    height = 200 if len(panels) == 1 else 440
    drawing, rows = new_figure(rows=len(panels), height=height, hspace=0.35)
    for axes, (title, traces) in zip(rows, panels.items(), strict=True):
        draws = row["every"] * np.arange(len(traces[0]))
        for trace, colour in zip(traces, CHAINS, strict=False):
            axes.plot(draws, trace, color=colour, linewidth=0.8, alpha=0.8)
        label(axes, title, "Draw" if axes is rows[-1] else "")
    return to_svg(drawing, name, f"{noun}, draw by draw", "One colour per chain.")


def three_ways(ways: Mapping[str, Any], noun: str, name: str) -> Html:
    """Jumps, evidences and cross-validation, one above the other, over the same sizes."""
    probability, best = np.array(ways["jumps"]), int(np.argmin(ways["nll"]))
    sizes, top = ways["sizes"], int(np.argmax(probability))
    away = np.abs(probability - ways["evidence"]) / np.hypot(
        ways["jumps_error"], ways["evidence_error"]
    )
    worst = float(np.max(away))
    reading = (
        f"Of these sizes the jumps prefer {sizes[top]}; evidences of every size alone differ from "
        f"them by at most {number(worst)} standard errors of both. Cross-validation prefers "
        f"{sizes[best]}"
    )
    if best == top:
        reading += " too."
    else:
        reading += (
            f"; {sizes[top]} is worse by {ways['nll_behind'][top]:.3f} ± "
            f"{ways['nll_behind_error'][top]:.3f} nats per row."
        )
    return figure(
        "One question, three answers",
        reading,
        ways_chart(ways, noun, name, reading),
        note="Circles: jumps. Squares: SMC at every size alone. Diamonds: negative log likelihood "
        "of rows left out, in nats. Lines: two standard errors.",
    )


def ways_chart(ways: Mapping[str, Any], noun: str, name: str, reading: str) -> Html:
    """Probabilities above, held-out scores below."""
    drawing, (above, below) = new_figure(rows=2, height=320, hspace=0.45)
    sizes = np.array(ways["sizes"], float)
    marks = {"linestyle": "none", "markersize": 5, "linewidth": 0.9, "clip_on": False}
    step = 0.12 * np.min(np.diff(sizes), initial=1.0)
    for key, shift, mark, colour in (
        ("jumps", -step, "o", ACCENT),
        ("evidence", step, "s", SECOND),
    ):
        error = 2 * np.array(ways[f"{key}_error"])
        above.errorbar(sizes + shift, ways[key], error, marker=mark, color=colour, **marks)
    below.errorbar(
        sizes, ways["nll"], 2 * np.array(ways["nll_error"]), marker="D", color=CHAINS[2], **marks
    )
    above.set_ylim(bottom=0)
    label(above, "Probability among these sizes", percent_y=True)
    label(below, "Held-out negative log likelihood, nats", noun)
    for axes in (above, below):
        axes.set_xticks(sizes)
        axes.grid(visible=False, axis="x")
    return to_svg(drawing, name, f"{noun}: three answers", reading)


def _numbers(row: Mapping[str, Any]) -> Html:
    scores, published = row["scores"], row["published"]
    rows = [
        [title.format(**row), _value(name, scores[name]), _value(name, published.get(name))]
        for name, title in NAMES.items()
        if scores.get(name) is not None
    ]
    found = row["architecture"]
    rows += [
        ["R-hat of the size", _fixed(found["max_rhat"]), "–"],
        ["Effective draws of the size", _fixed(found["min_ess"], 0), "–"],
        ["Distinct states", f"{number(found['num_states'])} of {number(found['num_draws'])}", "–"],
        ["Architectures visited", number(found["num_architectures"]), "–"],
        ["Time, compilation included", duration(row["total_seconds"]), "–"],
    ]
    return table(["", "Ours", "Published"], rows)


def _reasons(row: Mapping[str, Any]) -> Html:
    items = [element("li", f"{reason[0].upper()}{reason[1:]}.") for reason in row["reasons"]]
    return element("ul", *items)


def _value(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    if name in ("across", "within"):
        return f"{100 * value:.1f}\u00a0%"
    return number(value)


def _fixed(value: float | str | None, decimals: int = 3) -> str:
    return "–" if value is None else f"{float(value):.{decimals}f}"
