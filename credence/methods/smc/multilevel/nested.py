"""Nested parameters: a coarse network's are the leading block of a finer one's.

The coupling of multilevel methods (Chada, Jasra, Law & Singh, "Bayesian Deep Learning with
Multilevel Trace-class Neural Networks", section 4). Two parameter pytrees are nested where they
have one structure and the coarse arrays' shapes are at most the fine ones', axis by axis.

All functions take one set of parameters; `jax.vmap` maps them over particles. Templates are arrays
or `jax.ShapeDtypeStruct`s, of which only the shapes are read.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credence.errors import InputError
from credence.models.networks.mlp import MLP
from credence.models.networks.wrappers import LeadingInputs, PerAction
from credence.models.priors import GaussianPrior

RATIO = 2.0
"""How much wider each level is than the one below, where nobody says."""

NARROWEST = 4
"""Hidden neurons of the coarsest level, where nobody says how many."""


def leading(fine_params: Any, coarse_template: Any) -> Any:
    """The leading block of every array, in the shapes of the template."""
    require_nested(coarse_template, fine_params)
    return jax.tree.map(lambda fine, coarse: fine[_block(coarse)], fine_params, coarse_template)


def embedded(coarse_params: Any, fine_template: Any) -> Any:
    """The coarse parameters with zeros around them (the paper's Corollary 4.4).

    For an MLP the same function, whatever its activation: nothing leaves the new neurons.
    """
    require_nested(coarse_params, fine_template)
    return jax.tree.map(_padded, coarse_params, fine_template)


def extended(coarse_params: Any, fine_draw: Any) -> Any:
    """The coarse parameters inside a draw of the fine ones.

    Given a draw from a fine prior in which the coarse one is nested (`is_nested`), the new entries
    have their law given the coarse ones (the paper's (4.9)).
    """
    require_nested(coarse_params, fine_draw)

    def inside(coarse: Any, fine: Any) -> Any:
        is_coarse = _padded(jnp.ones(coarse.shape, bool), fine)
        return jnp.where(is_coarse, _padded(coarse, fine), fine)

    return jax.tree.map(inside, coarse_params, fine_draw)


def is_nested(
    prior: Any, coarse_network: Any, coarse_params: Any, fine_network: Any, fine_params: Any
) -> bool:
    """Whether the leading block of the fine prior has the law of the coarse prior.

    True for `TraceClass` and unit `Gaussian` priors; not for a fan-in `Gaussian`, whose weights
    shrink with the width.

    Args:
        prior: independent Gaussians; their standard deviations are compared.
        coarse_params, fine_params: templates.
    Raises:
        InputError: for another prior, or parameters that are not nested.
    """
    if not isinstance(prior, GaussianPrior):
        raise InputError(f"Only Gaussian priors are known to be nested or not, got {prior}.")
    require_nested(coarse_params, fine_params)

    def agree(coarse: Any, fine: Any, coarse_std: Any, fine_std: Any) -> bool:
        block = np.broadcast_to(fine_std, fine.shape)[_block(coarse)]
        return np.allclose(np.broadcast_to(coarse_std, coarse.shape), block, rtol=1e-6, atol=0)

    stds = prior.stds(coarse_network, coarse_params), prior.stds(fine_network, fine_params)
    return all(jax.tree.leaves(jax.tree.map(agree, coarse_params, fine_params, *stds)))


def require_nested(coarse: Any, fine: Any) -> None:
    """Refuse parameters (or templates) of which one is not the leading block of the other.

    Raises:
        InputError: naming the first array that does not fit.
    """
    if jax.tree.structure(coarse) != jax.tree.structure(fine):
        raise InputError(
            "Nested parameters must have the same structure, got "
            f"{jax.tree.structure(coarse)} in {jax.tree.structure(fine)}: "
            "change widths or numbers of inputs only, not the number of layers."
        )
    leaves = jax.tree_util.tree_leaves_with_path(coarse)
    for (path, small), large in zip(leaves, jax.tree.leaves(fine), strict=True):
        fits = len(small.shape) == len(large.shape) and all(
            n <= m for n, m in zip(small.shape, large.shape, strict=True)
        )
        if not fits:
            raise InputError(
                f"The coarse array {jax.tree_util.keystr(path)} has shape {small.shape}, which "
                f"does not fit into the fine one's {large.shape}: order networks from coarse "
                "to fine."
            )


def widths(
    finest: tuple[int, ...],
    num_levels: int | None = None,
    base: int | None = None,
    ratio: float = RATIO,
) -> tuple[tuple[int, ...], ...]:
    """Hidden widths of nested networks from coarse to fine: each level `ratio` times as wide.

    >>> widths((64,))
    ((4,), (8,), (16,), (32,), (64,))
    >>> widths((90, 45), num_levels=3, ratio=3)
    ((10, 5), (30, 15), (90, 45))

    Args:
        finest: widths of the last level.
        num_levels: how many levels; by default as many as keep every width >= base.
        base: no width below it; by default 4, or 1 where num_levels is given.
        ratio: > 1; widths are rounded to whole numbers.
    Raises:
        InputError: if the levels would not increase, or fall below base.
    """
    if not finest or not ratio > 1:
        raise InputError(f"Levels need hidden layers and ratio > 1, got {finest=}, {ratio=}.")
    if (num_levels is not None and num_levels < 1) or (base is not None and base < 1):
        raise InputError(f"num_levels and base must be >= 1, got {num_levels=}, {base=}.")

    def level(steps: int) -> tuple[int, ...]:
        return tuple(round(width / ratio**steps) for width in finest)

    if num_levels is None:
        limit, num_levels = base or NARROWEST, 1
        while min(level(num_levels)) >= limit and level(num_levels) != level(num_levels - 1):
            num_levels += 1
    elif min(level(num_levels - 1)) < (base or 1):
        raise InputError(
            f"{num_levels} levels below {finest} end at {level(num_levels - 1)}, but no width may "
            f"be below {base or 1}: ask for fewer levels or a smaller ratio."
        )
    return increasing(tuple(level(k) for k in reversed(range(num_levels))))


def increasing(levels: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """The hidden widths as given, where they go from coarse to fine.

    Raises:
        InputError: if there are none, depths differ, a layer narrows, or a level equals the next.
    """
    if not levels:
        raise InputError("There must be at least one level of hidden widths, got none.")
    for coarse, fine in pairwise(levels):
        same_depth = len(coarse) == len(fine)
        if not same_depth or coarse == fine or any(map(int.__gt__, coarse, fine)):
            raise InputError(
                f"Levels must go from coarse to fine at one depth, got {coarse} before {fine}: "
                "no layer may get narrower, and one must get wider."
            )
    return levels


def narrowed(network: Any, hidden: tuple[int, ...]) -> Any:
    """The same network with other hidden widths: a coarser level of it.

    Args:
        network: an `MLP`, or one inside `LeadingInputs` or `PerAction`.
        hidden: widths, at most the network's own, at the same depth.
    Raises:
        InputError: for other networks and widths.
    """
    if isinstance(network, LeadingInputs | PerAction):
        return replace(network, network=narrowed(network.network, hidden))
    if hidden != hidden_of(network):
        increasing((hidden, network.hidden))
    return replace(network, hidden=hidden)


def hidden_of(network: Any) -> tuple[int, ...]:
    """Hidden widths of a network that can be narrowed: see `narrowed`.

    Raises:
        InputError: for other networks.
    """
    if isinstance(network, LeadingInputs | PerAction):
        return hidden_of(network.network)
    if not isinstance(network, MLP):
        raise InputError(
            f"Only an MLP's widths can be changed, got {network}: pass the coarse networks."
        )
    return network.hidden


def _block(coarse: Any) -> tuple[slice, ...]:
    """The slices at which an array lies inside a finer one."""
    return tuple(slice(size) for size in coarse.shape)


def _padded(coarse: Any, fine: Any) -> Any:
    """The array with zeros behind it, in the shape of the finer one."""
    return jnp.pad(coarse, [(0, m - n) for n, m in zip(coarse.shape, fine.shape, strict=True)])
