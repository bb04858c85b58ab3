"""Made-up cells: results as a cell writes them, without running anything."""

from typing import Any

import numpy as np

from credence.compare.sources import SimulatedSource
from credence.compare.specs import (
    CellSpec,
    Experiment,
    MethodSpec,
    ModelSpec,
    Outcome,
    Problem,
    Published,
    RowLimits,
)

SOURCE = SimulatedSource(task="regression", settings={"n_samples": 20, "n_features": 2})
NUM_TEST = 40


def experiment(*labels: str, baseline: str | None = None, **about: Any) -> Experiment:
    """Methods of those labels on one simulated problem."""
    return Experiment(
        name=about.pop("name", "sample"),
        description=about.pop("description", "A sample."),
        problems=(
            Problem(
                name=about.pop("problem", "line"),
                description="A line.",
                source=SOURCE,
                model=ModelSpec(hidden=()),
                published=(
                    Published(label=labels[0], values={"mse": 1.5, "ess_weights": [1, 2, 3]}),
                    Published(label="Emulator", values={"mse": 2.5, "speed_up": 9.0}),
                ),
            ),
        ),
        methods=tuple(MethodSpec(label=label, method="map") for label in labels),
        baseline=baseline or labels[0],
        **about,
    )


def cell(label: str, problem: str = "line") -> CellSpec:
    return CellSpec(
        problem=problem,
        source=SOURCE,
        model=ModelSpec(hidden=()),
        rows=RowLimits(),
        label=label,
        method="map",
        settings={},
    )


def done(
    label: str,
    *,
    converged: bool | None = True,
    ess: float = 200.0,
    seconds: float = 10.0,
    task: str = "regression",
    error: np.ndarray | None = None,
    problem: str = "line",
) -> Outcome:
    """A finished cell; converged=None is not a chain."""
    is_chain = converged is not None
    values = np.full(NUM_TEST, 1.0) if error is None else error
    scores = (
        {"mse": 1.0, "rmse": 1.0, "nll": 1.4, "crps": 0.5, "coverage_95": 0.93}
        | {"coverage_95_credible": 0.6 if is_chain else None}
        if task == "regression"
        else {"accuracy": 0.9, "nll": 0.3, "brier": 0.2, "auroc": 0.95, "ece": 0.04}
        | {"ece_equal_mass": 0.05, "ece_all_classes": 0.01}
    )
    judged = {
        "max_rhat_function": (1.01 if converged else 1.3) if is_chain else None,
        "min_ess_function": ess if is_chain else None,
        "median_ess_function": 2 * ess if is_chain else None,
        "min_ess_tail_function": ess if is_chain else None,
        "num_chains": 4 if is_chain else 0,
        "num_draws": 500 if is_chain else 0,
        "converged": converged,
        "reason": "As it is.",
    }
    triple = [ess, 2 * ess, 3 * ess] if is_chain else None
    return Outcome(
        cell(label, problem),
        {
            "status": "done",
            "problem": {
                "task": task,
                "n_train": 160,
                "n_test": NUM_TEST,
                "n_features": 2,
                "labels": [],
                "notes": ["Only a sample."],
            },
            "scores": scores,
            "convergence": judged,
            "ess_function": triple,
            "ess_weights": triple,
            "draws_per_effective_draw": triple,
            "weights_judged": 3 if is_chain else 0,
            "num_weights": 4,
            "cost": {
                "likelihood_evaluations": 100,
                "gradient_evaluations": 100,
                "flops": 1.0,
                "seconds": {"compile": 0.25 * seconds, "sample": 0.75 * seconds},
            },
            "evaluation_seconds": 0.1,
            "peak_memory_mib": 500.0,
            "memory_before_mib": 300.0,
            "is_chain": is_chain,
            "num_chains": 4 if is_chain else 1,
            "num_draws": 500 if is_chain else 1,
            "stopped": "finished",
            "divergences": 0,
            "settings": {},
            "versions": {"credence": "0.1.0"},
            "device": "cpu",
            "num_devices": 2,
            "rows": {"nll": values.tolist(), "error": values.tolist()},
        },
    )


def failed(label: str, error: str = "Unknown method 'nope'.", problem: str = "line") -> Outcome:
    return Outcome(cell(label, problem), {"status": "failed", "error": error, "traceback": ""})
