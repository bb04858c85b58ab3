"""What README and how-to say of Python runs, word for word, with a quicker method."""

import functools
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import credence
from credence.errors import InputError
from credence.methods import DeepEnsemble, Stacking, Training
from credence.methods.stacking.folds import FoldChains

QUICK = DeepEnsemble(num_members=1, training=Training(max_epochs=5))
FOLDS = FoldChains(num_chains=3, num_folds=3, num_draws=4, num_warmup=4, training=QUICK.training)
STACKING = Stacking(models=("own/own/own",), chains=FOLDS)
ROOT = Path(__file__).parents[1]


def blocks(page: str) -> list[str]:
    """The Python code of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)


def test_estimators_are_saved_loaded_and_take_networks_of_others(tmp_path, monkeypatch) -> None:
    pytest.importorskip("equinox")
    ours = next(block for block in blocks("README.md") if ".save(" in block)
    others = blocks("docs/how_to/own_network.md")
    quick = functools.partial(credence.BNNRegressor, method=STACKING)
    monkeypatch.setattr(credence, "BNNRegressor", quick, raising=False)
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = {"X": rng.normal(size=(20, 8)), "y": rng.normal(size=20), "X_new": np.zeros((3, 8))}
    exec(ours, names)
    assert credence.load("houses-model").predict(names["X_new"]).tolist() == names["mean"].tolist()
    exec("\n".join(others[:2]), names)
    assert names["model"].network == names["network"]
    assert names["model"].predict(names["X_new"]).shape == (3,)
    exec("\n".join(others[2:]), names)
    model = names["model"].set_params(method=QUICK).fit(names["X"], names["y"])
    assert np.isfinite(model.predict_interval(names["X_new"])).all()
    z = np.linspace(-9, 9, 19)
    noise, law = names["Laplace"](), stats.laplace
    np.testing.assert_allclose(noise.noise_cdf(z), law.cdf(z), atol=1e-6)
    np.testing.assert_allclose(noise.noise_log_density(z), law.logpdf(z), atol=1e-5)
    assert noise.noise_variance == law.var()


def test_a_model_without_its_adapter_is_told_which() -> None:
    equinox, linen = pytest.importorskip("equinox"), pytest.importorskip("flax.linen")
    import jax

    bare = equinox.nn.Linear(8, 1, key=jax.random.key(0)), linen.Dense(1), credence.models.MLP
    for network in bare:
        with pytest.raises(InputError, match=r"FlaxLinen\(module\)"):
            credence.BNNRegressor(network=network, method=QUICK).fit(np.ones((9, 8)), np.arange(9))
