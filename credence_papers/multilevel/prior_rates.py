"""How fast networks stop changing as they widen: E (f_l - f_{l-1})^2 under the prior.

Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class Neural Networks",
Figures 1 and 2: under a trace-class prior the second moment of an increment falls as
width^-(2 alpha - 1), under independent weights of variance 1 / width as width^-1. Dots are Monte
Carlo with standard errors from fourth moments; where the moment is known exactly, so it is shown.

Figure 2's rate comes from the network's output itself going to zero: variance 1 / width in all
layers makes E f^2 fall as width^-1 too, and the increment relative to the output does not shrink.
With variance 1 / fan-in, whose outputs have a limit in law, it does not shrink at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table

from credence.methods.smc.multilevel.increments import (
    exact_second_moment,
    prior_increments,
    second_moment,
)
from credence.models import MLP, Gaussian, TraceClass
from credence.models.networks.mlp import Network
from credence.models.priors import GaussianPrior
from credence_papers.cache import Cache, number
from credence_papers.multilevel.prior_rates_page import render
from credence_papers.study import Row, Study

INPUT = 2.0
"""All inputs of the point where networks are compared: the paper's x* of section 5.1."""

ROUNDING = 2e-6
"""Root mean square increments below it, relative to the first, drown in float32."""


@dataclass(frozen=True)
class InverseWidth(GaussianPrior):
    """N(0, 1 / width) for all weights and biases, in all layers: the paper's Figure 2."""

    def stds(self, network: Network, params: Any) -> Any:
        """One number for all."""
        width = params[0].kernel.shape[-1]
        return jax.tree.map(lambda _: width**-0.5, params)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One prior on networks of growing width.

    Args:
        panel: the chart it belongs to.
        slope: of log second moment against log width, as theory has it for wide networks.
    """

    name: str
    panel: str
    prior: GaussianPrior
    slope: float
    depth: int
    activation: str


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A chart: curves of one kind of prior on networks of one depth."""

    name: str
    curves: tuple[Curve, ...]
    description: str = "second moments of increments"


@dataclass(frozen=True)
class Effort:
    """How much is drawn.

    Args:
        levels: the finest width is 2^level with one hidden layer, and with two.
        draws: from the prior.
    """

    levels: tuple[int, int]
    draws: int


@dataclass(frozen=True, kw_only=True)
class RateStudy(Study[Panel, Effort]):
    """Curves of second moments, and their slopes."""

    num_inputs: int = 10

    def run_one(self, problem: Panel, effort: Effort, seed: int, cache: Cache) -> list[Row]:
        """Second moments of every curve."""
        return [self._curve(curve, effort, seed, cache) for curve in problem.curves]

    def _curve(self, curve: Curve, effort: Effort, seed: int, cache: Cache) -> Row:
        level, draws = effort.levels[curve.depth - 1], effort.draws
        settings = [curve, level, draws, self.num_inputs]
        key = jax.random.fold_in(jax.random.key(seed), number(settings))
        compute = partial(measured, key, curve, level, draws, self.num_inputs)
        return cache.kept(f"{curve.panel}, {curve.name}, seed {seed}", [*settings, seed], compute)

    def rows(self, problem: Panel, effort: Effort, results: Mapping[int, list[Row]]) -> list[Row]:
        """A row per curve: means over the seeds, whose draws are independent."""
        return [resolved(joined(runs)) for runs in zip(*results.values(), strict=True)]

    def sentence(self, row: Row) -> str:
        """One sentence that names the slope of a curve."""
        return f"{row['panel']}, {row['name']}: slope {row['slope']:.2f}"

    def summary(self, effort: Effort, rows: list[Row]) -> dict[str, Any]:
        """All rows as a JSON document, with the number of draws."""
        return {"draws": effort.draws, "curves": rows}

    def render(self, summary: dict[str, Any]) -> str:
        """The page as text."""
        return render(summary)

    def table(self, summary: dict[str, Any]) -> Table:
        """Slopes beside theory."""
        table = Table("prior and network", "slope", "theory")
        for row in summary["curves"]:
            slope = f"{row['slope']:.2f} ± {row['slope_error']:.2f}"
            table.add_row(f"{row['panel']}, {row['name']}", slope, f"{row['theory']:.2f}")
        return table


def measured(key: jax.Array, curve: Curve, level: int, draws: int, inputs: int) -> dict[str, Any]:
    """Second moments of the increments at widths 2, 4, ... 2^level, with standard errors."""
    widths = [2**k for k in range(level + 1)]
    networks = tuple(MLP(1, (width,) * curve.depth, curve.activation) for width in widths)
    x = jnp.full((1, inputs), INPUT)
    increments = prior_increments(key, curve.prior, networks, x, num_draws=draws)
    moment = second_moment(increments[:, :, 0, 0])
    return {
        "panel": curve.panel,
        "name": curve.name,
        "widths": widths[1:],
        "means": moment.mean.tolist(),
        "errors": moment.standard_error.tolist(),
        "exact": exact(curve, networks, np.asarray(x)),
        "theory": curve.slope,
    }


def joined(runs: Sequence[Row]) -> Row:
    """One curve from independent runs: means, and their standard errors."""
    means = np.mean([run["means"] for run in runs], axis=0)
    errors = np.linalg.norm([run["errors"] for run in runs], axis=0) / len(runs)
    return {**runs[0], "means": means.tolist(), "errors": errors.tolist()}


def resolved(row: dict[str, Any]) -> dict[str, Any]:
    """The widths whose increments stand out of rounding, and the slope over them."""
    means = np.array(row["means"])
    lost = np.flatnonzero(means < ROUNDING**2 * means[0])
    end = int(lost[0]) if lost.size else len(means)
    clear = {
        name: None if row[name] is None else row[name][:end]
        for name in ("widths", "means", "errors", "exact")
    }
    slope, error = fitted_slope(*(np.array(clear[k]) for k in ("widths", "means", "errors")))
    return {**row, **clear, "slope": slope, "slope_error": error}


def exact(curve: Curve, networks: tuple[MLP, ...], x: np.ndarray) -> list[float] | None:
    """Exact second moments, where they are known."""
    if not isinstance(curve.prior, TraceClass):
        return None
    if curve.depth > 1 and curve.activation != "identity":
        return None
    pairs = pairwise(networks)
    return [float(exact_second_moment(curve.prior, a, b, x)[0, 0]) for a, b in pairs]


def fitted_slope(widths: np.ndarray, means: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """Slope over the wider half of the widths, by weighted least squares; and its standard error.

    The increments of one draw share their weights, so that the error is only a guide.
    """
    half = len(widths) // 2
    x, y = np.log(widths[half:].astype(float)), np.log(means[half:])
    weights = (means[half:] / errors[half:]) ** 2
    centred = x - np.average(x, weights=weights)
    spread = np.sum(weights * centred**2)
    return float(np.sum(weights * centred * y) / spread), float(spread**-0.5)


def panels(alphas: tuple[float, ...] = (1.1, 1.4, 2.0, 3.0)) -> tuple[Panel, ...]:
    """Both activations and depths under trace-class and independent priors."""
    found = []
    for depth, activation in ((1, "relu"), (1, "tanh"), (2, "relu"), (2, "tanh")):
        layers = f"one {activation} layer" if depth == 1 else f"two {activation} layers"
        shared = {"depth": depth, "activation": activation}
        found += [
            Curve(
                name=f"alpha = {alpha:g}",
                panel=f"Trace-class prior: {layers}",
                prior=TraceClass(alpha),
                slope=1 - 2 * alpha,
                **shared,
            )
            for alpha in alphas
        ]
        independent = (
            ("variance 1 / width", InverseWidth(), -1.0),
            ("variance 1 / fan-in", Gaussian(scaling="fan_in"), 0.0),
        )
        found += [
            Curve(name=name, panel=f"Independent weights: {layers}", prior=prior, slope=s, **shared)
            for name, prior, s in independent
        ]
    names = dict.fromkeys(curve.panel for curve in found)
    return tuple(
        Panel(name=name, curves=tuple(c for c in found if c.panel == name)) for name in names
    )
