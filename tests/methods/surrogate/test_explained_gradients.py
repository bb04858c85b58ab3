"""How good a surrogate's gradients were, in a run's documents and back."""

import json
from dataclasses import replace

import numpy as np
from tools.ensembles import make_ensemble

from credence import methods
from credence.methods.surrogate.explained_gradients import ExplainedGradients


def test_what_is_written_is_read_back() -> None:
    ensemble = make_ensemble()
    for share, said in ((0.83, "83"), (np.nan, "")):
        found = replace(
            ensemble,
            scalars={"surrogate_r2": np.full((2, 3), share)},
            provenance=replace(ensemble.provenance, method="rns_hmc"),
        )
        finding = methods.findings(found)["surrogate"]
        entries = json.loads(json.dumps(finding.entries(), allow_nan=False))
        again = ExplainedGradients.read(entries, {})
        assert again is not None
        assert again.sentences() == finding.sentences()
        assert said in finding.facts()[0][1]
        assert again.settled is None
    assert ExplainedGradients.of(ensemble) is None
    assert ExplainedGradients.read({}, {}) is None
