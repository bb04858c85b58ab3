"""Stacks as files: they predict as before, and what is wrong in them is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.ensembles import X, make_ensemble

from credence.density.posterior import Posterior
from credence.ensembles.candidate import Candidate
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.stack import Stack, load_predictor
from credence.errors import StorageError
from credence.methods import MAP
from credence.models import MLP, Categorical, Gaussian


def test_the_last_one_that_was_saved_is_read(tmp_path: Path) -> None:
    """Whatever was in the folder before."""
    single = make_ensemble()
    single.save(tmp_path)
    pair = Stack((single, single), np.array([0.5, 0.5]), single.cost, single.provenance, (), 7)
    pair.save(tmp_path)
    assert isinstance(load_predictor(tmp_path), Stack)
    single.save(tmp_path)
    assert isinstance(load_predictor(tmp_path), Ensemble)


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    ensembles = [make_ensemble(), make_ensemble()]
    first = ensembles[0]
    tried = (Candidate(0, None, -1.0, 0.1, None, 0.25, "smooth"),)
    found = Stack(tuple(ensembles), np.array([0.25, 0.75]), first.cost, first.provenance, tried, 7)
    found.save(tmp_path)
    loaded = Stack.load(tmp_path)
    np.testing.assert_array_equal(loaded.predictive(X).mean(), found.predictive(X).mean())
    np.testing.assert_array_equal(loaded.part_weights, found.part_weights)
    assert loaded.candidates == tried
    assert loaded.mean_weights is None
    of_means = replace(found, mean_weights=np.array([1.0, 0.0]))
    of_means.save(tmp_path)
    mean = Stack.load(tmp_path).predictive(X).mean()
    np.testing.assert_array_equal(mean, first.predictive(X).mean())
    wrong: Any = {"part_weights": [0.25, 0.5]}, {"mean_weights": [2.0, -1.0]}
    for weights in wrong:
        arrays = {name: np.array(value) for name, value in weights.items()}
        replace(of_means, **arrays).save(tmp_path)
        with pytest.raises(StorageError, match="sum one"):
            Stack.load(tmp_path)


def test_a_mixture_that_was_made_narrower_is_saved_and_loaded(tmp_path: Path) -> None:
    ensemble = make_ensemble()
    plain = Stack((ensemble,), np.ones(1), ensemble.cost, ensemble.provenance)
    found = replace(plain, shape=3.0, left_out_shape=2.0)
    found.save(tmp_path)
    assert Stack.load(tmp_path).left_out_shape == 2
    loaded = Stack.load(tmp_path).predictive(X)
    np.testing.assert_array_equal(loaded.quantiles([0.1]), found.predictive(X).quantiles([0.1]))
    assert (loaded.std() < plain.predictive(X).std()).all()
    replace(found, left_out={"y": np.zeros(3)}).save(tmp_path)
    with pytest.raises(StorageError, match="mean must be"):
        Stack.load(tmp_path)
    (tmp_path / "left_out.npz").write_bytes(b"changed")
    with pytest.raises(StorageError, match="checksum"):
        Stack.load(tmp_path)
    replace(plain, shape=0.5).save(tmp_path)
    with pytest.raises(StorageError, match=r"shape 0\.5"):
        Stack.load(tmp_path)


def test_a_mixture_of_labels_that_was_made_surer_is_saved_and_loaded(tmp_path: Path) -> None:
    x, y = np.linspace(-1, 1, 30)[:, None], (np.arange(30) > 14).astype(int)
    posterior = Posterior(MLP(2), Gaussian(), Categorical(), (x, y))
    ensemble = MAP().run(0, posterior)
    assert isinstance(ensemble, Ensemble)
    plain = Stack((ensemble,), np.ones(1), ensemble.cost, ensemble.provenance)
    found = replace(plain, temperature=0.5)
    found.save(tmp_path)
    loaded = Stack.load(tmp_path).predictive(x)
    np.testing.assert_array_equal(loaded.mean(), found.predictive(x).mean())
    squares = np.asarray(plain.predictive(x).mean()) ** 2
    np.testing.assert_allclose(loaded.mean(), squares / squares.sum(1, keepdims=True), rtol=1e-4)
    replace(plain, temperature=1.5).save(tmp_path)
    with pytest.raises(StorageError, match=r"temperature 1\.5"):
        Stack.load(tmp_path)
    of_numbers = make_ensemble()
    wrong = Stack((of_numbers,), np.ones(1), of_numbers.cost, of_numbers.provenance)
    replace(wrong, temperature=0.5).save(tmp_path)
    with pytest.raises(StorageError, match=r"temperature 0\.5"):
        Stack.load(tmp_path)
