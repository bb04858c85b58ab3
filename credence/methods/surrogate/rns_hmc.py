"""Random network surrogate HMC: exact, along the gradient of a cheap surrogate."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.adaptation.windows import first_window_adaptation, move_step_size
from credence.density.data import Data
from credence.density.posterior import Posterior
from credence.engine.blocks import Block
from credence.engine.driver import Driver
from credence.engine.phases import Adapter, PhaseResult
from credence.engine.plan import Plan
from credence.ensembles.findings import Finding
from credence.errors import InputError, check_name, require_positive
from credence.kernels.base import Recipe, Settings
from credence.kernels.evaluation.evaluation import evaluation
from credence.kernels.mcmc.hmc import hmc
from credence.methods.base import Drawn
from credence.methods.chains import TrainedChains
from credence.methods.surrogate.explained_gradients import ExplainedGradients
from credence.methods.surrogate.random_network import (
    FITS,
    GradientPoints,
    RandomNetwork,
    fit_random_network,
    random_bases,
    surrogate_gradient,
    untrained,
)
from credence.methods.surrogate.surrogate_hmc import surrogate_hmc

MIN_CALIBRATION = 20
"""Steps of HMC that leave enough points to fit and to hold out."""

CALIBRATION_LENGTH = 1.0
"""Mean integration time of the exploration's HMC, as `credence.methods.HMC` has by default."""


@dataclass(frozen=True, kw_only=True)
class RNSHMC(TrainedChains):
    """HMC along the gradient of a random network (Zhang, Shahbaba & Zhao, 2017).

    HMC explores; the second half of its draws, of all chains, train a random network with one
    hidden layer (`credence.methods.surrogate.random_network`). Its gradient then takes the place of
    the posterior's in the leapfrog, and the true density accepts: a step costs one likelihood and
    no gradient, and is exact however poor the surrogate. A poor one is slow: its warm-up has to
    shorten the trajectories until they are a random walk. Expect that for networks' posteriors
    (see "surrogate_r2" among the scalars, the share of held-out gradients that the surrogate
    explains), and a gain for smooth posteriors of tens of parameters and many rows.

    Args beyond those of `TrainedChains`, whose num_warmup tunes the surrogate's step size:
        num_calibration: steps of HMC per chain that tune the metric and train the surrogate.
        num_features: hidden neurons of the random network.
        fit: train it on "gradients" of the log density or, as in the paper, on its "values".
        gaussian_part: add the potential of a Gaussian with the mean and covariance of
            those draws (variances only where they are fewer than ten per weight).
        num_integration_steps: leapfrog steps of a trajectory.
        trajectory_length: mean integration time at most, in units where the posterior's scales are
            1; shorter where target_acceptance_rate asks for it.
    """

    name: ClassVar[str] = "rns_hmc"
    reads_disk: ClassVar[bool] = True
    summary: ClassVar[str] = "HMC along a random network surrogate's gradients: exact"
    sources: ClassVar[tuple[str, ...]] = (
        (
            'Zhang, Shahbaba & Zhao, "Hamiltonian Monte Carlo acceleration using surrogate '
            'functions with random bases" (2017)'
        ),
    )
    findings: ClassVar[tuple[type[Finding], ...]] = (ExplainedGradients,)

    num_warmup: int = 500
    thinning: int = 2
    target_acceptance_rate: float = 0.65
    num_calibration: int = 500
    num_features: int = 500
    fit: str = "gradients"
    gaussian_part: bool = True
    num_integration_steps: int = 10
    trajectory_length: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(
            num_features=self.num_features,
            num_integration_steps=self.num_integration_steps,
            trajectory_length=self.trajectory_length,
        )
        if self.num_calibration < MIN_CALIBRATION:
            raise InputError(
                f"num_calibration must be at least {MIN_CALIBRATION}, got {self.num_calibration}: "
                "the surrogate is trained on these steps; 500 is usual."
            )
        check_name("fit", self.fit, FITS)

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        key_train, key_calibrate, key_emulate, key_warmup, key_sample = jax.random.split(key, 5)
        start = self._start(key_train, posterior, driver, budget_share=0.2)
        data = posterior.anchored(start[0])
        explored, metric = self._calibrate(key_calibrate, posterior, driver, start, data)
        found = self._emulate(key_emulate, posterior, driver, explored.draws, data)

        def settings(log_step_size: Float[Any, ""]) -> Settings:
            step_size = np.exp(log_step_size).astype(metric.dtype)
            return {"step_size": step_size, "inverse_mass": metric, "surrogate": found.network}

        static = (
            ("gradient", surrogate_gradient),
            ("num_integration_steps", self.num_integration_steps),
        )
        recipe = Recipe(surrogate_hmc, posterior.log_density, static)
        adapter = step_size_adaptation(
            settings,
            longest=self.trajectory_length / self.num_integration_steps,
            target_acceptance_rate=self.target_acceptance_rate,
        )
        plan = replace(self._rounds().plan(recipe, adapter), budget_share=0.6)
        warmup = driver.phase("warmup", key_warmup, plan, explored.positions, data)
        plan = self._sample_plan(plan, warmup.memory, thinning=self.thinning)
        sample = driver.phase("sample", key_sample, plan, warmup.states, data)
        r2 = np.full(sample.draws.shape[:2], found.r2)
        return Drawn(sample.draws, sample.info | {"surrogate_r2": r2})

    def _calibrate(
        self,
        key: PRNGKeyArray,
        posterior: Posterior,
        driver: Driver,
        positions: Float[Array, "chain weight"],
        data: Data,
    ) -> tuple[PhaseResult, Float[np.ndarray, " weight"]]:
        """HMC, and the metric that it is tuned to on the way."""
        key_step, key_phase = jax.random.split(key)
        log_density = posterior.log_density
        static = (("max_integration_steps", 256), ("trajectory_length", CALIBRATION_LENGTH))
        num_rounds = -(-self.num_calibration // self.round_draws)
        adapter = first_window_adaptation(
            key_step, positions, data, log_density=log_density, num_rounds=num_rounds
        )
        plan = Plan(
            Recipe(hmc, log_density, static, fixed_cost=False),
            "calibrate",
            adapter,
            num_steps=self.num_calibration,
            block_steps=self.round_draws,
            budget_share=0.4,
        )
        explored = driver.phase("calibrate", key_phase, plan, positions, data)
        return explored, adapter.tuned(explored.memory)["inverse_mass"]

    def _emulate(
        self,
        key: PRNGKeyArray,
        posterior: Posterior,
        driver: Driver,
        draws: Float[np.ndarray, "chain draw weight"],
        data: Data,
    ) -> "Fitted":
        """Evaluate the second half of the draws, and fit the surrogate to them."""
        key_bases, key_phase = jax.random.split(key)
        bases = random_bases(key_bases, self.num_features, posterior.num_weights)
        points = draws[:, draws.shape[1] // 2 :]
        num_points = points.shape[0] * points.shape[1]
        network = untrained(bases, num_points=num_points, gaussian_part=self.gaussian_part)

        def update(found: Fitted, block: Block) -> Fitted:
            state = jax.device_get(block.states)
            by_chain = GradientPoints(
                points,
                state.log_density.reshape(points.shape[:2]),
                state.gradient.reshape(points.shape),
            )
            return Fitted(*fit_random_network(found.network, by_chain, fit=self.fit))

        plan = Plan(
            Recipe(evaluation, posterior.log_density),
            "emulate",
            Adapter(Fitted(network, np.zeros(())), lambda found: {}, update),
            num_steps=1,
            keep_draws=False,
        )
        flat = jnp.asarray(points.reshape(-1, posterior.num_weights))
        return driver.phase("emulate", key_phase, plan, flat, data).memory


class Fitted(NamedTuple):
    """A surrogate, and the share of held-out gradients that it explains."""

    network: RandomNetwork
    r2: np.ndarray


class StepSize(NamedTuple):
    """What the warm-up remembers between rounds; see `credence.adaptation.windows.Memory`."""

    rounds_since_metric: np.ndarray
    log_step_size: np.ndarray
    mean_log_step_size: np.ndarray


def step_size_adaptation(
    settings: Callable[[Any], Settings],
    *,
    longest: float,
    target_acceptance_rate: float,
) -> Adapter:
    """Adapter of the step size, from its longest value towards the target acceptance.

    `settings` are those for the logarithm of a step size.

    The energy error that a surrogate leaves is proportional to the trajectory's length, and with a
    fixed number of steps to the step size itself: order 1.
    """
    most = np.log(np.asarray(longest, float))

    def update(memory: StepSize, block: Block) -> StepSize:
        acceptance = float(np.mean(np.asarray(block.info["acceptance_rate"])))
        memory = move_step_size(memory, acceptance, target_acceptance_rate, order=1.0)
        return memory._replace(
            log_step_size=np.minimum(memory.log_step_size, most),
            mean_log_step_size=np.minimum(memory.mean_log_step_size, most),
        )

    start = StepSize(np.zeros(()), most, most)
    return Adapter(
        start,
        lambda memory: settings(memory.log_step_size),
        update,
        tuned=lambda memory: settings(memory.mean_log_step_size),
    )
