"""RUN folders of version 0.1.0, one of each family of methods, still open and predict the same.

They were written by `credence fit houses.csv --target price --method NAME --hidden 3 --num-draws 8`
of commit 9884674, before ensembles had checksums; predictions.csv is what that version said of the
first five rows; its intervals of 95 % had no number in their headings.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from credence.runs import prediction
from credence.runs.page import write_page

RUNS = Path(__file__).parents[1] / "data" / "runs_0_1_0"
HEADINGS = {"lower": "lower_95", "upper": "upper_95"}
NAMES = sorted(path.name for path in RUNS.iterdir() if path.is_dir())


@pytest.mark.optimized  # predictions differ in rounding otherwise
@pytest.mark.parametrize("name", NAMES)
def test_an_earlier_run_predicts_what_it_did(name: str, tmp_path: Path) -> None:
    table = pd.read_csv(RUNS / ("dear.csv" if name == "nuts_classes" else "houses.csv"))
    table.head(5).to_csv(tmp_path / "new.csv", index=False)
    predicted, _ = prediction.predict(RUNS / name, str(tmp_path / "new.csv"))
    expected = pd.read_csv(RUNS / name / "predictions.csv").rename(columns=HEADINGS)
    for column in expected:
        if expected[column].dtype == float:
            np.testing.assert_allclose(predicted[column], expected[column], rtol=2e-6)
        else:
            assert predicted[column].tolist() == expected[column].tolist()


@pytest.mark.parametrize("name", ["ces", "transdimensional", "smc"])
def test_an_earlier_run_can_be_reported(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    for path in (RUNS / name).rglob("*"):
        if path.is_file():
            copy = folder / path.relative_to(RUNS / name)
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(path.read_bytes())
    write_page(folder)
    assert "</html>" in (folder / "report.html").read_text(encoding="utf-8")
