"""The first line of every docstring says alone, as an editor shows it, what the thing is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
FRAGMENT = re.compile(
    r"(Above|After|Against|Also|And|As|At|Because|Before|Below|Beside|Between|By|For|From|If|In|"
    r"Inside|Into|Its|Not|Of|On|Only|Or|Over|Per|See|So|That|Then|There|Through|To|Under|Until|Up|"
    r"When|Where|Which|With|Within|Without)\b"
)
"""First words of a line that needs the name beside it to be understood."""
FEWEST_WORDS = 3

Named = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
NAMED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Documented(NamedTuple):
    """A module, class, function or attribute, and its docstring if it has one."""

    where: str
    text: str | None
    is_public: bool
    """Whether users may name it: no part begins with an underscore, nor lies inside a function."""


def documented(file: Path) -> Iterator[Documented]:
    """Everything in a file that has a docstring or could have one."""
    yield from _within(ast.parse(file.read_text()), file.stem, is_public=True)


def _within(node: ast.AST, name: str, *, is_public: bool) -> Iterator[Documented]:
    if isinstance(node, NAMED):
        yield Documented(name, ast.get_docstring(node), is_public)
        for assigned, below in zip(node.body, node.body[1:], strict=False):
            if isinstance(assigned, ast.Assign | ast.AnnAssign) and (text := _text(below)):
                yield Documented(f"{name}.{_target(assigned)}", text, is_public)
        is_public = is_public and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            is_own = is_public and not child.name.startswith("_")
            yield from _within(child, f"{name}.{child.name}", is_public=is_own)
        else:
            yield from _within(child, name, is_public=is_public)


def _target(assigned: ast.Assign | ast.AnnAssign) -> str:
    found = assigned.targets[0] if isinstance(assigned, ast.Assign) else assigned.target
    return ast.unparse(found)


def _text(statement: ast.stmt) -> str | None:
    """The text of a statement that is nothing but a string: the docstring of an attribute."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value.strip()
    return None


def is_fragment(text: str) -> bool:
    """Whether the first line says nothing where the name is not beside it."""
    words = text.splitlines()[0].split()
    return len(words) < FEWEST_WORDS or FRAGMENT.match(words[0]) is not None


def files(folder: str) -> list[Path]:
    """All Python files of a package, or of another folder of the checkout."""
    return sorted((ROOT / folder).rglob("*.py"))


FOLDERS = ("credence", "credence_papers", "docs/make", "benchmarks", "tests")


@pytest.mark.parametrize("folder", FOLDERS)
def test_first_lines_say_what_a_thing_is(folder: str) -> None:
    found = [(file, each) for file in files(folder) for each in documented(file)]
    assert found
    fragments = [
        f"{file.relative_to(ROOT)}: {each.where}: {each.text.splitlines()[0]}"
        for file, each in found
        if each.text and is_fragment(each.text)
    ]
    assert fragments == []


def promised() -> set[str]:
    """Names of the abstract methods that have docstrings: who keeps the promise inherits it."""
    return {
        node.name
        for file in files("credence")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef)
        and any("abstractmethod" in ast.unparse(each) for each in node.decorator_list)
        and ast.get_docstring(node)
    }


def test_public_names_have_docstrings() -> None:
    inherited = promised()
    missing = [
        f"{file.relative_to(ROOT)}: {each.where}"
        for file in files("credence")
        for each in documented(file)
        if each.is_public and not each.text and each.where.split(".")[-1] not in inherited
    ]
    assert missing == []


def test_a_fragment_and_a_missing_docstring_are_found(tmp_path: Path) -> None:
    """Planted: stubs of a class, a private function and a field, and a method without any."""
    file = tmp_path / "planted.py"
    file.write_text(
        '"""A module that says what it is."""\n'
        'class Shown:\n    """Of a kind."""\n    size: int\n    """By name."""\n'
        "    def method(self): ...\n"
        'def _private():\n    """As it stands today."""\n    def nested(): ...\n'
    )
    found = list(documented(file))
    fragments = [each.where for each in found if each.text and is_fragment(each.text)]
    assert fragments == ["planted.Shown", "planted.Shown.size", "planted._private"]
    missing = [each.where for each in found if each.is_public and not each.text]
    assert missing == ["planted.Shown.method"]
