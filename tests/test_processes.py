"""Processes of ours import what Credence needs from where it is, and nothing of the user's."""

import subprocess
from pathlib import Path

import pytest
from tools.earlier_format import as_format_1
from tools.ensembles import make_ensemble
from tools.experiment_samples import cell

from credence import processes
from credence.compare import runner
from credence.ensembles.ensemble import Ensemble

HOSTILE = "from pathlib import Path\nPath(__file__).with_suffix('.executed').touch()\n"


@pytest.fixture
def users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with files that have the names of libraries."""
    folder = tmp_path / "users"
    folder.mkdir()
    for name in ("h5py", "jax", "json", "numpy"):
        (folder / f"{name}.py").write_text(HOSTILE)
    monkeypatch.chdir(folder)
    return folder


def test_opening_a_folder_of_format_1_executes_nothing_of_the_current_folder(
    users_folder: Path, tmp_path: Path
) -> None:
    make_ensemble().save(tmp_path / "saved")
    as_format_1(tmp_path / "saved")
    Ensemble.load(tmp_path / "saved")
    assert not list(users_folder.glob("*.executed"))


def test_a_cell_executes_nothing_of_the_current_folder(
    users_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that only tells where it lies stands in for the real one."""
    home = tmp_path / "home"
    (home / "credence" / "compare").mkdir(parents=True)
    for place in ("__init__.py", "compare/__init__.py"):
        (home / "credence" / place).touch()
    told = "import json, sys\nopen(sys.argv[2], 'w').write(json.dumps({'error': __file__}))\n"
    (home / "credence" / "compare" / "cell.py").write_text(told)
    monkeypatch.setattr(processes, "HOME", home)
    outcome = runner.run_cell(cell("a"), tmp_path / "out", 1)
    assert outcome.result["error"] == str(home / "credence" / "compare" / "cell.py")
    assert not list(users_folder.glob("*.executed"))


def test_credence_is_found_where_only_the_current_folder_has_it(
    users_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies beside it comes last."""
    (users_folder / "credence").mkdir()
    (users_folder / "credence" / "__init__.py").touch()
    told = "import json, sys\nprint(__name__, sys.argv[1], json.__file__)\n"
    (users_folder / "credence" / "own.py").write_text(told)
    monkeypatch.setattr(processes, "HOME", users_folder)
    command = processes.module_command("credence.own", "seen")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    name, argument, place = done.stdout.split()
    assert (name, argument) == ("__main__", "seen")
    assert not place.startswith(str(users_folder))
