"""Text in prediction tables is data to a spreadsheet, never a formula, and can be had back."""

import io

import numpy as np
import pandas as pd
import pytest

from credence.runs.export import as_plain_text, csv_text, rounded

FORMULAS = ["=1+1", "=", "+", "-", "-b", "+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "\n=1"]


@pytest.mark.parametrize("text", [*FORMULAS, *(f"'{text}" for text in FORMULAS)])
def test_a_formula_is_text(text: str) -> None:
    frame = pd.DataFrame({"label": [text, "plain"], text: [1.5, -2.5]})
    written = pd.read_csv(io.StringIO(csv_text(frame), newline=""), keep_default_na=False)
    assert written["label"].tolist() == [f"'{text}", "plain"]
    assert list(written) == ["label", f"'{text}"]


@pytest.mark.parametrize("text", ["", "a=b", "3-4", "'quoted'", "-5", "+1.5", "-1e-5", "-0,5", "é"])
def test_what_is_no_formula_stays(text: str) -> None:
    assert as_plain_text(text) == text


def test_numbers_and_gaps_stay() -> None:
    frame = pd.DataFrame({"mean": [-1.5, 2.0], "count": [-1, 2], "id": ["-a", None]})
    assert csv_text(frame) == "mean,count,id\n-1.5,-1,'-a\n2.0,2,\n"


def test_predictions_have_the_digits_that_they_are_known_to() -> None:
    """Ids and labels, which are the table's own, and infinite ends stay as they are."""
    third = np.float32(1 / 3)
    found = {"id": [0.12345678901], "mean": [1 / 3], "std": [1 / 30], "p": [third], "n": [7]}
    table = rounded(pd.DataFrame(found).assign(upper_95_conformal=np.inf, outside=True))
    told = "0.12345678901,0.3333333,0.03333333,0.3333333,7,inf,True"
    assert csv_text(table).splitlines()[1] == told
    labels = pd.DataFrame({"row": [1], "label": [12345678.5], "probability_12345678.5": [2 / 3]})
    assert csv_text(rounded(labels)).splitlines()[1] == "1,12345678.5,0.6666667"


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, 1e9, -1e12])
def test_rounding_is_small_beside_the_smallest_spread(offset: float) -> None:
    rng = np.random.default_rng(0)
    std = np.exp(rng.normal(size=200))
    table = pd.DataFrame({"row": range(200), "mean": offset + rng.normal(size=200), "std": std})
    off = (rounded(table)["mean"] - table["mean"]).abs().max()
    assert off <= max(1e-3 * std.min(), np.spacing(abs(offset)))
