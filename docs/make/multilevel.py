"""Figures and tables of docs/explanation/multilevel.md, from `results/prior_rates` and the like."""

import re
from importlib import resources
from pathlib import Path

from kept import kept

from credence.html.wording import number
from credence_papers.multilevel.error_cost.charts import cost_chart
from credence_papers.multilevel.error_cost.page import interval
from credence_papers.multilevel.prior_rates_page import panel_chart, panels
from credence_papers.multilevel.steps import cells

MEASURES = ("flops", "seconds", "nominal")


def rate_figures(folder: Path) -> None:
    """Second moments of the increments against width, a chart for each prior and network."""
    for title, rows in panels(kept("prior_rates")).items():
        write(folder, f"rates-{title}", panel_chart(rows, "rates"))


def rates() -> str:
    """Slopes under the prior: a row for each prior, a column for each network."""
    found: dict[tuple[str, float], dict[str, float]] = {}
    for title, rows in panels(kept("prior_rates")).items():
        network = title.partition(": ")[2]
        for row in rows:
            found.setdefault((row["name"], row["theory"]), {})[network] = row["slope"]
    networks = list(dict.fromkeys(name for slopes in found.values() for name in slopes))
    lines = [f"| prior | theory | {' | '.join(networks)} |", f"|{'---|' * (len(networks) + 2)}"]
    for (prior, theory), slopes in found.items():
        cells = [f"{slopes[name]:.2f}" if name in slopes else "-" for name in networks]
        lines.append(f"| {prior} | {theory:.1f} | {' | '.join(cells)} |")
    return "\n".join(lines).replace("-0.00", "0.00")


def steps() -> str:
    """Nats of every step, a row for each problem and alpha."""
    heads, rows = cells(kept("multilevel_steps"))
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def cost_figures(folder: Path, name: str) -> None:
    """Cost against mean square error, a chart for each problem and measure of cost."""
    for problem in kept(name)["problems"]:
        for measure in MEASURES:
            chart = cost_chart(problem, measure, "cost", "Cost against mean square error.")
            write(folder, f"{problem['name']}-{measure}", chart)


def costs(*names: str) -> str:
    """Ratios of costs and slopes, a row for each problem of these studies."""
    heads = (
        "| problem | lowest common MSE | ratio: work | seconds | nominal | work, widest only | "
        "seconds, widest only | work, width of the bound | slope, one level | several | theory |"
    )
    lines = [heads, f"|{'---|' * 11}"]
    for problem in (each for name in names for each in kept(name)["problems"]):
        fits, theory = problem["fits"], problem["theory"]
        slopes = fits["flops"]["slopes"]
        cells = [
            problem["name"],
            number(fits["flops"]["lowest_common"], 2),
            *(interval(fits[measure]["ratio"]) for measure in MEASURES),
            interval(fits["flops"]["ratio_widest"]),
            interval(fits["seconds"]["ratio_widest"]),
            interval(fits["flops"]["ratio_bound"]),
            *(interval(slopes[method]) for method in ("smc", "mlsmc")),
            f"{theory['smc']:.2f}, {theory['mlsmc']:.2f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


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
