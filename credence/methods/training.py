"""Training members: Adam with early stopping, all members in one vmapped program.

A deep ensemble is what comes out; chains start there; laplace, swag, variational inference and an
emulating network begin with one member.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, UInt32

from credence.adaptation.schedules import rows_per_step
from credence.density.data import Data, some_rows
from credence.density.posterior import BayesianModel, Posterior
from credence.engine.blocks import Block, chain_devices, spread
from credence.engine.driver import Driver
from credence.engine.phases import Adapter
from credence.engine.plan import Plan
from credence.errors import InputError, check_numbers, require_positive
from credence.kernels.ascent.optimizer import adam
from credence.kernels.base import Recipe

IMAGES_PER_STEP = 128
"""A step on an image costs as much as one on hundreds of rows of a table, and a round has 50."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """How members are trained.

    Args:
        max_epochs: passes over the data at most.
        learning_rate: of Adam, in units of the weights.
        batch_size: rows per step; None uses all rows up to 1024 and 128 beyond;
            of images always 128.
        validation_fraction: share of the rows held out to decide when to stop; without any, the
            log density of the posterior itself decides.
        patience: rounds (of about 50 steps, whole epochs) without improvement before a member
            counts as finished.
    """

    max_epochs: int = 2000
    learning_rate: float = 0.01
    batch_size: int | None = None
    validation_fraction: float = 0.1
    patience: int = 5

    def __post_init__(self) -> None:
        check_numbers(self)
        require_positive(
            max_epochs=self.max_epochs,
            learning_rate=self.learning_rate,
            patience=self.patience,
            batch_size=self.batch_size,
        )
        if not 0 <= self.validation_fraction < 1:
            raise InputError(
                f"validation_fraction must be in [0, 1), got {self.validation_fraction}."
            )


class Best(NamedTuple):
    """Each member's best weights so far."""

    positions: Float[Array, "member weight"]
    loss: Float[Array, " member"]
    """Minus the mean log likelihood of the validation rows there (without such rows, minus the log
    posterior density per row), in nats."""
    stale: Float[Array, " member"]
    """Rounds without improvement."""


class Trained(NamedTuple):
    """What training leaves."""

    positions: Float[Array, "member weight"]
    loss: Float[Array, " member"]
    """The loss of every member's best weights, as in `Best`."""
    num_steps: int
    """Steps of Adam that every member made."""
    num_epochs: int
    """Passes over the rows that these are."""
    is_whole: bool
    """Whether training ended by itself, and not because time was up."""


def train(
    key: PRNGKeyArray,
    posterior: Posterior,
    driver: Driver,
    num_members: int,
    training: Training,
    *,
    budget_share: float = 1.0,
    may_stop_early: bool = False,
    recipe: Recipe | None = None,
    **settings: Any,
) -> Trained:
    """Train members as the driver's phase "train"; each ends at its best validation loss.

    Args:
        budget_share, may_stop_early: of the phase.
        recipe: of the optimiser; None for Adam.
        settings: of the optimiser, beside the learning rate.
    """
    key_init, key_split, key_phase = jax.random.split(key, 3)
    num_validation = num_held_out(posterior, training)
    fitting, validation = split(key_split, posterior.data, num_validation)
    start = posterior.init(key_init, num_members)

    def update(best: Best, block: Block) -> Best:
        return improve(
            best,
            block.states.position,
            validation,
            model=posterior.model,
            with_prior=num_validation == 0,
        )

    adapter = early_stopping(start, update, training, **settings)
    plan = training_plan(
        recipe or Recipe(adam, posterior.log_density),
        adapter,
        training,
        fitting.x.shape[0],
        is_image=len(fitting.x.shape) > 2,
        budget_share=budget_share,
        may_stop_early=may_stop_early,
    )
    result = driver.phase("train", key_phase, plan, start, fitting)
    best: Best = result.memory
    num_epochs = result.num_steps // plan.thinning
    is_whole = num_epochs >= training.max_epochs or adapter.finished(best)
    return Trained(best.positions, best.loss, result.num_steps, num_epochs, is_whole)


def training_plan(
    recipe: Recipe,
    adapter: Adapter,
    training: Training,
    num_points: int,
    *,
    is_image: bool = False,
    **kwargs: Any,
) -> Plan:
    """The plan of a phase "train": rounds of about 50 steps, whole epochs.

    Args:
        recipe: of the optimiser.
        adapter: as `early_stopping` makes it.
        num_points: rows that are fitted.
        is_image: whether rows are images.
        kwargs: further settings of the plan.
    """
    usual = IMAGES_PER_STEP if is_image else None
    batch_size = rows_per_step(training.batch_size or usual, num_points)
    steps_per_epoch = -(-num_points // batch_size)
    return Plan(
        recipe,
        "train",
        adapter,
        num_steps=training.max_epochs * steps_per_epoch,
        thinning=steps_per_epoch,
        block_steps=max(1, round(50 / steps_per_epoch)) * steps_per_epoch,
        batch_size=batch_size,
        keep_draws=False,
        **kwargs,
    )


def early_stopping(
    start: Float[Array, "member weight"],
    update: Callable[[Best, Block], Best],
    training: Training,
    **settings: Any,
) -> Adapter:
    """The adapter that remembers each member's best weights, and ends when none gets better.

    Args:
        start: weights of the members.
        update: (the best so far, a block) -> the best, as `better_of` finds it.
        settings: of the optimiser, beside the learning rate.
    """
    infinite = np.full(len(start), np.inf, start.dtype)
    best = Best(start, jnp.asarray(infinite), jnp.asarray(np.zeros_like(infinite)))
    return Adapter(
        spread(best, chain_devices(len(start))),  # as `update` leaves it: one program serves all
        settings=lambda best: {"learning_rate": np.float32(training.learning_rate), **settings},
        update=update,
        finished=lambda best: bool(np.all(np.asarray(best.stale) >= training.patience)),
    )


def num_held_out(posterior: Posterior, training: Training) -> int:
    """Number of validation rows: a share of the rows that have weight.

    Raises:
        InputError: where no row is left to fit.
    """
    num_rows = int(np.count_nonzero(posterior.data.weight))
    num_validation = round(training.validation_fraction * num_rows)
    if num_validation == num_rows:
        raise InputError(
            f"validation_fraction={training.validation_fraction} of {num_rows} rows "
            "leaves no row to fit: use a smaller fraction, or 0."
        )
    return num_validation


def held_out(key: PRNGKeyArray, posterior: Posterior, training: Training) -> Data:
    """The validation rows of `train` with the same key."""
    _, key_split, _ = jax.random.split(jax.random.clone(key), 3)  # the same key on purpose
    return split(key_split, posterior.data, num_held_out(posterior, training))[1]


def split(key: PRNGKeyArray, data: Data, num_validation: int) -> tuple[Data, Data]:
    """Rows to fit and rows to validate on, at random; without the latter, all rows for both.

    Rows without weight are among those to fit: a network can only be judged by others. Of rows on
    disk a part that fits memory, with weights as if it were all of them.
    """
    if not data.rows.in_memory:
        return _split_part(key, data, num_validation / data.x.shape[0])
    if num_validation == 0:
        return data, data
    order = _with_weight_first(np.asarray(_random_bits(key, data.x.shape[0])), data.weight)
    rows = lambda index: jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[index]), data)  # noqa: E731
    return rows(order[num_validation:]), rows(order[:num_validation])


def _split_part(key: PRNGKeyArray, data: Data, share: float) -> tuple[Data, Data]:
    """`split` of some rows."""
    part = some_rows(key, data)
    num_validation = round(share * int(np.count_nonzero(part.weight)))
    if num_validation == 0:
        return part, part
    order = _with_weight_first(np.arange(len(part.x)), part.weight)
    rows = lambda index: jax.tree.map(lambda leaf: leaf[index], part)  # noqa: E731
    fitting, validation = rows(order[num_validation:]), rows(order[:num_validation])
    total, kept = jnp.sum(part.weight), jnp.sum(fitting.weight)
    return fitting._replace(weight=fitting.weight * (1 - share) * total / kept), validation


def _with_weight_first(keys: np.ndarray, weight: Any) -> np.ndarray:
    """Sort rows by keys, those without weight behind all others."""
    return np.lexsort((keys, np.asarray(weight) == 0))


@partial(jax.jit, static_argnums=1)
def _random_bits(key: PRNGKeyArray, size: int) -> UInt32[Array, " point"]:
    return jax.random.bits(key, (size,), jnp.uint32)


@partial(jax.jit, static_argnames=("model", "with_prior"))
def improve(
    best: Best,
    positions: Float[Array, "member weight"],
    validation: Data,
    *,
    model: BayesianModel,
    with_prior: bool,
) -> Best:
    """Keep, member by member, what predicts the validation rows better.

    with_prior=True compares log posterior densities instead: the rows are those that were fitted.
    """

    def validation_loss(position: Float[Array, " weight"]) -> Float[Array, ""]:
        params = model.unravel(position, validation)
        log = model.log_density if with_prior else model.log_likelihood
        return -log(params, validation) / jnp.sum(validation.weight)

    return better_of(best, positions, jax.lax.map(validation_loss, positions))


def better_of(
    best: Best, positions: Float[Array, "member weight"], loss: Float[Array, " member"]
) -> Best:
    """Keep the positions of members whose loss has fallen."""
    better = loss < best.loss
    return Best(
        jnp.where(better[:, None], positions, best.positions),
        jnp.where(better, loss, best.loss),
        jnp.where(better, 0.0, best.stale + 1),
    )
