"""What the two estimators share."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from credence.errors import InputError
from credence.estimators.checks import as_count, as_widths, named
from credence.preprocessing import make_preprocessor

if TYPE_CHECKING:
    from credence.diagnostics.convergence import Convergence
    from credence.methods.base import Method
    from credence.models.likelihoods import Likelihood
    from credence.models.networks import Network
    from credence.models.priors import Prior
    from credence.predictive import Predictive


MONITORED_ROWS = 100
"""Training rows at whose predictions convergence is judged where no held-out rows are given."""


class BNN(BaseEstimator):
    """What the two estimators share; see `BNNRegressor` for the arguments."""

    def __init__(
        self,
        *,
        hidden: Sequence[int] = (50,),
        activation: str = "tanh",
        method: str | Method = "auto",
        num_draws: int = 1000,
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
        from credence.environment import use_all_cores
        from credence.models import MLP, PRIORS
        from credence.posterior import Posterior
        from credence.progress import NoProgress, RichProgress

        use_all_cores()
        network = self.network or MLP(outputs, as_widths(self.hidden), self.activation)
        prior = named("prior", self.prior or methods.default_prior(self.method), PRIORS)
        posterior = Posterior(network, prior, self._likelihood(), (x, y, weight))
        self.method_, self.method_reason_ = methods.resolve(
            self.method,
            posterior,
            num_draws=as_count("num_draws", self.num_draws),
            num_chains=None if self.num_chains is None else as_count("num_chains", self.num_chains),
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
        from credence.diagnostics import assess, with_architecture

        rows = np.linspace(0, len(x) - 1, min(len(x), MONITORED_ROWS)).round().astype(int)
        judged = assess(self.ensemble_.monitored(x[rows]) if self.ensemble_.is_chain else None)
        return with_architecture(judged, self.ensemble_.architecture())

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

        No pickle: JSON and NumPy's arrays, which hold no code.

        Raises:
            StorageError: where the folder cannot be written or the disk is full.
        """
        from credence.storage import file_sha256, write_json

        check_is_fitted(self, "ensemble_")
        folder = Path(folder)
        self.ensemble_.save(folder)
        document = {
            "ensemble_sha256": file_sha256(folder / "ensemble.json"),
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
        write_json(folder / "estimator.json", document)

    def _learnt(self) -> dict[str, Any]:
        """What else was learnt, as JSON data."""
        raise NotImplementedError

    def _restore(self, document: Mapping[str, Any]) -> None:
        """Undo `_learnt`."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
