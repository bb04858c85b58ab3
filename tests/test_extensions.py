"""Methods and experiments of other packages, found by entry points."""

import json
from dataclasses import dataclass
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from tools.entry_points import PROJECT, declared

from credence import extensions
from credence.density.posterior import Posterior
from credence.extensions import Registry
from credence.methods import METHODS, Method, resolve
from credence.methods.approximate.deep_ensemble import MAP
from credence.models import MLP, Gaussian, Normal


@dataclass(frozen=True, kw_only=True)
class Strange(MAP):
    """A method of somebody else's."""

    name: ClassVar[str] = "strange"
    summary: ClassVar[str] = "somebody else's"


def entry(name: str, value: str = f"{__name__}:Strange") -> EntryPoint:
    return EntryPoint(name, value, "credence.methods")


def registry(monkeypatch: pytest.MonkeyPatch, *entries: EntryPoint) -> Registry[Any]:
    """Our methods and those of the entry points."""
    monkeypatch.setattr(extensions, "installed", lambda group: entries)
    return Registry("method", "credence.methods", METHODS.is_one, METHODS.own)


def test_a_method_of_another_package_has_its_name(
    monkeypatch: pytest.MonkeyPatch, run: Any
) -> None:
    monkeypatch.setattr(METHODS, "added", {"strange": entry("strange")}, raising=False)
    assert METHODS["strange"] is Strange
    assert "strange" in METHODS
    assert [*METHODS][-1] == "strange"
    data = np.zeros((3, 1)), np.zeros(3)
    method, _ = resolve("strange", Posterior(MLP(1, ()), Gaussian(), Normal(), data))
    assert isinstance(method, Strange)
    status, out, _ = run("methods", "--json")
    assert (status, json.loads(out)["strange"]) == (0, "somebody else's")


def test_nothing_is_imported_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found = registry(monkeypatch, entry("broken", "no_such_package.module:Method"))
    assert "broken" in found
    assert issubclass(found["map"], Method)
    with pytest.raises(extensions.InputError, match=r"'broken' of the package 'no_such_package'"):
        found["broken"]
    told = found.described(lambda method: method.summary)
    assert "cannot be imported (ModuleNotFoundError" in told["broken"]
    assert told["map"] == MAP.summary


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("other", f"{__name__}:Strange", "calls itself 'strange'"),
        ("strange", f"{__name__}:entry", "is no method"),
        ("strange", f"{__name__}:Nothing", "cannot be imported"),
    ],
)
def test_what_is_no_method_is_refused(
    name: str, value: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(extensions.InputError, match=sentence):
        registry(monkeypatch, entry(name, value))[name]


def test_a_name_of_ours_cannot_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    found = registry(monkeypatch, entry("map"), entry("strange"), entry("strange", "x:Y"))
    with pytest.warns(UserWarning, match="left out: the name is taken") as told:
        assert found["strange"] is Strange
    assert [str(each.message).split("'")[1] for each in told] == ["map", "strange"]
    assert found["map"] is MAP


def test_a_method_is_found_by_its_import_path() -> None:
    assert METHODS.find(f"{__name__}:Strange") is Strange
    with pytest.raises(extensions.InputError, match="cannot be imported"):
        METHODS.find("no_such_package:Method")
    with pytest.raises(extensions.InputError, match=r"Unknown method 'nutz'.*Did you mean 'nuts'"):
        METHODS.find("nutz")


def test_declared_experiments_are_those_installed() -> None:
    """What `pip install` wrote; nothing to see where the installation is of another checkout."""
    about = json.loads(metadata.distribution("credence").read_text("direct_url.json") or "{}")
    if about.get("url") != PROJECT.parent.as_uri():
        pytest.skip("Credence is installed from elsewhere.")
    group = "credence.experiments"
    found = {(each.name, each.value) for each in metadata.entry_points(group=group)}
    assert found == {(each.name, each.value) for each in declared(group)}


def test_every_experiment_of_the_papers_is_declared() -> None:
    from credence.compare import EXPERIMENTS

    assert len(EXPERIMENTS) == 29
    assert all(EXPERIMENTS[name].name == name for name in EXPERIMENTS)
    folders = {each.value.split(".")[1] for each in declared("credence.experiments")}
    papers = Path(PROJECT.parent / "credence_papers")
    assert folders == {each.name for each in papers.iterdir() if (each / "__init__.py").exists()}
