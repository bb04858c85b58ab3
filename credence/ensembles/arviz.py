"""Ensembles for ArviZ: draws, their statistics, and what they predict, as groups of arrays."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Float, Shaped

from credence.density.posterior import BayesianModel, Params
from credence.ensembles.predictions import Predictions, filled
from credence.ensembles.saved import named_leaves
from credence.errors import InputError, plural

Groups = dict[str, dict[str, np.ndarray]]
"""Arrays by name, by group."""


@runtime_checkable
class Draws(Protocol):
    """The parts that groups are made of; an `Ensemble` has them."""

    @property
    def model(self) -> BayesianModel:
        """The network, prior and likelihood."""
        ...

    @property
    def params(self) -> Params:
        """The parameters, leaves (chain, draw, ...)."""
        ...

    @property
    def weights(self) -> Float[np.ndarray, "chain draw"] | None:
        """The weights of the draws; None for equal ones."""
        ...

    @property
    def scalars(self) -> Mapping[str, Float[np.ndarray, "chain draw"]]:
        """The numbers per draw, by name."""
        ...

    @property
    def num_targets(self) -> int:
        """The number of targets that the fit saw."""
        ...

    def over_batches(
        self, x: Any, summarise: Callable[[Predictions, slice], dict[str, Any]]
    ) -> dict[str, np.ndarray]:
        """Summarise the predictive at every row; see `Ensemble.over_batches`."""
        ...


def arviz_groups(draws: Draws, x: Any = None, y: Any = None, *, seed: int = 0) -> Groups:
    """Collect what `Predictor.to_arviz` holds of an ensemble.

    Args:
        draws: an ensemble.
        x, y, seed: see `Predictor.to_arviz`.
    Raises:
        InputError: for y without x, or where they do not fit together.
    """
    stats = {name: np.asarray(value) for name, value in draws.scalars.items()}
    if draws.weights is not None:
        stats["weight"] = np.asarray(draws.weights)
    groups = {"posterior": named_leaves(draws.params), "sample_stats": stats}
    if x is None and y is not None:
        raise InputError("to_arviz got y without x: pass the inputs of these targets as well.")
    if x is not None:
        groups["posterior_predictive"] = {"y": _predictive_draws(draws, x, seed)}
    if y is not None:
        y = targets(draws, x, y)
        groups["log_likelihood"] = {"y": _log_likelihood(draws, x, y)}
        groups["observed_data"] = {"y": without_single(y)}
    return groups


def as_arviz(groups: Groups) -> Any:
    """Build InferenceData of ArviZ before 1, or a DataTree."""
    import arviz

    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups)  # type: ignore[arg-type]
    return arviz.from_dict(**groups)  # pyright: ignore[reportArgumentType]  # 0.x: by keyword


def _predictive_draws(
    draws: Draws, x: Any, seed: int
) -> Shaped[np.ndarray, "chain draw point *target"]:
    """A draw of the targets from every member."""
    key = jax.random.key(seed)

    def sampled(predictive: Predictions, rows: slice) -> dict[str, Any]:
        members = predictive.member_samples(jax.random.fold_in(key, rows.start))
        return {"y": np.moveaxis(np.asarray(members), 0, 1)}

    return without_single(_by_chain(draws, draws.over_batches(x, sampled)["y"]))


def _log_likelihood(draws: Draws, x: Any, y: np.ndarray) -> Float[np.ndarray, "chain draw point"]:
    """Log likelihoods of the rows by every member, in nats."""

    def log_probs(predictive: Predictions, rows: slice) -> dict[str, Any]:
        truth = filled(y, rows, predictive.num_points)
        return {"log_prob": predictive.member_log_probs(truth).T}

    return _by_chain(draws, draws.over_batches(x, log_probs)["log_prob"])


def _by_chain(draws: Draws, values: np.ndarray) -> np.ndarray:
    """(point, member, ...) as (chain, draw, point, ...)."""
    values = np.moveaxis(values, 0, 1)
    num_chains, num_draws = jax.tree.leaves(draws.params)[0].shape[:2]
    return values.reshape(num_chains, num_draws, *values.shape[1:])


def targets(draws: Draws, x: Any, y: Any) -> np.ndarray:
    """The targets of the rows of x, as the likelihood wants them.

    Raises:
        InputError: where there are more or fewer of them than rows, or than fitted targets.
    """
    y = draws.model.likelihood.checked_targets(y)
    found = y.shape[1] if y.ndim == 2 else 1
    if len(y) != len(x) or found != draws.num_targets:
        raise InputError(
            f"y has {len(y)} rows of {plural(found, 'target')}, but x has {len(x)} rows and "
            f"the fit saw {plural(draws.num_targets, 'target')}: they must match row by row."
        )
    return y


def without_single(y: np.ndarray) -> np.ndarray:
    """Leave out the last axis of targets (..., point, target) where it has one entry."""
    return y[..., 0] if y.shape[-1] == 1 and y.ndim in (2, 4) else y
