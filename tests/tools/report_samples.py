"""Reports made of simulated data, calibrated unless a fault is asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats
from tools.labels import draw_labels

from credence.ensembles.inputs import Effect, Importances
from credence.report import (
    ClassificationTarget,
    Convergence,
    RegressionTarget,
    Reliability,
    ReportData,
    RowTable,
    RunRecord,
    least_sure_index,
)

COMMAND = "credence fit diabetes --target progression --method auto --seed 0 --out RUN"
RUN = RunRecord(
    command=COMMAND,
    seed=0,
    settings={"hidden": (50,), "activation": "tanh", "num_chains": 4, "num_draws": 1000},
    versions={"credence": "0.1.0", "jax": "0.6.2", "numpy": "2.4.6"},
    seconds={"compile": 3.2, "train": 1.4, "warmup": 6.1, "sample": 11.9},
    data_fingerprint="sha256:4f1d9c0be2a37",
    created="2025-01-01T12:00:00+00:00",
    notes=("2 rows without a target were left out.", "Column “sex” was read as categories."),
)
CONVERGED = (
    "The highest R-hat of a prediction is 1.004 (limit 1.01) and every prediction rests on at "
    "least 812 effective draws (400 wanted)."
)
NOT_CONVERGED = (
    "The highest R-hat of a prediction is 1.38 (limit 1.01): the chains still disagree. "
    "Draw longer, for example with four times as many warm-up steps."
)


def convergence(converged: bool = True, seed: int = 0, points: int = 110) -> Convergence:
    """Four autocorrelated chains; apart from one another if not converged."""
    rng = np.random.default_rng(seed)
    chains, draws = 4, 1000
    noise = rng.normal(size=(chains, draws, 3))
    rho = 0.4 if converged else 0.97
    traces = np.empty_like(noise)
    traces[:, 0] = noise[:, 0]
    for i in range(1, draws):
        traces[:, i] = rho * traces[:, i - 1] + np.sqrt(1 - rho**2) * noise[:, i]
    traces += 0 if converged else np.array([-1.2, 0.1, 0.4, 1.5])[:, None, None]
    bulk = rng.gamma(40, 45, points) if converged else rng.gamma(3, 12, points) + 5
    excess = rng.gamma(2, 0.0008 if converged else 0.06, points)
    return Convergence(
        converged=converged,
        reason=CONVERGED if converged else NOT_CONVERGED,
        max_rhat=float(1 + excess.max()),
        min_ess=float(0.8 * bulk.min()),
        rhat=1 + excess,
        ess_bulk=bulk,
        ess_tail=0.8 * bulk,
        traces=150 + 12 * traces,
        trace_names=("row 17", "row 43", "row 88"),
    )


def regression_target(
    n: int = 110, seed: int = 0, spread: float = 1.0, name: str = "progression", shift: float = 0.0
) -> RegressionTarget:
    """Truth ~ Normal(mean, sd); the model claims sd * spread and a mean shifted by shift * sd."""
    rng = np.random.default_rng(seed)
    mean = 150 + 55 * rng.normal(size=n)
    aleatoric = 32 + 9 * np.abs(rng.normal(size=n))
    epistemic = 6 + 11 * rng.gamma(2, 0.6, n)
    sd = np.hypot(aleatoric, epistemic)
    y = mean + sd * rng.normal(size=n)
    mean, sd = mean + shift * sd, spread * sd

    def quantile(q: float) -> np.ndarray:
        return mean + stats.norm.ppf(q) * sd

    target = RegressionTarget(
        name=name,
        y=y,
        mean=mean,
        std=sd,
        lower_50=quantile(0.25),
        upper_50=quantile(0.75),
        lower_95=quantile(0.025),
        upper_95=quantile(0.975),
        pit=stats.norm.cdf((y - mean) / sd),
        aleatoric_std=spread * aleatoric,
        epistemic_std=spread * epistemic,
        unit="points",
    )
    return replace(target, least_sure=row_table(least_sure_index(target.std), rng))


def grouped_target(num_groups: int, size: int, seed: int = 0, share: float = 0.8) -> Any:
    """A sound model of rows in groups, which share that part of the variance of their errors."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(num_groups), size)
    target = regression_target(len(groups), seed)
    of_group, of_row = rng.normal(size=num_groups)[groups], rng.normal(size=len(groups))
    z = np.sqrt(share) * of_group + np.sqrt(1 - share) * of_row
    return replace(target, y=target.mean + target.std * z, pit=stats.norm.cdf(z), groups=groups)


def classification_target(
    labels: tuple[str, ...] = ("setosa", "versicolor", "virginica"),
    n: int = 240,
    seed: int = 0,
    sharpen: float = 1.0,
) -> ClassificationTarget:
    """Truth drawn from softmax(logits); the model claims softmax(sharpen * logits)."""
    rng = np.random.default_rng(seed)
    logits = 2.2 * rng.normal(size=(n, len(labels)))
    y = draw_labels(rng, softmax(logits))
    probabilities = softmax(sharpen * logits)
    predicted = probabilities.argmax(axis=1)
    total = -np.sum(probabilities * np.log(probabilities), axis=1)
    share = rng.uniform(0.1, 0.4, n)
    target = ClassificationTarget(
        name="species",
        labels=labels,
        y=y,
        predicted=predicted,
        probabilities=probabilities,
        entropy_total=total,
        entropy_aleatoric=(1 - share) * total,
        entropy_epistemic=share * total,
        reliability=reliability(probabilities.max(axis=1), predicted == y),
    )
    return replace(target, least_sure=row_table(least_sure_index(total), rng))


def softmax(logits: np.ndarray) -> np.ndarray:
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def reliability(confidence: np.ndarray, is_correct: np.ndarray, bins: int = 10) -> Reliability:
    """A reliability curve with bins of equal mass."""
    parts = np.array_split(np.argsort(confidence), bins)
    return Reliability(
        np.array([confidence[part].mean() if len(part) else np.nan for part in parts]),
        np.array([is_correct[part].mean() if len(part) else np.nan for part in parts]),
        np.array([len(part) for part in parts]),
    )


def row_table(index: list[int], rng: np.random.Generator) -> RowTable:
    columns = ("age", "sex", "bmi", "blood pressure", "s1", "s2", "s3", "s4", "s5", "s6", "clinic")
    values = tuple(
        (
            int(rng.integers(20, 80)),
            "FM"[i % 2],
            round(float(rng.normal(27, 4)), 1),
            *rng.normal(90, 20, 7).round(1).tolist(),
            ("Lund", "Malmö", None)[i % 3],
        )
        for i in index
    )
    return RowTable(tuple(index), columns, values, tuple(f"row {1000 + i}" for i in index))


def importances(num_inputs: int = 14) -> Importances:
    nats = np.linspace(0.6, -0.01, num_inputs) ** 3
    names = ("blood pressure", "clinic", "bmi", *(f"s{i}" for i in range(num_inputs - 3)))
    return Importances(names, nats, np.full(num_inputs, 0.02))


def effects(num_outputs: int = 1) -> tuple[Effect, ...]:
    """Effects of a number and of names; with several outputs, on probabilities."""
    x = np.linspace(60, 140, 15)
    curves = np.stack([np.exp(-(((x - 70 - 25 * i) / 30) ** 2)) for i in range(num_outputs)], 1)
    curves = 100 + 80 * curves if num_outputs == 1 else curves / curves.sum(1, keepdims=True)
    width = np.full_like(curves, 12.0 if num_outputs == 1 else 0.06)
    names = ("Lund", "Malmö", "Kristianstad")
    few = slice(0, 15, 5)
    return (
        Effect("blood pressure", tuple(x.tolist()), curves, curves - width, curves + width),
        Effect("clinic", names, curves[few], (curves - width)[few], (curves + width)[few]),
    )


def regression(
    converged: bool = True, n: int = 110, spread: float = 1.0, seed: int = 0
) -> ReportData:
    return ReportData(
        title="Diabetes: disease progression after one year",
        task="regression",
        method="nuts",
        method_reason="442 rows and 551 weights: small enough for the exact reference sampler.",
        n_train=332,
        n_test=n,
        metrics={"rmse": 48.2, "nll": 5.31, "crps": 27.1, "coverage_95": 0.95,
                 "gradient_evaluations": 182_000_000},
        convergence=convergence(converged),
        targets=(regression_target(n, seed, spread),),
        importances=importances(),
        effects=effects(),
        run=RUN,
    )  # fmt: skip


def classification(
    labels: tuple[str, ...] = ("setosa", "versicolor", "virginica"), sharpen: float = 1.0
) -> ReportData:
    target = classification_target(labels, sharpen=sharpen)
    return ReportData(
        title="Iris: which species",
        task="classification",
        method="mclmc",
        method_reason="chosen by auto: fastest to converge at this size.",
        n_train=600,
        n_test=len(target.y),
        metrics={"accuracy": float(target.is_correct.mean()), "nll": 0.48, "ece": 0.031,
                 "brier": 0.27, "auroc": 0.93},
        convergence=convergence(),
        targets=(target,),
        importances=importances(5),
        effects=effects(len(labels)),
        run=RUN,
    )  # fmt: skip


def multi_target(count: int = 3) -> ReportData:
    names = ("heating load", "cooling load", "peak demand", "d", "e", "f", "g", "h")[:count]
    targets = tuple(
        regression_target(seed=i, name=name, spread=0.6 if i == 1 else 1.0)
        for i, name in enumerate(names)
    )
    return replace(
        regression(),
        title="Energy efficiency of buildings",
        targets=targets,
        importances=None,
        effects=(),
    )


def deep_ensemble() -> ReportData:
    """A method without chains."""
    reason = "A deep ensemble draws no chains, so nothing shows whether it found the posterior."
    return replace(
        regression(n=300, seed=1), method="deep_ensemble", convergence=Convergence(None, reason)
    )


SAMPLES = {
    "converged": regression,
    "not_converged": lambda: regression(converged=False, spread=0.5),
    "large": lambda: regression(n=20_000),
    "three_labels": classification,
    "two_labels": lambda: classification(("no", "yes"), sharpen=2.5),
    "many_labels": lambda: classification(tuple(f"species {i}" for i in range(24))),
    "multi_target": multi_target,
    "many_targets": lambda: multi_target(8),
    "deep_ensemble": deep_ensemble,
    "one_row": lambda: regression(n=1),
    "no_rows": lambda: regression(n=0),
}


NASTY = (
    "<script>alert(1)</script>",
    'a&b"c',
    "🌡️ temperature",
    "$\\alpha_2$ costs 5$",
    "</svg></title><img src=x onerror=alert(2)>",
    "@@target@@ \x00\ud800\x1b[31m",
    "r" * 300,
    "' onload='alert(3)",
    "مرحبا \u202e",
)


def nasty_report(text: str) -> ReportData:
    """The text in every place that takes any."""
    report = regression()
    rows = RowTable((0, 1), (text, "plain"), ((text, 1.5), (None, text)), (text, text))
    target = replace(report.targets[0], name=text, unit=text, least_sure=rows)
    return replace(
        report,
        title=text,
        method=text,
        method_reason=text,
        targets=(target,),
        importances=Importances((text, "plain"), np.array([0.1, 0.2]), np.array([0.05, 0.3])),
        effects=(
            *(replace(each, name=text) for each in effects()),
            replace(effects()[1], values=(text, "plain", text)),
        ),
        convergence=replace(report.convergence, reason=text, trace_names=(text,) * 3),
        run=replace(
            report.run,
            command=text,
            settings={text: text},
            versions={text: text},
            seconds={text: 1.0},
            data_fingerprint=text,
            created=text,
            notes=(text,),
        ),
    )
