"""Numbers in the sentences of docs/explanation/interacting.md."""

from collections.abc import Iterator
from functools import cache
from unittest import mock

from kept import kept_rows
from phrases import Phrase, given, made, unkept
from tools import two_state


def phrases() -> Iterator[Phrase]:
    """The phrases of the page, in its order."""
    yield from of_two_states()
    yield from of_settings()
    yield from given("follows section 4.2 of the paper", "11.2 million weights of four bytes")
    yield from of_residual_networks()


def of_two_states() -> Iterator[Phrase]:
    """Tell what clouds of few particles give where the law is known, computed exactly."""
    yield made(
        "gives {:.3f} for N = 4 and {:.3f} for N = 16",
        *(slow_share(num, partners=0.001, particles=0.0001) for num in (4, 16)),
    )
    yield from given(
        "(`jump_probability`, 0.1)",
        "0.7 is the truth",
        "state anew with probability 0.3. A particle tries a jump with probability 0.3",
        "its state anew with probability 0.1",
        "with 0.001 for partners and 0.0001 for particles",
        "above 1.1, from 100 draws on",
    )


def slow_share(num: int, *, partners: float, particles: float) -> float:
    """The probability of state 1 where both draw their states so seldom, with `ar`."""
    moves = {
        "Q": two_state.flips(two_state.AUXILIARY, partners),
        "K": two_state.flips(two_state.TARGET, particles),
    }
    with mock.patch.multiple(two_state, **moves):
        return two_state.stationary_law(num, "ar").mean


def of_settings() -> Iterator[Phrase]:
    """Tell what one coin for all particles does to a cloud, and what a test asks for."""
    found = cloud_variances(20)
    yield made("grows from {:.4f} to {:.4f} (`bg`) and from {:.4f} to {:.4f} (`ar`)", *found)
    yield from given("right within 4.5 standard errors")


@cache  # a second or more
def cloud_variances(num: int) -> tuple[float, ...]:
    """The variances that a coin each and one coin give the share of ones, computed exactly."""
    return tuple(
        two_state.stationary_law(num, jump, synchronous=synchronous).variance
        for jump in ("bg", "ar")
        for synchronous in (False, True)
    )


def of_residual_networks() -> Iterator[Phrase]:
    """Tell how long gradients of residual networks take on an accelerator."""
    rows = {(row["depth"], row["way"][:3]): row for row in kept_rows("residual_gradients")}
    small = [rows[8, way]["milliseconds"] for way in ("one", "XLA")]
    yield made("takes {} ms as a product and {} ms as XLA's", *small)
    gradient = rows[20, "one"]["milliseconds"]
    yield made("take {} ms for a gradient of 256 images each", gradient)
    passes, steps = 100 * -(-50_000 // 256), 40_000
    training, sampling = (2 * number * gradient / 60_000 for number in (passes, steps))
    yield made("take {:.0f} minutes for 100 passes of training", training)
    yield made("and {:.0f} for the 40,000 steps of sampling", sampling)
    hours = (6 * (training + sampling) + training) / 60
    assert round(hours) == 6, "six hours"
    assert 24 < 5 * hours < 36, "more than a day"
    yield from given(
        "at 128 images each takes",
        "the 50,000 images and",
        "10,000 images of 16 x 16",
        "their partners, 50 passes",
        "and their partners, 16 passes",
    )
    yield from unkept(
        "22 to 30 GiB of its memory together, so less than 2 GiB a network",
    )
