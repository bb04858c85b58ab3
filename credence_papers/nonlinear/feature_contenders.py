"""The methods of the study on features of photographs, at equal cost as far as that goes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from credence.errors import check_name
from credence_papers.nonlinear.image_contenders import NETWORKS_FOR_ONE
from credence_papers.nonlinear.patch_features import PatchFeatures

LEARNING_RATE = 1e-3
"""Adam's: a step of the usual .01 on 1600 features at once changes outputs by more than 10."""


@dataclass(frozen=True, kw_only=True)
class FeatureEffort:
    """How much is run.

    Args:
        num_train, num_test: images.
        features: what they become.
        particles: of nonlinear samplers; the others have twice as many networks.
        batch_size: rows of a step.
        step_size: of Langevin samplers, in the metric that their warm-up finds.
        passes: over the data: of the training where samplers start, of the warm-up, and between
            draws.
        num_draws: of every particle.
        reference: settings of MCLMC; None leaves it out.
        contenders: only these, by label; () takes all.
    """

    num_train: int
    num_test: int
    features: PatchFeatures
    particles: int
    batch_size: int
    step_size: float
    passes: Mapping[str, int]
    num_draws: int
    reference: Mapping[str, Any] | None = None
    contenders: tuple[str, ...] = ()

    @property
    def steps_per_pass(self) -> int:
        """Steps in which every row is seen once."""
        return -(-self.num_train // self.batch_size)


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A method and its settings beside those of the effort.

    Args:
        kind: which settings the effort gives: "particles" or "chains" of stochastic gradients,
            "members", "laplace" or "reference".
        is_streamed: whether predictions are averaged as draws come, with a curve.
        with_all_rows: potentials of all rows in place of the step's minibatch.
    """

    label: str
    method: str
    kind: str
    settings: Mapping[str, Any]
    is_streamed: bool = True
    with_all_rows: bool = False

    def at(self, effort: FeatureEffort) -> dict[str, Any]:
        """All settings at the size of the effort."""
        own = dict(self.settings)
        if self.with_all_rows:
            own["potential_rows"] = effort.num_train
        if self.kind == "laplace":
            return {"num_draws": 10 * effort.particles, **own}
        training = {"max_epochs": 10 * effort.passes["train"], "learning_rate": LEARNING_RATE}
        if self.kind == "members":
            number = NETWORKS_FOR_ONE * effort.particles
            return {"num_members": number, "training": training, **own}
        training = {**training, "max_epochs": effort.passes["train"]}
        if self.kind == "reference":
            return {"training": training, **(effort.reference or {}), **own}
        factor = 1 if self.kind == "particles" else NETWORKS_FOR_ONE
        if self.method != "sghmc" and "preconditioner" not in own:
            own["step_size"] = effort.step_size
        return {
            "num_chains": factor * effort.particles,
            "num_draws": effort.num_draws,
            "num_warmup": effort.passes["warmup"] * effort.steps_per_pass,
            "thinning": effort.passes["draw"] * effort.steps_per_pass,
            "batch_size": effort.batch_size,
            "training": training,
            **own,
        }


def _chains(label: str, method: str, *, is_streamed: bool = True, **settings: Any) -> Contender:
    return Contender(
        label=label, method=method, kind="chains", settings=settings, is_streamed=is_streamed
    )


def _particles(label: str, *, with_all_rows: bool = False, **settings: Any) -> Contender:
    return Contender(
        label=label,
        method="nonlinear_sgld",
        kind="particles",
        settings=settings,
        with_all_rows=with_all_rows,
    )


RARE = 0.02
"""Probability of a jump where potentials are of all rows, which cost as much as many steps."""

CONTENDERS = (
    _chains("SGLD (linear)", "sgld"),
    _chains("SGLD, RMSprop (linear)", "sgld", preconditioner="rms"),
    _particles("Nonlinear (BG)", jump="bg"),
    _particles("Nonlinear (AR)"),
    _particles(
        "Nonlinear (BG), potentials of all rows",
        jump="bg",
        with_all_rows=True,
        synchronous=True,
        jump_probability=RARE,
    ),
    _particles(
        "Nonlinear (AR), potentials of all rows",
        with_all_rows=True,
        synchronous=True,
        jump_probability=RARE,
    ),
    _particles("Nonlinear (AR), SGHMC partners", auxiliary_kernel="sghmc"),
    _particles(
        "Nonlinear (BG), RMSprop partners at 1e-4 (published)",
        jump="bg",
        auxiliary_kernel="rms",
        temperature=1e-4,
    ),
    _particles(
        "Nonlinear (AR), RMSprop partners at 1e-4 (published)",
        auxiliary_kernel="rms",
        temperature=1e-4,
    ),
    _chains("SGHMC", "sghmc"),
    _chains("Cyclical SGHMC", "sghmc", is_streamed=False, num_cycles=2),
    Contender(
        label="Deep ensemble",
        method="deep_ensemble",
        kind="members",
        settings={},
        is_streamed=False,
    ),
    Contender(
        label="Laplace",
        method="laplace",
        kind="laplace",
        settings={"structure": "kronecker"},
        is_streamed=False,
    ),
    Contender(
        label="MCLMC (reference)",
        method="mclmc",
        kind="reference",
        settings={},
        is_streamed=False,
    ),
)
"""All of them, the linear baseline first."""


def wanted(effort: FeatureEffort) -> list[Contender]:
    """Those that an effort runs.

    Raises:
        InputError: for a contender that is not known.
    """
    labels = [each.label for each in CONTENDERS]
    for label in effort.contenders:
        check_name("contender", label, labels)
    return [
        each
        for each in CONTENDERS
        if (each.kind != "reference" or effort.reference is not None)
        and each.label in (effort.contenders or labels)
    ]
