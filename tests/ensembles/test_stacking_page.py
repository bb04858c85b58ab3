"""The page on stacking runs, and says what happens."""

import runpy
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "stacking.md"


def test_the_page_runs_and_the_curve_gets_the_weight(tmp_path: Path) -> None:
    code = PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    (tmp_path / "page.py").write_text(code, encoding="utf-8")
    found = runpy.run_path(str(tmp_path / "page.py"))
    stacked, x, y = found["stacked"], found["x"], found["y"]
    weights = {each.ensemble: 0.0 for each in stacked.candidates}
    for each in stacked.candidates:
        weights[each.ensemble] += each.weight
    assert weights[1] > 0.95
    residual = np.asarray(stacked.predictive(x).mean()) - y
    assert residual.std() < 0.15
