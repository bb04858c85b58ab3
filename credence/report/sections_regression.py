"""The sections of one numeric target, and the key numbers of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from credence.html.markup import Html, element
from credence.html.parts import (
    KeyNumber,
    figure,
    key,
    key_numbers,
    named_scores,
    pair,
    section,
    table,
)
from credence.html.wording import count, digits_to_tell, number, percent, times, with_unit
from credence.report import readings
from credence.report.chapters import Column, row_table, target_chapters
from credence.report.charts import regression as charts
from credence.report.data import RegressionTarget, finite_rows, is_inside
from credence.report.judging.evidence import skill_regression


def numbers_section(
    targets: Sequence[RegressionTarget], metrics: Mapping[str, object], is_converged: bool
) -> Html:
    """One target: large numbers. Several: one row each."""
    if len(targets) == 1:
        body = key_numbers(_key_numbers(finite_rows(targets[0]), metrics))
    else:
        head = ("Target", "Typical error", "Explained", "Inside 95 %", "Width of 95 % interval")
        rows = [(target.name, *_summary(finite_rows(target))) for target in targets]
        body = table(head, rows) + key_numbers(_scores(metrics, unit=""))
    return section("Key numbers", Html(body), is_converged=is_converged)


def target_sections(whole: RegressionTarget, prefix: str, is_converged: bool) -> list[Html]:
    """Predictions, calibration, uncertainty, rows least sure of; `prefix` keeps ids apart."""
    drawn = (_predictions, _calibration, _uncertainty)
    return target_chapters(whole, prefix, drawn, _least_sure, is_converged=is_converged)


def _key_numbers(target: RegressionTarget, metrics: Mapping[str, object]) -> list[KeyNumber]:
    if not len(target.y):
        return _scores(metrics, target.unit)
    error, explained, inside, width = _summary(target)
    n, covered = len(target.y), int(is_inside(target).sum())
    return [
        KeyNumber(error, "Typical error", "root mean squared error of the prediction"),
        KeyNumber(explained, "Variation explained", "R² on the test rows; 0 is guessing the mean"),
        KeyNumber(inside, "Inside 95 % interval", f"{number(covered)} of {count(n, 'test row')}"),
        KeyNumber(width, "Width of 95 % interval", "on a typical row"),
        *_conformal(metrics),
        *_scores(metrics, target.unit),
    ]


def _conformal(metrics: Mapping[str, object]) -> list[KeyNumber]:
    """Tell how often conformal intervals hold, made to hold on rows that were left out."""
    share = metrics.get("coverage_95_conformal")
    if not isinstance(share, float):
        return []
    told = "widened or narrowed as training rows ask that the networks had left out"
    return [KeyNumber(percent(share, 1), "Inside conformal interval", told)]


def _summary(target: RegressionTarget) -> tuple[str, str, str, str]:
    """Error, share explained, coverage and width as text."""
    if not len(target.y):
        return ("–", "–", "–", "–")
    rmse = float(np.sqrt(np.mean((target.y - target.mean) ** 2)))
    width = float(np.median(target.upper_95 - target.lower_95))
    return (
        with_unit(rmse, target.unit),
        percent(skill_regression(target)),
        percent(float(is_inside(target).mean()), 1),
        with_unit(width, target.unit),
    )


def _scores(metrics: Mapping[str, object], unit: str) -> list[KeyNumber]:
    named = {
        "crps": ("CRPS", "distance of prediction and truth, spread counted; lower is better", unit),
        "nll": ("NLL", "surprise at the truth, nats per row; lower is better", ""),
    }
    return named_scores(metrics, named)


def _predictions(target: RegressionTarget, prefix: str) -> Html:
    n = len(target.y)
    shown = min(n, charts.MAX_POINTS)
    first, second = readings.read_predictions(target), readings.read_intervals(target)
    bars = min(n, charts.MAX_INTERVALS)
    return pair(
        figure(
            "Every prediction",
            first,
            charts.predictions_chart(target, f"{prefix}-predictions", first),
            key(accent="inside its 95 % interval", alarm="outside"),
            f"{number(shown)} of {count(n, 'row')} drawn. " * (shown < n)
            + "On the dashed line, prediction and truth agree.",
        ),
        figure(
            "Intervals, row by row",
            second,
            charts.intervals_chart(target, f"{prefix}-intervals", second),
            key(muted="truth inside", alarm="truth outside"),
            f"{number(bars)} of {count(n, 'row')} drawn. " * (bars < n)
            + "Thick bar: 50 % interval. Thin bar: 95 %.",
        ),
    )


def _calibration(target: RegressionTarget, prefix: str) -> Html:
    first, second = readings.read_coverage(target), readings.read_pit(target)
    chance = "at least 99 of 100 well calibrated models stay inside"
    return pair(
        figure(
            "Do intervals hold what they claim?",
            first,
            charts.coverage_chart(target, f"{prefix}-coverage", first),
            key(accent="this model", band=chance),
            "Above the dashed line intervals are too wide, below it too narrow.",
        ),
        figure(
            "Is the shape of the prediction right?",
            second,
            charts.pit_chart(target, f"{prefix}-pit", second),
            key(band=chance, alarm="outside"),
            "Probability integral transform (PIT): 0 % is the low end of what was predicted, "
            "100 % the high end.",
        ),
    )


def _uncertainty(target: RegressionTarget, prefix: str) -> Html:
    first, second = readings.read_split(target), readings.read_errors(target)
    return pair(
        figure(
            "Noise, or not yet learnt?",
            first,
            charts.split_chart(target, f"{prefix}-split", first),
            note="0 %: all of it is noise in the data (aleatoric). "
            "100 %: all of it is disagreement between networks (epistemic).",
        ),
        figure(
            "Does it know when it is wrong?",
            second,
            charts.error_chart(target, f"{prefix}-error", second),
            key(accent="error found", second="error it expected"),
            "Test rows in five equal groups by predicted spread; root mean squares.",
        ),
    )


def _least_sure(target: RegressionTarget) -> Html:
    rows = target.least_sure
    assert rows is not None
    index = np.array(rows.index)
    width = target.upper_95 - target.lower_95
    finite = width[np.isfinite(width)]
    lead = "Look here first, for faulty entries and for cases unlike the rest."
    if np.isfinite(width[index]).all() and np.median(finite) > 0:
        ratio = times(float(np.median(width[index])), float(np.median(finite)))
        lead = f"On these rows a 95 % interval is {ratio} as wide as on a typical one. {lead}"
    unit = f" ({target.unit})" if target.unit else ""
    places = np.stack([target.mean, target.lower_95, target.upper_95, target.y])[:, index]
    digits = digits_to_tell(float(width[index].min()), float(np.abs(places).max()))
    mean, lower, upper, y = [[number(value, digits) for value in row] for row in places.tolist()]
    inside = is_inside(target)[index]
    truth = [
        element("td", value, class_="result" if ok else "missed")
        for value, ok in zip(y, inside, strict=True)
    ]
    added = (
        Column(f"Prediction{unit}", mean),
        Column("95 % interval", [f"{a} to {b}" for a, b in zip(lower, upper, strict=True)]),
        Column("Truth", truth),
    )
    note = element("p", "A truth in red lies outside its interval.", class_="small")
    body = [element("p", lead), row_table(rows, added), *([] if inside.all() else [note])]
    return Html("".join(body))
