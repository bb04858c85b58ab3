"""Total predictive uncertainty, split into what data can reduce and what they cannot.

Aleatoric: the noise that would remain if the true network were known. Epistemic: disagreement of
the ensemble's members, which more data would remove.

Member weights may be signed, as those of multilevel estimators are. A signed average can leave
the range of what it estimates; it is then moved to the nearest possible value, as each function
says.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from credence.ensembles.diagnostics._checks import class_probabilities, finite, member_shares


class Decomposition(NamedTuple):
    """total = aleatoric + epistemic; entropies in nats or variances in squared units of y."""

    total: Float[np.ndarray, "point *output"]
    aleatoric: Float[np.ndarray, "point *output"]
    epistemic: Float[np.ndarray, "point *output"]


def decompose_entropy(
    probabilities: Float[np.ndarray, "member point label"],
    member_weight: Float[np.ndarray, " member"] | None = None,
) -> Decomposition:
    """Entropy of the averaged prediction, in nats, with shape [point] (Depeweg et al. 2018).

        total = H(Σ w p),   aleatoric = Σ w H(p),   epistemic = total - aleatoric >= 0

    The epistemic part is the mutual information between label and network. If weights are signed,
    averaged probabilities < 0 are set to 0, the rest renormalised, and the aleatoric part is cut to
    0 .. total.
    """
    from scipy.special import entr

    p = class_probabilities(probabilities)
    weight = member_shares(len(p), member_weight)
    average = np.maximum(np.tensordot(weight, p, axes=1), 0)
    total = entr(average / average.sum(axis=-1, keepdims=True)).sum(axis=-1)
    expected = np.tensordot(weight, entr(np.maximum(p, 0)).sum(axis=-1), axes=1)
    aleatoric = np.clip(expected, 0, total)  # Jensen's inequality, but for rounding and signs
    return Decomposition(total, aleatoric, total - aleatoric)


def decompose_variance(
    means: Float[np.ndarray, "member point *output"],
    variances: Float[np.ndarray, "member #point *#output"],
    member_weight: Float[np.ndarray, " member"] | None = None,
) -> Decomposition:
    """Law of total variance, with shape [point, *output].

        aleatoric = Σ w variance,   epistemic = Σ w (mean - Σ w mean)²,   total = their sum

    The variance of the ensemble itself, so it divides by the number of members and not by one
    less. If weights are signed, a negative part is set to 0.
    """
    means, variances = finite("means", means), finite("variances", variances)
    if variances.min() < 0:
        raise ValueError(f"variances must be >= 0, got {variances.min():g}.")
    variances = np.broadcast_to(variances, means.shape)
    weight = member_shares(len(means), member_weight)
    deviation = means - np.tensordot(weight, means, axes=1)
    aleatoric = np.maximum(np.tensordot(weight, variances, axes=1), 0)
    epistemic = np.maximum(np.tensordot(weight, deviation**2, axes=1), 0)
    return Decomposition(aleatoric + epistemic, aleatoric, epistemic)
