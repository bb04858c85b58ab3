"""Emulators of a log likelihood, for calibrate-emulate-sample."""

from credence.errors import check_name
from credence.methods.surrogate.emulators.auto import Auto
from credence.methods.surrogate.emulators.base import (
    Arrays,
    Emulated,
    Emulator,
    Error,
    Points,
    SurrogateDensity,
    arrays_of,
    emulate,
    error_of,
)
from credence.methods.surrogate.emulators.coreset import Coreset
from credence.methods.surrogate.emulators.gaussian_process import GaussianProcess
from credence.methods.surrogate.emulators.network import Network
from credence.methods.surrogate.emulators.taylor import Taylor

__all__ = [
    "EMULATORS",
    "Arrays",
    "Auto",
    "Coreset",
    "Emulated",
    "Emulator",
    "Error",
    "GaussianProcess",
    "Network",
    "Points",
    "SurrogateDensity",
    "Taylor",
    "arrays_of",
    "emulate",
    "emulator_named",
    "error_of",
]

EMULATORS: dict[str, type[Emulator]] = {
    emulator.name: emulator for emulator in (Coreset, Taylor, Network, GaussianProcess, Auto)
}
"""All emulators by name."""
PUBLISHED = "published:"
"""What stands before the name of a data set whose published emulator is wanted."""


def emulator_named(name: str) -> Emulator:
    """An emulator with its usual settings, or `Network.published` of a data set.

    Raises:
        InputError: for an unknown name or data set.
    """
    if name.startswith(PUBLISHED):
        return Network.published(name.removeprefix(PUBLISHED))
    check_name("emulator", name, EMULATORS)
    return EMULATORS[name]()
