"""Networks of encoded inputs among the models that are tried: which inputs have which knots, and
which become logarithms."""

from functools import cached_property

import numpy as np

from credence.density.data import Data
from credence.errors import InputError
from credence.methods.stacking.states import inputs_with_states
from credence.models.networks.encodings import (
    Logarithmic,
    PiecewiseLinear,
    repeated,
    usual_knots,
    usual_scales,
)
from credence.models.networks.mlp import Network

ENCODED = "ple"
"""Marks a network of piecewise-linear encodings of its inputs, before its widths."""
ENCODED_VALUES = "plv"
"""Marks one that has a knot at every value of inputs whose values are states of their own."""
LOGARITHMS = "log"
"""Marks one of logarithms of the inputs that have a long tail."""
MOST_PIECES = {ENCODED: 64, ENCODED_VALUES: 32}
"""Pieces of an input without a knot at every value."""
MARKS = {
    ENCODED: "of encoded inputs",
    ENCODED_VALUES: "of encoded values",
    LOGARITHMS: "of logarithms",
}
"""All marks, in words."""
MOST_RAMPS = 256
"""Pieces of all these inputs together."""
LEAST_PIECES = 4
"""Pieces of an input, below which an encoding is hardly one."""
MOST_VALUES = 2000
"""Knots of all inputs together that have one at every value."""


class Encodings:
    """Encodings of the inputs of a table, which is looked at only once.

    Args:
        data: of the table.
    """

    def __init__(self, data: Data) -> None:
        self.data = data

    @property
    def usual(self) -> str:
        """The one that suits: of values, where some seem to be states; empty for none."""
        if not self._is_table or self._num_pieces(frozenset(), ENCODED) is None:
            return ""
        return ENCODED_VALUES if self._states else ENCODED

    @property
    def has_long_tails(self) -> bool:
        """Whether some inputs are amounts that are mostly small and sometimes huge."""
        return self._is_table and any(self._scales)

    def encoded(self, network: Network, encoding: str) -> PiecewiseLinear | Logarithmic:
        """A network of the encodings of these inputs.

        Args:
            encoding: `ENCODED`, or `ENCODED_VALUES`: with knots at every value of inputs whose
                values seem to be states, or where none do, of all inputs whose values repeat;
                or `LOGARITHMS`.
        Raises:
            InputError: for inputs that are no table in memory, or so many that none would have a
                few pieces; where values should repeat and do not; and where none has a long tail.
        """
        if not self._is_table:
            raise InputError(
                f"Only a table in memory is encoded, got inputs of shape {self.data.x.shape}: "
                f"leave out {encoding}-."
            )
        if encoding == LOGARITHMS:
            if not any(self._scales):
                raise InputError(f"No input has a long tail: leave out {encoding}-.")
            return Logarithmic(network, self._scales)
        whole = frozenset[int]()
        if encoding == ENCODED_VALUES:
            whole = self._states or self._repeated
            if not whole:
                raise InputError(
                    f"No input has more than {MOST_PIECES[ENCODED]} different values with ten rows "
                    f"for each in the mean: write {ENCODED}- in place of {encoding}-."
                )
        num_pieces = self._num_pieces(whole, encoding)
        if num_pieces is None:
            raise InputError(
                f"Only tables with 1 to {MOST_RAMPS // LEAST_PIECES} inputs that are no marks of "
                f"yes and no are encoded, those with a knot at every value apart; this one has "
                f"{len(self._encodable - whole)}: leave out {encoding}-."
            )
        return PiecewiseLinear(network, usual_knots(self.data.x, num_pieces, whole))

    @property
    def _is_table(self) -> bool:
        return self.data.rows.in_memory and len(self.data.x.shape) == 2

    @cached_property
    def _scales(self) -> tuple[tuple[float, ...], ...]:
        """Scales of the inputs, those with a long tail."""
        return usual_scales(self.data.x)

    @cached_property
    def _counts(self) -> list[int]:
        """How many different values every input has."""
        return [len(np.unique(values)) for values in np.asarray(self.data.x).T]

    @property
    def _encodable(self) -> frozenset[int]:
        return frozenset(index for index, count in enumerate(self._counts) if count > 2)

    @property
    def _repeated(self) -> frozenset[int]:
        """Inputs whose values repeat, and are more than an encoding by quantiles has pieces."""
        return repeated(self._counts, self.data.x.shape[0], MOST_PIECES[ENCODED], MOST_VALUES)

    @cached_property
    def _states(self) -> frozenset[int]:
        """Inputs whose values seem to be states of their own, for one target at least."""
        x, y = np.asarray(self.data.x), np.asarray(self.data.y)
        return frozenset[int]().union(
            *(
                inputs_with_states(x, target, self.data.weight, self._repeated)
                for target in y.reshape(len(y), -1).T
            )
        )

    def _num_pieces(self, whole: frozenset[int], encoding: str) -> int | None:
        """Pieces of an encoded input that has no knot at every value; None where there are too many
        such inputs, or none at all."""
        num_shared = len(self._encodable - whole)
        pieces = min(MOST_RAMPS // max(num_shared, 1), MOST_PIECES[encoding])
        return pieces if self._encodable and pieces >= LEAST_PIECES else None
