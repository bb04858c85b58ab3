"""The command line as scripts rely on it: status, --json, files, and a sentence for bad input."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning
from tools.earlier_format import run_as_format_1

import credence
from credence import environment
from credence.cli import messages

QUICK = ["--hidden", "4", "--num-draws", "60", "--method", "hmc"]


pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)


@pytest.fixture(autouse=True)
def _same_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands run inside the test process, where JAX is set up already."""
    monkeypatch.setattr(environment, "configure", lambda **_: None)


def houses(num_rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    area = rng.uniform(40, 200, num_rows)
    city = rng.choice(["Bern", "Basel", "Zug"], num_rows)
    price = 3 * area + 50 * (city == "Zug") + rng.normal(0, 10, num_rows)
    return pd.DataFrame({"area": area, "city": city, "price": price.round(2)})


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished RUN folder of `houses`, with its table beside it."""
    from credence.runs import workflow
    from credence.runs.folder import FitSettings

    folder = tmp_path_factory.mktemp("houses")
    houses().to_csv(folder / "houses.csv", index=False)
    settings = FitSettings(
        table=str(folder / "houses.csv"), target="price", hidden=(4,), num_draws=60, method="hmc"
    )
    workflow.fit(settings, folder / "run")
    return folder


@pytest.mark.rotates(3)
def test_fit_writes_the_run_folder_and_json_alone_on_standard_output(run, tmp_path: Path) -> None:
    houses().to_csv(tmp_path / "h.csv", index=False)
    folder = tmp_path / "run"
    status, out, err = run(
        "fit", tmp_path / "h.csv", "--target", "price", *QUICK, "--out", folder, "--json"
    )
    summary = json.loads(out)
    assert status == (3 if summary["converged"] is False else 0)
    assert {"task", "method", "n_train", "n_test", "rmse", "nll", "crps", "coverage_95"} <= set(
        summary
    )
    assert {"converged", "max_rhat_function", "min_ess_function", "seconds"} <= set(summary)
    assert {"likelihood_evaluations", "gradient_evaluations"} <= set(summary)
    assert (summary["task"], summary["n_train"], summary["n_test"]) == ("regression", 48, 12)
    assert summary["rmse"] < 0.5 * houses()["price"].std()
    written = {path.name for path in folder.iterdir()}
    assert {"manifest.json", "metrics.json", "ensemble", "report.html"} <= written
    assert "checkpoint" not in written
    assert "report.html" in err


@pytest.mark.parametrize("method", ["smc", pytest.param("mlsmc", marks=pytest.mark.slow)])
def test_evidence_is_in_units_of_the_target(run, tmp_path: Path, method: str) -> None:
    """Prices in other units have the same fit and another density."""
    found = []
    for scale in (1, 1000):
        table = houses().assign(price=scale * houses()["price"])
        table.to_csv(tmp_path / "h.csv", index=False)
        words = ["--method", method, "--hidden", "8", "--num-draws", "60", "--num-chains", "2"]
        out = tmp_path / f"run-{scale}"
        _, shown, err = run(
            "fit", tmp_path / "h.csv", "--target", "price", *words, "--out", out, "--json"
        )
        found.append(json.loads(shown))
        assert "Log evidence -" in err
        assert "Log evidence" in (out / "report.html").read_text(encoding="utf-8")
    in_units, in_thousands = (metrics["log_evidence"] for metrics in found)
    np.testing.assert_allclose(in_units - in_thousands, 48 * np.log(1000), rtol=1e-3)
    assert 0 < found[0]["log_evidence_error"] < 2


def test_predict_has_the_promised_columns(run, fitted: Path, tmp_path: Path) -> None:
    new = houses(10).drop(columns="price")[["city", "area"]].assign(extra=1)
    new.loc[0, "city"] = "Genf"
    new.to_csv(tmp_path / "new.csv", index=False)
    status, _, err = run(
        "predict", fitted / "run", tmp_path / "new.csv", "--out", tmp_path / "p.csv"
    )
    found = pd.read_csv(tmp_path / "p.csv")
    assert status == 0
    assert list(found) == ["row", "mean", "std", "lower_95", "upper_95", "outside"]
    assert found["outside"].tolist() == [True] + 9 * [False]
    assert found["row"].tolist() == list(range(1, 11))
    assert (found["lower_95"] < found["mean"]).all()
    assert (found["mean"] < found["upper_95"]).all()
    assert "extra" in err
    assert "city" in err, "an unseen category is said"


def test_predictions_can_be_joined_by_an_id(run, fitted: Path, tmp_path: Path) -> None:
    """Ids stand there as they stood in the table; one that is a feature stays a feature."""
    ids = ["007", "12345678901234567890", "=1+1", "-5", "NA"]
    houses(5).assign(id=ids, mean=0).to_csv(tmp_path / "new.csv", index=False)
    words = ("predict", fitted / "run", tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    status, _, err = run(*words, "--id", "id")
    found = pd.read_csv(tmp_path / "p.csv", dtype={"id": str}, keep_default_na=False)
    assert status == 0
    assert list(found) == ["id", "mean", "std", "lower_95", "upper_95", "outside"]
    assert found["id"].tolist() == ["007", "12345678901234567890", "'=1+1", "-5", "NA"]
    assert "Ignored 1 column: 'mean'" in err
    assert run(*words, "--id", "area")[0] == 0
    by_area = pd.read_csv(tmp_path / "p.csv")
    np.testing.assert_allclose(by_area["area"], houses(5)["area"])
    assert by_area["mean"].equals(found["mean"])
    assert len(str(found["mean"][0]).replace(".", "")) <= 7
    assert run(*words, "--coverage", "0.5")[0] == 0
    assert {"lower_50", "upper_50"} < set(pd.read_csv(tmp_path / "p.csv"))
    for name, word in (("idd", "Did you mean 'id'"), ("mean", "rename")):
        status, _, err = run(*words, "--id", name)
        assert (status, word in err) == (2, True)


def test_predictions_go_to_standard_output(run, fitted: Path, tmp_path: Path) -> None:
    words = ("predict", fitted / "run", fitted / "houses.csv", "--out")
    assert run(*words, tmp_path / "p.csv")[0] == 0
    for name in ("-", "/dev/stdout"):
        status, out, err = run(*words, name)
        assert (status, out) == (0, (tmp_path / "p.csv").read_text())
        assert "Wrote 60 predictions to standard output." in err
        status, out, err = run(*words, name, "--json")
        assert (status, out, "share standard output" in err) == (2, "", True)


def test_predict_never_replaces_what_is_no_file(run, fitted: Path, tmp_path: Path) -> None:
    """It is refused before anything is computed; a link is written through."""
    os.mkfifo(tmp_path / "pipe")
    words = ("predict", fitted / "run", fitted / "houses.csv", "--out")
    for name in (tmp_path / "pipe", tmp_path, "/dev/null"):
        status, _, err = run(*words, name)
        assert (status, "not a file" in err) == (2, True)
    (tmp_path / "link").symlink_to("p.csv")
    assert run(*words, tmp_path / "link")[0] == 0
    assert (tmp_path / "link").is_symlink()
    assert len(pd.read_csv(tmp_path / "p.csv")) == 60


@pytest.mark.parametrize("name", ["pred[/b]", "[bold]", ":car:", "{out}", "b\\", "[red"])
def test_names_of_files_are_no_markup(run, fitted: Path, tmp_path: Path, name: str) -> None:
    frame = houses(3).assign(**{f"{name}column": 1})
    (tmp_path / name).mkdir(parents=True)
    table = tmp_path / name / "new.csv"
    frame.to_csv(table, index=False)
    status, _, err = run("predict", fitted / "run", table, "--out", tmp_path / name / name)
    assert status == 0
    assert f"to {tmp_path / name / name}." in err
    assert f"Ignored 1 column: '{name}column'." in err
    status, _, err = run("predict", fitted / "run", tmp_path / name / f"{name}.csv")
    assert (status, f"{name}.csv'" in err) == (2, True)


@pytest.mark.parametrize("name", ["[/b]", "[bold]x", ":car:", "x\\", "{0}"])
def test_values_in_sentences_and_tables_are_no_markup(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """They stand there as they are, in the style of their sentence."""
    listing = Table(name, title=name)
    listing.add_row(name)
    messages.console.print(listing)
    messages.say("Wrote [bold]{}[/bold]: {:.1f} s, {}.", name, 1.25, name)
    messages.warn(name)
    messages.complain(name)
    err = capsys.readouterr().err
    assert err.count(name) == 3 + 2 + 2
    assert f"Wrote {name}: 1.2 s, {name}." in err
    assert messages.filled("a [bold]{}[/bold]", name).spans[0].style.bold


def test_names_that_look_like_numbers_keep_their_zeros(run, tmp_path: Path) -> None:
    """Zip codes, declared; a later table with other zip codes does not change those known."""
    zips, folder = np.resize(["01234", "1234", "00007"], 60), tmp_path / "run"
    frame = houses().assign(city=zips, price=lambda f: f["price"] + 500 * (zips == "01234"))
    frame.to_csv(tmp_path / "h.csv", index=False)
    words = ["--target", "price", "--categorical", "city", "--method", "map", "--hidden", "0"]
    status, _, err = run("fit", tmp_path / "h.csv", *words, "--out", folder)
    assert status in (0, 3), err
    found = []
    for name, last in (("same", "1234"), ("strange", "K1A")):
        rows = pd.DataFrame({"area": 100.0, "city": ["01234", "1234", "00007", last]})
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
        out = tmp_path / f"{name}-predicted.csv"
        _, _, err = run("predict", folder, tmp_path / f"{name}.csv", "--out", out)
        found.append(pd.read_csv(out)["mean"])
    np.testing.assert_array_equal(found[0][:3], found[1][:3])
    assert found[0][0] > found[0][1] + 300
    assert "'K1A'" in err


@pytest.mark.rotates(3)
def test_classification_columns(run, tmp_path: Path) -> None:
    frame = houses().assign(dear=lambda f: np.where(f["price"] > 360, "yes", "no"))
    frame.drop(columns="price").to_csv(tmp_path / "h.csv", index=False)
    folder = tmp_path / "run"
    status, out, _ = run(
        "fit", tmp_path / "h.csv", "--target", "dear", *QUICK, "--out", folder, "--json"
    )
    summary = json.loads(out)
    assert status in (0, 3)
    assert {"accuracy", "nll", "ece", "brier", "auroc"} <= set(summary)
    assert summary["accuracy"] > 0.8
    run("predict", folder, tmp_path / "h.csv", "--out", tmp_path / "p.csv")
    found = pd.read_csv(tmp_path / "p.csv")
    entropies = ["entropy_total", "entropy_aleatoric", "entropy_epistemic"]
    assert list(found)[1:-1] == ["label", "probability_no", "probability_yes", *entropies]
    assert np.allclose(found["probability_no"] + found["probability_yes"], 1)
    gap = found["entropy_total"] - found["entropy_aleatoric"] - found["entropy_epistemic"]
    assert gap.abs().max() < 1e-5


def test_report_can_be_written_again(run, fitted: Path) -> None:
    (fitted / "run" / "report.html").unlink()
    status, out, _ = run("report", fitted / "run", "--json")
    assert status == 0
    assert Path(json.loads(out)["report"]).stat().st_size > 10_000


def test_resuming_a_finished_run_reads_it(run, fitted: Path) -> None:
    status, out, _ = run("resume", fitted / "run", "--json")
    assert status in (0, 3)
    assert json.loads(out)["n_train"] == 48


@pytest.mark.parametrize("command", ["methods", "datasets", "doctor"])
def test_listings(run, command: str) -> None:
    status, out, _ = run(command)
    assert status == 0
    assert out.strip()
    status, out, _ = run(command, "--json")
    assert status == 0
    assert json.loads(out)


def test_the_list_of_methods_says_which_read_from_disk(run) -> None:
    words = [line.split() for line in run("methods")[1].splitlines()]
    told = {line[1]: "yes" in line for line in words if len(line) > 1}
    known = {"nuts": True, "ces": True, "smc": False, "stacking": False}
    assert {name: told[name] for name in known} == known


def test_the_choice_of_a_method_has_no_settings(run) -> None:
    status, out, _ = run("methods", "auto")
    assert status == 0
    assert "see `credence methods stacking`" in " ".join(out.split())
    status, out, _ = run("methods", "auto", "--json")
    assert (status, json.loads(out)) == (0, {})


def test_it_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "credence.cli", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.strip() == credence.__version__


BAD_TABLES = {
    "empty file": ("", "empty"),
    "no such column": ("a,pric\n1,2\n2,3\n3,4\n", "pric"),
    "one row": ("a,price\n1,2\n", "row"),
    "constant target": ("a,price\n1,2\n2,2\n3,2\n4,2\n", "constant"),
    "infinity": ("a,price\n1,2\ninf,3\n3,4\n4,5\n", "infin"),
    "text among numbers": ("a,price\n1,2\n2,3\nmany,4\n4,5\n5,6\n", "many"),
    "duplicate columns": ("a,a,price\n1,2,3\n2,3,4\n", "'a'"),
    "target never known": ("a,price\n1,\n2,\n3,\n", "price"),
    "one example of a class": ("a,price\n1,x\n2,x\n3,x\n4,y\n", "y"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_table(run, tmp_path: Path, case: str) -> None:
    content, word = BAD_TABLES[case]
    (tmp_path / "t.csv").write_text(content)
    status, out, err = run(
        "fit", tmp_path / "t.csv", "--target", "price", "--out", tmp_path / "run"
    )
    assert status == 2, err
    assert word in err
    assert out == ""
    assert not (tmp_path / "run").exists(), "nothing is written"


def test_not_a_table(run, tmp_path: Path) -> None:
    (tmp_path / "t.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    status, _, err = run("fit", tmp_path / "t.png", "--target", "price", "--out", tmp_path / "run")
    assert status == 2
    assert "t.png" in err


BAD_SETTINGS = {
    "unknown method": (["--method", "nutz"], "nuts"),
    "negative width": (["--hidden", "-3"], "hidden"),
    "no number": (["--hidden", "wide"], "hidden"),
    "unknown activation": (["--activation", "tahn"], "tanh"),
    "no draws": (["--num-draws", "0"], "num-draws"),
    "no chains": (["--num-chains", "0"], "num-chains"),
    "all rows held out": (["--test-fraction", "1"], "test-fraction"),
    "no time": (["--max-seconds", "0"], "max-seconds"),
    "negative seed": (["--seed", "-1"], "seed"),
    "unknown prior": (["--prior", "unti"], "unit"),
    "unknown noise": (["--likelihood", "studnet_t"], "student_t"),
    "unknown task": (["--task", "ranking"], "ranking"),
}


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_bad_setting(run, tmp_path: Path, case: str) -> None:
    words, word = BAD_SETTINGS[case]
    houses().to_csv(tmp_path / "h.csv", index=False)
    status, _, err = run(
        "fit", tmp_path / "h.csv", "--target", "price", *words, "--out", tmp_path / "run"
    )
    assert status == 2, err
    assert word in err
    assert not (tmp_path / "run").exists()


def test_target_is_suggested_and_needed(run, tmp_path: Path) -> None:
    houses().to_csv(tmp_path / "h.csv", index=False)
    status, _, err = run("fit", tmp_path / "h.csv", "--target", "prize", "--out", tmp_path / "run")
    assert (status, "price" in err) == (2, True)
    status, _, err = run("fit", tmp_path / "h.csv", "--out", tmp_path / "run")
    assert (status, "--target COLUMN, one of 'area', 'city', 'price'" in err) == (2, True)
    status, _, err = run("fit", "houzes.csv", "--out", tmp_path / "run")
    assert (status, "no file 'houzes.csv'" in err) == (2, True)
    status, _, err = run("fit", "mnist", "--out", tmp_path / "run")
    assert (status, "images, not a table" in err) == (2, True)


def test_folders_that_are_no_runs(run, fitted: Path, tmp_path: Path) -> None:
    table = fitted / "houses.csv"
    status, _, err = run("predict", tmp_path / "nothing", table)
    assert (status, "There is no folder" in err) == (2, True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "manifest.json").write_text('{"format": 99, "credence": "9.9"}')
    status, _, err = run("predict", tmp_path / "other", table)
    assert (status, "9.9" in err) == (2, True)
    (tmp_path / "other" / "manifest.json").write_text('{"format": 1, "sett')
    status, _, err = run("predict", tmp_path / "other", table)
    assert (status, "manifest.json" in err) == (2, True)
    status, _, err = run("fit", table, "--target", "price", "--out", fitted / "run")
    assert (status, "already" in err) == (2, True)
    status, _, err = run("fit", table, "--target", "price", "--out", fitted)
    assert (status, "other files" in err) == (2, True)
    status, _, err = run("fit", table, "--target", "price", "--out", table)
    assert (status, "is a file" in err) == (2, True)


def test_half_written_run_asks_for_resume(run, fitted: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    from credence.runs.folder import read_manifest

    half = tmp_path / "half"
    shutil.copytree(fitted / "run", half)
    manifest = read_manifest(half)
    replace(manifest, status="running").write(half)
    status, _, err = run("predict", half, fitted / "houses.csv")
    assert (status, "resume" in err) == (2, True)
    (half / "ensemble" / "ensemble.npz").unlink()
    manifest.write(half)
    status, _, err = run("predict", half, fitted / "houses.csv")
    assert (status, "ensemble" in err) == (2, True)


def test_a_run_that_predicts_several_targets_is_refused(run, fitted: Path, tmp_path: Path) -> None:
    from credence.runs.folder import read_manifest
    from credence.storage import read_json, write_json

    other = tmp_path / "run"
    shutil.copytree(fitted / "run", other)
    path = other / "ensemble" / "estimator.json"
    write_json(path, read_json(path, dict) | {"y_ndim": 2})
    read_manifest(other).ended(other, "done").write(other)
    status, _, err = run("predict", other, fitted / "houses.csv")
    assert (status, "it predicts several targets" in " ".join(err.split())) == (2, True)


READERS = {
    "manifest.json": ("predict", "report", "resume"),
    "metrics.json": ("report", "resume"),
    "evaluation.json": ("report", "resume"),
    "evaluation.npz": ("report",),
    "ensemble/ensemble.json": ("predict", "report"),
    "ensemble/ensemble.npz": ("predict",),
    "ensemble/estimator.json": ("predict", "report"),
}
"""Files of a RUN, and the commands that read them."""


def spoil(path: Path, how: str) -> None:
    """Truncated, or one digit another one, where numbers are."""
    content = path.read_bytes()
    if how == "truncated":
        path.write_bytes(content[:500])
        return
    at = len(content) // 2
    while not content[at : at + 1].isdigit():
        at += 1
    path.write_bytes(content[:at] + str(9 - int(content[at : at + 1])).encode() + content[at + 1 :])


@pytest.mark.parametrize("how", ["truncated", "changed"])
@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_named_and_never_believed(
    run, fitted: Path, tmp_path: Path, name: str, how: str
) -> None:
    damaged = tmp_path / "run"
    shutil.copytree(fitted / "run", damaged)
    spoil(damaged / name, how)
    for command in READERS[name]:
        table = (fitted / "houses.csv", "--out", tmp_path / "p.csv") if command == "predict" else ()
        status, out, err = run(command, damaged, *table)
        assert (status, out) == (2, ""), err
        assert Path(name).name in err


def test_folders_of_format_1_are_read(run, fitted: Path, tmp_path: Path) -> None:
    earlier = tmp_path / "run"
    shutil.copytree(fitted / "run", earlier)
    run_as_format_1(earlier)
    found = []
    for folder in (fitted / "run", earlier):
        words = ("predict", folder, fitted / "houses.csv", "--out", tmp_path / "p.csv")
        assert run(*words)[0] == 0
        found.append((tmp_path / "p.csv").read_text())
        _, out, _ = run("resume", folder, "--json")
        found.append(json.loads(out) | {"run": ""})
        assert run("report", folder)[0] == 0
        found.append((folder / "report.html").read_text())
    assert found[:3] == found[3:]
    shutil.copytree(fitted / "run", tmp_path / "mixed")
    shutil.copy(earlier / "manifest.json", tmp_path / "mixed")
    status, _, err = run("report", tmp_path / "mixed")
    assert status != 0
    assert "it has no checksums, and is of another folder" in " ".join(err.split())


def test_a_folder_is_fitted_by_one_process_at_a_time(run, fitted: Path, tmp_path: Path) -> None:
    from credence.runs.folder import read_manifest
    from credence.storage import locked

    words = ("fit", fitted / "houses.csv", "--target", "price", *QUICK, "--out", tmp_path / "run")
    with locked(tmp_path / "run"):
        status, _, err = run(*words)
        assert (status, "is in use: another process is fitting there" in err) == (2, True)
        read_manifest(fitted / "run").started().write(tmp_path / "run")
        status, _, err = run("resume", tmp_path / "run")
        assert (status, "is in use: another process is fitting there" in err) == (2, True)
    (tmp_path / "run" / "manifest.json").unlink()
    free = ("--hidden", "4", "--method", "map", "--out", tmp_path / "run")
    assert run(*words[:4], *free)[0] == 0, "it is free"


def test_predict_refuses_missing_columns_and_bad_coverage(
    run, fitted: Path, tmp_path: Path
) -> None:
    houses().drop(columns=["price", "city"]).to_csv(tmp_path / "new.csv", index=False)
    status, _, err = run("predict", fitted / "run", tmp_path / "new.csv")
    assert (status, "city" in err) == (2, True)
    status, _, err = run("predict", fitted / "run", fitted / "houses.csv", "--coverage", "95")
    assert (status, "coverage" in err) == (2, True)


def test_no_write_permission(run, fitted: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    status, _, err = run(
        "fit", fitted / "houses.csv", "--target", "price", "--out", blocked / "run"
    )
    assert (status, str(blocked) in err) == (2, True)
    target = blocked / "p.csv"
    status, _, err = run("predict", fitted / "run", fitted / "houses.csv", "--out", target)
    assert (status, "Could not write" in err) == (2, True)


def test_the_manifest_repeats_the_run(fitted: Path) -> None:
    from credence.runs.folder import read_manifest

    command = read_manifest(fitted / "run").settings.command
    assert command.startswith("credence fit ")
    assert "--target price --method hmc --hidden 4 --num-draws 60" in command


def test_predict_never_overwrites_its_own_table(run, fitted: Path) -> None:
    table = fitted / "houses.csv"
    before = table.read_bytes()
    status, _, err = run("predict", fitted / "run", table, "--out", table)
    assert (status, "the table itself" in err) == (2, True)
    assert table.read_bytes() == before


def test_the_verdict_is_in_the_metrics(fitted: Path) -> None:
    numbers = json.loads((fitted / "run" / "metrics.json").read_text())
    assert numbers["verdict"] in ("trust", "care", "cannot_tell", "do_not_trust")
    assert numbers["stopped"] == "finished"
    assert bool(numbers["verdict_reasons"]) == (numbers["verdict"] != "trust")


def test_the_seconds_add_up_to_their_total(fitted: Path) -> None:
    seconds = json.loads((fitted / "run" / "metrics.json").read_text())["seconds"]
    total = seconds.pop("total")
    assert {"read", "compile", "warmup", "sample", "judge", "write"} <= set(seconds)
    assert sum(seconds.values()) == pytest.approx(total, abs=0.0005 * (len(seconds) + 1))
    page = (fitted / "run" / "report.html").read_text(encoding="utf-8")
    assert "judging" in page.split("Time</dt>")[1].split("</dd>")[0]


def test_an_interrupted_fit_names_the_command_that_goes_on(
    run, fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from credence.errors import Interrupted
    from credence.runs import workflow

    def stopped(*args: object, **kwargs: object) -> None:
        raise Interrupted("Stopped in phase 'warmup'.")

    monkeypatch.setattr(workflow, "fit", stopped)
    words = ("fit", fitted / "houses.csv", "--target", "price", "--out", tmp_path / "new")
    status, _, err = run(*words)
    assert status == 130
    assert f"credence resume {tmp_path / 'new'}" in err.replace("\n", "")


@pytest.mark.rotates(3)
def test_columns_can_be_dropped(run, tmp_path: Path) -> None:
    frame = houses().assign(id=range(1000, 1060), built="2005-07-18")
    frame.to_csv(tmp_path / "h.csv", index=False)
    words = ("fit", tmp_path / "h.csv", "--target", "price", *QUICK, "--out", tmp_path / "run")
    status, _, err = run(*words)
    assert (status, "built" in err) == (2, True)
    status, _, err = run(*words, "--drop", "built")
    assert status in (0, 3)
    assert "'id' numbers the rows" in err
    status, _, err = run(*words[:-1], tmp_path / "other", "--drop", "bulit")
    assert (status, "built" in err) == (2, True)


def test_a_label_only_in_the_test_is_refused(run, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": range(100), "y": ["a"] * 50 + ["b"] * 2 + ["c"] * 48})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for seed in range(6):
        status, _, err = run(
            *("fit", tmp_path / "t.csv", "--target", "y", "--method", "map", "--hidden", "2"),
            *("--test-fraction", "0.985", "--seed", seed, "--out", tmp_path / f"run-{seed}"),
        )
        assert status in (0, 2), err
        if status == 2:
            return
    pytest.fail("no split left a label to the test alone")


def test_what_a_method_refuses_leaves_the_folder_free(run, tmp_path: Path) -> None:
    pd.DataFrame({"x": np.arange(30.0), "y": np.arange(30.0) % 7}).to_csv(tmp_path / "t.csv")
    words = ("fit", tmp_path / "t.csv", "--target", "y", "--hidden", "2", "--out", tmp_path / "run")
    status, _, err = run(*words, "--method", "laplace", "--prior", "hierarchical")
    assert (status, "needs a Gaussian prior" in err) == (2, True)
    assert not (tmp_path / "run" / "manifest.json").exists()
    status, _, err = run(*words, "--method", "map")
    assert status == 0, err


def test_an_interrupted_run_keeps_its_draws_and_can_go_on(
    run, fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from credence.engine.phases import Phase

    words = ("fit", fitted / "houses.csv", "--target", "price", *QUICK, "--json")
    whole = json.loads((fitted / "run" / "metrics.json").read_text())
    save = Phase.save

    def interrupt(phase: Phase) -> None:
        save(phase)
        if phase.folder is not None and phase.folder.name.endswith("-sample"):
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Phase, "save", interrupt)
    _, out, err = run(*words, "--out", tmp_path / "part")
    part = json.loads(out)
    assert (part["stopped"], part["num_draws"] < 60) == ("interrupt", True)
    assert "resume" in err
    monkeypatch.undo()
    monkeypatch.setattr(environment, "configure", lambda **_: None)
    _, out, _ = run("resume", tmp_path / "part", "--json")
    assert json.loads(out)["rmse"] == whole["rmse"]


@pytest.mark.rotates(3)
def test_max_width_is_for_the_method_that_changes_it(run, tmp_path: Path) -> None:
    houses().to_csv(tmp_path / "h.csv", index=False)
    words = ["fit", tmp_path / "h.csv", "--target", "price", "--max-width", "6"]
    quick = ["--num-draws", "20", "--num-chains", "2", "--out", tmp_path / "run", "--json"]
    status, out, _ = run(*words, *quick, "--method", "transdimensional")
    assert status in (0, 3)
    assert json.loads(out)["method"] == "transdimensional"
    for method, width in (("nuts", "6"), ("transdimensional", "0")):
        status, _, err = run(*words[:-1], width, "--method", method, "--out", tmp_path / "no")
        assert status == 2
        assert "--max-width" in err
    found = json.loads(out)["architecture"]
    assert sum(found["width"]["probabilities"]) == pytest.approx(1)
    assert "How large should the network be?" in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.slow
def test_max_depth_lets_layers_come_and_go(run, tmp_path: Path) -> None:
    houses().head(20).to_csv(tmp_path / "h.csv", index=False)  # few rows leave the depth open
    words = ["fit", tmp_path / "h.csv", "--target", "price", "--hidden", "3", "--max-depth", "2"]
    quick = ["--num-draws", "300", "--num-chains", "2", "--out", tmp_path / "run", "--json"]
    _, out, err = run(*words, *quick, "--method", "transdimensional")
    found = json.loads(out)["architecture"]
    assert found["depth"]["widths"] == [1, 2]
    assert "p(depth given the data)" in err
    status, _, err = run("predict", tmp_path / "run", tmp_path / "h.csv", "--out", tmp_path / "p")
    assert status == 0
    status, _, err = run(*words, "--method", "nuts", "--out", tmp_path / "no")
    assert status == 2
    assert "--max-depth" in err


def test_a_method_is_told_its_own_settings(run, tmp_path: Path) -> None:
    """Those of its parts too; the command in the report repeats them."""
    houses().to_csv(tmp_path / "h.csv", index=False)
    words = ["fit", tmp_path / "h.csv", "--target", "price", "--hidden", "2", "--method"]
    told = ["--set", "num_members=2", "--set", "training.max_epochs=20"]
    status, _, err = run(*words, "deep_ensemble", *told, "--out", tmp_path / "run")
    assert status == 0, err
    settings = json.loads((tmp_path / "run" / "ensemble" / "ensemble.json").read_text())
    settings = settings["provenance"]["settings"]
    assert (settings["num_members"], settings["training"]["max_epochs"]) == (2, 20)
    from credence.runs.folder import read_manifest

    command = read_manifest(tmp_path / "run").settings.command
    assert "--method deep_ensemble --set num_members=2 --set training.max_epochs=20" in command
    for bad, sentence in (
        ([*words, "hmc", "--set", "draws=5"], "credence methods hmc"),
        ([*words, "auto", "--set", "num_draws=5"], "name one with --method"),
        ([*words, "deep_ensemble", "--num-draws", "5"], "'deep_ensemble' has no num_draws"),
    ):
        status, _, err = run(*bad, "--out", tmp_path / "none")
        assert (status, sentence in err) == (2, True), err
        assert not (tmp_path / "none").exists()


def test_the_settings_of_a_method_are_listed(run) -> None:
    status, out, _ = run("methods", "deep_ensemble", "--json")
    assert status == 0
    assert json.loads(out)["training.patience"]["default"] == 5
    assert "without improvement" in json.loads(out)["training.patience"]["meaning"]
    assert run("methods", "deep_ensembel")[0] == 2
