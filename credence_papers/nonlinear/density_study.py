"""Linear against nonlinear MCMC on three densities in the plane: experiment C1.

Vuckovic, "Nonlinear MCMC for Bayesian Machine Learning" (2022), section 4.1 and Figure 1: MALA, and
MALA with Boltzmann-Gibbs or accept-reject jumps to partners that move by MALA on a wide Gaussian.
Beside them the unadjusted Langevin algorithm, and jumps to partners drawn afresh. Fresh
partners need values alone, but a kernel takes value and gradient together and is charged both.
Squared maximum mean discrepancy from the exact law, per iteration and per gradient.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.table import Table

from credence.compare.seeds import mean_and_error
from credence_papers.cache import Cache
from credence_papers.nonlinear.densities import (
    SAMPLERS,
    TARGETS,
    Effort,
    Sampler,
    Target,
    measured,
    noise,
)
from credence_papers.nonlinear.densities_page import render
from credence_papers.study import Row, Study


@dataclass(frozen=True, kw_only=True)
class DensityStudy(Study[Target, Effort]):
    """Samplers on densities."""

    samplers: tuple[Sampler, ...]

    def run_one(
        self, problem: Target, effort: Effort, seed: int, cache: Cache
    ) -> dict[str, dict[str, Any]]:
        """One run of every sampler."""
        return {
            sampler.label: cache.kept(
                f"{problem.name}, {sampler.label}, seed {seed}",
                [problem, sampler, effort, seed],
                partial(measured, problem, sampler, effort, seed),
            )
            for sampler in self.samplers
        }

    def rows(self, problem: Target, effort: Effort, results: Mapping[int, Any]) -> list[Row]:
        """A row per sampler: means over the seeds."""
        runs = list(results.values())
        return [
            {
                "target": problem.name,
                "sampler": sampler.label,
                "iterations": (effort.every * np.arange(1, effort.num_draws + 1)).tolist(),
                "gradients": sampler.gradients,
                **over_seeds([run[sampler.label] for run in runs]),
            }
            for sampler in self.samplers
        ]

    def sentence(self, row: Row) -> str:
        """How far a sampler is off at the end."""
        return f"{row['target']}, {row['sampler']}: MMD² {row['mmd2']:.5f}"

    def summary(self, effort: Effort, rows: list[Row]) -> dict[str, Any]:
        """The rows, and what is known of their densities."""
        wanted = {row["target"] for row in rows}
        return {
            "particles": effort.particles,
            "iterations": effort.iterations,
            "targets": [
                {
                    "name": target.name,
                    "description": target.description,
                    "published": target.published,
                    "noise": noise(target.density, effort.particles),
                }
                for target in self.problems
                if target.name in wanted
            ],
            "densities": rows,
        }

    def render(self, summary: dict[str, Any]) -> str:
        """The page as text."""
        return render(summary)

    def table(self, summary: dict[str, Any]) -> Table:
        """The discrepancy at the end."""
        table = Table("density", "sampler", "MMD² × 1000", "gradients")
        for row in summary["densities"]:
            found = f"{1000 * row['mmd2']:.2f}"
            if row["mmd2_error"] is not None:
                found += f" ± {1000 * row['mmd2_error']:.2f}"
            table.add_row(row["target"], row["sampler"], found, str(row["gradients"]))
        return table


def over_seeds(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the seeds, standard deviations, and what the last tenth of the way says.

    One seed has no spread: its deviations are 0 and its standard errors None.
    """
    paths = np.array([each["mmd2"] for each in runs])
    ends = paths[:, -max(1, paths.shape[1] // 10) :].mean(axis=1)
    mmd2, mmd2_error = mean_and_error(ends.tolist())
    imq, imq_error = mean_and_error([each["imq"] for each in runs])
    return {
        "mean": paths.mean(axis=0).tolist(),
        "std": paths.std(axis=0, ddof=min(1, len(paths) - 1)).tolist(),
        "mmd2": mmd2,
        "mmd2_error": mmd2_error,
        "half": float(paths[:, paths.shape[1] // 2 - 1].mean()),
        "imq": imq,
        "imq_error": imq_error,
        "seconds": float(np.mean([each["seconds"] for each in runs])),
    }


DENSITIES = DensityStudy(
    name="densities",
    description="Linear against nonlinear MCMC on three densities in the plane",
    problems=TARGETS,
    samplers=SAMPLERS,
    efforts={
        "smoke": Effort(64, 100, 10),
        "laptop": Effort(1000, 10_000, 50),
        "paper": Effort(2000, 10_000, 10),
    },
    num_seeds={"smoke": 2, "laptop": 5, "paper": 5},
    source='Vuckovic, "Nonlinear MCMC for Bayesian Machine Learning" (2022), Figure 1',
)
