"""Priors over the number of neurons of a hidden layer, and over the number of hidden layers."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from credence.errors import InputError, check_numbers, refuse_unread, require_positive

SHAPES = ("uniform", "poisson", "geometric")


@dataclass(frozen=True)
class CountPrior(ABC):
    """p(k) for k = smallest, ..., largest, normalised there.

        uniform:    p(k) constant
        poisson:    p(k) proportional to mean^k / k!
        geometric:  p(k) proportional to (1 - 1 / mean)^k

    Args:
        shape: "uniform", "poisson" or "geometric".
        mean: of the law on k >= 0 (poisson) or k >= 1 (geometric) before it is truncated;
            "uniform" has none.
        smallest: no count below it.
    Raises:
        InputError: for an unknown shape, a mean that is no mean of such a law, or smallest < 1.
    """

    shape: str = "uniform"
    mean: float = 8.0
    smallest: int = 1

    @property
    @abstractmethod
    def noun(self) -> str:
        """The word for what is counted."""

    @property
    @abstractmethod
    def least(self) -> str:
        """The sentence that says what there is at least."""

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.shape not in SHAPES:
            raise InputError(
                f"Unknown prior over {self.noun}s {self.shape!r}: use one of {', '.join(SHAPES)}."
            )
        require_positive(mean=self.mean)
        if self.shape == "geometric" and not self.mean > 1:
            raise InputError(f"A geometric law on 1, 2, ... has a mean > 1, got {self.mean}.")
        if not np.isfinite(self.mean):
            raise InputError(
                f"The mean of a prior over {self.noun}s must be finite, got {self.mean}."
            )
        if self.smallest < 1:
            raise InputError(f"{self.least}, got smallest={self.smallest}.")
        if self.shape == "uniform":
            refuse_unread(
                self, "of shape='poisson' or 'geometric' and nothing to 'uniform'", "mean"
            )

    def log_probs(self, largest: int) -> Float[np.ndarray, " width"]:
        """log p(k) for k = 0, ..., largest + 1, in nats: -inf outside the support.

        Both ends are there so that a step out of the support finds its probability, zero.

        Raises:
            InputError: where the support is empty.
        """
        if largest < self.smallest:
            raise InputError(
                f"There is no {self.noun} between {self.smallest} and {largest}: the largest "
                f"{self.noun} must be at least the smallest."
            )
        width = np.arange(largest + 2)
        if self.shape == "poisson":
            log_prob = width * np.log(self.mean) - gammaln(width + 1)
        elif self.shape == "geometric":
            log_prob = width * np.log1p(-1 / self.mean)
        else:
            log_prob = np.zeros(len(width))
        is_supported = (width >= self.smallest) & (width <= largest)
        log_prob = np.where(is_supported, log_prob, -np.inf)
        return log_prob - np.logaddexp.reduce(log_prob)


@dataclass(frozen=True)
class WidthPrior(CountPrior):
    """A prior over the number of neurons of a hidden layer; see `CountPrior`."""

    @property
    def noun(self) -> str:
        """The word for what is counted."""
        return "width"

    @property
    def least(self) -> str:
        """The sentence that says what there is at least."""
        return "A hidden layer has at least one whole neuron"


@dataclass(frozen=True)
class DepthPrior(CountPrior):
    """A prior over the number of hidden layers; see `CountPrior`."""

    @property
    def noun(self) -> str:
        """The word for what is counted."""
        return "depth"

    @property
    def least(self) -> str:
        """The sentence that says what there is at least."""
        return "A network has at least one whole hidden layer here"

    mean: float = 2.0
