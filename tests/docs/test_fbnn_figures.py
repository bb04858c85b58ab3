"""The FBNN paper's figures 1 to 4: what they count, and what they set side by side."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "docs" / "make"), str(ROOT / "benchmarks")]
import fbnn_dots  # noqa: E402
import gaussians  # noqa: E402

NUM_DRAWS = 20_000


def test_exact_draws_look_as_wide_as_nearest_modes_make_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gaussians, "NUM_DRAWS", NUM_DRAWS)
    monkeypatch.setattr(gaussians, "NUM_SHOWN", 10)
    monkeypatch.setattr(gaussians, "commit", lambda **_: "abc")
    row = gaussians.measured("exact")
    expected, error = folded_variance()
    assert abs(row["spread"] ** 2 - expected) < 4.5 * error
    assert abs(0.4**2 - expected) > 4.5 * error  # what it would be if draws knew their modes
    visits = np.array(row["visits"])
    assert visits.sum() == NUM_DRAWS
    assert stats.chisquare(visits).pvalue > 1e-5
    assert len(row["points"]) == 10


def folded_variance() -> tuple[float, float]:
    """Mean square of a coordinate less its nearest mode's, and the standard error of its mean."""

    def moment(power: int) -> float:
        def at(z: float, *, is_end: bool) -> float:
            """Modes are 2 apart; beyond the outermost ones there is no neighbour."""
            away = min(abs(z), 2 - abs(z)) if not is_end or z > 0 else abs(z)
            return away**power * float(stats.norm.pdf(z, scale=0.4))

        inner, end = (
            integrate.quad(lambda z, is_end=is_end: at(z, is_end=is_end), -2, 2, points=(-1, 1))[0]
            for is_end in (False, True)
        )
        return (3 * inner + 2 * end) / 5

    mean = moment(2)
    return mean, float(np.sqrt((moment(4) - mean**2) / (2 * NUM_DRAWS)))


def test_a_table_names_the_least_and_the_most_seen_mode() -> None:
    row = {"sampler": "pcn", "visits": [5, 0, 7, 3], "num_jumps": 1234, "spread": 0.4}
    assert gaussians.cells(row) == ("pCN, step .3", "3", "0 ; 7", "1,234", "0.400")


ROWS: list[dict[str, Any]] = [
    {"label": "DNN", "published": {}, "mse": None, "speed_up": None},
    {"label": "NUTS", "published": {}, "mse": 2.0, "speed_up": None},
    {"label": "BNN-SGHMC", "published": {"mse": 3.0, "speed_up": 1.0}, "mse": 4.0, "speed_up": 9.0},
]


def test_a_method_without_a_number_has_no_line() -> None:
    assert fbnn_dots.numbers(ROWS, "mse") == {"NUTS": (None, 2.0), "BNN-SGHMC": (3.0, 4.0)}


def test_speed_ups_are_those_of_the_longer_runs_where_there_are_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    longer = {"problems": [{"name": "adult", "rows": [{"label": "NUTS", "speed_up": 1.6}]}]}
    monkeypatch.setattr(fbnn_dots, "kept", {"fbnn_converged": longer}.__getitem__)
    adult, wine = fbnn_dots.with_converged(
        [{"name": "adult", "rows": ROWS}, {"name": "wine", "rows": ROWS}]
    )
    assert fbnn_dots.numbers(adult["rows"], "speed_up") == {
        "NUTS": (None, 1.6),
        "BNN-SGHMC": (1.0, None),
    }
    assert fbnn_dots.numbers(wine["rows"], "speed_up") == {"BNN-SGHMC": (1.0, 9.0)}
