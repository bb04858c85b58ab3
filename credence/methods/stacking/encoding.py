"""Networks of encoded inputs among the models that are tried: which inputs have which knots."""

import numpy as np

from credence.density.data import Data
from credence.errors import InputError
from credence.methods.stacking.states import inputs_with_states
from credence.models.networks.encodings import PiecewiseLinear, repeated, usual_knots
from credence.models.networks.mlp import Network

ENCODED = "ple"
"""Marks a network of piecewise-linear encodings of its inputs, before its widths."""
ENCODED_VALUES = "plv"
"""Marks one that has a knot at every value of inputs whose values are states of their own."""
MOST_PIECES = {ENCODED: 64, ENCODED_VALUES: 32}
"""Pieces of an input without a knot at every value."""
MOST_RAMPS = 256
"""Pieces of all these inputs together."""
LEAST_PIECES = 4
"""Pieces of an input, below which an encoding is hardly one."""
MOST_VALUES = 2000
"""Knots of all inputs together that have one at every value."""


def encoded(network: Network, data: Data, encoding: str) -> PiecewiseLinear:
    """A network of the piecewise-linear encodings of these inputs.

    Args:
        encoding: `ENCODED`, or `ENCODED_VALUES`: with knots at every value of inputs whose values
            seem to be states, or where none do, of all inputs whose values repeat.
    Raises:
        InputError: for inputs that are no table in memory, or so many that none would have a few
            pieces; and where values should repeat and do not.
    """
    if not _is_table(data):
        raise InputError(
            f"Only a table in memory is encoded, got inputs of shape {data.x.shape}: leave out "
            f"{encoding}-."
        )
    counts, whole = _num_values(data), frozenset[int]()
    if encoding == ENCODED_VALUES:
        whole = _states(data, counts) or _repeated(data, counts)
        if not whole:
            raise InputError(
                f"No input has more than {MOST_PIECES[ENCODED]} different values with ten rows "
                f"for each in the mean: write {ENCODED}- in place of {encoding}-."
            )
    num_pieces = _num_pieces(counts, whole, encoding)
    if num_pieces is None:
        raise InputError(
            f"Only tables with 1 to {MOST_RAMPS // LEAST_PIECES} inputs that are no marks of yes "
            f"and no are encoded, those with a knot at every value apart; this one has "
            f"{len(_encodable(counts) - whole)}: leave out {encoding}-."
        )
    return PiecewiseLinear(network, usual_knots(data.x, num_pieces, whole))


def usual_encoding(data: Data) -> str:
    """The encoding that suits a table: of values, where some seem to be states; empty for none."""
    if not _is_table(data):
        return ""
    counts = _num_values(data)
    if _num_pieces(counts, frozenset(), ENCODED) is None:
        return ""
    return ENCODED_VALUES if _states(data, counts) else ENCODED


def _is_table(data: Data) -> bool:
    return data.rows.in_memory and data.x.ndim == 2


def _num_values(data: Data) -> list[int]:
    """How many different values every input has."""
    return [len(np.unique(values)) for values in np.asarray(data.x).T]


def _repeated(data: Data, counts: list[int]) -> frozenset[int]:
    """Inputs whose values repeat, and are more than an encoding by quantiles has pieces."""
    return repeated(counts, len(data.x), MOST_PIECES[ENCODED], MOST_VALUES)


def _states(data: Data, counts: list[int]) -> frozenset[int]:
    """Inputs whose values seem to be states of their own, for one target at least."""
    some, x, y = _repeated(data, counts), np.asarray(data.x), np.asarray(data.y)
    targets = y.reshape(len(y), -1).T
    return frozenset[int]().union(
        *(inputs_with_states(x, target, data.weight, some) for target in targets)
    )


def _encodable(counts: list[int]) -> frozenset[int]:
    return frozenset(index for index, count in enumerate(counts) if count > 2)


def _num_pieces(counts: list[int], whole: frozenset[int], encoding: str) -> int | None:
    """Pieces of an encoded input that has no knot at every value; None where there are too many
    such inputs, or none at all."""
    num_shared = len(_encodable(counts) - whole)
    pieces = min(MOST_RAMPS // max(num_shared, 1), MOST_PIECES[encoding])
    return pieces if _encodable(counts) and pieces >= LEAST_PIECES else None
