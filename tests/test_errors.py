"""What checks of settings refuse, in sentences."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pytest

from credence.errors import InputError, check_numbers, check_particles, require_positive


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


def test_positive_means_a_number_above_zero_and_none_is_left_out() -> None:
    require_positive(step_size=None, width=1, rate=1e-30)
    for value in (0, -1.0, float("nan")):
        with pytest.raises(InputError, match=f"width must be > 0, got {value}"):
            require_positive(step_size=None, width=value)


@pytest.mark.parametrize("number", [1, 0, -3, 2.5])
def test_a_particle_is_not_alone_nor_in_parts(number: Any) -> None:
    with pytest.raises(InputError, match=f"whole number of at least 2 particles, got {number}"):
        check_particles(number)
