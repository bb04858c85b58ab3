"""What CES says before it samples, and what it refuses before anything is computed."""

import re
from typing import Any

import numpy as np
import pytest

from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.engine.progress import NoProgress
from credence.errors import InputError
from credence.methods.surrogate import worth
from credence.methods.surrogate.ces import CES
from credence.methods.surrogate.emulators import Coreset, Error, Taylor
from credence.methods.surrogate.section import read_emulation
from credence.methods.surrogate.worth import HopelessEmulator, checked_error, outlook
from credence.models import MLP, Gaussian, HierarchicalGamma, Normal


def posterior(num_rows: int, hidden: int = 3, prior: Any = None) -> Posterior:
    x = np.zeros((num_rows, 1), np.float32)
    return Posterior(MLP(1, (hidden,)), prior or Gaussian(), Normal(), (x, x[:, 0]))


@pytest.mark.parametrize(
    ("num_rows", "hidden", "emulator", "parts"),
    [
        (2000, 3, Coreset(), ("2,000 rows", "nothing is emulated", "nuts on all rows", "mclmc")),
        (2000, 3, Taylor(), ("below some 50,000 rows", "mclmc")),
        (60_000, 200, Coreset(), ("602 weights", "likely to be refused", "mclmc")),
        (60_000, 3, Coreset(), ("can pay", "before the chain begins")),
    ],
)
def test_outlook_goes_by_rows_and_weights(
    num_rows: int, hidden: int, emulator: Any, parts: tuple[str, ...]
) -> None:
    sentence = outlook(posterior(num_rows, hidden), emulator, "nuts")
    for part in parts:
        assert part in sentence
    assert ("mclmc" in sentence) == ("mclmc" in parts)


def test_the_rule_has_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worth, "FEWEST_ROWS", 10)
    assert "can pay" in outlook(posterior(2500), Coreset(), "nuts")


class Listening(NoProgress):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


def test_it_is_said_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    listening = Listening()

    def phase(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Driver, "phase", phase)
    with pytest.raises(KeyboardInterrupt):
        CES().run(0, posterior(2000), progress=listening)
    assert len(listening.said) == 1
    assert "nothing is emulated" in listening.said[0]


@pytest.mark.parametrize(
    ("settings", "prior", "message"),
    [
        (
            {"calibration": "sghmc", "sampler": "pcn", "reference": "prior"},
            HierarchicalGamma(),
            "needs a Gaussian prior",
        ),
        ({"sampler": "pcn"}, HierarchicalGamma(), "needs a Gaussian prior"),
    ],
)
def test_what_cannot_be_sampled_is_refused_at_once(
    settings: Any, prior: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Driver, "phase", lambda *args, **kwargs: pytest.fail("too late"))
    with pytest.raises(InputError, match=message):
        CES(**settings).run(0, posterior(30, prior=prior))


def test_a_measured_error_is_said_and_refused_with_another_method() -> None:
    listening = Listening()
    with Driver(None, progress=listening) as driver:
        assert checked_error(Error(2.0, 0.1), driver, 10.0, 100).nats == 2.0
        assert "off by 2 nats" in listening.said[0]
        with pytest.raises(HopelessEmulator, match=r"off by 23 nats.*method='mclmc'"):
            checked_error(Error(23.0, 1.05), driver, 10.0, 100)
        with pytest.raises(HopelessEmulator, match="has not moved"):
            checked_error(Error(np.inf, np.inf), driver, 10.0, 100)


@pytest.mark.parametrize("nats", [1e5, np.inf])
def test_the_bound_that_it_advises_is_enough(nats: float) -> None:
    error = Error(nats, 1.0)
    with Driver() as driver:
        with pytest.raises(HopelessEmulator) as refused:
            checked_error(error, driver, 10.0, 100)
        advised = re.findall(r"max_error=(\S+) samples all the same", str(refused.value))
        assert checked_error(error, driver, float(advised[0]), 100) == error


def test_draws_on_all_rows_are_not_called_emulated() -> None:
    assert read_emulation({"is_likelihood": True}).startswith("Nothing was emulated")
