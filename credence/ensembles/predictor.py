"""Predictors at new inputs: one ensemble, or several stacked."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Array, Float

from credence.density.posterior import MOST_IMAGES
from credence.ensembles.arviz import Groups, as_arviz
from credence.ensembles.diagnostics.cost import Cost
from credence.ensembles.diagnostics.recalibration import Recalibration
from credence.ensembles.predictions import Predictions, concatenate
from credence.ensembles.provenance import Provenance
from credence.errors import InputError

Inputs = Float[Array | np.ndarray, "point *feature"]


def num_divergences(scalars: Mapping[str, Float[np.ndarray, "chain draw"]]) -> int:
    """Draws at the end of a trajectory that diverged, by the scalar "is_divergent"."""
    return int(np.sum(np.asarray(scalars.get("is_divergent", 0)) > 0))


class Predictor(ABC):
    """Base of what methods return: networks that predict together, and where they come from.

    Attributes:
        cost, provenance: what it took and where it comes from.
        num_features, num_targets: of the data it was fitted to.
        is_chain: whether draws form Markov chains of one posterior, so that R-hat and ESS mean
            something.
        scalars: per-draw numbers (chain, draw) by name: acceptance_rate, is_divergent, ...
        left_out: what was predicted of training rows by parts of it that had not seen them, as
            networks see targets, with the names of `credence.ensembles.scores.JUDGED` and more,
            the place among the training rows as `row`, and where rows stand for unlike numbers of
            observations these as `weight`; None where it left none out.
        recalibration: what these rows say of its predictions.
    """

    document: ClassVar[str]
    """The file that `save` writes last, which tells of all others."""

    cost: Cost
    provenance: Provenance
    num_features: int | tuple[int, ...]
    num_targets: int
    is_chain: bool
    scalars: Mapping[str, Float[np.ndarray, "chain draw"]]
    left_out: Mapping[str, np.ndarray] | None = None
    recalibration: Recalibration | None = None

    @property
    @abstractmethod
    def num_chains(self) -> int:
        """Number of chains."""

    @property
    @abstractmethod
    def num_draws(self) -> int:
        """Draws per chain."""

    @property
    def num_members(self) -> int:
        """Networks in all."""
        return self.num_chains * self.num_draws

    @property
    def families(self) -> Float[np.ndarray, "chain draw"] | None:
        """The number of the first particle that each descends from; None for chains."""
        return self.scalars.get("family")

    @property
    def weights_worth(self) -> float:
        """Members of equal weight that are worth as much as these are with theirs (Kish)."""
        return float(self.num_members)

    @property
    def num_divergences(self) -> int:
        """Draws at the end of a trajectory that diverged."""
        return num_divergences(self.scalars)

    @property
    @abstractmethod
    def num_predicted(self) -> int:
        """Targets, or classes, that are predicted for every row; known from shapes alone."""

    @property
    @abstractmethod
    def is_equally_weighted(self) -> bool:
        """Whether all members count the same."""

    @abstractmethod
    def predictive(self, x: Inputs) -> Predictions:
        """Predictions at the rows of x, all members in memory: see `over_batches` for many rows."""

    @property
    @abstractmethod
    def num_weights(self) -> int:
        """Parameters of a network, of the largest where they differ."""

    @property
    @abstractmethod
    def is_classifier(self) -> bool:
        """Whether it predicts classes."""

    @abstractmethod
    def functions(self, x: Inputs) -> Float[np.ndarray, "chain draw point target"]:
        """Noise-free predictions of every draw: locations, or class probabilities."""

    @property
    def function_weights(self) -> Float[np.ndarray, "chain draw"] | None:
        """How much each of `functions` counts, sum one, possibly signed; None for equally."""
        return None

    @abstractmethod
    def monitored(self, x: Inputs) -> Float[np.ndarray, "chain draw point quantity"]:
        """What convergence is judged by: every noise-free prediction, and the log of its noise."""

    @abstractmethod
    def save(self, folder: str | Path) -> None:
        """Write it into a folder.

        Raises:
            StorageError: where the folder cannot be written or the disk is full.
        """

    @abstractmethod
    def arviz_groups(self, x: Inputs | None = None, y: Any = None, *, seed: int = 0) -> Groups:
        """Collect the arrays that `to_arviz` holds, by group; arguments and errors as there."""

    def to_arviz(self, x: Inputs | None = None, y: Any = None, *, seed: int = 0) -> Any:
        """The draws for ArviZ: InferenceData before ArviZ 1, a DataTree from then on.

        Args:
            x, y: data, where wanted. x adds the group `posterior_predictive`, draws of the targets;
                x and y add `observed_data`, and of one ensemble `log_likelihood`, in nats and joint
                over several targets, so that `arviz.loo` works. The variable is called "y"; labels
                are numbers.
            seed: of the posterior predictive draws.
        Raises:
            InputError: for y without x, where they do not fit together, or for a stack without x.
        ArviZ counts all draws equally; weights of an ensemble, where there are any, become the
        sample statistic "weight".
        """
        return as_arviz(self.arviz_groups(x, y, seed=seed))

    def over_batches(
        self,
        x: Inputs,
        summarise: Callable[[Predictions, slice], dict[str, Any]],
        batch_size: int | None = None,
    ) -> dict[str, np.ndarray]:
        """Summaries of the predictive at every row, in bounded memory at any number of rows.

        Args:
            x: inputs, any number of rows.
            summarise: (predictive of a batch, its rows) -> arrays (point, ...), by name.
            batch_size: rows at a time; see `batch_rows` for the default. The last batch is filled
                up with copies, so one shape is compiled.
        Raises:
            InputError: for no rows at all, or a batch_size below 1.
        """
        x = np.asarray(x)
        if len(x) == 0:
            raise InputError("There is nothing to predict: the inputs have no rows.")
        if batch_size is not None and batch_size < 1:
            raise InputError(f"Needs at least one row at a time, got batch_size={batch_size}.")
        size = batch_size or batch_rows(len(x), self.num_members)
        if batch_size is None and x.ndim > 2:
            size = min(size, MOST_IMAGES)
        parts = []
        for start in range(0, len(x), size):
            rows = slice(start, min(start + size, len(x)))
            missing = size - (rows.stop - rows.start)
            batch = np.pad(x[rows], [(0, missing)] + [(0, 0)] * (x.ndim - 1), mode="edge")
            summary = summarise(self.predictive(batch), rows)
            parts.append(
                {name: np.asarray(value)[: size - missing] for name, value in summary.items()}
            )
        return concatenate(parts)


def batch_rows(num_points: int, num_members: int) -> int:
    """Rows at a time so that members x rows stays near 2^20, in powers of two from 64 on.

    Few shapes, so that tables of similar length share compiled programs; and whole vectors, so that
    a row's prediction does not depend on where in the batch it stands.
    """
    most = max(64, 2 ** int(np.log2(2**20 / num_members)))
    return min(most, max(64, 2 ** int(np.ceil(np.log2(num_points)))))
