"""SGHMC and pCN as the FBNN paper calibrates by them: raw draws from a random start.

The code (github.com/zahraMoslemi/FBNN-codes) takes the scale-adapted SGHMC of Springenberg, Klein,
Falkner & Hutter, "Bayesian optimization with robust Bayesian neural networks" (2016), with these
settings. Nothing here is good practice: it is what was published, to be compared with.

What differs: the code's scales and their windows start at 1, ours as `scale_adapted_sghmc` says;
its networks have ReLUs, ours the activation that they are given.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.adaptation.reference import prior_reference
from credence.density.data import Data
from credence.density.posterior import BayesianModel, LogDensity, Position, Posterior
from credence.engine.driver import Driver
from credence.engine.phases import fixed
from credence.engine.plan import Plan
from credence.errors import InputError, require_positive
from credence.kernels.base import Kernel, Recipe
from credence.kernels.mcmc.gibbs import GibbsState, gibbs_precisions
from credence.kernels.mcmc.pcn import pcn
from credence.kernels.sgmcmc.sghmc import check_friction, scale_adapted_sghmc
from credence.methods.base import Drawn, Method
from credence.models.priors import HierarchicalGamma

PRIOR = HierarchicalGamma(shape=10.0, rate=10.0, per="array", scaling="unit")
"""The public code's prior: every array of weights has a precision ~ Gamma(10, 10)."""


class RefreshedState(NamedTuple):
    """A position, the state of SGHMC there, and the number of steps so far."""

    position: Position
    inner: Any
    num_steps: Int[Array, ""]


def refreshed_sghmc(
    log_density: LogDensity,
    *,
    model: BayesianModel,
    refresh_every: int,
    precisions_every: int,
    **settings: Any,
) -> Kernel:
    """`scale_adapted_sghmc` of the weights alone, whose momentum and prior are drawn anew at times.

    Args:
        log_density: (position, data) -> log density, summed over all data, in nats.
        model: whose prior is hierarchical.
        refresh_every: steps from one draw of the momentum to the next, N(0, rate), where rate is
            that of the gradients.
        precisions_every: steps from one draw of the prior's precisions, given the weights, to the
            next; in between they stay.
        settings: of `scale_adapted_sghmc`.
    A non-finite step is refused: the position stays at rest, is_finite is False.
    """
    inner = scale_adapted_sghmc(log_density, **settings)
    gibbs = gibbs_precisions(log_density, model=model)

    def init(position: Position, data: Data) -> RefreshedState:
        return RefreshedState(position, inner.init(position, data), jnp.zeros((), jnp.int32))

    def step(key: PRNGKeyArray, state: RefreshedState, data: Data) -> tuple[RefreshedState, Any]:
        key_momentum, key_step, key_gibbs = jax.random.split(key, 3)
        before, number = state.inner, state.num_steps
        std = settings["step_size"] * before.mean_square**-0.25
        fresh = std * jax.random.normal(key_momentum, std.shape, std.dtype)
        velocity = jnp.where(number % refresh_every == 0, fresh, before.velocity)
        after, info = inner.step(key_step, before._replace(velocity=velocity), data)
        weights_moved = jnp.where(_is_weight(model, after.position, data), after.position,
                                  before.position)  # fmt: skip
        drawn, _ = gibbs.step(key_gibbs, GibbsState(weights_moved), data)
        is_time = number % precisions_every == 0
        position = jnp.where(is_time, drawn.position, weights_moved)
        return RefreshedState(position, after._replace(position=position), number + 1), info

    return Kernel(init, step)


def _is_weight(model: BayesianModel, position: Position, data: Data) -> Array:
    """Tell the numbers of a position that are not precisions of the prior."""
    params = model.unravel(position, data)
    ones = jax.tree.map(jnp.ones_like, params)
    nothing = jax.tree.map(jnp.zeros_like, params.prior)
    return ravel_pytree(ones._replace(prior=nothing))[0] > 0


@dataclass(frozen=True, kw_only=True)
class PublicSGHMC(Method):
    """SGHMC with the steps of the FBNN paper's public code, from a random start.

    The prior is the public code's, whatever that of the posterior; see `PRIOR`. Draws are raw: the
    chain has not converged where they begin.

    Args:
        num_draws: per chain, one after every epoch.
        num_chains: independent starts; the code has one.
        burn_in: epochs in which the scales of the weights are found, before the first draw; 40 in
            the code.
        step_size, friction: as of `scale_adapted_sghmc`.
        batch_size: rows per step, from shuffled epochs.
        refresh_every: steps from one draw of the momentum to the next.
        precisions_every: steps from one draw of the prior's precisions to the next.
    """

    name: ClassVar[str] = "sghmc_public"
    summary: ClassVar[str] = "SGHMC with the steps of the FBNN paper's public code"
    sources: ClassVar[tuple[str, ...]] = (
        (
            'Moslemi, Meng, Lan & Shahbaba, "Scaling up Bayesian neural networks with '
            'neural networks" (2024)'
        ),
    )

    num_draws: int = 200
    num_chains: int = 4
    burn_in: int = 40
    step_size: float = 0.01
    friction: float = 0.05
    batch_size: int = 32
    refresh_every: int = 50
    precisions_every: int = 15

    def __post_init__(self) -> None:
        super().__post_init__()
        check_friction(self.friction)
        names = ("num_draws", "num_chains", "burn_in", "step_size", "batch_size", "refresh_every")
        values = {name: getattr(self, name) for name in (*names, "precisions_every")}
        require_positive(**values)

    def prepared(self, posterior: Posterior) -> Posterior:
        """The posterior under the public code's prior.

        Raises:
            InputError: for inputs on disk.
        """
        model, data = posterior.model, posterior.data
        if not data.rows.in_memory:
            raise InputError("sghmc_public wants its inputs in memory: use calibration='sghmc'.")
        return Posterior(model.network, PRIOR, model.likelihood, (data.x, data.y, data.weight))

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        key_init, key_adapt, key_sample = jax.random.split(key, 3)
        rows = min(self.batch_size, posterior.num_points)
        epoch = -(-posterior.num_points // rows)
        static = (
            ("model", posterior.model),
            ("precisions_every", self.precisions_every),
            ("refresh_every", self.refresh_every),
        )
        settings = {
            "step_size": np.float32(self.step_size),
            "friction": np.float32(self.friction),
        }
        adapting = Plan(
            Recipe(refreshed_sghmc, posterior.log_density, static),
            "warmup",
            fixed(**settings, is_adapting=np.asarray(True)),
            num_steps=self.burn_in * epoch,
            thinning=epoch,
            block_steps=epoch,
            batch_size=rows,
            keep_draws=False,
            monitored=False,  # draws of another posterior than that of the run
            budget_share=self.burn_in / (self.burn_in + self.num_draws),
        )
        start = posterior.init(key_init, self.num_chains)
        adapted = driver.phase("adapt", key_adapt, adapting, start, posterior.data)
        sampling = replace(
            adapting,
            cost_class="sample",
            adapter=fixed(**settings, is_adapting=np.asarray(False)),
            num_steps=self.num_draws * epoch,
            keep_draws=True,
            budget_share=1.0,
            may_stop_early=True,
        )
        drawn = driver.phase("sample", key_sample, sampling, adapted.states, posterior.data)
        return Drawn.by(drawn)


def crank_nicolson_step(h: float) -> float:
    """The step size b at which `credence.kernels.pcn` proposes as the public code does with h.

    There w' = ((1 - h/4) w + sqrt(h) xi) / (1 + h/4): b = sqrt(h) / (1 + h/4).
    """
    return h**0.5 / (1 + h / 4)


@dataclass(frozen=True, kw_only=True)
class PublicPCN(Method):
    """The preconditioned Crank-Nicolson algorithm with the step of the FBNN paper's public code,
    from a random start.

    Draws are raw, one step apart: the chain has not converged where they begin.

    Args:
        num_draws: per chain.
        num_chains: independent starts; the code has one.
        h: of the public code's proposal; see `crank_nicolson_step`.
    """

    name: ClassVar[str] = "pcn_public"
    reads_disk: ClassVar[bool] = True
    summary: ClassVar[str] = "pCN with the step of the FBNN paper's public code"
    sources: ClassVar[tuple[str, ...]] = PublicSGHMC.sources

    num_draws: int = 200
    num_chains: int = 4
    h: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(num_draws=self.num_draws, num_chains=self.num_chains, h=self.h)

    def prepared(self, posterior: Posterior) -> Posterior:
        """The posterior itself.

        Raises:
            InputError: where its prior is not Gaussian.
        """
        prior_reference(posterior)
        return posterior

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        key_init, key_sample = jax.random.split(key)
        start = posterior.init(key_init, self.num_chains)
        mean, std = prior_reference(posterior)
        settings = {
            "step_size": np.asarray(crank_nicolson_step(self.h), start.dtype),
            "reference_mean": np.asarray(mean, start.dtype),
            "reference_std": np.asarray(std, start.dtype),
        }
        plan = Plan(
            Recipe(pcn, posterior.log_density),
            "sample",
            fixed(**settings),
            num_steps=self.num_draws,
            may_stop_early=True,
        )
        data = posterior.anchored(start[0])
        return Drawn.by(driver.phase("sample", key_sample, plan, start, data))


def under_own_prior(
    positions: Float[np.ndarray, "chain draw weight"], posterior: Posterior
) -> Float[np.ndarray, "chain draw own"]:
    """Positions of `PublicSGHMC` as positions of a posterior: the precisions, which come last, are
    left out, and those of the posterior's own prior, if it has any, are where they start."""
    model, data = posterior.model, posterior.data
    network = model.template(data).network
    own = np.asarray(ravel_pytree(model.prior.init(model.network, network))[0])
    weights = positions[..., : posterior.num_weights - own.size]
    added = np.broadcast_to(own.astype(positions.dtype), (*positions.shape[:2], own.size))
    return np.concatenate([weights, added], axis=-1)
