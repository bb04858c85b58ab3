"""Chains score and predict rows that they have not seen; weights and spread follow from that."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from credence.density.posterior import Posterior
from credence.ensembles.diagnostics.recalibration import best_temperature, tempered
from credence.ensembles.diagnostics.stacking import (
    as_of_more,
    beta_shape,
    excess_of_few,
    log_mean,
    mean_stacking_weights,
    mean_with_error,
)
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.predictions import Predictions, concatenate, filled
from credence.ensembles.predictive import Predictive
from credence.ensembles.scores import classification_rows, regression_rows
from credence.ensembles.stack import Stack
from credence.ensembles.weighing import FEW_ROWS
from credence.methods.stacking.folds import FoldChains, of_fold
from credence.spacing import evenly_spaced

MOST_JUDGED = 5000
"""Rows that are predicted to judge the stack by them."""
TINY = np.finfo(float).tiny
LEAST = -1e4
"""Log probability of a row that a model thinks impossible, or of which it says no number, nats."""


class LeftOut(NamedTuple):
    """A model's predictions of every row, by the chains that have not seen it."""

    log_probs: Float[np.ndarray, " row"]
    """Log probability by as many chains as there are, in nats; `LEAST` where they think the row
    impossible."""
    mean: Float[np.ndarray, "row target"]
    """The mean: of labels, the probabilities of the classes."""
    excess: float
    """The mean square error of the mean, less that of the mean of all chains together."""
    cdfs: Float[np.ndarray, "chain row target"] | None
    """The probability of values below the truth by each chain that has not seen the row; None for
    labels."""


def left_out(ensemble: Ensemble, method: FoldChains, posterior: Posterior) -> LeftOut:
    """Score and predict every row by the chains that have not seen it."""
    x, y = (np.asarray(leaf) for leaf in (posterior.data.x, posterior.data.y))
    folds = method.folds_of(posterior)
    rows_of = [np.flatnonzero(folds == fold) for fold in range(method.num_folds)]
    parts = [
        _unseen(ensemble, of_fold(ensemble, method, fold), x[rows], y[rows])
        for fold, rows in enumerate(rows_of)
    ]
    order = np.argsort(np.concatenate(rows_of))
    log_probs, means, excesses, cdfs = zip(*parts, strict=True)
    return LeftOut(
        np.concatenate(log_probs)[order],
        np.concatenate(means)[order],
        float(np.average(excesses, weights=list(map(len, rows_of)))),
        None if ensemble.is_classifier else np.concatenate(cdfs, axis=1)[:, order],
    )


def _unseen(ensemble: Ensemble, chains: Ensemble, x: np.ndarray, y: np.ndarray) -> LeftOut:
    """Score and predict rows by those chains of an ensemble that have not seen them."""

    def of_batch(predictive: Predictions, rows: slice) -> dict[str, Any]:
        truth = filled(y, rows, predictive.num_points)
        found = {
            "log_probs": predictive.member_log_probs(truth).T,
            "means": jnp.moveaxis(predictive.member_means(), 0, 1),
        }
        if isinstance(predictive, Predictive) and predictive.is_regression:
            found["cdfs"] = jnp.moveaxis(predictive.member_cdfs(truth), 0, 1)
        return found

    def by_chain(values: np.ndarray) -> np.ndarray:
        """Turn (row, member, ...) into (draw, chain, row, ...)."""
        members = np.moveaxis(values.astype(float), 1, 0)
        return members.reshape(-1, ensemble.num_draws, *members.shape[1:]).swapaxes(0, 1)

    found = chains.over_batches(x, of_batch)
    scores = np.nan_to_num(log_mean(by_chain(found["log_probs"])), nan=LEAST, neginf=LEAST)
    means = by_chain(found["means"]).mean(axis=0)
    cdfs = found.get("cdfs")
    return LeftOut(
        as_of_more(scores, ensemble.num_chains),
        means.mean(axis=0),
        excess_of_few(means, ensemble.num_chains),
        None if cdfs is None else by_chain(cdfs).mean(axis=0),
    )


def mean_weights(
    found: Sequence[LeftOut], posterior: Posterior
) -> Float[np.ndarray, " part"] | None:
    """Weigh the parts' means; None for labels, and where rows are few or predictions are not
    finite."""
    if found[0].cdfs is None or posterior.num_points < FEW_ROWS:
        return None
    y = np.asarray(posterior.data.y)
    errors = np.stack([(y - each.mean).ravel() for each in found], axis=1)
    if not np.isfinite(errors).all():
        return None
    weight = np.repeat(np.asarray(posterior.data.weight, float), y.size // len(y))
    return mean_stacking_weights(errors, np.array([each.excess for each in found]), weight)


def shape_of_mixture(
    cdfs: Float[np.ndarray, "chain row target"] | None,
    num_chains: int,
    weight: Float[np.ndarray, " row"],
) -> float:
    """Find how narrow the stack's mixture is to be, see `beta_shape`; 1, for as it is, of labels,
    of several targets, and where rows are few or predictions are not finite.

    Args:
        cdfs: the mixture's probability of values below the truth, by those chains of the models
            that have not seen a row; None for labels.
        num_chains: how many chains of each model predict.
        weight: how many observations each row stands for.
    """
    if cdfs is None or cdfs.shape[2] > 1 or cdfs.shape[1] < FEW_ROWS or not np.isfinite(cdfs).all():
        return 1.0
    return beta_shape(cdfs[..., 0], num_chains, weight=weight)


def temperature_of_mixture(
    found: Sequence[LeftOut], weights: Float[np.ndarray, " part"], posterior: Posterior
) -> float:
    """Find how sure the stack's mixture of labels is to be, see `best_temperature`; 1, for as it
    is, of numbers, where rows are few or predictions are not finite, and where the rows do not ask
    for more by two standard errors of what they gain.

    The chains that left out a row are fewer than all, and fewer are surer: so this is modest.
    """
    if found[0].cdfs is not None or posterior.num_points < FEW_ROWS:
        return 1.0
    mixed = np.tensordot(weights, np.stack([each.mean for each in found]), axes=1)
    if not np.isfinite(mixed).all():
        return 1.0
    labels = np.asarray(posterior.data.y).ravel().astype(int)
    weight = np.asarray(posterior.data.weight, float)
    temperature = best_temperature(mixed, labels, weight)
    rows = np.arange(len(labels))
    own, sharper = (
        np.log(np.maximum(probabilities[rows, labels], TINY))
        for probabilities in (mixed, tempered(mixed, temperature))
    )
    gain, error = mean_with_error(sharper - own, weight)
    return temperature if temperature < 1 and gain > 2 * error else 1.0


def mixed_cdfs(
    found: Sequence[LeftOut], weights: Float[np.ndarray, " part"]
) -> Float[np.ndarray, "chain row target"] | None:
    """Mix the models' probabilities of values below the truth, chain by chain; None for labels.

    In double precision: single precision knows too little of what is near 1.
    """
    cdfs = [each.cdfs for each in found if each.cdfs is not None]
    return np.clip(np.tensordot(weights, np.stack(cdfs), axes=1), 0, 1) if cdfs else None


def predict_left_out(
    stack: Stack,
    method: FoldChains,
    posterior: Posterior,
    cdfs: Float[np.ndarray, "chain row target"] | None,
) -> Stack:
    """Predict rows, `MOST_JUDGED` at most, by those networks of the stack that have not seen them,
    whose mixture has a shape of its own.

    Args:
        cdfs: of `mixed_cdfs`.
    Returns:
        the stack with `left_out`: what `credence.ensembles.scores` knows of each row, its place
        among the training rows as `row`, in that order, and its `weight`, where weights differ.
        Several targets have none.
    """
    from scipy.special import betainc

    if stack.num_targets > 1:
        return stack
    weight = np.asarray(posterior.data.weight, float)
    shape = 1.0 if cdfs is None else shape_of_mixture(cdfs, len(cdfs), weight)
    x, y = (np.asarray(leaf) for leaf in (posterior.data.x, posterior.data.y))
    judged = evenly_spaced(len(y), MOST_JUDGED)
    folds, parts = method.folds_of(posterior)[judged], []
    for fold in np.unique(folds).tolist():
        rows = judged[folds == fold]
        few = tuple(of_fold(part, method, fold) for part in stack.parts)
        unseen = replace(stack, parts=few, shape=shape)
        if stack.is_classifier:
            found = classification_rows(unseen, x[rows], y[rows])
        else:
            found = regression_rows(unseen, x[rows], y[rows, 0])
        parts.append({"row": rows, **found})
    joined = concatenate(parts)
    order = np.argsort(joined["row"])
    joined = {name: values[order] for name, values in joined.items()}
    if np.ptp(weight) > 0:
        joined["weight"] = weight[joined["row"]]
    if cdfs is not None:
        below = cdfs.mean(axis=0)[joined["row"], 0]
        joined["pit"] = betainc(shape, shape, below)
    return replace(stack, left_out=joined, left_out_shape=shape)
