"""The scikit-learn estimator for regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from jaxtyping import Float
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from credence.ensembles.diagnostics.recalibration import LEAST_LEVEL
from credence.errors import InputError, plural, require_counts
from credence.estimators.base import BNN
from credence.estimators.checks import checked_weights, key_from, named, numbers_wanted
from credence.preprocessing import TargetScaler

if TYPE_CHECKING:
    from credence.ensembles.predictions import Predictions
    from credence.ensembles.scores import Rows, Scores
    from credence.methods.algorithm import Algorithm
    from credence.models.likelihoods.base import Likelihood
    from credence.models.networks.mlp import Network
    from credence.models.priors import Prior

MOST_COVERAGE = 1 - 2 * LEAST_LEVEL
"""The largest probability of an interval: beyond it single precision knows no quantiles."""


def _numbers(y: Any) -> np.ndarray:
    """Targets as finite numbers."""
    if np.asarray(y).dtype.kind in "mM":
        raise InputError(
            "BNNRegressor predicts numbers, and y holds dates or times: use days since a start."
        )
    with numbers_wanted("y", "BNNRegressor predicts numbers; for labels use BNNClassifier."):
        return check_array(y, ensure_2d=False, dtype=float, input_name="y")


class BNNRegressor(RegressorMixin, BNN):
    """Regression with a Bayesian neural network: predictions with honest intervals.

    Inputs and targets are standardised inside; everything returned is in the units of y. DataFrames
    may hold numbers, categories and gaps.

    Args:
        hidden: widths of the hidden layers of the network. None: the method chooses them, and
            one layer of 50 where it does not.
        activation: its activation; see `credence.models.ACTIVATIONS`.
        method: "auto", the name of a method (`credence methods` lists them), or a method object.
            "auto" tries several networks, priors and kinds of noise and combines them, unless one
            of these, or a number of draws or chains, is named: see `credence.methods.choose`.
            "stacking" without `models` does so unless a network, prior or likelihood is named.
        num_draws: draws per chain; 1000 unless given, of methods that draw.
        num_chains: independent chains, runs or particles; None: the method's own number, mostly 4.
        network, prior, likelihood: parts from `credence.models` in place of the defaults (an MLP;
            weights N(0, 1/fan_in), biases N(0, 1); normal noise with sd ~ HalfNormal(1)), in units
            of the standardised target. Prior and likelihood also by name: "fan_in", "unit",
            "trace_class", "hierarchical", "relevance"; "normal", "student_t", "heteroscedastic",
            "heteroscedastic_t". Flax and Equinox models come as networks by
            `credence.models.networks.adapters`.
        standardize_target: model (y - mean) / sd; False models y as it is.
        max_seconds: wall-clock budget of `fit`.
        checkpoint_folder: where `fit` saves as it goes; the same fit again goes on from there.
            Method `stacking` keeps an early answer in its folder `early`, for `credence.load`.
        progress: show progress bars on standard error.
        random_state: an integer makes `fit` repeatable.

    Attributes:
        ensemble_: the weighted ensemble (`credence.Ensemble`).
        diagnostics_: convergence in function space (`credence.ensembles.diagnostics.Convergence`).
        findings_: what the method learnt beside predictions, by name; see `credence.methods`.
        method_, method_reason_: what ran, and why "auto" chose it.
        preprocessor_, target_scaler_: learnt from the training table.
        n_features_in_, feature_names_in_: as in scikit-learn.
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
        standardize_target: bool = True,
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
        self.standardize_target = standardize_target

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Sample the posterior given X (n, features) and y (n,) or (n, targets).

        `sample_weight` (n,) counts how many observations each row stands for; a row of weight 0 is
        as if it were not there.

        `groups` (n,) says which rows belong together, such as those of one patient: a method that
        leaves rows out, as the usual one does, leaves them out together. Other methods need none.
        """
        self._forget()
        x, y, weight = self._training_set(X, y, sample_weight)
        self._y_ndim = y.ndim
        scaler = TargetScaler.fit if self.standardize_target else TargetScaler.unscaled
        self.target_scaler_ = scaler(y, weight)
        scaled = self.target_scaler_.transform(y).reshape(len(y), -1)
        outputs = self._likelihood().num_outputs(scaled.shape[1])
        self._sample(x, scaled, weight, outputs, self._groups_of_fit(groups, X))
        return self

    def _training_set(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        x, y, sample_weight = self._rows_of_fit(X, y, sample_weight)
        y = _numbers(y)
        y = column_or_1d(y, warn=True) if y.ndim == 1 or y.shape[1] == 1 else y
        return x, y, checked_weights(sample_weight, x, y)

    def _likelihood(self) -> Likelihood:
        from credence.models import LIKELIHOODS

        chosen = named("likelihood", self.likelihood or "normal", LIKELIHOODS)
        return chosen() if isinstance(chosen, type) else chosen

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictive mean (n,) or (n, targets); on request its standard deviation too."""
        if not return_std:
            return self._to_units(self._over_rows(X, lambda p, _: {"mean": p.mean()})["mean"])
        found = self._over_rows(X, lambda p, _: {"mean": p.mean(), "std": p.std()})
        return self._to_units(found["mean"]), self._spread(found["std"])

    def predict_interval(
        self, X: Any, coverage: float = 0.95, *, conformal: bool = False
    ) -> tuple[Any, Any]:
        """Bounds between which the target lies with the given probability, equal tails.

        Args:
            coverage: between 0 and 1.
            conformal: whether the bounds shall hold as often as they say on rows like those of
                `recalibration_`, whatever the model; otherwise they are those of the predictive
                distribution. See `conformal_levels`.
        Raises:
            InputError: for conformal bounds where no rows are known that the networks have not
                seen.
        """
        if not 0 < coverage < 1:
            raise InputError(f"coverage must be between 0 and 1, got {coverage}; 0.95 is usual.")
        if coverage > MOST_COVERAGE:
            raise InputError(f"coverage must be at most {MOST_COVERAGE}, got {coverage}.")
        tail = (1 - coverage) / 2
        if conformal:
            return self._conformal_interval(X, coverage)
        quantiles = self.predict_quantiles(X, (tail, 1 - tail))
        return quantiles[..., 0], quantiles[..., 1]

    def _conformal_interval(self, X: Any, coverage: float) -> tuple[Any, Any]:
        from credence.ensembles.diagnostics.recalibration import closed, conformal_levels, opened

        levels = conformal_levels(self.recalibration_, coverage)
        quantiles = np.moveaxis(self.predict_quantiles(X, closed(levels)), -1, 0)
        lower, upper = map(opened, quantiles, levels)
        return lower, upper

    def calibrate_by(self, scores: Scores) -> Self:
        """Find how far intervals are to be widened or narrowed; see `calibrate`."""
        from credence.ensembles.diagnostics.recalibration import from_pit

        self._recalibration = from_pit(scores.rows["pit"])
        return self

    def predict_quantiles(
        self, X: Any, levels: Sequence[float] = (0.025, 0.25, 0.5, 0.75, 0.975)
    ) -> Float[np.ndarray, "point *target level"]:
        """Quantiles of the predictive distribution, exact to float precision.

        Raises:
            InputError: unless there is a level, and all are between 0 and 1.
        """
        if np.ndim(levels) != 1 or not len(levels):
            raise InputError(f"levels must be numbers such as (0.05, 0.95), got {levels!r}.")
        found = self._over_rows(
            X, lambda p, _: {str(i): q for i, q in enumerate(p.quantiles(levels))}
        )
        return np.stack([self._to_units(q) for q in found.values()], axis=-1)

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> Float[np.ndarray, "point *target sample"]:
        """Draws from the predictive distribution, noise included, in units of y.

        A sample is one network at all rows, so that sums and means over rows have the right spread.

        Raises:
            InputError: unless n_samples is a whole number above 0.
        """
        require_counts(n_samples=n_samples)
        key = key_from(random_state)

        def drawn(predictive: Predictions, rows: slice) -> dict[str, Any]:
            samples = predictive.sample(key, n_samples, rows.start)
            return {"y": np.moveaxis(np.asarray(samples), 0, -1)}

        found = self._over_rows(X, drawn)
        return np.stack([self._to_units(found["y"][..., i]) for i in range(n_samples)], axis=-1)

    def sample_functions(self, X: Any) -> Float[np.ndarray, "chain draw point *output"]:
        """Noise-free predictions of every draw, in units of y."""
        check_is_fitted(self, "ensemble_")
        functions = self.ensemble_.functions(self._inputs(X, reset=False))
        return self._to_units(functions)

    def decompose_uncertainty(self, X: Any) -> dict[str, Float[np.ndarray, "point *target"]]:
        """Standard deviations in units of y: "total", "aleatoric" (noise), "epistemic" (network).

        total^2 = aleatoric^2 + epistemic^2.
        """
        found = self._over_rows(
            X,
            lambda p, _: {
                "total": p.std(),
                "aleatoric": np.sqrt(p.aleatoric_variance()),
                "epistemic": np.sqrt(p.epistemic_variance()),
            },
        )
        return {name: self._spread(value) for name, value in found.items()}

    def evaluate(self, X: Any, y: Any, seed: int = 0) -> dict[str, np.ndarray]:
        """Row-by-row scores of the truth: `log_prob` (nats, joint over targets), `cdf`, `crps`.

        In units of y; `cdf` is the probability integral transform.

        Raises:
            InputError: for another number of rows or targets.
        """
        import jax

        from credence.ensembles.predictions import filled

        check_is_fitted(self, "ensemble_")
        x = self._inputs(X, reset=False)
        key, scaled = key_from(seed), self._truth(x, y).astype(np.float32)

        def scores(predictive: Predictions, rows: slice) -> dict[str, Any]:
            truth = filled(scaled, rows, predictive.num_points)
            return {
                "log_prob": predictive.log_prob(truth),
                "cdf": predictive.cdf(truth),
                "crps": predictive.crps(truth, jax.random.fold_in(key, rows.start)),
            }

        found = self.ensemble_.over_batches(x, scores)
        return {
            "log_prob": found["log_prob"].astype(float) - np.log(self.target_scaler_.scale).sum(),
            "cdf": self._shaped(found["cdf"]),
            "crps": self._spread(found["crps"]),
        }

    def scores(self, X: Any, y: Any) -> Scores:
        """Score predictions at held-out rows in one pass: numbers, and values row by row.

        In units of y: see `credence.ensembles.scores` for the names.

        Raises:
            InputError: for several targets.
        """
        from credence.ensembles.scores import regression_scores

        check_is_fitted(self, "ensemble_")
        if self.ensemble_.num_targets != 1:
            raise InputError(
                f"scores() is of one target, and the fit saw {self.ensemble_.num_targets}: "
                "evaluate(X, y) scores several, row by row."
            )
        x, units = self._inputs(X, reset=False), self.target_scaler_
        self._truth(x, y)
        y = np.asarray(y, float).reshape(len(x))
        return regression_scores(self.ensemble_, x, y, units, self._unseen_rows_say())

    def _rows_in_units(self, rows: Rows) -> Rows:
        from credence.ensembles.scores import in_units

        return in_units(rows, self.target_scaler_)

    def _coded(self, y: Any) -> Float[np.ndarray, "point target"]:
        with numbers_wanted("y", "It must be numbers, in the units of the fit."):
            y = np.asarray(y, float).reshape(len(y), -1)
        if y.shape[1] != self.ensemble_.num_targets:
            raise InputError(
                f"y has {plural(y.shape[1], 'target')}, and the fit saw "
                f"{self.ensemble_.num_targets}."
            )
        is_known = np.isfinite(y).all(axis=1)
        if not is_known.all():
            raise InputError(
                f"y holds NaN or infinity, first at place {np.argmin(is_known)} of {len(y)}: leave "
                "such rows out."
            )
        return self.target_scaler_.transform(y)

    def _to_units_of_y(self, groups: dict[str, dict[str, np.ndarray]]) -> None:
        for name in {"posterior_predictive", "observed_data"} & groups.keys():
            groups[name]["y"] = self.target_scaler_.inverse(groups[name]["y"])
        if "log_likelihood" in groups:
            groups["log_likelihood"]["y"] -= np.log(self.target_scaler_.scale).sum()

    def _log_density_in_units(self) -> float:
        return -self._total_weight * float(np.log(self.target_scaler_.scale).sum())

    def _learnt(self) -> dict[str, Any]:
        return {"target_scaler": self.target_scaler_.to_json(), "y_ndim": self._y_ndim}

    def _restore(self, document: Mapping[str, Any]) -> None:
        self.target_scaler_ = TargetScaler.from_json(document["target_scaler"])
        self._y_ndim = document["y_ndim"]
        num_targets = len(self.target_scaler_.mean)
        if self._y_ndim not in (1, 2) or (self._y_ndim == 1 and num_targets > 1):
            raise ValueError(f"y_ndim is {self._y_ndim} with {num_targets} targets")
        if num_targets != self.ensemble_.num_targets:
            raise ValueError(f"{num_targets} targets, the ensemble predicts others")

    def _to_units(self, values: np.ndarray) -> np.ndarray:
        return self._shaped(self.target_scaler_.inverse(values))

    def _spread(self, values: np.ndarray) -> np.ndarray:
        return self._shaped(self.target_scaler_.inverse_scale(values))

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        """Drop the target axis where y had none."""
        values = np.asarray(values, float)
        return values[..., 0] if self._y_ndim == 1 else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
