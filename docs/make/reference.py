"""A Sphinx extension: reference pages made of the code each time the site is built.

It writes Markdown into docs/reference/made/, which git ignores: a page per room of the library with
everything public in it, the commands with their options, and the settings of every method.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parents[1] / "reference" / "made"
ROOMS = {
    "credence": "Estimators, posteriors and ensembles",
    "credence.methods": "Methods",
    "credence.models": "Networks, priors and likelihoods",
    "credence.models.networks.adapters": "Networks of Flax and Equinox",
    "credence.methods.transdimensional": "Widths and depths",
    "credence.kernels": "Kernels",
    "credence.ensembles.diagnostics": "Diagnostics and scores",
    "credence.datasets": "Data sets",
}
BEYOND = re.compile(r"^Args beyond those of ((?:.|\n)*?):$", re.MULTILINE)
"""How docstrings say that more arguments than these are known."""
LONG_ARRAY = "jaxlib._jax.Array"
KEY = re.compile(r"Key\[jaxlib\._jax\.Array, ''\]( \| UInt32\[jaxlib\._jax\.Array, '\d'\])*")
"""How Sphinx writes the type of a random key."""


def members(module: ModuleType) -> Iterator[tuple[str, str]]:
    """What a room offers, each with the directive that documents it."""
    for name in sorted(getattr(module, "__all__", None) or public_names(module)):
        found = getattr(module, name)
        if inspect.ismodule(found):
            continue
        if inspect.isclass(found):
            yield name, "autoexception" if issubclass(found, Exception) else "autoclass"
        else:
            yield name, "autofunction" if callable(found) else "py:data"


def public_names(module: ModuleType) -> list[str]:
    """What a module without `__all__` defines itself."""
    return [
        name
        for name, found in vars(module).items()
        if not name.startswith("_") and getattr(found, "__module__", "") == module.__name__
    ]


def room_page(path: str, title: str) -> str:
    """Everything public in a room, in the order of the alphabet."""
    module = importlib.import_module(path)
    first_line = (module.__doc__ or "").partition("\n")[0]
    lines = [f"# {title}", "", f"`{path}`: {first_line}", "", "```{eval-rst}"]
    documented = list(members(module))
    names = [name for name, directive in documented if directive != "py:data"]
    lines += [".. autosummary::", "   :nosignatures:", "", *(f"   {path}.{name}" for name in names)]
    for name, directive in documented:
        lines += ["", f".. {directive}:: {path}.{name}"]
        if directive == "py:data":
            lines += ["", "   Names: " + ", ".join(f"``{key}``" for key in getattr(module, name))]
    return "\n".join([*lines, "```", ""])


def commands_page() -> str:
    """The commands with their arguments and options, as `--help` tells them."""
    import typer.main

    from credence.cli import app

    lines = ["# Commands", "", "`credence COMMAND --help` says the same."]
    for name, command in walk(typer.main.get_command(app), "credence"):
        lines += ["", f"## `{name}`", "", str(command.help or "").strip(), ""]
        table = [row for row in map(parameter_row, command.params) if row]
        if table:
            lines += ["| argument or option | default | what it is |", "|---|---|---|", *table]
        if command.epilog:
            lines += ["", str(command.epilog)]
    return "\n".join([*lines, ""])


def walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Find the commands of a group, and of the groups in it."""
    for child_name, child in getattr(command, "commands", {}).items():
        if hasattr(child, "commands"):
            yield from walk(child, f"{name} {child_name}")
        else:
            yield f"{name} {child_name}", child


def parameter_row(parameter: Any) -> str:
    """One argument or option of a command, as a row of a table."""
    about = (getattr(parameter, "help", None) or "").replace("|", "\\|")
    if parameter.name == "help" or not about:
        return ""
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar or parameter.name.upper()}`"
    default = parameter.default
    has_none = default in (None, "", ()) or isinstance(default, bool) or callable(default)
    return f"| {names} | {'' if has_none else f'`{default}`'} | {about} |"


def settings_page() -> str:
    """What `--set` and the class of every method take."""
    from credence.methods import METHODS
    from credence.methods.settings import default_text, settings_of

    lines = [
        "# Settings of every method",
        "",
        "Give them as `--set NAME=VALUE` on the command line, or to the class of the method.",
        "The list of one method is that of `credence methods NAME`.",
    ]
    for name, summary in METHODS.described(lambda method: method.summary).items():
        method = METHODS[name]
        lines += ["", f"## {name}", "", f"`credence.methods.{method.__name__}`: {summary}.", ""]
        lines += ["| setting | default | what it is |", "|---|---|---|"]
        for one in settings_of(method):
            if not is_dataclass(one.default):
                meaning = one.meaning.replace("|", "\\|")
                lines.append(f"| `{one.name}` | `{default_text(method, one)}` | {meaning} |")
        lines += ["", "Cite:", "", *(f"- {source}." for source in method.sources)]
    return "\n".join([*lines, ""])


def write(name: str, text: str) -> None:
    """Write a page where it differs, so that Sphinx reads only what has changed."""
    path = FOLDER / f"{name}.md"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def make_pages(*_: Any) -> None:
    """Write the pages of all rooms, of the commands and of the settings."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, title in ROOMS.items():
        write(path, room_page(path, title))
    write("commands", commands_page())
    write("settings", settings_page())


def as_restructured_text(
    _: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Make Sphinx show a docstring as it reads: code and formulas as they are written."""
    text, found = BEYOND.sub(r"Arguments beyond those of \1.\n\nArgs:", "\n".join(lines)), []
    for line in text.split("\n"):
        before = next((text for text in reversed(found) if text.strip()), "")
        starts = line.startswith("    ") and found and not found[-1].strip()
        if starts and before and not before.startswith(" ") and not before.endswith(":"):
            found += ["::", ""]
        found.append(escaped(line))
    if what == "attribute" and found[0]:
        found[0] = f": {found[0]}"  # else what stands before a colon is taken for a type
    lines[:] = found


def shorter(
    _: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Name types of arrays as the code does."""
    return tuple(
        text and KEY.sub("PRNGKeyArray", text).replace(LONG_ARRAY, "Array")
        for text in (signature, returns)
    )


def escaped(line: str) -> str:
    """Write code between double backquotes, and signs of mathematics with a backslash."""
    parts = re.split(r"(`[^`]+`)", line)
    for index, part in enumerate(parts):
        if index % 2:
            follows = parts[index + 1][:1]
            parts[index] = f"`{part}`" + ("\\ " if follows.isalnum() else "")
        else:
            parts[index] = re.sub(r"([|*])", r"\\\1", part)
    return "".join(parts)


def setup(app: Any) -> dict[str, bool]:
    """Connect these to Sphinx."""
    app.connect("builder-inited", make_pages, priority=100)
    app.connect("autodoc-process-docstring", as_restructured_text, priority=100)
    app.connect("autodoc-process-signature", shorter)
    return {"parallel_read_safe": True}
