"""Several ensembles that predict together, weighted by what they say of rows they have not seen.

Yao, Vehtari, Simpson & Gelman, "Using stacking to average Bayesian predictive distributions"
(2018): the weights give unseen rows the highest probability. Models that are all wrong may do well
together, and one that is nearly right gets nearly all the weight.

Yao, Vehtari & Gelman, "Stacking for non-mixing Bayesian computations: the curse and blessing of
multimodal posteriors" (2022): chains that stay in modes of their own are models of their own. So
each chain gets a weight, by default.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, ClassVar, NotRequired, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from credence.ensembles.arviz import Groups, targets, without_single
from credence.ensembles.beta_transformed import BetaTransformed
from credence.ensembles.diagnostics.cost import Cost
from credence.ensembles.diagnostics.recalibration import Recalibration, checked
from credence.ensembles.diagnostics.stacking import (
    MIN_DRAWS,
    LeaveOneOut,
    leave_one_out,
    mean_with_error,
    stacking_weights,
)
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.mixture import Mixture
from credence.ensembles.predictive import Predictions
from credence.ensembles.predictor import Inputs, Predictor
from credence.ensembles.provenance import Provenance
from credence.ensembles.saved import EnsembleDocument
from credence.errors import InputError, check_share
from credence.models.networks.mlp import Network
from credence.storage import file_sha256, read_json, reading, require_sha256, write_json

FEW_ROWS = 30
"""Rows below which weights say little; they are then drawn towards equal ones."""


@dataclass(frozen=True)
class Candidate:
    """A chain or an ensemble that might be in a stack, and its scores."""

    ensemble: int
    """The place of its ensemble among those that were given."""
    chain: int | None
    """The chain of that ensemble; None for all together."""
    log_score: float
    """Mean log probability of an unseen row, nats."""
    log_score_error: float
    """Standard error over rows."""
    share_unreliable: float | None
    """Share of the rows whose leave-one-out score is not to be trusted; None for held-out rows."""
    weight: float
    """Weight of the candidate in the stack."""
    name: str = ""
    """Words for people; empty where nobody gave any."""


class StackDocument(TypedDict):
    """The entries of stack.json."""

    weights: list[float]
    mean_weights: NotRequired[list[float] | None]
    shape: NotRequired[float]
    recalibration: NotRequired[Recalibration | None]
    parts_sha256: list[str]
    cost: Cost
    provenance: Provenance
    candidates: list[Candidate]
    num_rows: int


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
        recalibration: what rows that chains had left out say of the stack's predictions.
        shape: of the beta law that makes the mixture as narrow as these rows say; 1 for none.
    """

    document: ClassVar[str] = "stack.json"

    parts: tuple[Ensemble, ...]
    part_weights: Float[np.ndarray, " part"]
    cost: Cost
    provenance: Provenance
    candidates: tuple[Candidate, ...] = ()
    num_rows: int = 0
    mean_weights: Float[np.ndarray, " part"] | None = None
    recalibration: Recalibration | None = None
    shape: float = 1.0

    def __repr__(self) -> str:
        listed = ", ".join(
            f"{weight:.2f} of {part!r}"
            for weight, part in zip(self.part_weights, self.parts, strict=True)
        )
        return f"Stack({listed})"

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
    def is_equally_weighted(self) -> bool:
        """Whether all members count the same; the weights of parts differ."""
        return False

    def predictive(self, x: Inputs) -> Predictions:
        """Predictions at the rows of x: the mixture of what the parts predict, beta-transformed
        where rows that they left out ask for it."""
        parts = tuple(part.predictive(x) for part in self.parts)
        mixture = Mixture(parts, self.part_weights, self.mean_weights)
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
            draws = predictive.sample(jax.random.fold_in(key, rows.start), self.num_draws)
            return {"y": np.moveaxis(np.asarray(draws), 0, 1)}

        draws = np.moveaxis(self.over_batches(x, drawn)["y"], 1, 0)[None]
        groups = {"posterior_predictive": {"y": without_single(draws)}}
        if y is not None:
            groups["observed_data"] = {"y": without_single(targets(self.parts[0], x, y))}
        return groups

    def save(self, folder: str | Path) -> None:
        """Write folder/stack.json, and each part into a folder of its own beside it.

        Raises:
            StorageError: where the folder cannot be written or the disk is full.
        """
        folder = Path(folder)
        for index, part in enumerate(self.parts):
            part.save(folder / f"part_{index}")
        document = {
            "weights": np.asarray(self.part_weights, float).tolist(),
            "mean_weights": None if self.mean_weights is None else self.mean_weights.tolist(),
            "shape": self.shape,
            "recalibration": self.recalibration,
            "parts_sha256": [
                file_sha256(folder / f"part_{index}" / "ensemble.json")
                for index in range(len(self.parts))
            ],
            "cost": self.cost.to_dict(),
            "provenance": asdict(self.provenance),
            "candidates": [asdict(candidate) for candidate in self.candidates],
            "num_rows": self.num_rows,
        }
        write_json(folder / self.document, document)

    @classmethod
    def load(cls, folder: str | Path, network: Network | None = None) -> "Stack":
        """Read what `save` wrote; nothing in the files is executed.

        Args:
            folder: as given to `save`.
            network: the same network again, where all parts have one that is not Credence's own.
        Raises:
            StorageError: where files are missing, broken or of another version.
            InputError: where the network is needed but not given, or is another one.
        """
        folder = Path(folder)
        document = read_json(folder / "stack.json", StackDocument)
        weights = np.asarray(document["weights"], float)
        of_means = document.get("mean_weights")
        mean_weights = None if of_means is None else np.asarray(of_means, float)
        with reading(folder / "stack.json"):
            for found in (weights,) if mean_weights is None else (weights, mean_weights):
                if not len(found) or not (found >= 0).all() or abs(found.sum() - 1) > 1e-6:
                    raise ValueError(f"weights {found} are not >= 0 with sum one")
                if len(document["parts_sha256"]) != len(found):
                    raise ValueError(
                        f"{len(document['parts_sha256'])} checksums of {len(found)} parts"
                    )
        for index, digest in enumerate(document["parts_sha256"]):
            require_sha256(folder / f"part_{index}" / "ensemble.json", digest)
        parts = tuple(Ensemble.load(folder / f"part_{i}", network) for i in range(len(weights)))
        shape = document.get("shape", 1.0)
        with reading(folder / "stack.json"):
            if not shape >= 1 or (shape > 1 and parts[0].num_predicted > 1):
                raise ValueError(f"shape {shape} is not 1, nor larger for one target")
        recalibration = document.get("recalibration")
        if recalibration is not None:
            with reading(folder / "stack.json"):
                checked(recalibration, is_classifier=parts[0].is_classifier)
        return cls(
            parts,
            weights,
            document["cost"],
            document["provenance"],
            tuple(document["candidates"]),
            document["num_rows"],
            mean_weights,
            recalibration,
            shape,
        )


def load_predictor(folder: str | Path, network: Network | None = None) -> Ensemble | Stack:
    """Read an ensemble or a stack, whichever a folder holds; nothing in it is executed.

    Args:
        network: the same network again, where it is not one of Credence's own.
    Raises:
        StorageError: where files are missing, broken or of another version.
        InputError: where the network is needed but not given, or is another one.
    """
    folder = Path(folder)
    if _holds_stack(folder):
        return Stack.load(folder, network)
    return Ensemble.load(folder, network)


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


def stack(
    ensembles: Sequence[Ensemble],
    x: Inputs,
    y: Any,
    *,
    held_out: bool = False,
    by_chain: bool = True,
    least_weight: float = 0.01,
) -> Stack:
    """Combine ensembles so that their mixture predicts unseen rows best.

    Args:
        ensembles: of one task, fitted to the same rows.
        x, y: rows, as the ensembles saw them: standardised inputs, targets in their units. Rows
            that the ensembles were fitted to are scored by leave-one-out.
        held_out: whether no ensemble has seen these rows; they are then scored as they are.
        by_chain: weigh each Markov chain of an ensemble by itself.
        least_weight: what has less is left out, and the other weights are scaled up.
    Raises:
        InputError: for no ensembles, targets that do not fit, signed weights, or anything but
            chains of at least 25 draws where rows are to be left out one by one.
    """
    check_share("0.01 is usual", least_weight=least_weight)
    if not ensembles:
        raise InputError("stack got no ensembles: pass at least one.")
    parts = [
        (index, chain, part)
        for index, ensemble in enumerate(ensembles)
        for chain, part in _parts(ensemble, by_chain)
    ]
    found = [_scores(part, x, y, held_out) for _, _, part in parts]
    candidates = [
        Candidate(index, chain, *mean_with_error(each.log_probs), each.share_unreliable, 0.0)
        for (index, chain, _), each in zip(parts, found, strict=True)
    ]
    if held_out:
        candidates = [replace(each, share_unreliable=None) for each in candidates]
    first = ensembles[0].provenance
    return weighed(
        [part for _, _, part in parts],
        np.stack([each.log_probs for each in found], axis=1),
        candidates,
        cost=reduce(add, (ensemble.cost for ensemble in ensembles)),
        provenance=Provenance("stack", {"held_out": held_out}, None, first.data_fingerprint),
        least_weight=least_weight,
    )


def weighed(
    parts: Sequence[Ensemble],
    log_probs: Float[np.ndarray, "point part"],
    candidates: Sequence[Candidate],
    *,
    cost: Cost,
    provenance: Provenance,
    least_weight: float = 0.01,
) -> Stack:
    """The stack of parts whose scores of unseen rows are known.

    Args:
        parts: candidates as ensembles.
        log_probs: log p_k(y_i | rows without i), nats.
        candidates: what is known of each part but for its weight.
        cost, provenance: of the stack.
        least_weight: what has less is left out, and the other weights are scaled up.
    """
    prior_rows = 1.0 if len(log_probs) >= FEW_ROWS else float(FEW_ROWS)
    weights = stacking_weights(log_probs, prior_rows=prior_rows)
    weights = np.where(weights >= min(least_weight, weights.max()), weights, 0.0)
    weights /= weights.sum()
    kept = np.flatnonzero(weights)
    return Stack(
        tuple(parts[int(i)] for i in kept),
        weights[kept],
        cost,
        provenance,
        tuple(
            replace(each, weight=float(weight))
            for each, weight in zip(candidates, weights, strict=True)
        ),
        len(log_probs),
    )


def _parts(ensemble: Ensemble, by_chain: bool) -> list[tuple[int | None, Ensemble]]:
    """The chains of an ensemble, or the whole of it."""
    if ensemble.weights is not None and np.any(np.asarray(ensemble.weights) < 0):
        raise InputError(
            f"{ensemble} has signed weights, and a stack is a mixture: leave it out of the stack."
        )
    if not (by_chain and ensemble.is_chain):
        return [(None, ensemble)]
    chain_of = np.indices((ensemble.num_chains, ensemble.num_draws))[0]
    return [
        (chain, ensemble.subset(chain_of == chain, is_chain=True))
        for chain in range(ensemble.num_chains)
    ]


def _scores(ensemble: Ensemble, x: Inputs, y: Any, held_out: bool) -> LeaveOneOut:
    """Log probabilities of rows that the ensemble has not seen, or as if it had not."""
    y = np.asarray(ensemble.model.likelihood.checked_targets(y))
    if len(y) != len(x):
        raise InputError(f"x has {len(x)} rows and y has {len(y)}: they must match row by row.")
    if not held_out and not (ensemble.is_chain and ensemble.num_members >= MIN_DRAWS):
        raise InputError(
            f"Rows can only be left out of Markov chains of at least {MIN_DRAWS} draws, got "
            f"{ensemble}: draw more, or pass rows that no ensemble has seen, with held_out=True."
        )

    if held_out:
        found = log_probs(ensemble, x, y)
        return LeaveOneOut(found, np.full(len(found), -np.inf))
    return leave_one_out(log_probs(ensemble, x, y, by_member=True).T)


def log_probs(
    ensemble: Ensemble, x: Inputs, y: np.ndarray, *, by_member: bool = False
) -> Float[np.ndarray, "point *member"]:
    """Log probability of every row by an ensemble, or by each of its members, in nats.

    Args:
        x, y: rows, as the ensemble saw them.
    """

    def of_batch(predictive: Predictions, rows: slice) -> dict[str, Any]:
        truth = jnp.asarray(np.resize(y[rows], (predictive.num_points, *y.shape[1:])))
        if by_member:
            return {"log_prob": predictive.member_log_probs(truth).T}
        return {"log_prob": predictive.log_prob(truth)}

    return ensemble.over_batches(x, of_batch)["log_prob"].astype(float)
