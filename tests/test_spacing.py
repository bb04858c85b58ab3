"""Positions at even distances stand for all, and earlier ones stay where they were."""

import numpy as np
import pytest

from credence.spacing import evenly_spaced


def test_few_of_many_are_at_even_distances() -> None:
    assert evenly_spaced(10, 4).tolist() == [0, 3, 6, 9]
    assert evenly_spaced(10, 3).tolist() == [0, 4, 9]
    assert evenly_spaced(11, 5, to_whole=np.floor).tolist() == [0, 2, 5, 7, 10]


def test_all_are_taken_where_there_are_no_more() -> None:
    assert evenly_spaced(3, 50).tolist() == [0, 1, 2]
    assert evenly_spaced(7, 1).tolist() == [0]
    assert evenly_spaced(0, 5).tolist() == []


@pytest.mark.parametrize("to_whole", [np.round, np.floor])
def test_none_is_taken_twice(to_whole: object) -> None:
    for count in range(1, 120):
        for most in range(1, count + 2):
            found = evenly_spaced(count, most, to_whole=to_whole)  # type: ignore[arg-type]
            assert len(found) == min(most, count)
            assert np.all(np.diff(found) > 0)
