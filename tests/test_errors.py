"""Settings that are no numbers where numbers are declared."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pytest

from credence.errors import InputError, check_numbers


@dataclass(frozen=True)
class Settings:
    count: int = 3
    size: float = 0.5
    limit: int | None = None
    rate: float | None = None
    name: str = "any"
    counts: int | tuple[int, ...] = (1, 2)
    pair: tuple[int] = (1,)
    call: Callable[[int], int] = abs


@pytest.mark.parametrize(
    "good", [{}, {"count": np.int32(4)}, {"size": 1}, {"limit": 2}, {"rate": np.float32(0.1)}]
)
def test_numbers_pass(good: dict[str, Any]) -> None:
    settings = Settings(**good)
    check_numbers(settings)
    numbers = [value for name, value in asdict(settings).items() if name not in ("call", "pair")]
    assert json.loads(json.dumps(numbers, default=list))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"count": 2.5}, "count must be a whole number, got 2.5"),
        ({"count": "3"}, "count must be a whole number, got '3'"),
        ({"count": True}, "count must be a whole number, got True"),
        ({"count": None}, "count must be a whole number, got None"),
        ({"size": "big"}, "size must be a number, got 'big'"),
        ({"limit": 0.5}, "limit must be a whole number, got 0.5"),
        ({"rate": [0.1]}, "rate must be a number"),
    ],
)
def test_others_are_refused(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_numbers(Settings(**bad))
