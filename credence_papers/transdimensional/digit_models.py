"""Models of handwritten digits side by side: prior fixed as published, or learnt."""

from typing import Any

from credence.models import Categorical, HierarchicalGamma
from credence_papers.transdimensional.data import Digits
from credence_papers.transdimensional.model_study import ModelStudy
from credence_papers.transdimensional.models import UNIT, Family, ModelEffort, ModelProblem
from credence_papers.transdimensional.tables import THESIS

_PRIORS: dict[str, tuple[str, float, Any]] = {
    "a": ("softmax(0.1 z), weights N(0, 1)", 0.1, UNIT),
    "b": ("softmax(0.5 z), weights N(0, 1)", 0.5, UNIT),
    "c-layer": ("a learnt precision per layer", 1.0, HierarchicalGamma()),
    "c-block": ("one per kernel and bias", 1.0, HierarchicalGamma(per="array")),
    "e": ("a learnt precision per input", 1.0, HierarchicalGamma(0.5, 0.5, per="input")),
}
"""Words for a model, the factor of its logits, and the prior of its weights."""


def _models(classes: int, widest: int) -> tuple[ModelProblem, ...]:
    """All models of so many classes, and trained networks of model (b)."""

    def model(name: str, text: str, factor: float, prior: Any, how: str = "jumps") -> ModelProblem:
        return ModelProblem(
            name=f"digits-{classes}-{name}",
            description=f"{classes} digits, 1 to {widest} tanh neurons: {text}",
            data=Digits(classes),
            family=Family(widest, None, "tanh"),
            likelihood=Categorical(factor),
            prior=prior,
            how=how,
        )

    _, factor, prior = _PRIORS["b"]
    return (
        *(model(name, *told) for name, told in _PRIORS.items()),
        model("b-trained", "ten trained networks of the widest of b", factor, prior, "trained"),
    )


MODELS = ModelStudy(
    name="transdimensional_digit_models",
    description="Handwritten digits, 50 images of each: which prior, how wide a network?",
    problems=(*_models(5, 64), *_models(10, 128)),
    efforts={
        "smoke": ModelEffort(2, 8, 4, 3, 10, 2),
        "laptop": ModelEffort(4, 400, 200),
        "paper": ModelEffort(16, 4000, 1000, 8),
    },
    num_seeds={"laptop": 10, "paper": 20},
    source="the data of " + THESIS + "section 6.2",
)
