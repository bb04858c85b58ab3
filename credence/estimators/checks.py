"""What users may pass, checked and made plain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d

from credence.errors import InputError, did_you_mean, plural, require_counts

MOST_OBSERVATIONS = 1e15
LARGEST_LABEL = 2**63 - 1
TEXT_IS_REFUSED = ("could not convert string to float", "arrays of bytes/strings")
"""Words of scikit-learn on text where numbers are wanted."""

if TYPE_CHECKING:
    from credence.models import Network


def named(what: str, chosen: Any, known: Mapping[str, Any]) -> Any:
    """The part of that name, or the part itself.

    Raises:
        InputError: for an unknown name.
    """
    if not isinstance(chosen, str):
        return chosen
    if chosen not in known:
        raise InputError(
            f"Unknown {what} {chosen!r}: choose one of {', '.join(known)}."
            + did_you_mean(chosen, known)
        )
    return known[chosen]


@contextmanager
def numbers_wanted(what: str, instead: str) -> Iterator[None]:
    """Say of text among numbers, which scikit-learn refuses in its own words, what to do.

    Args:
        instead: the sentence that says so.
    Raises:
        InputError: for text; other errors stay as they are.
    """
    try:
        yield
    except ValueError as error:
        if not any(words in str(error) for words in TEXT_IS_REFUSED):
            raise
        raise InputError(f"{what} holds text ({error}). {instead}") from None


def checked_network(network: Any) -> Network:
    """The network, once it is found to have the functions of one.

    Raises:
        InputError: for anything else, such as a Flax or Equinox model without its adapter.
    """
    from credence.models import Network

    if isinstance(network, type) or not isinstance(network, Network):
        raise InputError(
            f"network must be one of credence.models or an adapter, got {type(network).__name__}: "
            "from credence.models.networks.adapters take FlaxLinen(module), "
            "FlaxNNX(lambda rngs: ...) or "
            "Equinox(lambda key: ...)."
        )
    return network


def as_widths(hidden: Any) -> tuple[int, ...]:
    """Widths of hidden layers as plain integers; one number is one layer.

    Raises:
        InputError: for anything but whole numbers.
    """
    widths = (hidden,) if isinstance(hidden, int | np.integer) else hidden
    is_many = isinstance(widths, Iterable) and not isinstance(widths, str)
    if not is_many or not all(isinstance(width, int | np.integer) for width in widths):
        raise InputError(f"hidden must be whole numbers such as (50, 50), got {hidden!r}.")
    return tuple(int(width) for width in widths)


def as_count(name: str, value: Any) -> int:
    """A whole number of at least 1.

    Raises:
        InputError: for anything else.
    """
    require_counts(**{name: value})
    return int(value)


def checked_weights(
    sample_weight: Any, x: np.ndarray, y: np.ndarray
) -> Float[np.ndarray, " point"]:
    """Weights (n,), ones where none are given; refused where they do not fit X and y."""
    if len(x) != len(y):
        raise InputError(f"X has {len(x)} rows but y has {len(y)}: they must match row by row.")
    if sample_weight is None:
        return np.ones(len(y))
    try:
        weight = np.asarray(sample_weight, float)
    except (TypeError, ValueError) as error:
        raise InputError(f"sample_weight must be numbers ({error}).") from error
    if weight.ndim == 0:
        weight = np.full(len(y), float(weight))
    if weight.shape != (len(y),) or not (np.all(np.isfinite(weight)) and np.all(weight >= 0)):
        raise InputError(
            f"sample_weight must be {len(y)} finite numbers >= 0, got shape {weight.shape}"
            + (f" and values from {weight.min():g}." if weight.shape == (len(y),) else ".")
        )
    if not weight.sum() > 0:
        raise InputError("sample_weight is zero for every row: nothing to learn from.")
    return weight


def check_total(weight: Float[np.ndarray, " point"]) -> None:
    """Refuse weights that stand for more observations than single precision can count.

    Raises:
        InputError: for a sum beyond 1e15, whose square float32 (3e38) still holds.
    """
    mean = float(np.sum(weight / len(weight)))  # the sum may overflow
    if mean * len(weight) > MOST_OBSERVATIONS:
        raise InputError(
            f"The sample weights add up to {mean * len(weight):.3g}, but each counts how many "
            f"observations its row stands for, {MOST_OBSERVATIONS:g} at most in all: divide them "
            f"by their mean {mean:.3g} for rows that count once on average."
        )


def checked_labels(y: Any) -> np.ndarray:
    """Labels as an array, none missing, all text or all numbers.

    Raises:
        InputError: for missing labels, text among numbers, dates or times, and whole numbers that
            are too large to be saved.
    """
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1 and labels.dtype == object:
        labels = labels[:, 0]
    if labels.dtype.kind == "u" and labels.size and labels.max() > LARGEST_LABEL:
        raise InputError(
            f"y has the label {labels.max()}, and whole numbers are below 2^63: write labels as "
            "text (y.astype(str))."
        )
    if labels.dtype.kind in "mM":
        raise InputError(
            "y has labels that are dates or times: write them as text (y.astype(str)), or predict "
            "the days since a start with BNNRegressor."
        )
    if labels.dtype != object or labels.ndim != 1:
        return labels
    missing = pd.isna(labels)
    if missing.any():
        raise InputError(
            f"y has {plural(int(missing.sum()), 'missing label')}, the first in row "
            f"{int(missing.argmax()) + 1}: remove these rows from X and y."
        )
    is_text = np.array([isinstance(label, str) for label in labels])
    if is_text.any() and not is_text.all():
        other = labels[~is_text][0]
        raise InputError(
            f"y has labels that are text, such as {labels[is_text][0]!r}, and others that are not, "
            f"such as {other!r} of type {type(other).__name__}: write all of them as text."
        )
    return labels


def key_from(seed: int | np.random.RandomState | None) -> Any:
    """The key of random numbers that stands for a seed of scikit-learn's kinds."""

    import jax

    is_integer = isinstance(seed, int | np.integer)
    number = seed if is_integer else check_random_state(seed).randint(np.iinfo(np.int32).max)
    return jax.random.key(number)


def checked_groups(groups: Any, num_rows: int) -> Int[np.ndarray, " point"]:
    """Groups as whole numbers, whatever they were.

    Raises:
        InputError: for another number of them than rows, or a missing one.
    """
    values = column_or_1d(groups)
    if len(values) != num_rows:
        raise InputError(f"groups has {len(values)} entries, and X has {num_rows} rows.")
    codes, _ = pd.factorize(values)
    if (codes < 0).any():
        raise InputError(
            f"groups lacks those of {plural(int((codes < 0).sum()), 'row')}, the first of row "
            f"{int((codes < 0).argmax()) + 1}: give every row a group."
        )
    return codes
