"""The models that are tried: a network's hidden layers, a prior of its weights, a likelihood."""

from dataclasses import dataclass, replace
from typing import Any

from credence.density.posterior import Posterior, num_targets
from credence.errors import InputError
from credence.models import ACTIVATIONS, LIKELIHOODS, MLP, PRIORS
from credence.models.likelihoods import Classification, ScaleOutputs

OWN = "own"
"""Stands for a part of the model that the posterior has."""

OWN_MODEL = f"{OWN}/{OWN}/{OWN}"
"""The model of the posterior."""

REGRESSION = (
    "50/fan_in/heteroscedastic_t",
    "32-32/unit/student_t",
    "32-32/unit/heteroscedastic_t",
    "32-32-relu/unit/student_t",
)
"""Usual models of a regression: a smooth one, and three that bend more, with noise that is the same
everywhere or is not, and with kinks. All bear outliers."""
CLASSIFICATION = ("50/fan_in/own", "50/unit/own", "32-32/unit/own")
"""Usual models of a classification."""


@dataclass(frozen=True)
class ModelSpec:
    """A model by the names of its parts, each of which may be "own"."""

    hidden: str
    activation: str
    """Name of the activation of the hidden layers, see `credence.models.ACTIVATIONS`."""
    prior: str
    likelihood: str

    @classmethod
    def read(cls, text: str) -> "ModelSpec":
        """Read HIDDEN/PRIOR/LIKELIHOOD, such as 50-50/unit/student_t.

        HIDDEN is 0 for no hidden layer, and may end in an activation, 50-50-relu; by default that
        of the posterior.

        Raises:
            InputError: for another form, or an unknown name.
        """
        parts = text.strip().split("/")
        if len(parts) != 3:
            raise InputError(
                f"A model is HIDDEN/PRIOR/LIKELIHOOD, got {text!r}: try 50-50/unit/student_t."
            )
        hidden, prior, likelihood = parts
        widths, _, last = hidden.rpartition("-")
        activation = OWN
        if last in ACTIVATIONS:
            hidden, activation = widths, last
        if hidden != OWN and not all(width.isdigit() for width in hidden.split("-")):
            raise InputError(f"Hidden layers are widths such as 50-50, got {hidden!r} in {text!r}.")
        for what, name, known in (
            ("prior", prior, PRIORS),
            ("likelihood", likelihood, LIKELIHOODS),
        ):
            if name not in (OWN, *known):
                raise InputError(
                    f"Unknown {what} {name!r} in {text!r}: choose {OWN} or one of "
                    f"{', '.join(known)}."
                )
        return cls(hidden, activation, prior, likelihood)

    def posterior(self, own: Posterior) -> Posterior:
        """The posterior of this model, given the data of another.

        Noise that depends on the inputs has the prior of fan_in whatever that of the weights:
        otherwise its logarithm would scatter by the square root of the last layer's width.
        With neurons of size one its variance is 2 under fan_in, and the width plus 1 under unit.

        Raises:
            InputError: for hidden layers of a network that is no MLP, or a regression's likelihood
                for labels.
        """
        model, data = own.model, own.data
        network = model.network
        likelihood: Any = model.likelihood
        is_classifier = isinstance(likelihood, Classification)
        if self.likelihood != OWN:
            if is_classifier:
                raise InputError(f"Labels have no likelihood '{self.likelihood}': write {OWN}.")
            likelihood = LIKELIHOODS[self.likelihood]()
        if (self.hidden, self.activation, self.likelihood) != (OWN, OWN, OWN):
            if not isinstance(network, MLP):
                raise InputError(
                    f"Other hidden layers and likelihoods need an MLP, got {network}: write {OWN}."
                )
            hidden = network.hidden
            if self.hidden != OWN:
                hidden = tuple(width for width in map(int, self.hidden.split("-")) if width)
            if self.prior == "unit" and isinstance(likelihood, ScaleOutputs) and hidden:
                gain = (2 / (hidden[-1] + 1)) ** 0.5  # weights and bias of variance 1 each
                likelihood = replace(likelihood, scale_gain=gain)  # type: ignore[type-var]
            outputs = network.num_outputs
            if not is_classifier:
                outputs = likelihood.num_outputs(num_targets(data))
            activation = network.activation if self.activation == OWN else self.activation
            network = MLP(outputs, hidden, activation)
        prior = model.prior if self.prior == OWN else PRIORS[self.prior]
        return Posterior(network, prior, likelihood, (data.x, data.y, data.weight))

    def describe(self) -> str:
        """Words for people: "50-50, prior unit, noise student_t"."""
        hidden = {OWN: "own network", "0": "linear"}.get(self.hidden, self.hidden)
        if self.activation != OWN:
            hidden += f" {self.activation}"
        words = [hidden, f"prior {self.prior}", f"noise {self.likelihood}"]
        return ", ".join(word for word in words if not word.endswith(f" {OWN}"))


def usual_models(posterior: Posterior) -> tuple[str, ...]:
    """The models to try where nobody has named any."""
    is_classifier = isinstance(posterior.model.likelihood, Classification)
    own = getattr(posterior.model.network, "activation", OWN)
    models = CLASSIFICATION if is_classifier else REGRESSION
    return tuple(model for model in models if ModelSpec.read(model).activation != own)
