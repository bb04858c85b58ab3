"""Text in prediction tables is data to a spreadsheet, never a formula, and can be had back."""

import io

import pandas as pd
import pytest

from credence.runs.export import as_plain_text, csv_text

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
