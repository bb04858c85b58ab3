"""Provenance says which versions made an ensemble, and when."""

import dataclasses

import jax
import pytest
from tools.ensembles import make_ensemble

from credence.errors import CredenceError, StorageError

pytestmark = pytest.mark.usefixtures("checked_keys")


def test_provenance_names_versions_and_time() -> None:
    provenance = make_ensemble().provenance
    assert provenance.versions["jax"] == jax.__version__
    assert provenance.created.endswith("+00:00")
    assert issubclass(StorageError, CredenceError)
    with pytest.raises(dataclasses.FrozenInstanceError):
        provenance.seed = 1  # type: ignore[misc]
