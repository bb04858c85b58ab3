"""Cells: run once, resumed, and failing without taking the others along."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tools import experiment_samples as samples
from tools.data_folder import needs_data

from credence.cli import experiments as compare_cli
from credence.compare import cell, compare, runner
from credence.compare.sources import (
    SimulatedSource,
    TableSource,
    UCISource,
)
from credence.compare.specs import ModelSpec, Outcome, RowLimits, to_json
from credence.datasets import CheckedTable
from credence.datasets import load as load_dataset
from credence.errors import InputError, StorageError
from credence.methods import CES, METHODS, Training
from credence.runs import workflow


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Cells run without processes; the label "bad" fails, "stop" is interrupted."""
    seen: list[str] = []

    def fake(each, folder: Path, cores: int) -> Outcome:
        if each.label == "stop":
            raise KeyboardInterrupt
        seen.append(each.label)
        outcome = samples.failed("bad") if each.label == "bad" else samples.done(each.label)
        runner.cell_path(folder, each).write_text(json.dumps(outcome.result), encoding="utf-8")
        return Outcome(each, outcome.result)

    monkeypatch.setattr(runner, "run_cell", fake)
    return seen


def test_finished_cells_are_read_and_failed_ones_tried_again(calls, tmp_path: Path) -> None:
    experiment = samples.experiment("a", "bad", "b")
    summary = runner.run(experiment, tmp_path, size="smoke")
    assert calls == ["a", "bad", "b"]
    assert summary["failed"] == ["line: bad"]
    again = runner.run(experiment, tmp_path, size="smoke")
    assert calls == ["a", "bad", "b", "bad"]
    assert again == summary == json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert (tmp_path / "report.html").exists()
    runner.run(experiment, tmp_path, size="smoke", seed=1)
    assert calls[4:] == ["a", "bad", "b"]


def test_seeds_are_cells_of_their_own(calls, tmp_path: Path) -> None:
    experiment = replace(samples.experiment("a"), num_seeds={"laptop": 3})
    runner.run(experiment, tmp_path)
    assert calls == ["a"] * 3
    summary = runner.run(experiment, tmp_path, num_seeds=4)  # three are there
    assert len(calls) == 4
    assert summary["max_seconds"] is None
    assert summary["num_seeds"] == 4
    assert "±" in (tmp_path / "report.html").read_text(encoding="utf-8")
    with pytest.raises(InputError, match="--seeds must be >= 1"):
        runner.run(experiment, tmp_path, num_seeds=0)


def test_optional_problems_are_left_out(calls, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("CREDENCE_DATA", str(tmp_path / "none"))
    (line,) = samples.experiment("a").problems
    missing = replace(
        line, name="gone", source=TableSource(table="celeba_attributes", target="Blond_Hair")
    )
    said = []
    watch = runner.NoWatch()
    watch.say = said.append
    for is_optional, expected in ((True, ["line"]), (False, ["line", "gone"])):
        problems = (line, replace(missing, is_optional=is_optional))
        experiment = replace(samples.experiment("a"), problems=problems)
        summary = runner.run(experiment, tmp_path / str(is_optional), watch=watch)
        assert [each["name"] for each in summary["problems"]] == expected
    assert [sentence.partition(":")[0] for sentence in said] == ["Left out gone", "gone will fail"]


def test_interrupt_keeps_finished_cells(calls, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        runner.run(samples.experiment("a", "stop", "b"), tmp_path)
    runner.run(samples.experiment("a", "b"), tmp_path)
    assert calls == ["a", "b"]


@pytest.mark.parametrize("text", ["{", "{}", "[]"])
def test_a_broken_file_is_run_again(calls, tmp_path: Path, text: str) -> None:
    experiment = samples.experiment("a")
    runner.run(experiment, tmp_path)
    runner.cell_path(tmp_path, experiment.cells("laptop")[0]).write_text(text, encoding="utf-8")
    runner.run(experiment, tmp_path)
    assert calls == ["a", "a"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_jobs": 0}, "--jobs must be >= 1"),
        ({"backend": "mpi"}, "Unknown backend"),
        ({"max_seconds": 0.0}, "--max-seconds must be > 0"),
        ({"seed": -1}, "--seed must be"),
        ({"size": "huge"}, "Unknown size"),
    ],
)
def test_bad_settings(calls, tmp_path: Path, settings: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        runner.run(samples.experiment("a"), tmp_path / "new", **settings)
    assert calls == []
    assert not (tmp_path / "new").exists()


def test_bad_folders(calls, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x", encoding="utf-8")
    for name, sentence in (("file", "is a file"), ("full", "holds other files")):
        with pytest.raises(InputError, match=sentence):
            runner.run(samples.experiment("a"), tmp_path / name)
    with pytest.raises(InputError, match="cannot be written"):
        runner.run(samples.experiment("a"), tmp_path / "file" / "below")
    assert calls == []


def test_stacking_has_the_model_of_its_cell() -> None:
    assert cell.build_method(small_cell("stacking")).models == ("own/own/own",)
    named = cell.build_method(small_cell("stacking", models=["8/own/own"]))
    assert named.models == ("8/own/own",)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(40, 3)), columns=list("aby")).to_csv(tmp_path / "t.csv")
    return tmp_path / "t.csv"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"target": "a"}, "predicting y; map, nuts. There target was y, not a. Choose another"),
        ({"num_draws": 9}, "There nuts.num_draws was 1000, not 9."),
        ({"methods": ["map", "laplace"]}, "There nuts was run, too."),
        ({"model": ModelSpec(hidden=(5, 5))}, "There hidden was 50, not 5,5."),
        ({"test_fraction": 0.5}, "There test_fraction was 0.2, not 0.5."),
    ],
)
def test_the_report_of_another_comparison_is_not_replaced(
    calls, table: Path, change: dict, sentence: str
) -> None:
    """It is said before data are read; the folder stays as it is."""
    usual, out = {"target": "y", "methods": ["map", "nuts"]}, table.parent / "out"
    runner.run(compare(str(table), **usual), out)
    held = {path: path.read_bytes() for path in out.rglob("*.*")}
    other = compare(str(table), **usual | change)
    with pytest.raises(InputError) as error:
        runner.run(other, out)
    assert sentence in str(error.value)
    assert len(calls) == 2
    assert {path: path.read_bytes() for path in out.rglob("*.*")} == held


def test_a_comparison_goes_on_and_takes_more_methods(calls, table: Path) -> None:
    out = table.parent / "out"
    for methods in (["map"], ["map"], ["laplace", "map"]):
        summary = runner.run(compare(str(table), "y", methods), out)
    assert calls == ["map", "laplace"]
    assert [row["label"] for row in summary["problems"][0]["rows"]] == ["laplace", "map"]
    for settings in ({"seed": 1}, {"max_seconds": 5.0}):
        with pytest.raises(InputError, match="There the seed, the time budget or the version"):
            runner.run(compare(str(table), "y", ["map", "laplace"]), out, **settings)
    table.write_text(table.read_text() + "9,9,9,9\n")
    with pytest.raises(InputError, match="There the file had other contents"):
        runner.run(compare(str(table), "y", ["map", "laplace"]), out)


def test_the_table_tells_the_time_limit(calls, tmp_path: Path) -> None:
    runner.run(samples.experiment("a"), tmp_path, max_seconds=5.0)
    assert json.loads((tmp_path / "results.json").read_text())["max_seconds"] == 5.0


def test_a_comparison_of_which_nothing_is_finished_holds_no_folder(calls, table: Path) -> None:
    """What failed may be tried with other settings."""
    experiment, out = compare(str(table), "y", ["map"]), table.parent / "out"
    runner.run(experiment, out)
    (cell,) = experiment.cells("laptop")
    failed = json.dumps(samples.failed("map").result)
    runner.cell_path(out, cell).write_text(failed, encoding="utf-8")
    runner.run(compare(str(table), "y", ["nuts"]), out)
    assert calls == ["map", "nuts"]


def test_the_folder_of_another_experiment_is_refused(calls, tmp_path: Path) -> None:
    runner.run(samples.experiment("a"), tmp_path)
    with pytest.raises(InputError, match=r"holds the experiment 'sample'.*that of 'other': choose"):
        runner.run(samples.experiment("a", name="other"), tmp_path)
    assert calls == ["a"]


def test_a_broken_description_refuses_a_comparison_only_where_something_is_finished(
    calls, table: Path
) -> None:
    experiment, out = compare(str(table), "y", ["map"]), table.parent / "out"
    runner.run(experiment, out)
    (out / "experiment.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"cannot be read from its experiment\.json"):
        runner.run(compare(str(table), "y", ["nuts"]), out)
    runner.run(experiment, out)
    assert calls == ["map"]


def test_a_comparison_tells_what_it_did_to_the_table(run, calls, tmp_path: Path) -> None:
    """Once, before the first method, as `credence fit` does."""
    frame = pd.DataFrame({"same": 1, "a": np.arange(40.0) % 7})
    frame.assign(y=np.arange(40.0) + 0.5).to_csv(tmp_path / "t.csv", index=False)
    words = ("--target", "y", "--methods", "map,laplace", "--out", tmp_path / "out")
    status, _, err = run("compare", tmp_path / "t.csv", *words)
    assert status == 0, err
    for note in ("Note: The task is regression, because", "Note: The same value is in every row"):
        assert err.partition("line, map")[0].count(note) == err.count(note) == 1


def test_notes_name_the_problem_where_there_are_several(calls, tmp_path: Path) -> None:
    (line,) = samples.experiment("a").problems
    fewer = replace(line, name="few", rows={"laptop": RowLimits(train=5)})
    watch, said = runner.NoWatch(), []
    watch.say = said.append
    runner.run(replace(samples.experiment("a"), problems=(line, fewer)), tmp_path, watch=watch)
    assert said == ["Note: few: Only 5 of 16 training rows, drawn at random."]


def test_missing_data_are_said_at_once(calls, tmp_path: Path, monkeypatch) -> None:
    from credence.compare import find

    monkeypatch.setenv("CREDENCE_DATA", str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"celeba_attributes' is not to be had.*CREDENCE_DATA"):
        runner.run(find("fbnn").only(("celeba",)), tmp_path / "out")
    assert calls == []


@pytest.mark.parametrize("num_finished", [0, 1])
def test_a_setting_that_there_is_not_is_said_at_once(
    calls, tmp_path: Path, num_finished: int
) -> None:
    """Cells of before keep their numbers; nothing is run, or written into a new folder."""
    experiment, out = samples.experiment("a", "b"), tmp_path / "out"
    if num_finished:
        runner.run(experiment.only(methods=("a",)), out)
    good, bad = experiment.methods
    bad = replace(bad, by_size={"laptop": {"num_epochs": 3}})
    with pytest.raises(InputError, match="method 'map' has no setting 'num_epochs'"):
        runner.run(replace(experiment, methods=(good, bad)), out)
    assert calls == ["a"][:num_finished]
    assert out.exists() == bool(num_finished)


def small_cell(method: str = "map", **settings: object):
    cells = samples.experiment("a").cells("smoke")
    source = SimulatedSource(
        task="classification", settings={"n_samples": 60, "n_features": 3, "n_informative": 3,
                                         "n_redundant": 0, "random_state": 0},
    )  # fmt: skip
    return type(cells[0])(
        problem="p", source=source, model=ModelSpec(hidden=(), likelihood="bernoulli"),
        rows=RowLimits(train=40), label="a", method=method, settings=settings,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("method", "settings", "sentence"),
    [
        ("nutz", {}, "Unknown method 'nutz'.*Did you mean 'nuts'"),
        ("nuts", {"num_drawz": 3}, "no setting 'num_drawz'.*Did you mean 'num_draws'"),
        ("nuts", {"num_draws": 0}, "num_draws"),
    ],
)
def test_bad_methods_are_sentences(method: str, settings: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        cell.build_method(small_cell(method, **settings))


SGLD = {
    "num_draws": 5, "num_chains": 2, "num_warmup": 10, "thinning": 2, "training": {"max_epochs": 2}
}  # fmt: skip


def test_a_cell_may_average_predictions_and_keep_no_network() -> None:
    """The same entries as of a cell that keeps its draws, and what averages cannot say is None."""
    whole = small_cell("sgld", **SGLD)
    averaged = replace(whole, averaged=True)
    assert averaged.name != whole.name
    kept, found = cell.compute(whole), cell.compute(averaged)
    json.dumps(found, allow_nan=False)
    assert set(found) == {*kept, "paths"}
    assert found["paths"]["error"][-1] == pytest.approx(1 - found["scores"]["accuracy"])
    assert set(found["scores"]) == set(kept["scores"])
    assert set(found["convergence"]) == set(kept["convergence"])
    assert found["convergence"]["max_rhat_function"] > 0
    assert found["ess_function"] is None
    assert found["cost"]["gradient_evaluations"] == kept["cost"]["gradient_evaluations"]
    assert len(found["rows"]["nll"]) == len(kept["rows"]["nll"])


def test_averages_are_for_labels_and_chains() -> None:
    refused = replace(small_cell("map"), averaged=True)
    with pytest.raises(InputError, match="'map' needs its draws"):
        cell.compute(refused)


@pytest.mark.parametrize(("error", "is_kept"), [(StorageError, True), (InputError, False)])
def test_what_a_cell_has_drawn_outlives_a_full_disk(
    tmp_path: Path, monkeypatch, error: type[Exception], is_kept: bool
) -> None:
    """A cell that is tried again goes on; not where the same error would come again."""
    (found,) = samples.experiment("a").cells("laptop")
    spec, out = tmp_path / "spec.json", tmp_path / "out.json"
    spec.write_text(json.dumps(to_json(found)), encoding="utf-8")

    def compute(_: Any, folder: Path) -> Any:
        folder.mkdir()
        raise error("The disk is full.")

    monkeypatch.setattr(cell, "compute", compute)
    monkeypatch.setattr("credence.environment.configure", lambda *_, **__: None)
    assert cell.main(spec, out, 1) == 0
    assert json.loads(out.read_text(encoding="utf-8"))["error"] == "The disk is full."
    assert (tmp_path / "out.checkpoint").exists() == is_kept


def test_failed_results_are_json() -> None:
    ours = cell.failed(InputError("A sentence."))
    assert ours == {"status": "failed", "error": "A sentence.", "traceback": ""}
    theirs = cell.failed(ZeroDivisionError("x"))
    assert theirs["error"] == "ZeroDivisionError: x"
    json.dumps(theirs)


def test_a_fraction_is_refused_where_a_data_set_has_its_own_split(
    calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.DataFrame({"age": np.arange(40), "income": np.arange(40) % 2})
    table = CheckedTable(frame, "income", "classification", [])
    own = {"train": np.arange(30), "test": np.arange(30, 40)}
    dataset = replace(load_dataset("diabetes"), frame=frame, **own)
    monkeypatch.setattr(workflow, "read", lambda settings: (frame, table))
    monkeypatch.setattr(workflow, "load_dataset", lambda name: dataset)
    experiment = compare("adult", "income", ["map"], test_fraction=0.3)
    with pytest.raises(InputError, match="split of its own, which --test-fraction cannot change"):
        runner.run(experiment, tmp_path)
    assert calls == []
    runner.run(compare("adult", "income", ["map"]), tmp_path)
    assert calls == ["map"]


@needs_data
def test_a_split_that_is_not_there_is_refused_before_anything_is_run(calls, tmp_path: Path) -> None:
    experiment = samples.experiment("a")
    table = replace(experiment.problems[0], source=UCISource(name="boston"))
    with pytest.raises(InputError, match=r"split must be 0\.\.19 for 'boston', got 20"):
        runner.run(replace(experiment, problems=(table,)), tmp_path, num_seeds=21)
    assert calls == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"methods": ["nutz"]}, "Did you mean 'nuts'"),
        ({"methods": []}, "names no method"),
        ({"methods": ["auto"]}, "is a choice"),
        ({"methods": ["map"], "baseline": "nuts"}, "not among the methods"),
        ({"methods": ["map"], "num_draws": 0}, "--num-draws"),
        ({"methods": ["map"], "method_settings": ["num_warmup=5"]}, "None of the methods map has"),
        ({"methods": ["map"], "method_settings": ["map.rate=5"]}, "'map' has no setting 'rate'"),
        ({"methods": ["nuts"], "method_settings": ["num_warmup=x"]}, "it is a whole number"),
        ({"methods": ["nuts"], "method_settings": ["num_warmup=-5"]}, "must be > 0, got -5"),
        ({"methods": ["map"], "model": ModelSpec(prior="flat")}, "Unknown prior"),
        ({"methods": ["map"], "model": ModelSpec(likelihood="cauchy")}, "Unknown likelihood"),
        ({"methods": ["map"], "test_fraction": 2.0}, "--test-fraction"),
        ({"methods": ["map"], "split_seed": -1}, "--seed"),
    ],
)
def test_bad_comparisons(arguments: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        compare("boston", "MEDV", **arguments)


def test_compare_gives_draws_to_those_that_have_them() -> None:
    experiment = compare("boston", "MEDV", ["map", "nuts"], num_draws=7, num_chains=2)
    assert experiment.baseline == "nuts"
    assert [m.settings for m in experiment.methods] == [{}, {"num_draws": 7, "num_chains": 2}]


def test_compare_sets_what_the_methods_have() -> None:
    """The rest stays as it was: files of cells keep their names."""
    texts = [
        "training.patience=3",
        "nuts.num_draws=9",
        "ces.emulator=taylor",
        "mlsmc.widths=[[2],[4]]",
    ]
    names = ["map", "nuts", "ces", "mlsmc", "sghmc"]
    found = compare("boston", "MEDV", names, num_draws=7, method_settings=texts)
    settings = {method.label: method.settings for method in found.methods}
    assert settings["map"].keys() == {"training"}
    assert settings["nuts"].keys() == {"num_draws", "training"}
    assert settings["nuts"]["num_draws"] == 9
    assert settings["ces"]["emulator"]["name"] == "taylor"
    assert settings["mlsmc"]["widths"] == [[2], [4]]
    (of_ces,) = [each for each in found.cells("laptop") if each.label == "ces"]
    built = cell.build_method(of_ces)
    assert built == CES(num_draws=7, emulator="taylor", training=Training(patience=3))
    plain = compare("boston", "MEDV", names, num_draws=7)
    (before,) = [each for each in plain.methods if each.label == "mlsmc"]
    assert before.settings == METHODS["mlsmc"].known(num_draws=7)


def test_compare_leaves_out_the_columns_that_fit_would(run, tmp_path: Path, monkeypatch) -> None:
    frame = pd.DataFrame({"built": "2005-07-18", "zip": [1, 2] * 30, "y": np.arange(60.0)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    seen = []
    monkeypatch.setattr(compare_cli, "_run", lambda experiment, *rest: seen.append(experiment))
    words = ("compare", tmp_path / "t.csv", "--target", "y", "--methods", "map")
    status, _, err = run(*words, "--drop", "built", "--categorical", "zip")
    assert status == 0, err
    (problem,) = seen[0].problems
    assert (problem.source.drop, problem.source.categorical) == (("built",), ("zip",))


def test_compare_in_processes_of_their_own(run, tmp_path: Path, monkeypatch) -> None:
    """End to end: one cell; a second run takes it from the folder."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x @ [1.0, 2.0] + rng.normal(size=60)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("compare", tmp_path / "t.csv", "--target", "y", "--methods", "map", "--hidden", "0",
             "--set", "map.training.max_epochs=3000", "--out", tmp_path / "out",
             "--json")  # fmt: skip
    status, out, err = run(*words)
    assert status == 0, err
    summary = json.loads(out)
    (row,) = summary["problems"][0]["rows"]
    assert row["status"] == "done"
    assert 0.5 < row["rmse"] < 2.0
    assert row["seconds"]["compile"] > 0
    assert row["peak_memory_mib"] > row["memory_before_mib"] > 50
    assert row["gradient_evaluations"] > 0
    assert summary["converged"] is None

    monkeypatch.setattr(runner, "run_cell", None)  # a second run computes nothing
    assert json.loads(run(*words)[1]) == summary


def test_a_missing_table_is_said_before_anything_is_shown_or_written(run, tmp_path: Path) -> None:
    words = ("--target", "y", "--methods", "map", "--out", tmp_path / "out")
    status, out, err = run("compare", tmp_path / "missing.csv", *words)
    assert (status, out) == (2, "")
    assert err.startswith("Error: There is no file")
    assert "Give the path of a CSV or Parquet file" in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("end", "is_memory"), [("exit 1", False), ("kill -9 $$", True)])
def test_a_process_that_dies_is_a_failed_cell(
    tmp_path: Path, monkeypatch, end: str, is_memory: bool
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{end}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    outcome = runner.run_cell(small_cell(), tmp_path / "cells", 1)
    assert not outcome.is_done
    assert f"ended with status {-9 if is_memory else 1} (" in outcome.result["error"]
    assert ("out of memory perhaps" in outcome.result["error"]) == is_memory


def test_what_is_no_json_is_a_failed_cell(tmp_path: Path, monkeypatch) -> None:
    spec, out = tmp_path / "spec.json", tmp_path / "out.json"
    spec.write_text(json.dumps(to_json(small_cell())), encoding="utf-8")
    monkeypatch.setattr(cell, "compute", lambda *_: {"nll": float("nan")})
    monkeypatch.setattr("credence.environment.configure", lambda *_, **__: None)
    assert cell.main(spec, out, 1) == 0
    assert "not JSON compliant" in json.loads(out.read_text(encoding="utf-8"))["error"]


def test_experiment_commands(run, calls, tmp_path: Path, monkeypatch) -> None:
    status, out, _ = run("experiment", "list", "--json")
    assert status == 0
    assert "fbnn" in json.loads(out)
    status, out, _ = run("experiment", "show", "fbnn_first_version", "--json")
    assert json.loads(out)["baseline"] == "BNN-SGHMC"
    assert run("experiment", "show", "fbnn")[0] == 0
    words = ("experiment", "run", "fbnn_first_version", "--size", "smoke", "--methods", "nuts",
             "--problems", "simulated_regression", "--out", tmp_path / "o")  # fmt: skip
    status, out, err = run(*words, "--json")
    assert (status, calls) == (0, ["BNN-SGHMC", "NUTS on all rows"])
    assert [row["speed_up"] for row in json.loads(out)["problems"][0]["rows"]] == [1.0, 1.0]
    assert "report.html" in err
    for bad, sentence in (("fbn", "Did you mean 'fbnn'"), ("", "Unknown experiment")):
        status, _, err = run("experiment", "run", bad, "--out", tmp_path / "x")
        assert status == 2
        assert sentence in err


def test_status_3_where_something_failed(run, calls, tmp_path: Path, monkeypatch) -> None:
    from credence.compare import EXPERIMENTS

    monkeypatch.setitem(EXPERIMENTS.own, "sample", samples.experiment("a", "bad"))
    status, _, err = run("experiment", "run", "sample", "--out", tmp_path / "o")
    assert status == 3
    assert "line, bad: failed. Unknown method 'nope'." in err
    monkeypatch.setitem(EXPERIMENTS.own, "stopped", samples.experiment("stop"))
    status, _, err = run("experiment", "run", "stopped", "--out", tmp_path / "p")
    assert status == 130
    assert "the same command goes on" in err
