"""The scikit-learn face: `BNNRegressor` and `BNNClassifier`.

An estimator adds no algorithm: it turns a table into arrays, builds a `Posterior`, runs a method,
and turns the ensemble's predictions back into the units and labels of the user.
"""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from credence.errors import InputError, StorageError, did_you_mean
from credence.preprocessing import TablePreprocessor, TargetScaler, make_preprocessor

if TYPE_CHECKING:
    from credence.diagnostics.convergence import Convergence
    from credence.methods.base import Method
    from credence.models.likelihoods import Likelihood
    from credence.models.networks import Network
    from credence.models.priors import Prior
    from credence.predictive import Predictive

MONITORED_ROWS = 100
"""Training rows at whose predictions convergence is judged where no held-out rows are given."""


class _BNN(BaseEstimator):
    """What the two estimators share; see `BNNRegressor` for the arguments."""

    def __init__(
        self,
        *,
        hidden: Sequence[int] = (50,),
        activation: str = "tanh",
        method: str | Method = "auto",
        num_draws: int = 1000,
        num_chains: int = 4,
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

    def _inputs(self, X: Any, *, reset: bool) -> Float[np.ndarray, "point feature"]:
        """X checked and preprocessed: standardised numbers, one-hot categories, gaps filled."""
        if isinstance(X, pd.DataFrame):
            validate_data(self, X, skip_check_array=True, reset=reset)
        else:
            X = validate_data(self, X, dtype="numeric", ensure_all_finite="allow-nan", reset=reset)
        if reset:
            if len(X) < 2:
                raise InputError(f"Found {len(X)} sample, but learning needs at least 2 samples.")
            self.preprocessor_ = make_preprocessor(X)
        return self.preprocessor_.transform(X)

    def _sample(self, x: np.ndarray, y: np.ndarray, weight: np.ndarray, outputs: int) -> None:
        """Build the posterior, run the method, judge convergence."""
        from credence import methods
        from credence.models import MLP, PRIORS
        from credence.posterior import Posterior
        from credence.progress import NoProgress, RichProgress

        network = self.network or MLP(outputs, as_widths(self.hidden), self.activation)
        prior = named("prior", self.prior or "fan_in", PRIORS)
        posterior = Posterior(network, prior, self._likelihood(), (x, y, weight))
        self.method_, self.method_reason_ = methods.resolve(
            self.method,
            posterior,
            num_draws=as_count("num_draws", self.num_draws),
            num_chains=as_count("num_chains", self.num_chains),
        )
        self.ensemble_ = self.method_.run(
            self._seed(),
            posterior,
            folder=self.checkpoint_folder,
            progress=RichProgress() if self.progress else NoProgress(),
            max_seconds=self.max_seconds,
        )
        self.diagnostics_ = self._assess(x)
        if self.diagnostics_.converged is False:
            warnings.warn(
                f"Not converged: {self.diagnostics_.reason}", ConvergenceWarning, stacklevel=3
            )

    def judge(self, X: Any) -> Self:
        """Set `diagnostics_` from the predictions at the rows of X, held-out ones at best."""
        check_is_fitted(self, "ensemble_")
        self.diagnostics_ = self._assess(self._inputs(X, reset=False))
        return self

    def _assess(self, x: Float[np.ndarray, "point feature"]) -> Convergence:
        from credence.diagnostics.convergence import assess

        rows = np.linspace(0, len(x) - 1, min(len(x), MONITORED_ROWS)).round().astype(int)
        return assess(self.ensemble_.monitored(x[rows]) if self.ensemble_.is_chain else None)

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            if not 0 <= self.random_state < 2**32:
                raise InputError(
                    f"random_state must be between 0 and {2**32 - 1}, got {self.random_state}."
                )
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _likelihood(self) -> Likelihood:
        raise NotImplementedError

    def _over_rows(
        self, X: Any, summarise: Callable[[Predictive], Mapping[str, Any]]
    ) -> dict[str, np.ndarray]:
        """Summaries of the predictive at every row of X, in bounded memory."""
        check_is_fitted(self, "ensemble_")
        x = self._inputs(X, reset=False)
        return self.ensemble_.over_batches(x, lambda predictive, rows: dict(summarise(predictive)))

    def save(self, folder: str | Path) -> None:
        """Write the fitted estimator into a folder; `credence.load(folder)` reads it.

        No pickle: JSON and netCDF, which hold no code.

        Raises:
            StorageError: where the folder cannot be written or the disk is full.
        """
        from credence.checkpoint import write_text

        check_is_fitted(self, "ensemble_")
        folder = Path(folder)
        self.ensemble_.save(folder)
        about = {
            "estimator": type(self).__name__,
            "preprocessor": self.preprocessor_.to_json(),
            "n_features_in": self.n_features_in_,
            "feature_names_in": [str(name) for name in getattr(self, "feature_names_in_", ())],
            "method": dataclasses.asdict(self.method_) | {"name": self.method_.name},
            "method_reason": self.method_reason_,
            "diagnostics": dataclasses.asdict(self.diagnostics_),
            "parameters": {
                name: value
                for name, value in self.get_params(deep=False).items()
                if isinstance(value, str | bool | int | float | tuple | list | None)
            },
            **self._learnt(),
        }
        write_text(folder / "estimator.json", json.dumps(about, indent=2))

    def _learnt(self) -> dict[str, Any]:
        """What else was learnt, as JSON data."""
        raise NotImplementedError

    def _restore(self, about: dict[str, Any]) -> None:
        """Undo `_learnt`."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


class BNNRegressor(RegressorMixin, _BNN):
    """Regression with a Bayesian neural network: predictions with honest intervals.

    Inputs and targets are standardised inside; everything returned is in the units of y. DataFrames
    may hold numbers, categories and gaps.

    Args:
        hidden: widths of the hidden layers of the default network.
        activation: its activation; see `credence.models.ACTIVATIONS`.
        method: "auto", the name of a method (`credence methods` lists them), or a method object.
        num_draws: draws per chain.
        num_chains: independent chains.
        network, prior, likelihood: parts from `credence.models` in place of the defaults (an MLP;
            weights N(0, 1/fan_in), biases N(0, 1); normal noise with sd ~ HalfNormal(1)), in units
            of the standardised target. Prior and likelihood also by name: "fan_in", "unit",
            "trace_class", "hierarchical"; "normal", "student_t", "heteroscedastic".
        standardize_target: model (y - mean) / sd; False models y as it is.
        max_seconds: wall-clock budget of `fit`.
        checkpoint_folder: where `fit` saves as it goes; the same fit again goes on from there.
        progress: show progress bars on standard error.
        random_state: an integer makes `fit` repeatable.

    Attributes:
        ensemble_: the weighted ensemble (`credence.Ensemble`).
        diagnostics_: convergence in function space (`credence.diagnostics.Convergence`).
        method_, method_reason_: what ran, and why "auto" chose it.
        preprocessor_, target_scaler_: learnt from the training table.
        n_features_in_, feature_names_in_: as in scikit-learn.
    """

    def __init__(
        self,
        *,
        hidden: Sequence[int] = (50,),
        activation: str = "tanh",
        method: str | Method = "auto",
        num_draws: int = 1000,
        num_chains: int = 4,
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Sample the posterior given X (n, features) and y (n,) or (n, targets).

        `sample_weight` (n,) counts how many observations each row stands for.
        """
        x, y, weight = self._training_set(X, y, sample_weight)
        self._y_ndim = y.ndim
        self.target_scaler_ = TargetScaler.fit(y, weight)
        if not self.standardize_target:
            targets = len(self.target_scaler_.mean)
            self.target_scaler_ = TargetScaler((0.0,) * targets, (1.0,) * targets)
        scaled = self.target_scaler_.transform(y).reshape(len(y), -1)
        self._sample(x, scaled, weight, self._likelihood().num_outputs(scaled.shape[1]))
        return self

    def _training_set(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        if y is None:
            raise ValueError("BNNRegressor requires y to be passed, but the target y is None.")
        x = self._inputs(X, reset=True)
        y = check_array(y, ensure_2d=False, dtype=float, input_name="y")
        y = column_or_1d(y, warn=True) if y.ndim == 1 or y.shape[1] == 1 else y
        return x, y, checked_weights(sample_weight, x, y)

    def _likelihood(self) -> Likelihood:
        from credence.models import LIKELIHOODS

        chosen = named("likelihood", self.likelihood or "normal", LIKELIHOODS)
        return chosen() if isinstance(chosen, type) else chosen

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictive mean (n,) or (n, targets); on request its standard deviation too."""
        found = self._over_rows(X, lambda p: {"mean": p.mean(), "std": p.std()})
        mean = self._to_units(found["mean"])
        return (mean, self._spread(found["std"])) if return_std else mean

    def predict_interval(self, X: Any, coverage: float = 0.95) -> tuple[Any, Any]:
        """Bounds between which the target lies with the given probability, equal tails."""
        if not 0 < coverage < 1:
            raise InputError(f"coverage must be between 0 and 1, got {coverage}; 0.95 is usual.")
        tail = (1 - coverage) / 2
        quantiles = self.predict_quantiles(X, (tail, 1 - tail))
        return quantiles[..., 0], quantiles[..., 1]

    def predict_quantiles(
        self, X: Any, levels: Sequence[float] = (0.025, 0.25, 0.5, 0.75, 0.975)
    ) -> Float[np.ndarray, "point *target level"]:
        """Quantiles of the predictive distribution, exact to float precision."""
        found = self._over_rows(X, lambda p: {str(i): q for i, q in enumerate(p.quantiles(levels))})
        return np.stack([self._to_units(q) for q in found.values()], axis=-1)

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> Float[np.ndarray, "point *target sample"]:
        """Draws from the predictive distribution, noise included, in units of y."""
        keys = _batch_keys(random_state)
        found = self._over_rows(
            X, lambda p: {"y": np.moveaxis(np.asarray(p.sample(next(keys), n_samples)), 0, -1)}
        )
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
            lambda p: {
                "total": p.std(),
                "aleatoric": np.sqrt(p.aleatoric_variance()),
                "epistemic": np.sqrt(p.epistemic_variance()),
            },
        )
        return {name: self._spread(value) for name, value in found.items()}

    def evaluate(self, X: Any, y: Any, seed: int = 0) -> dict[str, np.ndarray]:
        """Row-by-row scores of the truth: `log_prob` (nats, joint over targets), `cdf`, `crps`.

        In units of y; `cdf` is the probability integral transform.
        """
        import jax.numpy as jnp

        check_is_fitted(self, "ensemble_")
        keys = _batch_keys(seed)
        scaled = self.target_scaler_.transform(np.asarray(y, float)).reshape(len(y), -1)

        def scores(predictive: Predictive, rows: slice) -> dict[str, Any]:
            size = predictive.outputs.shape[1]
            truth = jnp.asarray(np.resize(scaled[rows], (size, scaled.shape[1])), jnp.float32)
            return {
                "log_prob": predictive.log_prob(truth),
                "cdf": predictive.cdf(truth),
                "crps": predictive.crps(truth, next(keys)),
            }

        found = self.ensemble_.over_batches(self._inputs(X, reset=False), scores)
        return {
            "log_prob": found["log_prob"].astype(float) - np.log(self.target_scaler_.scale).sum(),
            "cdf": self._shaped(found["cdf"]),
            "crps": self._spread(found["crps"]),
        }

    def _learnt(self) -> dict[str, Any]:
        return {"target_scaler": self.target_scaler_.to_json(), "y_ndim": self._y_ndim}

    def _restore(self, about: dict[str, Any]) -> None:
        self.target_scaler_ = TargetScaler.from_json(about["target_scaler"])
        self._y_ndim = about["y_ndim"]

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


class BNNClassifier(ClassifierMixin, _BNN):
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
        hidden: Sequence[int] = (50,),
        activation: str = "tanh",
        method: str | Method = "auto",
        num_draws: int = 1000,
        num_chains: int = 4,
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Sample the posterior given X (n, features) and labels y (n,)."""
        if y is None:
            raise ValueError(
                "This BNNClassifier requires y to be passed, but the target y is None."
            )
        x = self._inputs(X, reset=True)
        assert_all_finite(np.asarray(y), input_name="y")
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        encoder = LabelEncoder().fit(y)
        self.classes_ = encoder.classes_
        if len(self.classes_) < 2:
            raise InputError(
                f"Classification needs at least 2 classes, got only the class {self.classes_[0]!r}."
            )
        weight = checked_weights(sample_weight, x, y)
        if self.class_weight is not None:
            classes = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
            weight = weight * classes[encoder.transform(y)]
        self._sample(x, encoder.transform(y).astype(np.int32), weight, len(self.classes_))
        return self

    def _likelihood(self) -> Likelihood:
        from credence.models import Categorical

        return named("likelihood", self.likelihood or "categorical", {"categorical": Categorical()})

    def predict_proba(self, X: Any) -> Float[np.ndarray, "point class"]:
        """Predictive probability of every class, columns in the order of `classes_`."""
        found = self._over_rows(X, lambda p: {"mean": p.mean()})["mean"].astype(float)
        return found / found.sum(axis=1, keepdims=True)

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
        found = self._over_rows(
            X,
            lambda p: {
                "total": p.entropy_total(),
                "aleatoric": p.entropy_aleatoric(),
                "epistemic": p.entropy_epistemic(),
            },
        )
        return {name: value.astype(float) for name, value in found.items()}

    def _learnt(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist(), "classes_dtype": self.classes_.dtype.str}

    def _restore(self, about: dict[str, Any]) -> None:
        self.classes_ = np.array(about["classes"], dtype=about["classes_dtype"])


def load(folder: str | Path, network: Network | None = None) -> BNNRegressor | BNNClassifier:
    """The fitted estimator that `save` wrote; nothing in the folder is executed.

    Args:
        folder: as given to `save`, or the `ensemble` folder of a run.
        network: the same network again, where it is not one of Credence's own.
    Raises:
        StorageError: where files are missing, broken or of another version.
    """
    from credence import methods
    from credence.diagnostics.convergence import Convergence
    from credence.ensemble import Ensemble

    folder = Path(folder)
    ensemble = Ensemble.load(folder, network)
    try:
        about = json.loads((folder / "estimator.json").read_text(encoding="utf-8"))
        kind = {"BNNRegressor": BNNRegressor, "BNNClassifier": BNNClassifier}[about["estimator"]]
        parts = {
            "network": network,
            "prior": ensemble.model.prior,
            "likelihood": ensemble.model.likelihood,
        }
        model = kind(**parts | about["parameters"])
        model.ensemble_ = ensemble
        model.preprocessor_ = TablePreprocessor.from_json(about["preprocessor"])
        model.n_features_in_ = about["n_features_in"]
        if about["feature_names_in"]:
            model.feature_names_in_ = np.array(about["feature_names_in"], dtype=object)
        model.method_ = methods.METHODS[about["method"].pop("name")].from_settings(about["method"])
        if not isinstance(about["parameters"].get("method"), str):
            model.method = model.method_
        model.method_reason_ = about["method_reason"]
        model.diagnostics_ = Convergence(**about["diagnostics"])
        model._restore(about)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{folder} does not hold a whole estimator ({error}).") from error
    return model


def named(what: str, chosen: Any, known: Mapping[str, Any]) -> Any:
    """The part of that name, or the part itself.

    Raises:
        InputError: for an unknown name.
    """
    if not isinstance(chosen, str):
        return chosen
    if chosen not in known:
        raise InputError(
            f"Unknown {what} {chosen!r}: choose one of {', '.join(known)}."
            + did_you_mean(chosen, known)
        )
    return known[chosen]


def as_widths(hidden: Any) -> tuple[int, ...]:
    """Widths of hidden layers as plain integers; one number is one layer.

    Raises:
        InputError: for anything but whole numbers.
    """
    widths = (hidden,) if isinstance(hidden, int | np.integer) else hidden
    if isinstance(widths, str) or not all(isinstance(w, int | np.integer) for w in widths):
        raise InputError(f"hidden must be whole numbers such as (50, 50), got {hidden!r}.")
    return tuple(int(width) for width in widths)


def as_count(name: str, value: Any) -> int:
    """A whole number >= 1.

    Raises:
        InputError: for anything else.
    """
    if not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} must be a whole number >= 1, got {value!r}.")
    return int(value)


def checked_weights(
    sample_weight: Any, x: np.ndarray, y: np.ndarray
) -> Float[np.ndarray, " point"]:
    """Weights (n,), ones where none are given; refused where they do not fit X and y."""
    if len(x) != len(y):
        raise InputError(f"X has {len(x)} rows but y has {len(y)}: they must match row by row.")
    if sample_weight is None:
        return np.ones(len(y))
    weight = np.asarray(sample_weight, float)
    if weight.ndim == 0:
        weight = np.full(len(y), float(weight))
    if weight.shape != (len(y),) or not (np.all(np.isfinite(weight)) and np.all(weight >= 0)):
        raise InputError(
            f"sample_weight must be {len(y)} finite numbers >= 0, got shape {weight.shape}"
            + (f" and values from {weight.min():g}." if weight.shape == (len(y),) else ".")
        )
    if not weight.sum() > 0:
        raise InputError("sample_weight is zero for every row: nothing to learn from.")
    return weight


def _batch_keys(seed: int | np.random.RandomState | None) -> Any:
    """An endless iterator of keys, one per batch of rows."""
    import itertools

    import jax

    is_integer = isinstance(seed, int | np.integer)
    number = seed if is_integer else check_random_state(seed).randint(np.iinfo(np.int32).max)
    key = jax.random.key(number)
    return (jax.random.fold_in(key, index) for index in itertools.count())
