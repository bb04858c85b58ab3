"""Some of the draws: those of one architecture, or of one chain."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from credence.ensembles.ensemble import Ensemble
from credence.errors import InputError


def widths_of(
    scalars: Mapping[str, Float[np.ndarray, "chain draw"]],
) -> Int[np.ndarray, "chain draw layer"] | None:
    """Neurons of every hidden layer, 0 where it is absent; None where the architecture is fixed."""
    if "width_1" not in scalars:
        return None
    names = [name for name in scalars if name.removeprefix("width_").isdigit()]
    names.sort(key=lambda name: int(name.removeprefix("width_")))
    return np.stack([np.asarray(scalars[name]) for name in names], axis=-1).astype(int)


def has_architecture(
    scalars: Mapping[str, Float[np.ndarray, "chain draw"]],
    widths: Sequence[int] | None = None,
    depth: int | None = None,
) -> Bool[np.ndarray, "chain draw"]:
    """Whether each draw has these widths of its layers and this depth; None allows any.

    Raises:
        InputError: where the architecture never changes.
    """
    found = widths_of(scalars)
    if found is None:
        raise InputError("All draws have the same architecture: use method='transdimensional'.")
    is_there = np.ones(found.shape[:2], bool)
    if widths is not None:
        wanted = np.zeros(found.shape[-1], int)
        count = min(len(widths), len(wanted))
        wanted[:count] = list(widths)[:count]
        is_there &= (found == wanted).all(axis=-1) & (len(widths) <= len(wanted))
    if depth is not None:
        is_there &= (found > 0).sum(axis=-1) == depth
    return is_there


def given(
    ensemble: Ensemble,
    *,
    widths: Sequence[int] | None = None,
    depth: int | None = None,
    chain: int | None = None,
) -> Ensemble:
    """Take some of the draws: predictions given an architecture, or of one chain.

    Args:
        ensemble: of `Transdimensional`.
        widths: neurons of every hidden layer that there is: (4,), or (3, 3).
        depth: number of hidden layers.
        chain: index of a chain; None pools all chains.
    Returns:
        One chain of these draws, in their order; draws chosen by architecture or from several
        chains are no Markov chain, and is_chain is False.
    Raises:
        InputError: where no draw is like that, the architecture never changes, or nothing is
            asked for.
    """
    if widths is None and depth is None and chain is None:
        raise InputError("Say of what: given(widths=(4,)), given(depth=2) or given(chain=0).")
    is_there = np.ones((ensemble.num_chains, ensemble.num_draws), bool)
    if chain is not None:
        is_there &= (np.arange(ensemble.num_chains) == chain)[:, None]
    if widths is not None or depth is not None:
        is_there &= has_architecture(ensemble.scalars, widths, depth)
    if not is_there.any():
        raise InputError(
            f"No draw has widths={widths}, depth={depth}, chain={chain}: "
            "methods.findings(ensemble)['architecture'] lists what was visited."
        )
    return ensemble.subset(is_there, is_chain=widths is None and depth is None)
