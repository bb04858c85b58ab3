"""Studies of error against cost, prior rates, densities and architectures, on a terminal."""

from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from credence_papers.multilevel import prior_rates
from credence_papers.multilevel.error_cost import study as error_cost
from credence_papers.multilevel.error_cost.page import interval, sentence
from credence_papers.multilevel.error_cost.settings_tried import Study
from credence_papers.multilevel.prior_rates import RateStudy
from credence_papers.nonlinear import densities
from credence_papers.nonlinear.densities import DensityStudy
from credence_papers.transdimensional import study as architectures
from credence_papers.transdimensional.study import ArchitectureStudy

AnyStudy = Study | RateStudy | DensityStudy | ArchitectureStudy


def run(study: AnyStudy, out: Any, **settings: Any) -> dict[str, Any]:
    """Run any kind; see the `run` of `error_cost`, `prior_rates`, `densities`, `architectures`."""
    if isinstance(study, ArchitectureStudy):
        return architectures.run(study, out, **settings)
    if isinstance(study, DensityStudy):
        return densities.run(study, out, **settings)
    if isinstance(study, RateStudy):
        return prior_rates.run(study, out, **settings)
    return error_cost.run(study, out, **settings)


def listing(studies: dict[str, AnyStudy]) -> Table:
    """What there is to run."""
    table = Table("name", "problems", "description")
    for name, study in studies.items():
        table.add_row(name, ", ".join(_problems(study)), study.description)
    return table


def details(study: AnyStudy) -> Group:
    """Problems, sizes and source of one study."""
    table = Table("problem", "what it is")
    for name, text in _problems(study).items():
        table.add_row(name, text)
    sizes = study.draws if isinstance(study, RateStudy) else study.efforts
    lines = "\n".join(f"{size}: {effort}" for size, effort in sizes.items())
    return Group(Text(f"{study.description}\n{study.source}"), table, Text(lines))


def results(summary: dict[str, Any]) -> Group:
    """Slopes, and what the study says of every problem."""
    if "architectures" in summary:
        return _architectures(summary)
    if "densities" in summary:
        table = Table("density", "sampler", "MMD² × 1000", "gradients")
        for row in summary["densities"]:
            found = f"{1000 * row['mmd2']:.2f} ± {1000 * row['mmd2_error']:.2f}"
            table.add_row(row["target"], row["sampler"], found, str(row["gradients"]))
        return Group(table)
    if "curves" in summary:
        table = Table("prior and network", "slope", "theory")
        for row in summary["curves"]:
            slope = f"{row['slope']:.2f} ± {row['slope_error']:.2f}"
            table.add_row(f"{row['panel']}, {row['name']}", slope, f"{row['theory']:.2f}")
        return Group(table)
    table = Table("problem", "slope, one level", "slope, several", "theory")
    for problem in summary["problems"]:
        slopes = problem["fits"].get("flops", {}).get("slopes", {})
        found = [interval(slopes[method]) for method in slopes] or ["–", "–"]
        theory = "{smc:.2f}, {mlsmc:.2f}".format(**problem["theory"])
        table.add_row(problem["name"], *found, theory)
    lines = [f"{problem['name']}: {sentence(problem)}" for problem in summary["problems"]]
    return Group(table, Text("\n".join(lines)))


def _architectures(summary: dict[str, Any]) -> Group:
    """Ours and, in brackets, what is published."""
    table = Table("problem", "mode", "mean", "accepted", "score", "R-hat of size", "seconds")
    for row in summary["architectures"]:
        scores, published = row["scores"], row["published"]
        score = "accuracy" if "accuracy" in scores else "rmse"

        def beside(name: str, scores: Any = scores, published: Any = published) -> str:
            known = f" ({published[name]:.3g})" if name in published else ""
            return f"{scores[name]:.3g}{known}"

        rhat = row["architecture"]["max_rhat"]
        table.add_row(
            row["name"],
            *(beside(name) for name in ("mode", "mean", "across", score)),
            "–" if rhat is None else f"{rhat:.3f}",
            f"{row['total_seconds']:.0f}",
        )
    lines = [
        f"{row['name']}: {row['convergence']['reason']}"
        for row in summary["architectures"]
        if not row["convergence"]["converged"]
    ]
    return Group(table, Text("\n".join(["In brackets: published.", *lines])))


def _problems(study: AnyStudy) -> dict[str, str]:
    if isinstance(study, DensityStudy):
        return {target.name: target.description for target in study.targets}
    if isinstance(study, RateStudy):
        return {curve.panel: "second moments of increments" for curve in study.curves}
    return {problem.name: problem.description for problem in study.problems}
