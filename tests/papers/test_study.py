"""The one loop, cache and seed rule of all studies, on a study that costs nothing."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pytest

from credence.compare import EXPERIMENTS
from credence.compare.published import Study as Face
from credence.compare.runner import NoWatch
from credence.errors import InputError
from credence_papers.cache import PIECES, Cache, digest, plain
from credence_papers.multilevel.prior_rates import joined
from credence_papers.study import Row, Study, with_seed
from credence_papers.transdimensional.study import means


@dataclass(frozen=True)
class Die:
    """A problem: throws of a die with that many sides."""

    name: str
    sides: int
    description: str = field(default="throws", compare=False)


@dataclass(frozen=True, kw_only=True)
class Dice(Study[Die, int]):
    """A study: the effort is a number of throws."""

    calls: list[tuple[str, int]] = field(default_factory=list, compare=False)

    def run_one(self, problem: Die, effort: int, seed: int, cache: Cache) -> dict[str, Any]:
        def compute() -> dict[str, Any]:
            self.calls.append((problem.name, seed))
            return {"points": effort * (seed % problem.sides)}

        return cache.kept(f"{problem.name}, {seed}", [problem, effort, seed], compute)

    def check(self, problem: Die, effort: int, seed: int) -> None:
        if seed > 20:
            raise InputError("There are 20 dice.")

    def rows(self, problem: Die, effort: int, results: Mapping[int, Any]) -> list[Row]:
        about = {"name": problem.name, "description": problem.description}
        return [with_seed({**about, **each}, seed, results) for seed, each in results.items()]

    def sentence(self, row: Row) -> str:
        return f"{row['name']}: {row['points']}"

    def summary(self, effort: int, rows: list[Row]) -> dict[str, Any]:
        return {"rows": rows}

    def render(self, summary: dict[str, Any]) -> str:
        return "<p>dice</p>"

    def table(self, summary: dict[str, Any]) -> str:
        return "dice"


def dice() -> Dice:
    return Dice(
        name="dice",
        description="Throws",
        problems=(Die("small", 6), Die("large", 20)),
        efforts={"smoke": 1, "laptop": 10, "paper": 100},
        num_seeds={"paper": 3},
    )


class Heard(NoWatch):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


def test_what_is_stopped_finds_its_checkpoints_again(tmp_path: Path) -> None:
    cache, folders = Cache(tmp_path, NoWatch()), []

    def compute(folder: Path) -> dict[str, Any]:
        folders.append(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "half").touch()
        if len(folders) == 1:
            raise KeyboardInterrupt
        return {"half": (folder / "half").exists()}

    with pytest.raises(KeyboardInterrupt):
        cache.resumed("run", [1], compute)
    assert (folders[0] / "half").exists()
    assert (
        cache.resumed("run", [1], compute) == {"half": True} == cache.resumed("run", [1], compute)
    )
    assert folders[0] == folders[1]
    assert len(folders) == 2
    assert not folders[0].exists()
    cache.resumed("run", [2], compute)
    assert folders[2] != folders[0]


def test_results_tell_what_made_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are there tell the commit and machine that made them, not those that find them."""

    def run(name: str, num_seeds: int) -> list[list[str]]:
        monkeypatch.setattr("credence_papers.cache.source_commit", lambda: name)
        monkeypatch.setattr("credence_papers.cache.machine", lambda: f"{name} machine")
        summary = dice().run(tmp_path, num_seeds=num_seeds)
        return [summary["commits"], summary["machines"]]

    run("first", 1)
    both = [["first", "second"], ["first machine", "second machine"]]
    assert run("second", 2) == both
    assert run("third", 2) == both


def test_a_study_goes_on_where_it_stopped(tmp_path: Path) -> None:
    study, watch = dice(), Heard()
    summary = study.run(tmp_path, size="smoke", seed=4, watch=watch)
    assert study.calls == [("small", 4), ("large", 4)]
    assert watch.said == ["small, 4: 0 s", "small: 4", "large, 4: 0 s", "large: 4"]
    assert summary == json.loads((tmp_path / "results.json").read_text())
    assert study.run(tmp_path, size="smoke", seed=4) == summary
    assert len(study.calls) == 2
    retold = replace(study, problems=(Die("small", 6, "told better"),))
    assert retold.run(tmp_path, size="smoke", seed=4)["rows"][0]["description"] == "told better"
    assert len(study.calls) == 2
    replace(study, problems=(Die("small", 7),)).run(tmp_path, size="smoke", seed=4)
    assert len(study.calls) == 3


def test_what_is_there_is_written_before_the_next_problem(tmp_path: Path) -> None:
    """Planted: a problem that fails after another that does not."""
    study = replace(dice(), problems=(Die("small", 6), Die("none", 0), Die("large", 20)))
    with pytest.raises(ZeroDivisionError):
        study.run(tmp_path, size="smoke", seed=4)
    told = json.loads((tmp_path / "results.json").read_text())
    assert [row["name"] for row in told["rows"]] == ["small"]


def test_a_problem_may_have_seeds_of_its_own(tmp_path: Path) -> None:
    class Fewer(Dice):
        def seeds_of(self, problem: Die, size: str) -> int:
            return 1 if problem.name == "small" else super().seeds_of(problem, size)

    study = Fewer(**{f.name: getattr(dice(), f.name) for f in fields(dice())})
    told = study.run(tmp_path, size="paper")
    names = [row["name"] for row in told["rows"]]
    assert names == ["small", "large, seed 0", "large, seed 1", "large, seed 2"]
    assert told["num_seeds"] == 3
    assert len(study.run(tmp_path / "said", size="paper", num_seeds=2)["rows"]) == 4


def test_a_broken_result_is_run_again(tmp_path: Path) -> None:
    study = dice()
    study.run(tmp_path, problems=("small",))
    (path,) = (tmp_path / "runs").iterdir()
    assert json.loads(path.read_text())["settings"][0] == {"is": "Die", "name": "small", "sides": 6}
    path.write_text("{")
    study.run(tmp_path, problems=("small",))
    assert study.calls == [("small", 0)] * 2


def test_seeds_follow_one_another_and_are_told_apart(tmp_path: Path) -> None:
    study = dice()
    summary = study.run(tmp_path, seed=2, num_seeds=2, problems=("large",))
    assert study.calls == [("large", 2), ("large", 3)]
    assert [row["name"] for row in summary["rows"]] == ["large, seed 2", "large, seed 3"]
    assert summary["num_seeds"] == 2
    assert study.run(tmp_path, size="paper", problems=("large",))["num_seeds"] == 3


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"size": "huge"}, "Unknown size"),
        ({"problems": ("smal",)}, "Did you mean 'small'"),
        ({"seed": -1}, "--seed must be"),
        ({"num_seeds": 0}, "--seeds must be >= 1"),
        ({"num_seeds": 22}, "There are 20 dice"),
    ],
)
def test_bad_input_is_refused_before_anything_is_run(
    settings: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    study = dice()
    with pytest.raises(InputError, match=sentence):
        study.run(tmp_path / "new", **settings)
    assert not study.calls
    assert not (tmp_path / "new").exists()


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match="holds other files"):
        dice().run(tmp_path)


def test_pieces_alone_are_gone_on_with(tmp_path: Path) -> None:
    dice().run(tmp_path / "first", size="smoke")
    (tmp_path / "second").mkdir()
    (tmp_path / "first" / PIECES).rename(tmp_path / "second" / PIECES)
    study = dice()
    study.run(tmp_path / "second", size="smoke")
    assert not study.calls


def test_the_folder_of_another_study_is_refused(tmp_path: Path) -> None:
    dice().run(tmp_path, size="smoke")
    with pytest.raises(InputError, match=r"holds the experiment 'dice'.*that of 'coins': choose"):
        replace(dice(), name="coins").run(tmp_path, size="smoke")


def test_what_has_no_plain_form_is_refused() -> None:
    assert plain({"f": plain, "x": (1, 2.5, None)}) == {
        "f": "credence_papers.cache.plain",
        "x": [1, 2.5, None],
    }
    with pytest.raises(TypeError, match="no plain form"):
        plain(lambda seed: seed)
    with pytest.raises(TypeError, match="no plain form"):
        plain(object())


STUDIES = {name: each for name, each in EXPERIMENTS.items() if isinstance(each, Study)}


@pytest.mark.parametrize("name", STUDIES)
def test_every_published_study_has_plain_settings(name: str) -> None:
    study = STUDIES[name]
    assert isinstance(study, Face)
    problems = [digest([each, study.effort(each, "paper")]) for each in study.problems]
    assert len(set(problems)) == len(problems)
    json.dumps(study.about())


def test_another_process_finds_the_same_names() -> None:
    """Hashes of Python are not the same in two processes; ours are."""
    script = (
        "from credence_papers.transdimensional.tables import XOR\n"
        "from credence_papers.cache import digest\n"
        "print(digest(XOR.problems))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout.strip() == digest(STUDIES["transdimensional_xor"].problems), found.stderr


def test_means_over_seeds_have_standard_errors() -> None:
    rows = [
        {
            "problem": "a",
            "chains": 4,
            "published": {"rmse": 3.0},
            "scores": {"rmse": value, "nll": None},
        }
        for value in (1.0, 3.0)
    ]
    (found,) = means(rows)
    assert found["scores"] == {"rmse": 2.0, "nll": None}
    assert found["standard_errors"] == {"rmse": pytest.approx(1.0), "nll": None}
    assert means(rows[:1]) == []


def test_curves_of_several_seeds_are_joined() -> None:
    runs = [
        {"means": [1.0, 2.0], "errors": [0.3, 0.0]},
        {"means": [3.0, 2.0], "errors": [0.4, 0.0]},
    ]
    found = joined(runs)
    assert found["means"] == [2.0, 2.0]
    assert found["errors"] == [pytest.approx(0.25), 0.0]
