"""The scikit-learn estimator for classification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from jaxtyping import Float, Int
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import assert_all_finite
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from credence.errors import InputError
from credence.estimators.base import BNN
from credence.estimators.checks import checked_labels, checked_weights, named

if TYPE_CHECKING:
    from credence.density.posterior import BayesianModel
    from credence.ensembles.scores import Scores
    from credence.methods.algorithm import Algorithm
    from credence.models.likelihoods.base import Likelihood
    from credence.models.networks.mlp import Network
    from credence.models.priors import Prior

LONGEST_LABEL = 2**16
"""Bytes of a label in a saved classifier."""


class BNNClassifier(ClassifierMixin, BNN):
    """Classification with a Bayesian neural network: probabilities that mean what they say.

    Arguments and attributes as `BNNRegressor`, and

    Args:
        class_weight: None, "balanced" or {label: weight}, multiplied into the sample weights.

    Attributes:
        classes_: the labels, sorted.
    """

    def __init__(
        self,
        *,
        hidden: Sequence[int] | None = None,
        activation: str = "tanh",
        method: str | Algorithm = "auto",
        num_draws: int | None = None,
        num_chains: int | None = None,
        network: Network | None = None,
        prior: str | Prior | None = None,
        likelihood: str | Likelihood | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
        max_seconds: float | None = None,
        checkpoint_folder: str | Path | None = None,
        progress: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            hidden=hidden,
            activation=activation,
            method=method,
            num_draws=num_draws,
            num_chains=num_chains,
            network=network,
            prior=prior,
            likelihood=likelihood,
            max_seconds=max_seconds,
            checkpoint_folder=checkpoint_folder,
            progress=progress,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Sample the posterior given X (n, features) and labels y (n,).

        `sample_weight` (n,) counts how many observations each row stands for; a row of weight 0 is
        as if it were not there.

        `groups` (n,) says which rows belong together, such as those of one patient: a method that
        leaves rows out, as the usual one does, leaves them out together. Other methods need none.
        """
        self._forget()
        x, y, sample_weight = self._rows_of_fit(X, y, sample_weight)
        y = checked_labels(y)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        encoder = LabelEncoder().fit(y)
        self.classes_ = encoder.classes_
        if len(self.classes_) < 2:
            (only,) = self.classes_.tolist()
            raise InputError(
                f"Classification needs at least 2 classes, got only the class {only!r}."
            )
        weight = checked_weights(sample_weight, x, y)
        if self.class_weight is not None:
            classes = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
            if not np.all(np.isfinite(classes) & (classes >= 0)):
                raise InputError(
                    f"class_weight must have finite numbers of at least 0, got {self.class_weight}."
                )
            weight = weight * classes[encoder.transform(y)]
        places = encoder.transform(y).astype(np.int32)
        self._sample(x, places, weight, len(self.classes_), self._groups_of_fit(groups, X))
        return self

    def _likelihood(self) -> Likelihood:
        from credence.models import Categorical
        from credence.models.likelihoods.labels import Classification

        known = {"categorical": Categorical()}
        found = named("likelihood", self.likelihood or "categorical", known)
        if not issubclass(type(found), Classification):
            raise InputError(f"A BNNClassifier needs a likelihood of labels, got {found}.")
        return found

    def _check_model(self, model: BayesianModel, num_features: int) -> None:
        from credence.ensembles.saved import num_predicted

        number = num_predicted(model, num_features, 1)
        if number != len(self.classes_):
            raise InputError(
                f"The network predicts {number} classes, and y has {len(self.classes_)}: give it "
                "as many outputs."
            )

    def predict_proba(self, X: Any, *, tempered: bool = False) -> Float[np.ndarray, "point class"]:
        """Predictive probability of every class, columns in the order of `classes_`.

        Args:
            tempered: change them by the temperature at which they predicted the rows of
                `recalibration_` best; see `best_temperature`. Labels stay the same.
        Raises:
            InputError: for tempered ones where no rows are known that the networks have not seen.
        """
        from credence.ensembles.diagnostics.recalibration import recalibrated
        from credence.ensembles.scores import valid

        found = valid(self._over_rows(X, lambda p, _: {"mean": p.mean()})["mean"])
        return recalibrated(self.recalibration_, found) if tempered else found

    def calibrate_by(self, scores: Scores) -> Self:
        """Find the temperature at which probabilities predict rows best; see `calibrate`."""
        from credence.ensembles.diagnostics.recalibration import from_probabilities

        rows = scores.rows
        self._recalibration = from_probabilities(rows["probabilities"], rows["y"])
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The most probable label of every row."""
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def sample_functions(self, X: Any) -> Float[np.ndarray, "chain draw point class"]:
        """Class probabilities of every draw."""
        check_is_fitted(self, "ensemble_")
        return self.ensemble_.functions(self._inputs(X, reset=False)).astype(float)

    def decompose_uncertainty(self, X: Any) -> dict[str, Float[np.ndarray, " point"]]:
        """Entropies in nats: "total", "aleatoric" (expected), "epistemic" (mutual information)."""
        found = self._over_rows(X, lambda p, _: p.entropies())
        return {name: value.astype(float) for name, value in found.items()}

    def scores(self, X: Any, y: Any) -> Scores:
        """Score class probabilities at held-out rows in one pass: see `credence.ensembles.scores`.

        Labels are positions in `classes_`.

        Raises:
            InputError: for a label that `fit` never saw, or another number of labels than rows.
        """
        from credence.ensembles.scores import classification_scores

        check_is_fitted(self, "ensemble_")
        x = self._inputs(X, reset=False)
        found = self._unseen_rows_say()
        return classification_scores(self.ensemble_, x, self._truth(x, y), recalibration=found)

    def _coded(self, y: Any) -> Int[np.ndarray, " point"]:
        labels = column_or_1d(y)
        places = {label: place for place, label in enumerate(self.classes_.tolist())}
        coded = np.array([places.get(label, -1) for label in labels.tolist()], np.int64)
        if (coded < 0).any():
            raise InputError(
                f"y has the label {labels[coded < 0].flat[0]!r}, which fit never saw: it saw "
                f"{', '.join(map(repr, self.classes_.tolist()))}."
            )
        return coded

    def _learnt(self) -> dict[str, Any]:
        from credence.storage import jsonable

        learnt = {"classes": self.classes_.tolist(), "classes_dtype": self.classes_.dtype.str}
        if isinstance(self.class_weight, Mapping):  # keys of JSON are text, labels may be numbers
            learnt["class_weight"] = jsonable(list(self.class_weight.items()))
        return learnt

    def _restore(self, document: Mapping[str, Any]) -> None:
        dtype, labels = np.dtype(document["classes_dtype"]), document["classes"]
        if dtype.kind not in "biufUO" or not 0 <= dtype.itemsize <= LONGEST_LABEL:
            raise ValueError(f"classes_dtype is {dtype}, which no labels have")
        if len(labels) != self.ensemble_.num_predicted or len(set(labels)) != len(labels):
            raise ValueError(f"{len(labels)} classes, the ensemble predicts others")
        self.classes_ = np.array(labels, dtype=dtype)
        if "class_weight" in document:
            self.class_weight = dict(document["class_weight"])
