"""What fits of surrogates share: points held out, and normal equations of least squares."""

from typing import NamedTuple, TypeVar

import jax
import numpy as np
from jaxtyping import Float

HELD_OUT = 5
"""One in so many points is kept from the fit, to choose or judge it by."""

Points = TypeVar("Points")


def num_held_out(num_points: int) -> int:
    """How many points of a chain are kept from the fit: two at least, where four are there, as one
    says nothing of a density that is known up to a constant."""
    return max(2 if num_points >= 4 else 1, num_points // HELD_OUT)


def split(points: Points) -> tuple[Points, Points]:
    """Points to fit, and those held out, the last of every chain; leaves (chain, draw, ...)."""
    num = num_held_out(jax.tree.leaves(points)[0].shape[1])
    to_fit = jax.tree.map(lambda leaf: leaf[:, :-num], points)
    return to_fit, jax.tree.map(lambda leaf: leaf[:, -num:], points)


class Equations(NamedTuple):
    """Normal equations of least squares in coefficients v: gram v = moment."""

    gram: Float[np.ndarray, "term term"]
    moment: Float[np.ndarray, " term"]
    total: float | np.ndarray
    """Sum of squares to explain."""

    def squared_error(self, coefficients: Float[np.ndarray, " term"]) -> float:
        """Sum of squares that coefficients leave."""
        fitted = self.gram @ coefficients - 2 * self.moment
        return float(self.total + coefficients @ fitted)
