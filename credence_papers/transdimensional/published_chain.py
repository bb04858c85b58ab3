"""The published chain: its acceptance ratio leaves the steps of NUTS out. Not a sampler to use.

Berezowski, "Trans-dimensional inference over Bayesian neural networks" (2021), algorithm 8: a step,
a birth or death, and another step are one proposal, tested by the target at its two ends. Its
public code leaves the densities of the two steps, which do not cancel there, out of the ratio; so
does this. Then follows a step of its own. The chain is biased: it climbs to high density and is
then refused nearly everywhere. It is here, and not among the methods, to show what that does to
published numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Posterior
from credence.engine.driver import Driver
from credence.ensembles.findings import Finding
from credence.kernels.base import Kernel, either, metropolis
from credence.methods import Transdimensional
from credence.methods.base import Drawn, Method
from credence.methods.transdimensional.active_neurons import Widths, only_active
from credence.methods.transdimensional.architecture.posterior import Architecture
from credence.methods.transdimensional.kernel import (
    TransdimensionalInfo,
    TransdimensionalState,
    transdimensional,
)
from credence.methods.transdimensional.moves.base import JumpInfo, LayerMove, Proposal, layer_jump
from credence.methods.transdimensional.moves.layer_birth import layer_birth
from credence.methods.transdimensional.target import Point, VariableWidth, total

Step = Callable[[Point, PRNGKeyArray, Data], Point]
Leap = Callable[[PRNGKeyArray, Point, Data], tuple[Point, JumpInfo]]
"""A jump that is always accepted where it stays in the support."""


@dataclass(frozen=True, kw_only=True)
class PublishedChain(Method):
    """`Transdimensional` between depths, with the published ratio in place of the right one.

    Args:
        chain: its settings; layers are drawn from the prior.
    """

    name: ClassVar[str] = "published_chain"
    summary: ClassVar[str] = "the published chain over the depth, which is biased"
    findings: ClassVar[tuple[type[Finding], ...]] = (Architecture,)

    chain: Transdimensional

    def prepared(self, posterior: Posterior) -> Posterior:
        """The posterior of the largest network; see `Method.prepared`."""
        return self.chain.prepared(posterior)

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        return self.chain.run_by(published_chain, key, posterior, driver)


def published_chain(log_density: LogDensity, *, target: VariableWidth, **settings: Any) -> Kernel:
    """One proposal of `accepted_by_the_ends`, then a step of all weights.

    Args:
        log_density, target: as of `transdimensional`.
        settings: those of `transdimensional`. The jump is a layer drawn from the prior.
    It is not invariant. What its steps cost is counted as that of the last one alone.
    """
    alone = transdimensional(log_density, target=target, **{**settings, "num_jumps": 0})
    leap = partial(layer_jump, target=target, move=always_accepted(layer_birth(target)))
    kinds = len(settings["moves"]) + len(settings["layer_moves"])

    def within(point: Point, key: PRNGKeyArray, data: Data) -> Point:
        state = TransdimensionalState(ravel_pytree(point.params)[0], point.widths)
        return located(alone.step(key, state, data)[0].position, point.widths, data)

    def located(position: Float[Array, " weight"], widths: Widths, data: Data) -> Point:
        params = target.model.unravel(position, data)
        return Point(params, widths, target.log_likelihood(params, data))

    def step(
        key: PRNGKeyArray, state: TransdimensionalState, data: Data
    ) -> tuple[TransdimensionalState, TransdimensionalInfo]:
        key_jump, key_within = jax.random.split(key)
        start = located(state.position, state.widths, data)
        point, jump = accepted_by_the_ends(
            key_jump, start, data, target=target, leap=leap, step=within
        )
        position = ravel_pytree(point.params)[0]
        state = TransdimensionalState(position, point.widths)
        state, info = alone.step(key_within, state, data)
        one = jnp.zeros(kinds, jnp.int32).at[-1]
        return state, info._replace(
            jump_acceptance_rate=jump.acceptance_rate,
            num_jumps=one.set(jump.is_in_range.astype(jnp.int32)),
            num_jumps_accepted=one.set(jump.is_accepted.astype(jnp.int32)),
        )

    return Kernel(alone.init, step)


def accepted_by_the_ends(
    key: PRNGKeyArray, point: Point, data: Data, *, target: VariableWidth, leap: Leap, step: Step
) -> tuple[Point, JumpInfo]:
    """Step, jump and step, accepted by min(1, R) with R = p(end) q(back) / [p(start) q(there)].

    p is the target and q the law of the jump alone: the densities of the two steps are missing.
    """
    key_before, key_jump, key_after, key_accept = jax.random.split(key, 4)
    before = step(point, key_before, data)
    jumped, info = leap(key_jump, before, data)
    after = step(jumped, key_after, data)
    drawn = log_prior(target, jumped) - log_prior(target, before)
    ends = log_joint(target, after) - log_joint(target, point)
    rate, is_accepted = metropolis(key_accept, ends - drawn, info.is_in_range)
    kept = either(is_accepted, after, point)
    return kept, info._replace(acceptance_rate=rate, is_accepted=is_accepted)


def always_accepted(move: LayerMove) -> LayerMove:
    """The same proposals with a ratio that no test refuses."""

    def sure(propose: Any) -> Any:
        def proposed(
            key: PRNGKeyArray, point: Point, after: Int[Array, ""], data: Data
        ) -> tuple[Proposal, Widths]:
            proposal, widths = propose(key, point, after, data)
            return proposal._replace(log_ratio=jnp.full_like(proposal.log_ratio, 1e6)), widths

        return proposed

    return LayerMove(sure(move.birth), sure(move.death))


def log_prior(target: VariableWidth, point: Point) -> Float[Array, ""]:
    """Log density of the active weights and of the other parameters, in nats."""
    normals = target.log_normals(point.params, point.widths)
    weights = total(only_active(normals, point.widths))
    return weights + target.model.likelihood.log_prior(point.params.likelihood)


def log_joint(target: VariableWidth, point: Point) -> Float[Array, ""]:
    """`log_prior` with the log likelihood."""
    return log_prior(target, point) + point.log_likelihood
