"""Sample a model by chains that leave out one fold of the rows each.

Together the chains predict as an ensemble does; and every row has chains that have not seen it,
whose predictions of it are honest. So one run gives both a model and its cross-validation.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.adaptation.settling import until_settled
from credence.adaptation.windows import latest, same_metric, window_adaptation
from credence.density.data import Data
from credence.density.posterior import BayesianModel, Posterior
from credence.engine.blocks import Block, init_states
from credence.engine.driver import Driver
from credence.engine.phases import Adapter
from credence.ensembles.ensemble import Ensemble
from credence.errors import InputError, plural, require_positive
from credence.kernels.ascent.optimizer import adam
from credence.kernels.base import Recipe
from credence.kernels.leaving_out import leaving_out
from credence.kernels.mcmc.microcanonical import adjusted_mclmc, check_lengths
from credence.methods.base import Drawn
from credence.methods.chains import Chains
from credence.methods.stacking.fold_rows import (
    FoldRows,
    assign_folds,
    copies,
    improve_on_next_fold,
    unseen_log_prob,
)
from credence.methods.training import Best, Training, early_stopping, training_plan
from credence.methods.work import uses_per_weight

SHORTEST_TRAJECTORY = 8
"""Leapfrogs of the longest trajectory, below which fewer trajectories are better."""
FIRST_STEP_SIZE = 0.002
"""Small enough where noise is small; elsewhere it grows fast."""
METRIC = 0.1
"""About the variance of a weight."""
SAMPLING_SHARE = 1.5
"""Gradients that may be spent on sampling, warm-up included, for each that may be on training."""
LEAST_WARMUP = 100
"""Steps of the warm-up, below which shorter trajectories are better."""


@dataclass(frozen=True, kw_only=True)
class FoldChains(Chains):
    """Microcanonical chains, each of which leaves out a fold of the rows.

    A chain starts from a network that was trained without its fold; the fold after it says when to
    stop. The step size is tuned for all chains together. The metric is the same for all weights:
    chains so short would only learn how little they have moved. The warm-up ends early where the
    chains no longer get better at predicting the rows that they leave out.

    Args beyond those of `Chains`:
        num_warmup: most steps of the warm-up.
        num_folds: into which the rows are divided; chain i leaves out fold i modulo num_folds.
        fold_seed: of the division.
        trajectory_length, decoherence_length: as of `MCLMC`.
        max_integration_steps: bound on the gradients of one step; where the noise is small, steps
            are too, and trajectories are shorter.
        training: of the networks where chains start.
    """

    name: ClassVar[str] = "fold_chains"
    summary: ClassVar[str] = "chains that leave out one fold of the rows each"
    is_chain: ClassVar[bool] = False
    round_draws: ClassVar[int] = 5

    num_draws: int = 20
    num_chains: int = 20
    num_warmup: int = 200
    target_acceptance_rate: float = 0.9
    num_folds: int = 10
    fold_seed: int = 0
    trajectory_length: float = 0.5
    decoherence_length: float = 2.0
    max_integration_steps: int = 192
    training: Training = field(default=Training(max_epochs=6000, patience=20))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_lengths(self.trajectory_length, self.decoherence_length)
        require_positive(max_integration_steps=self.max_integration_steps)
        if self.num_folds < 3 or self.num_chains < 1 or self.num_chains % self.num_folds:
            raise InputError(
                f"num_folds={self.num_folds} must be at least 3, and num_chains={self.num_chains} "
                "a multiple of it: every fold needs equally many chains that leave it out. Set "
                "both."
            )

    def prepared(self, posterior: Posterior) -> Posterior:
        """Refuse a table with fewer rows than folds."""
        num_rows = int(np.count_nonzero(posterior.data.weight))
        if num_rows < self.num_folds:
            raise InputError(
                f"{num_rows} rows cannot be divided into {self.num_folds} folds; rows of weight 0 "
                "do not count."
            )
        if posterior.groups is not None and num_groups(posterior) < self.num_folds:
            raise InputError(
                f"The rows are in {plural(num_groups(posterior), 'group')}, and cannot be divided "
                f"into {self.num_folds} folds without dividing one: leave the groups out, or hold "
                "back rows by hand."
            )
        return posterior

    def within(self, posterior: Posterior, max_work: float) -> "FoldChains":
        """The same with a bound on the work: training, the longest warm-up and the trajectories get
        shorter, and at last there are fewer steps.

        Args:
            max_work: rows times weights times gradients of all chains, in training and after it, of
                a table of 1000 rows; larger ones may take more, in proportion to the square root of
                their rows.
        """
        num_passes = self.affordable_passes(posterior, max_work)
        max_epochs = max(min(int(num_passes), self.training.max_epochs), 1)
        longest, num_gradients = self.max_integration_steps, SAMPLING_SHARE * num_passes
        affordable = int(num_gradients / longest) - self.num_draws
        num_warmup = min(max(affordable, LEAST_WARMUP), self.num_warmup)
        bound = int(num_gradients / (num_warmup + self.num_draws))
        share = min(bound / SHORTEST_TRAJECTORY, 1.0)
        return replace(
            self,
            training=replace(self.training, max_epochs=max_epochs),
            max_integration_steps=min(max(bound, SHORTEST_TRAJECTORY), longest),
            num_warmup=max(round(share * num_warmup), 1),
            num_draws=max(round(share * self.num_draws), 1),
        )

    def work(self, posterior: Posterior, num_passes: float) -> float:
        """Rows times weights that a row uses times gradients of all chains."""
        num_used = uses_per_weight(posterior) * posterior.num_weights
        return posterior.num_points * num_used * self.num_chains * num_passes

    def affordable_passes(self, posterior: Posterior, max_work: float) -> float:
        """How many passes of all chains `max_work` is for, see `within`."""
        return max_work * max(posterior.num_points / 1000, 1.0) ** 0.5 / self.work(posterior, 1)

    def folds_of(self, posterior: Posterior) -> Int[np.ndarray, " row"]:
        """The fold of every row: every fold has rows with weight, and rows of a group, or copies of
        one row, share one."""
        data, groups = posterior.data, posterior.groups
        if groups is None:
            groups = copies(data, self.num_folds)
        return assign_folds(data.y, self.num_folds, self.fold_seed, data.weight, groups)

    def for_groups(self, posterior: Posterior) -> "FoldChains":
        """The same with fewer folds where there are fewer groups of rows than folds."""
        if posterior.groups is None:
            return self
        most = min(self.num_folds, num_groups(posterior))
        fitting = [each for each in range(3, most + 1) if self.num_chains % each == 0]
        return replace(self, num_folds=fitting[-1]) if fitting else self

    def leave_out(self, fold: int) -> Any:
        """Mark the chains that leave out this fold."""
        return np.arange(self.num_chains) % self.num_folds == fold

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        key_train, key_warmup, key_sample = jax.random.split(key, 3)
        folds = self.folds_of(posterior)
        fold, rows = jnp.asarray(folds), FoldRows.of(folds, self.num_folds)
        data = posterior.data._replace(fold=fold)
        chain_folds = jnp.arange(self.num_chains, dtype=jnp.int32) % self.num_folds
        start = self._train(key_train, posterior, data, rows, chain_folds, driver)
        trained = Drawn(start[:, None], {})
        driver.progress.early(lambda: self._ensemble(posterior, trained, driver))
        data = posterior.anchored(start[0])._replace(fold=fold)
        recipe = self._recipe(
            posterior,
            build=adjusted_mclmc,
            decoherence_length=self.decoherence_length,
            max_integration_steps=self.max_integration_steps,
            trajectory_length=self.trajectory_length,
        )
        adapter = self._adapter(posterior.model, data, rows, start.shape[1])
        plan = replace(self._rounds().plan(recipe, adapter), monitored=False)
        states = init_states((start, chain_folds), plan.settings, data, recipe=recipe)
        warmup = driver.phase("warmup", key_warmup, plan, states, data)
        plan = self._sample_plan(plan, warmup.memory, thinning=self.thinning)
        return Drawn.by(driver.phase("sample", key_sample, plan, warmup.states, data))

    def _adapter(
        self, model: BayesianModel, data: Data, rows: FoldRows, num_weights: int
    ) -> Adapter:
        """Tune the step size, as long as rows that chains leave out are predicted better."""
        step_size = window_adaptation(
            FIRST_STEP_SIZE,
            jnp.full(num_weights, METRIC),
            num_rounds=self._rounds().number,
            target_acceptance_rate=self.target_acceptance_rate,
            add_draws=same_metric,
        )

        def score(block: Block) -> Float[np.ndarray, " row"]:
            found = unseen_log_prob(block.states, data, rows, model=model)
            return np.asarray(found)[rows.is_there]

        return until_settled(replace(step_size, tuned=latest), score, len(data.y))

    def _recipe(self, posterior: Posterior, **static: Any) -> Recipe:
        """A kernel whose chains leave out folds."""
        static = {"num_folds": self.num_folds, **static}
        return Recipe(leaving_out, posterior.log_density, tuple(sorted(static.items())))

    def _train(
        self,
        key: PRNGKeyArray,
        posterior: Posterior,
        data: Data,
        rows: FoldRows,
        chain_folds: Int[Array, " chain"],
        driver: Driver,
    ) -> Float[Array, "chain weight"]:
        """Train a network for every chain without its fold and the next, which ends it."""
        key_init, key_phase = jax.random.split(key)
        positions = posterior.init(key_init, self.num_chains)

        def update(best: Best, block: Block) -> Best:
            return improve_on_next_fold(best, block.states, data, rows, model=posterior.model)

        plan = training_plan(
            self._recipe(posterior, build=adam, num_left=2),
            early_stopping(positions, update, self.training),
            self.training,
            posterior.num_points,
            budget_share=0.25,
        )
        states = init_states((positions, chain_folds), plan.settings, data, recipe=plan.recipe)
        return driver.phase("train", key_phase, plan, states, data).memory.positions


def of_fold(ensemble: Ensemble, method: FoldChains, fold: int) -> Ensemble:
    """The chains that have not seen a fold."""
    is_there = np.zeros((ensemble.num_chains, ensemble.num_draws), bool)
    is_there[method.leave_out(fold)] = True
    return ensemble.subset(is_there, is_chain=False)


def num_groups(posterior: Posterior) -> int:
    """Number of groups of rows that have weight."""
    assert posterior.groups is not None
    return len(np.unique(posterior.groups[np.asarray(posterior.data.weight) > 0]))
