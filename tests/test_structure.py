"""The map of the architecture page is that of the code, and the plan of the house holds."""

import importlib.util
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "docs" / "make" / "structure.py"
spec = importlib.util.spec_from_file_location("structure", SCRIPT)
assert spec is not None
assert spec.loader is not None
structure = importlib.util.module_from_spec(spec)
spec.loader.exec_module(structure)


def test_the_map_is_up_to_date_and_no_arrow_runs_up() -> None:
    found = structure.measure()
    assert structure.written_map(structure.PAGE.read_text()) == structure.map_text(found)
    assert found.up == []
    assert found.circles == []


def test_shared_layers_name_no_method() -> None:
    """But for two options of version 0.1.0, which go in the next release."""
    places = {name.split(":")[0] for name in structure.measure().names}
    assert places == {"credence/cli/aliases.py", "credence/runs/folder.py"}


def test_an_arrow_that_runs_up_is_seen(tmp_path: Path) -> None:
    """Planted: the ground imports a face, which imports the ground."""
    package = tmp_path / "credence"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "errors.py").write_text("from credence import cli\n")
    (package / "cli.py").write_text("from credence import errors\n")
    contract = (
        '[[tool.importlinter.contracts]]\ncontainers = ["credence"]\nlayers = ["cli", "errors"]'
    )
    (tmp_path / "pyproject.toml").write_text(contract)
    command = [sys.executable, str(SCRIPT), "--root", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "up: credence.errors -> credence.cli" in done.stdout
    assert "circles: 1" in done.stdout
