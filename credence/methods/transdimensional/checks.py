"""Refuse settings of jumps that cannot be run, before anything is compiled."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from credence.errors import InputError, require_positive
from credence.methods.transdimensional.moves.by_name import base_and_size, check_moves
from credence.methods.transdimensional.size_priors import DepthPrior, WidthPrior


def tuple_of_names(setting: str, names: Any, known: tuple[str, ...]) -> tuple[str, ...]:
    """The names of moves, in a tuple.

    Raises:
        InputError: for one name alone, or a move that is not known.
    """
    if isinstance(names, str):
        raise InputError(f"{setting} are several names, got {names!r}: ({names!r},).")
    if not isinstance(names, Iterable):
        raise InputError(f"{setting} are several names, got {names!r}.")
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{setting} are names, got {name!r}: choose from {', '.join(known)}.")
    check_moves(tuple(names), known)
    return tuple(names)


def whole_numbers(setting: str, numbers: Any) -> tuple[int, ...]:
    """Whole numbers in a tuple, whatever sequence they were in.

    Raises:
        InputError: for anything else.
    """
    found = np.asarray(list(numbers) if isinstance(numbers, Iterable) else numbers)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise InputError(f"{setting} are one whole number for each chain, got {numbers!r}.")
    return tuple(found.tolist())


def check_size_prior(
    noun: str, law: Any, kind: type[WidthPrior] | type[DepthPrior], largest: int | None
) -> None:
    """Refuse what is no prior, a limit that is no count, and an empty support.

    Args:
        noun: "width" or "depth".
        largest: the limit; None where there is none.
    Raises:
        InputError: for any of them.
    """
    if not isinstance(law, kind):
        raise InputError(
            f"{noun}_prior must be a {kind.__name__}, got {law!r}: "
            f"{kind.__name__}('poisson', 5.0), say, or leave it out for a uniform one."
        )
    if largest is not None:
        require_positive(**{f"max_{noun}": largest})
        law.log_probs(largest)  # may refuse an empty support


def check_jump_sizes(moves: Sequence[str], prior: WidthPrior, room: Sequence[int]) -> None:
    """Refuse jumps of more neurons than any layer can gain.

    Args:
        room: neurons there is room for, layer by layer.
    Raises:
        InputError: for such a jump.
    """
    most = max(int(np.isfinite(prior.log_probs(each)).sum()) for each in room) - 1
    for name in moves:
        if 1 < base_and_size(name)[1] > most:
            raise InputError(
                f"{name!r} never stays in the support of the width prior, which has room for "
                f"{most} more neurons at most: take a smaller size."
            )
