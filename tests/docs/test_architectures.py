"""Tables and figures of architectures, from results that nobody ran."""

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "make"))
import architectures  # noqa: E402
import digit_images  # noqa: E402

SIZE = {"widths": [1, 2], "probabilities": [0.4, 0.6], "mode": 2, "mean": 1.6}


def row(name: str, **scores: float) -> dict[str, Any]:
    scores = {"across": 0.123, "within": 0.8, "mode": 2, "mean": 1.6, **scores}
    published = {"across": 0.045, "within": 0.661, "mode": 2, "mean": 3.74, "rmse": 3.75}
    found = {"width": SIZE, "depth": SIZE, "max_rhat": 1.01, "min_ess": 600.0}
    about = {"name": name, "problem": name, "published": published, "total_seconds": 78.4}
    convergence = {"max_rhat_function": 1.03}
    drawn = {"chains": 2, "every": 5, "traces": [[1, 2, 1], [2, 2, 1]]}
    drawn |= {"single": [[0.5, 0.6, 0.7]] * 2, "log_density": [[-1.0, -2.0, -3.0]] * 2}
    return {**about, **drawn, "scores": scores, "architecture": found, "convergence": convergence}


LABELS = ("accuracy", "top_2", "top_3", "precision_20", "recall_20", "precision_40", "recall_40")
RESULTS = {
    "transdimensional_boston": {
        "architectures": [row("boston_2a", rmse=4.37, best_chain=4.3, modal_size=4.5)]
    },
    "transdimensional_digits": {
        "architectures": [row("digits_10a", **dict.fromkeys(LABELS, 0.955))]
    },
    "transdimensional_depth_ways": {
        "commits": ["abc", "def"],
        "ways": [
            {"name": "ladder", "way": "ladder", "log_ratio": [0.0, -1.29], "error": [0.0, 0.12],
             "rhat": 1.007, "seconds": 180.0},
            {"name": "jumps", "way": "jumps", "log_ratio": [0.0, -1.0, -2.0],
             "error": [0.0, 0.1, 0.2], "rhat": None, "seconds": 90.0},
        ]
    },
    "transdimensional_models": {
        "models": [
            {"name": "wide-b", "num_splits": 3, "means": {"rmse": 3.7, "nll": 2.6,
             "coverage_95": 0.94, "single_train_rmse": 2.0, "single_test_rmse": 4.0,
             "seconds": 60.0}, "errors": {"rmse": 0.1}, "size": None}
        ]
    },
    "transdimensional_digit_models": {
        "models": [
            {"name": "digits-5-b", "num_splits": 2, "means": {"accuracy": 0.975, "nll": 0.1,
             "ece": 0.02, "top_2": 0.99, "single_test_accuracy": 0.94, "seconds": 60.0},
             "errors": {"accuracy": 0.01}, "size": None}
        ]
    },
}  # fmt: skip


@pytest.fixture
def _results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(architectures, "kept", RESULTS.__getitem__)
    monkeypatch.setattr(architectures, "is_kept", RESULTS.__contains__)


@pytest.mark.usefixtures("_results")
def test_parts_are_tables_of_what_was_run() -> None:
    made = {name: maker() for name, maker in architectures.parts().items()}
    assert (
        "| boston_2a | 4.37 | 4.30 | 4.50 | 1.010 | 3.75 | – | – | 4.37 |" in made["boston-errors"]
    )
    assert "| digits_10a | 95.5 (–)" in made["digits-labels"]
    assert "| boston_2a | 12.3 | 80.0 | 4.5 | 66.1 |" in made["acceptance"]
    assert (
        "| boston_2a | 2 layers (2) | 0.600 ± 0.020 | 1.60 (3.74) | 12.3 (4.5) | 1.010 | 1.030 "
        "| 600 | RMSE 4.37 (3.75) | 78 |"
    ) in made["sizes"]
    assert "| ladder | −1.29 ± 0.12 | – | 1.007 | 180 |" in made["depth-ways"]
    assert "| 3 | 3.70 ± 0.10" in made["boston-models"]
    labels = "| digits-5-b | 2 | 0.9750 ± 0.0100 | 0.100 | 0.020 | 0.9900 | 0.9400 | fixed |"
    assert labels in made["digit-models"]


@pytest.mark.usefixtures("_results")
def test_figures_are_drawn(tmp_path: Path) -> None:
    architectures.figures(tmp_path)
    names = {each.name for each in tmp_path.iterdir()}
    of_problems = {
        f"{kind}-{name}.svg" for kind in ("sizes", "traces") for name in ("boston-2a", "digits-10a")
    }
    assert names == {"depth-ways.svg", *of_problems}


def test_nothing_is_made_of_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(architectures, "is_kept", lambda name: False)
    assert architectures.parts() == {}
    architectures.figures(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_mistaken_digits_are_counted_and_drawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mistake = {"truth": 8, "called": 1, "probabilities": [0.1] * 10, "pixels": [0, 16] * 32}
    row = {"counts": [[5, 0, *[1] * 8]] * 10, "mistakes": [mistake, mistake]}
    monkeypatch.setattr(digit_images, "kept_rows", lambda name: [row])
    assert "| **9** | 5 |  | 1 |" in digit_images.table()
    digit_images.figures(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["digit-mistakes.svg"]
