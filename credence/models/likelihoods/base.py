"""Likelihoods: what the outputs of a network say about the data.

A likelihood is a frozen, hashable object. Its own parameters (a learnt noise, say) are
unconstrained and come first; () if there are none.

    checked_targets(y) -> array                         as below, or an InputError
    num_outputs(num_targets) -> int                     outputs the network must have
    init(num_targets) -> params                         where optimisation may start
    log_prior(params) -> scalar                         normalised, Jacobian included, in nats
    sample_prior(key, num_targets) -> params
    log_prob(params, outputs, y) -> (point,)            summed over targets, in nats
    mean(params, outputs) -> (point, target)            class probabilities for classification
    sample(key, params, outputs) -> y

Regression has besides `location_scale` and the law of the standardised noise: see `LocationScale`.
Outputs are (point, output). Targets are (point, target) for regression, integer (point,) for
classification.
"""

from abc import ABC, abstractmethod
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

Outputs = Float[Array, "point output"]
Targets = Float[Array, "point target"]
Labels = Int[Array, " point"]
Noise = Float[Array, "*shape"]


@runtime_checkable
class Likelihood(Protocol):
    """What every likelihood offers; see the module's docstring."""

    def checked_targets(self, y: Any) -> np.ndarray:
        """Targets as an array that the likelihood takes; others are refused."""
        ...

    def num_outputs(self, num_targets: int) -> int:
        """Number of network outputs that so many targets need."""
        ...

    def init(self, num_targets: int) -> Any:
        """Parameters of the likelihood at the start: a pytree, () if there are none."""
        ...

    def log_prior(self, params: Any) -> Float[Array, ""]:
        """Log prior density of the parameters, in nats."""
        ...

    def sample_prior(self, key: PRNGKeyArray, num_targets: int) -> Any:
        """Draw the parameters from their prior."""
        ...

    def log_prob(self, params: Any, outputs: Outputs, y: Any) -> Float[Array, " point"]:
        """Log probability of every row, in nats."""
        ...

    def mean(self, params: Any, outputs: Outputs) -> Float[Array, "point target"]:
        """Mean of the targets at every point, or class probabilities."""
        ...

    def sample(self, key: PRNGKeyArray, params: Any, outputs: Outputs) -> Any:
        """Draw targets for the outputs."""
        ...


class NoParameters(ABC):
    """A likelihood without parameters beside the network's weights: the outputs tell all."""

    @abstractmethod
    def num_outputs(self, num_targets: int) -> int:
        """Network outputs that the targets need."""

    def init(self, num_targets: int) -> tuple[()]:
        """Return (): there are no parameters beside the network's weights."""
        return ()

    def log_prior(self, params: Any) -> Float[Array, ""]:
        """The log prior of no parameters: 0."""
        return jnp.zeros(())

    def sample_prior(self, key: PRNGKeyArray, num_targets: int) -> tuple[()]:
        """Return (): there are no parameters to draw."""
        return ()
