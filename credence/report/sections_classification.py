"""The sections of one label, and its key numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Int

from credence.html.markup import Html, element, join, shorten
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
from credence.html.wording import count, number, percent
from credence.report import readings
from credence.report.chapters import Column, row_table, target_chapters
from credence.report.charts import classification as charts
from credence.report.data import ClassificationTarget, finite_rows

MAX_LABELS = 10  # in the confusion matrix; above, the commonest mistakes are listed
MAX_MISTAKES = 12

SCORES = {
    "auroc": ("AUROC", "how well it ranks the labels; 0.5 is guessing, 1 is perfect", ""),
    "ece": ("Calibration error", "mean gap of stated and observed frequency (ECE)", ""),
    "nll": ("NLL", "surprise at the truth, nats per row; lower is better", "nats"),
    "nll_tempered": ("NLL, tempered", "of probabilities made to hold on left-out rows", "nats"),
    "ece_tempered": ("Calibration error, tempered", "of the same probabilities", ""),
    "brier": ("Brier score", "squared error of the probabilities; lower is better", ""),
}


def numbers_section(
    targets: Sequence[ClassificationTarget], metrics: Mapping[str, object], is_converged: bool
) -> Html:
    """Accuracy beside guessing, and the scores of metrics.json."""
    numbers = [_accuracy(finite_rows(target), len(targets) > 1) for target in targets]
    numbers += named_scores(metrics, SCORES)
    return section("Key numbers", key_numbers(numbers), is_converged=is_converged)


def target_sections(whole: ClassificationTarget, prefix: str, is_converged: bool) -> list[Html]:
    """Predictions, calibration, uncertainty, rows least sure of; `prefix` keeps ids apart."""
    drawn = (_predictions, _calibration, _uncertainty)
    return target_chapters(whole, prefix, drawn, _least_sure, is_converged=is_converged)


def _accuracy(target: ClassificationTarget, is_one_of_many: bool) -> KeyNumber:
    name = f"Accuracy, {target.name}" if is_one_of_many else "Accuracy"
    if not len(target.y):
        return KeyNumber("–", name, "no test rows")
    share = float(target.is_correct.mean())
    return KeyNumber(percent(share, 1), name, readings.read_skill(target))


def _predictions(target: ClassificationTarget, prefix: str) -> Html:
    first, second = readings.read_confusion(target), readings.read_confidence(target)
    few = len(target.labels) <= MAX_LABELS
    counts = confusion_table(target) if few else mistakes_table(target)
    return pair(
        figure("What was mistaken for what", first, counts),
        figure(
            "How sure it was",
            second,
            charts.confidence_chart(target, f"{prefix}-confidence", second),
            key(accent="right", alarm="wrong"),
        ),
    )


def confusion_table(target: ClassificationTarget) -> Html:
    """Test rows per truth (down) and prediction (across), shaded by share of the truth."""
    size = len(target.labels)
    counts = np.zeros((size, size), dtype=int)
    np.add.at(counts, (target.y, target.predicted), 1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names = [shorten(label, 18) for label in target.labels]

    def cell(i: int, j: int) -> Html:
        colour = "accent" if i == j else "alarm"
        style = f"--colour: var(--{colour}); --share: {shares[i, j]:.2f}"
        return element("td", number(int(counts[i, j])), style=style)

    rows = [[names[i], *(cell(i, j) for j in range(size))] for i in range(size)]
    return table(["truth \\ predicted", *names], rows, class_="confusion")


def mistakes_table(target: ClassificationTarget) -> Html:
    """The commonest mistakes, for labels too many for a matrix."""
    mistakes = readings.commonest_mistakes(target)[:MAX_MISTAKES]
    rows = [
        (shorten(target.labels[truth], 30), shorten(target.labels[said], 30), number(times))
        for truth, said, times in mistakes
    ]
    return table(("Truth", "Predicted", "Rows"), rows)


def _calibration(target: ClassificationTarget, prefix: str) -> Html:
    reading = readings.read_reliability(target)
    return pair(
        figure(
            "Does a probability mean what it says?",
            reading,
            charts.reliability_chart(target, f"{prefix}-reliability", reading),
            key(accent="this model", band="at least 99 of 100 well calibrated models stay inside"),
            "Below the dashed line the model is too sure, above it too modest. "
            "The lower panel counts the rows behind each dot.",
        )
    )


def _uncertainty(target: ClassificationTarget, prefix: str) -> Html:
    first, second = readings.read_entropies(target), readings.read_selective(target)
    return pair(
        figure(
            "Noise, or not yet learnt?",
            first,
            charts.split_chart(target, f"{prefix}-split", first),
            key(accent="overlap in the data (aleatoric)", second="not yet learnt (epistemic)"),
        ),
        figure(
            "Does it know when it is wrong?",
            second,
            charts.selective_chart(target, f"{prefix}-selective", second),
            note="The dashed line is the accuracy on all rows.",
        ),
    )


def _least_sure(target: ClassificationTarget) -> Html:
    rows = target.least_sure
    assert rows is not None
    index = np.array(rows.index)
    right = int(target.is_correct[index].sum())
    lead = (
        f"Of these {count(len(index), 'row')}, {number(right)} are labelled right. "
        "Look here first, for faulty entries and for cases unlike the rest."
    )
    others = target.probabilities[index].copy()
    others[np.arange(len(index)), target.predicted[index]] = -1
    truth = [
        element("td", shorten(target.labels[label], 24), class_="result" if ok else "missed")
        for label, ok in zip(target.y[index], target.is_correct[index], strict=True)
    ]
    added = [
        Column("Prediction", _labels(target, index, target.predicted[index])),
        Column("Next", _labels(target, index, others.argmax(axis=1))),
        Column("Truth", truth),
    ]
    return join([element("p", lead), row_table(rows, added)])


def _labels(
    target: ClassificationTarget, rows: Int[np.ndarray, " row"], labels: Int[np.ndarray, " row"]
) -> list[str]:
    """Label and probability of each row."""
    return [
        f"{shorten(target.labels[label], 24)} {percent(float(target.probabilities[row, label]))}"
        for row, label in zip(rows, labels, strict=True)
    ]
