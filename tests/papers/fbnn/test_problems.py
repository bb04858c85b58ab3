"""The problems of the FBNN paper: each rung of the ladder of rows is one."""

import pytest

from credence_papers.fbnn.tables import FBNN_CONVERGED


@pytest.mark.parametrize("size", ["laptop", "paper"])
def test_every_rung_has_rows_of_its_own(size: str) -> None:
    """2000, more, and all, with the same test rows, at paper size too."""
    for table in ("adult", "celeba", "mnist"):
        rungs = [p.rows[size] for p in FBNN_CONVERGED.problems if p.name.startswith(table)]
        assert [rung.test for rung in rungs] == [2000] * len(rungs)
        numbers = [rung.train for rung in rungs]
        assert (numbers[0], numbers[-1]) == (2000, None)
        assert len(set(numbers)) == len(numbers)
