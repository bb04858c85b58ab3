"""How fast networks stop changing as they widen: E (f_l - f_{l-1})^2 under the prior.

Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class Neural Networks",
Figures 1 and 2: under a trace-class prior the second moment of an increment falls as
width^-(2 alpha - 1), under independent weights of variance 1 / width as width^-1. Dots are Monte
Carlo with standard errors from fourth moments; where the moment is known exactly, so it is shown.

Figure 2's rate comes from the network's output itself going to zero: variance 1 / width in all
layers makes E f^2 fall as width^-1 too, and the increment relative to the output does not shrink.
With variance 1 / fan-in, whose outputs have a limit in law, it does not shrink at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credence.compare.results import heading
from credence.compare.runner import NoWatch, write_results
from credence.compare.specs import check_size, chosen
from credence.methods.smc.multilevel.increments import (
    exact_second_moment,
    prior_increments,
    second_moment,
)
from credence.models import MLP, Gaussian, TraceClass
from credence.models.networks.mlp import Network
from credence.models.priors import GaussianPrior
from credence_papers.study_folder import claimed, digest, kept

ABOUT = "rates.json"
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
class RateStudy:
    """Curves, and how much is drawn for each.

    Args:
        levels, draws: by size: the finest network has width 2^levels.
    """

    name: str
    description: str
    curves: tuple[Curve, ...]
    levels: Mapping[str, tuple[int, int]]
    """By size: the finest width is 2^level with one hidden layer, and with two."""
    draws: Mapping[str, int]
    num_inputs: int = 10
    source: str = ""


def run(
    study: RateStudy,
    out: str | Path,
    *,
    size: str = "laptop",
    seed: int = 0,
    problems: tuple[str, ...] = (),
    watch: NoWatch | None = None,
) -> dict[str, Any]:
    """Draw what is not there yet; write and return the summary.

    Args:
        problems: only these panels; () takes all.
    Raises:
        InputError: for an unknown size or panel, or an unusable folder.
    """
    from credence_papers.multilevel.prior_rates_page import render

    watch = watch or NoWatch()
    check_size(size)
    panels = chosen("problem", problems, dict.fromkeys(curve.panel for curve in study.curves))
    folder = claimed(out, ABOUT, study, size=size, seed=seed)
    rows = []
    for curve in study.curves:
        if curve.panel in panels:
            rows.append(resolved(_kept(study, curve, folder, size, seed)))
            watch.say(f"{curve.panel}, {curve.name}: slope {rows[-1]['slope']:.2f}")
    summary = {
        **heading(study, size=size, seed=seed),
        "draws": study.draws[size],
        "curves": rows,
    }
    write_results(folder, summary, render)
    return summary


def _kept(study: RateStudy, curve: Curve, folder: Path, size: str, seed: int) -> dict[str, Any]:
    """A curve, read if it is there."""
    level, draws = study.levels[size][curve.depth - 1], study.draws[size]
    name = f"{curve.panel} {curve.name} {level} {draws} {seed}"

    def compute() -> dict[str, Any]:
        key = jax.random.fold_in(jax.random.key(seed), digest(name))
        return measured(key, curve, level, draws, study.num_inputs)

    return kept(folder / "curves", name, compute)


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
    """Over the wider half of the widths, by weighted least squares; and its standard error.

    The increments of one draw share their weights, so that the error is only a guide.
    """
    half = len(widths) // 2
    x, y = np.log(widths[half:].astype(float)), np.log(means[half:])
    weights = (means[half:] / errors[half:]) ** 2
    centred = x - np.average(x, weights=weights)
    spread = np.sum(weights * centred**2)
    return float(np.sum(weights * centred * y) / spread), float(spread**-0.5)


def curves(alphas: tuple[float, ...] = (1.1, 1.4, 2.0, 3.0)) -> tuple[Curve, ...]:
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
    return tuple(found)
