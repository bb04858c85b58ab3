"""Priors over the parameters of a network.

A prior is a frozen, hashable object with

    init(network, params) -> hyper                      unconstrained hyperparameters, () if none
    log_density(network, params, hyper) -> scalar       joint, normalised, in nats
    sample(key, network, params) -> (params, hyper)     params gives shapes and dtypes only

`GaussianPrior`s have besides `stds(network, params)`, the standard deviation of every weight, which
pCN and multilevel methods need.
"""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.stats import gamma, norm
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.errors import InputError, require_positive
from credence.models.networks.mlp import Layer, Network


@runtime_checkable
class Prior(Protocol):
    """What every prior offers; see the module's docstring."""

    def init(self, network: Network, params: Any) -> Any:
        """Hyperparameters at the start: a pytree, () if there are none."""
        ...

    def log_density(self, network: Network, params: Any, hyper: Any) -> Float[Array, ""]:
        """Log density of weights and hyperparameters, in nats."""
        ...

    def sample(self, key: PRNGKeyArray, network: Network, params: Any) -> tuple[Any, Any]:
        """Draw weights and hyperparameters."""
        ...


class GaussianPrior(ABC):
    """Independent centred Gaussians; a subclass says their standard deviations."""

    @abstractmethod
    def stds(self, network: Network, params: Any) -> Any:
        """Standard deviations: a pytree like params, each leaf broadcastable to its array."""

    def init(self, network: Network, params: Any) -> tuple[()]:
        """Return (): this prior has no hyperparameters."""
        return ()

    def log_density(self, network: Network, params: Any, hyper: Any) -> Float[Array, ""]:
        """Sum over all weights of log N(w; 0, std^2), in nats."""
        return normal_log_density(params, self.stds(network, params))

    def sample(self, key: PRNGKeyArray, network: Network, params: Any) -> tuple[Any, tuple[()]]:
        """One draw; params gives the shapes."""
        return normal_sample(key, params, self.stds(network, params)), ()


@dataclass(frozen=True)
class Gaussian(GaussianPrior):
    """N(0, weight_std^2 / fan_in) or N(0, weight_std^2) for weights, N(0, bias_std^2) for biases.

    Args:
        scaling: "fan_in" (Neal, Bayesian Learning for Neural Networks, 1996: the prior over
            functions then has a limit as the width grows) or "unit".
        weight_std: standard deviation of a weight before scaling.
        bias_std: standard deviation of a bias.
    Raises:
        InputError: for an unknown scaling or a standard deviation that is not > 0.
    """

    scaling: str = "fan_in"
    weight_std: float = 1.0
    bias_std: float = 1.0

    def __post_init__(self) -> None:
        if self.scaling not in ("fan_in", "unit"):
            raise InputError(f"Unknown prior scaling {self.scaling!r}: use 'fan_in' or 'unit'.")
        require_positive(weight_std=self.weight_std, bias_std=self.bias_std)

    def stds(self, network: Network, params: Any) -> Any:
        """One number per array."""

        def std(fan_in: int) -> float:
            if fan_in == 0:
                return self.bias_std
            return self.weight_std / (fan_in**0.5 if self.scaling == "fan_in" else 1.0)

        return jax.tree.map(std, network.fan_in(params))


class NotTraceClassWarning(UserWarning):
    """A `TraceClass` prior whose covariance has no finite trace as the network widens."""


@dataclass(frozen=True)
class TraceClass(GaussianPrior):
    """Trace-class prior: weight (i, j) has variance scale * (i j)^-alpha, bias i scale * i^-alpha.

    Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class Neural
    Networks", eqs (4.2)-(4.4), where (4.2) is a variance. Neurons are ordered: i counts those a
    weight goes to, j those it comes from, both from 1. For an MLP.

    Args:
        alpha: decay, > 1 for a trace-class covariance; 1/2 < alpha <= 1 keeps E f^2 finite, and
            warns that the weights have no limit as the network widens.
        scale: overall variance.
        decay_inputs: let the first layer decay over the inputs too, as in the paper; off by default
            because the columns of a table have no natural order.
        decay_outputs: likewise for the outputs of the last layer.
    Raises:
        InputError: for alpha <= 1/2 or a scale that is not > 0.
    """

    alpha: float = 2.0
    scale: float = 1.0
    decay_inputs: bool = False
    decay_outputs: bool = False

    def __post_init__(self) -> None:
        require_positive(scale=self.scale)
        if not self.alpha > 0.5:
            raise InputError(
                f"alpha must be > 1/2 for outputs of finite variance, got {self.alpha}; 2 is usual."
            )
        require_positive(alpha=self.alpha)
        if self.alpha <= 1:
            warnings.warn(
                f"With alpha = {self.alpha} <= 1 the prior is not trace-class: outputs keep a "
                "finite variance as the network widens, but the variances of its weights add up "
                "to infinity, so the weights have no limit of finite norm. Use alpha > 1; 2 is "
                "usual.",
                NotTraceClassWarning,
                stacklevel=3,  # whoever makes the prior
            )

    def stds(self, network: Network, params: Any) -> Any:
        """One array per kernel and bias of an MLP.

        Raises:
            InputError: for any other network, whose neurons have no order to decay along.
        """
        require_layers(type(self).__name__, network, params, "Gaussian")
        last = len(params) - 1

        def decay(size: int, active: bool) -> Float[Array, " neuron"]:
            return jnp.arange(1.0, size + 1) ** (-0.5 * self.alpha) if active else jnp.ones(size)

        def layer_stds(index: int, layer: Any) -> Any:
            fan_in, fan_out = layer.kernel.shape[-2:]
            incoming = decay(fan_in, index > 0 or self.decay_inputs)
            outgoing = decay(fan_out, index < last or self.decay_outputs)
            root = self.scale**0.5
            return type(layer)(root * incoming[:, None] * outgoing, root * outgoing)

        return tuple(layer_stds(index, layer) for index, layer in enumerate(params))


@dataclass(frozen=True)
class HierarchicalGamma:
    """Gaussian weights with unknown precisions, one per group: precision ~ Gamma(shape, rate).

    Weight w of group g ~ N(0, 1 / (precision_g * fan_in)) (fan_in only for scaling="fan_in", and
    never for biases). Hyperparameters are the log precisions; the density includes their Jacobian.

    Args:
        shape, rate: of the Gamma density (mean shape / rate).
        per: "array" (every kernel and every bias), "layer" (kernel and bias together; all weights
            of a network whose parameters are not in layers), "all", or "input": for the weights
            that leave each input of the first layer, and for every other array. So an input that
            hardly matters can be left out; see `Relevance`, which integrates these precisions out.
            Where inputs are encoded, the first layer's inputs are the numbers of their codes.
        scaling: "fan_in" or "unit", as in `Gaussian`.
    """

    shape: float = 2.0
    rate: float = 2.0
    per: str = "layer"
    scaling: str = "fan_in"

    def __post_init__(self) -> None:
        require_positive(shape=self.shape, rate=self.rate)
        if self.per not in ("array", "layer", "input", "all"):
            raise InputError(
                f"Unknown grouping per={self.per!r}: use 'array', 'layer', 'input' or 'all'."
            )
        if self.scaling not in ("fan_in", "unit"):
            raise InputError(f"Unknown prior scaling {self.scaling!r}: use 'fan_in' or 'unit'.")

    def groups(self, params: Any) -> list[Int[np.ndarray, "..."]]:
        """Group of the weights of every array of params, in the order of jax.tree.leaves.

        A scalar where an array is of one group, else of a shape that broadcasts to the array's.
        """
        paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(params)]
        depth = {"layer": -1, "all": 0}.get(self.per)
        names = [jax.tree_util.keystr(path[:depth]) for path in paths]
        order = {name: index for index, name in enumerate(dict.fromkeys(names))}
        found = [np.array(order[name]) for name in names]
        if self.per != "input":
            return found
        num_inputs = len(jax.tree.leaves(params)[0])
        others = (np.asarray(num_inputs - 1 + group) for group in found[1:])
        return [np.arange(num_inputs)[:, None], *others]

    def num_groups(self, params: Any) -> int:
        """The number of precisions."""
        return 1 + max(int(group.max()) for group in self.groups(params))

    def init(self, network: Network, params: Any) -> Float[Array, " group"]:
        """Log precisions at the mean of their prior."""
        if self.per == "input":
            name = f"{type(self).__name__}(per='input')"
            require_layers(name, network, params, "per='array'")
        dtype = jax.tree.leaves(params)[0].dtype
        return jnp.full(self.num_groups(params), jnp.log(self.shape / self.rate), dtype)

    def stds(self, network: Network, params: Any, hyper: Float[Array, " group"]) -> Any:
        """Standard deviations, given the log precisions, that broadcast to every array."""
        fan_ins, tree = jax.tree.flatten(network.fan_in(params))
        scaled = self.scaling == "fan_in"
        return tree.unflatten(
            jnp.exp(-0.5 * hyper[group]) / (fan_in**0.5 if scaled and fan_in else 1.0)
            for group, fan_in in zip(self.groups(params), fan_ins, strict=True)
        )

    def conditional(
        self, network: Network, params: Any
    ) -> tuple[Float[Array, " group"], Float[Array, " group"]]:
        """Shape and rate of every precision's Gamma law given the weights: it is conjugate."""
        stds = self.stds(network, params, jnp.zeros(self.num_groups(params)))
        return self.conditional_of(params, stds, jax.tree.map(jnp.ones_like, params))

    def conditional_of(
        self, params: Any, stds: Any, mask: Any
    ) -> tuple[Float[Array, " group"], Float[Array, " group"]]:
        """The same, from standard deviations at precision 1, of the weights in a mask alone."""
        shape = jnp.full(self.num_groups(params), float(self.shape))
        rate = jnp.full_like(shape, self.rate)
        leaves = (jax.tree.leaves(tree) for tree in (params, stds, mask))
        for group, weights, std, counts in zip(self.groups(params), *leaves, strict=True):
            axes = None if group.ndim == 0 else -1
            squares = jnp.where(counts, (weights / std) ** 2, 0)
            shape = shape.at[group.ravel()].add(0.5 * jnp.sum(counts, axes))
            rate = rate.at[group.ravel()].add(0.5 * jnp.sum(squares, axes))
        return shape, rate

    def log_density(
        self, network: Network, params: Any, hyper: Float[Array, " group"]
    ) -> Float[Array, ""]:
        """log p(weights | precisions) + log p(log precisions), in nats."""
        weights = normal_log_density(params, self.stds(network, params, hyper))
        return weights + self.log_density_of_precisions(hyper)

    def log_density_of_precisions(self, hyper: Float[Array, " group"]) -> Float[Array, ""]:
        """log p(log precisions), in nats."""
        each = gamma.logpdf(jnp.exp(hyper), self.shape, scale=1 / self.rate) + hyper
        return jnp.sum(each)

    def sample(
        self, key: PRNGKeyArray, network: Network, params: Any
    ) -> tuple[Any, Float[Array, " group"]]:
        """Precisions first, then weights."""
        key_hyper, key_weights = jax.random.split(key)
        template = self.init(network, params)
        log_gamma = jax.random.loggamma(key_hyper, self.shape, template.shape, template.dtype)
        hyper = log_gamma - jnp.log(self.rate)
        return normal_sample(key_weights, params, self.stds(network, params, hyper)), hyper


def require_layers(prior: str, network: Network, params: Any, instead: str) -> None:
    """Refuse a network that is not made of dense layers, for a prior that needs them.

    Raises:
        InputError: for such a network, with the name of the prior to use instead.
    """
    if not (isinstance(params, tuple) and all(isinstance(part, Layer) for part in params)):
        raise InputError(f"{prior} is a prior of an MLP, got {network}: use {instead}.")


def normal_log_density(params: Any, stds: Any) -> Float[Array, ""]:
    """Sum of log N(w; 0, std^2) over all arrays, in nats."""
    terms = jax.tree.map(lambda w, s: jnp.sum(norm.logpdf(w, scale=s)), params, stds)
    return sum(jax.tree.leaves(terms), start=jnp.zeros(()))


def normal_sample(key: PRNGKeyArray, params: Any, stds: Any) -> Any:
    """Independent N(0, std^2) in the shapes and dtypes of params."""
    zeros = jax.tree.map(lambda w: jnp.zeros(w.shape, w.dtype), params)
    flat, unravel = ravel_pytree(zeros)  # one vector of noise compiles faster than many arrays
    noise = unravel(jax.random.normal(key, flat.shape, flat.dtype))
    return jax.tree.map(lambda z, s: (s * z).astype(z.dtype), noise, stds)
