"""Tuning of the step at fixed widths, of chains and of ladders, by the neurons in use."""

from functools import partial
from typing import TypedDict

from jaxtyping import Array, Float, PRNGKeyArray

from credence.adaptation.ladder import ladder_adaptation, prior_variances
from credence.adaptation.tunable_kernels import Tunable
from credence.density.data import Data
from credence.density.posterior import Posterior
from credence.engine.phases import Adapter
from credence.kernels.mcmc.replica_exchange import ladder_of
from credence.methods.transdimensional.active_metric import add_active_draws


class TuningSettings(TypedDict):
    """What both take: the step at fixed widths, and how it is tuned."""

    tunable: Tunable
    num_rounds: int
    target_acceptance_rate: float


def step_tuning(
    key: PRNGKeyArray,
    whole: Float[Array, "chain weight"],
    posterior: Posterior,
    data: Data,
    *,
    tunable: Tunable,
    num_rounds: int,
    target_acceptance_rate: float,
) -> Adapter:
    """Tune the step at fixed widths, from whole networks on."""
    return tunable.tuning(
        key,
        whole,
        data,
        log_density=posterior.log_density,
        num_rounds=num_rounds,
        target_acceptance_rate=target_acceptance_rate,
        add_draws=partial(add_active_draws, posterior),
    )


def ladder_tuning(
    key: PRNGKeyArray,
    posterior: Posterior,
    data: Data,
    *,
    num_rungs: int,
    tunable: Tunable,
    num_rounds: int,
    target_acceptance_rate: float,
) -> Adapter:
    """Place the powers, and tune the step at fixed widths of every rung."""
    return ladder_adaptation(
        prior_variances(key, data, draw=ladder_of(posterior.model).from_prior),
        num_rungs=num_rungs,
        num_rounds=num_rounds,
        target_acceptance_rate=target_acceptance_rate,
        order=tunable.order,
        largest=tunable.largest_step,
        add_draws=partial(add_active_draws, posterior),
    )
