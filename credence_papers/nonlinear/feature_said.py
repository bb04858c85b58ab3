"""Probabilities that a contender gives the test images: kept, and compared with those of others."""

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from credence.ensembles.averages import AveragedPredictions
from credence.ensembles.ensemble import Ensemble
from credence.storage import read_arrays, write_arrays

AT_ONCE = 500
"""Rows for which the probabilities of all members are in memory."""
LEAST = 1e-7
"""Probabilities are not told apart below it: half precision ends there."""


@dataclass(frozen=True, eq=False)
class Said:
    """Class probabilities of every test row, in half precision: .4 MB for 10,000 of them."""

    mean: Float[np.ndarray, "point target"]
    std: Float[np.ndarray, "point target"]
    """Standard deviation over the members."""
    nll: Float[np.ndarray, " point"]
    """Negative log probability of the truth, in nats."""

    @classmethod
    def of_averages(cls, averaged: AveragedPredictions, y: Int[np.ndarray, " point"]) -> "Said":
        """Said by averages."""
        return cls.by(averaged.mean(), averaged.epistemic_variance(), y)

    @classmethod
    def of_members(
        cls, ensemble: Ensemble, x: Float[np.ndarray, "point feature"], y: Int[np.ndarray, " point"]
    ) -> "Said":
        """Said by the members of an ensemble."""
        parts = [ensemble.predictive(x[i : i + AT_ONCE]) for i in range(0, len(x), AT_ONCE)]
        mean, variance = (
            np.concatenate([np.asarray(of(part), float) for part in parts])
            for of in (lambda part: part.mean(), lambda part: part.epistemic_variance())
        )
        return cls.by(mean, variance, y)

    @classmethod
    def by(
        cls,
        mean: Float[np.ndarray, "point target"],
        variance: Float[np.ndarray, "point target"],
        y: Int[np.ndarray, " point"],
    ) -> "Said":
        """Rounded from means and variances over members, and truths."""
        nll = -np.log(np.maximum(mean[np.arange(len(y)), y], LEAST))
        return cls(
            mean.astype(np.float16), np.sqrt(variance).astype(np.float16), nll.astype(np.float32)
        )

    @classmethod
    def read(cls, path: Path) -> "Said":
        """Read what was kept.

        Raises:
            StorageError: where it is missing or damaged.
        """
        return cls(**read_arrays(path))

    def write(self, path: Path) -> None:
        """Keep it in a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_arrays(path, asdict(self))


def against_reference(said: Said, reference: Said) -> dict[str, float]:
    """How far probabilities are from those of the posterior: means over the test rows.

    Returns:
        total_variation; kl, of what is said from the reference, in nats; std_ratio, of the root
        mean square deviation between members to that of the reference.
    """
    p, q = (each.mean.astype(float) for each in (said, reference))
    log_p, log_q = (np.log(np.maximum(each, LEAST)) for each in (p, q))
    return {
        "total_variation": float(0.5 * np.abs(p - q).sum(axis=1).mean()),
        "kl": float((q * (log_q - log_p)).sum(axis=1).mean()),
        "std_ratio": _width(said) / _width(reference),
    }


def against_baseline(said: Said, baseline: Said) -> dict[str, float]:
    """How much more the negative log likelihood is, in nats, with its standard error over the test
    rows: the same rows for both, whose own difficulty then counts no more."""
    more = said.nll.astype(float) - baseline.nll.astype(float)
    error = float(more.std(ddof=1) / len(more) ** 0.5)
    return {"nll_more": float(more.mean()), "nll_more_over_rows": error}


def _width(said: Said) -> float:
    """Root mean square deviation between members."""
    return float(np.sqrt(np.mean(said.std.astype(float) ** 2)))
