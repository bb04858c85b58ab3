"""The tables and the figure of photographs as features, from `results/cifar10_features`."""

from pathlib import Path

from kept import is_kept, kept
from parts import markdown, write_figure

from credence_papers.nonlinear.feature_page import (
    against_cells,
    cells,
    chart,
    published_cells,
    worse_cells,
)

NAME = "cifar10_features"


def figures(folder: Path) -> None:
    """Accuracy while sampling."""
    if is_kept(NAME):
        name = "features-softmax"
        write_figure(folder, name, chart(kept(NAME), "softmax", name=name))


def tables() -> str:
    """What was run, a row per contender, and table 1 as published."""
    if not is_kept(NAME):
        return (
            "**It has been run at smoke size only** (300 images, 40 features, one seed), which "
            "shows that contenders run (one of 14 not tried) and nothing else."
        )
    summary = kept(NAME)
    seeds = "one seed" if summary["num_seeds"] == 1 else f"{summary['num_seeds']} seeds"
    about = (
        f"Size {summary['size']}: {summary['num_train']:,} images, {seeds}, "
        f"{summary['particles']} particles, {summary['num_draws']} draws of each; commit "
        f"{summary['commit']}; {summary['machine']}. ECE and MCE are in per cent, work in 10⁹ "
        "gradients of one row."
    )
    parts = [_filled(*cells(summary)), _filled(*against_cells(summary))]
    parts = [part for part in parts if len(part[0]) > 2]  # more than problem and contender
    return "\n\n".join(
        [about, *(markdown(*part) for part in parts), markdown(*published_cells(summary))]
    )


def strange() -> str:
    """A row per contender: scores of images that were made worse."""
    return markdown(*_filled(*worse_cells(kept(NAME))))


def _filled(heads: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The columns that hold something: not all runs have every number."""
    filled = [i for i in range(len(heads)) if any(row[i] != "-" for row in rows)]
    return [heads[i] for i in filled], [[row[i] for i in filled] for row in rows]
