"""Figures and tables of docs/explanation/multilevel.md, from folders of `credence experiment`.

    credence experiment run prior_rates --out rates
    credence experiment run multilevel_noise --out noise
    python docs/make/multilevel.py rates noise [--figures docs/figures]

Writes one SVG per chart, readable in light and in dark, and prints Markdown tables.
"""

import argparse
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

from credence.html.wording import number
from credence_papers.multilevel.error_cost.charts import cost_chart
from credence_papers.multilevel.error_cost.page import interval
from credence_papers.multilevel.prior_rates_page import panel_chart, panels

MEASURES = ("flops", "seconds", "nominal")


def main() -> None:
    """Every folder's figures and tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--figures", type=Path, default=Path("docs/figures"))
    options = parser.parse_args()
    options.figures.mkdir(parents=True, exist_ok=True)
    for folder in options.folders:
        summary = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        if "curves" in summary:
            rates(summary, options.figures)
        else:
            costs(summary, options.figures)


def rates(summary: dict[str, Any], figures: Path) -> None:
    """Charts and slopes under the prior."""
    print("\n| prior and network | slope, wider half | theory | widest |\n|---|---|---|---|")
    for title, rows in panels(summary).items():
        write(figures, f"rates-{title}", panel_chart(rows, "rates"))
        for row in rows:
            print(
                f"| {title}, {row['name']} | {row['slope']:.2f} | {row['theory']:.1f} | "
                f"{row['widths'][-1]} |"
            )


def costs(summary: dict[str, Any], figures: Path) -> None:
    """Charts, ratios of costs, slopes, and how variance and work multiply."""
    print(
        "\n| problem | lowest common MSE | ratio: work | seconds | nominal | work, widest only | "
        "slope, one level | several | theory |\n|---|---|---|---|---|---|---|---|---|"
    )
    for problem in summary["problems"]:
        fits, theory = problem["fits"], problem["theory"]
        slopes = fits["flops"]["slopes"]
        cells = [
            problem["name"],
            number(fits["flops"]["lowest_common"], 2),
            *(interval(fits[measure]["ratio"]) for measure in MEASURES),
            interval(fits["flops"]["ratio_widest"]),
            *(interval(slopes[method]) for method in ("smc", "mlsmc")),
            f"{theory['smc']:.2f}, {theory['mlsmc']:.2f}",
        ]
        print("| " + " | ".join(cells) + " |")
        for measure in MEASURES:
            chart = cost_chart(problem, measure, "cost", "Cost against mean square error.")
            write(figures, f"{problem['name']}-{measure}", chart)
    for problem in summary["problems"]:
        products(problem)


def products(problem: dict[str, Any]) -> None:
    """Variance times work of every setting, biases, and the steps between levels."""
    print(f"\n{problem['name']}: squared bias of width", end=" ")
    print(", ".join(f"{row['width']}: {row['bias_squared']:.1e}" for row in problem["biases"]))
    for each in problem["pilots"]:
        print(f"{each['family']}: nats {[round(value, 2) for value in each['nats']]}, ", end="")
        print(f"V_l {[f'{value:.1e}' for value in each['variances']]}, ", end="")
        print(f"C_l {[f'{value:.1e}' for value in each['costs']]}, product {each['product']:.2e}")
    for row in problem["points"]:
        print(
            f"{row['family']}, {row['particles']}: MSE {row['mse']:.2e} +- {row['mse_error']:.0e}, "
            f"variance x work {row['variance'] * row['flops']:.2e}"
        )


def write(figures: Path, name: str, chart: str) -> None:
    """The chart as a file of its own, with the page's colours for both themes."""
    name = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    light, dark = (colours(file) for file in ("style.css", "dark.css"))
    style = (
        f"<style>svg{{{light}font-family:sans-serif}}"
        f"@media(prefers-color-scheme:dark){{svg{{{dark}background:var(--paper)}}}}</style>"
    )
    box = re.search(r'viewBox="([\d.]+) ([\d.]+) ([\d.]+) ([\d.]+)"', chart)
    assert box is not None
    size = f'xmlns="http://www.w3.org/2000/svg" width="{float(box[3]):.0f}pt"'
    text = chart.replace("<svg ", f"<svg {size} ", 1).replace("<title", style + "<title", 1)
    (figures / f"{name}.svg").write_text(text, encoding="utf-8")


def colours(file: str) -> str:
    """Variables of a style sheet that are colours."""
    text = resources.files("credence.html").joinpath(file).read_text(encoding="utf-8")
    return "".join(f"--{name}:{value};" for name, value in re.findall(r"--([\w-]+): (#\w+)", text))


if __name__ == "__main__":
    main()
