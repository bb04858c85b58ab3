"""The entry points that pyproject.toml declares, whatever is installed beside this checkout."""

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def declared(group: str) -> list[EntryPoint]:
    """Those of a group."""
    groups = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["entry-points"]
    return [EntryPoint(name, value, group) for name, value in groups.get(group, {}).items()]
