"""The joint law of widths, depth and weights that trans-dimensional kernels move on.

    p(k, w | data)  proportional to  p(k) p(w | k) L(w)

w are the active weights of a network of widths k. Kernels that move weights at fixed widths see all
slots of the widest network, the inactive ones with their prior at these widths as pseudo-prior
(Carlin & Chib, "Bayesian model choice via Markov chain Monte Carlo methods", 1995): the active ones
have the right law whatever the inactive ones do, and nothing is masked inside a trajectory.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import BayesianModel, Params
from credence.methods.transdimensional.active_neurons import (
    Layers,
    Readers,
    Widths,
    activity,
    count_active,
    count_layers,
    largest_widths,
    only_active,
    readers,
    where,
)
from credence.methods.transdimensional.size_priors import DepthPrior, WidthPrior
from credence.models.priors import (
    GaussianPrior,
    HierarchicalGamma,
    TraceClass,
    normal_sample,
)

SMALLEST_BUCKET = 32
"""Neurons below which narrower networks are hardly faster."""


class Point(NamedTuple):
    """The state of a chain: parameters, the widths of the hidden layers, and the log likelihood."""

    params: Params
    """Parameters of the widest network, zero at inactive neurons."""
    widths: Widths
    log_likelihood: Float[Array, ""]


@dataclass(frozen=True)
class VariableWidth:
    """A model of the widest network, and the prior over the width of each of its layers.

    With a prior over the depth d,

        p(d, k, w | data)  proportional to  p(d) p(k_1) ... p(k_d) p(w | d, k) L(w)

    Args:
        model: an MLP's layers as parameters; a Gaussian prior, or one that is Gaussian given its
            hyperparameters. A "fan_in" prior scales with the neurons that are active.
        width_prior: of every hidden layer that there is, independently.
        depth_prior: of the number of hidden layers, for a `VariableDepthMLP`; None keeps them all.
    """

    model: BayesianModel
    width_prior: WidthPrior
    depth_prior: DepthPrior | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether the prior tells neurons apart: then the last one is born and dies."""
        return isinstance(self.model.prior, TraceClass)

    def log_width_probs(self, layers: Layers, layer: int) -> Float[Array, " width"]:
        """log p(k) of hidden layer `layer`, k = 0, ..., one more than there is room for."""
        return jnp.asarray(self.width_prior.log_probs(largest_widths(layers)[layer]), float)

    def log_depth_probs(self, layers: Layers) -> Float[Array, " depth"]:
        """log p(d), d = 0, ..., one more than there is room for."""
        assert self.depth_prior is not None
        return jnp.asarray(self.depth_prior.log_probs(len(layers) - 1), float)

    def can_change_width(self, layers: Layers) -> bool:
        """Whether the prior allows more than one width of any layer."""
        return any(
            np.isfinite(self.width_prior.log_probs(room)).sum() > 1
            for room in largest_widths(layers)
        )

    def can_change_depth(self, layers: Layers) -> bool:
        """Whether the prior allows more than one depth."""
        if self.depth_prior is None:
            return False
        return bool(np.isfinite(self.depth_prior.log_probs(len(layers) - 1)).sum() > 1)

    def readers(self, widths: Widths, layer: int) -> Readers:
        """The layers that read hidden layer `layer`."""
        return readers(widths, layer, may_be_last=self.depth_prior is not None)

    @property
    def depends_on_width(self) -> bool:
        """Whether the prior of the weights depends on the width."""
        return getattr(self.model.prior, "scaling", "unit") == "fan_in"

    def stds(self, params: Params, widths: Widths) -> Layers:
        """Prior standard deviations for a network of these widths, one number per weight."""
        prior, network = self.model.prior, self.model.network
        hyper = () if isinstance(prior, GaussianPrior) else (params.prior,)
        by_array = prior.stds(network, params.network, *hyper)  # type: ignore[attr-defined]
        stds = jax.tree.map(
            lambda w, std: jnp.broadcast_to(jnp.asarray(std, w.dtype), w.shape),
            params.network,
            by_array,
        )
        if not self.depends_on_width:
            return stds
        largest = largest_widths(params.network)
        last_width = widths[jnp.maximum(count_layers(widths), 1) - 1]

        def of_active(index: int, layer: Any) -> Any:
            if index == 0:
                return layer
            fan_in = last_width if index == len(largest) else widths[index - 1]
            share = largest[index - 1] / jnp.maximum(fan_in, 1)  # an absent layer's: any will do
            return layer._replace(kernel=layer.kernel * jnp.sqrt(share))

        return tuple(of_active(index, layer) for index, layer in enumerate(stds))

    def log_normals(self, params: Params, widths: Widths) -> Layers:
        """log N(w; 0, std^2) of the weights in all slots, one by one, in nats."""
        stds = self.stds(params, widths)
        return jax.tree.map(lambda w, s: norm.logpdf(w, scale=s), params.network, stds)

    def log_prior(self, params: Params, widths: Widths) -> Float[Array, ""]:
        """Log prior of the weights in all slots given the widths, in nats.

        Hyperparameters and noise are included.
        """
        if not self.depends_on_width:
            return self.model.log_prior(params)
        room = jnp.asarray(largest_widths(params.network))
        narrow, wide = self.log_normals(params, widths), self.log_normals(params, room)
        return self.model.log_prior(params) + total(jax.tree.map(jnp.subtract, narrow, wide))

    def log_likelihood(self, params: Params, data: Data) -> Float[Array, ""]:
        """Log likelihood of parameters that are zero at inactive neurons, in nats.

        Computed by the narrowest of `buckets` that has all active neurons, so that it costs about
        as much as these; chains that move abreast (accelerators) would compute all of them.
        """
        sizes = buckets(largest_widths(params.network))
        if len(sizes) == 1 or jax.default_backend() != "cpu":
            return self.model.log_likelihood(params, data)

        def of_first(size: int) -> Any:
            def narrow(params: Params, data: Data) -> Float[Array, ""]:
                kept = params._replace(network=first_units(params.network, size))
                return self.model.log_likelihood(kept, data)

            return narrow

        widest = jnp.max(count_active(params.network))
        index = jnp.searchsorted(jnp.asarray(sizes), widest)
        return jax.lax.switch(index, [of_first(size) for size in sizes], params, data)

    def log_density(self, params: Params, widths: Widths, data: Data) -> Float[Array, ""]:
        """Log density of all slots' weights given the widths: inactive ones follow their prior."""
        active = params._replace(network=only_active(params.network, widths))
        return self.log_prior(params, widths) + self.log_likelihood(active, data)

    def sample_prior(self, key: PRNGKeyArray, data: Data) -> Params:
        """Draw depth, widths, hyperparameters and active weights; data gives the shapes only."""
        key_depth, key_widths, key_model, key_weights = jax.random.split(key, 4)
        params = self.model.sample_prior(key_model, data)
        layers = params.network
        keys = jax.random.split(key_widths, len(layers) - 1)
        drawn = [
            jax.random.categorical(each, self.log_width_probs(layers, layer))
            for layer, each in enumerate(keys)
        ]
        widths = jnp.stack(drawn).astype(jnp.int32)
        if self.depth_prior is not None:
            depth = jax.random.categorical(key_depth, self.log_depth_probs(layers))
            widths = jnp.where(jnp.arange(len(drawn)) < depth, widths, 0)
        return self.with_weights(key_weights, params, widths)

    def with_weights(self, key: PRNGKeyArray, params: Params, widths: Widths) -> Params:
        """Draw all active weights from their prior at these widths."""
        weights = normal_sample(key, params.network, self.stds(params, widths))
        return params._replace(network=only_active(weights, widths))

    def refreshed(self, key: PRNGKeyArray, params: Params, widths: Widths) -> Params:
        """Return parameters whose inactive weights are drawn from their prior."""
        draws = normal_sample(key, params.network, self.stds(params, widths))
        mask = activity(params.network, widths)
        return params._replace(network=where(mask, params.network, draws))

    def with_precisions(self, key: PRNGKeyArray, params: Params, widths: Widths) -> Params:
        """Draw a hierarchical prior's precisions from their law given the active weights."""
        prior, mask = self.model.prior, activity(params.network, widths)
        assert isinstance(prior, HierarchicalGamma)
        unit = self.stds(params._replace(prior=jnp.zeros_like(params.prior)), widths)
        shape, rate = prior.conditional_of(params.network, unit, mask)
        return params._replace(prior=jax.random.loggamma(key, shape) - jnp.log(rate))

    def with_layers_at(self, params: Params, places: Int[Array, " layer"]) -> Params:
        """Give the hidden layers but the first the precisions of those at other places.

        A permutation: the prior of the precisions does not tell these layers apart.
        """
        prior = self.model.prior
        if not isinstance(prior, HierarchicalGamma):
            return params
        groups = jax.tree.unflatten(
            jax.tree.structure(params.network), prior.groups(params.network)
        )
        log_precisions = params.prior
        for of_array in zip(*groups[1:-1], strict=True):
            group = jnp.asarray(np.array(of_array))
            log_precisions = log_precisions.at[group].set(params.prior[group[places - 1]])
        return params._replace(prior=log_precisions)

    def with_neurons(
        self, key: PRNGKeyArray, params: Params, lower: Widths, upper: Widths
    ) -> Params:
        """Draw the neurons between two widths from their prior at the upper widths."""
        draws = normal_sample(key, params.network, self.stds(params, upper))
        mask = activity(params.network, lower)
        return params._replace(network=only_active(where(mask, params.network, draws), upper))

    def without_neurons(self, params: Params, lower: Widths) -> Params:
        """Set the neurons above the widths to zero."""
        return params._replace(network=only_active(params.network, lower))

    def metric(
        self, inverse_mass: Float[Array, " weight"], params: Params, widths: Widths
    ) -> Float[Array, " weight"]:
        """The inverse mass of active weights; prior variances for inactive ones, which then turn
        as fast as the others and make no trajectory longer.

        Hyperparameters do not enter: a metric must not depend on what a trajectory moves.
        """
        variances = self.prior_variances(params, widths)
        given = ravel_pytree(params)[1](inverse_mass)
        mask = activity(params.network, widths)
        return ravel_pytree(given._replace(network=where(mask, given.network, variances)))[0]

    def prior_variances(self, params: Params, widths: Widths) -> Layers:
        """Variances of the weights at the middle of the prior's hyperparameters."""
        middle = self.model.prior.init(self.model.network, params.network)
        return jax.tree.map(jnp.square, self.stds(params._replace(prior=middle), widths))

    def log_prior_of_others(self, params: Params) -> Float[Array, ""]:
        """Log prior of the noise and of the precisions, without the weights, in nats."""
        silent = params._replace(network=jax.tree.map(jnp.zeros_like, params.network))
        room = jnp.asarray(largest_widths(params.network))
        return self.model.log_prior(silent) - total(self.log_normals(silent, room))

    def log_prior_of_kept(self, params: Params, lower: Widths, upper: Widths) -> Layers:
        """log p(w | upper) - log p(w | lower) of the weights active at the lower widths.

        Zero unless the prior depends on the width.
        """
        if not self.depends_on_width:
            return jax.tree.map(jnp.zeros_like, params.network)
        change = jax.tree.map(
            jnp.subtract, self.log_normals(params, upper), self.log_normals(params, lower)
        )
        return only_active(change, lower)

    def log_prior_change(
        self, before: Params, lower: Widths, after: Params, upper: Widths
    ) -> Float[Array, ""]:
        """log p(weights after | upper) - log p(weights before | lower), active ones, in nats."""
        new = only_active(self.log_normals(after, upper), upper)
        old = only_active(self.log_normals(before, lower), lower)
        return total(jax.tree.map(jnp.subtract, new, old))


def buckets(room: tuple[int, ...]) -> tuple[int, ...]:
    """Widths at which the likelihood is compiled: that of the widest layer, its halves, ..."""
    sizes = [max(room)]
    while sizes[0] >= 2 * SMALLEST_BUCKET:
        sizes.insert(0, -(-sizes[0] // 2))
    return tuple(sizes)


def first_units(layers: Layers, size: int) -> Layers:
    """Layers with the first neurons of every hidden layer alone."""
    *hidden, last = layers
    kept, width = [], layers[0].kernel.shape[0]
    for layer in hidden:
        inputs, width = width, min(size, layer.bias.shape[0])
        kept.append(type(layer)(layer.kernel[:inputs, :width], layer.bias[:width]))
    return (*kept, last._replace(kernel=last.kernel[:width]))


def total(layers: Layers) -> Float[Array, ""]:
    """Sum over all weights."""
    return sum((jnp.sum(leaf) for leaf in jax.tree.leaves(layers)), start=jnp.zeros(()))
