"""Trans-dimensional chains on a ladder of temperatures: networks of all sizes that change places.

Rung i of n follows p(k) p(w | k) L(w)^t_i with k the widths and the depth, from the prior, t_0 = 0,
up to the posterior, t_(n - 1) = 1. Jumps and steps move every rung; then neighbours exchange their
networks, sizes and all, by Metropolis's rule: see `credence.kernels.mcmc.replica_exchange`. The
prior is drawn from anew in every step, so that what comes down the ladder has forgotten its size as
well as its mode.

A likelihood to the power t is that of rows which each stand for t observations. So a rung is the
same kernel with other row weights, and every kind of jump knows it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.kernels.base import Kernel
from credence.kernels.mcmc.replica_exchange import ReplicaState, after_exchanges, first_state
from credence.methods.transdimensional.kernel import TransdimensionalInfo, transdimensional
from credence.methods.transdimensional.target import VariableWidth


class LadderInfo(NamedTuple):
    """A step tells what it did, in means or sums over its sweeps; jumps are the coldest rung's."""

    acceptance_rate: Float[Array, " rung"]
    """Acceptance of the steps at fixed widths; 1 at the prior, which is drawn from."""
    is_divergent: Bool[Array, ""]
    is_finite: Bool[Array, ""]
    """Whether all rungs met finite numbers only."""
    jump_acceptance_rate: Float[Array, ""]
    num_jumps: Int[Array, " kind"]
    num_jumps_accepted: Int[Array, " kind"]
    jump_cost: Int[Array, " kind"]
    step_cost: Int[Array, ""]
    exchange_rate: Float[Array, " pair"]
    """Acceptance of the exchanges; NaN for every other pair, which had no turn."""
    log_likelihood: Float[Array, " rung"]
    """Log likelihoods after the exchanges, in nats."""
    is_restart: Bool[Array, ""]
    """Whether the coldest rung got a network that has come all the way from the prior."""
    num_evaluations: Int[Array, ""]
    """Likelihood values of all rungs; `num_gradients` counts their gradients."""
    num_gradients: Int[Array, ""]


def on_a_ladder(
    log_density: LogDensity,
    *,
    target: VariableWidth,
    powers: Float[Array, " rung"],
    step_size: Float[Array, " rung"],
    inverse_mass: Float[Array, "rung weight"],
    num_sweeps: int = 1,
    **settings: Any,
) -> Kernel:
    """Sweeps of jumps and a step on every rung, then exchanges of even and odd pairs by turns.

    Args:
        log_density: not used, as in `transdimensional`.
        target: joint law of widths, depth and weights.
        powers: of the likelihood, ascending from 0 to 1.
        step_size, inverse_mass: for every rung; those of rung 0 are not used.
        num_sweeps: of every rung between exchanges.
        settings: of `transdimensional`, for all rungs alike.
    """
    num_rungs = powers.shape[0]

    def swept(rung: tuple[Any, ...], data: Data) -> tuple[Position, TransdimensionalInfo]:
        key, position, power, step_size, inverse_mass = rung
        tuning = {"step_size": step_size, "inverse_mass": inverse_mass}
        kernel = transdimensional(log_density, target=target, **tuning, **settings)
        warmed = data._replace(weight=power * data.weight)
        sweep = lambda state, key: kernel.step(key, state, warmed)  # noqa: E731
        first, keys = kernel.init(position, warmed), jax.random.split(key, num_sweeps)
        state, infos = jax.lax.scan(sweep, first, keys)
        return state.position, together(infos)

    def log_likelihood(position: Position, data: Data) -> Float[Array, ""]:
        return target.log_likelihood(target.model.unravel(position, data), data)

    def init(positions: Float[Array, "rung weight"], data: Data) -> ReplicaState:
        return first_state(positions)

    def step(key: PRNGKeyArray, state: ReplicaState, data: Data) -> tuple[ReplicaState, LadderInfo]:
        key_prior, key_sweeps, key_exchange = jax.random.split(key, 3)
        keys = jax.random.split(key_sweeps, num_rungs - 1)
        above = (state.positions[1:], powers[1:], step_size[1:], inverse_mass[1:])
        warm, infos = over_rungs(lambda rung: swept(rung, data), (keys, *above))
        hot, _ = ravel_pytree(target.sample_prior(key_prior, data))
        positions = jnp.concatenate([hot[None], warm])
        nats = over_rungs(lambda position: log_likelihood(position, data), positions)
        new, order, rates, is_restart = after_exchanges(
            key_exchange, state, positions, nats, powers
        )
        coldest = jax.tree.map(lambda each: each[-1], infos)
        one = jnp.ones((1,), infos.acceptance_rate.dtype)
        return new, LadderInfo(
            acceptance_rate=jnp.concatenate([one, infos.acceptance_rate]),
            is_divergent=coldest.is_divergent,
            is_finite=jnp.all(infos.is_finite),
            jump_acceptance_rate=coldest.jump_acceptance_rate,
            num_jumps=coldest.num_jumps,
            num_jumps_accepted=coldest.num_jumps_accepted,
            jump_cost=coldest.jump_cost,
            step_cost=coldest.step_cost,
            exchange_rate=rates,
            log_likelihood=nats[order],
            is_restart=is_restart,
            num_evaluations=jnp.sum(infos.num_evaluations, dtype=jnp.int32) + num_rungs,
            num_gradients=jnp.sum(infos.num_gradients, dtype=jnp.int32),
        )

    return Kernel(init, step)


def over_rungs(function: Callable[[Any], Any], rungs: Any) -> Any:
    """Apply a function to every rung: one after the other on a CPU, where each ends when it is
    done, and abreast on an accelerator, where all take as long as the longest."""
    return (jax.lax.map if jax.default_backend() == "cpu" else abreast)(function, rungs)


def abreast(function: Callable[[Any], Any], rungs: Any) -> Any:
    """Apply a function to all rungs at once."""
    return jax.vmap(function)(rungs)


def together(infos: TransdimensionalInfo) -> TransdimensionalInfo:
    """Sum up what sweeps did, one after the other: means of rates, sums of counts."""

    def of_all(name: str, each: Array) -> Array:
        if name == "is_finite":
            return jnp.all(each, axis=0)
        if name == "is_divergent":
            return jnp.any(each, axis=0)
        is_count = jnp.issubdtype(each.dtype, jnp.integer)
        return jnp.sum(each, axis=0, dtype=each.dtype) if is_count else jnp.mean(each, axis=0)

    return TransdimensionalInfo(
        **{name: of_all(name, each) for name, each in infos._asdict().items()}
    )
