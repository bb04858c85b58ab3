"""The map of the architecture page is that of the code, and the plan of the house holds."""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
INIT = "__init__.py"
SCRIPT = ROOT / "docs" / "make" / "structure.py"
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


ROW = re.compile(r"[a-z_][a-z_/, `]* {2,}\S")
"""Modules, two blanks, and what they hold."""


def unnamed(package: Path) -> set[str]:
    """Modules of a package whose docstring lists modules, but not these."""
    text = ast.get_docstring(ast.parse((package / INIT).read_text("utf-8"))) or ""
    if sum(bool(ROW.match(line.strip())) for line in text.splitlines()) < 2:
        return set()
    is_part = lambda path: path.suffix == ".py" or (path / INIT).exists()  # noqa: E731
    parts = {path.stem for path in package.iterdir() if is_part(path)}
    return {name for name in parts if name[0] != "_"} - set(re.findall("[a-z_0-9]+", text))


def test_a_docstring_that_lists_modules_names_them_all(tmp_path: Path) -> None:
    """But for that of the methods, which lists what they share."""
    roots = (ROOT / "credence", ROOT / "credence_papers")
    packages = {init.parent for root in roots for init in root.rglob(INIT)}
    packages -= {ROOT / "credence" / "methods"}
    missing = {path.relative_to(ROOT).as_posix(): unnamed(path) for path in packages}
    assert not any(missing.values()), {name: parts for name, parts in missing.items() if parts}
    (tmp_path / INIT).write_text('"""Parts.\n\none  the first\ntwo  the second\n"""\n')
    (tmp_path / "three.py").write_text("")
    assert unnamed(tmp_path) == {"three"}, "planted"


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
