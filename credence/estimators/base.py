"""What the two estimators share."""

from __future__ import annotations

import copy
import dataclasses
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from credence.errors import InputError, plural, time_limit
from credence.estimators.checks import (
    as_count,
    as_widths,
    check_total,
    checked_groups,
    checked_network,
    checked_weights,
    named,
)
from credence.estimators.document import write_estimator
from credence.estimators.tables import checked_table, warn_of_identifiers, warn_of_news
from credence.preprocessing import make_preprocessor
from credence.spacing import evenly_spaced

if TYPE_CHECKING:
    from credence.density.posterior import BayesianModel, Posterior
    from credence.engine.progress import Progress
    from credence.ensembles.diagnostics.convergence import Convergence
    from credence.ensembles.diagnostics.recalibration import Recalibration
    from credence.ensembles.findings import Findings
    from credence.ensembles.inputs import Effect, Importances
    from credence.ensembles.predictions import Predictions
    from credence.ensembles.predictor import Predictor
    from credence.ensembles.scores import Rows, Scores
    from credence.methods.algorithm import Algorithm
    from credence.models.likelihoods.base import Likelihood
    from credence.models.networks.mlp import Network
    from credence.models.priors import Prior
    from credence.preprocessing import Table


USUAL_HIDDEN = (50,)
"""Widths of the hidden layers where none are named, of a method that does not choose them."""
MONITORED_ROWS = 100
"""Training rows at whose predictions convergence is judged where no held-out rows are given."""


class BNN(BaseEstimator, ABC):
    """What the two estimators share; see `BNNRegressor` for the arguments."""

    _recalibration: Recalibration | None
    """Holds what `calibrate` found."""
    _told: frozenset[str] = frozenset()
    """Texts that were warned of since the fit: each once, whatever the filters do."""
    _rows: Int[np.ndarray, " row"] | None = None
    """Places of the rows of the fit that have weight; None where weights were not looked at."""

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
        max_seconds: float | None = None,
        checkpoint_folder: str | Path | None = None,
        progress: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.method = method
        self.num_draws = num_draws
        self.num_chains = num_chains
        self.network = network
        self.prior = prior
        self.likelihood = likelihood
        self.max_seconds = max_seconds
        self.checkpoint_folder = checkpoint_folder
        self.progress = progress
        self.random_state = random_state

    def _forget(self) -> None:
        """Forget an earlier fit: where this one fails, its networks do not suit the new scaling."""
        for name in ("ensemble_", "diagnostics_", "findings_"):
            self.__dict__.pop(name, None)

    def _inputs(
        self, X: Any, *, reset: bool, sample_weight: Float[np.ndarray, " point"] | None = None
    ) -> Float[np.ndarray, "point feature"]:
        """X checked and preprocessed: standardised numbers, one-hot categories, gaps filled."""
        table = checked_table(self, X, reset=reset)
        if reset:
            if len(table) < 2:
                raise InputError(
                    f"Found {len(table)} sample, but learning needs at least 2 samples."
                )
            self.preprocessor_ = make_preprocessor(table, sample_weight)
            if isinstance(table, pd.DataFrame):
                warn_of_identifiers(table)
            self._told = frozenset()
        return self.preprocessor_.transform(table)

    def _with_weight(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """The rows that have weight: the others are as if they were not there."""
        self._rows = None
        if sample_weight is None or np.isscalar(sample_weight):
            return X, y, sample_weight
        table, y = checked_table(self, X, reset=True), np.asarray(y)
        weight = checked_weights(sample_weight, table, y)
        self._rows = np.flatnonzero(weight > 0)
        return table[weight > 0], y[weight > 0], weight[weight > 0]

    def _groups_of_fit(self, groups: Any, X: Any) -> Int[np.ndarray, " point"] | None:
        """A number for the group of every row to learn from; None where no groups are given.

        Raises:
            InputError: for another number of groups than rows, or a missing one.
        """
        if groups is None:
            return None
        codes = checked_groups(groups, len(X))
        return codes if self._rows is None else codes[self._rows]

    def _rows_of_fit(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Inputs, targets and weights of the rows to learn from, the targets still as given.

        Raises:
            ValueError: for no targets.
        """
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} requires y to be passed, but the target y is None."
            )
        X, y, sample_weight = self._with_weight(X, y, sample_weight)
        of_rows = None if self._rows is None else sample_weight
        return self._inputs(X, reset=True, sample_weight=of_rows), y, sample_weight

    def _sample(
        self,
        x: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray,
        outputs: int,
        groups: np.ndarray | None,
    ) -> None:
        """Build the posterior, run the method, judge convergence."""
        check_total(weight)
        groups = None if groups is None else groups[weight > 0]
        rows = np.arange(len(x)) if self._rows is None else self._rows
        x, y, weight, rows = (each[weight > 0] for each in (x, y, weight, rows))  # of class weights
        from credence import methods
        from credence.environment import use_all_cores

        use_all_cores()
        posterior = self._posterior((x, y, weight), outputs, groups)
        self.method_, self.method_reason_ = methods.resolve(
            self.method,
            posterior,
            is_model_named=self._is_model_named(),
            num_draws=None if self.num_draws is None else as_count("num_draws", self.num_draws),
            num_chains=None if self.num_chains is None else as_count("num_chains", self.num_chains),
        )
        self._total_weight = float(np.sum(weight))
        self._recalibration = None
        found = self.method_.run(
            self._kept_seed(),
            posterior,
            folder=self.checkpoint_folder,
            progress=self._progress(),
            max_seconds=time_limit(self.max_seconds),
        )
        self.ensemble_ = _in_rows_of_fit(found, rows)
        self.diagnostics_ = self._assess(x)
        if self.diagnostics_.converged is False:
            warnings.warn(
                f"Not converged: {self.diagnostics_.reason}", ConvergenceWarning, stacklevel=3
            )

    def _posterior(
        self, rows: tuple[np.ndarray, ...], outputs: int, groups: np.ndarray | None
    ) -> Posterior:
        """The posterior of the network that was asked for."""
        from credence import methods
        from credence.density.posterior import Posterior
        from credence.models import PRIORS

        prior = named("prior", self.prior or methods.default_prior(self.method), PRIORS)
        posterior = Posterior(self._network(outputs), prior, self._likelihood(), rows, groups)
        self._check_model(posterior.model, rows[0].shape[1])
        return posterior

    def _network(self, outputs: int) -> Network:
        """The network that was given, or one of the widths that were.

        Raises:
            InputError: for both, and for what is no network or no width.
        """
        from credence.models import MLP

        if self.network is None:
            widths = USUAL_HIDDEN if self.hidden is None else self.hidden
            return MLP(outputs, as_widths(widths), self.activation)
        if self.hidden is not None or self.activation != "tanh":
            raise InputError("network says its own layers: leave hidden and activation out.")
        return checked_network(self.network)

    def _progress(self) -> Progress:
        """What shows the run, and keeps an early answer where there is a folder for it."""
        from credence.engine.progress import NoProgress, RichProgress
        from credence.estimators.early import EARLY_FOLDER, EarlyAnswers

        shown = RichProgress() if self.progress else NoProgress()
        if self.checkpoint_folder is None:
            return shown
        return EarlyAnswers(shown, Path(self.checkpoint_folder) / EARLY_FOLDER, self._save_early)

    def _check_model(self, model: BayesianModel, num_features: int) -> None:
        """Refuse a model that cannot predict the targets; the posterior checks quantities."""

    def _save_early(self, ensemble: Predictor, folder: Path) -> None:
        """Save an estimator that has this ensemble, before there is a better one."""
        from credence.ensembles.diagnostics.convergence import assess
        from credence.estimators.early import EARLY

        early = copy.copy(self)
        early.ensemble_ = ensemble
        early.method_reason_ = EARLY
        early.diagnostics_ = dataclasses.replace(assess(None), reason=EARLY)
        early.save(folder)

    def _is_model_named(self) -> bool:
        """Whether the network, the prior or the noise was asked for."""
        parts = (self.hidden, self.network, self.prior, self.likelihood)
        return any(part is not None for part in parts)

    def calibrate(self, X: Any, y: Any) -> Self:
        """Compare predictions with the truth at rows that no network has seen; then intervals can
        be conformal, or probabilities tempered.

        Args:
            X: such rows (n, features). A conformal 95 % interval needs 39 or more: of fewer it is
                infinite.
            y: their target (n,), or their labels.
        Raises:
            InputError: for several targets, or a label that `fit` never saw.
        """
        return self.calibrate_by(self.scores(X, y))

    @abstractmethod
    def calibrate_by(self, scores: Scores) -> Self:
        """Calibrate by rows that were scored already; see `calibrate`."""

    @property
    def recalibration_(self) -> Recalibration:
        """Tell what rows that the networks had not seen say of the predictions.

        They are those of `calibrate`, or else those that the method left out.

        Raises:
            InputError: where there are none.
        """
        check_is_fitted(self, "ensemble_")
        found = self._unseen_rows_say()
        if found is None:
            raise InputError(
                "No rows are known that the networks have not seen: call calibrate(X, y) with such "
                "rows, or fit by a method that leaves rows out."
            )
        return found

    @property
    def left_out_(self) -> Rows | None:
        """Tell what was predicted of training rows by networks that were not trained on them.

        Arrays with an entry per row, in units of y, with the names of `credence.ensembles.scores`;
        "row" is the place among the training rows, of which there are 5000 at most, and "weight"
        the sample weight, where there were unlike ones. None where the method left none out.
        """
        check_is_fitted(self, "ensemble_")
        found = self.ensemble_.left_out
        return None if found is None else self._rows_in_units(dict(found))

    def _rows_in_units(self, rows: Rows) -> Rows:
        """Labels, and their probabilities, have no unit."""
        return rows

    @property
    def is_recalibrated(self) -> bool:
        """Tell whether rows are known that no network has seen: see `recalibration_`."""
        return self._unseen_rows_say() is not None

    def _unseen_rows_say(self) -> Recalibration | None:
        return self._recalibration or self.ensemble_.recalibration

    def is_outside(self, X: Any) -> Bool[np.ndarray, " point"]:
        """Tell which rows of X have a number far outside those of training, or a new name.

        Far outside is more than a standard deviation beyond the smallest or largest number of the
        column. Predictions of such rows rest on no data, and their intervals may be too narrow.
        """
        check_is_fitted(self, "ensemble_")
        return self.preprocessor_.is_outside(checked_table(self, X, reset=False))

    def judge(self, X: Any) -> Self:
        """Set `diagnostics_` from the predictions at the rows of X, held-out ones at best."""
        check_is_fitted(self, "ensemble_")
        self.diagnostics_ = self._assess(self._inputs(X, reset=False))
        return self

    def _assess(self, x: Float[np.ndarray, "point feature"]) -> Convergence:
        from credence.ensembles.findings import judged

        monitored = self._monitored(x) if self.ensemble_.is_chain else None
        return judged(self.ensemble_, monitored, self.findings_.values())

    def monitored(self, X: Any) -> Float[np.ndarray, "chain draw point quantity"]:
        """Take what `diagnostics_` judges convergence by, at the rows of X or 100 of them.

        Every prediction without noise, as networks see targets, and the log of the noise.
        """
        check_is_fitted(self, "ensemble_")
        return self._monitored(self._inputs(X, reset=False))

    def _monitored(
        self, x: Float[np.ndarray, "point feature"]
    ) -> Float[np.ndarray, "chain draw point quantity"]:
        return self.ensemble_.monitored(x[evenly_spaced(len(x), MONITORED_ROWS)])

    @cached_property
    def findings_(self) -> Findings:
        """Findings of the method beside its predictions, by name, in the units of y."""
        from credence.ensembles.findings import found_in

        check_is_fitted(self, "ensemble_")
        found = found_in(self.ensemble_, self.method_.findings)
        shift = self._log_density_in_units()
        total = self._total_weight
        return {name: each.rescaled(shift, total) for name, each in found.items()}

    def _log_density_in_units(self) -> float:
        """Nats by which the log density of the training targets is larger in the units of y."""
        return 0.0

    def _kept_seed(self) -> int:
        """The seed: kept in the folder of checkpoints where it is drawn, so that the same fit goes
        on from there."""
        if self.checkpoint_folder is None or isinstance(self.random_state, int | np.integer):
            return self._seed()
        from credence.engine.checkpoint import kept_decision

        return kept_decision(Path(self.checkpoint_folder) / "seed.json", int, self._seed)

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            if not 0 <= self.random_state < 2**32:
                raise InputError(
                    f"random_state must be between 0 and {2**32 - 1}, got {self.random_state}."
                )
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    @abstractmethod
    def scores(self, X: Any, y: Any) -> Scores:
        """Score predictions of one target at held-out rows: `credence.ensembles.scores`."""

    @abstractmethod
    def _likelihood(self) -> Likelihood:
        """The likelihood that was asked for by name or as an object."""

    def _over_rows(
        self, X: Any, summarise: Callable[[Predictions, slice], Mapping[str, Any]]
    ) -> dict[str, np.ndarray]:
        """Summaries of the predictive at every row of X, in bounded memory.

        Warns of what X has that training did not have.

        Args:
            summarise: (predictive of a batch, its rows) -> arrays (point, ...), by name.
        """
        check_is_fitted(self, "ensemble_")
        table = checked_table(self, X, reset=False)
        self._told = warn_of_news(self.preprocessor_, table, self._told)
        x = self.preprocessor_.transform(table)
        return self.ensemble_.over_batches(x, lambda *batch: dict(summarise(*batch)))

    def importances(self, X: Any, y: Any, *, seed: int = 0) -> Importances:
        """Find how much each column of X is needed to predict y, best of held-out rows.

        The values of a column are shuffled among the rows; what counts is by how many nats the log
        loss of a row grows. See `credence.ensembles.inputs.Importances`.

        Args:
            seed: of the shuffles, five of each column, fewer of large tables; of more than 20,000
                rows and columns together, some rows are left out.
        Raises:
            InputError: for more than 1000 columns, fewer than two rows, another number of targets,
                or a label that `fit` never saw.
        """
        from credence.ensembles.predictions import filled
        from credence.estimators.effects import importances

        check_is_fitted(self, "ensemble_")
        self._coded(y)  # may refuse it

        def log_prob(X: Any, y: Any) -> np.ndarray:
            coded = self._truth(X, y)
            coded = coded.astype(np.float32) if coded.dtype.kind == "f" else coded
            return self.ensemble_.over_batches(
                self._inputs(X, reset=False),
                lambda p, rows: {"log_prob": p.log_prob(filled(coded, rows, p.num_points))},
            )["log_prob"]

        return importances(
            log_prob, self.preprocessor_.feature_names_in_, self._selected(X), y, seed
        )

    def effect(self, X: Any, name: str | int, *, seed: int = 0) -> Effect:
        """Find how the prediction changes with one column, the others as they are in rows of X.

        See `credence.ensembles.inputs.Effect`; in units of y, or the probability of every label.

        Args:
            X: rows to average over; 50 of them are, if there are more.
            name: of the column; those of an array are x0, x1, ... or 0, 1, ...
            seed: of the choice of rows.
        Raises:
            InputError: for a column that `fit` did not see, or without values in X.
        """
        from credence.estimators.effects import effect

        check_is_fitted(self, "ensemble_")
        weights = self.ensemble_.function_weights
        rows = self._selected(X)
        return effect(self.sample_functions, weights, self.preprocessor_, rows, name, seed)

    def _selected(self, X: Any) -> Table:
        """The columns of X that the fit saw; an array where it saw one."""
        is_named = isinstance(X, pd.DataFrame) and hasattr(self, "feature_names_in_")
        frame = self.preprocessor_.select(X if is_named else checked_table(self, X, reset=False))
        return frame if hasattr(self, "feature_names_in_") else frame.to_numpy()

    @abstractmethod
    def sample_functions(self, X: Any) -> Float[np.ndarray, "chain draw point *output"]:
        """Noise-free predictions of every draw."""

    def to_arviz(self, X: Any = None, y: Any = None, *, seed: int = 0) -> Any:
        """The draws for ArviZ, as `ensemble_.to_arviz`, with X and y as given to `fit`.

        Predictive draws, observations and log likelihoods are in the units of y (labels are
        positions in `classes_`), the parameters are those of the network, which sees standardised
        numbers.

        Raises:
            InputError: for y without X, where they do not fit together, for a label never seen, or
                for a stack of several models without X.
        """
        from credence.ensembles.arviz import as_arviz

        check_is_fitted(self, "ensemble_")
        x = None if X is None else self._inputs(X, reset=False)
        coded = None if y is None else self._coded(y) if x is None else self._truth(x, y)
        groups = self.ensemble_.arviz_groups(x, coded, seed=seed)
        self._to_units_of_y(groups)
        return as_arviz(groups)

    def _truth(self, X: Any, y: Any) -> np.ndarray:
        """The targets of these rows, as the network's likelihood takes them.

        Raises:
            InputError: where they are not one for every row, or not those that the fit saw.
        """
        number = len(y) if np.ndim(y) else 1
        if number != len(X) or not np.ndim(y):
            raise InputError(
                f"X has {plural(len(X), 'row')} but y has {number}: they must match row by row."
            )
        return self._coded(y)

    @abstractmethod
    def _coded(self, y: Any) -> np.ndarray:
        """Targets as the network's likelihood takes them."""

    def _to_units_of_y(self, groups: dict[str, dict[str, np.ndarray]]) -> None:
        """Change ArviZ's groups, which are in the units of the likelihood."""

    def save(self, folder: str | Path) -> None:
        """Write the fitted estimator into a folder; `credence.load(folder)` reads it.

        No pickle: JSON and NumPy's arrays, which hold no code. A model that was there before is
        replaced.

        Raises:
            InputError: where something of it is no JSON data; a model that was there stays.
            StorageError: where the folder cannot be written or the disk is full.
        """
        check_is_fitted(self, "ensemble_")
        write_estimator(Path(folder), self)

    @abstractmethod
    def _learnt(self) -> dict[str, Any]:
        """What else was learnt, as JSON data."""

    @abstractmethod
    def _restore(self, document: Mapping[str, Any]) -> None:
        """Restore what `_learnt` wrote to a document."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _in_rows_of_fit(ensemble: Any, rows: Int[np.ndarray, " row"]) -> Predictor:
    """The ensemble, its left-out rows numbered among all of the fit, weightless ones included."""
    if ensemble.left_out is None:
        return ensemble
    places = {"row": rows[ensemble.left_out["row"]]}
    return dataclasses.replace(ensemble, left_out={**ensemble.left_out, **places})
