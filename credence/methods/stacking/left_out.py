"""Chains score and predict the rows that they have not seen; weights and calibration follow."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from credence.density.posterior import Posterior
from credence.ensembles.diagnostics.recalibration import (
    Recalibration,
    from_pit,
    from_probabilities,
)
from credence.ensembles.diagnostics.stacking import (
    as_of_more,
    beta_shape,
    excess_of_few,
    log_mean,
    mean_stacking_weights,
)
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.predictive import Predictions
from credence.ensembles.stack import FEW_ROWS, log_probs
from credence.methods.stacking.folds import FoldChains, of_fold

LEAST = -1e4
"""Log probability of a row that a model thinks impossible, or of which it says no number, nats."""


def out_of_fold(
    ensemble: Ensemble, method: FoldChains, posterior: Posterior
) -> Float[np.ndarray, " row"]:
    """Log probability of every row by chains that have not seen it, as many as there are, in nats;
    `LEAST` where they think it impossible."""
    x, y = (np.asarray(leaf) for leaf in (posterior.data.x, posterior.data.y))
    folds, scores = method.folds_of(y), np.empty(len(y))
    for fold in range(method.num_folds):
        is_in = folds == fold
        unseen = of_fold(ensemble, method, fold)
        by_member = log_probs(unseen, x[is_in], y[is_in], by_member=True)
        by_draw = np.moveaxis(by_member.T.reshape(-1, ensemble.num_draws, len(by_member)), 1, 0)
        chains = np.nan_to_num(log_mean(by_draw), nan=LEAST, neginf=LEAST)
        scores[is_in] = as_of_more(chains, ensemble.num_chains)
    return scores


class LeftOut(NamedTuple):
    """Predictions of every row by the chains that have not seen it."""

    mean: Float[np.ndarray, "row target"]
    """Their mean: of labels, the probabilities of the classes."""
    excess: float
    """The mean square error of the mean, less that of the mean of all chains together."""
    cdf: Float[np.ndarray, "row target"] | None
    """The probability of values below the truth; None for labels."""


def left_out(ensemble: Ensemble, method: FoldChains, posterior: Posterior) -> LeftOut:
    """Predict every row by the chains that have not seen it."""
    x, y = (np.asarray(leaf) for leaf in (posterior.data.x, posterior.data.y))
    folds, mean, excess = method.folds_of(y), np.empty((len(y), ensemble.num_predicted)), 0.0
    cdf = None if ensemble.is_classifier else np.empty(y.shape)
    for fold in range(method.num_folds):
        is_in = folds == fold
        truth = y[is_in]

        def of_batch(predictive: Predictions, rows: slice, truth: Any = truth) -> dict[str, Any]:
            found = {"mean": jnp.moveaxis(predictive.member_means(), 0, 1)}
            if cdf is not None:
                batch = np.resize(truth[rows], (predictive.num_points, *truth.shape[1:]))
                found["cdf"] = predictive.cdf(jnp.asarray(batch))
            return found

        found = of_fold(ensemble, method, fold).over_batches(x[is_in], of_batch)
        means = np.moveaxis(found["mean"].astype(float), 1, 0)
        by_chain = means.reshape(-1, ensemble.num_draws, *means.shape[1:]).mean(axis=1)
        mean[is_in] = by_chain.mean(axis=0)
        excess += excess_of_few(by_chain, ensemble.num_chains) * is_in.mean()
        if cdf is not None:
            cdf[is_in] = found["cdf"]
    return LeftOut(mean, float(excess), cdf)


def mean_weights(
    found: Sequence[LeftOut], posterior: Posterior
) -> Float[np.ndarray, " part"] | None:
    """Weigh the parts' means; None for labels, and where rows are few or predictions are not
    finite."""
    if found[0].cdf is None or posterior.num_points < FEW_ROWS:
        return None
    y = np.asarray(posterior.data.y)
    errors = np.stack([(y - each.mean).ravel() for each in found], axis=1)
    if not np.isfinite(errors).all():
        return None
    return mean_stacking_weights(errors, np.array([each.excess for each in found]))


def spread(
    found: Sequence[LeftOut], weights: Float[np.ndarray, " part"], posterior: Posterior
) -> tuple[float, Recalibration | None]:
    """Compare the stack's predictions of left-out rows with the truth.

    Returns:
        the shape of a beta-transformed mixture, 1 for labels, several targets and few rows; and the
        calibration of what is predicted then, None for several targets. 1 and None where
        predictions are not finite.
    """
    from scipy.special import betainc

    y, cdfs = np.asarray(posterior.data.y), [each.cdf for each in found if each.cdf is not None]
    if not cdfs:
        probabilities = np.tensordot(weights, np.stack([each.mean for each in found]), axes=1)
        is_finite = np.isfinite(probabilities).all()
        return 1.0, from_probabilities(probabilities, y) if is_finite else None
    pit = np.tensordot(weights, np.stack(cdfs), axes=1)
    if y.shape[1] > 1 or not np.isfinite(pit).all():
        return 1.0, None
    pit = np.clip(pit[:, 0], 0, 1)
    shape = beta_shape(pit) if len(pit) >= FEW_ROWS else 1.0
    return shape, from_pit(betainc(shape, shape, pit))
