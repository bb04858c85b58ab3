"""Benchmarks keep a row of each measurement, and make their tables of the rows alone."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import particles  # noqa: E402
import rows  # noqa: E402
import smc_reference  # noqa: E402
import stochastic_gradient  # noqa: E402
import throughput  # noqa: E402

NUM_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
needs_linux = pytest.mark.skipif(NUM_CORES == 0, reason="a process is pinned to its cores")


def refuse(case: dict[str, Any]) -> dict[str, Any]:
    """Stand for what must not be measured again."""
    raise AssertionError(case)


@needs_linux
def test_what_has_a_row_is_not_measured_again(tmp_path: Path) -> None:
    case = {"widths": [10, 1], "num_cores": 1}
    rows.measure(tmp_path, [case], dict)
    (row,) = rows.done(tmp_path)
    assert row.items() >= case.items()
    assert row.keys() - case.keys() == {"seconds", "commit", "machine"}
    rows.measure(tmp_path, [case], refuse)
    rows.measure(tmp_path, [case, {**case, "widths": [20, 1]}], dict)
    assert [row["widths"] for row in rows.done(tmp_path)] == [[10, 1], [20, 1]]


@needs_linux
@pytest.mark.parametrize("num_cores", sorted({1, NUM_CORES}))
def test_a_new_process_has_so_many_cores_and_devices(num_cores: int) -> None:
    assert len(rows.in_new_process(os.sched_getaffinity, 0, num_cores=num_cores)) == num_cores
    devices = rows.in_new_process(os.getenv, "JAX_NUM_CPU_DEVICES", num_cores=num_cores)
    assert devices == str(num_cores)


@pytest.mark.parametrize(
    ("commit", "words", "is_refused"),
    [
        ("abc-dirty", ["--out", "KEPT"], True),
        ("abc-dirty", ["--out", "KEPT", "--dirty"], False),
        ("abc-dirty", ["--out", "KEPT", "--table"], False),
        ("abc-dirty", ["--out", "elsewhere"], False),
        ("abc", ["--out", "KEPT"], False),
    ],
)
def test_rows_that_no_commit_would_make_are_not_added_to_results(
    commit: str, words: list[str], is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(rows.RESULTS / "friction")
    monkeypatch.setattr(sys, "argv", ["x", *(folder if word == "KEPT" else word for word in words)])
    monkeypatch.setattr(rows, "commit", lambda: commit)
    if is_refused:
        with pytest.raises(SystemExit, match="say --dirty"):
            rows.parser_of(None).parse_args()
    else:
        assert rows.parser_of(None).parse_args().out


def test_rows_have_six_digits_and_tell_the_machine(tmp_path: Path) -> None:
    rows.add_row(tmp_path, {"seed": 12345678, "mean": [0.123456789], "by_name": {"a": 1234.56789}})
    expected = {"seed": 12345678, "mean": [0.123457], "by_name": {"a": 1234.57}}
    assert rows.done(tmp_path) == [{**expected, "machine": rows.machine()}]


def test_throughput_shows_shares_of_the_peak() -> None:
    shape = {"num_particles": 10, "num_points": 100, "widths": [2, 3, 1], "commit": "abc"}
    forward, gradient = 2 * 1000 * 9, 2 * 1000 * (3 * 9 - 6)
    seconds = (forward / 1e9, gradient / 5e8, forward / 2e9, gradient / 4e9)
    one = {"program_seconds": dict(zip(throughput.COLUMNS, seconds, strict=True))}
    found = [
        {**shape, **one, "num_cores": 1, "steps_seconds": 0.3, "peak_flops": 1e10},
        {**shape, "num_cores": 2, "steps_seconds": 0.2},
    ]
    *_, line, _, about = throughput.table_lines(found)
    assert line == "| 10, 100, 2-3-1 | 10% | 5% | 20% | 40% | x 1.50 |"
    assert about == "Peak of one core: 10 GFLOP/s (median). Commit abc."
    assert "| not measured |" in throughput.table_lines(found[:1])[2]


def test_particles_show_medians_over_all_rounds_and_the_stages_of_compilation() -> None:
    def runs(*seconds: float) -> list[dict[str, Any]]:
        about = {"sampler": "BlackJAX", "particle_steps": 1e6, "temperatures": 4, "leapfrogs": 5}
        times = ("step_seconds", "seconds", "cpu_seconds")
        return [{**about, **dict.fromkeys(times, each)} for each in seconds]

    same = {"num_steps": 10, "num_cores": 1, "commit": "abc"}
    stages = {"trace": 1.0, "lower": 2.0, "compile": 3.0}
    found = [
        {**same, "kind": "hmc", "round": 0, "runs": runs(10.0, 20.0)},
        {**same, "kind": "hmc", "round": 1, "runs": runs(30.0)},
        {**same, "kind": "compile", "cold": stages, "cached": {**stages, "compile": 0.25}},
    ]
    lines = particles.table_lines(found)
    expected = "| hmc, 10 | BlackJAX | 1 | 20.0 | 12.0-28.0 | 20.0 | 20.0 | 4 | 5.0 |"
    assert lines[2] == expected
    assert lines[-4:-2] == ["| cold | 1.00 | 2.00 | 3.00 |", "| cached | 1.00 | 2.00 | 0.25 |"]


def test_smc_is_beside_nuts_on_the_same_table() -> None:
    same = {"table": "wine", "std": [2.0, 2.0], "seconds": 9.0, "num_cores": 2, "commit": "abc"}
    same |= {"seed": 0, "nll": 0.95, "num_runs": 4}
    nuts = {
        **same, "method": "nuts", "rhat": 1.05, "num_draws": 4000, "mean": [0.0, 0.0],
        "error": [0.3, 0.3], "log_evidence": None, "log_evidence_error": None,
    }  # fmt: skip
    mlsmc = {
        **same, "method": "mlsmc", "rhat": None, "num_draws": 55, "mean": [1.0, -1.0],
        "error": [0.4, 0.4], "log_evidence": -3.25, "log_evidence_error": 0.5,
    }  # fmt: skip
    other = {**nuts, "table": "boston", "mean": [100.0, 100.0]}
    lines = smc_reference.table_lines([nuts, other, mlsmc])
    assert lines[2:5] == [
        "| boston | `nuts` | 4 x 4,000 | 1.050 | - | - | - | - | 0.950 | 9 |",
        "| wine | `nuts` | 4 x 4,000 | 1.050 | - | - | - | - | 0.950 | 9 |",
        "| wine | `mlsmc` | 4 x 55 | - | 0.500 | 0.250 | 1.000 | -3.2 ± 0.5 | 0.950 | 9 |",
    ]


def test_steps_per_second_are_beside_the_loop_and_one_chain() -> None:
    rates = {"loop": 1000.0, "blocks": 2000.0, "sharded": 6400.0}
    found = [
        {**case, "steps_per_second": rates[case["program"]] / case["num_chains"], "commit": "abc"}
        for case in stochastic_gradient.speed_cases(2)
    ]
    lines = stochastic_gradient.table_lines(found)
    cost = "31 (cost 64.0x one chain)"
    assert lines[0] == "| steps per second | one core | all 2 cores |"
    assert [line.split(" | ", 1)[1] for line in lines[2:6]] == [
        "1,000 (1.0x) | 1,000 (1.0x) |",
        "2,000 (2.0x) | 2,000 (2.0x) |",
        f"{cost} | {cost} |",
        " | 100 (cost 20.0x one chain) |",
    ]
