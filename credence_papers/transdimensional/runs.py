"""One run of a trans-dimensional experiment: the posterior over architectures, and its scores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from credence.compare import scoring
from credence.compare.problem import Arrays
from credence.density.posterior import Posterior
from credence.ensembles.ensemble import Ensemble
from credence.methods import Transdimensional
from credence.methods.transdimensional.architecture.posterior import architecture_posterior
from credence.methods.transdimensional.size_priors import DepthPrior, WidthPrior
from credence.models import MLP, Gaussian
from credence.storage import jsonable
from credence_papers.transdimensional.draw_by_draw import draw_by_draw
from credence_papers.transdimensional.label_ranks import label_ranks
from credence_papers.transdimensional.three_ways import Ways, compared, jump_shares


@dataclass(frozen=True, kw_only=True)
class ArchitectureProblem:
    """A posterior over networks of many sizes.

    Args:
        data: seed -> arrays; a plain function, or a dataclass of plain values.
        likelihood: Categorical(a) for softmax(a z), or Normal(noise_std).
        max_width, width_prior: neurons of every hidden layer.
        max_depth: hidden layers; None is one, always.
        spacing: chain i starts with i times so many neurons; 0 spreads them over the support.
        settings: of `Transdimensional`, beside those of the effort.
        patience: how many times as many draws as the effort has.
        published: the thesis's numbers, under the names of our columns.
        reasons: why ours may differ.
        ways: size of the experiment -> how evidences and cross-validation answer the same question.
    """

    name: str
    description: str = field(compare=False)
    data: Callable[[int], Arrays]
    likelihood: Any
    max_width: int
    width_prior: WidthPrior = field(default=WidthPrior())
    max_depth: int | None = None
    activation: str = "tanh"
    spacing: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    patience: float = 1.0
    published: Mapping[str, float] = field(default_factory=dict, compare=False)
    reasons: tuple[str, ...] = field(default=(), compare=False)
    ways: Mapping[str, Ways] = field(default_factory=dict, compare=False)

    def posterior(self, arrays: Arrays) -> Posterior:
        """Weights N(0, 1), of the widest and shallowest network."""
        outputs = self.likelihood.num_outputs(len(arrays.labels) or 1)
        network = MLP(outputs, (self.max_width,), self.activation)
        data = (arrays.x_train, arrays.y_train)
        return Posterior(network, Gaussian(scaling="unit"), self.likelihood, data)

    def method(self, effort: "Effort") -> Transdimensional:
        """The method to run, its chains spread over the whole support at the start."""
        chains, draws = effort.num_chains, round(self.patience * effort.num_draws)
        widths = tuple(self.spacing * (i + 1) for i in range(chains)) if self.spacing else None
        if widths and widths[-1] != self.max_width:
            widths = None  # fewer chains than published: spread
        settings = {**effort.settings, **self.settings, "num_draws": draws}
        return Transdimensional(
            max_width=self.max_width,
            width_prior=self.width_prior,
            max_depth=self.max_depth,
            depth_prior=DepthPrior(),
            initial_widths=widths,
            **read_by_step(settings),
        )


def read_by_step(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of `Transdimensional` without a bound that its step does not read.

    The bound on doublings is of NUTS, the usual step.
    """
    is_nuts = settings.get("within", "nuts") == "nuts"
    return {name: each for name, each in settings.items() if is_nuts or name != "max_doublings"}


@dataclass(frozen=True)
class Effort:
    """How much is run: settings of `Transdimensional`, and the other ways to the same answer."""

    num_chains: int
    num_draws: int
    num_warmup: int
    num_starts: int = 1000
    max_doublings: int = 8
    ways: Ways | None = None

    @property
    def settings(self) -> dict[str, int]:
        """Those of `Transdimensional`."""
        return {name: value for name, value in vars(self).items() if name != "ways"}


def measured(
    problem: ArchitectureProblem, effort: Effort, seed: int, folder: Path
) -> dict[str, Any]:
    """One run: the posterior over architectures, scores on test rows, convergence and cost.

    Args:
        folder: of its checkpoints.
    """
    arrays = problem.data(seed)
    posterior = problem.posterior(arrays)
    ensemble = problem.method(effort).run(seed, posterior, folder=folder)
    found = architecture_posterior(ensemble.scalars)
    assert found is not None
    tried = sum(each.tried for each in found.jumps.values())
    accepted = sum(each.accepted for each in found.jumps.values())
    size = found.size
    scores = {
        **scoring.scores(ensemble, arrays)[0],
        **jsonable(label_ranks(ensemble, arrays)),
        **_alone(ensemble, arrays, size.mode),
        "across": accepted / max(tried, 1),
        "within": float(np.mean(ensemble.scalars["acceptance_rate"])),
        "mode": size.mode,
        "mean": size.mean,
    }
    drawn = draw_by_draw(ensemble, arrays)
    sizes = ensemble.scalars["width" if found.depth is None else "depth"]
    return {
        "n_train": len(arrays.x_train),
        "n_test": len(arrays.x_test),
        "chains": ensemble.num_chains,
        "draws": ensemble.num_draws,
        "architecture": found.to_dict(),
        "scores": scores,
        "convergence": scoring.judge(ensemble, arrays.x_test)["convergence"],
        "divergences": int(np.sum(ensemble.scalars["is_divergent"] > 0)),
        "traces": sizes[:, :: drawn["every"]].astype(int).tolist(),
        **drawn,
        "seconds": dict(ensemble.cost.seconds),
        "total_seconds": ensemble.cost.total_seconds,
        "move_probabilities": ensemble.provenance.found.get("move_probabilities", {}),
        "likelihood_evaluations": ensemble.cost.likelihood_evaluations,
        "gradient_evaluations": ensemble.cost.gradient_evaluations,
        "ways": effort.ways
        and _ways(problem, posterior, arrays, sizes, found.size.ess, effort.ways, seed),
    }


def _ways(
    problem: ArchitectureProblem,
    posterior: Posterior,
    arrays: Arrays,
    drawn: np.ndarray,
    ess: float,
    ways: Ways,
    seed: int,
) -> dict[str, Any]:
    """Three answers to one question; see `three_ways`."""
    is_deep = problem.max_depth is not None
    prior, largest = (
        (DepthPrior(), problem.max_depth) if is_deep else (problem.width_prior, problem.max_width)
    )
    assert largest is not None
    log_prior = dict(enumerate(prior.log_probs(largest).tolist()))
    jumps = jump_shares(np.asarray(drawn), ways.sizes, ess)
    return compared(problem.name, posterior, arrays, jumps, log_prior, ways, seed, is_deep=is_deep)


def _alone(ensemble: Ensemble, arrays: Arrays, mode: int) -> dict[str, float]:
    """Errors, of numbers: of the best chain, and of the draws of the likeliest size alone.

    The best chain is best on the test rows, as published.
    """
    scaler = arrays.scaler
    if scaler is None:
        return {}
    functions = np.asarray(ensemble.functions(arrays.x_test), float)[..., 0]
    truth = scaler.inverse(np.asarray(arrays.y_test, float).ravel())

    def error(prediction: np.ndarray) -> float:
        return float(np.sqrt(np.mean((scaler.inverse(prediction) - truth) ** 2)))

    sizes = ensemble.scalars.get("depth", ensemble.scalars["width"])
    return {
        "best_chain": min(error(chain.mean(axis=0)) for chain in functions),
        "modal_size": error(functions[np.asarray(sizes) == mode].mean(axis=0)),
    }
