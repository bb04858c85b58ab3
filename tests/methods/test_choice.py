"""Method "auto" tries several models where none is named, else takes what the size permits."""

from typing import Any

import numpy as np
import pytest

from credence import BNNClassifier, BNNRegressor, methods
from credence.density.posterior import Posterior
from credence.methods import Stacking
from credence.models import MLP, Gaussian, Normal, ResNet


def posterior(num_rows: int, width: int = 50) -> Posterior:
    x = np.linspace(-1, 1, num_rows)[:, None]
    return Posterior(MLP(1, (width,)), Gaussian(), Normal(), (x, x[:, 0]))


@pytest.mark.parametrize(
    ("num_rows", "width", "is_model_named", "settings", "chosen"),
    [
        (100, 50, False, {}, "stacking"),
        (100, 50, False, {"num_draws": None, "num_chains": None}, "stacking"),
        (100, 50, True, {}, "mclmc"),
        (100, 50, False, {"num_draws": 50}, "mclmc"),
        (100, 50, False, {"num_chains": 2}, "mclmc"),
        (methods.FEWEST_STACKED, 50, False, {}, "stacking"),
        (methods.FEWEST_STACKED - 1, 50, False, {}, "mclmc"),
        (1000, 20_000, True, {}, "stacking"),
        (1000, 1_000_000, True, {}, "deep_ensemble"),
    ],
)
def test_auto_tries_models_where_none_is_named(
    num_rows: int, width: int, is_model_named: bool, settings: dict[str, Any], chosen: str
) -> None:
    found, reason = methods.resolve(
        "auto", posterior(num_rows, width), is_model_named=is_model_named, **settings
    )
    assert found.name == chosen
    assert reason.endswith(".")
    assert not settings or settings.items() <= vars(found).items() or None in settings.values()


def test_a_large_table_keeps_the_model_that_was_named() -> None:
    """Images are as they were: their networks take more work than their weights tell."""
    found: Any = methods.resolve("auto", posterior(1000, 20_000))[0]
    assert found.models == ("own/own/own",)
    images = np.zeros((1000, 8, 8, 1), np.float32)
    network = ResNet(1, width=32, blocks=(1, 1))
    model = Posterior(network, Gaussian(), Normal(), (images, np.arange(1000.0)))
    assert model.num_points * model.num_weights > methods.LARGEST_EXACT
    assert methods.resolve("auto", model)[0].name == "deep_ensemble"


@pytest.mark.parametrize("method", ["stacking", Stacking(max_work=1e9)], ids=["name", "object"])
def test_stacking_keeps_a_model_that_was_named(method: Any) -> None:
    """Unless it was told what to try: parts called "own" are those that were named."""
    model = posterior(100)
    found: Any = methods.resolve(method, model)[0]
    assert found.models == ("own/own/own",)
    found = methods.resolve(method, model, is_model_named=False)[0]
    assert found.models == ()
    told = Stacking(models=("8/own/own", "8-8/own/own"))
    assert methods.resolve(told, model)[0] == told


def test_a_posterior_has_a_named_model() -> None:
    assert methods.resolve("auto", posterior(100))[0].name == "mclmc"


@pytest.mark.parametrize("estimator", [BNNRegressor, BNNClassifier])
@pytest.mark.parametrize(
    "named",
    [{}, {"hidden": (3,)}, {"prior": "unit"}, {"network": (3,)}, {"activation": "relu"}],
)
def test_an_estimator_names_a_model_by_any_part_of_it(
    estimator: Any, named: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Asked(Exception):
        pass

    def resolve(method: str, posterior: Posterior, *, is_model_named: bool, **_: Any) -> None:
        raise Asked(is_model_named)

    if "network" in named:
        named = {"network": MLP(1 if estimator is BNNRegressor else 2, named["network"])}
    monkeypatch.setattr(methods, "resolve", resolve)
    x = np.linspace(-1, 1, 40)[:, None]
    with pytest.raises(Asked) as asked:
        estimator(**named).fit(x, np.arange(40) % 2)
    assert asked.value.args == (bool(named) and "activation" not in named,)
