"""Posterior over architectures: what chains that change their widths and depth say of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from credence.ensembles.diagnostics._checks import finite
from credence.ensembles.diagnostics.convergence import (
    MIN_DRAWS,
    Convergence,
    ess_bulk,
    mcse_mean,
    rhat,
)
from credence.ensembles.ensemble import Ensemble
from credence.errors import InputError
from credence.storage import jsonable

TRIED, ACCEPTED = "num_jumps_", "num_jumps_accepted_"
"""Scalars of jumps by kind: a prefix before its name."""
NUM_LISTED = 10
"""Architectures listed by their probability."""


@dataclass(frozen=True)
class WidthPosterior:
    """p(width | data), or p(depth | data), with its Monte Carlo error.

    `rhat` and `ess` are of the width itself; NaN where no chain ever changes it, or for one chain.
    """

    widths: tuple[int, ...]
    probabilities: tuple[float, ...]
    standard_errors: tuple[float, ...]
    """Monte Carlo, from the autocorrelation of "the width is k"; NaN where that never changes."""
    mode: int
    mean: float
    rhat: float
    ess: float

    def __str__(self) -> str:
        rows = (
            f"{k:5d}  {p:.3f} +- {e:.3f}"
            for k, p, e in zip(self.widths, self.probabilities, self.standard_errors, strict=True)
        )
        about = f"mode {self.mode}, mean {self.mean:.1f}, R-hat {self.rhat:.3f}, ESS {self.ess:.0f}"
        return "\n".join(["width  probability", *rows, about])


@dataclass(frozen=True)
class Listed:
    """An architecture and its share of the draws."""

    widths: tuple[int, ...]
    """Neurons of every hidden layer that there is."""
    probability: float
    standard_error: float
    """Monte Carlo; NaN where the chains are always or never there."""


@dataclass(frozen=True)
class Jumps:
    """Jumps of one kind that stayed in the prior's support: those tried, and those accepted."""

    tried: int
    accepted: int

    @property
    def rate(self) -> float:
        """Share accepted; NaN where none was tried."""
        return self.accepted / self.tried if self.tried else float("nan")


@dataclass(frozen=True)
class Architecture:
    """p(architecture | data), and whether chains over architectures are to be believed."""

    likeliest: tuple[Listed, ...]
    """Most probable first: the first is the MAP architecture."""
    width: WidthPosterior
    """Posterior of the number of neurons in all hidden layers together."""
    layers: tuple[WidthPosterior, ...]
    """Posterior of the width of every hidden layer; it is 0 where the layer is absent."""
    depth: WidthPosterior | None
    """Posterior of the number of hidden layers, or None where that never changes."""
    jumps: Mapping[str, Jumps]
    """The jumps tried and accepted, by their kind."""
    num_architectures: int
    """Number of different architectures visited."""
    num_states: int
    """Number of draws whose widths or weights differ from those of the draw before."""
    num_draws: int
    """Number of draws of all chains together."""
    converged: bool
    reason: str

    @property
    def judged(self) -> dict[str, WidthPosterior]:
        """All counts that R-hat is taken of, by name."""
        found = {"width": self.width}
        if len(self.layers) > 1:
            found |= {f"width of layer {i}": each for i, each in enumerate(self.layers, 1)}
        return found if self.depth is None else found | {"depth": self.depth}

    @property
    def max_rhat(self) -> float:
        """Largest R-hat of a count that changes; NaN where none does."""
        return _over([each.rhat for each in self.judged.values()], np.max)

    @property
    def min_ess(self) -> float:
        """Smallest bulk ESS of a count that changes; NaN where none does."""
        return _over([each.ess for each in self.judged.values()], np.min)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data; NaN becomes None."""
        found = asdict(self) | {"max_rhat": self.max_rhat, "min_ess": self.min_ess}
        found["jumps"] = {
            name: asdict(each) | {"rate": each.rate} for name, each in self.jumps.items()
        }
        return jsonable(found)


def architecture_posterior(
    scalars: Mapping[str, Float[np.ndarray, "chain draw"]],
    *,
    rhat_threshold: float = 1.05,
    min_ess: float = 100.0,
) -> Architecture | None:
    """What an ensemble's scalars say of the architecture; None where it is fixed.

    Converged: R-hat of the width of every layer, of all neurons and of the depth <
    `rhat_threshold`, their bulk ESS >= `min_ess`, and of the jumps tried at least one was accepted.

    Args:
        scalars: of `Transdimensional`: width, width_1, width_2, ..., depth, num_jumps_NAME,
            num_jumps_accepted_NAME, has_moved.
    """
    widths = widths_of(scalars)
    if widths is None:
        return None
    num_layers, depth = widths.shape[-1], scalars.get("depth")
    found = Architecture(
        likeliest=_likeliest(widths),
        width=width_posterior(np.asarray(scalars["width"], float)),
        layers=tuple(width_posterior(widths[..., i].astype(float)) for i in range(num_layers)),
        depth=None if depth is None else width_posterior(np.asarray(depth, float)),
        jumps=_jumps(scalars),
        num_architectures=len(np.unique(widths.reshape(-1, num_layers), axis=0)),
        num_states=len(widths) + int(np.sum(np.asarray(scalars["has_moved"])[:, 1:])),
        num_draws=int(np.prod(widths.shape[:2])),
        converged=True,
        reason="",
    )
    faults = _faults(found, rhat_threshold, min_ess)
    settled = (
        "The architecture never changed."
        if np.isnan(found.min_ess)
        else f"Of the architecture: R-hat at most {found.max_rhat:.3f}, bulk ESS at least "
        f"{found.min_ess:.0f}."
    )
    return replace(found, converged=not faults, reason=" ".join(faults) or settled)


def widths_of(
    scalars: Mapping[str, Float[np.ndarray, "chain draw"]],
) -> Int[np.ndarray, "chain draw layer"] | None:
    """Neurons of every hidden layer, 0 where it is absent; None where the architecture is fixed."""
    if "width_1" not in scalars:
        return None
    names = [name for name in scalars if name.removeprefix("width_").isdigit()]
    names.sort(key=lambda name: int(name.removeprefix("width_")))
    return np.stack([np.asarray(scalars[name]) for name in names], axis=-1).astype(int)


def has_architecture(
    scalars: Mapping[str, Float[np.ndarray, "chain draw"]],
    widths: Sequence[int] | None = None,
    depth: int | None = None,
) -> Bool[np.ndarray, "chain draw"]:
    """Whether each draw has these widths of its layers and this depth; None allows any.

    Raises:
        InputError: where the architecture never changes.
    """
    found = widths_of(scalars)
    if found is None:
        raise InputError("All draws have the same architecture: use method='transdimensional'.")
    is_there = np.ones(found.shape[:2], bool)
    if widths is not None:
        wanted = np.zeros(found.shape[-1], int)
        count = min(len(widths), len(wanted))
        wanted[:count] = list(widths)[:count]
        is_there &= (found == wanted).all(axis=-1) & (len(widths) <= len(wanted))
    if depth is not None:
        is_there &= (found > 0).sum(axis=-1) == depth
    return is_there


def with_architecture(judged: Convergence, architecture: Architecture | None) -> Convergence:
    """The verdict on chains, those over architectures included: both must have converged."""
    if architecture is None or judged.converged is None:
        return judged
    parts = [(judged.converged, judged.reason), (architecture.converged, architecture.reason)]
    converged = all(is_good for is_good, _ in parts)
    reason = " ".join(text for is_good, text in parts if converged or not is_good)
    return replace(judged, converged=converged, reason=reason)


def width_posterior(
    widths: Float[np.ndarray, "chain draw"], max_width: int | None = None
) -> WidthPosterior:
    """Shares of the draws at each width.

    Args:
        widths: an ensemble's scalar "width", neurons of all hidden layers together.
        max_width: the largest to list; by default the largest seen.
    Raises:
        ValueError: for values that are not finite, or widths above max_width.
    Too few draws to judge (fewer than 4 per chain) give NaN in place of R-hat, ESS and errors.
    """
    widths = finite("widths", widths)
    if max_width is not None and widths.max() > max_width:
        raise ValueError(
            f"max_width={max_width} leaves out widths up to {int(widths.max())}: with several "
            "hidden layers a width counts the neurons of all of them."
        )
    listed = np.arange(min(1, int(widths.min())), int(max_width or widths.max()) + 1)
    is_there = (widths[..., None] == listed).astype(float)
    probabilities = is_there.mean(axis=(0, 1))
    is_judged = widths.shape[1] >= MIN_DRAWS
    unknown = np.full(len(listed), np.nan)
    return WidthPosterior(
        tuple(listed.tolist()),
        tuple(probabilities.tolist()),
        tuple((mcse_mean(is_there) if is_judged else unknown).tolist()),
        int(listed[np.argmax(probabilities)]),
        float(widths.mean()),
        float(rhat(widths)) if is_judged and len(widths) > 1 else float("nan"),
        float(ess_bulk(widths)) if is_judged else float("nan"),
    )


def _likeliest(widths: Int[np.ndarray, "chain draw layer"]) -> tuple[Listed, ...]:
    """Architectures by their share of the draws."""
    rows, places, counts = np.unique(
        widths.reshape(-1, widths.shape[-1]), axis=0, return_inverse=True, return_counts=True
    )
    order = np.argsort(-counts, kind="stable")[:NUM_LISTED]
    is_there = (places.reshape(widths.shape[:2])[..., None] == order).astype(float)
    errors = (
        mcse_mean(is_there) if widths.shape[1] >= MIN_DRAWS else np.full(len(order), float("nan"))
    )
    return tuple(
        Listed(tuple(rows[i][rows[i] > 0].tolist()), float(counts[i] / counts.sum()), float(error))
        for i, error in zip(order, errors, strict=True)
    )


def _jumps(scalars: Mapping[str, np.ndarray]) -> dict[str, Jumps]:
    kinds = [name.removeprefix(ACCEPTED) for name in scalars if name.startswith(ACCEPTED)]
    total = lambda name: int(np.sum(np.asarray(scalars[name], float)))  # noqa: E731
    return {kind: Jumps(total(TRIED + kind), total(ACCEPTED + kind)) for kind in kinds}


def _faults(found: Architecture, rhat_threshold: float, min_ess: float) -> list[str]:
    """Why the architecture is not to be believed."""
    tried = sum(each.tried for each in found.jumps.values())
    if tried and not sum(each.accepted for each in found.jumps.values()):
        return ["No jump between architectures was accepted: try other moves."]
    disagree = {
        name: each.rhat for name, each in found.judged.items() if each.rhat >= rhat_threshold
    }
    few = {name: each.ess for name, each in found.judged.items() if each.ess < min_ess}
    faults = []
    if disagree:
        worst = max(disagree, key=lambda name: disagree[name])
        faults.append(
            f"The chains disagree about the {worst}: its R-hat is {disagree[worst]:.3f}, not below "
            f"{rhat_threshold:g}; draw more, or try other moves."
        )
    if few:
        worst = min(few, key=lambda name: few[name])
        faults.append(
            f"The {worst} changes too seldom: its bulk ESS is {few[worst]:.0f}, below {min_ess:g}; "
            "draw more, or try other moves."
        )
    return faults


def _over(values: list[float], extreme: Callable[[np.ndarray], Any]) -> float:
    """The extreme of those values that are numbers; NaN where none is."""
    known = np.array([value for value in values if not np.isnan(value)])
    return float(extreme(known)) if known.size else float("nan")


def given(
    ensemble: Ensemble,
    *,
    widths: Sequence[int] | None = None,
    depth: int | None = None,
    chain: int | None = None,
) -> Ensemble:
    """Take some of the draws: predictions given an architecture, or of one chain.

    Args:
        ensemble: of `Transdimensional`.
        widths: neurons of every hidden layer that there is: (4,), or (3, 3).
        depth: number of hidden layers.
        chain: index of a chain; None pools all chains.
    Returns:
        One chain of these draws, in their order; draws chosen by architecture or from several
        chains are no Markov chain, and is_chain is False.
    Raises:
        InputError: where no draw is like that, the architecture never changes, or nothing is
            asked for.
    """
    if widths is None and depth is None and chain is None:
        raise InputError("Say of what: given(widths=(4,)), given(depth=2) or given(chain=0).")
    is_there = np.ones((ensemble.num_chains, ensemble.num_draws), bool)
    if chain is not None:
        is_there &= (np.arange(ensemble.num_chains) == chain)[:, None]
    if widths is not None or depth is not None:
        is_there &= has_architecture(ensemble.scalars, widths, depth)
    if not is_there.any():
        raise InputError(
            f"No draw has widths={widths}, depth={depth}, chain={chain}: "
            "architecture_posterior(ensemble.scalars) lists what was visited."
        )
    return ensemble.subset(is_there, is_chain=widths is None and depth is None)
