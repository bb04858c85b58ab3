"""The models that are tried: a network's hidden layers, a prior of its weights, a likelihood."""

from dataclasses import dataclass, replace
from typing import Any

from credence.density.data import num_targets
from credence.density.posterior import Posterior
from credence.errors import InputError
from credence.methods.stacking.encoding import (
    ENCODED,
    ENCODED_VALUES,
    LOGARITHMS,
    MARKS,
    Encodings,
)
from credence.models import ACTIVATIONS, LIKELIHOODS, MLP, PRIORS
from credence.models.likelihoods.labels import Classification
from credence.models.likelihoods.numbers import ScaleOutputs

OWN = "own"
"""Stands for a part of the model that the posterior has."""

OWN_MODEL = f"{OWN}/{OWN}/{OWN}"
"""The model of the posterior."""

LARGE_ROWS = 5000
"""Rows from which on a table tells enough of the pieces of its inputs."""

REGRESSION = (
    "50/fan_in/heteroscedastic_t",
    "32-32/unit/student_t",
    "32-32/unit/heteroscedastic_t",
    "32-32-relu/unit/student_t",
)
"""Usual models of a regression: a smooth one, and three that bend more, with noise that is the same
everywhere or is not, and with kinks. All bear outliers."""
LARGE_REGRESSION = (
    "50/fan_in/heteroscedastic_t",
    "32-32/unit/heteroscedastic_t",
    "32-32-relu/unit/student_t",
    f"{ENCODED}-32-32/unit/student_t",
    f"{ENCODED}-32-32/unit/heteroscedastic_t",
)
"""Usual models of a regression with many rows: these say where a target jumps, which networks of
encoded inputs follow."""
OF_LARGE = {
    "": REGRESSION,
    ENCODED: LARGE_REGRESSION,
    ENCODED_VALUES: tuple(
        model.replace(f"{ENCODED}-", f"{ENCODED_VALUES}-") for model in LARGE_REGRESSION
    ),
}
"""Usual models of a regression with many rows by the encoding that suits it."""
CLASSIFICATION = ("50/hierarchical/own", "32-32/hierarchical/own", "32-32/unit/own")
"""Usual models of a classification: two that learn the scale of each layer's weights, since labels
that are told apart easily want large ones, and one whose scales are given."""
LONG_TAILED_CLASSIFICATION = (
    "50/hierarchical/own",
    f"{LOGARITHMS}-32-32/hierarchical/own",
    f"{LOGARITHMS}-32-32/unit/own",
)
"""Usual models of a classification where inputs have long tails."""


@dataclass(frozen=True)
class ModelSpec:
    """A model by the names of its parts, each of which may be "own"."""

    hidden: str
    activation: str
    """Name of the activation of the hidden layers, see `credence.models.ACTIVATIONS`."""
    prior: str
    likelihood: str
    encoding: str = ""
    """The mark of encoded inputs, see `credence.methods.stacking.encoding`; empty without any."""

    @classmethod
    def read(cls, text: str) -> "ModelSpec":
        """Read HIDDEN/PRIOR/LIKELIHOOD, such as 50-50/unit/student_t.

        HIDDEN is 0 for no hidden layer, and may end in an activation, 50-50-relu; by default that
        of the posterior. It may begin with ple, plv or log, ple-50-50, for encoded inputs.

        Raises:
            InputError: for another form, or an unknown name.
        """
        parts = text.strip().split("/")
        if len(parts) != 3:
            raise InputError(
                f"A model is HIDDEN/PRIOR/LIKELIHOOD, got {text!r}: try 50-50/unit/student_t."
            )
        hidden, prior, likelihood = parts
        encoding, _, others = hidden.partition("-")
        encoding, hidden = (encoding, others) if encoding in MARKS else ("", hidden)
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
        return cls(hidden, activation, prior, likelihood, encoding)

    def posterior(self, own: Posterior, encodings: Encodings | None = None) -> Posterior:
        """The posterior of this model, given the data of another.

        Noise that depends on the inputs has the prior of fan_in whatever that of the weights:
        otherwise its logarithm would scatter by the square root of the last layer's width.
        With neurons of size one its variance is 2 under fan_in, and the width plus 1 under unit.

        Args:
            encodings: of the data, if somebody has looked at them already.
        Raises:
            InputError: for hidden layers of a network that is no MLP, a regression's likelihood
                for labels, or an encoding of inputs that are no table.
        """
        data, prior = own.data, own.model.prior if self.prior == OWN else PRIORS[self.prior]
        likelihood = self._likelihood(own.model.likelihood)
        network = self._network(own, likelihood)
        is_other = network is not own.model.network
        if is_other and self.prior == "unit" and isinstance(likelihood, ScaleOutputs):
            likelihood = _damped(likelihood, network)
        if self.encoding:
            network = (encodings or Encodings(data)).encoded(network, self.encoding)
        rows = data.x, data.y, data.weight
        return Posterior(network, prior, likelihood, rows, own.groups)

    def _likelihood(self, own: Any) -> Any:
        """The likelihood of this name, or the own one."""
        if self.likelihood == OWN:
            return own
        if isinstance(own, Classification):
            raise InputError(f"Labels have no likelihood '{self.likelihood}': write {OWN}.")
        return LIKELIHOODS[self.likelihood]()

    def _network(self, own: Posterior, likelihood: Any) -> Any:
        """The own network, or one of these hidden layers with the outputs that the noise needs."""
        network: Any = own.model.network
        if (self.hidden, self.activation, self.likelihood) == (OWN, OWN, OWN):
            return network
        if not isinstance(network, MLP):
            raise InputError(
                f"Other hidden layers and likelihoods need an MLP, got {network}: write {OWN}."
            )
        hidden, outputs = network.hidden, network.num_outputs
        if self.hidden != OWN:
            hidden = tuple(width for width in map(int, self.hidden.split("-")) if width)
        if not isinstance(likelihood, Classification):
            outputs = likelihood.num_outputs(num_targets(own.data))
        activation = network.activation if self.activation == OWN else self.activation
        return MLP(outputs, hidden, activation)

    def describe(self) -> str:
        """Words for people: "50-50, prior unit, noise student_t"."""
        hidden = {OWN: "own network", "0": "linear"}.get(self.hidden, self.hidden)
        if self.activation != OWN:
            hidden += f" {self.activation}"
        if self.encoding:
            hidden += f" {MARKS[self.encoding]}"
        words = [hidden, f"prior {self.prior}", f"noise {self.likelihood}"]
        return ", ".join(word for word in words if not word.endswith(f" {OWN}"))


def _damped(likelihood: Any, network: MLP) -> Any:
    """Make the noise's logarithm scatter as under fan_in: weights and bias have variance 1 each."""
    if not network.hidden:
        return likelihood
    return replace(likelihood, scale_gain=(2 / (network.hidden[-1] + 1)) ** 0.5)


def usual_models(posterior: Posterior, encodings: Encodings | None = None) -> tuple[str, ...]:
    """The models to try where nobody has named any.

    Args:
        encodings: of the data, if somebody has looked at them already.
    """
    encodings = encodings or Encodings(posterior.data)
    is_mlp = isinstance(posterior.model.network, MLP)
    own = getattr(posterior.model.network, "activation", OWN)
    if isinstance(posterior.model.likelihood, Classification):
        has_tails = is_mlp and encodings.has_long_tails
        models = LONG_TAILED_CLASSIFICATION if has_tails else CLASSIFICATION
    elif posterior.num_points >= LARGE_ROWS and is_mlp:
        models = OF_LARGE[encodings.usual]
    else:
        models = REGRESSION
    twins = {model: model.replace(f"-{own}/", "/") for model in models}
    return tuple(model for model, twin in twins.items() if twin == model or twin not in models)
