"""Folders and tables that are damaged or hostile: see `fuzz`."""

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import ANY

import pytest
from fuzz.trial import Fuzz

from credence import netcdf, storage
from credence.cli import messages


@pytest.mark.rotates(3)
@pytest.mark.parametrize("start", [0, 100, 200])
def test_mutations_are_refused_or_change_nothing(start: int) -> None:
    """They run in a process of their own, which may take 1 GB more than it has when they begin."""
    paths = [str(Path(__file__).parent), *sys.path]
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", "--mutations", "100", "--start", str(start)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_planted_mistakes_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "console", messages.console)
    monkeypatch.setattr(netcdf, "MOST_SECONDS", netcdf.MOST_SECONDS)
    fuzz = Fuzz(tmp_path)

    def faults() -> str:
        results = [outcome.result for outcome in fuzz.outcomes(100)]
        return "\n".join(result for result in results if result.startswith("FAULT"))

    assert faults() == ""
    with monkeypatch.context() as planted:
        planted.setattr(storage, "_content_sha256", lambda _: ANY)
        for room in ("runs.folder", "ensembles.saved", "estimators.storage"):
            planted.setattr(f"credence.{room}.require_sha256", lambda *_: None)
        assert "differs silently" in faults()
    with monkeypatch.context() as planted:
        planted.setattr(storage, "build", lambda kind, value: value)
        assert "Traceback" in faults()
