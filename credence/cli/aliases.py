"""Options of version 0.1.0 that still work, hidden and with a sentence, for one release."""

from typing import Annotated

import typer

from credence.cli import messages
from credence.errors import InputError

Width = Annotated[int | None, typer.Option("--max-width", hidden=True)]
Depth = Annotated[int | None, typer.Option("--max-depth", hidden=True)]

OWNER = "transdimensional"
"""The method that changes both."""


def applied(
    width: int | None,
    depth: int | None,
    method: str,
    hidden: tuple[int, ...] | None,
    told: list[str],
) -> tuple[tuple[int, ...] | None, tuple[str, ...]]:
    """Turn a largest width and depth into widths of the hidden layers and settings of the method.

    Args:
        told: settings that were given by `--set`.
    Raises:
        InputError: for a largest width or depth below 1, or with a method that keeps both.
    """
    for name, largest, instead in (
        ("--max-width", width, "--hidden WIDTH for a network of one width"),
        ("--max-depth", depth, "--hidden WIDTH,WIDTH for a network of two layers"),
    ):
        if largest is None:
            continue
        if method != OWNER:
            raise InputError(
                f"{name} is for --method {OWNER}, got method {method!r}: say {instead}."
            )
        if largest < 1:
            raise InputError(f"{name} must be at least 1, got {largest}.")
    if width is not None or depth is not None:
        messages.say(
            "--max-width and --max-depth go in the next release: say --hidden for the largest "
            "width, and --set for the depth, as `credence methods {}` has it.",
            OWNER,
        )
    hidden = hidden if width is None else (width,) * len((0,) if hidden is None else hidden)
    return hidden, (*told, *([] if depth is None else [f"max_depth={depth}"]))
