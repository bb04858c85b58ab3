"""The site builds without a warning, and its code runs."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def build(folder: Path, execute: str) -> subprocess.CompletedProcess[str]:
    """The site, with warnings as errors: dead links inside it are warnings."""
    program = (
        "import os, sys; os.environ['CREDENCE_DOCS_EXECUTE'] = sys.argv.pop(1);"
        "from sphinx.cmd.build import main; sys.exit(main(sys.argv[1:]))"
    )
    options = ["-q", "-W", "--keep-going", "-E", "-d", f"{folder}/trees"]
    command = [sys.executable, "-c", program, execute, *options, str(DOCS), f"{folder}/html"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.rotates(3)
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Tutorials are read and not run."""
    pytest.importorskip("myst_nb")
    done = build(tmp_path, "off")
    assert done.returncode == 0, done.stderr
    reference = (tmp_path / "html" / "reference" / "made" / "credence.methods.html").read_text()
    assert "Hoffman" in reference
    assert 'id="credence.methods.NUTS"' in reference


@pytest.mark.slow
def test_tutorials_run(tmp_path: Path) -> None:
    """All, from clean kernels, with warnings as errors; some need data that must be found."""
    pytest.importorskip("myst_nb")
    done = build(tmp_path, "cache")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        "start/own_table.md",
        "start/in_python.md",
        "how_to/draws.md",
        "how_to/own_network.md",
        "how_to/cite.md",
    ],
)
def test_snippets_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("equinox")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = {"X": rng.normal(size=(40, 8)), "y": rng.normal(size=40)}
    for code in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.S):
        exec(code, names)
    assert len(names) > 2
