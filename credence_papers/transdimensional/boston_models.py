"""Models of Boston housing side by side: noise and prior fixed as published, or learnt."""

from dataclasses import replace
from typing import Any

from credence.models import HeteroscedasticNormal, HierarchicalGamma, Normal
from credence_papers.transdimensional.data import boston
from credence_papers.transdimensional.model_study import ModelStudy
from credence_papers.transdimensional.models import UNIT, Family, ModelEffort, ModelProblem
from credence_papers.transdimensional.tables import THESIS

_DEEP = Family(4, 4, "relu")
_LARGE = Family(30, None, "relu")
_WIDE = Family(16, None, "tanh")
_BY_LAYER, _BY_BLOCK = HierarchicalGamma(), HierarchicalGamma(per="array")
_BY_INPUT = HierarchicalGamma(0.5, 0.5, per="input")


def _model(name: str, description: str, family: Family, likelihood: Any, **more: Any) -> Any:
    return ModelProblem(
        name=name,
        description=description,
        data=boston,
        family=family,
        likelihood=likelihood,
        **more,
    )


def _models(name: str, family: Family, networks: str) -> dict[str, ModelProblem]:
    """Models (a) to (e) of a family, by their keys."""
    told = (
        ("a", "noise variance 1, weights N(0, 1)", Normal(noise_std=1.0), UNIT),
        ("b", "learnt noise, weights N(0, 1)", Normal(), UNIT),
        ("c-layer", "learnt noise, a learnt precision per layer", Normal(), _BY_LAYER),
        ("c-block", "learnt noise, one per kernel and bias", Normal(), _BY_BLOCK),
        ("d", "noise by inputs, a learnt precision per layer", HeteroscedasticNormal(), _BY_LAYER),
        ("e", "learnt noise, a learnt precision per input", Normal(), _BY_INPUT),
    )
    return {
        key: _model(f"{name}-{key}", f"{networks}: {text}", family, likelihood, prior=prior)
        for key, text, likelihood, prior in told
    }


def _on_a_ladder(*models: ModelProblem) -> tuple[ModelProblem, ...]:
    """The same models by chains that are ladders of temperatures."""
    return tuple(
        replace(
            each,
            name=f"{each.name}-ladder",
            description=f"{each.description}, by a ladder of temperatures",
            how="ladder",
        )
        for each in models
    )


_WIDE_ONES = _models("wide", _WIDE, "1 to 16 tanh neurons")
_DEEP_ONES = _models("deep", _DEEP, "1 to 4 layers of 4 relu neurons")
_LADDERS = ("b", "d", "e")
"""Models that ladders sample too."""
_LARGE_ONES = tuple(
    replace(each, how="fixed", layers=3)
    for each in _models("large", _LARGE, "3 layers of 30 relu neurons").values()
)
_RUNGS = {
    "num_rungs": 20, "within": "mclmc", "num_jumps": 4, "num_warmup": 3000, "num_draws": 5000,
}  # fmt: skip
"""Settings of ladders: steps are short, and there are many of them."""
_AS_PUBLISHED = Normal(noise_std=1.0)
MODELS = ModelStudy(
    name="transdimensional_models",
    description="Boston housing, half of the rows to learn from: which model, how large a network?",
    problems=(
        *_WIDE_ONES.values(),
        *_DEEP_ONES.values(),
        *_LARGE_ONES,
        *_on_a_ladder(*(ones[key] for ones in (_WIDE_ONES, _DEEP_ONES) for key in _LADDERS)),
        _model(
            "deep-a-published-chain", "model (a) by the published chain, which is biased",
            _DEEP, _AS_PUBLISHED, how="published",
        ),
        _model(
            "deep-a-trained", "model (a), ten trained networks of one layer",
            _DEEP, _AS_PUBLISHED, how="trained",
        ),
        _model(
            "deep-a-trained-3", "model (a), ten trained networks of three layers",
            _DEEP, _AS_PUBLISHED, how="trained", layers=3,
        ),
    ),
    efforts={
        "smoke": ModelEffort(
            2, 8, 4, 3, 10, 2, ladder={"num_rungs": 3}, fixed={"num_draws": 8, "num_warmup": 4}
        ),
        "laptop": ModelEffort(
            4, 400, 200, ladder=_RUNGS, fixed={"num_draws": 1000, "num_warmup": 500}
        ),
        "paper": ModelEffort(
            16, 4000, 1000, 8,
            ladder=_RUNGS | {"num_draws": 20_000},
            fixed={"num_draws": 4000, "num_warmup": 1000},
        ),
    },
    num_seeds={"laptop": 10, "paper": 20},
    source="the data of " + THESIS + "section 6.3",
)  # fmt: skip
