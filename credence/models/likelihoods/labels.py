"""Likelihoods of labels: Bernoulli and categorical."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.errors import InputError, require_positive
from credence.models.likelihoods.base import Labels, NoParameters, Outputs


class Classification(NoParameters, ABC):
    """Likelihoods of labels, without parameters of their own."""

    max_label: ClassVar[int | None] = None
    """The largest label, where the number of outputs does not tell."""

    @abstractmethod
    def log_prob(self, params: Any, outputs: Outputs, y: Labels) -> Float[Array, " point"]:
        """Log probability of every label, in nats."""

    def checked_targets(self, y: Any) -> np.ndarray:
        """Integer labels (point,) from 0.

        Raises:
            InputError: for anything else.
        """
        y = np.asarray(y)
        if y.ndim != 1 or y.dtype.kind not in "biu":
            raise InputError(
                f"{type(self).__name__} needs integer labels y (point,), "
                f"got shape {y.shape} of {y.dtype}: number the classes from 0."
            )
        largest = np.inf if self.max_label is None else self.max_label
        if np.any((y < 0) | (y > largest)):
            raise InputError(
                f"{type(self).__name__} needs labels from 0"
                + ("" if self.max_label is None else f" to {self.max_label}")
                + f", got {y.min()} to {y.max()}: number the classes from 0."
            )
        return y.astype(np.int32)

    def check_known(self, y: Any, num_outputs: int) -> None:
        """Refuse labels beyond those of a network with so many outputs.

        Raises:
            InputError: it says which labels there are.
        """
        largest = num_outputs - 1 if self.max_label is None else self.max_label
        y = np.asarray(y)
        if np.any((y < 0) | (y > largest)):
            raise InputError(f"Labels are 0 to {largest} here, got {y.min()} to {y.max()}.")


@dataclass(frozen=True)
class Bernoulli(Classification):
    """P(y = 1) = sigmoid(output), for labels 0 and 1."""

    max_label: ClassVar[int | None] = 1

    def num_outputs(self, num_targets: int) -> int:
        """Number of outputs of the network: one logit."""
        return 1

    def log_prob(self, params: Any, outputs: Outputs, y: Labels) -> Float[Array, " point"]:
        """Log probability of the label, in nats."""
        logit = outputs[:, 0]
        return jax.nn.log_sigmoid(jnp.where(y == 1, logit, -logit))

    def mean(self, params: Any, outputs: Outputs) -> Float[Array, "point 2"]:
        """Probabilities of labels 0 and 1."""
        logit = outputs[:, 0]
        return jax.nn.sigmoid(jnp.stack([-logit, logit], axis=-1))

    def sample(self, key: PRNGKeyArray, params: Any, outputs: Outputs) -> Labels:
        """One label per point."""
        return jax.random.bernoulli(key, jax.nn.sigmoid(outputs[:, 0])).astype(jnp.int32)


@dataclass(frozen=True)
class Categorical(Classification):
    """P(y = c) = softmax(a * outputs)_c with inverse temperature a.

    Args:
        inverse_temperature: a > 0; below 1 the same outputs give less certain labels.
    """

    inverse_temperature: float = 1.0

    def __post_init__(self) -> None:
        require_positive(inverse_temperature=self.inverse_temperature)

    def num_outputs(self, num_targets: int) -> int:
        """One logit per class: for labels, num_targets is the number of classes."""
        return num_targets

    def log_prob(self, params: Any, outputs: Outputs, y: Labels) -> Float[Array, " point"]:
        """Log probability of the label, in nats."""
        log_probs = jax.nn.log_softmax(self.inverse_temperature * outputs)
        return jnp.take_along_axis(log_probs, y[:, None], axis=-1)[:, 0]

    def mean(self, params: Any, outputs: Outputs) -> Float[Array, "point class"]:
        """The probability of every class."""
        return jax.nn.softmax(self.inverse_temperature * outputs)

    def sample(self, key: PRNGKeyArray, params: Any, outputs: Outputs) -> Labels:
        """One label per point."""
        return jax.random.categorical(key, self.inverse_temperature * outputs).astype(jnp.int32)
