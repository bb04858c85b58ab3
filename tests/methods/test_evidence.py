"""The evidence as a finding: means over runs, units, and the way to a run's documents and back."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tools.ensembles import make_ensemble

from credence import methods
from credence.ensembles.ensemble import Ensemble
from credence.methods.evidence import LogEvidence


def with_runs(*nats: float, method: str = "smc") -> Ensemble:
    """An ensemble of so many runs, each with its log evidence."""
    ensemble = make_ensemble()
    return replace(
        ensemble,
        scalars={"log_evidence": np.array(nats)[:, None] * np.ones((len(nats), 3))},
        provenance=replace(ensemble.provenance, method=method),
    )


def test_it_averages_evidences_of_runs() -> None:
    assert LogEvidence.of(make_ensemble()) is None
    found = LogEvidence.of(with_runs(*np.log([2e-300, 4e-300])))
    assert found is not None
    np.testing.assert_allclose(found.nats, np.log(3e-300))
    np.testing.assert_allclose(found.standard_error, np.log(2) / 2)
    wide = LogEvidence.of(with_runs(0.0, 50.0, 100.0, 150.0))
    assert wide is not None
    np.testing.assert_allclose(wide.nats, 150 - np.log(4))
    assert wide.standard_error > 30  # not 1


def test_two_evidences_can_be_subtracted_as_they_are_shown() -> None:
    """Log evidences are large, and their differences small."""
    ((_, first),), ((_, second),) = (
        LogEvidence(nats=nats, standard_error=0.123).facts() for nats in (-1496.56, -1495.53)
    )
    assert first == "-1496.56 nats, standard error 0.12"
    assert second.startswith("-1495.53 nats")


@pytest.mark.parametrize("method", ["smc", "mlsmc", "laplace"])
def test_it_is_found_by_the_name_of_the_method(method: str) -> None:
    assert methods.findings(with_runs(-3.0, -3.0, method=method))["log_evidence"].nats == -3
    assert methods.findings(with_runs(-3.0, method="nuts")) == {}
    assert methods.findings(with_runs(-3.0, method="of another package")) == {}


@pytest.mark.parametrize("nats", [(-3.0,), (-3.0, -3.5)])
def test_what_is_written_is_read_back(nats: tuple[float, ...]) -> None:
    """The error of a single run is not known."""
    found = LogEvidence.of(with_runs(*nats))
    assert found is not None
    entries = json.loads(json.dumps(found.rescaled(-10.0, 20.0).entries(), allow_nan=False))
    again = LogEvidence.read(entries, {})
    assert again is not None
    np.testing.assert_allclose(again.nats, found.nats - 10)
    np.testing.assert_allclose(again.standard_error, found.standard_error)
    assert ("±" in again.sentences()[0]) == (len(nats) > 1)
    assert ("standard error" in again.facts()[0][1]) == (len(nats) > 1)
    assert LogEvidence.read({}, {}) is None
    with pytest.raises(ValueError, match="log_evidence_error is missing"):
        LogEvidence.read({"log_evidence": 1.0}, {})
