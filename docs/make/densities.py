"""The table and the figures of docs/results/interacting.md, from `results/densities`."""

from pathlib import Path
from typing import Any

from kept import kept
from parts import write_figure

from credence_papers.nonlinear.densities_page import chart


def figures(folder: Path) -> None:
    """Charts per gradient."""
    summary = kept("densities")
    for target in summary["targets"]:
        name = f"densities-{target['name']}"
        write_figure(folder, name, chart(summary, target, per="gradient", name=name))


def table() -> str:
    """Distances from the law itself, a row per density and sampler."""
    heads = "| density | sampler | gradients | 1000 MMD² | half way | 1000 IMQ |"
    return "\n".join([heads, f"|{'---|' * 6}", *map(line, kept("densities")["densities"])])


def line(row: dict[str, Any]) -> str:
    """One sampler on one density."""
    found = [f"{1000 * row[key] + 0.0:.2f}" for key in ("mmd2", "half", "imq")]
    found = [each.replace("-0.00", "0.00").replace("-", "−") for each in found]
    errors = [f"{1000 * row[key]:.2f}" for key in ("mmd2_error", "imq_error")]
    return (
        f"| {row['target']} | {row['sampler']} | {row['gradients']} | {found[0]} ± {errors[0]}"
        f" | {found[1]} | {found[2]} ± {errors[1]} |"
    )
