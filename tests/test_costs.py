"""The table of costly tests names what there is, and nothing twice."""

import ast
from pathlib import Path

from tools.costs import costly

ROOT = Path(__file__).parents[1]


def defined(path: Path) -> set[str]:
    """The file, its functions and those of its classes, as pytest names them."""
    file = path.relative_to(ROOT).as_posix()
    found = {file}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{file}::{node.name}" if isinstance(node, ast.ClassDef) else file
        found |= {f"{prefix}::{each.name}" for each in inner if isinstance(each, ast.FunctionDef)}
    return found


def test_every_entry_is_of_a_test_a_fixture_or_a_file() -> None:
    files = {name.split("::")[0] for name in costly()}
    there = set().union(*(defined(ROOT / file) for file in files if (ROOT / file).exists()))
    assert set(costly()) - there == set()


def test_no_test_has_an_entry_beside_that_of_its_file() -> None:
    files = {name for name in costly() if "::" not in name}
    assert {name for name in costly() if name.split("::")[0] in files} == files
