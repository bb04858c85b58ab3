"""Turn one column of a table into the numbers that a network sees.

What scikit-learn's transformers learn (medians, means, scales, categories) is kept as plain values
and applied here. A column x becomes

    numbers:  (filled - mean) / scale,  filled = x, or the median where x is missing;
              and, if values were missing in training, 1 where x is missing, else 0
    names:    for each category 1 where x is that category, else 0

Both of two categories have their own 0/1 column: the prior then treats all categories alike, and
one never seen in training (all zeros) differs from each of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from sklearn.preprocessing import OneHotEncoder

from credence.datasets.columns import as_numbers, as_text, where
from credence.datasets.scales import LARGEST_STD, mean_and_std, scale_of_inputs
from credence.errors import InputError, plural, quoted

MAX_CATEGORIES = 100  # 0/1 columns made of one column of names; the rarest names share the last
MIN_ROWS = 10  # that a name needs for its own 0/1 column; below 1000 rows 1 % of the rows
RARE, NEW = -2, -1  # in place of a position among the categories
LARGEST = 1e15  # standardised input: float32 (3e38) still holds sums of squares of it

Feature = tuple[str, Float[np.ndarray, " row"]]


@dataclass(frozen=True)
class NumericColumn:
    """A column of numbers; `has_missing`: values were missing in training.

    `low` and `high` are the smallest and the largest number in training; None in what earlier
    versions saved.

    Raises:
        InputError: if the numbers are so large that mean or scale are not finite or nearly so.
    """

    name: str
    median: float
    mean: float
    scale: float
    has_missing: bool
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        is_finite = np.isfinite([self.median, self.mean, self.scale]).all()
        if not (is_finite and 0 < self.scale <= LARGEST_STD):
            raise InputError(
                f"The numbers in column '{self.name}' cannot be standardised: their mean is "
                f"{self.mean:g} and their standard deviation {self.scale:g}. Change their unit."
            )

    def features(self, column: pd.Series) -> Iterator[Feature]:
        """The standardised numbers and, where training had missing values, their flag."""
        x = as_numbers(column)
        missing = np.isnan(x)
        with np.errstate(over="ignore"):  # refused below
            z = (np.where(missing, self.median, x) - self.mean) / self.scale
        if (np.abs(z) > LARGEST).any():
            first = int(np.argmax(np.abs(z) > LARGEST))
            raise InputError(
                f"The column '{self.name}' holds {x[first]:g} in {where(column, first)}, while its "
                f"mean in training was {self.mean:g} and its standard deviation {self.scale:g}: "
                "correct the value, or leave it empty if it is not known."
            )
        yield self.name, z
        if self.has_missing:
            yield f"{self.name}_is_missing", missing.astype(np.float64)

    def news(self, column: pd.Series) -> str | None:
        """Sentences on what the column has that training did not have, or None."""
        found = [self._filled(int(column.isna().sum())), self._far_outside(column)]
        return " ".join(filter(None, found)) or None

    def _filled(self, number: int) -> str:
        if self.has_missing or not number:
            return ""
        return (
            f"Filled {plural(number, 'missing value')} in '{self.name}' with the median; "
            "none were missing in training."
        )

    def is_outside(self, column: pd.Series) -> Bool[np.ndarray, " row"]:
        """Find numbers that are more than a standard deviation beyond those of training."""
        x = as_numbers(column)
        if self.low is None or self.high is None:
            return np.zeros(len(x), bool)
        return (x < self.low - self.scale) | (x > self.high + self.scale)

    def _far_outside(self, column: pd.Series) -> str:
        is_outside = self.is_outside(column)
        if not is_outside.any():
            return ""
        first = int(np.argmax(is_outside))
        return (
            f"'{self.name}' was between {self.low:g} and {self.high:g} in training, and is far "
            f"outside in {plural(int(is_outside.sum()), 'row')}, first "
            f"{as_numbers(column)[first]:g} in {where(column, first)}: what networks say there "
            "rests on no data."
        )


@dataclass(frozen=True)
class CategoricalColumn:
    """A column of names; `has_missing`: values were missing in training; `has_others`: some names
    in training, the `rare` ones, were too rare for a 0/1 column of their own and share one.

    A name never seen in training counts as one of these others, as does a missing value if none
    were missing in training. Where there are no others either, all its 0/1 columns are 0.

    `is_text`: the names were text in training, so a file to predict for is read as text too.
    What earlier versions saved lacks `rare` and `is_text`.
    """

    name: str
    categories: tuple[str, ...]
    has_missing: bool
    has_others: bool
    rare: tuple[str, ...] = ()
    is_text: bool = False

    def features(self, column: pd.Series) -> Iterator[Feature]:
        """A 0/1 column for each category, then for missing values and for other names."""
        position, missing = self._positions(column)
        for i, text in enumerate(self.categories):
            yield f"{self.name}_{text}", (position == i).astype(np.float64)
        others = position < 0
        if self.has_missing:
            yield f"{self.name}_is_missing", missing.astype(np.float64)
            others &= ~missing
        if self.has_others:
            yield f"{self.name}_is_other", others.astype(np.float64)

    def news(self, column: pd.Series) -> str | None:
        """A sentence on what the column has that training did not have, or None."""
        new, missing = self.is_outside(column), column.isna().to_numpy()
        if not new.any():
            return None
        treated = "as its rare names do" if self.has_others else "as none of its categories"
        names = [as_text(name) for name in column[new & ~missing].unique()]
        shown = [quoted(names, most=4)] if names else []
        shown += ["no value at all"] * bool((new & missing).any())
        return (
            f"'{self.name}' holds names that training did not have, in "
            f"{plural(int(new.sum()), 'row')}, first in {where(column, int(np.argmax(new)))}: "
            f"{' and '.join(shown)}; they count {treated}.{self._alike(names)}"
        )

    def _alike(self, names: list[str]) -> str:
        """A question on names that differ from known ones by case or blanks at the ends only."""
        known = {name.strip().casefold(): name for name in (*self.rare, *self.categories)}
        alike = [known[key] for name in names if (key := name.strip().casefold()) in known]
        return f" Did you mean {quoted(alike, most=4)}?" if alike else ""

    def is_outside(self, column: pd.Series) -> Bool[np.ndarray, " row"]:
        """Find names, or missing values, that training did not have."""
        position, missing = self._positions(column)
        rare_unknown = self.has_others and not self.rare  # saved by an earlier version
        if rare_unknown:
            return np.zeros(len(position), bool)
        return (position == NEW) & ~(missing & self.has_missing)

    def _positions(
        self, column: pd.Series
    ) -> tuple[Int[np.ndarray, " row"], Bool[np.ndarray, " row"]]:
        """The position in `categories`, or RARE or NEW; and whether the value is missing."""
        codes, values = pd.factorize(column)  # the code of a missing value is -1
        known = dict.fromkeys(self.rare, RARE)
        known |= {as_text(name): i for i, name in enumerate(self.categories)}
        if set(self.categories) == {"False", "True"}:  # files often have 0 and 1 in their place
            known |= {"0": known["False"], "1": known["True"]}
        positions = np.array([known.get(as_text(value), NEW) for value in values] + [NEW])
        return positions[codes], codes == -1


def learn_numbers(
    frame: pd.DataFrame, weight: Float[np.ndarray, " row"] | None = None
) -> list[NumericColumn]:
    """Medians, means and standard deviations (1 for a constant) of columns of numbers.

    Args:
        weight: > 0, how many observations each row stands for; None for one.
    """
    if frame.empty:
        return []
    x = np.column_stack([as_numbers(frame[name]) for name in frame])
    medians = (
        np.nanmedian(x, axis=0)
        if weight is None
        else np.array([_weighted_median(values, weight) for values in x.T])
    )
    with np.errstate(over="ignore"):  # NumericColumn refuses what overflows
        means, stds = mean_and_std(np.where(np.isnan(x), medians, x), weight)
    scales = scale_of_inputs(means, stds)
    columns = zip(frame, medians, means, scales, x.T, strict=True)
    return [
        NumericColumn(
            name=name,
            median=float(median),
            mean=float(mean),
            scale=float(scale),
            has_missing=bool(np.isnan(values).any()),
            low=float(np.nanmin(values)),
            high=float(np.nanmax(values)),
        )
        for name, median, mean, scale, values in columns
    ]


def _weighted_median(values: Float[np.ndarray, " row"], weight: Float[np.ndarray, " row"]) -> float:
    """The median of the values that are there, each as often as its weight says."""
    order = np.argsort(values)[: np.sum(~np.isnan(values))]  # gaps come last
    share = np.cumsum(weight[order])
    places = [np.searchsorted(share, 0.5 * share[-1], side) for side in ("left", "right")]
    return float(np.mean(values[order[places]]))


def learn_names(column: pd.Series) -> CategoricalColumn:
    """The names in a column that are frequent enough for a 0/1 column of their own."""
    codes, values = pd.factorize(column.dropna())
    texts = np.array([as_text(value) for value in values], object)[codes]
    encoder = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        min_frequency=int(np.clip(len(texts) // 100, 1, MIN_ROWS)),
        max_categories=MAX_CATEGORIES,
    ).fit(texts[:, None])
    rare = encoder.infrequent_categories_[0]
    rare = () if rare is None else set(rare)
    return CategoricalColumn(
        name=str(column.name),
        categories=tuple(text for text in encoder.categories_[0] if text not in rare),
        has_missing=len(texts) < len(column),
        has_others=bool(rare),
        rare=tuple(sorted(rare)),
        is_text=any(isinstance(value, str) for value in values),
    )
