"""Ensembles: members, weights, predictions in batches."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.ensembles import X, make_ensemble

from credence.ensembles.ensemble import Ensemble
from credence.ensembles.predictive import Predictive
from credence.errors import InputError

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


def test_uneven_weights_are_worth_few_members() -> None:
    """Kish's size: 1 of all weight on one member, half of the members where only half count."""
    equal = make_ensemble()
    shape = equal.num_chains, equal.num_draws
    assert equal.weights_worth == equal.num_members
    half = np.arange(equal.num_members).reshape(shape) % 2
    assert make_ensemble(weights=half / half.sum()).weights_worth == pytest.approx(half.sum())
    one = np.zeros(shape)
    one[0, 0] = 1
    assert make_ensemble(weights=one).weights_worth == pytest.approx(1)


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
    with pytest.raises(InputError, match="the inputs have no rows"):
        ensemble.over_batches(X[:0], lambda *_: {})
    with pytest.raises(InputError, match="batch_size=0"):
        ensemble.over_batches(X, lambda *_: {}, batch_size=0)
