"""The last sections: did the sampler settle, what was run, how to repeat it."""

from __future__ import annotations

import numpy as np

from credence.html.markup import Html, element, join
from credence.html.parts import figure, key, pair, section, settings
from credence.html.wording import count, duration, number, steps
from credence.report import readings
from credence.report.charts import convergence as charts
from credence.report.data import Convergence, ReportData

MAX_TEXT = 400  # characters of one setting


def convergence_section(convergence: Convergence) -> Html:
    """Traces, R-hat and effective sample sizes of predictions, as far as they exist."""
    numbers = []
    if convergence.rhat is not None and not np.isnan(convergence.rhat).all():
        numbers.append(_rhat(convergence))
    if convergence.ess_bulk is not None and np.isfinite(convergence.ess_bulk).any():
        numbers.append(_ess(convergence))
    return section(
        "Convergence",
        element("p", convergence.reason),
        *([pair(*numbers)] if numbers else []),
        *([_traces(convergence)] if convergence.traces is not None else []),
        is_converged=convergence.converged is not False,
    )


def run_section(data: ReportData) -> Html:
    """Method and why, settings, time, data, versions, notes, command."""
    run = data.run
    facts = [
        ("Method", f"{data.method}: {data.method_reason}"),
        ("Training rows", number(data.n_train)),
        ("Test rows", number(data.n_test)),
        ("Seed", "–" if run.seed is None else str(run.seed)),
        ("Time", _times(data)),
        *_work(data),
        *(fact for finding in data.findings for fact in finding.facts()),
        ("Data fingerprint", run.data_fingerprint or "–"),
        ("Made", run.created or "–"),
    ]
    notes = [
        element("h3", "Notes"),
        element("ul", *(element("li", note) for note in run.notes), class_="notes"),
    ]
    chosen = [(name, str(value)[:MAX_TEXT]) for name, value in run.settings.items()]
    return section(
        "What was run, and how to repeat it",
        element("pre", element("code", run.command)),
        settings(facts),
        *(notes if run.notes else []),
        *_titled("Settings", chosen),
        *_titled("Versions", [(name, str(value)) for name, value in run.versions.items()]),
        is_converged=data.convergence.converged is not False,
    )


def _traces(convergence: Convergence) -> Html:
    assert convergence.traces is not None
    reading = readings.read_traces(convergence)
    chains, draws, points = convergence.traces.shape
    shown = {
        "chain": (chains, charts.MAX_CHAINS),
        "draw": (draws, charts.MAX_DRAWS),
        "row": (points, charts.MAX_TRACES),
    }
    cut = [f"{cap} of {count(n, noun)}" for noun, (n, cap) in shown.items() if n > cap]
    return figure(
        "Predictions, draw by draw",
        reading,
        charts.trace_charts(convergence, "traces", reading),
        note="One colour per chain. " + (f"Drawn: {', '.join(cut)}." if cut else ""),
    )


def _rhat(convergence: Convergence) -> Html:
    reading = readings.read_rhat(convergence)
    chart = charts.rhat_chart(convergence, "rhat", reading)
    return figure("Do independent runs agree?", reading, chart)


def _ess(convergence: Convergence) -> Html:
    reading = readings.read_ess(convergence)
    chart = charts.ess_chart(convergence, "ess", reading)
    legend = key(accent="bulk", **({"second": "tail"} if convergence.ess_tail is not None else {}))
    return figure("Are there enough draws?", reading, chart, legend)


def _times(data: ReportData) -> str:
    if not data.run.seconds:
        return "–"
    total, parts = steps(data.run.seconds, shortest=0.05)
    listed = ", ".join(f"{name} {duration(value)}" for name, value in parts.items())
    return f"{duration(total)} ({listed})"


def _work(data: ReportData) -> list[tuple[str, str]]:
    names = {
        "likelihood_evaluations": "Likelihood evaluations",
        "gradient_evaluations": "Gradient evaluations",
    }
    return [(title, number(data.metrics[k])) for k, title in names.items() if k in data.metrics]


def _titled(title: str, items: list[tuple[str, str]]) -> list[Html]:
    return [join([element("h3", title), settings(items)])] if items else []
