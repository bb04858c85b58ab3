"""The report's section on an emulator: the plot, the verdict in words, and nothing for others."""

from dataclasses import replace

import numpy as np
import pytest
from tools.report_samples import regression

from credence.methods.surrogate.emulation import Emulation
from credence.methods.surrogate.section import read_emulation
from credence.report import render

NUMBERS = {
    "is_exact": True,
    "error": 0.61,
    "correlation": 0.93,
    "hellinger": 0.21,
    "pareto_k": None,
    "first_acceptance_rate": 0.81,
    "acceptance_rate": 0.63,
    "held_out_error": 0.55,
    "held_out_share": 0.04,
}


def sample(**numbers: object) -> Emulation:
    rng = np.random.default_rng(0)
    true = -rng.gamma(6, 1.5, size=(3, 200))
    emulated = true + 0.6 * rng.normal(size=true.shape)
    arrays = {
        "emulation_true": true - true.mean(),
        "emulation_emulated": emulated - emulated.mean(),
    }
    found = Emulation.read({"emulation": NUMBERS | numbers}, arrays)
    assert found is not None
    return found


def test_section_shows_plot_rates_and_phases() -> None:
    report = regression()
    run = replace(report.run, seconds={"calibrate": 3.0, "emulate": 2.0, "sample": 9.0})
    page = render(replace(report, findings=(sample(),), run=run))
    for part in (
        "True and emulated log density",
        "accepted 63 % of the emulator",
        "Hellinger distance",
        "0.21",
        "Second stage accepted",
        "Time: emulate",
    ):
        assert part in page
    assert "k-hat" not in page


def test_other_methods_have_no_such_section() -> None:
    assert "Emulator" not in render(regression())


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ({"is_exact": False, "pareto_k": "inf"}, "above 0.7, do not take them for the posterior's"),
        ({"is_exact": False, "pareto_k": 0.4}, "k-hat 0.4 is below 0.7"),
        ({"is_exact": False, "pareto_k": None}, "too few of them were checked"),
        ({}, "the draws are the posterior's, whatever the emulator"),
    ],
)
def test_reading_says_whose_the_draws_are(numbers: dict[str, object], sentence: str) -> None:
    assert sentence in read_emulation(sample(**numbers).numbers())


def test_choice_of_the_emulator_is_shown() -> None:
    tried = [
        {"name": "coreset", "nats": 0.4, "share": 0.1, "flops": 1e6, "promise": 0.61},
        {"name": "taylor", "nats": 3.0, "share": 0.9, "flops": 2e6, "promise": 0.02},
    ]
    page = render(replace(regression(), findings=(sample(emulator="coreset", candidates=tried),)))
    assert "Tried: taylor" in page
    assert "3 nats, promise 0.02" in page
