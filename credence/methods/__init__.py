"""Whole algorithms: each turns a posterior into an ensemble, `method.run(key, posterior)`.

One file per algorithm; `resolve` finds them by name and decides for "auto".
"""

import dataclasses
from typing import Any

from credence.errors import InputError, did_you_mean
from credence.methods.base import Method
from credence.methods.deep_ensemble import MAP, DeepEnsemble, Training
from credence.methods.hamiltonian import HMC, NUTS
from credence.methods.microcanonical import MCLMC
from credence.posterior import Posterior

__all__ = ["HMC", "MAP", "MCLMC", "METHODS", "NUTS", "DeepEnsemble", "Method", "Training", "resolve"]

METHODS: dict[str, type[Method]] = {
    method.name: method for method in (MAP, DeepEnsemble, HMC, NUTS, MCLMC)
}
"""All methods by name."""

EXACT_WORK = 5e13
"""Nominal FLOPs per draw and chain times draws beyond which "auto" trains an ensemble instead."""


def resolve(method: str | Method, posterior: Posterior, **settings: Any) -> tuple[Method, str]:
    """A method object, and in a sentence why it runs.

    Args:
        method: "auto", a name in `METHODS`, or a method object (returned as it is).
        posterior: what "auto" judges by.
        settings: passed on to a named method, those it knows.
    Raises:
        InputError: for an unknown name or a setting out of range.
    """
    if isinstance(method, Method):
        return method, "Chosen by the caller."
    if method == "auto":
        name, reason = choose(posterior)
    else:
        name, reason = check_name(method), "Chosen by the caller."
    chosen = METHODS[name]
    known = {field.name for field in dataclasses.fields(chosen)}
    return chosen(**{key: value for key, value in settings.items() if key in known}), reason


def check_name(name: str) -> str:
    """The name, if there is such a method.

    Raises:
        InputError: otherwise, with the nearest name.
    """
    if name not in METHODS and name != "auto":
        raise InputError(
            f"Unknown method {name!r}: choose auto or one of {', '.join(METHODS)}."
            + did_you_mean(name, METHODS)
        )
    return name


def choose(posterior: Posterior) -> tuple[str, str]:
    """The method "auto" takes, and why."""
    return "hmc", "TODO"
