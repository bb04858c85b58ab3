"""The section on an emulator: did it know the likelihood where its chain went?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from credence.html.markup import Html, element
from credence.html.parts import columns, figure, section, settings
from credence.html.svg import CHAINS, MUTED, label, new_figure, to_svg
from credence.html.wording import duration, number
from credence.methods.surrogate.emulators.base import CUT_SHORT

MOST_CHAINS = 4
MOST_DRAWS = 250  # drawn per chain
PHASES = ("train", "calibrate", "emulate", "warmup", "sample", "reweigh")


Densities = Float[np.ndarray, "chain checked"]
"""Log densities in nats along the chains, each chain's mean taken off."""


def emulation_section(
    true: Densities,
    emulated: Densities,
    numbers: Mapping[str, Any],
    seconds: Mapping[str, float],
    *,
    is_converged: bool,
) -> Html:
    """True against emulated log density along the chains, and the numbers that judge it.

    Args:
        numbers: "emulation" of metrics.json.
    """
    reading = read_emulation(numbers)
    note = "One point per draw, one colour per chain, each chain's mean taken off; on the line the "
    chart = figure(
        "True and emulated log density",
        reading,
        emulation_chart(true, emulated, "emulation", reading),
        note=f"{note}emulator is right.",
    )
    facts = element("div", settings(_facts(numbers, seconds)))
    return section("Emulator", columns([chart], [facts]), is_converged=is_converged)


def read_emulation(numbers: Mapping[str, Any]) -> str:
    """Say whether the draws are to be trusted, and why."""
    return _judgement(numbers) + _cut_short(numbers)


def _cut_short(numbers: Mapping[str, Any]) -> str:
    """A sentence on training that time ended; empty where it ended by itself."""
    if CUT_SHORT not in numbers:
        return ""
    return (
        f" Time ended the emulator's training after {numbers[CUT_SHORT]} epochs: it could have "
        "learnt more (give more seconds)."
    )


def _judgement(numbers: Mapping[str, Any]) -> str:
    """Whose the draws are."""
    if numbers.get("is_likelihood"):
        return (
            "Nothing was emulated: with so few rows the emulator is the likelihood of all of them, "
            "and the draws are those of its chain on all rows."
        )
    if numbers["is_exact"]:
        return (
            f"The true likelihood decided, and accepted {_percent(numbers['acceptance_rate'])} of "
            f"the emulator's proposals: the draws are the posterior's, whatever the emulator. It "
            f"is off by {number(numbers['error'])} nats."
        )
    start = f"The draws are the emulator's, which is off by {number(numbers['error'])} nats there"
    pareto_k = numbers["pareto_k"]
    if pareto_k is None:
        return f"{start}; too few of them were checked to say more."
    if float(str(pareto_k)) > 0.7:
        return (
            f"{start}: k-hat {_nats(pareto_k)} is above 0.7, do not take them for the posterior's."
        )
    return f"{start}; k-hat {_nats(pareto_k)} is below 0.7, weights can mend that."


def emulation_chart(true: Densities, emulated: Densities, name: str, reading: str) -> Html:
    """Emulated against true log density, figure 5 of the FBNN paper as a scatter plot."""
    figure_, (axes,) = new_figure()
    every = max(1, true.shape[1] // MOST_DRAWS)
    true, emulated = (each[:MOST_CHAINS, ::every] for each in (true, emulated))
    for colour, x, y in zip(CHAINS, true, emulated, strict=False):
        axes.plot(x, y, ".", color=colour, markersize=3.5, alpha=0.7)
    ends = [min(true.min(), emulated.min()), max(true.max(), emulated.max())]
    axes.plot(ends, ends, color=MUTED, linewidth=0.8, dashes=(4, 3))
    axes.margins(0.05)
    label(axes, "Emulated, nats", "True log density, nats from the chain's mean")
    return to_svg(figure_, name, "Emulated against true log density", reading)


def _facts(numbers: Mapping[str, Any], seconds: Mapping[str, float]) -> list[tuple[str, str]]:
    """Names and values under one another."""
    facts = [
        ("Chosen", str(numbers.get("emulator", "–"))),
        *_tried(numbers.get("candidates", ())),
        ("First stage accepted", _percent(numbers["first_acceptance_rate"])),
        ("Second stage accepted", _percent(numbers["acceptance_rate"])),
        ("Error along the chain", f"{_nats(numbers['error'])} nats"),
        ("Error at held-out draws", f"{_nats(numbers['held_out_error'])} nats"),
        ("of the variance there", _percent(numbers["held_out_share"])),
        ("Correlation", _nats(numbers["correlation"])),
        ("Hellinger distance", _nats(numbers["hellinger"])),
        ("Pareto k-hat", _nats(numbers["pareto_k"])),
    ]
    shown = [(f"Time: {name}", duration(seconds[name])) for name in PHASES if name in seconds]
    return [(name, value) for name, value in facts if value not in ("–", "– nats")] + shown


def _tried(candidates: Any) -> list[tuple[str, str]]:
    """Emulators that were tried, and what spoke for them."""
    return [
        (f"Tried: {one['name']}", f"{_nats(one['nats'])} nats, promise {_nats(one['promise'])}")
        for one in candidates
    ]


def _percent(value: object) -> str:
    return "–" if value is None else f"{100 * float(str(value)):.3g} %"


def _nats(value: object) -> str:
    return "–" if value is None else number(float(str(value)), 3)
