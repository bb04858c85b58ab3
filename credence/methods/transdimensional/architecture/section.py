"""How wide and how deep is the network? For methods that change the architecture as they draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from credence.html.markup import Html
from credence.html.parts import columns, figure, section, table
from credence.html.svg import ACCENT, MUTED, label, new_figure, to_svg
from credence.html.wording import count, number, percent

Posterior = Mapping[str, Any]
"""p(width) or p(depth), as `Architecture.to_dict` writes it."""


def architecture_section(found: Mapping[str, Any], *, is_converged: bool) -> Html:
    """p(width), p(depth), the likeliest architectures, how the chains agree, and their jumps.

    Args:
        found: "architecture" of metrics.json.
    """
    left = [_probabilities(found["width"], "Neurons in the hidden layers", "width")]
    if found["depth"] is not None:
        left.append(_probabilities(found["depth"], "Hidden layers", "depth"))
    if found.get("joint"):
        left.append(_together(found["joint"]))
    right = [
        figure("Likeliest architectures", read_likeliest(found), _likeliest(found)),
        figure("Do the chains agree about it?", found["reason"], _agreement(found)),
        figure("Jumps between architectures", read_jumps(found), _jumps(found)),
    ]
    return section(
        "How large should the network be?", columns(left, right), is_converged=is_converged
    )


def probability_chart(posterior: Posterior, x: str, name: str, reading: str) -> Html:
    """Bars from the smallest to the largest count visited, each with two Monte Carlo errors."""
    values, shares, errors = _visited(posterior)
    drawing, (axes,) = new_figure(height=200)
    axes.bar(values, shares, width=0.8, color=ACCENT, alpha=0.75)
    spread = {"linestyle": "none", "linewidth": 0.9}
    axes.errorbar(values, shares, 2 * np.nan_to_num(errors), color=MUTED, **spread)
    axes.grid(visible=False, axis="x")
    axes.set_ylim(bottom=0)
    axes.set_xlim(values[0] - 0.75, values[-1] + 0.75)
    label(axes, "Probability given the data", x, percent_y=True)
    axes.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    return to_svg(drawing, name, f"Posterior of: {x}", reading)


def read_posterior(posterior: Posterior) -> str:
    """Mode, mean and range."""
    values, shares, errors = _visited(posterior)
    top = int(np.argmax(shares))
    found = (
        f"Most probable: {number(posterior['mode'])}, with {percent(shares[top], 1)}"
        f"{_plus_minus(errors[top])}; on average {number(posterior['mean'])}."
    )
    if len(values) == 1:
        return f"Always {number(posterior['mode'])}."
    return f"{found} The chains went from {number(values[0])} to {number(values[-1])}."


def read_likeliest(found: Mapping[str, Any]) -> str:
    """The first of them, and how many there were."""
    first = found["likeliest"][0]
    return (
        f"{_name(first['widths'])} comes first, with {percent(first['probability'], 1)}"
        f"{_plus_minus(first['standard_error'])}. Visited: "
        f"{count(found['num_architectures'], 'architecture')}."
    )


def read_jumps(found: Mapping[str, Any]) -> str:
    """How many were tried and accepted, and how far the chains came."""
    tried = sum(each["tried"] for each in found["jumps"].values())
    accepted = sum(each["accepted"] for each in found["jumps"].values())
    share = percent(accepted / tried, 1) if tried else "–"
    return (
        f"{share} of {number(tried)} jumps inside the support of the prior were accepted; "
        f"{number(found['num_states'])} of {number(found['num_draws'])} draws are distinct."
    )


def _probabilities(posterior: Posterior, x: str, name: str) -> Html:
    reading = read_posterior(posterior)
    return figure(
        x,
        reading,
        probability_chart(posterior, x, f"architecture-{name}", reading),
        note="Lines: two Monte Carlo standard errors.",
    )


def joint_chart(joint: Sequence[Mapping[str, Any]], name: str, reading: str) -> Html:
    """A square for every depth and number of neurons, the darker the more probable."""
    depths, neurons, shares = (
        np.array([each[key] for each in joint]) for key in ("depth", "neurons", "probability")
    )
    drawing, (axes,) = new_figure(height=60 + 28 * len(np.unique(depths)))
    marks = {"marker": "s", "s": 70, "linewidth": 0, "color": ACCENT}
    axes.scatter(neurons, depths, alpha=0.08 + 0.92 * shares / shares.max(), **marks)
    axes.grid(visible=False)
    axes.set(
        xlim=(neurons.min() - 1, neurons.max() + 1), ylim=(depths.min() - 0.6, depths.max() + 0.6)
    )
    label(axes, "Hidden layers", "Neurons in the hidden layers")
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    return to_svg(drawing, name, "Posterior of depth and neurons together", reading)


def _together(joint: Sequence[Mapping[str, Any]]) -> Html:
    top = max(joint, key=lambda each: each["probability"])
    reading = (
        f"Most probable together: {count(top['depth'], 'layer')} with "
        f"{count(top['neurons'], 'neuron')}, {percent(top['probability'], 1)}."
    )
    chart = joint_chart(joint, "architecture-joint", reading)
    return figure("Depth and neurons together", reading, chart, note="Darker: more probable.")


def _likeliest(found: Mapping[str, Any]) -> Html:
    rows = [
        [
            _name(each["widths"]),
            f"{percent(each['probability'], 1)}{_plus_minus(each['standard_error'])}",
        ]
        for each in found["likeliest"]
    ]
    return table(["Neurons, layer by layer", "Probability"], rows)


def _agreement(found: Mapping[str, Any]) -> Html:
    layers = found["layers"] if len(found["layers"]) > 1 else []
    named = [("All hidden neurons", found["width"])]
    named += [(f"Neurons of layer {i}", each) for i, each in enumerate(layers, 1)]
    named += [] if found["depth"] is None else [("Hidden layers", found["depth"])]
    rows = [
        [
            name,
            number(each["mode"]),
            number(each["mean"]),
            _fixed(each["rhat"]),
            _fixed(each["ess"], 0),
        ]
        for name, each in named
    ]
    return table(["Count", "Mode", "Mean", "R-hat", "ESS"], rows)


def _jumps(found: Mapping[str, Any]) -> Html:
    rows = [
        [name, number(each["tried"]), "–" if each["rate"] is None else percent(each["rate"], 1)]
        for name, each in found["jumps"].items()
    ]
    return table(["Move", "Tried", "Accepted"], rows)


def _visited(posterior: Posterior) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts from the smallest to the largest visited, their shares and standard errors."""
    values, shares = np.array(posterior["widths"]), np.array(posterior["probabilities"])
    errors = np.array(posterior["standard_errors"], float)
    there = np.flatnonzero(shares > 0)
    kept = slice(there[0], there[-1] + 1)
    return values[kept], shares[kept], errors[kept]


def _name(widths: list[int]) -> str:
    return " – ".join(map(str, widths))


def _plus_minus(error: float | None) -> str:
    return "" if error is None or not np.isfinite(error) else f" ± {percent(float(error), 1)}"


def _fixed(value: float | str | None, decimals: int = 3) -> str:
    return "–" if value is None else f"{float(value):,.{decimals}f}".replace(",", "\u202f")
