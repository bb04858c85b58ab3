"""Whether partners met, as a finding: what a run notes, and what is made of it."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tools.ensembles import make_ensemble

from credence import methods
from credence.ensembles.diagnostics.convergence import Convergence
from credence.ensembles.findings import with_findings
from credence.methods.interacting.partners import Partners

AGREED = Convergence(1.0, 400.0, 500.0, 400.0, 4, 500, converged=True, reason="All is well.")


def partners(rhat: float | str | None, method: str = "interacting") -> Any:
    """The notes of a run with this R-hat between its partners."""
    noted = {"auxiliary": "tempered", "num_particles": 16, "potential_ess": 12.5, "rhat": rhat}
    ensemble = make_ensemble()
    provenance = replace(ensemble.provenance, method=method, found={"partners": noted})
    return methods.findings(replace(ensemble, provenance=provenance))["partners"]


@pytest.mark.parametrize("method", ["interacting", "nonlinear_sgld"])
def test_particles_whose_partners_have_not_met_have_not_converged(method: str) -> None:
    judged = with_findings(AGREED, [partners(1.9, method)])
    assert judged.converged is False
    assert "have not met: R-hat of their potentials is 1.90" in judged.reason
    assert "All is well" not in judged.reason


def test_partners_that_have_met_or_are_drawn_afresh_change_nothing() -> None:
    assert with_findings(AGREED, [partners(1.01)]).converged
    assert with_findings(AGREED, [partners(None)]) is AGREED


@pytest.mark.parametrize("rhat", [1.01, 1.9, "inf", None])
def test_what_is_written_is_read_back(rhat: float | str | None) -> None:
    found = partners(rhat)
    entries = json.loads(json.dumps(found.entries(), allow_nan=False))
    assert entries["partners"]["rhat"] == rhat
    assert Partners.read(entries, {}) == found
    assert "worth 12.5 of 16 particles" in found.sentences()[0]
    assert "12.5 of 16" in found.facts()[0][1]
    assert Partners.of(make_ensemble()) is None
