"""Several ensembles that predict together, each with a weight that `weighing` finds."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Float

from credence.ensembles.arviz import Groups, targets, without_single
from credence.ensembles.beta_transformed import BetaTransformed
from credence.ensembles.candidate import Candidate
from credence.ensembles.diagnostics.cost import Cost
from credence.ensembles.diagnostics.recalibration import (
    LEAST_LEVEL,
    Recalibration,
    from_pit,
    from_probabilities,
)
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.mixture import Mixture
from credence.ensembles.predictions import Predictions
from credence.ensembles.predictor import Inputs, Predictor
from credence.ensembles.provenance import Provenance
from credence.ensembles.saved import NOTHING_GIVEN, EnsembleDocument, Given, read_ensemble
from credence.ensembles.saved_stack import StackDocument, StackParts, read_stack, write_stack
from credence.ensembles.tempered import Tempered
from credence.errors import InputError
from credence.models.likelihoods.base import Likelihood
from credence.models.networks.mlp import Network
from credence.models.priors import Prior
from credence.storage import read_json


@dataclass(frozen=True)
class Stack(Predictor):
    """Ensembles of one task, perhaps of different networks, priors and likelihoods.

    Args:
        parts: the ensembles with a weight.
        part_weights: how much each counts, >= 0, sum one.
        cost: what all ensembles took, those without weight included.
        provenance: how the stack was made; each part has its own.
        candidates: all that were weighed, those without weight included.
        num_rows: how many rows the weights rest on.
        mean_weights: how much each part's mean counts in the predictive mean; None: as the part.
        shape: of the beta law that makes the mixture as narrow as left-out rows say; 1 for none.
        temperature: that makes the mixture of labels as sure as left-out rows say; 1 for none.
        left_out: what the parts together predict of rows that they had not seen, as networks see
            targets, with the names of `credence.ensembles.scores`; None where there are none.
        left_out_shape: that of the mixture of the few networks that predicted those.
    """

    document: ClassVar[str] = "stack.json"

    parts: tuple[Ensemble, ...]
    part_weights: Float[np.ndarray, " part"]
    cost: Cost
    provenance: Provenance
    candidates: tuple[Candidate, ...] = ()
    num_rows: int = 0
    mean_weights: Float[np.ndarray, " part"] | None = None
    shape: float = 1.0
    temperature: float = 1.0
    left_out: Mapping[str, np.ndarray] | None = None
    left_out_shape: float = 1.0

    def __repr__(self) -> str:
        listed = ", ".join(
            f"{weight:.2f} of {part!r}"
            for weight, part in zip(self.part_weights, self.parts, strict=True)
        )
        return f"Stack({listed})"

    @cached_property
    def recalibration(self) -> Recalibration | None:  # type: ignore[override]
        """Levels or temperature by left-out rows; None without any, and where predictions are not
        finite.

        Levels are those of the mixture before it is made narrower, so they do not depend on shapes.
        """
        from scipy.special import betainc, betaincinv

        predicted = "probabilities" if self.is_classifier else "pit"
        if self.left_out is None or not np.isfinite(self.left_out[predicted]).all():
            return None
        weight = self.left_out.get("weight")
        if self.is_classifier:
            return from_probabilities(self.left_out["probabilities"], self.left_out["y"], weight)
        pit, shape, few = self.left_out["pit"], self.shape, self.left_out_shape
        if shape != few:
            pit = betainc(shape, shape, betaincinv(few, few, pit.astype(float)))
        least_level = float(betainc(shape, shape, LEAST_LEVEL))
        return from_pit(pit, weight=weight, least_level=least_level)

    @property
    def is_chain(self) -> bool:  # type: ignore[override]
        """False: members are not in chains of one posterior."""
        return False

    @property
    def scalars(self) -> Mapping[str, Float[np.ndarray, "chain draw"]]:  # type: ignore[override]
        """None: each part has its own."""
        return {}

    @property
    def num_features(self) -> int | tuple[int, ...]:  # type: ignore[override]
        """Features of the data it was fitted to, or the shape of an image."""
        return self.parts[0].num_features

    @property
    def num_targets(self) -> int:  # type: ignore[override]
        """Targets of the data it was fitted to."""
        return self.parts[0].num_targets

    @property
    def num_chains(self) -> int:
        """One: members are not in chains of one posterior."""
        return 1

    @property
    def num_draws(self) -> int:
        """Networks in all."""
        return sum(part.num_members for part in self.parts)

    @property
    def num_predicted(self) -> int:
        """Targets, or classes, that are predicted for every row; known from shapes alone."""
        return self.parts[0].num_predicted

    @property
    def num_weights(self) -> int:
        """Parameters of the largest network."""
        return max(part.num_weights for part in self.parts)

    @property
    def is_classifier(self) -> bool:
        """Whether it predicts classes."""
        return self.parts[0].is_classifier

    @property
    def num_divergences(self) -> int:
        """Draws of all parts at the end of a trajectory that diverged."""
        return sum(part.num_divergences for part in self.parts)

    @property
    def is_equally_weighted(self) -> bool:
        """Whether all members count the same; the weights of parts differ."""
        return False

    def predictive(self, x: Inputs) -> Predictions:
        """Predictions at the rows of x: the mixture of what the parts predict, beta-transformed
        or tempered where rows that they left out ask for it."""
        parts = tuple(part.predictive(x) for part in self.parts)
        mixture = Mixture(parts, self.part_weights, self.mean_weights)
        if self.temperature < 1:
            return Tempered(mixture, self.temperature)
        return mixture if self.shape == 1 else BetaTransformed(mixture, self.shape)

    def functions(self, x: Inputs) -> Float[np.ndarray, "chain draw point target"]:
        """Noise-free predictions of as many networks as there are, each drawn by its weight: those
        that count much are repeated, so that all draws count the same."""
        predictive = self.predictive(x)
        edges = np.cumsum(np.asarray(predictive.weights, float))
        places = (np.arange(self.num_draws) + 0.5) / self.num_draws * edges[-1]
        return np.asarray(predictive.member_means())[np.searchsorted(edges, places)][None]

    def monitored(self, x: Inputs) -> Float[np.ndarray, "chain draw point quantity"]:
        """Noise-free predictions, as `functions`."""
        return self.functions(x)

    def arviz_groups(self, x: Inputs | None = None, y: Any = None, *, seed: int = 0) -> Groups:
        """Collect predictive draws, networks by their weight, and observations; see `to_arviz`.

        Networks of several kinds have neither parameters nor leave-one-out scores in common.
        """
        if x is None:
            raise InputError(
                "A stack has networks of several kinds, whose parameters ArviZ cannot hold "
                "together: pass the inputs for its predictions, or take one kind, "
                "parts[0].to_arviz()."
            )
        key = jax.random.key(seed)

        def drawn(predictive: Predictions, rows: slice) -> dict[str, Any]:
            draws = predictive.sample(key, self.num_draws, rows.start)
            return {"y": np.moveaxis(np.asarray(draws), 0, 1)}

        draws = np.moveaxis(self.over_batches(x, drawn)["y"], 1, 0)[None]
        groups = {"posterior_predictive": {"y": without_single(draws)}}
        if y is not None:
            groups["observed_data"] = {"y": without_single(targets(self.parts[0], x, y))}
        return groups

    def save(self, folder: str | Path) -> None:
        """Write folder/stack.json, and each part into a folder of its own beside it.

        An ensemble that was saved in the folder before is replaced.

        Raises:
            StorageError: where the folder cannot be written or the disk is full.
        """
        names = StackParts.__required_keys__
        write_stack(Path(folder), StackParts(**{name: getattr(self, name) for name in names}))

    @classmethod
    def load(
        cls,
        folder: str | Path,
        network: Network | None = None,
        *,
        prior: Prior | None = None,
        likelihood: Likelihood | None = None,
    ) -> "Stack":
        """Read what `save` wrote; nothing in the files is executed.

        Args:
            folder: as given to `save`.
            network, prior, likelihood: the same again, where parts have such that are not
                Credence's own.
        Raises:
            StorageError: where files are missing, broken or of another version.
            InputError: where one of them is needed but not given, or is another one.
        """
        return cls(**read_stack(Path(folder), Given(network, prior, likelihood)))


def load_predictor(folder: str | Path, given: Given = NOTHING_GIVEN) -> Ensemble | Stack:
    """Read an ensemble or a stack, whichever a folder holds; nothing in it is executed.

    Args:
        given: parts of models that are not Credence's own.
    Raises:
        StorageError: where files are missing, broken or of another version.
        InputError: where one of them is needed but not given, or is another one.
    """
    folder = Path(folder)
    if _holds_stack(folder):
        return Stack(**read_stack(folder, given))
    return Ensemble(**read_ensemble(folder, given))


def read_provenance(folder: Path) -> Provenance:
    """Read where an ensemble or a stack comes from, without its networks.

    Raises:
        StorageError: where the file is missing, broken or of another version.
    """
    if _holds_stack(folder):
        return read_json(folder / Stack.document, StackDocument)["provenance"]
    return read_json(folder / Ensemble.document, EnsembleDocument)["provenance"]


def _holds_stack(folder: Path) -> bool:
    return (folder / Stack.document).exists() and not (folder / Ensemble.document).exists()
