"""A fit writes every file once, and the same page from memory as from the folder."""

import os
import re
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from tools.stops import Stop, stop

import credence
from credence import BNNRegressor, storage
from credence.datasets import check_table, load
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.inputs import Importances
from credence.ensembles.scores import Scores
from credence.errors import InputError
from credence.methods import HMC, Stacking
from credence.runs import finishing, prediction, workflow
from credence.runs.evaluation import convergence_arrays
from credence.runs.folder import FitSettings, read_manifest
from credence.runs.page import report_data, write_page
from credence.storage import read_json, write_arrays, write_json

QUICK = ("num_members=2", "training.max_epochs=20")
STACKING = (
    "models=0/fan_in/own",
    "chains.num_folds=4",
    "chains.num_chains=4",
    "chains.num_draws=10",
    "chains.num_warmup=10",
    "chains.training.max_epochs=100",
)
TIME = re.compile(r"<dt>Time</dt>\s*<dd>.*?</dd>", re.DOTALL)


def table(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    path = folder / "table.csv"
    columns = {"x": x, "y": 2 * x + rng.normal(size=60), "name": np.where(x > 0, "b", "a")}
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def settings(folder: Path, target: str) -> FitSettings:
    return FitSettings(
        table=str(table(folder)),
        target=target,
        hidden=(2,),
        method="deep_ensemble",
        method_settings=QUICK,
    )


@pytest.mark.parametrize("target", ["y", "name"])
def test_everything_is_written_once_and_read_back_the_same(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: Counter[str] = Counter()
    atomic_path = storage.atomic_path

    def counted(path: Path) -> Any:
        written[path.name] += 1
        return atomic_path(path)

    monkeypatch.setattr(storage, "atomic_path", counted)
    fitted = workflow.fit(settings(tmp_path, target), tmp_path / "run")
    for name in ("metrics.json", "evaluation.json", "evaluation.npz", "report.html"):
        assert written[name] == 1, name
    page = tmp_path / "run" / "report.html"
    from_memory = page.read_text(encoding="utf-8")
    write_page(tmp_path / "run")
    from_folder = page.read_text(encoding="utf-8")
    assert TIME.search(from_memory)
    assert TIME.sub("", from_memory) == TIME.sub("", from_folder)
    again = workflow.resume(tmp_path / "run")
    assert (again.metrics, again.notes) == (fitted.metrics, fitted.notes)


def test_held_out_rows_go_through_the_members_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No chains, whose convergence is judged at a few of the rows; two inputs are shuffled."""
    passes = []
    over_batches = Ensemble.over_batches

    def counted(self: Ensemble, x: Any, *rest: Any) -> Any:
        passes.append(len(x))
        return over_batches(self, x, *rest)

    monkeypatch.setattr(Ensemble, "over_batches", counted)
    workflow.fit(settings(tmp_path, "y"), tmp_path / "run")
    assert passes == [12, 12 * (1 + 2 * 5)]


def test_notes_on_the_table_come_before_the_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def finish(*_: Any) -> None:
        raise InputError(told[0])

    monkeypatch.setattr(workflow, "finish", finish)
    with pytest.raises(InputError, match="The task is"):
        workflow.fit(settings(tmp_path, "y"), tmp_path / "run", tell=told.extend)


def test_the_own_split_of_a_data_set_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.arange(60)
    known = replace(load("iris"), train=rows[:48], test=rows[48:])
    chosen = settings(tmp_path, "y")
    monkeypatch.setattr(workflow, "read_table", lambda *_: pd.read_csv(table(tmp_path)))
    monkeypatch.setattr(workflow, "load_dataset", lambda _: known)
    chosen = replace(chosen, table="iris")
    assert list(workflow.split(chosen, *workflow.read(chosen)).test.index) == list(rows[48:])
    with pytest.raises(InputError, match="split of its own, which --test-fraction cannot change"):
        workflow.fit(replace(chosen, test_fraction=0.3), tmp_path / "run")
    workflow.fit(chosen, tmp_path / "run")
    assert report_data(tmp_path / "run").has_own_split
    assert "own split is used" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_whole_groups_are_held_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """4 of 20 patients with 3 rows each are test rows, and the others reach the fit as groups."""
    asked = replace(settings(tmp_path, "y"), group="patient")
    frame = pd.read_csv(asked.table).assign(patient=[f"p{row // 3}" for row in range(60)])
    frame.loc[7, "y"] = np.nan  # a row that is left out moves no group
    frame.to_csv(asked.table, index=False)
    rows = workflow.split(asked, *workflow.read(asked))
    parts = [set(frame.loc[each.index, "patient"]) for each in (rows.train, rows.test)]
    assert list(map(len, parts)) == [16, 4]
    assert not set.intersection(*parts)
    numbers = rows.groups_of(rows.train)
    assert numbers is not None
    patients = frame.loc[rows.train.index, "patient"]
    assert len(set(zip(numbers, patients, strict=True))) == len(set(numbers)) == 16
    assert "patient" not in rows.train
    alone = replace(asked, group=None, drop=("patient",))
    apart = workflow.split(alone, *workflow.read(alone))
    both = [set(frame.loc[each.index, "patient"]) for each in (apart.train, apart.test)]
    assert set.intersection(*both), "planted: rows held back one by one"
    seen = []
    fit = BNNRegressor.fit
    monkeypatch.setattr(
        BNNRegressor, "fit", lambda *args, **more: seen.append(more["groups"]) or fit(*args, **more)
    )
    workflow.fit(asked, tmp_path / "run")
    assert list(seen[0]) == list(numbers)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "are held back: 4 of 20" in page
    judged = report_data(tmp_path / "run")
    of_test = rows.groups_of(rows.test)
    assert of_test is not None
    assert list(judged.targets[0].groups) == list(of_test)
    assert "(one of every group)" in page
    if judged.left_out:
        left_out = judged.left_out[0].groups
        assert set(left_out) <= set(numbers)
    assert "--group patient" in read_manifest(tmp_path / "run").settings.command


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"group": "ward"}, "ward"),
        ({"group": "y"}, "is the target, and cannot be the --group"),
        ({"group": "name"}, "has 2 groups, and holding 1 back .* fewer than 4"),
        ({"group": "gaps"}, "lacks the group of 1 row, the first in row 3"),
    ],
)
def test_groups_that_cannot_be_used_are_refused(
    changes: dict[str, str], words: str, tmp_path: Path
) -> None:
    asked = settings(tmp_path, "y")
    frame = pd.read_csv(asked.table).assign(gaps=np.arange(60.0))
    frame.loc[2, "gaps"] = np.nan
    frame.to_csv(asked.table, index=False)
    with pytest.raises(InputError, match=words):
        workflow.fit(replace(asked, **changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_category_without_rows_leaves_the_proportions(tmp_path: Path) -> None:
    x, labels = np.arange(100.0), np.repeat(["a", "b"], [90, 10])
    y = pd.Categorical(labels, categories=["a", "b", "never"])
    checked = check_table(pd.DataFrame({"x": x, "y": y}), "y")
    for seed in range(3):
        chosen = replace(settings(tmp_path, "y"), seed=seed)
        _, test = workflow.random_split(chosen, checked)
        assert (test["y"] == "b").sum() == 2


def test_a_fill_value_in_a_held_out_row_is_refused_before_the_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NetCDF's mark of a missing number; a table of training has no scale for it."""
    asked = settings(tmp_path, "y")
    held_out = workflow.split(asked, *workflow.read(asked)).test.index[0]
    frame = pd.read_csv(asked.table)
    frame.loc[held_out, "x"] = 9.969e36
    frame.to_csv(asked.table, index=False)
    monkeypatch.setattr(workflow, "finish", lambda *_: pytest.fail("the fit began"))
    with pytest.raises(InputError, match="x"):
        workflow.fit(asked, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_column_whose_values_were_all_held_out_is_told_of(tmp_path: Path) -> None:
    asked = settings(tmp_path, "y")
    held_out = workflow.split(asked, *workflow.read(asked)).test.index[0]
    frame = pd.read_csv(asked.table)
    frame["rare"] = np.where(frame.index == held_out, 1.0, np.nan)
    frame.to_csv(asked.table, index=False)
    with pytest.raises(InputError, match=r"'rare' has no values in the training rows.*--drop"):
        workflow.fit(asked, tmp_path / "run")


def test_importances_that_are_no_numbers_are_not_written() -> None:
    """A row that is impossible to all networks has a log density of minus infinity."""

    class Impossible:
        def importances(self, x: pd.DataFrame, y: pd.Series) -> Importances:
            return Importances(tuple(x), np.array([np.nan, 1.0]), np.zeros(2))

    x = pd.DataFrame({"a": np.arange(60.0), "b": np.arange(60.0)})
    assert finishing.inputs_of(cast("Any", Impossible()), x, x["a"]) is None


def test_a_table_whose_name_is_not_utf_8_is_refused_before_the_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = table(tmp_path).rename(tmp_path / os.fsdecode(b"donn\xe9es.csv"))
    monkeypatch.setattr(workflow, "finish", lambda *_: pytest.fail("the fit began"))
    with pytest.raises(InputError, match=r"donn\\udce9es.csv', is not in UTF-8: rename the file"):
        workflow.fit(replace(settings(tmp_path, "y"), table=str(path)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("is_fitted", [True, False])
def test_a_refusal_after_the_fit_leaves_what_was_computed(
    is_fitted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is free again where the method itself refused, whatever it tried before."""
    checkpoint = tmp_path / "run" / "checkpoint"

    def finish(*given: Any) -> None:
        write_arrays(checkpoint / "train" / "state.npz", {"leaf_0000": np.zeros(3)})
        if is_fitted:
            given[-1].lap("fit")
        raise InputError("The rows are refused.")

    monkeypatch.setattr(workflow, "finish", finish)
    with pytest.raises(InputError, match="are refused"):
        workflow.fit(settings(tmp_path, "y"), tmp_path / "run")
    assert checkpoint.exists() == is_fitted
    assert (tmp_path / "run" / "manifest.json").exists() == is_fitted


def test_predict_reads_the_estimator_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workflow.fit(settings(tmp_path, "y"), tmp_path / "run")
    read: list[str] = []
    monkeypatch.setattr(
        "credence.estimators.storage.read_json",
        lambda path, kind: read.append(path.name) or read_json(path, kind),
    )
    prediction.predict(tmp_path / "run", str(table(tmp_path)))
    assert read == ["estimator.json"]


def test_a_run_that_goes_on_predicts_by_its_early_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stacking = replace(
        settings(tmp_path, "y"), method="stacking", method_settings=STACKING, hidden=None
    )
    run, rows = tmp_path / "run", str(table(tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(Stacking, "_stack", lambda *_: stop())
        with pytest.raises(Stop):
            workflow.fit(stacking, run)
    found, notes = prediction.predict(run, rows)
    assert "is not finished. An early answer: networks that were trained" in notes[0]
    early = credence.load(run / "checkpoint" / "early")
    assert (early.ensemble_.num_chains, early.ensemble_.num_draws) == (4, 1)
    assert early.diagnostics_.converged is None
    read = pd.read_csv(rows)
    np.testing.assert_array_equal(found["mean"], early.predict(read[["x", "name"]]))
    assert np.sqrt(np.mean((found["mean"] - read["y"]) ** 2)) < 0.8 * read["y"].std()
    workflow.resume(run)
    _, notes = prediction.predict(run, rows)
    assert notes == []
    assert not (run / "checkpoint").exists()


def test_an_interrupted_run_goes_on_from_elsewhere_and_is_never_half_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table was named as seen from another folder. While the run is judged its files are
    changing, and what is there is not said to be damaged."""
    run, rows, elsewhere = tmp_path / "run", table(tmp_path), tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    workflow.fit(replace(settings(tmp_path, "y"), table=rows.name), run)
    replace(read_manifest(run), status="interrupted").write(run)
    _, notes = prediction.predict(run, str(rows))
    assert notes == [f"{run} was interrupted: `credence resume {run}` finishes it."]
    monkeypatch.chdir(elsewhere)
    with monkeypatch.context() as patched:
        patched.setattr(finishing, "judged", lambda *_: stop())
        with pytest.raises(Stop):
            workflow.resume(run)
    with pytest.raises(InputError, match="is not finished"):
        prediction.predict(run, str(rows))
    workflow.resume(run)
    assert prediction.predict(run, str(rows))[1] == []
    assert read_manifest(run).settings.table == rows.name


def test_a_run_may_be_called_as_its_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    known = replace(settings(tmp_path, "target"), table="diabetes")
    expected = workflow.read(known)[0]
    Path("diabetes").mkdir()
    pd.testing.assert_frame_equal(workflow.read(known)[0], expected)
    assert workflow.known_spec(known) is not None


@pytest.mark.filterwarnings("ignore:Not converged:sklearn.exceptions.ConvergenceWarning")
def test_the_page_shows_what_convergence_was_judged_by(tmp_path: Path) -> None:
    """The noise, too: the chart's worst R-hat is that of the verdict."""
    x = pd.read_csv(table(tmp_path))
    hmc = HMC(num_draws=12, num_warmup=8, num_chains=2)
    model = BNNRegressor(hidden=(2,), method=hmc, random_state=0).fit(x[["x"]], x["y"])
    found = convergence_arrays(model, x[["x"]])
    assert found["rhat"].max() == pytest.approx(model.diagnostics_.max_rhat_function)
    assert found["rhat"].shape == (60,)
    assert found["traces"].shape[:2] == (2, 12)
    names = found["trace_rows"]
    assert len(names) == found["traces"].shape[2]


@pytest.mark.filterwarnings("ignore:Not converged:sklearn.exceptions.ConvergenceWarning")
def test_convergence_is_shown_where_predictions_are_finite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A held-out row so far out that networks overflow ends no finished fit."""
    x = pd.read_csv(table(tmp_path))[["x"]]
    draws = np.random.default_rng(0).normal(size=(2, 12, 60, 2))
    draws[1, 3, 7, 1] = np.inf
    hmc = HMC(num_draws=12, num_warmup=8, num_chains=2)
    model = BNNRegressor(hidden=(2,), method=hmc, random_state=0).fit(x, np.arange(60.0))
    monkeypatch.setattr(model, "monitored", lambda _: draws)
    found = convergence_arrays(model, x)
    assert found["rhat"].shape == found["ess_bulk"].shape == (59,)
    monkeypatch.setattr(model, "monitored", lambda _: np.full((2, 12, 60, 2), np.nan))
    assert "rhat" not in convergence_arrays(model, x)


def test_the_depth_of_an_earlier_manifest_is_a_setting_of_its_method(tmp_path: Path) -> None:
    manifest = finishing.Manifest(settings(tmp_path, "y"), "abc", {})
    manifest.write(tmp_path)
    assert read_manifest(tmp_path) == manifest
    document = read_json(tmp_path / "manifest.json", dict)
    write_json(
        tmp_path / "manifest.json",
        {**document, "settings": {**document["settings"], "max_depth": 2}},
    )
    found = read_manifest(tmp_path).settings
    assert found.method_settings == (*QUICK, "max_depth=2")
    assert "--set max_depth=2" in found.command


def test_a_short_budget_is_told_of_before_the_fit(tmp_path: Path) -> None:
    told: list[str] = []
    for seconds, number in ((1.5, 1), (None, 0)):
        told.clear()
        chosen = replace(settings(tmp_path, "y"), max_seconds=seconds)
        workflow.fit(chosen, tmp_path / str(seconds), tell=told.extend)
        assert sum("A budget of 1.5 s is short" in note for note in told) == number


def test_an_infinite_budget_is_none(tmp_path: Path) -> None:
    endless = replace(settings(tmp_path, "y"), max_seconds=float("inf"))
    workflow.fit(endless, tmp_path / "run")
    assert read_manifest(tmp_path / "run").settings.max_seconds is None


def test_a_budget_is_short_that_compiling_and_judging_may_exceed(tmp_path: Path) -> None:
    """Measured: a budget of 20 s took 61 s, 10 of them in the fit."""
    usual = settings(tmp_path, "y")
    for seconds in (20.0, 59.0):
        (note,) = workflow._notes_on_time(replace(usual, max_seconds=seconds))
        assert f"A budget of {seconds:g} s is short. Training and sampling get what is left" in note
        assert "starting, compiling and judging are never cut short" in note
    assert workflow._notes_on_time(replace(usual, max_seconds=60.0)) == []


def test_the_report_says_what_the_fit_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, and not what the verdict says itself."""
    fit = BNNRegressor.fit

    def warn_and_fit(model: BNNRegressor, *data: Any, **more: Any) -> BNNRegressor:
        for text, kind in (("Rough.", UserWarning), ("Not there.", ConvergenceWarning)):
            warnings.warn(text, kind, stacklevel=2)
            warnings.warn(text, kind, stacklevel=2)
        return fit(model, *data, **more)

    monkeypatch.setattr(BNNRegressor, "fit", warn_and_fit)
    shown = warnings.showwarning
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        workflow.fit(settings(tmp_path, "y"), tmp_path / "run")
    assert warnings.showwarning is shown
    assert len(seen) == 4, "who runs it still sees every warning"
    notes = read_json(tmp_path / "run" / "evaluation.json", dict)["notes"]
    assert notes.count("Rough.") == 1
    assert "Not there." not in notes
    assert "Rough." in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("budget", "spent", "num_test", "left"),
    [
        (None, 3.0, 0, None),
        (60.0, 5.0, 0, 47.0),
        (60.0, 5.0, 9000, 38.0),
        (12.0, 4.0, 0, 6.0),
        (1.0, 9.0, 0, 0.5),
    ],
)
def test_a_budget_is_of_the_whole_command(
    budget: float | None, spent: float, num_test: int, left: float | None
) -> None:
    assert finishing.seconds_of_fit(budget, spent, num_test) == left


def test_test_rows_calibrate_where_they_are_enough_and_finite(tmp_path: Path) -> None:
    for share, is_enough in ((0.2, False), (0.7, True)):
        chosen = replace(settings(tmp_path, "y"), test_fraction=share)
        workflow.fit(chosen, tmp_path / str(share))
        model = credence.load(tmp_path / str(share) / "ensemble")
        assert model.is_recalibrated == is_enough
    model = credence.load(tmp_path / "0.2" / "ensemble")
    for broken in (np.nan, np.inf):
        pit = np.append(np.linspace(0.1, 0.9, 60), broken)
        finishing._calibrate(model, Scores({}, {"pit": pit}))
        assert not model.is_recalibrated
    finishing._calibrate(model, Scores({}, {"pit": np.linspace(0.1, 0.9, 60)}))
    assert model.is_recalibrated
