"""The mode of a posterior near a trained network, of all parameters or given the noise.

Why the noise may have to be given: at the joint mode of noise and weights the noise explains the
residuals of rows that the weights were fitted to. MacKay, "A practical Bayesian framework for
backpropagation networks" (1992): of N rows the weights take gamma, the effective number of
parameters, and the residuals are too small by about (N - gamma) / N in variance. With as many
effective weights as rows there is no joint mode but noise 0. Rows that no weight has seen do not
have the problem: `noise_of` maximises their log likelihood in the likelihood's own parameters.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import Position, Posterior
from credence.engine.blocks import Block
from credence.engine.driver import Driver
from credence.engine.phases import Adapter, PhaseResult
from credence.engine.plan import Plan
from credence.kernels.ascent.lbfgs import lbfgs
from credence.kernels.base import Recipe
from credence.methods.laplace.curvature import Spectrum, prior_stds

MOST_DECREMENT = 0.05
"""Newton decrement, in nats, up to which a point counts as a mode. It is the Kullback-Leibler
divergence between Gaussians of the same covariance around the point and around the mode, so by
Pinsker's inequality no probability is off by more than sqrt(0.05 / 2) = 16 %."""
ROUND = 50
"""Steps of L-BFGS between checkpoints."""
ALMOST_LEVEL = 1.0
"""Nats that a round of L-BFGS must still win to go on, where no mode is wanted."""
POLISH_STEPS = 100 * ROUND
"""Most steps of L-BFGS in the coordinates of the curvature."""
NOISE_STEPS = 200
"""Most steps to the noise of held-out rows; a handful of parameters needs about ten."""


def num_likelihood_parameters(posterior: Posterior) -> int:
    """How many parameters the likelihood itself has, the last entries of a position."""
    template = posterior.model.template(posterior.data).likelihood
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(template))


def noise_of(
    key: PRNGKeyArray, rows: Data, posterior: Posterior, driver: Driver, start: Position
) -> tuple[Position, Posterior]:
    """A position with the likelihood's parameters at their mode for other rows, phase "noise".

        max over s of log p(s) + sum_n weight_n log p(y_n | f(x_n, w), s),    w as in `start`.

    Args:
        rows: that the weights were not fitted to.
        start: trained weights, and where the search for the parameters starts.
    Returns the position, and the posterior of these rows, whose curvature there tells how well they
    are known.
    """
    model = posterior.model
    held_out = Posterior(
        model.network, model.prior, model.likelihood, (rows.x, rows.y, rows.weight)
    )
    only_noise = np.zeros(posterior.num_weights, start.dtype)
    only_noise[posterior.num_weights - num_likelihood_parameters(posterior) :] = 1
    found = climb("noise", key, held_out, driver, start, only_noise, NOISE_STEPS)
    return found.positions[0], held_out


def weight_scale(
    posterior: Posterior, start: Position, *, noise_is_fixed: bool
) -> Float[np.ndarray, " weight"]:
    """Prior standard deviation of every weight; of the likelihood's parameters 1, or 0 if fixed."""
    noise = np.full(num_likelihood_parameters(posterior), 0.0 if noise_is_fixed else 1.0)
    return np.append(prior_stds(posterior, "all"), noise).astype(start.dtype)


def whitening(
    found: Spectrum, posterior: Posterior, noise: Float[np.ndarray, " parameter"], start: Position
) -> Float[np.ndarray, "weight weight"]:
    """R with R R^T = (H + P)^-1, the inverse curvature of minus the log posterior.

    Args:
        found: full curvature of all weights.
        noise: scales of the likelihood's parameters, on the diagonal; 0 where they stay.
    """
    stds = prior_stds(posterior, "all")
    size = len(stds)
    root = np.zeros((posterior.num_weights, posterior.num_weights))
    axes = found.from_eigen(np.eye(size))  # rows are eigenvectors
    root[:size, :size] = (stds * axes / np.sqrt(found.values + 1)[:, None]).T
    root[range(size, len(root)), range(size, len(root))] = noise
    return root.astype(start.dtype)


def climb(
    name: str,
    key: PRNGKeyArray,
    posterior: Posterior,
    driver: Driver,
    start: Position,
    scale: Float[np.ndarray, " weight"] | Float[np.ndarray, "weight weight"],
    num_steps: int,
    whitened: Callable[[Position], tuple[float, Float[np.ndarray, "weight weight"]]] | None = None,
    budget_share: float = 1.0,
) -> PhaseResult:
    """Climb to the mode by L-BFGS on all rows, as a phase of the driver with one chain.

    Ends where the Newton decrement, or the gradient's bound on it, is well below what is allowed,
    or where a round raises the log density by less than a thousandth of a nat.

    Args:
        scale: see `lbfgs`; what has 0 stays.
        whitened: position -> Newton decrement there, and the coordinates of the next round, see
            `Around.whitening`. For curved valleys, as of networks with little noise or of many
            rows, where rises in the coordinates of the prior are below the rounding of single
            precision long before the mode.
        budget_share: of the phase.
    """

    def update(memory: _Climb, block: Block) -> _Climb:
        height = np.asarray(block.info["log_density"], float)[0, -1]
        if whitened is None:
            bound, scale = np.asarray(block.info["gap"], float)[0, -1], memory.scale
            is_near = bound < 0.01 * MOST_DECREMENT
        else:
            decrement, scale = whitened(block.states.position[0])
            is_near = decrement < 0.1 * MOST_DECREMENT
        is_done = is_near or height - memory.height < 1e-3
        return _Climb(height, np.asarray(float(is_done)), scale)

    restart = {} if whitened is None else {"restart_every": np.int32(ROUND)}
    adapter = Adapter(
        _Climb(np.asarray(-np.inf), np.asarray(0.0), scale),
        settings=lambda memory: {"scale": memory.scale, **restart},
        update=update,
        finished=lambda memory: bool(memory.is_done),
    )
    plan = replace(
        _ascent(posterior, name, adapter, num_steps),
        block_steps=min(ROUND, num_steps),
        budget_share=budget_share,
    )
    return driver.phase(name, key, plan, start[None], posterior.anchored(start))


def _ascent(posterior: Posterior, cost_class: str, adapter: Adapter, num_steps: int) -> Plan:
    """The plan of a phase of L-BFGS on all rows."""
    return Plan(
        Recipe(lbfgs, posterior.log_density),
        cost_class,
        adapter,
        num_steps=num_steps,
        block_steps=ROUND,
        keep_draws=False,
    )


class _Climb(NamedTuple):
    """How far the ascent is."""

    height: np.ndarray
    """Log density before the last step, less its value at the anchor, in nats."""
    is_done: np.ndarray
    scale: np.ndarray
    """Coordinates of the next round."""


def summits(
    key: PRNGKeyArray,
    posterior: Posterior,
    driver: Driver,
    positions: Float[Array, "chain weight"],
    num_steps: int,
) -> Float[Array, "chain weight"]:
    """Every chain up towards its mode by L-BFGS on all rows, phase "climb".

    Ends where a round raises no log density by more than `ALMOST_LEVEL`: near a mode, and not at
    it, which is all that a chain needs to start from.
    """

    def update(memory: _Climb, block: Block) -> _Climb:
        heights = np.asarray(block.info["log_density"], float)[:, -1]
        is_done = np.all(heights - memory.height < ALMOST_LEVEL)
        return _Climb(heights, np.asarray(float(is_done)), memory.scale)

    scale = np.ones(positions.shape[1], positions.dtype)
    adapter = Adapter(
        _Climb(np.full(len(positions), -np.inf), np.asarray(0.0), scale),
        settings=lambda memory: {"scale": memory.scale},
        update=update,
        finished=lambda memory: bool(memory.is_done),
    )
    plan = replace(_ascent(posterior, "climb", adapter, num_steps), may_stop_early=True)
    return driver.phase("climb", key, plan, positions, posterior.anchored(positions[0])).positions
