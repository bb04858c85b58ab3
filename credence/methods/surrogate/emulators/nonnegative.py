"""Least squares with weights that are not below 0."""

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve
from scipy.optimize import Bounds, minimize

from credence.methods.surrogate.fitting import Equations

MOST_DESCENT = 1000
"""Steps towards weights >= 0 where blocks do not settle."""


def nonnegative(
    fit: Equations,
    held_out: Equations,
    before: Float[np.ndarray, " term"],
    penalties: Float[np.ndarray, " penalty"],
) -> Float[np.ndarray, " term"]:
    """Least squares with weights >= 0 and a ridge towards the weights before.

    The penalty is the one whose weights, of any sign, leave least of the held-out equations.
    """
    values, vectors = np.linalg.eigh(fit.gram)
    values, rotated = np.maximum(values, 0), vectors.T @ fit.moment
    ridge = vectors.T @ before

    def coordinates(penalty: float) -> Float[np.ndarray, " term"]:
        return (rotated + penalty * ridge) / (values + penalty)

    best = min(penalties, key=lambda each: held_out.squared_error(vectors @ coordinates(each)))
    gram = (vectors * (values + best)) @ vectors.T  # of single precision: some values were below 0
    return nonnegative_minimum(gram, fit.moment + best * before)


def nonnegative_minimum(
    gram: Float[np.ndarray, "term term"], moment: Float[np.ndarray, " term"]
) -> Float[np.ndarray, " term"]:
    """Minimum of v . gram v / 2 - moment . v over v >= 0, gram positive definite.

    Block principal pivoting: Portugal, Judice & Vicente, "A comparison of block pivoting and
    interior-point algorithms for linear least squares problems with nonnegative variables" (1994).
    `scipy.optimize.nnls` frees one term at a time, from none; here nearly all are free in the end.
    Where blocks do not settle (many terms say nearly the same) L-BFGS-B goes on, to an optimum that
    is near enough: their rule for one term at a time may take more steps than anybody can wait for.
    """
    is_free, fewest, patience = np.ones(len(moment), bool), len(moment) + 1, 3
    v = np.zeros(len(moment))
    while patience >= 0:
        v[:] = 0.0
        v[is_free] = solve(gram[np.ix_(is_free, is_free)], moment[is_free], assume_a="pos")
        slope = gram @ v - moment
        is_wrong = np.where(is_free, v < 0, slope < -1e-10 * np.abs(moment).max())
        if not np.any(is_wrong):
            return v
        patience = 3 if np.sum(is_wrong) < fewest else patience - 1
        fewest = min(fewest, int(np.sum(is_wrong)))
        is_free ^= is_wrong
    return descended(gram, moment, np.maximum(v, 0.0))


def descended(
    gram: Float[np.ndarray, "term term"],
    moment: Float[np.ndarray, " term"],
    start: Float[np.ndarray, " term"],
) -> Float[np.ndarray, " term"]:
    """The same minimum by projected quasi-Newton steps, in units in which the diagonal is 1."""
    scale = 1.0 / np.sqrt(np.diag(gram))
    unit = scale[:, None] * gram * scale

    def value_and_slope(v: np.ndarray) -> tuple[float, np.ndarray]:
        product = unit @ v
        return float(v @ (0.5 * product - scale * moment)), product - scale * moment

    options = {"maxiter": MOST_DESCENT, "maxfun": 2 * MOST_DESCENT, "maxcor": 30}
    found = minimize(
        value_and_slope, start / scale, jac=True, method="L-BFGS-B",
        bounds=Bounds(0.0, np.inf), options=options,
    )  # fmt: skip
    return scale * found.x
