"""The estimators: units, tables, weights, and that they add no algorithm of their own."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import credence
from credence import BNNClassifier, BNNRegressor
from credence.engine.clock import CompileClock
from credence.errors import ExtrapolationWarning, InputError, StorageError
from credence.methods import HMC, DeepEnsemble, Stacking, Training
from credence.methods.stacking.folds import FoldChains
from credence.models.likelihoods.numbers import LearntScale, NormalNoise
from credence.models.priors import GaussianPrior
from credence.storage import write_json

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)
QUICK = DeepEnsemble(num_members=3, training=Training(max_epochs=300, learning_rate=0.03))
BRIEF = DeepEnsemble(num_members=2, training=Training(max_epochs=10))
QUICK_CHAINS = FoldChains(
    num_chains=4, num_folds=4, num_draws=20, num_warmup=20, training=BRIEF.training
)
CHAINS = HMC(num_draws=200, num_warmup=200, num_chains=2)


def line(num_points: int = 80, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """y = 1000 + 100 x + noise of sd 10."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (num_points, 1))
    return x, 1000 + 100 * x[:, 0] + rng.normal(0, 10, num_points)


@pytest.fixture(scope="module")
def regressor() -> BNNRegressor:
    return BNNRegressor(hidden=(), method=CHAINS, random_state=0).fit(*line())


def test_predictions_are_in_units_of_y(regressor: BNNRegressor) -> None:
    mean, std = regressor.predict(np.array([[-1.0], [1.0]]), return_std=True)
    assert np.allclose(mean, [900, 1100], atol=8)
    assert np.allclose(std, 10, rtol=0.35)
    lower, upper = regressor.predict_interval([[1.0]], coverage=0.95)
    assert (upper - lower)[0] == pytest.approx(2 * 1.96 * std[1], rel=0.1)
    quantiles = regressor.predict_quantiles([[1.0]], (0.1, 0.5, 0.9))
    assert quantiles.shape == (1, 3)
    assert (np.diff(quantiles) > 0).all()


@pytest.mark.parametrize("model", [BNNRegressor(), BNNClassifier()], ids=["numbers", "labels"])
def test_a_second_fit_that_fails_leaves_no_networks_of_the_first(model: Any) -> None:
    """They would predict with the scaling of the second."""
    x, y = np.arange(8.0)[:, None], np.arange(8) % 2
    model.ensemble_ = "networks"
    with pytest.raises(InputError, match="nuts_of_old"):
        model.set_params(method="nuts_of_old").fit(x, y)
    with pytest.raises(NotFittedError):
        model.predict(x)


def test_functions_and_samples(regressor: BNNRegressor) -> None:
    x, _ = line(5, seed=1)
    functions = regressor.sample_functions(x)
    assert functions.shape == (2, 200, 5)
    assert np.allclose(functions.mean(axis=(0, 1)), regressor.predict(x), rtol=1e-4)
    samples = regressor.sample_y(x, 4000, random_state=0)
    mean, std = regressor.predict(x, return_std=True)
    assert samples.shape == (5, 4000)
    assert (np.abs(samples.mean(axis=1) - mean) < 4.5 * std / 4000**0.5).all()


def test_arviz_has_the_units_of_y(regressor: BNNRegressor) -> None:
    x, y = line(20, seed=1)
    data = regressor.to_arviz(x, y)
    mean_density = logsumexp(data["log_likelihood"]["y"], axis=(0, 1)) - np.log(400)
    np.testing.assert_allclose(mean_density, regressor.evaluate(x, y)["log_prob"], rtol=1e-4)
    np.testing.assert_allclose(data["observed_data"]["y"], y, rtol=1e-6)
    drawn = np.asarray(data["posterior_predictive"]["y"]).reshape(400, 20)
    mean, std = regressor.predict(x, return_std=True)
    assert (np.abs(drawn.mean(axis=0) - mean) < 4.5 * std / 20).all()


def test_uncertainty_adds_up(regressor: BNNRegressor) -> None:
    with pytest.warns(ExtrapolationWarning, match=r"far outside in 1 row, first 50 in row 2"):
        parts = regressor.decompose_uncertainty([[0.0], [50.0]])
    assert np.allclose(parts["total"] ** 2, parts["aleatoric"] ** 2 + parts["epistemic"] ** 2)
    assert parts["epistemic"][1] > 5 * parts["epistemic"][0], "far from the data it knows less"


def test_rows_unlike_training_are_told() -> None:
    """Numbers and names: where they are, and a warning at every kind of prediction."""
    x, y = line(40)
    train = pd.DataFrame({"x": x[:, 0], "town": ["Bern", "Chur"] * 20})
    settings: dict[str, Any] = {"hidden": (), "method": QUICK, "random_state": 0}
    number = BNNRegressor(**settings).fit(train, y)
    label = BNNClassifier(**settings).fit(train, y > 1000)
    new = train.iloc[[0, 1, 2]].assign(x=[0.0, 50.0, 0.0], town=["Bern", "Bern", "Davos"])
    for model in (number, label):
        assert model.is_outside(new).tolist() == [False, True, True]
        assert not model.is_outside(train).any()
        with pytest.warns(ExtrapolationWarning, match=r"'x' was between.*'town' holds names") as w:
            model.predict(new)
        assert w[0].filename == __file__
        model.predict(new)  # a warning would be an error here: each is told once
        model.predict(train)
    with pytest.warns(ExtrapolationWarning) as w:
        number.predict_interval(new[:2])
    assert w[0].filename == __file__
    plain = BNNRegressor(**settings).fit(x, y)
    assert plain.is_outside([[0.0], [-50.0]]).tolist() == [False, True]


def test_an_array_after_a_frame_is_taken_by_place() -> None:
    """It is what scikit-learn does, with the same warning."""
    x, y = line(40)
    frame = pd.DataFrame({"x": x[:, 0]})
    model = BNNRegressor(hidden=(), method=QUICK, random_state=0).fit(frame, y)
    with pytest.warns(UserWarning, match="valid feature names"):
        found = model.predict(x)
    np.testing.assert_array_equal(found, model.predict(frame))


def test_evaluate_scores_in_units_of_y(regressor: BNNRegressor) -> None:
    from scipy.stats import norm

    x, y = line(200, seed=2)
    mean, std = regressor.predict(x, return_std=True)
    found = regressor.evaluate(x, y)
    near = np.abs(y - mean) < 2 * std  # the mixture's tails are heavier than a normal's
    assert np.allclose(found["log_prob"][near], norm.logpdf(y, mean, std)[near], atol=0.05)
    assert np.allclose(found["cdf"], norm.cdf(y, mean, std), atol=0.02)
    z = (y - mean) / std
    crps = std * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - np.pi**-0.5)
    assert found["crps"].mean() == pytest.approx(crps.mean(), rel=0.03)


def test_an_estimator_adds_no_algorithm() -> None:
    from credence.density.posterior import Posterior
    from credence.models import MLP, Gaussian, Normal

    x, y = line(30)
    model = BNNRegressor(hidden=(3,), method=QUICK, random_state=7).fit(x, y)
    inputs = model.preprocessor_.transform(x)
    scaled = model.target_scaler_.transform(y)
    by_hand = QUICK.run(7, Posterior(MLP(1, (3,)), Gaussian(), Normal(), (inputs, scaled)))
    assert np.array_equal(by_hand.functions(inputs), model.ensemble_.functions(inputs))


def test_a_second_fit_of_the_same_shape_compiles_nothing() -> None:
    x, y = line(40)
    method = HMC(num_draws=20, num_warmup=25, num_chains=2)
    BNNRegressor(hidden=(4,), method=method, random_state=0).fit(x, y).predict(x)
    other_x, other_y = line(40, seed=9)
    with CompileClock() as clock:
        BNNRegressor(hidden=(4,), method=method, random_state=1).fit(other_x, other_y).predict(x)
    assert clock.num_traces == 0


def test_tables_with_categories_and_gaps() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=90),
            "city": rng.choice(["a", "b", "c"], 90),
            "new": rng.choice([True, False], 90),
        }
    )
    y = frame["size"] + 2.0 * (frame["city"] == "b") + rng.normal(0, 0.1, 90)
    frame.loc[::7, "size"] = np.nan
    model = BNNRegressor(hidden=(8,), method=QUICK, random_state=0).fit(frame, y)
    assert model.score(frame, y) > 0.6
    assert list(model.feature_names_in_) == ["size", "city", "new"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["city", "size", "new"]])


def test_several_targets() -> None:
    x, y = line(60)
    both = np.column_stack([y, -5 * y])
    model = BNNRegressor(hidden=(), method=QUICK, random_state=0).fit(x, both)
    mean, std = model.predict(x, return_std=True)
    assert mean.shape == std.shape == (60, 2)
    assert model.score(x, both) > 0.9
    assert model.predict_quantiles(x[:4]).shape == (4, 2, 5)
    assert model.sample_y(x[:4], 3).shape == (4, 2, 3)
    assert model.sample_functions(x[:4]).shape == (1, 3, 4, 2)


def classes(num_points: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_points, 2))
    return x, np.where(x[:, 0] + 0.3 * rng.normal(size=num_points) > 0, "up", "down")


def test_string_labels_and_probabilities() -> None:
    x, y = classes()
    model = BNNClassifier(hidden=(5,), method=QUICK, random_state=0).fit(x, y)
    assert list(model.classes_) == ["down", "up"]
    assert model.score(x, y) > 0.85
    probabilities = model.predict_proba(x)
    assert np.allclose(probabilities.sum(axis=1), 1)
    parts = model.decompose_uncertainty(x)
    assert np.allclose(parts["total"], parts["aleatoric"] + parts["epistemic"], atol=1e-6)
    assert model.sample_functions(x[:3]).shape == (1, 3, 3, 2)


def test_labels_of_another_type_are_unknown_however_many_there_are() -> None:
    """NumPy compares text with many numbers as text, where 10 comes before 2."""
    model = BNNClassifier()
    model.classes_ = np.arange(1, 31)
    assert model._coded([10, 2.0]).tolist() == [9, 1]
    for labels in (["2", "10"], np.array(["2", "10"]), [31]):
        with pytest.raises(InputError, match="which fit never saw"):
            model._coded(labels)


def test_rows_of_two_batches_are_drawn_from_the_same_networks(
    regressor: BNNRegressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Far from the data networks differ by more than the noise, and differ alike at all rows."""
    monkeypatch.setattr("credence.ensembles.predictor.batch_rows", lambda *_: 2)
    far = np.full((4, 1), 60.0)
    with pytest.warns(ExtrapolationWarning):
        samples = regressor.sample_y(far, 400, random_state=0)
    assert np.corrcoef(samples[0], samples[1])[0, 1] > 0.5
    assert np.corrcoef(samples[0], samples[2])[0, 1] > 0.5, "of another batch"
    assert np.all(samples[0] != samples[2]), "each row has noise of its own"


def test_a_fit_without_a_seed_goes_on_from_its_folder(tmp_path: Path) -> None:
    x, y = line(20)
    models = [
        BNNRegressor(hidden=(), method=QUICK, checkpoint_folder=tmp_path).fit(x, y)
        for _ in range(2)
    ]
    assert np.array_equal(*(model.predict(x) for model in models))


def test_groups_reach_the_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups are those of the rows that have weight, whatever they are called."""
    seen, run = [], DeepEnsemble.run
    monkeypatch.setattr(
        DeepEnsemble,
        "run",
        lambda self, key, posterior, **more: (
            seen.append(posterior.groups) or run(self, key, posterior, **more)
        ),
    )
    x, y = line(12)
    names, weight = np.repeat(["c", "a", "b"], 4), np.ones(12)
    weight[3] = 0
    model = BNNRegressor(hidden=(), method=BRIEF)
    model.fit(x, y, sample_weight=weight, groups=names)
    assert seen[-1].tolist() == [0] * 3 + [1] * 4 + [2] * 4
    BNNClassifier(hidden=(), method=BRIEF).fit(x, y > 1000, groups=pd.Series(names))
    assert seen[-1].tolist() == [0] * 4 + [1] * 4 + [2] * 4
    with pytest.raises(InputError, match="groups has 11 entries, and X has 12 rows"):
        model.fit(x, y, groups=names[1:])
    with pytest.raises(InputError, match="groups lacks those of 1 row, the first of row 2"):
        model.fit(x, y, groups=[1, None, *range(10)])


def test_class_weight_and_sample_weight_move_the_fit() -> None:
    x, y = classes()

    def share_up(**settings: object) -> float:
        weight = settings.pop("sample_weight", None)
        model = BNNClassifier(hidden=(), method=QUICK, random_state=0, **settings)
        return float(np.mean(model.fit(x, y, sample_weight=weight).predict(x) == "up"))

    plain = share_up()
    assert share_up(class_weight={"up": 20.0, "down": 1.0}) > plain + 0.03
    assert share_up(sample_weight=np.where(y == "up", 20.0, 1.0)) > plain + 0.03


def test_pipeline_cross_validation_and_grid_search() -> None:
    x, y = line(60)
    model = BNNRegressor(hidden=(), method=QUICK, random_state=0)
    assert cross_val_score(make_pipeline(StandardScaler(), model), x, y, cv=3).mean() > 0.9
    search = GridSearchCV(model, {"hidden": [(), (3,)]}, cv=2).fit(x, y)
    assert search.best_score_ > 0.9


def test_save_and_load_give_the_same_predictions(tmp_path: Path, regressor: BNNRegressor) -> None:
    x, _ = line(7, seed=3)
    regressor.save(tmp_path / "model")
    again = credence.load(tmp_path / "model")
    assert isinstance(again, BNNRegressor)
    assert np.array_equal(again.predict(x), regressor.predict(x))
    assert again.method_ == regressor.method_
    assert again.diagnostics_ == regressor.diagnostics_
    (tmp_path / "model" / "estimator.json").write_text("{}")
    with pytest.raises(StorageError, match=r"estimator.json .*estimator is missing"):
        credence.load(tmp_path / "model")


def document_of(folder: Path) -> dict[str, Any]:
    """estimator.json, ready to be written again by `write_json`."""
    document = json.loads((folder / "estimator.json").read_text())
    return {key: value for key, value in document.items() if key not in ("format", "sha256")}


def test_an_estimator_and_its_ensemble_are_of_one_piece(
    tmp_path: Path, regressor: BNNRegressor
) -> None:
    regressor.save(tmp_path / "model")
    text = (tmp_path / "model" / "estimator.json").read_text()
    (tmp_path / "model" / "estimator.json").write_text(text.replace('"y_ndim": 1', '"y_ndim": 2'))
    with pytest.raises(StorageError, match=r"estimator.json .*it has been changed"):
        credence.load(tmp_path / "model")
    (tmp_path / "model" / "estimator.json").write_text(text)
    other = BNNRegressor(hidden=(), method=QUICK, random_state=1).fit(*line())
    other.save(tmp_path / "other")
    for name in ("ensemble.npz", "ensemble.json"):
        (tmp_path / "other" / name).replace(tmp_path / "model" / name)
    with pytest.raises(StorageError, match=r"ensemble.json .*checksum does not fit"):
        credence.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y_ndim": 3}, "y_ndim is 3"),
        ({"target_scaler": {"mean": [0, 0], "scale": [1, 1]}, "y_ndim": 2}, "predicts others"),
        ({"target_scaler": {"mean": [0], "scale": [0]}}, "scale > 0"),
        ({"n_features_in": 2}, "2 features"),
        ({"preprocessor": {"columns": []}}, "features"),
        ({"preprocessor": {"columns": "x"}}, "saved preprocessor is damaged"),
        ({"estimator": "BNNClassifier"}, "BNNClassifier does not fit Ensemble"),
        ({"estimator": "os.system"}, "estimator must be"),
        ({"method": {"name": "nutz"}}, "nutz"),
        ({"method": {"name": "hmc", "num_draws": "many"}}, "num_draws"),
        ({"parameters": {"depth": 3}}, "depth"),
        ({"diagnostics": {}}, "diagnostics.max_rhat_function is missing"),
    ],
)
def test_a_forged_estimator_is_refused_with_what_is_wrong(
    changes: dict[str, Any], words: str, tmp_path: Path, regressor: BNNRegressor
) -> None:
    regressor.save(tmp_path)
    write_json(tmp_path / "estimator.json", document_of(tmp_path) | changes)
    with pytest.raises(StorageError, match=words) as refusal:
        credence.load(tmp_path)
    assert "estimator.json cannot be read" in str(refusal.value)


def test_forged_classes_are_refused(tmp_path: Path) -> None:
    model = BNNClassifier(hidden=(), method=QUICK, random_state=0).fit(*classes(40))
    model.save(tmp_path)
    for changes in (
        {"classes_dtype": "<U1000000000"},
        {"classes_dtype": "V8"},
        {"classes": ["down"]},
        {"classes": ["up", "up"]},
    ):
        model.save(tmp_path)
        write_json(tmp_path / "estimator.json", document_of(tmp_path) | changes)
        with pytest.raises(StorageError, match=r"estimator.json cannot be read"):
            credence.load(tmp_path)


def test_classes_of_any_type_are_restored(tmp_path: Path) -> None:
    x, y = classes(40)
    for labels in (y, (y == "up").astype(int), y == "up", y.astype(object)):
        model = BNNClassifier(hidden=(), method=QUICK, random_state=0).fit(x, labels)
        model.save(tmp_path / "model")
        again = credence.load(tmp_path / "model")
        assert np.array_equal(again.predict(x), model.predict(x))
        assert again.classes_.dtype == model.classes_.dtype


class Named(BNNRegressor):
    """A class of one's own, with a parameter of its own."""

    def __init__(self, label: str = "", hidden: Any = (), method: Any = BRIEF) -> None:
        super().__init__(hidden=hidden, method=method)
        self.label = label


@dataclass(frozen=True, kw_only=True)
class Mine(DeepEnsemble):
    """A method that no entry point names."""

    name: ClassVar[str] = "mine"


def test_classes_and_methods_of_ones_own_are_restored(tmp_path: Path) -> None:
    x, y = line(20)
    model = Named("a", method=Mine(num_members=2, training=BRIEF.training)).fit(x, y)
    model.save(tmp_path)
    for given in (None, BRIEF):
        with pytest.raises(StorageError, match=r"method 'mine', which is not Credence's own"):
            credence.load(tmp_path, method=given)
    again = credence.load(tmp_path, method=Mine())
    assert type(again) is BNNRegressor
    assert again.method_ == Mine()
    assert np.array_equal(again.predict(x), model.predict(x))


@dataclass(frozen=True)
class Theirs(GaussianPrior):
    """A prior of one's own."""

    std: float = 2.0

    def stds(self, network: Any, params: Any) -> Any:
        return jax.tree.map(lambda _: self.std, params)


@dataclass(frozen=True)
class Broad(NormalNoise, LearntScale):
    """A likelihood of one's own, by location and scale."""

    scale_prior_std: float = 3.0


@pytest.mark.parametrize("method", [BRIEF, Stacking(models=("own/own/own",), chains=QUICK_CHAINS)])
def test_priors_and_likelihoods_of_ones_own_are_given_again(method: Any, tmp_path: Path) -> None:
    x, y = line(40)
    model = BNNRegressor(hidden=(2,), prior=Theirs(), likelihood=Broad(), method=method)
    model.set_params(random_state=0).fit(x, y).save(tmp_path)
    assert np.isfinite(model.predict_interval(x)).all()
    with pytest.raises(InputError, match=r"not Credence's own.*prior=\.\.\., likelihood=\.\.\."):
        credence.load(tmp_path, prior=Theirs())
    with pytest.raises(InputError, match=r"written with .*2\.0.*, and .*5\.0.* is given"):
        credence.load(tmp_path, prior=Theirs(5.0), likelihood=Broad())
    again = credence.load(tmp_path, prior=Theirs(), likelihood=Broad())
    assert np.array_equal(again.predict(x), model.predict(x))
    known = BNNRegressor(hidden=(2,), method=BRIEF, random_state=0).fit(x, y)
    known.save(tmp_path)
    unused = credence.load(tmp_path, prior=Theirs())
    assert np.array_equal(unused.predict(x), known.predict(x))


def test_numbers_of_numpy_are_saved(tmp_path: Path) -> None:
    """Grids of settings hold them."""
    x, y = line(40)
    settings = {"hidden": tuple(np.array([2, 3])), "random_state": np.int64(5)}
    model = BNNRegressor(method=BRIEF, **settings).fit(x, y)
    model.ensemble_.provenance.settings["num_members"] = np.int64(2)
    model.save(tmp_path)
    again = credence.load(tmp_path)
    assert np.array_equal(again.predict(x), model.predict(x))
    assert (*again.hidden, again.random_state) == (2, 3, 5)


def test_what_cannot_be_saved_replaces_nothing(tmp_path: Path) -> None:
    x, y = line(40)
    kept = BNNRegressor(hidden=(), method=BRIEF, random_state=0).fit(x, y)
    kept.save(tmp_path)
    other = BNNRegressor(hidden=(), method=BRIEF, random_state=1).fit(x, y)
    other.hidden = [{1}]  # what is no JSON
    with pytest.raises(InputError, match=r"cannot be saved \(.*set is not JSON serializable"):
        other.save(tmp_path)
    assert np.array_equal(credence.load(tmp_path).predict(x), kept.predict(x))


@pytest.mark.parametrize("weight", ["balanced", {0: 1.0, 1: np.float32(2.5)}])
def test_class_weight_is_restored(tmp_path: Path, weight: object) -> None:
    x, y = classes(40)
    model = BNNClassifier(hidden=(), method=BRIEF, class_weight=weight, random_state=0)
    model.fit(x, (y == "up").astype(int)).save(tmp_path)
    assert credence.load(tmp_path).class_weight == weight


def test_a_run_that_did_not_converge_warns() -> None:
    x, y = line(20)
    method = HMC(num_draws=5, num_warmup=25, num_chains=2)
    with pytest.warns(ConvergenceWarning, match="Not converged"):
        model = BNNRegressor(hidden=(3,), method=method, random_state=0).fit(x, y)
    assert model.diagnostics_.converged is False


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"method": "nutz"}, "nuts"),
        ({"hidden": (-3,)}, "hidden"),
        ({"activation": "tahn"}, "tanh"),
        ({"max_seconds": 0.0}, "max_seconds"),
    ],
)
def test_bad_settings(settings: dict, word: str) -> None:
    with pytest.raises(InputError, match=word):
        BNNRegressor(**settings).fit(*line(10))


def test_bad_arrays() -> None:
    x, y = line(10)
    model = BNNRegressor(hidden=(), method=QUICK)
    with pytest.raises(InputError, match=r"y holds text \(.*'low'.*\)\. .*use BNNClassifier"):
        BNNRegressor().fit(np.zeros((2, 1)), ["low", "high"])
    with pytest.raises(InputError, match="y holds dates or times"):
        BNNRegressor().fit(np.zeros((2, 1)), pd.to_datetime(["2026-01-01", "2026-01-02"]))
    for text in ([["a"], ["b"]], np.array([["a"], [1.0]], object)):
        with pytest.raises(InputError, match=r"X holds text .*Pass a DataFrame"):
            BNNRegressor().fit(text, [1.0, 2.0])
    with pytest.raises(InputError, match="10 rows but y has 9"):
        model.fit(x, y[:9])
    with pytest.raises(InputError, match="constant"):
        model.fit(x, np.ones(10))
    with pytest.raises(ValueError, match="infinity"):
        model.fit(np.where(x > 0, np.inf, x), y)
    with pytest.raises(InputError, match="sample_weight"):
        model.fit(x, y, sample_weight=-np.ones(10))
    with pytest.raises(InputError, match="sample_weight must be numbers"):
        model.fit(x, y, sample_weight="abc")
    for fit in (model.fit, BNNClassifier(hidden=(), method=QUICK).fit):
        with pytest.raises(InputError, match=r"weights add up to 1e\+31.* by their mean 1e\+30"):
            fit(x, np.arange(10) % 2, sample_weight=np.full(10, 1e30))
    with pytest.raises(InputError, match="at least 2 classes"):
        BNNClassifier(hidden=(), method=QUICK).fit(x, np.zeros(10, int))


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ([("a", "x"), ("b", "y")], "names of 2 levels"),
        (["a", "a"], "more than one column named 'a'"),
        ([1, "1"], "more than one column named '1'"),
        ([None, "a"], "1 column whose name is missing"),
        ([], "no columns"),
    ],
)
def test_bad_column_names(names: list, sentence: str) -> None:
    frame = pd.DataFrame(np.zeros((10, len(names))), columns=pd.Index(names))
    with pytest.raises(InputError, match=sentence):
        BNNRegressor(hidden=(), method=QUICK).fit(frame, range(10))


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (["u", "d", None, "u"], "1 missing label, the first in row 3"),
        (pd.Series(["u", "d", None, "u"], dtype="string"), "1 missing label"),
        ([True, None, False, None], "2 missing labels, the first in row 2"),
        (np.array(["u", 7, "d", "u"], object), "text, such as 'u', and .* such as 7 of type int"),
        (pd.to_datetime(["2026-01-01", "2026-01-02"] * 2), "dates or times: write them as text"),
        (pd.DataFrame({"label": ["u", "d", None, "u"]}), "1 missing label, the first in row 3"),
    ],
)
def test_bad_labels(labels: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        BNNClassifier(hidden=(), method=QUICK).fit(line(4)[0], labels)


def test_importing_credence_is_quick() -> None:
    heavy = ("jax", "sklearn", "pandas", "matplotlib", "arviz_stats")
    code = f"import sys, credence; sys.exit(any(name in sys.modules for name in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
