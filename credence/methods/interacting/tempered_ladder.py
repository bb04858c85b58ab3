"""A ladder of tempered particles: each level jumps to partners on the next hotter one."""

from collections.abc import Callable, Sequence
from typing import Any

from credence.density.posterior import LogDensity
from credence.kernels.base import Kernel, Scalar, Settings
from credence.methods.interacting.auxiliary import power
from credence.methods.interacting.kernel import interacting


def tempered_ladder(
    log_density: LogDensity,
    *,
    ratio: Scalar,
    kernel: Callable[..., Kernel],
    levels: Sequence[Settings],
    jump_probability: Scalar,
    **settings: Any,
) -> Kernel:
    """`interacting` whose partners are interacting particles too, on geometric temperatures.

        level l = 0, ..., L:   pi_l = pi^(1 / T_l),   T_l = ratio^l;
        level L moves by K;    level l < L moves by K, or jumps to the cloud of level l + 1 with
        log G_l = log pi_l - log pi_(l+1) = (1/T_l - 1/T_(l+1)) log pi.

    Every level has the law that `interacting` says of it: K on level L leaves pi_L invariant, so
    that in the limit of many particles the cloud it leads to is right for level L - 1, and so down
    to pi. As Kou, Zhou & Wong, "Equi-energy sampler" (2006), with present states in place of all
    past ones.

    Args:
        log_density: of pi, (position, data) -> nats, up to a constant.
        ratio: of neighbouring temperatures, > 1.
        kernel: K of all levels.
        levels: its settings, from the coldest to the hottest.
        jump_probability: of every level but the hottest.
        settings: the others of `interacting`.
    A state's `auxiliary` is the state of the next level. Info is the coldest level's, but that
    `auxiliary_acceptance_rate` and `log_potential` are those of the hottest, which has to find all
    modes for the others, and `potential_ess` is the least.
    """

    def level(index: int, density: LogDensity) -> Kernel:
        if index == len(levels) - 1:
            return kernel(density, **levels[index])
        return interacting(
            density,
            auxiliary=power(density),
            arrays=ratio,
            kernel=kernel,
            settings=levels[index],
            auxiliary_kernel=lambda hotter: level(index + 1, hotter),
            auxiliary_settings={},
            jump_probability=jump_probability,
            **settings,
        )

    return level(0, log_density)
