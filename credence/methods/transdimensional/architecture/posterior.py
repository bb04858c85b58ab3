"""Posterior over architectures: what chains that change their widths and depth say of it."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from credence.ensembles.diagnostics._checks import finite
from credence.ensembles.diagnostics.convergence import (
    ESS_LIMIT,
    MIN_DRAWS,
    RHAT_LIMIT,
    ess_bulk,
    mcse_mean,
    rhat,
    too_few,
)
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.findings import Finding
from credence.html.markup import Html
from credence.methods.transdimensional.architecture.saved import checked
from credence.methods.transdimensional.architecture.selection import widths_of
from credence.methods.transdimensional.architecture.sentences import architecture_sentences
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

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "WidthPosterior":
        """Undo what `Architecture.to_dict` did; None is NaN."""
        return cls(
            tuple(found["widths"]),
            tuple(found["probabilities"]),
            tuple(map(_or_nan, found["standard_errors"])),
            found["mode"],
            found["mean"],
            _or_nan(found["rhat"]),
            _or_nan(found["ess"]),
        )

    def __str__(self) -> str:
        rows = (
            f"{k:5d}  {p:.3f} ± {e:.3f}"
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
class Joint:
    """A depth and a number of neurons, and their share of the draws."""

    depth: int
    neurons: int
    probability: float


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
class Architecture(Finding):
    """p(architecture | data), and whether chains over architectures are to be believed."""

    name: ClassVar[str] = "architecture"

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
    joint: tuple[Joint, ...] = ()
    """Share of every depth with every number of neurons in all its layers, where both vary."""

    @property
    def size(self) -> WidthPosterior:
        """Posterior of the depth where that is unknown, else of the width."""
        return self.depth or self.width

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
        """Return it as JSON data; NaN becomes None, an infinite R-hat "inf"."""
        found = asdict(self) | {"max_rhat": self.max_rhat, "min_ess": self.min_ess}
        found["converged"] = found.pop("settled")
        found["jumps"] = {
            name: asdict(each) | {"rate": each.rate} for name, each in self.jumps.items()
        }
        return jsonable(found, spell_infinite=True)

    @classmethod
    def of(cls, ensemble: Ensemble) -> "Architecture | None":
        """Sum up the scalars of an ensemble: see `architecture_posterior`."""
        return architecture_posterior(ensemble.scalars)

    @classmethod
    def read(
        cls, metrics: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> "Architecture | None":
        """Read back what `to_dict` returned."""
        if cls.name not in metrics:
            return None
        found = checked(metrics[cls.name])
        return cls(
            likeliest=tuple(
                Listed(tuple(each["widths"]), each["probability"], _or_nan(each["standard_error"]))
                for each in found["likeliest"]
            ),
            width=WidthPosterior.from_dict(found["width"]),
            layers=tuple(map(WidthPosterior.from_dict, found["layers"])),
            depth=None if found["depth"] is None else WidthPosterior.from_dict(found["depth"]),
            jumps={
                name: Jumps(each["tried"], each["accepted"])
                for name, each in found["jumps"].items()
            },
            num_architectures=found["num_architectures"],
            num_states=found["num_states"],
            num_draws=found["num_draws"],
            joint=tuple(Joint(**each) for each in found.get("joint", ())),
            settled=found["converged"],
            reason=found["reason"],
        )

    def entries(self) -> dict[str, Any]:
        """Return one entry, `architecture`."""
        return {self.name: self.to_dict()}

    def sentences(self) -> list[str]:
        """The likeliest sizes, how sure that is, and how the chains moved."""
        return architecture_sentences(self.to_dict())

    def section(self, seconds: Mapping[str, float], *, is_converged: bool) -> Html:
        """How large the network should be."""
        from credence.methods.transdimensional.architecture.section import architecture_section

        return architecture_section(self.to_dict(), is_converged=is_converged)


def architecture_posterior(
    scalars: Mapping[str, Float[np.ndarray, "chain draw"]],
) -> Architecture | None:
    """What an ensemble's scalars say of the architecture; None where it is fixed.

    Settled: R-hat of the width of every layer, of all neurons and of the depth < `RHAT_LIMIT`,
    their bulk ESS >= `ESS_LIMIT`, and of the jumps tried at least one was accepted.

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
        joint=() if depth is None else _joint(depth, scalars["width"]),
    )
    num_draws = widths.shape[1]
    faults = _faults(found) if num_draws >= MIN_DRAWS else [too_few(num_draws)]
    settled = (
        "The architecture never changed."
        if np.isnan(found.min_ess)
        else f"Of the architecture: R-hat at most {found.max_rhat:.3f}, bulk ESS at least "
        f"{found.min_ess:.0f}."
    )
    return replace(found, settled=not faults, reason=" ".join(faults) or settled)


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


def _joint(depth: np.ndarray, neurons: np.ndarray) -> tuple[Joint, ...]:
    """Shares of depth and neurons together; none where the depth tells the neurons."""
    pairs, counts = np.unique(
        np.stack([np.ravel(depth), np.ravel(neurons)]).astype(int), axis=1, return_counts=True
    )
    if len(counts) == len(np.unique(pairs[0])):
        return ()
    shares = counts / counts.sum()
    return tuple(Joint(int(d), int(n), float(p)) for (d, n), p in zip(pairs.T, shares, strict=True))


def _jumps(scalars: Mapping[str, np.ndarray]) -> dict[str, Jumps]:
    kinds = [name.removeprefix(ACCEPTED) for name in scalars if name.startswith(ACCEPTED)]
    total = lambda name: int(np.sum(np.asarray(scalars[name], float)))  # noqa: E731
    return {kind: Jumps(total(TRIED + kind), total(ACCEPTED + kind)) for kind in kinds}


def _faults(found: Architecture) -> list[str]:
    """Why the architecture is not to be believed."""
    tried = sum(each.tried for each in found.jumps.values())
    if tried and not sum(each.accepted for each in found.jumps.values()):
        return ["No jump between architectures was accepted: try other moves."]
    if np.isnan(found.max_rhat) and not np.isnan(found.min_ess):
        return ["One chain cannot be compared with another: run more chains."]
    disagree = {name: each.rhat for name, each in found.judged.items() if each.rhat >= RHAT_LIMIT}
    few = {name: each.ess for name, each in found.judged.items() if each.ess < ESS_LIMIT}
    faults = []
    if disagree:
        worst = max(disagree, key=lambda name: disagree[name])
        faults.append(
            f"The chains disagree about the {worst}: its R-hat is {disagree[worst]:.3f}, not below "
            f"{RHAT_LIMIT:g}; draw more, or try other moves."
        )
    if few:
        worst = min(few, key=lambda name: few[name])
        faults.append(
            f"The {worst} changes too seldom: its bulk ESS is {few[worst]:.0f}, below "
            f"{ESS_LIMIT:g}; draw more, or try other moves."
        )
    return faults


def _or_nan(value: float | str | None) -> float:
    return float("nan") if value is None else float(value)


def _over(values: list[float], extreme: Callable[[np.ndarray], Any]) -> float:
    """The extreme of those values that are numbers; NaN where none is."""
    known = np.array([value for value in values if not np.isnan(value)])
    return float(extreme(known)) if known.size else float("nan")
