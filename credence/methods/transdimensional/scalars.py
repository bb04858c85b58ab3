"""Tells of architectures and jumps: sizes, jumps by their kind, and how often each is tried."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from credence.kernels.base import Settings
from credence.methods.transdimensional.move_mixture import Groups


def architecture_scalars(
    widths: Float[np.ndarray, "chain draw layer"], positions: Float[np.ndarray, "chain draw weight"]
) -> dict[str, Float[np.ndarray, "chain draw"]]:
    """Neurons in all and of every hidden layer, and whether a draw differs from the one before."""
    has_moved = np.ones(widths.shape[:2])
    has_moved[:, 1:] = (positions[:, 1:] != positions[:, :-1]).any(axis=-1)
    layers = {f"width_{i + 1}": widths[..., i] for i in range(widths.shape[-1])}
    return {"width": widths.sum(axis=-1), **layers, "has_moved": has_moved}


def by_kind(
    scalars: Mapping[str, np.ndarray], groups: Groups
) -> dict[str, Float[np.ndarray, "chain draw"]]:
    """Jumps tried and accepted, and their cost: in all, and by their kind."""
    kinds, found = [name for group in groups for name in group], {}
    for name in ("num_jumps", "num_jumps_accepted", "jump_cost"):
        counts = np.asarray(scalars[name], float)
        found[name] = counts.sum(axis=-1)
        found |= {f"{name}_{kind}": counts[..., i] for i, kind in enumerate(kinds)}
    return found


def found_of_jumps(settings: Settings, groups: Groups) -> dict[str, Any]:
    """Tell how many jumps go with a step, and how often each kind is tried where that was found."""
    found: dict[str, Any] = {"jumps_per_step": int(settings["num_jumps"])}
    if "kind_probs" not in settings:
        return found
    names = [name for group in groups for name in group]
    shares = zip(names, settings["kind_probs"], strict=True)
    return found | {"move_probabilities": {name: float(share) for name, share in shares}}
