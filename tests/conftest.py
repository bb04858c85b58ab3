"""What all tests share: checked annotations, on request checked keys and double precision, and
variants that take turns."""

import os
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime

import jax
import jaxtyping
import pytest

CHECKED = (
    "models posterior predictive ensemble diagnostics kernels methods blocks run checkpoint "
    "datasets preprocessing report"
)
"""Not the faces people see (estimators, cli): they take anything and check it themselves."""
jaxtyping.install_import_hook(
    [f"credence.{room}" for room in CHECKED.split()], "checked_types.checked"
)


@pytest.fixture
def checked_keys() -> Iterator[None]:
    """A random key used twice is an error.

    Not for all tests: JAX's checker takes a transposed array of keys, and the keys of BlackJAX's
    NUTS under vmap, for used ones.
    """
    with jax.debug_key_reuse(True):
        yield


@pytest.fixture
def float64() -> Iterator[None]:
    """Double precision for the length of a test."""
    with jax.enable_x64(True):
        yield


os.environ.setdefault("CREDENCE_TEST_DAY", str(datetime.now(UTC).toordinal()))
"""Which variants have their turn; workers inherit it, so that all collect the same at midnight."""


@pytest.hookimpl(tryfirst=True)  # before pytest selects by mark
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test marked `rotates(days)` every variant runs once in so many days; else it is slow."""
    day = int(os.environ["CREDENCE_TEST_DAY"])
    variants: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("rotates") and not item.get_closest_marker("slow"):
            variants[item.nodeid.split("[")[0]].append(item)
    for found in variants.values():
        for index, item in enumerate(found):
            days = min(item.get_closest_marker("rotates").args[0], len(found))
            if index % days != day % days:
                item.add_marker("slow")
