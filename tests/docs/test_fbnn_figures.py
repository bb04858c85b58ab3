"""The FBNN paper's figures: what they count, what they set side by side, and of which runs."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from credence_papers.fbnn.tables import FBNN, FBNN_FIRST_VERSION

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "docs" / "make"), str(ROOT / "benchmarks")]
import fbnn_dots  # noqa: E402
import fbnn_figures  # noqa: E402
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


@pytest.mark.parametrize("size", ["smoke", "laptop"])
def test_figures_show_rows_of_the_tables(size: str) -> None:
    """A cell's name has a hash of its data, model, method and settings."""
    tables = (FBNN, FBNN_FIRST_VERSION)
    known = {cell.name for each in tables for cell in each.cells(size)}
    cells = fbnn_figures.shown(size, None)
    assert len(cells) == sum(map(len, fbnn_figures.SHOWN.values()))
    assert {cell.name for cell in cells} < known
    assert {cell.model.prior for cell in cells} == {"unit"}
    planted = [replace(cell, model=replace(cell.model, prior="fan_in")) for cell in cells]
    assert not {cell.name for cell in planted} & known


def test_figures_have_a_panel_for_every_run() -> None:
    p, y = np.array([[0.3, 0.7], [0.8, 0.2]] * 20), np.array([1, 0] * 20)
    trace = np.random.default_rng(0).normal(size=(2, 10))
    labels = {"y": y, "probabilities": p, "true": trace, "emulated": trace, "rhat": 1.0}
    labels |= {"numbers": {"error": 2.0}}
    wine = {"y": trace.ravel(), "first_component": trace.ravel(), "mean": trace.ravel()}
    wine |= {"interval": [trace.ravel() - 1, trace.ravel() + 1], "rhat": 1.0}
    told = {fbnn_figures.LABELS: labels, fbnn_figures.WINE: wine}
    runs = {(name, row): told[name] for name, rows in fbnn_figures.SHOWN.items() for row in rows}
    draws = (fbnn_figures.emulated, fbnn_figures.intervals, fbnn_figures.reliability)
    assert [len(draw(runs).axes) for draw in draws] == [2, 3, 5]
    del runs[fbnn_figures.WINE, "NUTS on all rows"]
    assert len(fbnn_figures.intervals(runs).axes) == 2
