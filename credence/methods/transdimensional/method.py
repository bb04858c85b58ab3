"""Reversible jump over width and depth: a posterior over networks of many sizes.

Green, "Reversible jump Markov chain Monte Carlo computation and Bayesian model determination"
(1995), for networks after Berezowski, "Trans-dimensional inference over Bayesian neural networks",
with a sweep that leaves the posterior invariant: see `credence.methods.transdimensional.kernel`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.adaptation.tunable_kernels import (
    Tunable,
    check_weights,
    checked_kernel,
    tunable_kernel,
)
from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.engine.phases import Adapter
from credence.ensembles.findings import Finding
from credence.errors import InputError, refuse_unread, require_positive
from credence.kernels.base import Kernel, Recipe
from credence.methods.algorithm import Algorithm
from credence.methods.base import Drawn
from credence.methods.chains import Chains
from credence.methods.evidence import LogEvidence
from credence.methods.exchanges import Exchanges, told_of_ladder
from credence.methods.transdimensional.active_neurons import count_active, largest_widths
from credence.methods.transdimensional.architecture.posterior import Architecture
from credence.methods.transdimensional.architecture.size_effect import SizeEffect, size_effect
from credence.methods.transdimensional.checks import (
    check_jump_sizes,
    check_size_prior,
    tuple_of_names,
    whole_numbers,
)
from credence.methods.transdimensional.kernel import transdimensional
from credence.methods.transdimensional.ladder import on_a_ladder
from credence.methods.transdimensional.largest_network import widened
from credence.methods.transdimensional.move_mixture import Groups, with_mixture
from credence.methods.transdimensional.moves.by_name import (
    LAYER_MOVES,
    MOVES,
    SETTINGS_OF,
    base_and_size,
)
from credence.methods.transdimensional.scalars import (
    architecture_scalars,
    by_kind,
    found_of_jumps,
)
from credence.methods.transdimensional.settling import SETTLING, settling_first
from credence.methods.transdimensional.size_priors import DepthPrior, WidthPrior
from credence.methods.transdimensional.starts import Sizes, initial_widths, likeliest_draws
from credence.methods.transdimensional.target import VariableWidth
from credence.methods.transdimensional.tuning import TuningSettings, ladder_tuning, step_tuning
from credence.models import Gaussian, HierarchicalGamma, TraceClass
from credence.models.likelihoods.numbers import Normal

USUAL_LENGTHS = {"max_doublings": 8, "max_integration_steps": 64, "trajectory_length": 1.0}
"""Usual lengths of the step at fixed widths."""
USUAL_SCALES = {
    "identity_std": 0.5,
    "num_integration_steps": 5,
    "num_temperatures": 10,
    "split_std": 0.5,
}
"""Usual settings of jumps."""
MOST_JUMPS = 1_000_000
"""Jumps of a step at most."""
KINDS_OF_LAYER = ("layer", "identity_layer")
"""Usual jumps between depths, collapsed for normal noise."""


@dataclass(frozen=True, kw_only=True)
class Transdimensional(Chains):
    """Chains over the widths, depth and weights of a network, started from draws of the prior.

    An iteration is some births or deaths of a neuron or a hidden layer, then one step of all
    weights; the first half of the warm-up has no jumps, but in a sandwich or on a ladder. Members
    of the ensemble are networks of the largest architecture whose inactive neurons are zero: their
    predictions average over architectures. `methods.findings` sums those up.

    Args beyond those of `Chains`:
        max_width: neurons there is room for in every hidden layer; by default the network's own.
        width_prior: over the number of neurons of a hidden layer.
        max_depth: hidden layers there is room for; by default the number of them does not change.
        depth_prior: over the number of hidden layers, where it changes.
        moves: kinds of jump between widths, of `MOVES` in
            `credence.methods.transdimensional.moves.by_name`; "plain_by_4" is four neurons at once.
            By default "collapsed" for normal noise, otherwise "informed" and "plain", which is
            refused more often and costs less.
        layer_moves: kinds of jump between depths, of `LAYER_MOVES` there. By default both kinds of
            layer, drawn from the prior and near the identity, collapsed for normal noise.
            "annealed_layer" goes to the other depth in small changes, which costs much.
        tune_moves: whether the warm-up learns how much work each kind gets, by what it changes for
            its cost (see `credence.methods.transdimensional.move_mixture`); otherwise all are
            equally likely.
        sandwich: step, one jump, step as one proposal, as published, with the ratio that is right;
            in place of `num_jumps` jumps and a step.
        gibbs: whether an iteration ends by a draw of a hierarchical prior's precisions given the
            weights; the steps move them anyway. By default wherever there are any, but in a
            sandwich.
        num_jumps: per iteration; where both can change, half of them between depths. By default
            the warm-up learns how many take as much work as the step, 100 at most.
        within: the step at fixed widths: "nuts", "hmc", "mala", "mclmc" (from a fresh direction,
            half a trajectory_length), or a `Tunable` of your own that takes a metric.
        max_doublings: of NUTS; None is 8.
        max_integration_steps: of HMC; None is 64.
        trajectory_length: of HMC and MCLMC; None is 1.
        num_temperatures: of "annealed" and "annealed_layer" jumps; None is 10.
        num_integration_steps: of the same; None is 5.
        split_std: of "split_merge" jumps; None is 0.5.
        identity_std: of layers near the identity; None is 0.5.
        num_rungs: above 1, every chain is a ladder of so many networks, from the prior to the
            posterior, that exchange places (see `credence.methods.transdimensional.ladder`): for
            posteriors with modes that chains do not leave. About twice the barrier that the run
            reports is right; a draw costs as many times as much. Then `thinning` is the number of
            iterations between exchanges.
        initial_widths, initial_depths: one per chain; by default spread evenly over the support, so
            that R-hat of the architecture says whether chains found each other.
        num_starts: draws from the prior at a chain's initial architecture, of which the likeliest
            starts.

    Scalars: width (neurons in all hidden layers), width_1, width_2, ... of every hidden layer,
    depth (where it changes), has_moved (whether a draw differs from the one before),
    jump_acceptance_rate, and num_jumps(_accepted), in all and by the kind of jump
    (num_jumps_informed, ...), of jumps inside the support; and those of the step at fixed widths.
    With a ladder those of `ParallelTempering`, too; jumps are those of the coldest rung, while
    num_gradients and num_evaluations are of all.
    `methods.findings(ensemble)["architecture"]` sums them up.
    """

    name: ClassVar[str] = "transdimensional"
    summary: ClassVar[str] = "reversible jump over width and depth: exact, with p(size | data)"
    sources: ClassVar[tuple[str, ...]] = (
        'Berezowski, "Trans-dimensional inference over Bayesian neural networks"',
        (
            'Green, "Reversible jump Markov chain Monte Carlo computation and Bayesian '
            'model determination" (1995)'
        ),
    )
    findings: ClassVar[tuple[type[Finding], ...]] = (
        Architecture,
        SizeEffect,
        LogEvidence,
        Exchanges,
    )
    prior: ClassVar[str] = "hierarchical"

    max_width: int | None = None
    width_prior: WidthPrior = field(default=WidthPrior())
    max_depth: int | None = None
    depth_prior: DepthPrior = field(default=DepthPrior())
    moves: Sequence[str] | None = None
    layer_moves: Sequence[str] | None = None
    tune_moves: bool = True
    sandwich: bool = False
    gibbs: bool | None = None
    num_jumps: int | None = None
    within: str | Tunable = "nuts"
    max_doublings: int | None = None
    trajectory_length: float | None = None
    max_integration_steps: int | None = None
    num_temperatures: int | None = None
    num_integration_steps: int | None = None
    split_std: float | None = None
    identity_std: float | None = None
    num_rungs: int = 1
    initial_widths: Sequence[int] | None = None
    initial_depths: Sequence[int] | None = None
    num_starts: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(
            num_jumps=self.num_jumps,
            num_rungs=self.num_rungs,
            num_starts=self.num_starts,
            max_doublings=self.max_doublings,
            max_integration_steps=self.max_integration_steps,
            num_temperatures=self.num_temperatures,
            num_integration_steps=self.num_integration_steps,
            trajectory_length=self.trajectory_length,
            split_std=self.split_std,
            identity_std=self.identity_std,
        )
        object.__setattr__(
            self, "within", checked_kernel("step within", self.within, self._why_not)
        )
        for name in ("initial_widths", "initial_depths"):
            if (sizes := getattr(self, name)) is not None:
                object.__setattr__(self, name, whole_numbers(name, sizes))
        for name, known in (("moves", MOVES), ("layer_moves", LAYER_MOVES)):
            if (moves := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple_of_names(name, moves, known))
        check_size_prior("width", self.width_prior, WidthPrior, self.max_width)
        check_size_prior("depth", self.depth_prior, DepthPrior, self.max_depth)
        self._check_depth_may_change()
        self._check_that_all_settings_matter()
        if self.sandwich and self.num_jumps is not None:
            raise InputError("A sandwich has one jump: leave num_jumps out.")
        if self.num_jumps is not None and self.num_jumps > MOST_JUMPS:
            raise InputError(f"num_jumps must be at most {MOST_JUMPS:,}, got {self.num_jumps:,}.")

    def _check_depth_may_change(self) -> None:
        """Refuse what is said of the depth where it cannot change."""
        told = {"initial_depths": self.initial_depths, "layer_moves": self.layer_moves}
        told["depth_prior"] = None if self.depth_prior == DepthPrior() else self.depth_prior
        for name, value in told.items():
            if self.max_depth is None and value is not None:
                raise InputError(
                    f"{name} is of networks whose depth is unknown: set max_depth, the largest "
                    "number of hidden layers."
                )
        if self.layer_moves is not None and not self._has_depths:
            raise InputError(
                f"layer_moves jump between depths, and max_depth={self.max_depth} leaves one only."
            )

    @property
    def _has_depths(self) -> bool:
        """Tell whether there is more than one depth."""
        depths = () if self.max_depth is None else self.depth_prior.log_probs(self.max_depth)
        return bool(np.isfinite(depths).sum() > 1)

    def _check_that_all_settings_matter(self) -> None:
        """Refuse lengths of steps, and scales of jumps, that nothing would read."""
        taken = tunable_kernel(str(self.within)).options
        unread = [name for name in USUAL_LENGTHS if name not in taken]
        refuse_unread(self, f"of other steps and nothing to within='{self.within}'", *unread)
        jumps = {base_and_size(name)[0] for name in self.moves or ()}
        if self.max_depth is not None:
            jumps |= set(self.layer_moves or KINDS_OF_LAYER)
        read = {name for jump in jumps for name in SETTINGS_OF.get(jump, ())}
        for name in (scale for scale in USUAL_SCALES if scale not in read):
            owners = ", ".join(jump for jump, read in SETTINGS_OF.items() if name in read)
            reader = f"of {owners} jumps, and neither moves nor layer_moves have such"
            refuse_unread(self, reader, name)

    def _why_not(self, tunable: Tunable) -> str | None:
        """Why a kernel cannot be the step at fixed widths."""
        if tunable.reference is not None:
            return (
                "its reference is a Gaussian over all weights, and which weights there are "
                "changes. Use 'nuts', 'hmc' or 'mala', which take a metric."
            )
        if self.sandwich and not tunable.is_reversible:
            return (
                "a sandwich takes the ratio of its jump alone, which is right for reversible steps "
                "only. Use 'nuts', 'hmc' or 'mala', or sandwich=False."
            )
        return None

    @classmethod
    def from_settings(cls, settings: dict[str, Any], *, is_saved: bool = False) -> Algorithm:
        """Read settings as `Method.from_settings`; drop the training that version 0.1 wrote to
        files."""
        used = {name: value for name, value in settings.items() if name != "training"}
        return super().from_settings(used, is_saved=is_saved)

    def prepared(self, posterior: Posterior) -> Posterior:
        """The posterior of the widest network; see `Method.prepared`.

        Raises:
            InputError: for a network whose width cannot change, a prior of unknown form, no width
                in the support, initial widths outside it, or a move the likelihood does not allow.
        """
        posterior = self.widest(posterior)
        check_weights(tunable_kernel(str(self.within)), posterior.num_weights)
        self._check(posterior)
        return posterior

    def widest(self, posterior: Posterior) -> Posterior:
        """The posterior of the network with as many neurons as there is room for."""
        model = posterior.model
        network = widened(model.network, self.max_width, self.max_depth)
        data = posterior.data
        rows = (data.x, data.y, data.weight)
        return Posterior(network, model.prior, model.likelihood, rows, posterior.groups)

    def target(self, posterior: Posterior) -> VariableWidth:
        """The joint law of sizes and weights that chains move on, of the widest network."""
        depth_prior = None if self.max_depth is None else self.depth_prior
        return VariableWidth(posterior.model, self.width_prior, depth_prior)

    def _moves(self, posterior: Posterior) -> tuple[str, ...]:
        is_normal = isinstance(posterior.model.likelihood, Normal)
        return tuple(self.moves or (("collapsed",) if is_normal else ("informed", "plain")))

    def kinds_between_depths(self, posterior: Posterior) -> tuple[str, ...]:
        """Kinds of jump between depths that there are; none where one depth alone is allowed."""
        if not self._has_depths:
            return ()
        is_normal = isinstance(posterior.model.likelihood, Normal)
        collapsed = tuple(f"collapsed_{kind}" for kind in KINDS_OF_LAYER)
        usual = collapsed if is_normal else KINDS_OF_LAYER
        return tuple(self.layer_moves or usual)

    def _draws_precisions(self, posterior: Posterior) -> bool:
        if self.gibbs is None:
            return isinstance(posterior.model.prior, HierarchicalGamma) and not self.sandwich
        return self.gibbs

    def _or_usual(self, usual: Mapping[str, float]) -> dict[str, float]:
        """Settings by name, where they are left out the usual ones."""
        return {
            name: number if getattr(self, name) is None else getattr(self, name)
            for name, number in usual.items()
        }

    def _check(self, posterior: Posterior) -> None:
        """Refuse what cannot be run, before anything is compiled."""
        model = posterior.model
        if not isinstance(model.prior, Gaussian | TraceClass | HierarchicalGamma):
            raise InputError(
                f"The width can change under a Gaussian, trace-class or hierarchical prior, got "
                f"{model.prior}."
            )
        target = self.target(posterior)
        self._initial_widths(posterior)
        room = largest_widths(model.template(posterior.data).network)
        check_jump_sizes(self._moves(posterior), self.width_prior, room)
        self._recipe(posterior, target)({"step_size": 1.0, "inverse_mass": jnp.ones(1)})

    def _initial_widths(self, posterior: Posterior) -> Int[Array, "chain layer"]:
        """Those at which chains start; see `initial_widths`."""
        depths = Sizes("depth", self.depth_prior, self.initial_depths)
        return initial_widths(
            largest_widths(posterior.model.template(posterior.data).network),
            self.num_chains,
            Sizes("width", self.width_prior, self.initial_widths),
            None if self.max_depth is None else depths,
        )

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        build = on_a_ladder if self.num_rungs > 1 else transdimensional
        return self.run_by(build, key, posterior, driver)

    def run_by(
        self, build: Callable[..., Kernel], key: PRNGKeyArray, posterior: Posterior, driver: Driver
    ) -> Drawn:
        """Run with another kernel of the same settings in place of `transdimensional`.

        Raises:
            InputError: for rungs of a kernel that has no ladder.
        """
        if self.num_rungs > 1 and build is not on_a_ladder:
            raise InputError(f"{build.__name__} has no ladder of temperatures: set num_rungs=1.")
        key_start, key_whole, key_step, key_warmup, key_sample = jax.random.split(key, 5)
        start = self._start(key_start, self._initial_widths(posterior), posterior)
        data = posterior.anchored(start[0])
        groups = self._moves(posterior), self.kinds_between_depths(posterior)
        is_ladder, first = build is on_a_ladder, start
        if is_ladder:
            adapter = ladder_tuning(
                key_step, posterior, data, num_rungs=self.num_rungs, **self._tuned()
            )
            first = jnp.repeat(start[:, None], self.num_rungs, axis=1)
        else:
            whole = self._whole(key_whole, start, posterior)
            adapter = step_tuning(key_step, whole, posterior, data, **self._tuned())
        adapter = self._with_jumps(adapter, groups, settles=build is transdimensional)
        plan = self._rounds().plan(self._recipe(posterior, self.target(posterior), build), adapter)
        warmup = driver.phase("warmup", key_warmup, plan, first, data)
        data = posterior.anchored(warmup.positions[0])  # near what is drawn: differences are small
        thinning = 1 if is_ladder else self.thinning  # a ladder's steps are so many sweeps
        plan = self._sample_plan(plan, warmup.memory, thinning=thinning)
        states = warmup.states if is_ladder else warmup.positions
        sample = driver.phase("sample", key_sample, plan, states, data)
        told, found = sample.info, found_of_jumps(plan.settings, groups)
        if is_ladder:
            powers = np.asarray(plan.settings["powers"], float)
            told, of_ladder = told_of_ladder(told, powers, data.log_anchor)
            found |= of_ladder
        sizes = self._sizes(posterior, sample.draws)
        size, noun = ("depth", "layers") if groups[1] else ("width", "neurons")
        found |= size_effect(posterior, sample.draws, sizes[size], noun)
        return Drawn(sample.draws, told | sizes | by_kind(sample.info, groups), found=found)

    def _with_jumps(self, adapter: Adapter, groups: Groups, *, settles: bool) -> Adapter:
        """The tuning of the steps, with that of the jumps.

        Args:
            groups: names of the moves of neurons and of layers.
            settles: whether chains do not jump at first.
        """
        number = 1 if self.sandwich else self.num_jumps
        adapter = with_mixture(adapter, groups, num_jumps=number, is_tuned=self.tune_moves)
        if settles and not self.sandwich:
            return settling_first(adapter, int(SETTLING * self._rounds().number))
        return adapter

    def _start(
        self, key: PRNGKeyArray, widths: Int[Array, "chain layer"], posterior: Posterior
    ) -> Float[Array, "chain weight"]:
        """The likeliest of some draws of the prior, for every chain at its widths."""
        keys = jax.random.split(key, (self.num_chains, self.num_starts))
        return likeliest_draws(keys, widths, posterior.data, target=self.target(posterior))

    def _sizes(
        self, posterior: Posterior, draws: Float[np.ndarray, "chain draw weight"]
    ) -> dict[str, Float[np.ndarray, "chain draw"]]:
        """Widths of the drawn networks, and their depth where it changes."""
        layers = posterior.unravel(jnp.asarray(draws)).network
        widths = np.asarray(count_active(layers), float)
        sizes = architecture_scalars(widths, draws)
        if self.max_depth is not None:
            sizes["depth"] = (widths > 0).sum(axis=-1).astype(float)
        return sizes

    def _tuned(self) -> TuningSettings:
        """What tunes the step at fixed widths, on a ladder or not."""
        return {
            "tunable": tunable_kernel(str(self.within)),
            "num_rounds": self._rounds().number,
            "target_acceptance_rate": self.target_acceptance_rate,
        }

    def _whole(
        self, key: PRNGKeyArray, start: Float[Array, "chain weight"], posterior: Posterior
    ) -> Float[Array, "chain weight"]:
        """Positions of whole networks, at which a first step size is looked for.

        An absent layer would turn up with any step.
        """
        if self.max_depth is None:
            return start
        room = largest_widths(posterior.unravel(start[0]).network)
        widths = jnp.broadcast_to(jnp.asarray(room, jnp.int32), (len(start), len(room)))
        return self._start(key, widths, posterior)

    def _recipe(
        self,
        posterior: Posterior,
        target: VariableWidth,
        build: Callable[..., Kernel] = transdimensional,
    ) -> Recipe:
        within = tunable_kernel(str(self.within))
        lengths = within.taken(**self._or_usual(USUAL_LENGTHS))
        sweeps = (("num_sweeps", self.thinning),) if build is on_a_ladder else ()
        static = (
            ("gibbs", self._draws_precisions(posterior)),
            ("layer_moves", self.kinds_between_depths(posterior)),
            ("move_settings", tuple(self._or_usual(USUAL_SCALES).items())),
            ("moves", self._moves(posterior)),
            *sweeps,
            ("sandwich", self.sandwich),
            ("target", target),
            ("within", within.build),
            ("within_settings", tuple(lengths.items())),
        )
        return Recipe(build, posterior.log_density, static, fixed_cost=False)
