"""Several models, cross-validated and stacked: weights, files, time, and what people see."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import jax
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tools.exact import assert_mean

import credence
from credence import BNNClassifier, BNNRegressor, methods
from credence.density.posterior import Posterior
from credence.engine.phases import seconds_spent
from credence.engine.progress import NoProgress
from credence.ensembles.diagnostics import stacking_weights
from credence.ensembles.diagnostics.stacking import beta_shape
from credence.ensembles.stack import Stack, load_predictor
from credence.errors import InputError, StorageError
from credence.estimators.early import EarlyAnswers
from credence.methods import Stacking, Training
from credence.methods.stacking import pace
from credence.methods.stacking.candidates import Candidates
from credence.methods.stacking.folds import FoldChains
from credence.methods.stacking.left_out import LEAST, left_out, mixed_cdfs, shape_of_mixture
from credence.methods.stacking.models import (
    CLASSIFICATION,
    LARGE_REGRESSION,
    LARGE_ROWS,
    LONG_TAILED_CLASSIFICATION,
    REGRESSION,
    ModelSpec,
    usual_models,
)
from credence.methods.stacking.pace import SECONDS_TO_COMPILE, WORK_PER_SECOND
from credence.models import (
    MLP,
    Bernoulli,
    Gaussian,
    HeteroscedasticNormal,
    Logarithmic,
    Normal,
    PiecewiseLinear,
)
from credence.storage import write_text

BRIEF = FoldChains(
    num_chains=4, num_folds=4, num_draws=20, num_warmup=20, training=Training(max_epochs=300)
)
METHOD = Stacking(models=("0/fan_in/own", "16/unit/own"), chains=BRIEF)


def wave(num_rows: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (num_rows, 1)).astype(np.float32)
    return x, np.sin(3 * x[:, 0]) + 0.1 * rng.normal(size=num_rows)


def posterior_of(x: np.ndarray, y: np.ndarray) -> Posterior:
    return Posterior(MLP(1, (8,)), Gaussian(), Normal(), (x, y))


@pytest.fixture(scope="module")
def stacked() -> Stack:
    return METHOD.run(0, posterior_of(*wave()), max_seconds=float("inf"))


def test_an_infinite_budget_is_none(stacked: Stack) -> None:
    assert stacked.provenance.stopped == "finished"


def test_the_model_that_bends_has_the_weight(stacked: Stack) -> None:
    line, curve = stacked.candidates
    assert curve.weight > 0.9
    assert curve.log_score > line.log_score + 0.5
    assert [each.name for each in stacked.candidates] == ["linear, prior fan_in", "16, prior unit"]
    assert stacked.num_rows == 120
    x, y = wave(400)
    found = stacked.predictive(x[120:])
    assert np.sqrt(np.mean((np.asarray(found.mean())[:, 0] - y[120:]) ** 2)) < 0.2


def test_weights_are_those_of_the_scores_of_unseen_rows(stacked: Stack) -> None:
    posterior = posterior_of(*wave())
    keys = jax.random.split(jax.random.key(0), 2)
    specs = [ModelSpec.read(text) for text in METHOD.models]
    runs = [
        BRIEF.run(key, spec.posterior(posterior)) for key, spec in zip(keys, specs, strict=True)
    ]
    scores = [left_out(each, BRIEF, posterior).log_probs for each in runs]
    weights = stacking_weights(np.stack(scores, 1), prior_rows=1.0)
    found = [each.weight for each in stacked.candidates]
    np.testing.assert_allclose(found, np.where(weights < 0.01, 0, weights), atol=0.02)
    np.testing.assert_allclose(
        [each.log_score for each in stacked.candidates], np.mean(scores, axis=1), rtol=1e-6
    )


def test_left_out_rows_are_predicted_by_the_stack_without_the_chains_that_saw_them() -> None:
    posterior = posterior_of(*wave(90))
    chains = replace(BRIEF, num_chains=8)
    found = replace(METHOD, chains=chains).run(3, posterior)
    of_parts = [left_out(part, chains, posterior) for part in found.parts]
    assert found.left_out is not None
    means = np.stack([each.mean[:, 0] for each in of_parts])
    assert found.mean_weights is not None
    np.testing.assert_allclose(found.left_out["mean"], found.mean_weights @ means, atol=1e-5)
    below = mixed_cdfs(of_parts, found.part_weights)
    assert below is not None
    assert len(below) == 2, "chains that have not seen a row"
    assert found.shape == beta_shape(below[..., 0], 8)
    few = beta_shape(below[..., 0], len(below))
    assert found.left_out_shape == few
    assert found.shape > few, "planted: as if these two were all"
    pit = below.mean(axis=0)[:, 0]
    np.testing.assert_allclose(found.left_out["pit"], stats.beta(few, few).cdf(pit), rtol=1e-6)
    x = np.asarray(posterior.data.x)
    seen = np.asarray(found.predictive(x).mean())[:, 0]
    assert np.abs(seen - found.left_out["mean"]).max() > 0.01, "planted: by all chains"


@pytest.mark.parametrize("cdfs", [None, np.full((2, 20, 1), 0.5), np.full((2, 90, 2), 0.5)])
def test_labels_few_rows_and_several_targets_have_no_shape(cdfs: Any) -> None:
    weight = np.ones(20 if cdfs is None else cdfs.shape[1])
    assert shape_of_mixture(cdfs, 20, weight) == 1
    assert shape_of_mixture(np.full((2, 90, 1), 0.5), 20, np.ones(90)) > 1
    assert shape_of_mixture(np.full((2, 90, 1), np.nan), 20, np.ones(90)) == 1


def test_a_model_that_thinks_a_row_impossible_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior = posterior_of(*wave(40))
    ensemble = BRIEF.run(0, posterior)
    predicted = {"means": np.zeros((10, 20, 1)), "cdfs": np.zeros((10, 20, 1))}
    impossible = {"log_probs": np.full((10, 20), -np.inf)} | predicted
    monkeypatch.setattr(type(ensemble), "over_batches", lambda self, x, of: impossible)
    found = left_out(ensemble, BRIEF, posterior)
    np.testing.assert_array_equal(found.log_probs, np.full(40, LEAST))
    weights = stacking_weights(np.column_stack([np.zeros(40), np.full(40, LEAST)]))
    np.testing.assert_allclose(weights, [1, 0])


def test_functions_count_the_same() -> None:
    """Networks are repeated by their weight: their mean is that of the mixture."""
    parts = [each for each in METHOD.run(1, posterior_of(*wave(40))).parts][:1]
    stack = Stack(
        (parts[0], parts[0].subset(np.arange(80).reshape(4, 20) < 10, is_chain=False)),
        np.array([0.5, 0.5]),
        parts[0].cost,
        parts[0].provenance,
    )
    x = np.linspace(-2, 2, 5, dtype=np.float32)[:, None]
    functions = stack.functions(x)
    assert functions.shape == (1, 90, 5, 1)
    np.testing.assert_allclose(functions.mean((0, 1)), stack.predictive(x).mean(), atol=0.02)


def test_it_is_saved_and_checked(stacked: Stack, tmp_path: Path) -> None:
    stacked.save(tmp_path)
    loaded = load_predictor(tmp_path)
    x, _ = wave(5)
    assert isinstance(loaded, Stack)
    assert loaded.candidates == stacked.candidates
    assert loaded.provenance == stacked.provenance
    np.testing.assert_array_equal(loaded.predictive(x).mean(), stacked.predictive(x).mean())
    part = tmp_path / "part_0" / "ensemble.json"
    part.write_text(part.read_text().replace("tanh", "relu"))
    with pytest.raises(StorageError, match=r"ensemble\.json"):
        load_predictor(tmp_path)


def test_it_goes_on_where_it_stopped(stacked: Stack, tmp_path: Path) -> None:
    posterior, x = posterior_of(*wave()), wave(5)[0]
    first = METHOD.run(0, posterior, folder=tmp_path)
    again = METHOD.run(0, posterior, folder=tmp_path)
    for each in (first, again):
        np.testing.assert_array_equal(each.predictive(x).mean(), stacked.predictive(x).mean())


def test_a_resumed_run_has_the_time_that_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models that an earlier process sampled have spent theirs."""
    posterior, given = posterior_of(*wave()), []
    METHOD.run(0, posterior, folder=tmp_path)
    spent, run = seconds_spent(tmp_path), FoldChains.run
    assert spent > 0
    assert seconds_spent(None) == 0
    own = [seconds_spent(each) for each in sorted(tmp_path.glob("model_*"))]
    assert sum(own) == pytest.approx(spent)

    def told(self: FoldChains, *args: Any, **settings: Any) -> Any:
        given.append(settings["max_seconds"] - seconds_spent(settings["folder"]))
        return run(self, *args, **settings)

    monkeypatch.setattr(FoldChains, "run", told)
    METHOD.run(0, posterior, folder=tmp_path, max_seconds=spent + 100)
    assert len(given) == len(own)
    assert 0 < max(given) < 100


def test_time_is_shared_by_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "SECONDS_OF_A_MODEL", 2.0)
    monkeypatch.setattr(pace, "SECONDS_TO_COMPILE", 1.0)
    long = replace(METHOD, chains=replace(BRIEF, num_draws=100_000))
    found = long.run(0, posterior_of(*wave(40)), max_seconds=6.0)
    assert found.provenance.stopped == "time"
    assert len(found.candidates) == 2
    assert found.cost.total_seconds < 30  # compilation included, which no budget can cut


def test_it_says_beforehand_how_long_it_takes() -> None:
    """Twice the rows take twice as long while nothing is cut short, later less than that."""
    small, twice, large = (posterior_of(*wave(rows)) for rows in (100, 200, 40_000))
    stacking = Stacking(max_work=1e10)

    def seconds(posterior: Posterior) -> float:
        return stacking.expected_seconds(posterior) - SECONDS_TO_COMPILE

    assert seconds(twice) == pytest.approx(2 * seconds(small))
    bound = (1 + 1.5) * stacking.max_work * 40 ** (0.5 + 0.28) / WORK_PER_SECOND
    assert seconds(large) == pytest.approx(bound)
    told: list[str] = []
    watch = NoProgress()
    watch.say = told.append  # type: ignore[method-assign]
    METHOD.run(0, small, progress=watch)
    assert told[0].startswith("2 models to try: about")


def test_little_time_is_for_few_models() -> None:
    class Said(NoProgress):
        told: ClassVar[list[str]] = []

        def say(self, message: str) -> None:
            self.told.append(message)

    found = METHOD.run(0, posterior_of(*wave(40)), max_seconds=8.0, progress=Said())
    assert len(found.candidates) == 1
    assert found.provenance.stopped == "time"
    assert Said.told[0] == "The fit has 8 s, enough for 1 of 2 models."


def test_a_run_cut_short_goes_on_with_more_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first model keeps the shorter plan that it had, and the second has time for all."""
    job = posterior_of(*wave(40))
    with monkeypatch.context() as slow:
        slow.setattr(pace, "WORK_PER_SECOND", 2e3)
        first = METHOD.run(0, job, folder=tmp_path, max_seconds=8.0)
    assert first.provenance.stopped == "time"
    settings = [each.provenance.settings for each in first.parts]
    assert settings[0]["training"]["max_epochs"] < BRIEF.training.max_epochs
    more = METHOD.run(0, job, folder=tmp_path)
    assert [len(each.candidates) for each in (first, more)] == [1, 2]
    assert more.candidates[0].log_score == first.candidates[0].log_score
    assert more.provenance.stopped == "time"
    with pytest.raises(StorageError, match="another run"):
        replace(METHOD, max_work=1e3).run(0, job, folder=tmp_path)


def test_a_folder_without_a_plan_is_one_of_all_the_work(
    stacked: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = posterior_of(*wave())
    METHOD.run(0, job, folder=tmp_path)
    for plan in tmp_path.glob("share_of_work_*.json"):
        plan.unlink()
    monkeypatch.setattr(pace, "WORK_PER_SECOND", 2e3)
    again = METHOD.run(0, job, folder=tmp_path, max_seconds=5.0)
    assert [each.log_score for each in again.candidates] == [
        each.log_score for each in stacked.candidates
    ]


def test_heavy_models_are_left_out_and_the_others_keep_their_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "WORK_PER_SECOND", 5e6)
    models = ("0/fan_in/normal", "512-512/unit/normal", "8/unit/normal")
    found = replace(METHOD, models=models).run(
        0, posterior_of(*wave(40)), folder=tmp_path, max_seconds=30.0
    )
    assert [each.name for each in found.candidates] == [
        ModelSpec.read(models[index]).describe() for index in (0, 2)
    ]
    assert {each.name for each in tmp_path.glob("model_*")} == {"model_0", "model_2"}
    assert found.provenance.stopped == "time"
    with pytest.raises(InputError, match="max_seconds must be > 0"):
        METHOD.run(0, posterior_of(*wave(40)), max_seconds=0.0)


def test_models_that_there_was_no_time_for_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "SECONDS_OF_A_MODEL", 1e3)
    found = METHOD.run(0, posterior_of(*wave(40)), max_seconds=60.0)
    told = Candidates.of(found)
    assert told is not None
    assert len(told.tried) == 1
    assert told.untried == ("16, prior unit",)
    assert told.sentences()[0].endswith(f" There was no time for {told.untried[0]}.")
    assert Candidates.read(told.entries(), {}) == told


def test_a_large_table_in_little_time_gets_few_models_and_shorter_trajectories() -> None:
    """A heavy model is left out, what follows it is not; the rest is planned for the time."""
    assert pace.affordable([10.0, 26.0, 10.0], 21.0) == [0, 2]
    assert pace.affordable([10.0, 10.0], 5.0) == [0]
    chains, large = FoldChains(), posterior_of(*wave(40_000))
    wide = ModelSpec.read("512-512/unit/student_t").posterior(large)
    assert pace.least_seconds(chains, large) == pace.SECONDS_OF_A_MODEL
    assert pace.least_seconds(chains, wide) > 1000
    narrow = ModelSpec.read("32-32/unit/student_t").posterior(large)
    max_work = pace.work_within(chains, narrow, 20.0)
    expected = pace.expected_seconds(chains, narrow, max_work)
    assert expected == pytest.approx(20.0 + SECONDS_TO_COMPILE)
    short = chains.within(narrow, max_work)
    gradients = short.training.max_epochs
    gradients += (short.num_warmup + short.num_draws) * short.max_integration_steps
    assert 1 / 1.1 < chains.work(narrow, gradients) / (20.0 * pace.work_per_second(large)) < 1.1
    assert pace.Budget.of(60.0, 36_000).seconds_left == pytest.approx(60 - 1 - 6, abs=0.5)
    assert pace.Budget.of(60.0, 36_000).share([10.0, 20.0]) == pytest.approx(53 / 3, abs=0.5)
    assert pace.Budget.of(5.0, 36_000).seconds_left == pytest.approx(4.0, abs=0.5)
    assert pace.Budget.of(None, 36_000).share([1.0, 2.0]) == np.inf


def test_ctrl_c_leaves_the_models_that_have_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    run, count = FoldChains.run, []

    def interrupted(self: FoldChains, *arguments: Any, **settings: Any) -> Any:
        count.append(1)
        if len(count) == 2:
            raise credence.errors.Interrupted("Stopped.")
        return run(self, *arguments, **settings)

    monkeypatch.setattr(FoldChains, "run", interrupted)
    found = METHOD.run(0, posterior_of(*wave(40)))
    assert found.provenance.stopped == "interrupt"
    assert [each.weight for each in found.candidates] == [1.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("50/unit", "HIDDEN/PRIOR/LIKELIHOOD"),
        ("x/unit/normal", "widths such as 50-50"),
        ("50/unti/normal", "Unknown prior 'unti'"),
        ("50/unit/gauss", "Unknown likelihood 'gauss'"),
    ],
)
def test_models_are_read(text: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        Stacking(models=(text,))


def test_parts_of_a_model_are_replaced() -> None:
    own = posterior_of(*wave(10))
    model = ModelSpec.read("16-8/unit/heteroscedastic").posterior(own).model
    assert model.network == MLP(2, (16, 8))
    assert model.prior == Gaussian("unit")
    assert model.likelihood == HeteroscedasticNormal(scale_gain=(2 / 9) ** 0.5)
    smooth = ModelSpec.read("16-8/fan_in/heteroscedastic").posterior(own).model
    assert smooth.likelihood == HeteroscedasticNormal()
    kinked = ModelSpec.read("16-8-relu/unit/own")
    assert kinked.posterior(own).model.network == MLP(1, (16, 8), "relu")
    assert kinked.describe() == "16-8 relu, prior unit"
    assert [ModelSpec.read(text).activation for text in usual_models(own)].count("relu") == 1
    relu = Posterior(MLP(1, (8,), "relu"), Gaussian(), Normal(), wave(40))
    assert {ModelSpec.read(text).activation for text in usual_models(relu)} == {"own"}
    same = ModelSpec.read("own/own/own").posterior(own).model
    assert same == own.model
    labels = Posterior(
        MLP(3, (8,)), Gaussian(), credence.models.Categorical(), (wave(9)[0], np.arange(9) % 3)
    )
    assert ModelSpec.read("0/unit/own").posterior(labels).model.network == MLP(3, ())
    with pytest.raises(InputError, match="Labels have no likelihood 'normal'"):
        ModelSpec.read("0/unit/normal").posterior(labels)


def steps(num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Twelve steps of random heights, with a little noise."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, (num_rows, 1)).astype(np.float32)
    heights = rng.normal(size=12)
    return x, heights[np.floor(3 * (x[:, 0] + 2)).astype(int)] + 0.1 * rng.normal(size=num_rows)


def test_networks_of_encoded_inputs_follow_steps() -> None:
    """Their left-out rows are likelier by several standard errors of the difference."""
    posterior = posterior_of(*steps(600))
    scores = []
    for text in ("16/unit/student_t", "ple-16/unit/student_t"):
        ensemble = BRIEF.run(0, ModelSpec.read(text).posterior(posterior))
        scores.append(left_out(ensemble, BRIEF, posterior).log_probs)
    gain = scores[1] - scores[0]
    assert gain.mean() > 5 * gain.std() / len(gain) ** 0.5


def places(num_values: int, num_rows: int, *, is_smooth: bool = False) -> tuple[Any, Any]:
    """A number and a place, which acts by a straight line or in no order."""
    rng = np.random.default_rng(1)
    place = rng.integers(0, num_values, num_rows)
    heights = np.arange(num_values) / num_values if is_smooth else rng.normal(size=num_values)
    x = np.stack([rng.normal(size=num_rows), place], axis=1).astype(np.float32)
    return x, heights[place] + 0.5 * x[:, 0] + 0.1 * rng.normal(size=num_rows)


def gain_of(text: str, other: str, posterior: Posterior) -> np.ndarray:
    """Return by how much left-out rows are likelier under one model than under another, in nats."""
    jobs = [ModelSpec.read(each).posterior(posterior) for each in (text, other)]
    of_model, of_other = (left_out(BRIEF.run(0, job), BRIEF, job).log_probs for job in jobs)
    return of_model - of_other


def test_values_that_repeat_may_be_states_of_their_own() -> None:
    """Left-out rows are likelier with a knot at each value than with knots at quantiles alone."""
    gain = gain_of("plv-16/unit/student_t", "ple-16/unit/student_t", posterior_of(*places(80, 800)))
    assert gain.mean() > 5 * gain.std() / len(gain) ** 0.5


def test_values_that_seem_to_be_states_are_encoded() -> None:
    x, y = places(200, LARGE_ROWS)
    texts = usual_models(posterior_of(x, y))
    assert [ModelSpec.read(text).encoding for text in texts] == ["", "", "", "plv", "plv"]
    smooth = posterior_of(*places(200, LARGE_ROWS, is_smooth=True))
    assert usual_models(smooth) == LARGE_REGRESSION
    spec = ModelSpec.read("plv-own/own/own")
    assert spec.describe() == "own network of encoded values"
    network = spec.posterior(smooth).model.network
    assert isinstance(network, PiecewiseLinear)
    assert [len(knots) for knots in network.knots] == [33, 200]
    with pytest.raises(InputError, match="No input has more than 64 different values"):
        spec.posterior(posterior_of(*places(60, 800)))


def labels_of(x: np.ndarray, y: np.ndarray) -> Posterior:
    return Posterior(MLP(1, (8,)), Gaussian(), Bernoulli(), (x, y))


def amounts(num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Amounts over five orders of magnitude, and labels that follow from the order."""
    rng = np.random.default_rng(0)
    orders = rng.normal(size=num_rows)
    x = np.exp(2.5 * orders)[:, None]
    y = rng.uniform(size=num_rows) < 1 / (1 + np.exp(-5 * orders))
    return ((x - x.mean()) / x.std()).astype(np.float32), y.astype(np.int32)


def test_labels_that_follow_orders_of_magnitude_are_likelier_by_logarithms() -> None:
    gain = gain_of("log-8/fan_in/own", "8/fan_in/own", labels_of(*amounts(400)))
    assert gain.mean() > 4 * gain.std() / len(gain) ** 0.5


def test_labels_beside_inputs_with_a_long_tail_try_logarithms() -> None:
    x, y = amounts(400)
    assert usual_models(labels_of(x, y)) == LONG_TAILED_CLASSIFICATION
    short = labels_of((x.argsort(axis=0).argsort(axis=0) / len(x)).astype(np.float32), y)
    assert usual_models(short) == CLASSIFICATION
    spec = ModelSpec.read("log-32-32/unit/own")
    assert spec.describe() == "32-32 of logarithms, prior unit"
    assert isinstance(spec.posterior(labels_of(x, y)).model.network, Logarithmic)
    with pytest.raises(InputError, match="No input has a long tail: leave out log-"):
        spec.posterior(short)


def test_large_tables_try_encoded_inputs() -> None:
    x = np.random.default_rng(0).normal(size=(LARGE_ROWS, 70)).astype(np.float32)
    few = posterior_of(x[:, :8], x[:, 0])
    texts = usual_models(few)
    assert [ModelSpec.read(text).encoding for text in texts] == ["", "", "", "ple", "ple"]
    network = ModelSpec.read(texts[3]).posterior(few).model.network
    assert isinstance(network, PiecewiseLinear)
    assert [len(each) for each in network.knots] == [33] * 8
    relu = Posterior(MLP(1, (8,), "relu"), Gaussian(), Normal(), (x[:, :8], x[:, 0]))
    assert usual_models(relu) == texts
    marks = np.sign(x[:, :40])
    assert usual_models(posterior_of(marks, x[:, 0])) == REGRESSION
    marked = np.concatenate([x[:, :8], marks, marks], axis=1)
    assert usual_models(posterior_of(marked, x[:, 0])) == texts
    assert usual_models(posterior_of(x[:-1, :8], x[:-1, 0])) == REGRESSION
    assert usual_models(posterior_of(x, x[:, 0])) == REGRESSION
    with pytest.raises(InputError, match=r"1 to 64 inputs .* has 70"):
        ModelSpec.read("ple-own/own/own").posterior(posterior_of(x, x[:, 0]))
    assert ModelSpec.read("ple-8-relu/unit/own").describe() == (
        "8 relu of encoded inputs, prior unit"
    )


def test_an_early_answer_is_kept_once(tmp_path: Path) -> None:
    """It is made of the networks that the first model was trained to."""
    x, y = wave(80)
    BNNRegressor(method=METHOD, random_state=0, checkpoint_folder=tmp_path).fit(x, y)
    early = credence.load(tmp_path / "early")
    assert early.method_reason_.startswith("An early answer")
    assert {name.shape[:2] for name in jax.tree.leaves(early.ensemble_.params)} == {(4, 1)}
    line = np.polyfit(x[:, 0], y, 1)
    np.testing.assert_allclose(early.predict(x), np.polyval(line, x[:, 0]), atol=0.3)
    assert early.diagnostics_.unseen_rows == 0


def test_an_early_answer_that_cannot_be_kept_stops_nothing(tmp_path: Path) -> None:
    """It tells why, once; one of an earlier run is gone."""

    class Said(NoProgress):
        told: ClassVar[list[str]] = []

        def say(self, message: str) -> None:
            self.told.append(message)

    def full(answer: Any, folder: Path) -> None:
        raise StorageError(f"{answer}: the disk is full.")

    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "estimator.json").touch()
    watch = EarlyAnswers(Said(), tmp_path / "early", full)
    assert (tmp_path / "early").exists()
    watch.phase("train", 1)
    assert not (tmp_path / "early").exists()
    for _ in range(2):
        watch.early(lambda: "net")
    assert Said.told == ["No early answer could be kept: net: the disk is full."]
    EarlyAnswers(Said(), tmp_path / "early", lambda answer, folder: None).early(lambda: "net")
    assert "While the fit goes on, an early answer can be used" in Said.told[1]
    assert Said.told[1].endswith(f"credence.load('{tmp_path / 'early'}').")


def test_a_folder_of_the_user_is_never_taken_for_an_early_answer(tmp_path: Path) -> None:
    """The name "early" is not enough."""
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "thesis.txt").write_text("years of work")
    watch = EarlyAnswers(NoProgress(), tmp_path / "early", lambda answer, folder: None)
    watch.phase("train", 1)
    watch.early(lambda: pytest.fail("the answer would be removed with the thesis"))
    assert (tmp_path / "early" / "thesis.txt").read_text() == "years of work"


def test_a_fit_that_is_refused_leaves_the_early_answer_of_another(tmp_path: Path) -> None:
    write_text(tmp_path / "identity.json", "{}")
    write_text(tmp_path / "early" / "estimator.json", "{}")
    model = BNNRegressor(hidden=(), method="map", random_state=0, checkpoint_folder=tmp_path)
    with pytest.raises(StorageError, match="holds another run"):
        model.fit(*wave(10))
    assert (tmp_path / "early" / "estimator.json").exists()


def test_estimators_predict_save_and_load(tmp_path: Path) -> None:
    x, y = wave(80)
    model = BNNRegressor(method=METHOD, random_state=0).fit(x, 5 + 2 * y)
    model.save(tmp_path)
    loaded = credence.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict(x), model.predict(x))
    assert loaded.method_ == METHOD
    tried = model.findings_["models"].tried
    raw = methods.findings(model.ensemble_)["models"].tried
    shift = np.log(model.target_scaler_.scale[0])
    np.testing.assert_allclose(
        [one["log_score"] for one in tried], [one["log_score"] - shift for one in raw]
    )
    assert model.diagnostics_.converged is None
    assert model.diagnostics_.unseen_rows == 80
    unseen = model.left_out_
    assert unseen is not None
    np.testing.assert_array_equal(unseen["row"], np.arange(80))
    np.testing.assert_allclose(unseen["y"], 5 + 2 * y, rtol=1e-5)
    again: Any = loaded.left_out_
    assert again["mean"].tolist() == unseen["mean"].tolist()
    seen = np.sqrt(np.mean((model.predict(x) - 5 - 2 * y) ** 2))
    assert np.sqrt(np.mean((unseen["mean"] - unseen["y"]) ** 2)) > seen
    assert loaded.recalibration_ == model.recalibration_
    assert model.sample_functions(x[:3]).shape[2:] == (3,)
    with pytest.raises(InputError, match=r"parts\[0\].to_arviz"):
        model.to_arviz()
    groups = model.to_arviz(x, y)
    drawn = groups["posterior_predictive"]["y"].to_numpy()
    assert drawn.shape == (1, model.ensemble_.num_draws, 80)
    mean, std = model.predict(x, return_std=True)
    assert_mean((drawn[0] - mean) / std, 0.0, resolution=0.2)
    np.testing.assert_allclose(groups["observed_data"]["y"], y, rtol=1e-6)
    labels = BNNClassifier(method=METHOD, random_state=0).fit(x, y > 0)
    np.testing.assert_allclose(labels.predict_proba(x).sum(axis=1), 1)


def test_the_command_line(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    x, y = wave(150)
    table, out = tmp_path / "wave.csv", tmp_path / "run"
    pd.DataFrame({"x": x[:, 0], "y": y}).to_csv(table, index=False)
    brief = ("models=0/fan_in/own,16/unit/own", "chains.num_folds=4", "chains.num_chains=4")
    brief += ("chains.num_draws=20", "chains.num_warmup=20")
    words = [word for setting in brief for word in ("--set", setting)]
    status, _, err = run(
        "fit", table, "--target", "y", "--method", "stacking", *words, "--out", out
    )
    assert status == 0, err
    assert "Of 2 models, weighed on 120 rows that their chains left out" in err
    assert "Convergence" not in err  # nothing speaks against trusting it
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["converged"] is None
    assert metrics["unseen_rows"] == 120
    assert metrics["models"][1]["weight"] > 0.9
    page = (out / "report.html").read_text()
    assert "Models that were tried" in page
    told = "150 rows: 30 held back for testing, and, where these are not enough to tell, 120"
    assert told in page
    assert run("report", out)[0] == 0
    written = (out / "report.html").read_text()
    assert "Models that were tried" in written
    assert told in written
    assert run("predict", out, table, "--out", tmp_path / "p.csv")[0] == 0
    damaged = out / "ensemble" / "part_0" / "ensemble.json"
    damaged.write_text(damaged.read_text() + " ")
    assert run("predict", out, table, "--out", tmp_path / "q.csv")[0] == 2
    status, _, err = run("resume", out)
    assert status == 2


def test_one_model_is_not_called_several() -> None:
    one = {"model": "50/fan_in/own", "log_score": -1.0, "log_score_error": 0.1, "weight": 1.0}
    several = Candidates.read({"models": [one, {**one, "weight": 0.0}], "models_rows": 300}, {})
    alone = Candidates.read({"models": [one], "models_rows": 300}, {})
    assert several is not None
    assert alone is not None
    assert several.reason.startswith("Several models are mixed")
    assert several.sentences()[0].startswith("Of 2 models, weighed on 300 rows")
    assert alone.reason.startswith("One model was fitted")
    assert alone.sentences()[0].startswith("One model, judged on 300 rows")
    assert alone.unseen_rows == several.unseen_rows == 300
