"""The methods of the study on features of photographs, at as many gradients of a row per draw."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from credence.density.posterior import Posterior
from credence.errors import check_name
from credence.kernels.base import Settings
from credence.methods import METHODS
from credence.methods.base import Method
from credence.methods.minibatch_steps import minibatch_rows
from credence.methods.stochastic_gradient import Langevin
from credence_papers.nonlinear.image_contenders import NETWORKS_FOR_ONE, momentum_step
from credence_papers.nonlinear.patch_features import PatchFeatures

LEARNING_RATE = 1e-3
"""Adam's: a step of the usual .01 on 1600 features at once changes outputs by more than 10."""
VALUE = 1 / 3
"""Cost of a value without gradient, in gradients."""
COLD = 1e-4
"""The published temperature of what here are the partners."""


@dataclass(frozen=True, kw_only=True)
class ColdSGLD(Langevin):
    """The published linear sampler: Langevin with the RMSprop metric, far colder than a posterior.

    In the published code it is the auxiliary chain of the nonlinear run.

    Args beyond those of `Langevin`:
        temperature: T of its noise.
    """

    name: ClassVar[str] = "cold_sgld"
    summary: ClassVar[str] = "the published linear sampler"
    sources: ClassVar[tuple[str, ...]] = (
        'Vuckovic, "Nonlinear MCMC for Bayesian machine learning" (2022)',
    )

    preconditioner: str = "rms"
    temperature: float = COLD

    def _rows(self, posterior: Posterior) -> int:
        return minibatch_rows(self.batch_size, posterior)

    def _published_settings(self, posterior: Posterior) -> tuple[Settings, Settings]:
        tuning, frozen = super()._published_settings(posterior)
        cold = {"temperature": np.float32(self.temperature)}
        return {**tuning, **cold}, {**frozen, **cold}


@dataclass(frozen=True, kw_only=True)
class FeatureEffort:
    """How much is run.

    Args:
        num_train, num_test: images.
        features: what they become.
        particles: of nonlinear samplers.
        networks_for_one: of the other samplers, whose draws are so much farther apart where they
            have fewer than a particle and its partner.
        batch_size: rows of a step.
        step_size: of Langevin samplers, in the metric that their warm-up finds.
        passes: over the data: of the training where samplers start, of the warm-up, and between
            the draws of a sampler without potentials.
        num_draws: of every particle.
        reference: settings of MCLMC; None leaves it out.
        contenders: only these, by label; () takes all.
    """

    num_train: int
    num_test: int
    features: PatchFeatures
    particles: int
    networks_for_one: int = NETWORKS_FOR_ONE
    batch_size: int
    step_size: float
    passes: Mapping[str, float]
    num_draws: int
    reference: Mapping[str, Any] | None = None
    contenders: tuple[str, ...] = ()

    @property
    def steps_per_pass(self) -> int:
        """Steps in which every row is seen once."""
        return self.batches(self.num_train)

    @property
    def gradients_per_draw(self) -> float:
        """Gradients of minibatches: of a particle and its partner where potentials cost nothing."""
        return NETWORKS_FOR_ONE * self.passes["draw"] * self.steps_per_pass

    def batches(self, num_rows: int) -> int:
        """Steps' rows in so many."""
        return -(-num_rows // self.batch_size)


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

    def build(self, effort: FeatureEffort) -> Method:
        """The method at the size of the effort."""
        found = ColdSGLD if self.method == ColdSGLD.name else METHODS.find(self.method)
        method = found.from_settings(self.at(effort))
        assert isinstance(method, Method)
        return method

    def at(self, effort: FeatureEffort) -> dict[str, Any]:
        """All settings at the size of the effort."""
        own = dict(self.settings)
        if self.kind == "laplace":
            networks = NETWORKS_FOR_ONE * effort.particles
            return {"num_draws": networks * effort.num_draws, **own}
        training = {"max_epochs": 10 * effort.passes["train"], "learning_rate": LEARNING_RATE}
        if self.kind == "members":
            number = NETWORKS_FOR_ONE * effort.particles
            return {"num_members": number, "training": training, **own}
        training = {**training, "max_epochs": effort.passes["train"]}
        if self.kind == "reference":
            return {"training": training, **(effort.reference or {}), **own}
        if self.with_all_rows:
            own["potential_rows"] = effort.num_train
        return {
            "num_chains": self._networks(effort) * effort.particles,
            "num_draws": effort.num_draws,
            "num_warmup": round(effort.passes["warmup"] * effort.steps_per_pass),
            "thinning": max(1, int(effort.gradients_per_draw / self._gradients(effort))),
            "batch_size": effort.batch_size,
            "training": training,
            **self._step(effort),
            **own,
        }

    def _networks(self, effort: FeatureEffort) -> int:
        """Networks for one particle."""
        return 1 if self.kind == "particles" else effort.networks_for_one

    def _gradients(self, effort: FeatureEffort) -> float:
        """Cost of a step of the networks for one particle, in gradients of a minibatch.

        In a cycle that explores for half of its steps there are twice as many steps for a draw.
        """
        if self.kind != "particles":
            return self._networks(effort) * (2 if "num_cycles" in self.settings else 1)
        values = 1 if self.settings.get("jump") == "bg" else 2
        batches = effort.batches(effort.num_train) if self.with_all_rows else 1
        share = self.settings["jump_probability"] if self.settings.get("synchronous") else 1
        return 2 + VALUE * share * values * batches

    def _step(self, effort: FeatureEffort) -> dict[str, float]:
        """Step sizes with which all drift equally fast.

        A cycle starts with twice its mean. Those of the RMSprop metric have a unit of their own.
        """
        if self.method == "sghmc":
            length = momentum_step(effort.step_size)
            return {"step_size": length * (2 if "num_cycles" in self.settings else 1)}
        if self.method == ColdSGLD.name or "preconditioner" in self.settings:
            return {}
        return {"step_size": effort.step_size}


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
"""Probability of a jump where potentials are of all rows, which cost as much as many steps; and of
those of minibatches that stand beside them."""

CONTENDERS = (
    _chains("SGLD (linear)", "sgld"),
    _chains("SGLD, RMSprop (linear)", "sgld", preconditioner="rms"),
    _chains("SGLD, RMSprop at 1e-4 (published linear)", ColdSGLD.name),
    _particles("Nonlinear (BG)", jump="bg"),
    _particles("Nonlinear (AR)"),
    _particles("Nonlinear (BG), rare jumps", jump="bg", synchronous=True, jump_probability=RARE),
    _particles("Nonlinear (AR), rare jumps", synchronous=True, jump_probability=RARE),
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
        temperature=COLD,
    ),
    _particles(
        "Nonlinear (AR), RMSprop partners at 1e-4 (published)",
        auxiliary_kernel="rms",
        temperature=COLD,
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
BASELINE = CONTENDERS[0].label
REFERENCE = CONTENDERS[-1].label


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
