"""What all tests share: checked annotations, and on request checked keys and double precision."""

from collections.abc import Iterator

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
