"""A ladder of tempered particles: each rung is a temperature, and jumps to the next hotter one."""

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
    rungs: Sequence[Settings],
    jump_probability: Scalar,
    **settings: Any,
) -> Kernel:
    """`interacting` whose partners are interacting particles too, on geometric temperatures.

        rung l = 0, ..., L:   pi_l = pi^(1 / T_l),   T_l = ratio^l;
        rung L moves by K;    rung l < L moves by K, or jumps to the cloud of rung l + 1 with
        log G_l = log pi_l - log pi_(l+1) = (1/T_l - 1/T_(l+1)) log pi.

    Every rung has the law that `interacting` says of it: K on rung L leaves pi_L invariant, so
    that in the limit of many particles the cloud it leads to is right for rung L - 1, and so down
    to pi. This is the "Equi-energy sampler" of Kou, Zhou & Wong (2006), with present states in
    place of all past ones.

    Args:
        log_density: of pi, (position, data) -> nats, up to a constant.
        ratio: of neighbouring temperatures, > 1.
        kernel: K of all rungs.
        rungs: its settings, from the coldest to the hottest.
        jump_probability: of every rung but the hottest.
        settings: the others of `interacting`.
    A state's `auxiliary` is the state of the next rung. Info is the coldest rung's, but that
    `auxiliary_acceptance_rate` and `log_potential` are those of the hottest, which has to find all
    modes for the others, and `potential_ess` is the least.
    """

    def rung(index: int, density: LogDensity) -> Kernel:
        if index == len(rungs) - 1:
            return kernel(density, **rungs[index])
        return interacting(
            density,
            auxiliary=power(density),
            arrays=ratio,
            kernel=kernel,
            settings=rungs[index],
            auxiliary_kernel=lambda hotter: rung(index + 1, hotter),
            auxiliary_settings={},
            jump_probability=jump_probability,
            **settings,
        )

    return rung(0, log_density)
