"""The evidence of a network of fixed size, by chains on a ladder of temperatures.

Rung i samples p_i(w) proportional to p(w) L(w)^t_i, t_0 = 0 < ... < t_n = 1, by Hamiltonian Monte
Carlo; rung 0 is drawn from the prior itself. Neighbours exchange their states by Metropolis's rule
(Geyer, "Markov chain Monte Carlo maximum likelihood", 1991). The evidence is the product of the
ratios of the normalising constants of neighbours, each by Bennett's acceptance ratio ("Efficient
estimation of free energy differences from Monte Carlo data", 1976), which is bridge sampling at its
best: it needs draws of both and has no error of discretisation. Nothing here jumps between sizes,
resamples, or weighs particles.

Every run is independent of the others from its first random number on, so that the spread of their
results is the error of their mean.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import BayesianModel, Posterior
from credence.ensembles.diagnostics.convergence import rhat
from credence.kernels.base import metropolis
from credence.methods.evidence import ladder_evidence as ladder_evidence_of

TARGET_ACCEPTANCE = 0.8
LogDensities = Callable[[Float[Array, " weight"]], tuple[Float[Array, ""], Float[Array, ""]]]
"""weights -> log prior and log likelihood, in nats."""


class Rungs(NamedTuple):
    """The states of a ladder."""

    weights: Float[Array, "rung weight"]
    """Weights of every rung, in prior standard deviations."""
    log_step: Float[Array, " rung"]


class LadderEvidence(NamedTuple):
    """What independent ladders found."""

    nats: Float[np.ndarray, " run"]
    """Log evidence of every run."""
    rhat: float
    """R-hat of the log likelihood at temperature 1, over the runs."""
    exchange_rate: float
    """Smallest mean acceptance of exchanges between neighbours."""


def temperatures(num_rungs: int, power: float = 4.0) -> Float[np.ndarray, " rung"]:
    """Powers of the likelihood: from 0 to 1, denser towards 0."""
    return np.linspace(0, 1, num_rungs) ** power


def ladder_evidence(
    key: PRNGKeyArray,
    posterior: Posterior,
    *,
    num_runs: int,
    num_rungs: int,
    num_draws: int,
    num_warmup: int,
    num_leapfrogs: int = 8,
) -> LadderEvidence:
    """Log evidence, run by run.

    Args:
        num_draws, num_warmup: iterations with and without record; the latter tune the steps.
        num_leapfrogs: mean number of leapfrog steps of an iteration.
    """
    powers = temperatures(num_rungs)
    keys = jax.random.split(key, num_runs)
    sizes = {"num_draws": num_draws, "num_warmup": num_warmup, "num_leapfrogs": num_leapfrogs}
    one = jax.jit(partial(_run, model=posterior.model, **sizes))
    runs = [one(each, posterior.data, jnp.asarray(powers)) for each in keys]
    found, rates = ([np.asarray(run[i], float) for run in runs] for i in (0, 1))
    nats = np.array([ladder_evidence_of(each, powers) for each in found])
    last = np.stack([each[:, -1] for each in found])
    return LadderEvidence(nats, float(rhat(last)), float(np.mean(rates, axis=0).min()))


def _run(
    key: PRNGKeyArray,
    data: Data,
    powers: Float[Array, " rung"],
    *,
    model: BayesianModel,
    num_draws: int,
    num_warmup: int,
    num_leapfrogs: int,
) -> tuple[Float[Array, "draw rung"], Float[Array, " pair"]]:
    """One ladder: log likelihoods of all rungs draw by draw, and rates of exchange."""
    key_start, key_steps = jax.random.split(key)

    scales = prior_scales(model, data)
    unravel = ravel_pytree(model.sample_prior(key, data))[1]

    def from_prior(key: PRNGKeyArray) -> Float[Array, " weight"]:
        return ravel_pytree(model.sample_prior(key, data))[0] / scales

    def parts(weights: Float[Array, " weight"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        params = unravel(scales * weights)
        return model.log_prior(params), model.log_likelihood(params, data)

    def iteration(rungs: Rungs, keys_and_number: tuple) -> tuple[Rungs, tuple[Array, Array]]:
        key, number = keys_and_number
        key_prior, key_length, key_moves, key_exchange = jax.random.split(key, 4)
        length = jax.random.randint(key_length, (), 1, 2 * num_leapfrogs)
        weights = rungs.weights.at[0].set(from_prior(key_prior))
        move = partial(_hamiltonian, parts=parts, num_leapfrogs=length)
        moved, rates = jax.vmap(move)(
            jax.random.split(key_moves, len(powers)), weights, powers, jnp.exp(rungs.log_step)
        )
        moved = moved.at[0].set(weights[0])
        log_likelihoods = jax.vmap(lambda w: parts(w)[1])(moved)
        order, exchanged = _exchange(key_exchange, log_likelihoods, powers, number % 2)
        gain = jnp.where(number < num_warmup, 2.0 / (number + 10.0) ** 0.6, 0.0)
        log_step = rungs.log_step + gain * (rates - TARGET_ACCEPTANCE)
        return Rungs(moved[order], log_step), (log_likelihoods[order], exchanged)

    start = Rungs(
        jax.vmap(from_prior)(jax.random.split(key_start, len(powers))),
        jnp.full(len(powers), jnp.log(0.1)),
    )
    num = num_warmup + num_draws
    steps = (jax.random.split(key_steps, num), jnp.arange(num))
    _, (found, exchanged) = jax.lax.scan(iteration, start, steps)
    return found[num_warmup:], 2 * exchanged[num_warmup:].mean(axis=0)


def prior_scales(model: BayesianModel, data: Data) -> Float[Array, " weight"]:
    """The prior's standard deviation of every weight, in the order of a flat position.

    Raises:
        ValueError: for unknowns beside the weights: their scale is not known.
    """
    params = model.template(data)
    if jax.tree.leaves((params.likelihood, params.prior)):
        raise ValueError("A ladder needs a fixed noise and a prior without hyperparameters.")
    stds = model.prior.stds(model.network, params.network)  # type: ignore[attr-defined]
    each = jax.tree.map(lambda w, s: jnp.broadcast_to(s, w.shape), params.network, stds)
    return ravel_pytree(each)[0]


def _hamiltonian(
    key: PRNGKeyArray,
    weights: Float[Array, " weight"],
    power: Float[Array, ""],
    step_size: Float[Array, ""],
    *,
    parts: LogDensities,
    num_leapfrogs: Array,
) -> tuple[Float[Array, " weight"], Float[Array, ""]]:
    """One step of Hamiltonian Monte Carlo at a temperature, and its acceptance rate."""
    key_momentum, key_accept = jax.random.split(key)

    def log_density(w: Float[Array, " weight"]) -> Float[Array, ""]:
        log_prior, log_likelihood = parts(w)
        return log_prior + power * log_likelihood

    slope = jax.value_and_grad(log_density)
    momentum = jax.random.normal(key_momentum, weights.shape)
    value, grad = slope(weights)

    def leapfrog(_: Array, at: tuple) -> tuple:
        w, p, _, grad = at
        p = p + 0.5 * step_size * grad
        w = w + step_size * p
        value, grad = slope(w)
        return w, p + 0.5 * step_size * grad, value, grad

    end = jax.lax.fori_loop(0, num_leapfrogs, leapfrog, (weights, momentum, value, grad))
    change = end[2] - value + 0.5 * (jnp.sum(momentum**2) - jnp.sum(end[1] ** 2))
    rate, is_accepted = metropolis(key_accept, change, jnp.isfinite(change))
    return jnp.where(is_accepted, end[0], weights), rate


def _exchange(
    key: PRNGKeyArray,
    log_likelihoods: Float[Array, " rung"],
    powers: Float[Array, " rung"],
    parity: Array,
) -> tuple[Array, Float[Array, " pair"]]:
    """Exchange the even or the odd pairs; return which rung's state every rung has now.

    The rates are 0 for the pairs that had no turn: of two iterations one.
    """
    pairs = jnp.arange(len(powers) - 1)
    has_turn = pairs % 2 == parity
    log_ratio = -jnp.diff(powers) * jnp.diff(log_likelihoods)
    keys = jax.random.split(key, len(pairs))
    rates, is_accepted = jax.vmap(metropolis)(keys, log_ratio, has_turn)
    order = jnp.arange(len(powers))
    order = order.at[:-1].add(is_accepted.astype(int)).at[1:].add(-is_accepted.astype(int))
    return order, rates
