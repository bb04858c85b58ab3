"""Ensembles: predictions in batches, files, ArviZ."""

import dataclasses
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from tools.ensembles import ENSEMBLES, X, make_ensemble
from tools.exact import linear_regression, weights, with_ones

from credence.ensembles.diagnostics.importance import pareto_smoothed
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.predictive import Predictive
from credence.errors import CredenceError, InputError, StorageError
from credence.models import MLP, Categorical
from credence.storage import file_sha256, read_arrays, write_arrays, write_json

pytestmark = pytest.mark.usefixtures("checked_keys")


def test_members_are_draws_chain_by_chain() -> None:
    ensemble = make_ensemble()
    assert (ensemble.num_chains, ensemble.num_draws, ensemble.num_members) == (2, 3, 6)
    functions = ensemble.functions(X)
    assert functions.shape == (2, 3, 7, 1)
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf[1, 2]), ensemble.params.network)
    expected = ensemble.model.network.apply(params, jnp.asarray(X))
    np.testing.assert_allclose(functions[1, 2], expected, rtol=1e-5)
    np.testing.assert_allclose(ensemble.outputs(X)[5], expected, rtol=1e-5)


def test_weights_count() -> None:
    """Equal by default; signed ones take away."""
    means = make_ensemble().predictive(X).member_means()
    np.testing.assert_allclose(
        make_ensemble().predictive(X).mean(), means.mean(axis=0), rtol=1e-4, atol=1e-6
    )
    signed = np.array([[0.5, 0.5, 0.5], [0.5, -0.5, -0.5]])
    weighted = make_ensemble(weights=signed).predictive(X)
    expected = np.tensordot(signed.ravel(), np.asarray(means), axes=1)
    np.testing.assert_allclose(weighted.mean(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 50, None])
def test_batches_do_not_change_predictions(batch_size: int | None) -> None:
    ensemble = make_ensemble()
    shapes = set()

    def summarise(predictive: Predictive, rows: slice) -> dict[str, Any]:
        shapes.add(predictive.outputs.shape)
        assert rows.stop - rows.start <= (batch_size or 7)
        return {"mean": predictive.mean(), "std": predictive.std()}

    summary = ensemble.over_batches(X, summarise, batch_size)
    whole = ensemble.predictive(X)
    np.testing.assert_allclose(summary["mean"], whole.mean(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(summary["std"], whole.std(), rtol=1e-5)
    assert len(shapes) == 1  # one program
    assert batch_size is None or shapes == {(6, batch_size, 1)}


def test_default_batches_bound_members_times_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """About 2^20 outputs at a time, however many rows."""
    sizes = set()
    monkeypatch.setattr(
        Ensemble, "predictive", lambda self, x: sizes.add(len(x)) or np.zeros((len(x), 1))
    )
    rows = np.zeros((400_000, 3), np.float32)
    summary = make_ensemble().over_batches(rows, lambda predictive, _: {"mean": predictive})
    assert len(sizes) == 1
    assert 2**18 < 6 * max(sizes) <= 2**20
    assert summary["mean"].shape == (400_000, 1)


def test_inputs_that_do_not_fit_are_refused() -> None:
    ensemble = make_ensemble()
    with pytest.raises(InputError, match=r"shape \(7, 2\), but the fit saw rows of shape \(3,\)"):
        ensemble.predictive(X[:, :2])
    with pytest.raises(InputError, match="at least one row at a time, got 0 rows"):
        ensemble.over_batches(X[:0], lambda *_: {})
    with pytest.raises(InputError, match="batch_size=0"):
        ensemble.over_batches(X, lambda *_: {}, batch_size=0)


@pytest.mark.parametrize("settings", ENSEMBLES.values(), ids=ENSEMBLES)
def test_files_keep_every_bit(settings: dict[str, Any], tmp_path: Path) -> None:
    saved = make_ensemble(**settings)
    saved.save(tmp_path)
    loaded = Ensemble.load(tmp_path)
    assert jax.tree.structure(loaded.params) == jax.tree.structure(saved.params)
    for ours, theirs in zip(*map(jax.tree.leaves, (saved.params, loaded.params)), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    for name in ("model", "cost", "provenance", "num_features", "num_targets", "is_chain"):
        assert getattr(loaded, name) == getattr(saved, name), name
    np.testing.assert_array_equal(loaded.weights, saved.weights)
    assert loaded.scalars.keys() == saved.scalars.keys()
    np.testing.assert_array_equal(
        loaded.scalars["acceptance_rate"], saved.scalars["acceptance_rate"]
    )
    np.testing.assert_array_equal(loaded.predictive(X).mean(), saved.predictive(X).mean())


def test_saving_again_replaces(tmp_path: Path) -> None:
    make_ensemble().save(tmp_path)
    make_ensemble(classes=3).save(tmp_path)
    assert Ensemble.load(tmp_path).model.likelihood == Categorical()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ensemble.json", "ensemble.npz"]


def break_json(folder: Path) -> None:
    text = (folder / "ensemble.json").read_text()
    (folder / "ensemble.json").write_text(text[: len(text) // 2])


def break_arrays(folder: Path) -> None:
    content = (folder / "ensemble.npz").read_bytes()
    (folder / "ensemble.npz").write_bytes(content[: len(content) // 2])


def flip_bit(folder: Path) -> None:
    content = bytearray((folder / "ensemble.npz").read_bytes())
    content[-5] ^= 1
    (folder / "ensemble.npz").write_bytes(bytes(content))


def replace_arrays_only(folder: Path) -> None:
    """A run killed between the two files of its second save."""
    make_ensemble(weights=np.full((2, 3), 1 / 6)).save(folder / "new")
    (folder / "new" / "ensemble.npz").replace(folder / "ensemble.npz")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder: (folder / "ensemble.json").unlink(), r"\.json .*no such file"),
        (lambda folder: (folder / "ensemble.npz").unlink(), r"\.npz .*no such file"),
        (lambda folder: (folder / "ensemble.json").write_text("{}"), r"\.json .*is missing"),
        (break_json, r"\.json cannot be read"),
        (break_arrays, r"\.npz .*checksum does not fit"),
        (flip_bit, r"\.npz .*checksum does not fit"),
        (replace_arrays_only, r"\.npz .*checksum does not fit"),
    ],
    ids=["no json", "no arrays", "empty json", "half json", "half arrays", "bit", "two saves"],
)
def test_broken_folders_are_refused(damage: Any, words: str, tmp_path: Path) -> None:
    make_ensemble().save(tmp_path)
    damage(tmp_path)
    with pytest.raises(StorageError, match=words):
        Ensemble.load(tmp_path)


def test_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"nowhere/ensemble.json .*no such file"):
        Ensemble.load(tmp_path / "nowhere")


def forge(folder: Path, **changes: Any) -> None:
    """Change ensemble.json as somebody would who knows how its checksum is made."""
    document = json.loads((folder / "ensemble.json").read_text())
    document = {k: v for k, v in document.items() if k not in ("format", "sha256")}
    write_json(folder / "ensemble.json", document | changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_features": 10**10}, "The file holds arrays"),
        ({"num_features": [10**9] * 5}, "cannot be read"),
        ({"num_targets": 10**10}, "The file holds arrays"),
        ({"num_features": "3"}, "num_features must be"),
        ({"num_features": -3}, "cannot be read"),
        ({"network": {"type": "MLP", "num_outputs": 1, "hidden": [10**10]}}, "holds arrays"),
        ({"network": {"type": "MLP", "num_outputs": 1, "hidden": [2] * 10**5}}, "cannot be those"),
        ({"network": {"type": "ResNet", "num_outputs": 1, "blocks": [10**9]}}, "cannot be those"),
        ({"network": {"type": "MLP", "num_outputs": 1, "hidden": ["4"]}}, r"hidden\[0\] must be"),
        ({"network": {"type": "MLP", "num_outputs": 1, "hidden": [-4]}}, "at least one unit"),
        ({"likelihood": {"type": "StudentT", "df": 1.0}}, "StudentT"),
        ({"cost": {"flops": -1.0}}, "finite number >= 0"),
        ({"arrays_sha256": 3}, "arrays_sha256 must be str"),
    ],
)
def test_what_a_forged_folder_declares_is_compared_before_it_is_allocated(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    make_ensemble().save(tmp_path)
    forge(tmp_path, **changes)
    with pytest.raises(StorageError, match=words) as refusal:
        Ensemble.load(tmp_path)
    assert "ensemble.json cannot be read" in str(refusal.value)


def test_a_changed_description_is_refused(tmp_path: Path) -> None:
    make_ensemble().save(tmp_path)
    path = tmp_path / "ensemble.json"
    path.write_text(path.read_text().replace('"seed": 3', '"seed": 4'))
    with pytest.raises(StorageError, match=r"ensemble.json .*it has been changed"):
        Ensemble.load(tmp_path)


def test_nested_too_deep_is_refused(tmp_path: Path) -> None:
    make_ensemble().save(tmp_path)
    (tmp_path / "ensemble.json").write_text('{"network": ' + "[" * 100_000)
    with pytest.raises(StorageError, match=r"ensemble.json cannot be read"):
        Ensemble.load(tmp_path)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda arrays: arrays.pop("network.0.kernel"),
        lambda arrays: arrays.update(surplus=np.zeros((2, 3, 5))),
        lambda arrays: arrays.update(weights=np.full((3, 2), 1 / 6)),
        lambda arrays: arrays.update({"stat.log_density": np.zeros((2, 3, 4))}),
        lambda arrays: arrays.update({"stat.log_density": np.array([["a"] * 3] * 2)}),
        lambda arrays: arrays.update({k: v[:0] for k, v in arrays.items()}),
    ],
    ids=["lacking", "surplus", "other draws", "more than draws", "text", "none"],
)
def test_arrays_that_do_not_belong_together_are_refused(spoil: Any, tmp_path: Path) -> None:
    make_ensemble().save(tmp_path)
    arrays = read_arrays(tmp_path / "ensemble.npz")
    spoil(arrays)
    write_arrays(tmp_path / "ensemble.npz", arrays)
    forge(tmp_path, arrays_sha256=file_sha256(tmp_path / "ensemble.npz"))
    with pytest.raises(StorageError, match="cannot be read"):
        Ensemble.load(tmp_path)


def test_other_format_is_refused(tmp_path: Path) -> None:
    make_ensemble().save(tmp_path)
    about = json.loads((tmp_path / "ensemble.json").read_text())
    (tmp_path / "ensemble.json").write_text(json.dumps(about | {"format": 99}))
    with pytest.raises(StorageError, match=r"has format 99, .* this version reads 1"):
        Ensemble.load(tmp_path)


def test_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="Could not write"):
        make_ensemble().save(tmp_path / "file")


def test_another_network_is_refused(tmp_path: Path) -> None:
    make_ensemble().save(tmp_path)
    for network in (MLP(1, hidden=(5,)), MLP(1, hidden=(4, 4))):
        with pytest.raises(InputError, match="pass the network that was fitted"):
            Ensemble.load(tmp_path, network=network)


def test_nothing_is_pickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("pickle was used")

    for name in ("load", "loads", "dump", "dumps", "Pickler", "Unpickler"):
        monkeypatch.setattr(f"pickle.{name}", refuse)
    make_ensemble().save(tmp_path)
    Ensemble.load(tmp_path)


def test_arviz_sees_draws_and_statistics() -> None:
    weights = np.array([[0.5, 0.5, 0.5], [0.5, -0.5, -0.5]])
    ensemble = make_ensemble(weights=weights)
    data = ensemble.to_arviz()
    kernel = data["posterior"]["network.0.kernel"]
    assert kernel.dims[:2] == ("chain", "draw")
    np.testing.assert_array_equal(kernel, ensemble.params.network[0].kernel)
    np.testing.assert_array_equal(data["posterior"]["likelihood"], ensemble.params.likelihood)
    np.testing.assert_array_equal(
        data["sample_stats"]["acceptance_rate"], ensemble.scalars["acceptance_rate"]
    )
    np.testing.assert_array_equal(data["sample_stats"]["weight"], weights)
    assert "network.0.kernel" in arviz.rhat(data)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_arviz_leaves_one_out_as_the_closed_form_does(float64: None) -> None:
    problem = linear_regression(num_points=15)
    mean, covariance = problem.solve()
    draws = np.random.default_rng(2).multivariate_normal(mean, covariance, size=(4, 2500))
    posterior = problem.posterior
    ensemble = replace(
        make_ensemble(),
        model=posterior.model,
        params=posterior.unravel(jnp.asarray(draws)),
        scalars={},
    )
    np.testing.assert_allclose(weights(ensemble), draws)
    x, y = problem.x, problem.y
    data = ensemble.to_arviz(x, y)
    log_likelihood = np.asarray(data["log_likelihood"]["y"])
    exact = stats.norm.logpdf(y, draws @ with_ones(x).T, problem.noise_std)
    np.testing.assert_allclose(log_likelihood, exact, atol=1e-4)
    left_out = [
        problem._replace(x=np.delete(x, i, 0), y=np.delete(y, i)).predict(x[i : i + 1])
        for i in range(15)
    ]
    expected = [stats.norm.logpdf(y[i], *left_out[i])[0] for i in range(15)]
    by_arviz = arviz.loo(data, pointwise=True, reff=1.0).loo_i.to_numpy()
    flat = log_likelihood.reshape(-1, 15)
    ours = [logsumexp(row, b=pareto_smoothed(-row).weights) for row in flat.T]
    np.testing.assert_allclose(by_arviz, ours, atol=1e-3)
    np.testing.assert_allclose(by_arviz, expected, atol=0.1)
    np.testing.assert_array_equal(data["observed_data"]["y"], y)
    drawn = np.asarray(data["posterior_predictive"]["y"]).reshape(-1, 15)
    centre, std = problem.predict(x)
    assert np.all(np.abs(drawn.mean(axis=0) - centre) < 4.5 * std / len(drawn) ** 0.5)
    np.testing.assert_allclose(drawn.std(axis=0), std, rtol=4.5 / (2 * len(drawn)) ** 0.5)


def test_arviz_has_labels_and_several_targets() -> None:
    labels = make_ensemble(classes=3)
    data = labels.to_arviz(X, np.arange(7) % 3)
    assert data["posterior_predictive"]["y"].shape == (2, 3, 7)
    assert set(np.unique(data["posterior_predictive"]["y"])) <= {0, 1, 2}
    probabilities = np.asarray(labels.predictive(X).member_means()).reshape(2, 3, 7, 3)
    expected = np.log(probabilities[:, :, np.arange(7), np.arange(7) % 3])
    np.testing.assert_allclose(data["log_likelihood"]["y"], expected, rtol=1e-4)
    assert "log_likelihood" not in labels.to_arviz(X)


def test_arviz_refuses_targets_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="y without x"):
        make_ensemble().to_arviz(y=np.zeros(7))
    with pytest.raises(InputError, match="y has 6 rows of 1 target, but x has 7 rows"):
        make_ensemble().to_arviz(X, np.zeros(6))
    with pytest.raises(InputError, match="7 rows of 2 targets"):
        make_ensemble().to_arviz(X, np.zeros((7, 2)))


def test_provenance_names_versions_and_time() -> None:
    provenance = make_ensemble().provenance
    assert provenance.versions["jax"] == jax.__version__
    assert provenance.created.endswith("+00:00")
    assert issubclass(StorageError, CredenceError)
    with pytest.raises(dataclasses.FrozenInstanceError):
        provenance.seed = 1  # type: ignore[misc]
