"""A method of another package brings a finding of its own, and every face shows it.

No file of ours knows of it: it is registered by an entry point.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import credence
from credence import methods
from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.findings import Finding
from credence.html.markup import Html, element
from credence.html.parts import section
from credence.methods import METHODS
from credence.methods.approximate.deep_ensemble import MAP
from credence.methods.base import Drawn
from credence.runs.page import report_data
from credence.runs.workflow import resume

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)


@dataclass(frozen=True)
class Ripeness(Finding):
    """How ripe the draws are."""

    name: ClassVar[str] = "ripeness"

    share: float
    profile: np.ndarray

    @classmethod
    def of(cls, ensemble: Ensemble) -> "Ripeness | None":
        share = ensemble.provenance.found.get("share")
        return None if share is None else cls.judged(share, np.arange(3.0))

    @classmethod
    def judged(cls, share: float, profile: np.ndarray) -> "Ripeness":
        reason = f"Of the draws {share:.0%} are ripe."
        return cls(share, profile, settled=share > 0.5, reason=reason)

    @classmethod
    def read(
        cls, metrics: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> "Ripeness | None":
        if cls.name not in metrics:
            return None
        return cls.judged(float(metrics[cls.name]["share"]), arrays["ripeness_profile"])

    def entries(self) -> dict[str, Any]:
        return {self.name: {"share": self.share}}

    def arrays(self) -> dict[str, np.ndarray]:
        return {"ripeness_profile": self.profile}

    def sentences(self) -> list[str]:
        return [f"Ripe: {self.share:.0%} [bold]."]

    def facts(self) -> list[tuple[str, str]]:
        return [("Ripe draws", f"{self.share:.0%}")]

    def section(self, seconds: Mapping[str, float], *, is_converged: bool) -> Html:
        highest = element("p", f"The profile reaches {self.profile.max():g} <points>.")
        return section("Are the draws ripe?", highest, is_converged=is_converged)

    def scores(self) -> dict[str, Any]:
        return {"ripe_share": self.share}


@dataclass(frozen=True, kw_only=True)
class Orchard(MAP):
    """A trained network that says how ripe it is."""

    name: ClassVar[str] = "orchard"
    summary: ClassVar[str] = "somebody else's"
    findings: ClassVar[tuple[type[Finding], ...]] = (Ripeness,)

    share: float = 0.9

    def _run(self, key: Any, posterior: Posterior, driver: Driver) -> Drawn:
        return super()._run(key, posterior, driver)._replace(found={"share": self.share})


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("orchard", f"{__name__}:Orchard", METHODS.group)
    monkeypatch.setattr(METHODS, "added", {"orchard": entry}, raising=False)
    monkeypatch.setattr(EntryPoint, "load", lambda self: Orchard)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    path = tmp_path / "trees.csv"
    pd.DataFrame({"x": x, "height": 2 * x + rng.normal(size=40)}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("share", [0.9, 0.2])
def test_every_face_shows_it(run: Any, table: Path, share: float) -> None:
    folder = table.parent / "run"
    words = ("--target", "height", "--method", "orchard", "--hidden", "2", "--out", folder)
    status, out, err = run("fit", table, *words, "--set", f"share={share}", "--json")
    metrics = json.loads(out)
    is_ripe = share > 0.5
    assert (status, metrics["converged"]) == ((0, None) if is_ripe else (3, False)), err
    assert metrics["ripeness"] == {"share": share}
    assert ("Of the draws 20% are ripe." in metrics["convergence_reason"]) != is_ripe
    assert f"Ripe: {share:.0%} [bold]." in err
    page = (folder / "report.html").read_text(encoding="utf-8")
    for shown in ("Are the draws ripe?", "reaches 2 &lt;points&gt;", "Ripe draws"):
        assert shown in page
    assert ("This run did not converge" in page) != is_ripe

    model = credence.load(folder / "ensemble")
    assert model.findings_["ripeness"].share == share
    assert model.judge(pd.DataFrame({"x": [0.0]})).diagnostics_.converged is metrics["converged"]
    assert methods.findings(model.ensemble_)["ripeness"].settled is is_ripe
    (finding,) = report_data(folder).findings
    assert (finding.entries(), finding.settled) == ({"ripeness": {"share": share}}, is_ripe)
    assert resume(folder).findings[0].sentences() == finding.sentences()


def test_a_comparison_has_its_column(table: Path) -> None:
    from credence.compare import scoring
    from credence.compare.problem import Arrays
    from credence.models import MLP, Gaussian, Normal
    from credence.preprocessing import TargetScaler

    frame = pd.read_csv(table)
    x, y = frame[["x"]].to_numpy(), frame["height"].to_numpy()
    ensemble = Orchard(share=0.2).run(0, Posterior(MLP(1, (2,)), Gaussian(), Normal(), (x, y)))
    arrays = Arrays(x, y, x, y, TargetScaler((0.0,), (1.0,)), ())
    assert scoring.scores(ensemble, arrays)[0]["ripe_share"] == 0.2
    judged = scoring.judge(ensemble, x)["convergence"]
    assert judged["converged"] is False
    assert scoring.judge(ensemble, x, findings=())["convergence"]["converged"] is None
