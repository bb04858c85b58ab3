"""Tables and figures of docs/results/transdimensional.md, from `results/transdimensional_*`.

Only what has been run is made: a study without results has no part and no figure.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from kept import is_kept, kept
from parts import markdown, write_figure

from credence.html.svg import ACCENT, CHAINS, MUTED, SECOND, label, new_figure, to_svg
from credence.html.wording import count
from credence_papers.transdimensional.model_study import cells as model_cells
from credence_papers.transdimensional.model_study import with_error
from credence_papers.transdimensional.page import size_of, trace_chart

MODELS, DEPTHS = "transdimensional_models", "transdimensional_depth_ways"
DIGIT_MODELS = "transdimensional_digit_models"
WIDTHS = "xor_widths"
UCI = "transdimensional_uci"
PUBLISHED = ("transdimensional_xor", "transdimensional_digits", "transdimensional_boston")
DRAWN = ("xor", "boston_2a", "boston_4a", "digits_10a")
"""Problems whose sizes the page shows as a chart."""
TRACED = ("xor", "digits_10a", "boston_2a")
"""Problems whose chains the page shows draw by draw."""
JAVID = {"boston_2a": 0.275, "boston_2b": 0.275, "boston_4a": 0.271, "boston_4b": 0.271}
"""Table 7.1: errors of Javid et al. (2020) at their best depth, one; in the thesis's unit."""
NUM_TEST = 253
"""Test rows: the thesis divides root mean squares by the root of their number."""
MARKS = {
    "jumps": ("o", ACCENT, "circles"),
    "particles": ("s", SECOND, "squares"),
    "ladder": ("D", CHAINS[2], "diamonds"),
    "crossings": ("^", CHAINS[3], "triangles"),
}
"""Marks of the ways to the depth, their colours, and what they are called."""


def models() -> str:
    """Models side by side, a row each: errors, sizes, convergence, cost."""
    heads = [
        "model",
        "splits",
        "RMSE, thousand dollars",
        "NLL, nats per row",
        "coverage of 95 % intervals",
    ]
    heads += ["RMSE of single networks: training rows", "test rows", "likeliest sizes"]
    heads += ["R-hat of size", "of predictions", "seconds"]
    rows = []
    for row in kept(MODELS)["models"]:
        name, rmse, nll, coverage, *rest = model_cells(row)
        single = [with_error(row, f"single_{part}_rmse") for part in ("train", "test")]
        rows.append([name, str(row["num_splits"]), rmse, nll, coverage, *single, *rest])
    return markdown(heads, rows)


def digit_models() -> str:
    """Models of digits, a row each: labels that are right, sizes, convergence, cost."""
    heads = ["model", "splits", "accuracy", "NLL, nats per row", "ECE", "truth among the first two"]
    heads += ["accuracy of single networks", "likeliest sizes"]
    heads += ["R-hat of size", "of predictions", "seconds"]
    rows = []
    for row in kept(DIGIT_MODELS)["models"]:
        name, accuracy, nll, ece, *rest = model_cells(row)
        more = [with_error(row, key, 4) for key in ("top_2", "single_test_accuracy")]
        rows.append([name, str(row["num_splits"]), accuracy, nll, ece, *more, *rest])
    return markdown(heads, rows)


def depths() -> str:
    """log p(depth) - log p(1) by every way, a row each."""
    summary = kept(DEPTHS)
    ways = summary["ways"]
    most = max(len(row["log_ratio"]) for row in ways)
    rows = []
    for row in ways:
        pairs = list(zip(row["log_ratio"], row["error"], strict=True))[1:]
        told = [f"{value:.2f} ± {error:.2f}".replace("-", "−") for value, error in pairs]
        rhat = "–" if row["rhat"] is None else f"{float(row['rhat']):.3f}"
        told += ["–"] * (most - 1 - len(pairs))
        rows.append([row["name"], *told, rhat, f"{row['seconds']:.0f}"])
    layers = [f"{d} layers" for d in range(2, most + 1)]
    told = f"Commit {', '.join(summary['commits'])}."
    return f"{markdown(['way', *layers, 'worst R-hat', 'seconds'], rows)}\n\n{told}"


def widths() -> str:
    """p(width) of XOR by jumps and by evidences, a row each, and how far they differ."""
    found = kept(WIDTHS)
    smc = f"evidences by SMC, 8 runs of {found['particles']} particles"
    columns = (found["widths"], found["reversible_jump"], found["reversible_jump_errors"])
    rows = zip(*columns, found["evidence"], found["evidence_errors"], strict=True)
    shown = [[str(n), f"{p:.3f} ± {e:.3f}", f"{q:.3f} ± {f:.3f}"] for n, p, e, q, f in rows]
    of = {n: found["all_widths"][n - 1] for n in (16, 15, 14, 10, 7)}
    all_widths = ", ".join(f"p({n}) = {p:.3g}" for n, p in of.items())
    told = (
        f"The largest difference is {found['worst_z']:.1f} standard errors of both. Over all "
        f"widths {all_widths}. R-hat of the width is {found['rhat']:.3f}, its ESS "
        f"{found['ess']:,.0f} of 16,000; {100 * found['rate']:.0f} % of the jumps were accepted; "
        f"{found['run']:.0f} seconds without compilation; commit {found['commit']}. This is "
        "another run than that in the table of the [published "
        "experiments](#the-published-experiments), by an earlier version of the sampler."
    )
    return f"{markdown(['width', 'reversible jump', smc], shown)}\n\n{told}"


def depth_figure(folder: Path) -> None:
    """The same as a chart, on a logarithmic scale."""
    drawing, (axes,) = new_figure(height=240)
    ways = kept(DEPTHS)["ways"]
    for index, row in enumerate(ways):
        mark, colour, _ = MARKS[row["way"]]
        at = np.arange(1, len(row["log_ratio"]) + 1) + 0.12 * (index - (len(ways) - 1) / 2)
        error = 2 * np.array(row["error"])
        style = {"linestyle": "none", "markersize": 5, "linewidth": 0.9}
        axes.errorbar(at, row["log_ratio"], error, marker=mark, color=colour, **style)
    label(axes, "log p(depth) - log p(1), nats", "Hidden layers")
    told = (f"{MARKS[row['way']][2].capitalize()}: {row['way']}." for row in ways)
    reading = f"{' '.join(told)} Lines: two standard errors."
    chart = to_svg(drawing, "depth-ways", f"p(depth) in {len(ways)} ways", reading)
    write_figure(folder, "depth-ways", chart)


def histograms(folder: Path) -> None:
    """p(size) of published runs, with the published mode and mean as lines."""
    for row in published_rows():
        if row["problem"] in DRAWN:
            write_figure(folder, f"sizes-{row['problem']}", histogram(row))


def traces(folder: Path) -> None:
    """Sizes, scores and densities draw by draw, as in figures 5.6, 6.5, 7.5 and 7.6."""
    for row in published_rows():
        if row["problem"] in TRACED:
            name = f"traces-{row['problem']}"
            write_figure(folder, name, trace_chart(row, size_of(row)[1], name))


def histogram(row: Mapping[str, Any]) -> str:
    """p(size) of one run; what is published are a mode and a mean, not counts."""
    size, noun = size_of(row)
    drawing, (axes,) = new_figure(height=180)
    axes.bar(size["widths"], size["probabilities"], width=0.8, color=ACCENT, alpha=0.75)
    for key, style in (("mode", "-"), ("mean", ":")):
        if key in row["published"]:
            axes.axvline(row["published"][key], color=MUTED, linestyle=style, linewidth=1.2)
    label(axes, "Probability given the data", noun, percent_y=True)
    about = "Bars: ours. Lines: published mode (solid) and mean (dotted)."
    name = f"sizes-{row['problem']}"
    return str(to_svg(drawing, name, f"{row['problem']}: {noun.lower()}", about))


def acceptance() -> str:
    """Table 6.1: shares of steps accepted, across sizes and within, in percent."""
    keys = ("across", "within")
    rows = []
    for row in published_rows():
        ours = [f"{100 * row['scores'][key]:.1f}" for key in keys]
        rows.append([row["name"], *ours, *(published(row, key, 100) for key in keys)])
    heads = ["problem", "across sizes, %", "within, %", "published across", "published within"]
    return markdown(heads, rows)


def predictive_errors() -> str:
    """Tables 7.1 and 7.4: errors of Boston in thousand dollars, beside Javid et al. (2020)."""
    heads = ["problem", "RMSE", "best chain", "likeliest depth alone", "R-hat of depth"]
    heads += ["published RMSE", "best chain", "modal depth", "Javid et al."]
    unit = NUM_TEST**0.5
    rows = []
    for row in published_rows("transdimensional_boston"):
        scores = row["scores"]
        ours = [f"{scores[key]:.2f}" for key in ("rmse", "best_chain", "modal_size")]
        told = [published(row, key, decimals=2) for key in ("rmse", "best_chain", "modal_size")]
        rhat = f"{row['architecture']['max_rhat']:.3f}"
        javid = f"{unit * JAVID[row['problem']]:.2f}" if row["problem"] in JAVID else "–"
        rows.append([row["name"], *ours, rhat, *told, javid])
    return markdown(heads, rows)


def label_scores() -> str:
    """Table 7.2: truth among the first k, precision and recall of the digits, in percent."""
    keys = ["accuracy", "top_2", "top_3"]
    keys += [f"{what}_{t}" for t in (20, 40) for what in ("precision", "recall")]
    rows = [
        [row["name"], *(f"{100 * row['scores'][k]:.1f} ({published(row, k, 100)})" for k in keys)]
        for row in published_rows("transdimensional_digits")
    ]
    heads = ["problem", "top 1", "top 2", "top 3", "precision at 0.2", "recall", "at 0.4", "recall"]
    return markdown(heads, rows)


def sizes(*names: str) -> str:
    """Table 7.3 and more: likeliest and mean size, convergence, score, cost; published numbers in
    brackets."""
    heads = ["problem", "likeliest size", "its probability", "mean size", "jumps accepted, %"]
    heads += ["R-hat of size", "of predictions", "ESS of size", "on test rows", "seconds"]
    return markdown(heads, [_size_row(row) for row in published_rows(*names)])


def _size_row(row: Mapping[str, Any]) -> list[str]:
    """One problem of the thesis."""
    found, scores = row["architecture"], row["scores"]
    _, name = size_of(row)
    noun = name.removeprefix("Hidden ").removesuffix("s")
    label, key, decimals = ("RMSE", "rmse", 2) if "rmse" in scores else ("accuracy", "accuracy", 3)
    return [
        row["name"],
        f"{count(scores['mode'], noun)}{in_brackets(row, 'mode', decimals=0)}",
        "{:.3f} ± {:.3f}".format(*likeliest_share(row)),
        f"{scores['mean']:.2f}{in_brackets(row, 'mean', decimals=2)}",
        f"{100 * scores['across']:.1f}{in_brackets(row, 'across', 100)}",
        f"{found['max_rhat']:.3f}",
        f"{row['convergence']['max_rhat_function']:.3f}",
        f"{found['min_ess']:.0f}",
        f"{label} {scores[key]:.3g}{in_brackets(row, key, decimals=decimals)}",
        f"{row['total_seconds']:.0f}",
    ]


def likeliest_share(row: Mapping[str, Any]) -> tuple[float, float]:
    """The probability of the likeliest size, and its error."""
    size, _ = size_of(row)
    share = max(size["probabilities"])
    return share, (share * (1 - share) / row["architecture"]["min_ess"]) ** 0.5


def in_brackets(row: Mapping[str, Any], key: str, factor: float = 1.0, decimals: int = 1) -> str:
    """A published number in brackets; nothing where there is none."""
    return f" ({published(row, key, factor, decimals)})" if key in row["published"] else ""


def published(row: Mapping[str, Any], key: str, factor: float = 1.0, decimals: int = 1) -> str:
    """A published number, or a dash."""
    known = row["published"].get(key)
    return "–" if known is None else f"{factor * known:.{decimals}f}"


def published_rows(*names: str) -> list[dict[str, Any]]:
    """Rows of those studies that have results."""
    chosen = filter(is_kept, names or PUBLISHED)
    return [row for name in chosen for row in kept(name)["architectures"]]


def architecture(study: str, problem: str) -> dict[str, Any]:
    """The row of one problem of a study."""
    (row,) = (row for row in kept(study)["architectures"] if row["name"] == problem)
    return row


def parts() -> dict[str, Callable[[], str]]:
    """Makers of the parts whose studies have results."""
    found: dict[str, Callable[[], str]] = {}
    if is_kept(MODELS):
        found |= {"boston-models": models}
    if is_kept(DIGIT_MODELS):
        found["digit-models"] = digit_models
    if is_kept(DEPTHS):
        found["depth-ways"] = depths
    if is_kept(WIDTHS):
        found["xor-widths"] = widths
    if is_kept("transdimensional_boston"):
        found["boston-errors"] = predictive_errors
    if is_kept("transdimensional_digits"):
        found["digits-labels"] = label_scores
    if any(map(is_kept, PUBLISHED)):
        found |= {"acceptance": acceptance, "sizes": sizes}
    if is_kept(UCI):
        found["uci-widths"] = partial(sizes, UCI)
    return found


def figures(folder: Path) -> None:
    """Draw those charts whose studies have results."""
    if is_kept(DEPTHS):
        depth_figure(folder)
    histograms(folder)
    traces(folder)
