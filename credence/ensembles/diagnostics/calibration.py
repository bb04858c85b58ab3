"""Calibration of class probabilities: does what is given 80 % happen 80 % of the time?

Calibration errors depend on the bins and on which probabilities are counted; both are arguments
and neither has a value that everybody uses, so a table of them must say which it used.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from credence.ensembles.diagnostics._checks import labelled_probabilities, point_shares

Bins = Literal["equal_width", "equal_mass"]
Over = Literal["top_label", "all_classes"]


@dataclass(frozen=True)
class ReliabilityDiagram:
    """Predicted against observed frequency, bin by bin; a bin is (lower edge, upper edge].

    The first bin includes 0.

    Attributes:
        edges: one more than bins, from 0 to 1.
        count: how many probabilities fall in the bin.
        share: their share of the total sample weight; count / count.sum() without weights.
        confidence: their mean; NaN in a bin of share 0.
        accuracy: how often what they predict is true; NaN in a bin of share 0.
    """

    edges: Float[np.ndarray, " edge"]
    count: Int[np.ndarray, " bin"]
    share: Float[np.ndarray, " bin"]
    confidence: Float[np.ndarray, " bin"]
    accuracy: Float[np.ndarray, " bin"]

    @property
    def ece(self) -> float:
        """Expected calibration error: Σ share |accuracy - confidence|."""
        return float(np.nansum(self.share * abs(self.accuracy - self.confidence)))

    @property
    def mce(self) -> float:
        """Maximum calibration error: that of the worst bin, however few points are in it."""
        return float(np.nanmax(abs(self.accuracy - self.confidence)))


def reliability_diagram(
    probabilities: Float[np.ndarray, "point label"],
    labels: Int[np.ndarray, " point"],
    sample_weight: Float[np.ndarray, " point"] | None = None,
    *,
    num_bins: int = 15,
    bins: Bins = "equal_width",
    over: Over = "top_label",
) -> ReliabilityDiagram:
    """Table of a reliability diagram.

    Args:
        bins: "equal_width" divides [0, 1] evenly (Guo et al. 2017, whose 15 bins are the default);
            "equal_mass" puts equal sample weight in every bin (Nixon et al. 2019). Equal
            probabilities stay together, so with ties there may be fewer bins.
        over: "top_label" counts the largest probability of every point and whether it was right;
            "all_classes" counts all point x class probabilities and whether that class was true,
            as in Vuckovic (2022). That is much smaller: most of the entries are near 0.
    """
    if num_bins < 1 or bins not in ("equal_width", "equal_mass"):
        raise ValueError(
            f"num_bins must be >= 1 and bins 'equal_width' or 'equal_mass'; "
            f"got {num_bins} and {bins!r}."
        )
    p, labels = labelled_probabilities(probabilities, labels)
    share = point_shares(len(p), sample_weight)
    if over == "top_label":
        return _diagram(p.max(axis=1), p.argmax(axis=1) == labels, share, num_bins, bins)
    if over == "all_classes":
        num_classes = p.shape[1]
        is_true = labels[:, None] == np.arange(num_classes)
        share = np.repeat(share / num_classes, num_classes)
        return _diagram(p.ravel(), is_true.ravel(), share, num_bins, bins)
    raise ValueError(f"over must be 'top_label' or 'all_classes', got {over!r}.")


def ece(
    probabilities: Float[np.ndarray, "point label"],
    labels: Int[np.ndarray, " point"],
    sample_weight: Float[np.ndarray, " point"] | None = None,
    *,
    num_bins: int = 15,
    bins: Bins = "equal_width",
    over: Over = "top_label",
) -> float:
    """Expected calibration error, in 0 .. 1; arguments as `reliability_diagram`.

    With few points it is biased upwards: a perfect model has about sqrt(num_bins / points) / 3.
    """
    return reliability_diagram(
        probabilities, labels, sample_weight, num_bins=num_bins, bins=bins, over=over
    ).ece


def mce(
    probabilities: Float[np.ndarray, "point label"],
    labels: Int[np.ndarray, " point"],
    sample_weight: Float[np.ndarray, " point"] | None = None,
    *,
    num_bins: int = 15,
    bins: Bins = "equal_width",
    over: Over = "top_label",
) -> float:
    """Maximum calibration error, in 0 .. 1; arguments as `reliability_diagram`.

    Every bin counts, as with Guo et al. (2017): of equal width, the worst is often one with a few
    points, whose gap is chance (`count` of the diagram tells). Bins of equal mass have none such.
    """
    return reliability_diagram(
        probabilities, labels, sample_weight, num_bins=num_bins, bins=bins, over=over
    ).mce


def _equal_mass_edges(
    confidence: Float[np.ndarray, " event"], share: Float[np.ndarray, " event"], num_bins: int
) -> Float[np.ndarray, " edge"]:
    """Quantiles of the weighted confidences; a first bin [0, 0] if there are many zeros."""
    order = np.argsort(confidence)
    levels = np.linspace(0, 1, num_bins + 1)[1:-1] - 1e-9  # sums of shares are rounded
    inner = np.unique(confidence[order][np.searchsorted(np.cumsum(share[order]), levels)])
    return np.concatenate([[0.0], inner[inner < 1], [1.0]])


def _diagram(
    confidence: Float[np.ndarray, " event"],
    is_true: Bool[np.ndarray, " event"],
    share: Float[np.ndarray, " event"],
    num_bins: int,
    bins: Bins,
) -> ReliabilityDiagram:
    edges = np.linspace(0, 1, num_bins + 1)
    if bins == "equal_mass":
        edges = _equal_mass_edges(confidence, share, num_bins)
    index = np.searchsorted(edges[1:-1], confidence, side="left")  # bins are (lower, upper]
    num_bins = len(edges) - 1

    def total(values: Float[np.ndarray, " event"]) -> Float[np.ndarray, " bin"]:
        return np.bincount(index, values, minlength=num_bins)

    binned = total(share)
    divisor = np.where(binned > 0, binned, np.nan)
    return ReliabilityDiagram(
        edges=edges,
        count=np.bincount(index, minlength=num_bins),
        share=binned,
        confidence=total(share * confidence) / divisor,
        accuracy=total(share * is_true) / divisor,
    )
