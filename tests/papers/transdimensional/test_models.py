"""Models of one table side by side: what is run, and what is told of it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from credence.compare.problem import Arrays
from credence.engine.phases import Phase
from credence.methods import NUTS, DeepEnsemble
from credence.preprocessing import TargetScaler
from credence_papers.transdimensional import model_study, models
from credence_papers.transdimensional.boston_models import MODELS
from credence_papers.transdimensional.digit_models import MODELS as DIGITS
from credence_papers.transdimensional.model_study import cells, heads, over_splits, rhats
from credence_papers.transdimensional.models import ModelEffort, run_model
from credence_papers.transdimensional.published_chain import PublishedChain
from credence_papers.transdimensional.tables import BOSTON, THREE_WAYS, UCI, XOR

BY_NAME = {each.name: each for each in (*MODELS.problems, *DIGITS.problems)}
TINY = ModelEffort(
    2, 12, 4, max_doublings=2, num_starts=4, num_members=2,
    fixed={"num_draws": 12, "num_warmup": 4},
)  # fmt: skip


def test_every_problem_of_every_size_has_a_method() -> None:
    studies = (MODELS, DIGITS, XOR, BOSTON, UCI, THREE_WAYS)
    for problem, effort in (
        (problem, effort)
        for study in studies
        for problem in study.problems
        for effort in study.efforts.values()
    ):
        method = problem.method(effort)  # type: ignore[attr-defined]
        lengths = [getattr(method, name, None) for name in ("max_doublings", "trajectory_length")]
        assert lengths.count(None) > 0, "those of the step that there is, and no others"


def line(seed: int) -> Arrays:
    """Twelve rows to learn from and six others."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(18, 2))
    y = 3 + 2 * (x[:, 0] + 0.1 * rng.normal(size=18))
    scaler = TargetScaler.fit(y[:12])
    z = scaler.transform(y)
    return Arrays(x[:12], z[:12], x[12:], z[12:], scaler, ())


def clusters(seed: int) -> Arrays:
    """Thirty rows of three labels to learn from and fifteen others; inputs tell the label."""
    rng = np.random.default_rng(seed)
    labels = np.tile(np.arange(3), 15)
    x = np.eye(3)[labels] * 4 + rng.normal(size=(45, 3))
    return Arrays(x[:30], labels[:30], x[30:], labels[30:], None, ("a", "b", "c"))


def test_ladders_sample_three_models_of_every_family() -> None:
    ladders = [each.name for each in MODELS.problems if each.how == "ladder"]
    assert ladders == [f"{of}-{key}-ladder" for of in ("wide", "deep") for key in "bde"]


def test_models_are_what_their_names_say() -> None:
    assert BY_NAME["wide-a"].likelihood.noise_std == 1.0
    assert BY_NAME["wide-b"].likelihood.noise_std is None
    assert BY_NAME["deep-c-block"].prior.per == "array"
    for name, kind in (
        ("deep-a-published-chain", PublishedChain),
        ("deep-a-trained", DeepEnsemble),
    ):
        assert isinstance(BY_NAME[name].method(TINY), kind)
    assert BY_NAME["deep-c-layer"].method(TINY).gibbs
    assert not BY_NAME["deep-a"].method(TINY).gibbs
    large = BY_NAME["large-c-layer"]
    assert large.posterior(line(0)).model.network.hidden == (30, 30, 30)
    assert isinstance(large.method(TINY), NUTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["wide-d", "deep-c-block", "deep-a-published-chain", "deep-a-trained", "large-d"]
)
def test_a_model_is_run(name: str) -> None:
    found = run_model(replace(BY_NAME[name], data=line), TINY, 0)
    assert 0 < found["rmse"] < 20
    assert 0 < found["single_train_rmse"] < 20
    assert (found["size"] is None) == (name in ("deep-a-trained", "large-d"))
    assert (found["within"] is None) == (name == "deep-a-trained")
    if found["size"]:
        assert sum(found["size"]["probabilities"]) == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["digits-5-a", "digits-10-c-layer", "digits-5-b-trained"])
def test_a_model_of_labels_is_run(name: str) -> None:
    found = run_model(replace(BY_NAME[name], data=clusters), TINY, 0)
    assert 0.4 < found["accuracy"] <= found["top_2"] <= found["top_3"] == 1
    assert 0.4 < found["single_test_accuracy"] <= 1
    assert (found["size"] is None) == (name == "digits-5-b-trained")


def test_a_row_of_labels_tells_accuracy() -> None:
    scores = {"accuracy": 0.9, "nll": 0.3, "ece": 0.02, "seconds": 5.0, "top_2": 0.95}
    about = {"size": None, "rhat_predictions": 1.01, "converged": True, "within": 0.8}
    others = {**scores, "accuracy": 0.8}
    row = {"name": "digits", **over_splits([{**scores, **about}, {**others, **about}])}
    assert row["accuracy"] == [0.9, 0.8]
    told = dict(zip(heads([row]), cells(row), strict=True))
    assert (told["accuracy"], told["ECE"]) == ("0.8500 ± 0.0500", "0.020 ± 0.000")


def result(seed: int, *, is_trained: bool = False) -> dict[str, Any]:
    size = {"sizes": [1, 2], "probabilities": [0.25, 0.75], "mode": 2, "mean": 1.75}
    size |= {"rhat": 1.0 + seed / 10, "ess": 100.0, "across": 0.1}
    scores = {"rmse": 3.0 + seed, "nll": 2.5, "coverage_95": 0.95, "crps": 1.0}
    fits = {"single_train_rmse": 2.0, "single_test_rmse": 4.0, "seconds": 10.0}
    judged = {"rhat_predictions": 1.1, "within": 0.8, "converged": True}
    if is_trained:
        size, judged = None, dict.fromkeys(judged)  # type: ignore[assignment]
    return {**scores, **fits, **judged, "size": size}


def test_means_over_splits_have_errors_and_the_worst_rhat() -> None:
    row = {"name": "model", **over_splits([result(0), result(2)])}
    assert (row["means"]["rmse"], row["errors"]["rmse"]) == (4.0, 1.0)
    assert row["size"]["shares"] == {1: 0.25, 2: 0.75}
    assert cells(row) == [
        "model", "4.00 ± 1.00", "2.50 ± 0.00", "0.950 ± 0.000", "1: 0.25, 2: 0.75",
        "1.10 (1.20)", "1.10 (1.10)", "10",
    ]  # fmt: skip
    trained = {"name": "trained", **over_splits([result(0, is_trained=True)])}
    assert cells(trained)[4:7] == ["fixed", "–", "–"]
    fixed = {"name": "fixed", **over_splits([{**result(0), "size": None}])}
    assert cells(fixed)[4:7] == ["fixed", "–", "1.10 (1.10)"]


@pytest.mark.parametrize("first", [0, 1])
def test_a_score_that_one_split_lacks_is_missing(first: int) -> None:
    """Whichever split comes first, the others keep their scores."""
    splits = [{**result(0), "nll": None}, result(2)]
    row = {"name": "model", **over_splits([splits[first], splits[1 - first]])}
    told = dict(zip(heads([row]), cells(row), strict=True))
    assert (told["RMSE"], told["NLL"], told["coverage"]) == ("4.00 ± 1.00", "–", "0.950 ± 0.000")
    assert row["means"]["nll"] is None
    bare = {"name": "bare", **over_splits([{**result(0), "rmse": None}])}
    assert cells(bare)[1] == "–"


def test_an_infinite_rhat_is_the_worst() -> None:
    stuck = result(0)
    stuck["size"] = {**stuck["size"], "rhat": "inf"}
    size = over_splits([result(0), result(1), stuck])["size"]
    assert (size["rhat_worst"], size["rhat_median"]) == ("inf", 1.1)
    assert rhats(size, "rhat") == "1.10 (inf)"
    assert rhats(over_splits([stuck])["size"], "rhat") == "inf (inf)"


def test_scores_that_fail_lose_no_draws(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    study = replace(
        MODELS, problems=(replace(BY_NAME["wide-b"], data=line),), efforts={"smoke": TINY}
    )
    with monkeypatch.context() as broken:
        broken.setattr(models.scoring, "scores", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            study.run(tmp_path, size="smoke")
    assert list((tmp_path / "checkpoints").iterdir())
    monkeypatch.setattr(Phase, "advance", lambda *args: 1 / 0)  # no draw is made anew
    assert study.run(tmp_path, size="smoke")["models"][0]["num_splits"] == 1
    assert not list((tmp_path / "checkpoints").iterdir())


def test_the_study_goes_on_where_it_stopped(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def run(problem: Any, effort: Any, seed: int, folder: Any) -> dict[str, Any]:
        ran.append(seed)
        return result(seed)

    monkeypatch.setattr(model_study, "run_model", run)
    study = replace(MODELS, problems=(replace(MODELS.problems[0], data=line),))
    for num_seeds in (1, 2):
        summary = study.run(tmp_path, size="smoke", num_seeds=num_seeds)
    assert ran == [0, 1]
    assert summary["models"][0]["rmse"] == [3.0, 4.0]
    assert "±" in (tmp_path / "report.html").read_text()
    assert study.table(summary).row_count == 1
