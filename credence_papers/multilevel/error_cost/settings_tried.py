"""Methods whose error is weighed against their cost, and how much is run; plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from credence_papers.multilevel.error_cost.width_problems import WidthProblem

NOMINAL_EXPONENT = 2.0
"""gamma of the paper's nominal cost."""

NARROWEST = 4
"""Width from which a ladder that is chosen may start."""

Settings = Mapping[str, Any]


def doubled(base: int, finest: int) -> tuple[int, ...]:
    """Widths from base to finest, each twice the one before."""
    widths = [base]
    while widths[-1] < finest:
        widths.append(min(2 * widths[-1], finest))
    return tuple(widths)


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One method with one choice of widths and particles.

    Args:
        method: smc or mlsmc.
        widths: of the hidden layers: one, or those of all levels from coarse to fine.
        num_particles: of a replicate, per level.
        mutation: settings of `credence.methods.Mutation`.
        settings: further ones of the method.
        manner: what sets it apart from others of the same method and widths, for people.
        replicates: independent runs of it, where they are not as many as of the others.
    """

    method: str
    widths: tuple[int, ...]
    num_particles: tuple[int, ...]
    mutation: Settings = field(default_factory=dict)
    settings: Settings = field(default_factory=dict)
    manner: str = ""
    replicates: int | None = None

    @property
    def family(self) -> str:
        """Name of the method at these widths."""
        ends = dict.fromkeys((self.widths[0], self.widths[-1]))
        manner = f", {self.manner}" if self.manner else ""
        return f"{self.method} {'-'.join(map(str, ends))}{manner}"

    @property
    def nominal_cost(self) -> float:
        """What the paper counts: sum of P_l n_l^2, without temperatures and mutation steps."""
        pairs = zip(self.num_particles, self.widths, strict=True)
        return float(sum(count * width**NOMINAL_EXPONENT for count, width in pairs))


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is run.

    Args:
        widths: of single-level SMC; the widest is where the reference is.
        particles: of single-level SMC.
        ladders: widths of every multilevel run, from coarse to fine; None: one ladder per problem,
            chosen by how much its steps change the likelihood, or by `base_share`.
        base_share: 0 chooses by the steps under the prior; otherwise a ladder has two widths, the
            finest and the narrowest whose particles are left to this effective share when they are
            weighed to it, with the fewest tries of any of the manners.
        base_particles: at the coarsest level; a pilot says how many the others get.
        replicates: independent runs of every setting.
        together: replicates that share temperatures and step sizes; at 1 they share nothing.
        reference: settings of NUTS, or of SMC: with "num_particles"; with "together", so many runs
            at a time, where all of them would take too much memory.
        further: settings of single-level SMC beside all widths with all particles.
        manners: of the multilevel method, by name: settings beside widths and particles; "mutation"
            and "base_particles" in place of the effort's.
        pilot_particles, pilot_runs: at the coarsest level, and how many runs.
        reference_nats: 0 keeps the reference on the finest network; otherwise it is the narrowest
            one, which samples faster and mixes better, that changes the log likelihood by less than
            so many nats.
        biases: whether the reference runs at every width too, to say how far narrow networks are
            off.
        problem: what of a problem is smaller, e.g. {"num_points": 50}.
        reference_width: of the reference, and the finest of a chosen ladder; by default the widest
            of all.
    """

    widths: tuple[int, ...]
    particles: tuple[int, ...]
    ladders: tuple[tuple[int, ...], ...] | None
    base_particles: tuple[int, ...]
    replicates: int
    reference: Settings
    together: int = 1
    base_share: float = 0.0
    manners: Mapping[str, Settings] = field(default_factory=lambda: {"": {}})
    pilot_particles: int = 100
    pilot_runs: int = 16
    biases: bool = True
    mutation: Settings = field(default_factory=dict)
    problem: Settings = field(default_factory=dict)
    further: tuple[Contender, ...] = ()
    reference_nats: float = 0.0
    reference_width: int | None = None

    @property
    def finest(self) -> int:
        """Width of the networks whose posterior is asked for."""
        if self.reference_width:
            return self.reference_width
        return max(*self.widths, *(widths[-1] for widths in self.ladders or ()))

    def within(self, limit: int | None) -> "Effort":
        """The same without networks wider than the limit; the reference stays where it was."""
        if limit is None or limit >= self.finest:
            return self
        return replace(
            self,
            widths=tuple(width for width in self.widths if width <= limit) or (limit,),
            further=tuple(each for each in self.further if max(each.widths) <= limit),
            ladders=(doubled(max(limit // 4, 1), limit),),
            base_share=0.0,
            reference_width=self.finest,
        )

    @property
    def singles(self) -> list[Contender]:
        """All settings of single-level SMC."""
        grid = [
            Contender(method="smc", widths=(width,), num_particles=(count,), mutation=self.mutation)
            for width in self.widths
            for count in self.particles
        ]
        return [*grid, *self.further]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One program to run, and all that its result depends on.

    Args:
        kind: reference, ladder, pilot or replicates.
        contender: of a pilot or of replicates.
        width, settings: of a reference, at that width; of a ladder, which ends there.
        replicates: independent runs.
        batch: so many of them side by side; 0 takes all.
    """

    kind: str
    problem: WidthProblem
    contender: Contender | None = None
    width: int = 0
    settings: Settings = field(default_factory=dict)
    replicates: int = 1
    batch: int = 0
    seed: int = 0

    @property
    def label(self) -> str:
        """What people call it."""
        about = f"{self.problem.name}, seed {self.seed}: {self.kind}"
        if self.contender is None:
            return f"{about} at width {self.width}"
        counts = "-".join(map(str, self.contender.num_particles))
        return f"{about}, {self.contender.family}, {counts} particles"
