"""The Alzheimer data: a file as the centre sends it becomes a table with honest missing values."""

import numpy as np
import pandas as pd
import pytest

from credence.datasets import read_nacc
from credence.errors import InputError


@pytest.fixture
def visits() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "NACCID": [f"N{i}" for i in range(6)],
            "sex": [1, 2, 2, 1, 1, 2],
            "NACCAGE": [71, 80, 999, 66, 75, 69],
            "EDUC": [16, 99, 12, 12, 20, 8],
            "BILLS": [0, 3, 8, 1, -4, 9],
            "TRAVEL": [0, 3, 0, 1, 2, 0],
            "LHIPPO": [3.1, 88.8888, 2.0, -4, 3.3, 2.7],
            "NACCUDSD": [1, 4, 3, 2, 3, 4],
            "NACCALZD": [8, 1, 1, 8, 0, 1],
        }
    )


def test_codes_are_missing_values_and_other_causes_are_left_out(visits, tmp_path) -> None:
    visits.to_csv(tmp_path / "uds.csv", index=False)
    found = read_nacc(tmp_path / "uds.csv")
    assert found["impaired"].tolist() == [0, 1, 1, 1]
    assert found["NACCAGE"].tolist()[:2] == [71, 80]
    np.testing.assert_array_equal(found["NACCAGE"].isna(), [False, False, True, False])
    np.testing.assert_array_equal(found["BILLS"].isna(), [False, False, True, True])
    np.testing.assert_array_equal(found["EDUC"].isna(), [False, True, False, False])
    assert not {"NACCID", "NACCUDSD", "NACCALZD"} & set(found.columns)


def test_volumes_are_the_other_target(visits, tmp_path) -> None:
    visits.to_csv(tmp_path / "uds.csv", index=False)
    found = read_nacc(tmp_path / "uds.csv", target="hippocampus")
    assert found["LHIPPO"].tolist() == [3.1, 2.0, 3.3, 2.7]
    assert "impaired" not in found


@pytest.mark.parametrize(
    ("change", "target", "message"),
    [
        (lambda v: v.drop(columns="NACCALZD"), "diagnosis", "has no column 'NACCALZD'"),
        (lambda v: v.drop(columns="LHIPPO"), "hippocampus", "and the MRI measures"),
        (lambda v: v[["SEX", "NACCUDSD", "NACCALZD"]], "diagnosis", "only 1 of the 34 known"),
        (lambda v: v.assign(NACCUDSD=2), "diagnosis", "No visit in .* has a known diagnosis"),
        (lambda v: v, "age", "target must be 'diagnosis' or 'hippocampus', got 'age'"),
    ],
)
def test_other_files_are_refused(visits, tmp_path, change, target, message) -> None:
    change(visits.rename(columns={"sex": "SEX"})).to_csv(tmp_path / "uds.csv", index=False)
    with pytest.raises(InputError, match=message):
        read_nacc(tmp_path / "uds.csv", target=target)
