"""Networks of encoded inputs among the models that are tried: which inputs have which knots."""

from typing import Any

import numpy as np

from credence.density.posterior import Posterior
from credence.errors import InputError
from credence.methods.stacking.states import has_states
from credence.models.networks.encodings import PiecewiseLinear, repeated, usual_knots
from credence.models.networks.mlp import Network

ENCODED = "ple"
"""Marks a network of piecewise-linear encodings of its inputs, before its widths."""
ENCODED_VALUES = "plv"
"""Marks one that has a knot at every value of inputs whose values repeat."""
MOST_PIECES = {ENCODED: 64, ENCODED_VALUES: 32}
"""Pieces of an input without a knot at every value."""
MOST_RAMPS = 256
"""Pieces of all these inputs together."""
LEAST_PIECES = 4
"""Pieces of an input, below which an encoding is hardly one."""
MOST_VALUES = 2000
"""Knots of all inputs together that have one at every value."""


def encoded(network: Network, x: Any, encoding: str) -> PiecewiseLinear:
    """A network of the piecewise-linear encodings of these inputs.

    Args:
        encoding: `ENCODED` or `ENCODED_VALUES`.
    Raises:
        InputError: for inputs that are no table, or so many that none would have a few pieces; and
            where values should repeat and do not.
    """
    num_pieces = _num_pieces(x, encoding)
    if num_pieces is None:
        raise InputError(
            f"Only a table with 1 to {MOST_RAMPS // LEAST_PIECES} inputs that are no marks of yes "
            f"and no is encoded, got inputs of shape {x.shape}: leave out {encoding}-."
        )
    if encoding == ENCODED_VALUES and not whole_inputs(x, encoding):
        raise InputError(
            f"No input has more than {MOST_PIECES[ENCODED]} different values with ten rows for "
            f"each in the mean: write {ENCODED}- in place of {encoding}-."
        )
    return PiecewiseLinear(network, usual_knots(x, num_pieces, whole_inputs(x, encoding)))


def whole_inputs(x: Any, encoding: str) -> frozenset[int]:
    """Inputs with a knot at every value."""
    if encoding != ENCODED_VALUES:
        return frozenset()
    return repeated(x, MOST_PIECES[ENCODED], MOST_VALUES)


def is_encodable(posterior: Posterior) -> bool:
    """Tell whether the inputs can be encoded; those on disk are not read for it."""
    data = posterior.data
    return data.rows.in_memory and _num_pieces(data.x, ENCODED) is not None


def values_matter(posterior: Posterior) -> bool:
    """Tell whether inputs that can be encoded have values that seem to be states of their own."""
    x, y = np.asarray(posterior.data.x), np.asarray(posterior.data.y)
    inputs = whole_inputs(x, ENCODED_VALUES)
    is_possible = _num_pieces(x, ENCODED_VALUES) is not None
    return is_possible and any(has_states(x, target, inputs) for target in y.T)


def _num_pieces(x: Any, encoding: str) -> int | None:
    """Pieces of an encoded input that has no knot at every value; None where inputs cannot be
    encoded."""
    if x.ndim != 2:
        return None
    inputs = {index for index, values in enumerate(np.asarray(x).T) if len(np.unique(values)) > 2}
    num_shared = len(inputs - whole_inputs(x, encoding))
    pieces = min(MOST_RAMPS // max(num_shared, 1), MOST_PIECES[encoding])
    return pieces if inputs and pieces >= LEAST_PIECES else None
