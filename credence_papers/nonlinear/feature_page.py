"""The page of nonlinear MCMC on features of photographs: one HTML file."""

from typing import Any

import numpy as np

from credence.html.document import document
from credence.html.markup import Html, element
from credence.html.parts import figure, key_of_curves, masthead, section, table
from credence.html.svg import CHAINS, MUTED, label, new_figure, to_svg
from credence.html.wording import number
from credence_papers.nonlinear.feature_rows import CORRUPTIONS

DRAWN = ("SGLD (linear)", "Nonlinear (BG)", "Nonlinear (AR)", "SGHMC")
"""Curves of the chart; the table has all contenders."""

READING = (
    "Accuracy on the test images of the average over all draws so far, against gradients of one "
    "row, those of training, of the warm-up and of partners included; a value without gradient "
    "counts a third."
)
COLUMNS = (
    "Means over the seeds, with standard errors where there are several. ECE of the top label and "
    "over all class probabilities, as published, and the worst bin of either (MCE), however few "
    "images it has, in per cent; 15 bins of equal width. R-hat of averaged predictions is Gelman "
    "and Rubin's plain one, that of kept draws is split and rank-normalised, with the least "
    "effective sample size (ESS) of 200 test images; particles that jump share partners, and "
    "theirs means little. Potentials are worth so many particles; work is in 10^9 gradients of "
    "one row, without those of the warm-up's metric. Seeds move the chains and neither images nor "
    "features. The deep ensemble's networks are stopped early."
)
AGAINST_READING = (
    "Against the reference, where it has converged: total variation and Kullback-Leibler "
    "divergence of class probabilities, in nats, as means over the test images, and how wide "
    "predictions are, the deviation between members against the reference's. Against the linear "
    "baseline: how much more the NLL is on the same images, in nats, with its standard error over "
    "the seeds, and then that over the images."
)
HEADS = [
    "problem",
    "contender",
    "accuracy",
    "NLL",
    "Brier",
    "ECE, all classes",
    "ECE, top label",
    "MCE, all classes",
    "MCE, top label",
    "R-hat",
    "ESS",
    "potentials worth",
    "jumps accepted",
    "of those tried",
    "work",
    "seconds",
]
PERCENT = ("ece_all_classes", "ece", "mce_all_classes", "mce")


def cells(summary: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the table."""
    return HEADS, [_row(row) for row in summary["contenders"]]


AGAINST_HEADS = [
    "problem",
    "contender",
    "total variation",
    "KL, nats",
    "width",
    "NLL, more",
    "its error over images",
]


def against_cells(summary: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the table against the reference and the linear baseline."""
    return AGAINST_HEADS, [
        [
            row["problem"],
            _label(row),
            *(_with_error(row, name, 4) for name in ("total_variation", "kl")),
            _with_error(row, "std_ratio", 3),
            _with_error(row, "nll_more", 5),
            _plain(row.get("nll_more_over_rows"), "{:.5f}"),
        ]
        for row in summary["contenders"]
    ]


WORSE_HEADS = [
    "problem",
    "contender",
    *(f"{kind}: {score}" for kind in CORRUPTIONS for score in ("accuracy", "NLL", "ECE")),
    "strangers, AUROC",
]
WORSE_READING = (
    "The same networks where the test images were made worse: noise, a blur, less contrast, each "
    "at the worst of five severities (Hendrycks & Dietterich, 2019). ECE is of the top label, in "
    "per cent. AUROC is the chance that the entropy of an image of no known class is above that of "
    "a test image; one half is guessing."
)


def worse_cells(summary: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the table of images that were made worse, and of strangers."""
    return WORSE_HEADS, [
        [
            row["problem"],
            row["label"],
            *(
                _with_error(row, f"{kind}_{score}", digits, scale)
                for kind in CORRUPTIONS
                for score, digits, scale in (("accuracy", 4, 1), ("nll", 4, 1), ("ece", 2, 100))
            ),
            _with_error(row, "strangers_auroc", 4),
        ]
        for row in summary["contenders"]
    ]


def published_cells(summary: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of table 1 as published, tempered columns beside the others."""
    labels = dict.fromkeys(each["label"] for each in summary["published"])
    found = {(each["label"], each["tempered"]): each for each in summary["published"]}
    heads = ["published, ResNet-18", "accuracy", "tempered", "ECE, all classes, %", "tempered"]
    rows = [
        [
            name,
            *(_published(found[name, cold]["accuracy"], 4) for cold in (False, True)),
            *(_published(found[name, cold]["ece_all_classes"], 2, 100) for cold in (False, True)),
        ]
        for name in labels
    ]
    return heads, rows


def render(summary: dict[str, Any]) -> str:
    """The page as text; all text in `summary` is escaped."""
    facts = (
        f"Credence · {summary['num_train']:,} images · {summary['num_features']:,} features · "
        f"{summary['particles']} particles · up to {summary['num_seeds']} seeds · "
        f"size {summary['size']}"
    )
    head = masthead(summary["description"], facts)
    names = dict.fromkeys(row["problem"] for row in summary["contenders"])
    curves = [_curves(summary, name) for name in names]
    body = section("Accuracy while sampling", element("p", READING), *curves, is_converged=True)
    rows = section(
        "Table 1",
        element("p", COLUMNS),
        table(*cells(summary)),
        element("p", AGAINST_READING),
        table(*against_cells(summary)),
        table(*published_cells(summary)),
        element("p", summary["source"], class_="small"),
        is_converged=True,
    )
    worse = section(
        "Strange images",
        element("p", WORSE_READING),
        table(*worse_cells(summary)),
        is_converged=True,
    )
    return document(f"Features: {summary['experiment']}", element("main", head, body, rows, worse))


def _curves(summary: dict[str, Any], problem: str) -> Html:
    legend = key_of_curves(DRAWN)
    name = f"features-{problem}"
    return figure(problem, "", chart(summary, problem, name=name), legend)


def chart(summary: dict[str, Any], problem: str, *, name: str) -> Html:
    """Accuracy against work, as in figure 2."""
    drawing, (axes,) = new_figure(left=48.0)
    rows = {row["label"]: row for row in summary["contenders"] if row["problem"] == problem}
    for contender, colour in zip(DRAWN, CHAINS, strict=True):
        row = rows.get(contender, {})
        if "path_work" in row:
            x = np.asarray(row["path_work"]) / 1e6
            axes.plot(x, row["path_accuracy"], color=colour, linewidth=1.5)
    label(axes, "Accuracy", "Gradients of one row, millions")
    axes.tick_params(labelcolor=MUTED)
    return to_svg(drawing, name, f"Accuracy against gradients, {problem}", READING)


def _row(row: dict[str, Any]) -> list[str]:
    work = row.get("work")
    return [
        row["problem"],
        _label(row),
        _with_error(row, "accuracy", 4),
        _with_error(row, "nll", 4),
        _with_error(row, "brier", 4),
        *(_with_error(row, name, 2, 100) for name in PERCENT),
        _plain(row["max_rhat"], "{:.3f}"),
        _plain(row.get("min_ess"), "{:.0f}"),
        _plain(row["potential_ess"], "{:.1f}"),
        _plain(row["accepted_jumps"], "{:.3f}"),
        _plain(row.get("accepted_of_tried"), "{:.3f}"),
        "-" if work is None else f"{work / 1e9:.3g}",
        "-" if row["seconds"] is None else number(row["seconds"]),
    ]


def _label(row: dict[str, Any]) -> str:
    """The contender, and what is the matter with it."""
    if row.get("failed"):
        return f"{row['label']} (failed: {row['failed']})"
    return row["label"] + ("" if row.get("is_converged", True) else " (has not converged)")


def _with_error(row: dict[str, Any], name: str, digits: int, scale: float = 1) -> str:
    """A number, and its standard error where there are several seeds."""
    if row.get(name) is None:
        return "-"
    error = row.get(f"{name}_error")
    found = f"{scale * float(row[name]):.{digits}f}"
    return found if error is None else f"{found} ± {scale * error:.{digits}f}"


def _plain(value: float | str | None, form: str) -> str:
    """A number, perhaps "inf"."""
    return "-" if value is None else form.format(float(value))


def _published(value: float | None, digits: int, scale: float = 1) -> str:
    return "diverged" if value is None else f"{scale * value:.{digits}f}"
