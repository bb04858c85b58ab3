"""The section on inputs: how much each is needed, and what the most important ones do."""

from __future__ import annotations

import numpy as np

from credence.ensembles.inputs import Effect, Importances
from credence.html.markup import Html, element
from credence.html.parts import figure, key, key_of_curves, pair, section
from credence.html.wording import count, digits_to_tell, number, percent, with_unit
from credence.report.charts import inputs as charts
from credence.report.data import ClassificationTarget, RegressionTarget, ReportData

CAVEAT = (
    "This shows what the model uses, and not what causes what. Inputs that say the same stand in "
    "for each other, so that each of them may seem to matter little."
)


def inputs_section(report: ReportData, is_converged: bool) -> list[Html]:
    """Show which inputs matter, and how; nothing of runs that did not find out."""
    found = report.importances
    if found is None or not np.isfinite(found.nats).all():
        return []
    reading = read_importances(found)
    shown = min(len(found.names), charts.MAX_INPUTS)
    note = f"{shown} of {count(len(found.names), 'input')} drawn. " * (shown < len(found.names))
    first = figure(
        "Which inputs does it need?",
        reading,
        charts.importance_chart(found, "importance", reading),
        key(accent="loss added by shuffling the input", muted="two standard errors"),
        note,
    )
    figures = [first, *(_effect(report, each, i) for i, each in enumerate(report.effects))]
    pairs = [pair(*figures[i : i + 2]) for i in range(0, len(figures), 2)]
    caveat = element("p", CAVEAT, class_="small")
    return [section("What the inputs do", *pairs, caveat, is_converged=is_converged)]


def read_importances(found: Importances) -> str:
    """Say which inputs are needed, and how many are not."""
    first = found.order[0]
    needless = int(np.sum(found.nats < 2 * found.error))
    if needless == len(found.names):
        return "Without any single input, rows are predicted about as well."
    lead = (
        f"Without {found.names[first]} a row is predicted worse by "
        f"{number(float(found.nats[first]), 2)} nats, more than without any other input."
    )
    if not needless:
        return lead
    return f"{lead} {count(needless, 'input')} of {len(found.names)} can be missed, one at a time."


def _effect(report: ReportData, found: Effect, index: int) -> Html:
    target = report.targets[0]
    outputs = outputs_of(target, found)
    axis = f"Predicted {target.name}"
    legend = key(accent="mean of the networks", band="nine of ten networks")
    if isinstance(target, ClassificationTarget):
        names = [target.labels[output] for output in outputs]
        axis = f"Probability of {names[0]}" if len(names) == 1 else "Probability"
        if len(names) > 1:
            legend = key_of_curves(names)
    reading = read_effect(target, found, outputs[0])
    chart = charts.effect_chart(found, outputs, axis, f"effect{index + 1}", reading)
    return figure(f"Effect of {found.name}", reading, chart, legend)


def outputs_of(target: RegressionTarget | ClassificationTarget, found: Effect) -> list[int]:
    """What is drawn: the one target, the second of two labels, or the labels that change most."""
    if isinstance(target, RegressionTarget):
        return [0]
    if len(target.labels) == 2:
        return [1]
    most = np.argsort(-np.ptp(found.mean, axis=0), kind="stable")[: charts.MAX_LABELS]
    return most.tolist()


def read_effect(target: RegressionTarget | ClassificationTarget, found: Effect, output: int) -> str:
    """Say between what the mean prediction moves, and where."""
    mean = found.mean[:, output]
    low, high = int(np.argmin(mean)), int(np.argmax(mean))

    def at(place: int) -> str:
        value = found.values[place]
        return value if isinstance(value, str) else number(value)

    if isinstance(target, RegressionTarget):
        digits = digits_to_tell(float(np.ptp(mean)), float(np.abs(mean).max()))
        told = [with_unit(float(mean[place]), target.unit, digits) for place in (low, high)]
        what = "The mean prediction"
    else:
        told = [percent(float(mean[place])) for place in (low, high)]
        what = f"The mean probability of {target.labels[output]}"
    return f"{what} goes from {told[0]} (at {at(low)}) to {told[1]} (at {at(high)})."
