"""Input checks shared by the metrics: each returns float64 arrays or raises a plain sentence."""

import numpy as np
from jaxtyping import Float, Int, Shaped

# Float32 softmax outputs, averaged over members, sum to 1 within about 1e-6; wrong ones do not.
PROBABILITY_TOLERANCE = 1e-3


def finite(name: str, values: Shaped[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """`values` as float64; ValueError if it is empty or has a NaN or an infinity."""
    values = np.asarray(values, dtype=np.float64)
    if values.size == 0:
        raise ValueError(f"{name} is empty (shape {values.shape}): pass at least one row.")
    wrong = ~np.isfinite(values)
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"{name} has {wrong.sum()} values that are not finite, the first at index {first}: "
            "remove these rows, or find out why the model made them."
        )
    return values


def same_shape(
    **arrays: Shaped[np.ndarray, "*shape"],
) -> tuple[Float[np.ndarray, "*shape"], ...]:
    """All arrays, finite and float64; ValueError unless they have one shape."""
    checked = tuple(finite(name, values) for name, values in arrays.items())
    if len({values.shape for values in checked}) > 1:
        shapes = ", ".join(f"{name} {np.shape(values)}" for name, values in arrays.items())
        raise ValueError(f"the shapes differ: {shapes}; pass one value per point in each.")
    return checked


def class_probabilities(
    probabilities: Float[np.ndarray, "*batch label"],
) -> Float[np.ndarray, "*batch label"]:
    """Probabilities of at least two classes on the last axis; ValueError unless they sum to 1."""
    p = finite("probabilities", probabilities)
    if p.ndim < 2 or p.shape[-1] < 2:
        raise ValueError(
            f"probabilities has shape {p.shape}; its last axis must hold one probability for each "
            "of two or more classes (for a binary p, pass np.stack([1 - p, p], axis=-1))."
        )
    error = max(-p.min(), abs(p.sum(axis=-1) - 1).max())
    if error > PROBABILITY_TOLERANCE:
        raise ValueError(
            f"probabilities are negative or do not sum to 1 over classes (off by {error:.2g}): "
            "pass probabilities, not logits or one class only."
        )
    return p


def labelled_probabilities(
    probabilities: Float[np.ndarray, "point label"], labels: Int[np.ndarray, " point"]
) -> tuple[Float[np.ndarray, "point label"], Int[np.ndarray, " point"]]:
    """Checked probabilities with the integer label, 0 .. classes - 1, of every row."""
    p, labels = class_probabilities(probabilities), np.asarray(labels)
    if labels.shape != p.shape[:1] or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"labels must be {p.shape[0]} integers, one per row of probabilities; "
            f"got shape {labels.shape}, dtype {labels.dtype}."
        )
    if labels.min() < 0 or labels.max() >= p.shape[1]:
        raise ValueError(
            f"labels run from {labels.min()} to {labels.max()}, but there are {p.shape[1]} columns "
            "of probabilities: encode the labels as column numbers, from 0."
        )
    return p, labels


def point_shares(
    num_points: int, sample_weight: Float[np.ndarray, " point"] | None
) -> Float[np.ndarray, " point"]:
    """Each point's share of the total weight; equal shares if `sample_weight` is None."""
    if sample_weight is None:
        return np.full(num_points, 1 / num_points)
    weight = finite("sample_weight", sample_weight)
    if weight.shape != (num_points,) or weight.min() < 0 or weight.sum() == 0:
        raise ValueError(
            f"sample_weight must be {num_points} numbers >= 0, one per point and not all 0; "
            f"got shape {weight.shape}, minimum {weight.min():g}."
        )
    return weight / weight.sum()


def member_shares(
    num_members: int, member_weight: Float[np.ndarray, " member"] | None
) -> Float[np.ndarray, " member"]:
    """Weights of an ensemble's members, summing to 1; they may be signed (multilevel estimators).

    Signed weights that cancel have no meaning: a sum <= 0 is refused.
    """
    if member_weight is None:
        return np.full(num_members, 1 / num_members)
    weight = finite("member_weight", member_weight)
    if weight.shape != (num_members,) or weight.sum() <= 0:
        raise ValueError(
            f"member_weight must be {num_members} numbers, one per member, with a sum > 0; "
            f"got shape {weight.shape}, sum {weight.sum():g}."
        )
    return weight / weight.sum()


def point_mean(
    values: Shaped[np.ndarray, "point *rest"], sample_weight: Float[np.ndarray, " point"] | None
) -> Float[np.ndarray, "*rest"]:
    """Weighted mean over points; a point of weight 0 is left out even where its value is inf."""
    if sample_weight is None:
        return np.asarray(np.mean(values, axis=0))  # no rounding where all values are 1
    share = point_shares(len(values), sample_weight)
    used = share > 0
    return np.asarray(np.tensordot(share[used], values[used], axes=1))
