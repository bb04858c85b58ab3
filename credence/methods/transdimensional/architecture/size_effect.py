"""Does the size of the network matter? Predictions of all sizes together, and of some alone.

Draws that have a certain size are draws from the posterior of the networks of that size alone. So
one run tells what those of the likeliest size, the smallest and the largest would have predicted.
Each group is judged by how well it predicts training rows left out one at a time (see
`credence.ensembles.diagnostics.stacking.leave_one_out`). A row that stands for several observations
is left out with all of them, and its loss counts as often.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from credence.density.data import Data
from credence.density.posterior import BayesianModel, Posterior
from credence.ensembles.diagnostics.stacking import leave_one_out, mean_with_error
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.findings import Finding
from credence.html.markup import Html
from credence.html.parts import figure, section, table
from credence.html.wording import number, percent
from credence.schema import build
from credence.spacing import evenly_spaced
from credence.storage import jsonable

MOST_DRAWS, MOST_ROWS = 1000, 300
"""Draws and training rows that are looked at, evenly spaced."""
FEWEST = 50
"""Draws that a group needs to be judged."""
TAIL = 0.1
"""Share of the draws that make the smallest and the largest networks, or a little more."""
NATS_THAT_MATTER = 0.01
"""Difference in nats per row below which nobody would notice."""
MOST_BAD_ROWS = 0.1
"""Share of the rows whose weights are not to be trusted from which on a group is not judged."""


class Group(TypedDict):
    """Some of the draws, by the sizes of their networks."""

    name: str
    smallest: int
    largest: int
    share: float
    loss: float
    """Nats per left-out row by which it predicts worse than all draws together."""
    loss_error: float
    away: float
    """Root mean squared distance of its mean prediction from that of all draws: of probabilities,
    or in the unit of the targets that the network learnt from, mostly standard deviations."""
    is_judged: bool


class Entries(TypedDict):
    """The entry of metrics.json."""

    noun: str
    groups: list[Group]


class Document(TypedDict):
    """Metrics with that entry."""

    size_effect: Entries


@dataclass(frozen=True)
class SizeEffect(Finding):
    """What networks of some sizes alone predict, beside what all of them do."""

    name: ClassVar[str] = "size_effect"

    noun: str
    """What is counted: neurons, or layers."""
    groups: tuple[Group, ...]

    @classmethod
    def of(cls, ensemble: Ensemble) -> "SizeEffect | None":
        """Read what the run has found."""
        return cls._from(ensemble.provenance.found)

    @classmethod
    def read(
        cls, metrics: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> "SizeEffect | None":
        """Read back what `entries` wrote."""
        return cls._from(metrics)

    @classmethod
    def _from(cls, found: Mapping[str, Any]) -> "SizeEffect | None":
        if cls.name not in found:
            return None
        document: Document = build(Document, {cls.name: found[cls.name]})
        return cls(document["size_effect"]["noun"], tuple(document["size_effect"]["groups"]))

    def entries(self) -> dict[str, Any]:
        """Return one entry, `size_effect`."""
        found = asdict(self)
        return jsonable({self.name: {"noun": found["noun"], "groups": list(found["groups"])}})

    def sentences(self) -> list[str]:
        """Say whether the size matters, and name the groups."""
        told = (
            f"{each['name']} ({_sizes(each, self.noun)}) {each['loss']:+.3f} ± "
            f"{each['loss_error']:.3f}"
            for each in self.groups
            if each["is_judged"]
        )
        names = ", ".join(told)
        return [
            self.verdict,
            *([f"Nats per left-out row against all sizes: {names}."] if names else []),
        ]

    @property
    def verdict(self) -> str:
        """One sentence: does the size matter?"""
        judged = [each for each in self.groups if each["is_judged"]]
        if not judged:
            return "Whether the size matters these draws cannot tell."
        worst = max(judged, key=lambda each: each["loss"])
        if worst["loss"] > max(2 * worst["loss_error"], NATS_THAT_MATTER):
            return (
                f"The size matters: the {worst['name']} alone ({_sizes(worst, self.noun)}) would "
                f"predict a left-out row worse by {worst['loss']:.3f} nats."
            )
        return (
            "The size hardly matters: neither the likeliest size alone nor the smallest or the "
            "largest networks would predict left-out rows noticeably worse than all together."
        )

    def section(self, seconds: Mapping[str, float], *, is_converged: bool) -> Html:
        """Show the groups, one a row."""
        rows = [
            [
                each["name"],
                _sizes(each, self.noun),
                percent(each["share"], 0),
                f"{each['loss']:+.3f} ± {each['loss_error']:.3f}" if each["is_judged"] else "–",
                number(each["away"]),
            ]
            for each in self.groups
        ]
        heads = ["Networks", "Sizes", "Share", "Worse by, nats per row", "Predictions differ by"]
        found = figure(
            "Predictions by some sizes alone, against all together",
            self.verdict,
            table(heads, rows),
            note="Training rows left out one at a time, with standard errors; predictions differ "
            "in standard deviations of the target (or in its own unit, where it was not "
            "standardised), or in probabilities.",
        )
        return section("Does the size matter?", found, is_converged=is_converged)


def size_effect(
    posterior: Posterior,
    positions: Float[np.ndarray, "chain draw weight"],
    sizes: Float[np.ndarray, "chain draw"],
    noun: str,
) -> dict[str, Any]:
    """Judge the groups of draws; {} where there is one size only, or too few draws.

    {} too where rows are in groups: a row cannot be left out alone there.

    Args:
        sizes: neurons or hidden layers of every draw.
    Returns:
        The entry of `Drawn.found`, as JSON data.
    """
    flat, counts = positions.reshape(-1, positions.shape[-1]), sizes.ravel().astype(int)
    every = -(-len(flat) // MOST_DRAWS)
    flat, counts = flat[::every], counts[::every]
    data = posterior.data
    counting = np.flatnonzero(np.asarray(data.weight) > 0)
    is_too_little = len(np.unique(counts)) < 2 or len(flat) < 2 * FEWEST or not len(counting)
    if is_too_little or posterior.groups is not None:
        return {}
    rows = counting[:: -(-len(counting) // MOST_ROWS)]
    x, y, weight = jnp.asarray(data.rows.take(rows)), data.y[rows], np.asarray(data.weight)[rows]
    found = _of_draws(flat, posterior.data, x, y, model=posterior.model)
    log_probs, means = jax.tree.map(np.asarray, found)
    groups = compared(log_probs, means, counts, weight)
    return {SizeEffect.name: {"noun": noun, "groups": groups}} if groups else {}


def compared(
    log_probs: Float[np.ndarray, "draw row"],
    means: Float[np.ndarray, "draw row target"],
    counts: Int[np.ndarray, " draw"],
    weight: Float[np.ndarray, " row"],
) -> list[Group]:
    """Every group of draws against as many of all draws, evenly spaced.

    Importance weights of few draws flatter them, a group's as those of all: hence as many.

    Args:
        counts: sizes of the draws' networks.
        weight: observations that a row stands for, above 0.
    """
    groups = []
    for name, is_there in groups_of(counts):
        evenly = evenly_spaced(len(counts), int(is_there.sum()))
        left_out, of_all = (leave_one_out(log_probs[draws], weight) for draws in (is_there, evenly))
        worse = of_all.log_probs - left_out.log_probs
        loss, loss_error = mean_with_error(worse, weight)
        away = means[is_there].mean(axis=0) - means.mean(axis=0)
        unreliable = max(left_out.share_unreliable, of_all.share_unreliable)
        groups.append(
            Group(
                name=name,
                smallest=int(counts[is_there].min()),
                largest=int(counts[is_there].max()),
                share=float(is_there.mean()),
                loss=loss,
                loss_error=loss_error,
                away=float(np.sqrt(np.mean(away**2))),
                is_judged=unreliable <= MOST_BAD_ROWS,
            )
        )
    return groups


def groups_of(counts: np.ndarray) -> Sequence[tuple[str, Bool[np.ndarray, " draw"]]]:
    """The likeliest size, the smallest tenth and the largest tenth, those with enough draws."""
    values, shares = np.unique(counts, return_counts=True)
    low, high = np.quantile(counts, (TAIL, 1 - TAIL), method="inverted_cdf")
    found = (
        ("likeliest size", counts == values[np.argmax(shares)]),
        ("smallest networks", counts <= low),
        ("largest networks", counts >= high),
    )
    return [(name, is_there) for name, is_there in found if is_there.sum() >= FEWEST]


@partial(jax.jit, static_argnames="model")
def _of_draws(
    positions: Float[Array, "draw weight"], data: Data, x: Any, y: Any, *, model: BayesianModel
) -> tuple[Float[Array, "draw row"], Float[Array, "draw row target"]]:
    """Log probabilities of the targets, and mean predictions, network by network.

    Args:
        data: gives shapes only.
    """

    def one(position: Float[Array, " weight"]) -> tuple[Any, Any]:
        params = model.unravel(position, data)
        outputs = model.network.apply(params.network, x)
        log_probs = model.likelihood.log_prob(params.likelihood, outputs, y)
        return log_probs, model.likelihood.mean(params.likelihood, outputs)

    return jax.lax.map(one, positions)


def _sizes(group: Group, noun: str) -> str:
    smallest, largest = group["smallest"], group["largest"]
    noun = noun if largest > 1 else noun.removesuffix("s")
    return f"{smallest} {noun}" if smallest == largest else f"{smallest} to {largest} {noun}"
