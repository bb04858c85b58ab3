"""A Gaussian prior as numbers: mean and standard deviation of every parameter, in flat order."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from credence.density.posterior import Posterior, num_targets
from credence.errors import InputError
from credence.models.priors import GaussianPrior


def network_stds(posterior: Posterior) -> Float[np.ndarray, " weight"]:
    """Prior standard deviation of every weight of the network, whose prior is Gaussian."""
    model = posterior.model
    template = model.template(posterior.data).network
    zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape), template)
    stds = model.prior.stds(model.network, zeros)  # type: ignore[attr-defined]  # Gaussian
    full = jax.tree.map(lambda zero, std: np.broadcast_to(std, zero.shape), zeros, stds)
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(full)]).astype(float)


def prior_reference(
    posterior: Posterior,
) -> tuple[Float[Array, " weight"], Float[Array, " weight"]]:
    """Mean and standard deviation of the prior; a learnt noise gets N(where it starts, 1).

    Raises:
        InputError: where the prior is not Gaussian.
    """
    model = posterior.model
    if not isinstance(model.prior, GaussianPrior):
        raise InputError(
            f"pCN with the prior as reference needs a Gaussian prior, got {model.prior}: use "
            "prior='fan_in', or another reference (reference='posterior', or kernel='pcn_cloud')."
        )
    stds = network_stds(posterior)
    noise, _ = ravel_pytree(model.likelihood.init(num_targets(posterior.data)))
    mean, std = np.append(np.zeros_like(stds), noise), np.append(stds, np.ones_like(noise))
    return jnp.asarray(mean, float), jnp.asarray(std, float)
