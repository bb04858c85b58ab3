"""The tables and the chart of emulation, from rows that nobody measured."""

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "docs" / "make"), str(ROOT / "benchmarks")]
import emulation  # noqa: E402
import emulation_pays  # noqa: E402
import memory  # noqa: E402


def row(num_rows: int, method: str, seconds: float, **found: Any) -> dict[str, Any]:
    about = {"problem": "teacher", "num_rows": num_rows, "method": method}
    usual = {
        "is_converged": True, "ess": 500.0, "seconds_to_400": seconds, "seconds_spent": 60.0,
        "acceptance_rate": None, "pareto_k": None, "mean": [0.0, 1.0], "std": [1.0, 0.5],
        "num_cores": 2, "commit": "abc",
    }  # fmt: skip
    return {**about, **usual, **found}


ROWS = [
    row(10_000, "mclmc", 9.4),
    row(10_000, "nuts", 28.0),
    row(10_000, "uncorrected", 5.0, pareto_k="inf", mean=[0.1, 1.2]),
    row(10_000, "ces", 18.0, acceptance_rate=0.86, mean=[0.1, 1.0]),
    row(1000, "ces", 3.0, is_converged=False, acceptance_rate=0.5),
    row(1000, "mclmc", 90.0),
    row(1000, "mclmc", 1234.0),
]


def test_a_line_has_all_methods_and_the_fastest_exact_one_in_bold() -> None:
    heads, _, first, second, _, about = emulation.table_lines(ROWS)
    assert heads == (
        "| rows | NUTS | MCLMC | CES exact (NUTS along the emulator) | accepted | off "
        "| CES uncorrected | off | k-hat |"
    )
    assert first == "| 1,000 | - | **1,234** | > 60 | 0.50 | - | - | - | - |"
    assert second == "| 10,000 | 28 | **9.4** | 18 | 0.86 | 0.10 | 5.0 | 0.40 | inf |"
    assert about == "Seed: 0; cores: 2; commit: abc."


def test_what_was_refused_is_said() -> None:
    refused = row(10, "ces", 0.0)
    refused = {
        name: refused[name] for name in ("problem", "num_rows", "method", "num_cores", "commit")
    }
    line = emulation.table_lines([{**refused, "error": "no"}])[2]
    assert line == "| 10 | refused | - | - |"


@pytest.mark.parametrize("rows", [ROWS, []])
def test_the_chart_is_drawn_where_there_are_rows(
    rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(emulation_pays, "kept_rows", lambda name: rows)
    emulation_pays.figures(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["emulation-pays.svg"] * bool(rows)


def test_rows_on_disk_have_a_table_of_passes_and_one_of_runs() -> None:
    about = {
        "num_rows": 200_000, "num_features": 1000, "hidden": [50, 48], "num_weights": 52_548,
        "num_cores": 2, "commit": "abc",
    }  # fmt: skip
    check, phase = {"seconds": 1.0, "peak_mib": 2662.4}, {"seconds": 5.1, "peak_mib": 512.0}
    passes = {"check": check, "value": phase, "value and gradient": {**phase, "seconds": 450.0}}
    rows = [
        {**about, "kind": "passes", "inputs": "memory", "phases": passes, "num_passes": 3},
        {**about, "kind": "run", "inputs": "disk", "phases": {"run": phase}, "num_steps": 100,
         "acceptance_rate": 0.731, "seconds_by_phase": {"compile": 1.0}},
    ]  # fmt: skip
    lines = memory.table_lines(rows)
    start = "| 200,000 x 1000 {} | 1000-50-48-1 (52,548 weights)"
    assert lines[2] == f"{start.format('in memory')} | 1.7 s | 150 s | 2.6 GiB |"
    assert lines[6] == f"{start.format('on disk')} | 100 | 4.1 | 0.73 | 0.5 GiB |"
    assert lines[-1] == "2 chains, as many steps of warm-up as draws; 2 cores, commit abc."
