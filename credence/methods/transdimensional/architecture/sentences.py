"""Sentences for a terminal on a posterior over architectures."""

from collections.abc import Mapping
from typing import Any

MAX_COUNTS = 8
"""Widths or depths of which the probability is given."""


def architecture_sentences(found: Mapping[str, Any]) -> list[str]:
    """What the data say of the network's size, how sure that is, and how the chains moved.

    Args:
        found: "architecture" of metrics.json.
    """
    first, depth = found["likeliest"][0], found["depth"]
    probability = _with_error(first["probability"], first["standard_error"])
    sentences = [
        f"Hidden neurons {'-'.join(map(str, first['widths']))} are the most probable, "
        f"p = {probability} of {found['num_architectures']} architectures visited; R-hat at most "
        f"{_number(found['max_rhat'])}, ESS at least {_number(found['min_ess'])}.",
        f"p(width given the data): {_probabilities(found['width'])}.",
    ]
    if depth is not None:
        sentences.append(f"p(depth given the data): {_probabilities(depth)}.")
    rates = ", ".join(
        f"{name} {each['rate']:.1%} of {each['tried']:,}"
        for name, each in found["jumps"].items()
        if each["tried"]
    )
    sentences.append(
        f"Jumps accepted: {rates or 'none was possible'}; {found['num_states']:,} distinct states "
        f"in {found['num_draws']:,} draws."
    )
    return sentences


def _probabilities(posterior: Mapping[str, Any]) -> str:
    """The likeliest counts, in their order."""
    columns = ("widths", "probabilities", "standard_errors")
    rows = list(zip(*(posterior[name] for name in columns), strict=True))
    shown = sorted(sorted(rows, key=lambda row: -row[1])[:MAX_COUNTS])
    found = ", ".join(f"{k}: {_with_error(p, error)}" for k, p, error in shown if p > 0)
    return f"{found}; mean {posterior['mean']:.2f}"


def _with_error(value: float, error: float | None) -> str:
    return f"{value:.3f}" if error is None else f"{value:.3f} ± {error:.3f}"


def _number(value: float | str | None) -> str:
    return "n/a" if value is None else f"{float(value):.4g}"
