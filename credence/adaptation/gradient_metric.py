"""Warm-up of stochastic gradient samplers: a metric and a step size.

Averaged over the posterior, the outer product of the gradient with itself is the precision of a
Gaussian posterior: E[g g'] = P. So 1 / E[g^2], from full gradients where the chains are between
blocks, pooled over chains, is a metric in which steps of one size fit all weights. Until there are
enough of them, what the rows' own gradients vary by speaks too: N times their variance S^2 is the
empirical Fisher information, what the data add to the precision of the prior.

No chain of these has a Metropolis test to tune its step size by. So between blocks leapfrogs with
full gradients are tried from where the chains are, by turns if there are many: the step size at
which such trials would be accepted at a high rate makes small errors, and is far from where the
dynamics become unstable.
"""

from collections.abc import Collection
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.adaptation.windows import (
    averaged,
    latest,
    metric_ends,
    move_step_size,
    reasonable_step_size,
    trial_acceptance,
)
from credence.density.data import Data, minibatch
from credence.density.posterior import LogDensity, Posterior
from credence.engine.blocks import Block
from credence.engine.phases import Adapter

TRIALS, TRIALS_PER_CHAIN, TRIAL_STEPS = 8, 2, 5
"""Most trajectories, also of a chain, and their leapfrogs: each costs a pass over all rows."""

FISHER_COUNT = 10
"""Squared gradients that the empirical Fisher information counts for."""


class Memory(NamedTuple):
    """What the warm-up remembers between rounds (numpy, fixed shapes)."""

    round: np.ndarray
    rounds_in_window: np.ndarray
    sum_square: Float[np.ndarray, " weight"]
    """Mean squared full gradients over the chains, summed over the window's rounds."""
    sum_variance: Float[np.ndarray, " weight"]
    """Likewise S^2, the variance of the rows' gradients."""
    inverse_mass: Float[np.ndarray, " weight"]
    rounds_since_metric: np.ndarray
    log_step_size: np.ndarray
    mean_log_step_size: np.ndarray
    """Average since the metric last changed, its first round left out."""


def gradient_metric(
    key: PRNGKeyArray,
    posterior: Posterior,
    positions: Float[Array, "chain weight"],
    *,
    num_rounds: int,
    target_acceptance_rate: float | None,
    unit_metric: bool = False,
) -> Adapter:
    """Adapter of `step_size` and `inverse_mass`; tuned to the averaged step size and last metric.

    The metric is renewed at the ends of windows that double in length.

    Args:
        key: for the rows whose gradients are compared.
        posterior: whose gradients.
        positions: where the chains start.
        num_rounds: blocks in the warm-up phase.
        target_acceptance_rate: of the trial leapfrogs; None tries none, for who has a step size.
        unit_metric: keep an inverse_mass of one.
    """
    key_prior, key_first, key_step, key_rounds = jax.random.split(key, 4)
    of_prior = None
    if not unit_metric:
        found = prior_precision(
            key_prior, positions, posterior.data, log_density=posterior.log_density
        )
        of_prior = jax.device_get(found)
    ends = metric_ends(num_rounds)
    tuning = _Tuning(key_rounds, posterior, ends, target_acceptance_rate, of_prior)
    start = tuning.start(key_first, key_step, positions)
    return Adapter(start, latest, tuning.update, tuned=averaged)


class _Tuning(NamedTuple):
    """What does not change between rounds."""

    key: PRNGKeyArray
    posterior: Posterior
    ends: Collection[int]
    """Rounds after which the metric is renewed."""
    target_acceptance_rate: float | None
    """None looks for no step size."""
    of_prior: Float[np.ndarray, " weight"] | None
    """The prior's precision; None keeps an inverse_mass of one."""

    def start(
        self, key: PRNGKeyArray, key_step: PRNGKeyArray, positions: Float[Array, "chain weight"]
    ) -> Memory:
        """The metric that the rows' gradients suggest, and a step a quarter of the stable one."""
        _, variance = self.moments(key, positions)
        inverse_mass = 1 / self.information(variance)
        cautious = np.zeros(())
        if self.target_acceptance_rate is not None:
            stable = reasonable_step_size(
                key_step,
                _spaced(positions, len(positions)),
                inverse_mass,
                self.posterior.data,
                log_density=self.posterior.log_density,
                num_steps=TRIAL_STEPS,
            )
            cautious = np.log(np.asarray(stable, float) / 4)
        none, zero = np.zeros(()), np.zeros_like(variance)
        return Memory(
            round=none,
            rounds_in_window=none,
            sum_square=zero,
            sum_variance=zero,
            inverse_mass=inverse_mass,
            rounds_since_metric=none,
            log_step_size=cautious,
            mean_log_step_size=cautious,
        )

    def update(self, memory: Memory, block: Block) -> Memory:
        """Try the step size, and add the gradients here to the window's."""
        key = jax.random.fold_in(self.key, int(memory.round))
        key_rows, key_trial = jax.random.split(key)
        positions = block.states.position
        square, variance = self.moments(key_rows, positions)
        memory = self.tried(key_trial, memory, positions)
        memory = memory._replace(
            round=memory.round + 1,
            rounds_in_window=memory.rounds_in_window + 1,
            sum_square=memory.sum_square + square,
            sum_variance=memory.sum_variance + variance,
        )
        is_end = int(memory.round) in self.ends
        return self.renewed(memory, len(positions)) if is_end else memory

    def tried(
        self, key: PRNGKeyArray, memory: Memory, positions: Float[Array, "chain weight"]
    ) -> Memory:
        """Move the step size by what trials from here say, where one is looked for."""
        if self.target_acceptance_rate is None:
            return memory
        acceptance = trial_acceptance(
            key,
            _spaced(positions, TRIALS_PER_CHAIN * len(positions), int(memory.round)),
            np.exp(memory.log_step_size).astype(positions.dtype),
            memory.inverse_mass,
            self.posterior.data,
            log_density=self.posterior.log_density,
            num_steps=TRIAL_STEPS,
        )
        return move_step_size(memory, float(acceptance), self.target_acceptance_rate, most=1.5)

    def renewed(self, memory: Memory, num_chains: int) -> Memory:
        """The window's metric; then a new window."""
        zero = np.zeros_like(memory.sum_square)
        precision = self.precision(memory, num_chains)
        rescaled = memory.mean_log_step_size + 0.5 * np.mean(
            np.log(memory.inverse_mass) + np.log(precision)
        )
        return memory._replace(
            rounds_in_window=np.zeros(()),
            sum_square=zero,
            sum_variance=zero,
            inverse_mass=(1 / precision).astype(zero.dtype),
            rounds_since_metric=np.zeros(()),
            log_step_size=rescaled,
            mean_log_step_size=rescaled,
        )

    def precision(self, memory: Memory, num_chains: int) -> Float[np.ndarray, " weight"]:
        """E[g^2] over the window, to which the information adds as `FISHER_COUNT` gradients."""
        if self.of_prior is None:
            return np.ones_like(memory.sum_square)
        rounds = memory.rounds_in_window
        information = self.information(memory.sum_variance / rounds)
        squares = num_chains * memory.sum_square + FISHER_COUNT * information
        return squares / (num_chains * rounds + FISHER_COUNT)

    def information(self, variance: Float[np.ndarray, " weight"]) -> Float[np.ndarray, " weight"]:
        """The prior's precision, and what the data add to it."""
        if self.of_prior is None:
            return np.ones_like(variance)
        return self.of_prior + self.posterior.num_points * variance

    def moments(
        self, key: PRNGKeyArray, positions: Float[Array, "chain weight"]
    ) -> tuple[Float[np.ndarray, " weight"], Float[np.ndarray, " weight"]]:
        """`gradient_moments`, from a sixteenth of the rows, on the host."""
        found = gradient_moments(
            key,
            positions,
            self.posterior.data,
            log_density=self.posterior.log_density,
            batch_size=max(1, self.posterior.num_points // 16),
        )
        return jax.device_get(found)


def _spaced(
    positions: Float[Array, "chain weight"], num: int, first: int = 0
) -> Float[Array, "trial weight"]:
    """Return `num` positions at which trials start, or as many as there may be.

    They are spread evenly over the chains, from number `first` on.
    """
    num, num_chains = min(num, TRIALS), len(positions)
    return positions[(np.arange(num) * num_chains // num + first) % num_chains]


@partial(jax.jit, static_argnames="log_density")
def prior_precision(
    key: PRNGKeyArray,
    positions: Float[Array, "chain weight"],
    data: Data,
    *,
    log_density: LogDensity,
) -> Float[Array, " weight"]:
    """The diagonal curvature of minus the log prior; 1 where that is not positive.

    With signs v at random v * (H v) is the diagonal of H on average, and exactly where H has no
    other entries (Bekas, Kokiopoulou & Saad, "An estimator for the diagonal of a matrix", 2007).
    """
    row = minibatch(data, jnp.zeros(1, jnp.int32), jnp.ones(1))
    none = row._replace(weight=jnp.zeros_like(row.weight))

    def probed(arguments: Any) -> Any:
        key, position = arguments
        signs = jax.random.rademacher(key, position.shape, position.dtype)
        slope = partial(jax.grad(log_density), data=none)
        return -signs * jax.jvp(slope, (position,), (signs,))[1]

    keys = jax.random.split(key, len(positions))
    found = jax.lax.map(probed, (keys, positions)).mean(axis=0)
    return jnp.where(jnp.isfinite(found) & (found > 0), found, 1.0)


@partial(jax.jit, static_argnames=("log_density", "batch_size"))
def gradient_moments(
    key: PRNGKeyArray,
    positions: Float[Array, "chain weight"],
    data: Data,
    *,
    log_density: LogDensity,
    batch_size: int,
) -> tuple[Float[Array, " weight"], Float[Array, " weight"]]:
    """Means over chains: the squared full gradient, and the variance S^2 of the rows' gradients.

    The latter from one minibatch per chain: scaled to all N rows, the gradients of b of them have
    the noise variance N^2 S^2 (1/b - 1/N). It is not known, and 0, where b is N.
    """
    num_points = data.x.shape[0]
    per_variance = num_points**2 * (1 / batch_size - 1 / num_points) or 1.0
    gradient = jax.grad(log_density)

    def moments(arguments: Any) -> Any:
        key, position = arguments
        rows = jax.random.permutation(key, num_points)[:batch_size]
        full = gradient(position, data)
        noise = gradient(position, minibatch(data, rows, jnp.ones(batch_size))) - full
        return full**2, noise**2 / per_variance

    keys = jax.random.split(key, len(positions))
    return jax.tree.map(lambda leaf: leaf.mean(0), jax.lax.map(moments, (keys, positions)))
