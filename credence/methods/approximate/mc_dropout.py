"""MC dropout: a network trained with dropout, and dropout kept on for prediction.

Gal & Ghahramani, "Dropout as a Bayesian approximation: representing model uncertainty in deep
learning" (2016). One set of weights; the uncertainty is that of the masks. It does not shrink with
more data, so the rate is a modelling choice, best made by validation: rate=None makes it.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from credence.adaptation.schedules import cosine_decay, rows_per_step
from credence.density.data import Data
from credence.density.posterior import BayesianModel, Position, Posterior
from credence.engine.driver import Driver
from credence.engine.plan import Plan
from credence.errors import InputError, check_share, require_positive
from credence.kernels.ascent.dropout import Rate, dropout, masked_layers, masked_log_density
from credence.kernels.base import Recipe
from credence.methods.base import Drawn, Method
from credence.methods.training import Training, num_held_out, split
from credence.models.networks.mlp import MLP, Network

ROUND = 50
"""Steps between changes of the learning rate, and checkpoints."""
RATES = (0.01, 0.05, 0.1, 0.2, 0.4)
"""Rates among which held-out rows choose."""
HELD_OUT, NUM_MASKS = Training(validation_fraction=0.2), 200
"""The share of the rows that choose, and the sets of masks by which they do."""


@dataclass(frozen=True, kw_only=True)
class MCDropout(Method):
    """Train with masks on all hidden neurons, then draw masks.

    The prior is the weight decay. A draw is an ordinary network: the masks are multiplied into the
    kernels behind the hidden layers. In one draw a neuron is masked at all points or at none.

    Args:
        num_draws: sets of masks.
        rate: probability that a hidden neuron is dropped, in (0, 1); None takes the one of `RATES`
            with which networks trained on four fifths of the rows predict the others best. Each is
            trained for as long.
        num_steps: of Adam, rounded up to whole rounds of 50.
        learning_rate: at the start; it falls to zero along half a cosine. In units of the weights.
        batch_size: rows per step; None uses all rows up to 1024 and 128 beyond.
    """

    name: ClassVar[str] = "mc_dropout"
    summary: ClassVar[str] = "dropout at training and prediction (approximate)"
    sources: ClassVar[tuple[str, ...]] = (
        (
            'Gal & Ghahramani, "Dropout as a Bayesian approximation: representing model '
            'uncertainty in deep learning" (2016)'
        ),
    )
    is_chain: ClassVar[bool] = False

    num_draws: int = 1000
    rate: float | None = 0.1
    num_steps: int = 5000
    learning_rate: float = 0.01
    batch_size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(
            num_draws=self.num_draws,
            num_steps=self.num_steps,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
        )
        if self.rate is not None:
            check_share("0.1 is usual, and a network without dropout is map", rate=self.rate)

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        require_hidden_units(posterior.model.network)
        key_init, key_train, key_draw, key_rate = jax.random.split(key, 4)
        rate, scalars = self.rate, {}
        if rate is None:
            rate = self._best_rate(key_rate, posterior, driver)
            scalars["rate"] = np.full((1, self.num_draws), rate)
        start = posterior.init(key_init, 1)
        plan = self._plan(posterior, rate, posterior.num_points)
        trained = driver.phase("train", key_train, plan, start, posterior.data)
        keys = jax.random.split(key_draw, self.num_draws)
        draws = _draw(keys, trained.positions[0], rate, posterior.data, model=posterior.model)
        return Drawn(draws[None], scalars)

    def _plan(self, posterior: Posterior, rate: float, num_rows: int) -> Plan:
        """The plan of training with masks of a rate, on so many rows."""
        num_rounds = -(-self.num_steps // ROUND)
        return Plan(
            Recipe(dropout, masked_log_density(posterior.model)),
            "train",
            cosine_decay(self.learning_rate, num_rounds, rate=rate),
            num_steps=num_rounds * ROUND,
            thinning=ROUND,
            block_steps=ROUND,
            batch_size=rows_per_step(self.batch_size, num_rows),
            keep_draws=False,
            may_stop_early=True,
        )

    def _best_rate(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> float:
        """The rate that predicts rows best which were not trained on."""
        num_others = num_held_out(posterior, HELD_OUT)
        if num_others == 0:
            raise InputError(
                f"{posterior.num_points} rows leave none to choose the rate by: give one, 0.1 is "
                "usual."
            )
        key_init, key_split, key_train, key_draw = jax.random.split(key, 4)
        fitting, others = split(key_split, posterior.data, num_others)
        start = posterior.init(key_init, 1)
        keys = jax.random.split(key_draw, NUM_MASKS)
        scores = {}
        for number, rate in enumerate(RATES, start=1):
            plan = self._plan(posterior, rate, len(fitting.x))
            plan = replace(plan, budget_share=number / (len(RATES) + 1))
            trained = driver.phase(f"rate {number}", key_train, plan, start, fitting)
            draws = _draw(keys, trained.positions[0], rate, others, model=posterior.model)
            scores[rate] = float(mean_log_predictive(draws, others, model=posterior.model))
        best = max(scores, key=lambda rate: np.nan_to_num(scores[rate], nan=-np.inf))
        driver.progress.say(f"Rows that are held out are predicted best with a rate of {best:g}.")
        return best


def require_hidden_units(network: Network) -> None:
    """Refuse a network without hidden neurons that can be masked.

    Raises:
        InputError: for other networks than an MLP with a hidden layer.
    """
    if not isinstance(network, MLP):
        raise InputError(
            f"mc_dropout masks the hidden neurons of an MLP, got {network}: use MLP, or another "
            "method, deep_ensemble for instance."
        )
    if not network.hidden:
        raise InputError(
            f"mc_dropout needs hidden neurons to drop, got {network}: add a hidden layer, or use "
            "nuts, which is exact and fast for a linear model."
        )


@partial(jax.jit, static_argnames="model")
def mean_log_predictive(
    draws: Float[Array, "draw weight"], rows: Data, *, model: BayesianModel
) -> Float[Array, ""]:
    """Log of the mean likelihood of the draws, mean over the rows, in nats."""

    def log_probs(position: Position) -> Float[Array, " point"]:
        params = model.unravel(position, rows)
        outputs = model.network.apply(params.network, rows.x)
        return model.likelihood.log_prob(params.likelihood, outputs, rows.y)

    each = jax.nn.logsumexp(jax.lax.map(log_probs, draws), axis=0) - jnp.log(len(draws))
    return jnp.average(each, weights=rows.weight)


@partial(jax.jit, static_argnames="model")
def _draw(
    keys: Array, position: Position, rate: Rate, data: Data, *, model: BayesianModel
) -> Float[Array, "draw weight"]:
    params = model.unravel(position, data)

    def draw(key: PRNGKeyArray) -> Float[Array, " weight"]:
        return ravel_pytree(params._replace(network=masked_layers(params.network, key, rate)))[0]

    return jax.vmap(draw)(keys)
