"""The page on the default model is made of the committed results."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_its_tables_are_those_of_the_results() -> None:
    script = ROOT / "docs" / "make" / "default_model.py"
    made = subprocess.run([sys.executable, script], capture_output=True, check=True)
    page = ROOT / "docs" / "results" / "default_model.md"
    assert made.stdout.decode("utf-8").splitlines() == page.read_text(encoding="utf-8").splitlines()
