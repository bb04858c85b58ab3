"""Kinds of jump by their names, which settings and results tell."""

from collections.abc import Mapping
from typing import Any

from credence.errors import InputError, did_you_mean
from credence.methods.transdimensional.moves.annealed_birth import annealed_birth
from credence.methods.transdimensional.moves.annealed_layer import annealed_layer
from credence.methods.transdimensional.moves.base import LayerMove, Move
from credence.methods.transdimensional.moves.birth_death import birth_death
from credence.methods.transdimensional.moves.bridge import Bridge
from credence.methods.transdimensional.moves.collapsed_birth import collapsed_birth
from credence.methods.transdimensional.moves.informed_birth import informed_birth
from credence.methods.transdimensional.moves.layer_birth import layer_birth, near_identity
from credence.methods.transdimensional.moves.split_merge import split_merge
from credence.methods.transdimensional.target import VariableWidth

MOVES = ("plain", "collapsed", "informed", "annealed", "split_merge")
"""Kinds of jump between widths; "plain_by_4" is four neurons at once."""
LAYER_MOVES = (
    "layer", "identity_layer", "collapsed_layer", "collapsed_identity_layer", "annealed_layer",
)  # fmt: skip
"""Kinds of jump between depths."""
_OF_BRIDGES = ("num_temperatures", "num_integration_steps")
SETTINGS_OF: Mapping[str, tuple[str, ...]] = {
    "annealed": _OF_BRIDGES,
    "split_merge": ("split_std",),
    "identity_layer": ("identity_std",),
    "collapsed_identity_layer": ("identity_std",),
    "annealed_layer": (*_OF_BRIDGES, "identity_std"),
}
"""What kinds of jump read of the settings; others read none."""


def base_and_size(name: str) -> tuple[str, int]:
    """A kind of jump without its size, and that: ("plain", 4) of "plain_by_4"."""
    base, by, size = name.rpartition("_by_")
    return (base, int(size)) if by and size.isdecimal() and int(size) > 0 else (name, 1)


def build_move(
    name: str,
    target: VariableWidth,
    layer: int,
    *,
    tuning: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> Move:
    """A kind of jump between widths by its name.

    Args:
        tuning: step_size and inverse_mass, of annealed jumps.
        settings: num_temperatures, num_integration_steps, split_std; each move takes its own.
    """
    base, size = base_and_size(name)
    if base == "annealed":
        bridge = _bridge(tuning, settings)
        move = annealed_birth(target, layer, bridge, tuning["inverse_mass"])
    elif base == "split_merge":
        move = split_merge(target, layer, **_chosen(settings, "split_std"))
    else:
        plain = {"plain": birth_death, "collapsed": collapsed_birth, "informed": informed_birth}
        move = plain[base](target, layer)
    return move._replace(num_neurons=size)


def build_layer_move(
    name: str, target: VariableWidth, *, tuning: Mapping[str, Any], settings: Mapping[str, Any]
) -> LayerMove:
    """A kind of jump between depths by its name.

    Args:
        tuning: step_size and inverse_mass, of annealed jumps.
        settings: num_temperatures, num_integration_steps, identity_std; each move takes its own.
    """
    near = _chosen(settings, "identity_std")
    if name == "annealed_layer":
        law = near_identity(target, **near)
        return annealed_layer(target, law, _bridge(tuning, settings), tuning["inverse_mass"])
    return layer_birth(
        target, is_identity="identity" in name, is_collapsed="collapsed" in name, **near
    )


def _bridge(tuning: Mapping[str, Any], settings: Mapping[str, Any]) -> Bridge:
    """Make the bridge of annealed jumps."""
    lengths = _chosen(settings, *_OF_BRIDGES)
    return Bridge(step_size=tuning["step_size"], **lengths)


def _chosen(settings: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: settings[name] for name in names if name in settings}


def check_moves(moves: tuple[str, ...], known: tuple[str, ...]) -> None:
    """Refuse no moves, or one that there is not.

    Raises:
        InputError: naming it.
    """
    if not moves:
        raise InputError(f"There must be at least one kind of jump: moves of {', '.join(known)}.")
    kinds = [base_and_size(name) if known is MOVES else (name, 1) for name in moves]
    if len(set(kinds)) < len(kinds):
        raise InputError(f"A kind of jump is named twice: {', '.join(moves)}.")
    for name, (kind, _) in zip(moves, kinds, strict=True):
        if kind not in known:
            raise InputError(
                f"Unknown kind of jump {name!r}: choose from {', '.join(known)}."
                + did_you_mean(name, known)
            )
