"""Gibbs updates of a hierarchical prior's precisions, alone and after another kernel's step."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import BayesianModel, LogDensity, Position
from credence.errors import InputError
from credence.kernels.base import Kernel, first_work
from credence.models.priors import HierarchicalGamma


class GibbsState(NamedTuple):
    """The position of a chain."""

    position: Position


class GibbsInfo(NamedTuple):
    """What a step did."""

    is_finite: Bool[Array, ""]


def gibbs_precisions(log_density: LogDensity, *, model: BayesianModel) -> Kernel:
    """Draw all precisions of a `HierarchicalGamma` prior from their law given the weights.

    The Gamma prior is conjugate to n weights N(0, 1 / (precision c)): given them the precision is
    Gamma(shape + n / 2, rate + sum of c w^2 / 2) (Neal, Bayesian Learning for Neural Networks,
    1996, section 3.2). Positions hold its logarithm, which needs no Jacobian in an exact draw.

    Args:
        log_density: (position, data) -> nats; not used, the conditional law does not depend on the
            data.
        model: whose prior is hierarchical.
    Raises:
        InputError: where the prior has no precisions.
    A non-finite draw is refused: the position stays, is_finite is False.
    """
    prior = model.prior
    if not isinstance(prior, HierarchicalGamma):
        raise InputError(f"{prior} has no precisions to draw: use prior='hierarchical'.")

    def step(key: PRNGKeyArray, state: GibbsState, data: Data) -> tuple[GibbsState, GibbsInfo]:
        params = model.unravel(state.position, data)
        shape, rate = prior.conditional(model.network, params.network)
        log_precision = jax.random.loggamma(key, shape) - jnp.log(rate)
        new = ravel_pytree(params._replace(prior=log_precision))[0]
        is_finite = jnp.all(jnp.isfinite(new))
        return GibbsState(jnp.where(is_finite, new, state.position)), GibbsInfo(is_finite)

    return Kernel(lambda position, data: GibbsState(position), step)


def with_gibbs(
    log_density: LogDensity, *, kernel: Callable[..., Kernel], model: BayesianModel, **settings: Any
) -> Kernel:
    """A step of a kernel, then one of `gibbs_precisions`: invariant if the kernel is.

    Args:
        log_density: (position, data) -> log density, summed over all data, in nats.
        kernel: builder of the other kernel.
        model: whose prior is hierarchical.
        settings: of the other kernel.
    Raises:
        InputError: where the prior has no precisions, for settings the other kernel refuses, and
            for one whose state has no position of its own.
    A non-finite draw of the precisions is refused; is_finite is False where either step was.
    """
    inner, gibbs = kernel(log_density, **settings), gibbs_precisions(log_density, model=model)

    def step(key: PRNGKeyArray, state: Any, data: Data) -> tuple[Any, Any]:
        key_inner, key_gibbs = jax.random.split(key)
        state, info = inner.step(key_inner, state, data)
        moved, redrawn = gibbs.step(key_gibbs, GibbsState(state.position), data)
        fresh = inner.init(moved.position, data)
        if "position" not in state._fields:
            name = getattr(kernel, "__name__", str(kernel))
            raise InputError(f"A Gibbs step cannot follow {name}: its state keeps no position.")
        renewed = {
            name: getattr(fresh, name)
            for name in ("position", "log_density", "gradient")
            if name in state._fields
        }
        anew = first_work(fresh)
        work = {"num_evaluations": anew.values, "num_gradients": anew.gradients}
        counted = {
            name: getattr(info, name) + more for name, more in work.items() if name in info._fields
        }
        info = info._replace(is_finite=info.is_finite & redrawn.is_finite, **counted)
        return state._replace(**renewed), info

    return Kernel(inner.init, step)
