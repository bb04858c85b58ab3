"""The calibration error over all folds is that of all rows, and its level by chance is right."""

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import default_classes  # noqa: E402

from credence.ensembles.diagnostics import calibration  # noqa: E402


def labels_and_probabilities(num_rows: int, num_draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels that follow their probabilities; shapes (draw, row), (row, label)."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1.0, 1.0, 1.0], size=num_rows)
    uniform = rng.uniform(size=(num_draws, num_rows, 1))
    return (p.cumsum(axis=1) < uniform).sum(axis=2).clip(0, 2), p


def test_calibration_error_over_folds_is_that_of_all_rows() -> None:
    (y,), p = labels_and_probabilities(500, 1)
    folds = [default_classes.scores_of(p[rows], y[rows]) for rows in np.split(np.arange(500), 5)]
    found, _ = default_classes.ece_of(folds)
    np.testing.assert_allclose(found, calibration.ece(p, y), atol=1e-12)


def test_calibration_error_by_chance_is_the_mean_where_probabilities_are_right() -> None:
    draws, p = labels_and_probabilities(2000, 400)
    found = [default_classes.ece_of([default_classes.scores_of(p, y)]) for y in draws]
    error = np.std([ece for ece, _ in found]) / len(found) ** 0.5
    mean, by_chance = np.mean(found, axis=0)
    assert abs(mean - by_chance) < 4 * error + 0.02 * by_chance
    over_confident = p**1.5 / (p**1.5).sum(axis=1, keepdims=True)
    planted, expected = default_classes.ece_of(
        [default_classes.scores_of(over_confident, draws[0])]
    )
    assert planted > 3 * expected
