"""The methods of the studies of photographs by a residual network, and how much they run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from credence.compare.specs import MethodSpec
from credence.methods.minibatch_steps import USUAL_FRICTION

NETWORKS_FOR_ONE = 2
"""A particle has a partner: a linear sampler moves as many networks with twice the chains."""


def momentum_step(step_size: float) -> float:
    """The step s of SGHMC that drifts as fast as Langevin's h: s^2 / friction is half of it."""
    return (USUAL_FRICTION * step_size / 2) ** 0.5


@dataclass(frozen=True, kw_only=True)
class Effort:
    """What the methods do at one size.

    Args:
        num_draws, num_warmup, thinning, batch_size: of every sampler.
        particles: of the nonlinear samplers, each with a partner.
        epochs: at most, to train what a chain starts from.
        potential_rows: of the nonlinear samplers whose potentials have rows of their own.
        members, member_epochs: of the deep ensemble.
        step_size: of Langevin steps; None lets the warm-up look for it.
    """

    num_draws: int
    num_warmup: int
    thinning: int
    batch_size: int
    particles: int
    epochs: int
    potential_rows: int
    members: int
    member_epochs: int
    step_size: float | None = None

    @property
    def ensemble(self) -> dict[str, object]:
        """Settings of the deep ensemble."""
        return {"num_members": self.members, "training": {"max_epochs": self.member_epochs}}

    def sampler(self, factor: int = 1, /, **more: object) -> dict[str, object]:
        """Settings of a sampler, with so many chains for one particle."""
        return {
            "num_draws": self.num_draws,
            "num_warmup": self.num_warmup,
            "thinning": self.thinning,
            "batch_size": self.batch_size,
            "num_chains": factor * self.particles,
            "training": {"max_epochs": self.epochs},
            **({} if self.step_size is None else {"step_size": self.step_size}),
            **more,
        }

    def with_as_many_networks(self) -> dict[str, object]:
        """Settings of a linear sampler with one chain for a particle, twice as long.

        What several modes bring to an average depends on the number of networks that were trained.
        """
        return self.sampler(
            num_warmup=NETWORKS_FOR_ONE * self.num_warmup, thinning=NETWORKS_FOR_ONE * self.thinning
        )

    def with_momentum(self) -> dict[str, object]:
        """Settings of SGHMC, which drifts as fast."""
        if self.step_size is None:
            return self.sampler(NETWORKS_FOR_ONE)
        return self.sampler(NETWORKS_FOR_ONE, step_size=momentum_step(self.step_size))

    def with_potentials(self, **more: object) -> dict[str, object]:
        """Settings with potentials of many rows, and one coin for all particles.

        With a coin each, nine of ten potentials would serve no jump.
        """
        return self.sampler(potential_rows=self.potential_rows, synchronous=True, **more)


SMOKE = Effort(
    num_draws=2, num_warmup=20, thinning=5, batch_size=32, particles=2, epochs=1,
    potential_rows=64, members=2, member_epochs=2,
)  # fmt: skip
LAPTOP = Effort(
    num_draws=20, num_warmup=400, thinning=20, batch_size=128, particles=4, epochs=10,
    potential_rows=512, members=8, member_epochs=20,
)  # fmt: skip
PAPER = Effort(
    num_draws=40, num_warmup=20000, thinning=500, batch_size=256, particles=10, epochs=100,
    potential_rows=4096, members=10, member_epochs=200,
)  # fmt: skip
"""10 particles as published; 200 epochs of 195 steps in all."""
PASS = 79
"""Steps in which a sampler sees 10,000 rows, 128 at a time."""
SMALL = Effort(
    num_draws=20, num_warmup=10 * PASS, thinning=PASS, batch_size=128, particles=4, epochs=20,
    potential_rows=2048, members=8, member_epochs=40, step_size=0.4 * 128 / 10_000,
)  # fmt: skip
"""A night on two cores. With h = .4 b / N the noise of minibatches adds a tenth to the variance of
what is as precise as the metric says; to look for a step size costs as much as all sampling."""
PASS_OF_ALL = 196
"""Steps in which a sampler sees 50,000 rows, 256 at a time."""
EARLY = Effort(
    num_draws=16, num_warmup=4 * PASS_OF_ALL, thinning=PASS_OF_ALL // 4, batch_size=256,
    particles=4, epochs=8, potential_rows=4096, members=8, member_epochs=16,
)  # fmt: skip
"""16 passes in all: 8 of training, 4 of warm-up, 4 of sampling."""


def _sampler(label: str, method: str, by_size: dict[str, dict[str, object]]) -> MethodSpec:
    """A sampler whose predictions are averaged as they come.

    The draws of twenty ResNet-18 would take 36 GB.
    """
    return MethodSpec(label=label, method=method, by_size=by_size, averaged=True)


def contenders(efforts: Mapping[str, Effort]) -> tuple[MethodSpec, ...]:
    """The methods of both experiments, with so much effort at every size."""

    def by_size(settings: Callable[[Effort], dict[str, object]]) -> dict[str, dict[str, object]]:
        return {size: settings(effort) for size, effort in efforts.items()}

    linear = by_size(lambda effort: effort.sampler(NETWORKS_FOR_ONE))
    return (
        MethodSpec(
            label="Deep ensemble",
            method="deep_ensemble",
            by_size=by_size(lambda effort: effort.ensemble),
        ),
        _sampler("SGHMC", "sghmc", by_size(Effort.with_momentum)),
        _sampler("SGLD (linear)", "sgld", linear),
        _sampler("SGLD (as many networks)", "sgld", by_size(Effort.with_as_many_networks)),
        _sampler("Nonlinear (accept-reject)", "nonlinear_sgld", by_size(Effort.with_potentials)),
        _sampler(
            "Nonlinear (Boltzmann-Gibbs)",
            "nonlinear_sgld",
            by_size(lambda effort: effort.with_potentials(jump="bg")),
        ),
        _sampler(
            "Nonlinear (potentials of the minibatch)", "nonlinear_sgld", by_size(Effort.sampler)
        ),
        _sampler(
            "Nonlinear (as published: cold RMSprop partners)",
            "nonlinear_sgld",
            by_size(
                lambda effort: effort.sampler(jump="bg", auxiliary_kernel="rms", temperature=1e-4)
            ),
        ),
    )
