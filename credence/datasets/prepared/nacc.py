"""The Alzheimer data of the National Alzheimer's Coordinating Center, from the user's own file.

Access is by request only, so that no copy can come along. `read_nacc` takes a CSV file as the
centre sends it, Uniform Data Set and, where wanted, MRI measures, one row per visit: it keeps the
columns below that are there, makes missing values of the centre's codes for them, and makes the
target. Moslemi, Meng, Lan & Shahbaba, "Scaling up Bayesian neural networks with neural networks"
(2024), use "56 key features" of 185,831 visits without naming them; ours are of the kinds that they
describe: functional abilities, brain morphometrics, living situations, demographic information.
"""

from pathlib import Path

import pandas as pd

from credence.datasets.files import read_table_file
from credence.errors import InputError, quoted

NEVER = (-4,)
"""Codes for "not collected at this visit or in this form"."""
SCALE_8 = (*NEVER, 8, 9)
"""Codes that stand for no value on scales where 8 is "not applicable" and 9 is "unknown"."""
AGES = (*NEVER, 888, 999)
YEARS = (*NEVER, 99)
MRI = (*NEVER, 88.8888, 888.8888, 9999.9999)
FUNCTIONAL = (
    "BILLS",
    "TAXES",
    "SHOPPING",
    "GAMES",
    "STOVE",
    "MEALPREP",
    "EVENTS",
    "PAYATTN",
    "REMDATES",
    "TRAVEL",
)
"""Functional activities, 0 (normal) to 3 (dependent)."""
BRAIN = (
    "NACCICV",
    "NACCBRNV",
    "NACCWMVL",
    "CSFVOL",
    "GRAYVOL",
    "LHIPPO",
    "RHIPPO",
    "LENT",
    "RENT",
    "LPARHIP",
    "RPARHIP",
)
"""Volumes in cm3."""
COLUMNS: dict[str, tuple[float, ...]] = {
    "SEX": NEVER,
    "NACCAGE": AGES,
    "EDUC": YEARS,
    "MARISTAT": (*NEVER, 9),
    "NACCLIVS": (*NEVER, 9),
    "INDEPEND": (*NEVER, 9),
    "RESIDENC": (*NEVER, 9),
    "HANDED": (*NEVER, 9),
    "NACCNE4S": (*NEVER, 9),
    "NACCBMI": (*NEVER, 888.8),
    "BPSYS": (*NEVER, 777, 888),
    "BPDIAS": (*NEVER, 777, 888),
    "HRATE": (*NEVER, 777, 888),
    **{name: SCALE_8 for name in FUNCTIONAL},
    **{name: MRI for name in BRAIN},
}
"""Features and the codes that mean that a value is missing."""
DIAGNOSIS = "NACCUDSD"
"""1 normal cognition, 2 impaired but not mildly cognitively impaired, 3 MCI, 4 dementia."""
CAUSE = "NACCALZD"
"""1 where Alzheimer's disease is the presumptive cause."""
HIPPOCAMPUS = "LHIPPO"
FEWEST = 5
"""Features without which a file is not what it should be."""


def read_nacc(path: str | Path, *, target: str = "diagnosis") -> pd.DataFrame:
    """A table for `credence fit`, from a file of the centre.

    Args:
        path: CSV or Parquet, one row per visit, with the centre's column names.
        target: "diagnosis", a column `impaired` that is 0 for normal cognition (NACCUDSD 1) and 1
            for mild cognitive impairment or dementia (3, 4) due to Alzheimer's disease (NACCALZD
            1), other visits left out; or "hippocampus", the column LHIPPO, the left hippocampus's
            volume in cm3, at visits with an image.
    Raises:
        InputError: where the file lacks the target's columns, or nearly all features.
    """
    frame = read_table_file(Path(path))
    frame.columns = [str(name).strip().upper() for name in frame.columns]
    _check(frame, Path(path), target)
    known = [name for name in COLUMNS if name in frame]
    features = pd.DataFrame(
        {name: _without_codes(frame[name], COLUMNS[name]) for name in known}, index=frame.index
    )
    if target == "hippocampus":
        found = features[features[HIPPOCAMPUS].notna()]
    else:
        diagnosis, cause = frame[DIAGNOSIS], frame[CAUSE]
        is_impaired = diagnosis.isin([3, 4]) & (cause == 1)
        features["impaired"] = is_impaired.astype(int)
        found = features[is_impaired | (diagnosis == 1)]
    if len(found) == 0:
        raise InputError(
            f"No visit in {path} has a known {target}: is {DIAGNOSIS}, {CAUSE} or {HIPPOCAMPUS} "
            "coded as the centre does?"
        )
    return found.reset_index(drop=True)


def _check(frame: pd.DataFrame, path: Path, target: str) -> None:
    """Refuse another target, and files without the centre's columns."""
    needed = {"diagnosis": (DIAGNOSIS, CAUSE), "hippocampus": (HIPPOCAMPUS,)}
    if target not in needed:
        raise InputError(f"target must be 'diagnosis' or 'hippocampus', got {target!r}.")
    missing = [name for name in needed[target] if name not in frame]
    if missing:
        raise InputError(
            f"{path} has no column {quoted(missing)}, which target='{target}' needs: ask the "
            "centre for the Uniform Data Set with these columns"
            + (" and the MRI measures." if target == "hippocampus" else ".")
        )
    known = [name for name in COLUMNS if name in frame]
    if len(known) < FEWEST:
        raise InputError(
            f"{path} has only {len(known)} of the {len(COLUMNS)} known features, such as "
            f"{quoted(list(COLUMNS)[:4])}: is it a file of the centre?"
        )


def _without_codes(column: pd.Series, codes: tuple[float, ...]) -> pd.Series:
    """Numbers, NaN where a code says that there is none."""
    numbers = pd.to_numeric(column, errors="coerce").astype(float)
    return numbers.mask(numbers.isin(codes))
