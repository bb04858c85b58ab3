"""The figures and table of docs/explanation/interacting.md, from a finished experiment.

credence experiment run densities --out out
python docs/make/densities.py out
"""

import argparse
import json
from pathlib import Path
from typing import Any

from multilevel import write

from credence_papers.nonlinear.densities_page import chart


def main() -> None:
    """Charts per gradient, and the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    figures(json.loads((folder / "results.json").read_text(encoding="utf-8")))


def figures(summary: dict[str, Any]) -> None:
    """Charts per gradient, and the table."""
    for target in summary["targets"]:
        name = f"densities-{target['name']}"
        drawn = chart(summary, target, per="gradient", name=name)
        write(Path("docs/figures"), name, drawn)
    for row in summary["densities"]:
        found = [f"{1000 * row[key] + 0.0:.2f}" for key in ("mmd2", "half", "imq")]
        found = [each.replace("-0.00", "0.00").replace("-", "−") for each in found]
        errors = [f"{1000 * row[key]:.2f}" for key in ("mmd2_error", "imq_error")]
        print(
            f"| {row['target']} | {row['sampler']} | {row['gradients']} | {found[0]} ± {errors[0]}"
            f" | {found[1]} | {found[2]} ± {errors[1]} |"
        )


if __name__ == "__main__":
    main()
