"""Unadjusted kernels on a Gaussian: the stationary law of the discretised chain is known exactly.

On N(mean, P^-1) a step is linear, z' = A z + B xi with z = (position - mean[, velocity]), so the
stationary covariance S solves S = A S A' + B B'. Started there, a kernel must stay there.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray
from scipy.linalg import solve_discrete_lyapunov
from tools.targets import GaussianTarget, z_scores

from credence.density.data import Data
from credence.density.posterior import LogDensity
from credence.kernels.base import Kernel
from credence.kernels.sgmcmc.cyclical import CyclicalState, cyclical
from credence.kernels.sgmcmc.rms_sgld import RMSState, rms_sgld
from credence.kernels.sgmcmc.sghmc import AdaptiveState, SGHMCState, scale_adapted_sghmc, sghmc
from credence.kernels.sgmcmc.ula import LangevinState, ula

Matrix = Float[np.ndarray, "row column"]


class Chain(NamedTuple):
    """A kernel with fixed settings, and its linear recursion on a target."""

    kernel: Kernel
    state: Callable[[Any], Any]
    """State from z + (mean, 0)."""
    flatten: Callable[[Any], Any]
    """The inverse of that function."""
    transition: Matrix
    noise: Matrix
    """The noise's covariance B B'."""
    period: int = 1
    """Kernel steps in one step of the recursion."""

    @property
    def covariance(self) -> Matrix:
        """Covariance of the stationary law of z."""
        return solve_discrete_lyapunov(self.transition, self.noise)


def precision(target: GaussianTarget) -> Matrix:
    """The target's precision matrix P."""
    return np.linalg.inv(target.cholesky @ target.cholesky.T)


def langevin_matrices(
    target: GaussianTarget, step: float, metric: np.ndarray, temperature: float = 1.0
) -> tuple[Matrix, Matrix]:
    """Matrices of w' = w - (h/2) G P w + sqrt(h T G) xi."""
    pull = 0.5 * step * metric[:, None] * precision(target)
    return np.eye(target.dimension) - pull, step * temperature * np.diag(metric)


def ula_chain(target: GaussianTarget, log_density: LogDensity, temperature: float = 1.0) -> Chain:
    """Unadjusted Langevin, with a metric and a temperature."""
    step, metric = 0.9 * target.stds[0] ** 2, np.linspace(0.5, 1.5, target.dimension)
    kernel = ula(
        log_density, step_size=step, inverse_mass=jnp.asarray(metric), temperature=temperature
    )
    matrices = langevin_matrices(target, step, metric, temperature)
    return Chain(kernel, LangevinState, lambda state: state.position, *matrices)


def sgld_chain(target: GaussianTarget, log_density: LogDensity) -> Chain:
    """Unadjusted Langevin on minibatches, drawn with replacement from rows whose mean is the
    target's: the gradient -P (w - batch mean) has the variance P C P / batch size, C of the rows.
    """
    num_rows, batch_size, step = 50, 10, 0.5 * target.stds[0] ** 2
    noise = np.random.default_rng(6).normal(size=(num_rows, target.dimension))
    rows = target.mean + (noise - noise.mean(axis=0)) @ target.cholesky.T
    metric = np.ones(target.dimension)
    plain = ula(log_density, step_size=step, inverse_mass=jnp.asarray(metric))

    def on_batch(key: PRNGKeyArray, state: Any, data: Data) -> Any:
        key_batch, key_step = jax.random.split(key)
        index = jax.random.randint(key_batch, (batch_size,), 0, num_rows)
        batch = data._replace(y=jnp.asarray(rows)[index].mean(axis=0)[:, None])
        return plain.step(key_step, state, batch)

    transition, injected = langevin_matrices(target, step, metric)
    pull = np.eye(target.dimension) - transition
    batch_covariance = np.cov(rows.T, bias=True) / batch_size
    return Chain(
        Kernel(plain.init, on_batch),
        LangevinState,
        lambda state: state.position,
        transition,
        injected + pull @ batch_covariance @ pull.T,
    )


def frozen_rms_chain(target: GaussianTarget, log_density: LogDensity) -> Chain:
    """RMS-preconditioned Langevin whose preconditioner stands still."""
    step, square = 0.5 * target.stds[0] ** 2, np.linspace(0.5, 1.5, target.dimension)
    return Chain(
        rms_sgld(log_density, step_size=step, decay=1.0, damping=0.1),
        lambda z: RMSState(z, jnp.asarray(square)),
        lambda state: state.position,
        *langevin_matrices(target, step, 1 / (0.1 + np.sqrt(square))),
    )


def momentum_matrices(
    target: GaussianTarget, rate: np.ndarray, friction: float, noise: np.ndarray
) -> tuple[Matrix, Matrix]:
    """Matrices of (w, v): v' = (1 - a) v - rate P w + noise^(1/2) xi, w' = w + v'."""
    identity, pull = np.eye(target.dimension), rate[:, None] * precision(target)
    damp = (1 - friction) * identity
    transition = np.block([[identity - pull, damp], [-pull, damp]])
    both = np.vstack([identity, identity])
    return transition, both @ np.diag(noise) @ both.T


def sghmc_chain(target: GaussianTarget, log_density: LogDensity) -> Chain:
    """SGHMC with a metric and an estimate of the gradient's variance."""
    step, friction, metric = 0.5 * target.stds[0], 0.2, np.linspace(0.5, 1.5, target.dimension)
    rate, variance = step**2 * metric, 0.3 / target.stds[0] ** 2
    kernel = sghmc(
        log_density,
        step_size=step,
        friction=friction,
        inverse_mass=jnp.asarray(metric),
        gradient_variance=variance,
    )
    matrices = momentum_matrices(target, rate, friction, 2 * friction * rate - rate**2 * variance)
    return Chain(kernel, split_state(SGHMCState), join_state, *matrices)


def frozen_adapted_chain(target: GaussianTarget, log_density: LogDensity) -> Chain:
    """Scale-adapted SGHMC whose mass stands still."""
    step, friction = 0.4 * target.stds[0] ** 0.5, 0.2
    square = np.linspace(0.5, 1.5, target.dimension)
    rate = step**2 / np.sqrt(square)
    kernel = scale_adapted_sghmc(
        log_density, step_size=step, friction=friction, is_adapting=jnp.asarray(False)
    )
    zero = jnp.zeros(target.dimension)
    make = lambda w, v: AdaptiveState(w, v, zero, jnp.asarray(square), zero + 1)  # noqa: E731
    noise = np.maximum(2 * friction * rate - rate**2 * square, 0)
    matrices = momentum_matrices(target, rate, friction, noise)
    return Chain(kernel, split_state(make), join_state, *matrices)


def cyclical_chain(target: GaussianTarget, log_density: LogDensity) -> Chain:
    """Cyclical Langevin: one step of the recursion is a whole cycle, the first step a maximum."""
    step, length, metric = 0.9 * target.stds[0] ** 2, 5, np.ones(target.dimension)
    build: Any = cyclical
    kernel = build(
        log_density,
        kernel=ula,
        steps_per_cycle=length,
        exploration_share=0.2,
        step_size=step,
        inverse_mass=jnp.asarray(metric),
    )
    transition, noise = np.eye(target.dimension), np.zeros((target.dimension,) * 2)
    for index in range(length):
        size = 0.5 * step * (np.cos(np.pi * index / length) + 1)
        one, injected = langevin_matrices(target, size, metric, float(index >= 0.2 * length))
        transition, noise = one @ transition, one @ noise @ one.T + injected
    return Chain(
        kernel,
        lambda z: CyclicalState(LangevinState(z), jnp.zeros((), jnp.int32)),
        lambda state: state.position,
        transition,
        noise,
        length,
    )


def split_state(make: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A state of position and velocity from both in one vector."""
    return lambda z: make(*jnp.split(z, 2))


def join_state(state: Any) -> Any:
    """The inverse of `split_state`."""
    return jnp.concatenate([state.position, state.velocity])


def whitened_after(
    chain: Chain,
    target: GaussianTarget,
    *,
    factor: float = 1.0,
    num_chains: int = 20_000,
    num_steps: int = 10,
    repeat_keys: bool = False,
) -> Float[np.ndarray, "chain state"]:
    """The chain a few steps after exact starts in its stationary law, made N(0, I) by that law.

    Args:
        factor: planted error; the kernel sees the log density times this.
        num_steps: steps of the recursion.
        repeat_keys: planted error; every step gets the same key.
    """
    root = np.linalg.cholesky(chain.covariance)
    centre = np.resize(np.append(target.mean, np.zeros(len(root))), len(root))
    starts = centre + np.random.default_rng(0).normal(size=(num_chains, len(root))) @ root.T
    data = target._replace(factor=factor).data

    def run(key: PRNGKeyArray, start: Any) -> Any:
        keys = jax.random.split(key, num_steps * chain.period)
        if repeat_keys:
            keys = jnp.broadcast_to(key, keys.shape)
        state, _ = jax.lax.scan(
            lambda state, key: chain.kernel.step(key, state, data), chain.state(start), keys
        )
        return chain.flatten(state)

    ends = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(1), num_chains), starts)
    return np.linalg.solve(root, (np.asarray(ends) - centre).T).T


def scores_after(chain: Chain, target: GaussianTarget, **settings: Any) -> dict[str, float]:
    """z-scores of `whitened_after`."""
    return z_scores(whitened_after(chain, target, **settings))
