"""Whatever a docstring or a page names with its module is there."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = "|".join(path.stem for path in (ROOT / "credence").iterdir() if path.suffix != ".css")
NAME = re.compile(rf"`((?:credence\.)?(?:{ROOMS})(?:\.(?!html)[A-Za-z]\w*)+)(?:\([^`]*\))?`")
"""A room of the library, and something in it; `report.html` is a file."""


def texts() -> list[Path]:
    """All that people wrote, but this file."""
    code = [*(ROOT / "credence").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    pages = [
        path for path in (ROOT / "docs").rglob("*.md") if not {"made", "_build"} & {*path.parts}
    ]
    return sorted({*code, *pages, ROOT / "CONTRIBUTING.md"} - {Path(__file__)})


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something inside one."""
    parts = name.removeprefix("credence.").split(".")
    for length in range(len(parts), -1, -1):
        try:
            found = importlib.import_module(".".join(["credence", *parts[:length]]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize("folder", ["credence", "tests", "docs", "CONTRIBUTING.md"])
def test_names_resolve(folder: str) -> None:
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in texts()
        if path.is_relative_to(ROOT / folder)
        for name in NAME.findall(path.read_text(encoding="utf-8"))
        if not is_there(name)
    }
    assert missing == set()


def test_a_module_that_moved_is_found() -> None:
    """Planted: names of earlier versions, beside what is there."""
    assert NAME.findall("see `models.stored` and `methods.SMC(num_runs=2)`, not `other.thing`") == [
        "models.stored",
        "methods.SMC",
    ]
    assert not is_there("models.stored")
    assert is_there("methods.SMC")
    assert is_there("credence.methods.smc.bridge.Bridge")
