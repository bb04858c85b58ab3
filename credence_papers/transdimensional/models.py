"""One table, several models of it: how large should the network be, and how well does it predict?

A model is a family of networks (so deep, so wide), a likelihood and a prior of the weights; beside
its posterior by reversible jumps stand trained networks of the same model, and the published chain.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from credence.compare import scoring
from credence.compare.problem import Arrays
from credence.density.posterior import Posterior
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.findings import found_in, judged
from credence.methods import NUTS, DeepEnsemble, Transdimensional
from credence.methods.base import Method
from credence.methods.training import Training
from credence.methods.transdimensional.architecture.posterior import (
    Architecture,
    architecture_posterior,
)
from credence.methods.transdimensional.size_priors import DepthPrior, WidthPrior
from credence.models import MLP, Gaussian, HierarchicalGamma
from credence.storage import jsonable
from credence_papers.transdimensional.label_ranks import label_ranks
from credence_papers.transdimensional.published_chain import PublishedChain
from credence_papers.transdimensional.runs import read_by_step

Settings = Mapping[str, Any]
NUMBERS = ("rmse", "nll", "coverage_95", "crps")
LABELS = ("accuracy", "nll", "ece")
UNIT = Gaussian(scaling="unit")


@dataclass(frozen=True)
class Family:
    """Networks of 1 to `deepest` hidden layers of `width` neurons, or of one of 1 to `width`.

    Args:
        deepest: hidden layers; None is one, of any width.
    """

    width: int
    deepest: int | None
    activation: str

    @property
    def settings(self) -> dict[str, Any]:
        """Those of `Transdimensional`."""
        if self.deepest is None:
            return {"max_width": self.width}
        return {
            "max_width": self.width,
            "width_prior": WidthPrior(smallest=self.width),
            "max_depth": self.deepest,
            "depth_prior": DepthPrior(),
        }


@dataclass(frozen=True)
class ModelEffort:
    """How much is run.

    Args:
        num_chains, num_draws, num_warmup, max_doublings, num_starts: of `Transdimensional`.
        num_members: of a trained ensemble.
        ladder: settings of `Transdimensional` that are others where its chains are ladders.
        fixed: settings of `NUTS` where networks have one size.
    """

    num_chains: int
    num_draws: int
    num_warmup: int
    max_doublings: int = 6
    num_starts: int = 1000
    num_members: int = 10
    ladder: Settings = field(default_factory=dict)
    fixed: Settings = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ModelProblem:
    """A model of a table, and how its predictions are found.

    Args:
        data: seed -> arrays; a plain function.
        how: "jumps", exactly; "ladder", by jumps on a ladder of temperatures; "published", by the
            published chain; "fixed", by NUTS on networks of one size; "trained", by networks of one
            size at maxima of the posterior.
        layers: hidden layers of networks of one size.
    """

    name: str
    description: str = field(compare=False)
    data: Callable[[int], Arrays]
    family: Family
    likelihood: Any
    prior: Gaussian | HierarchicalGamma = field(default=UNIT)
    how: str = "jumps"
    layers: int = 1

    def posterior(self, arrays: Arrays) -> Posterior:
        """The posterior of the widest network, with one hidden layer unless it is of one size."""
        hidden = (self.family.width,) * self.layers
        outputs = self.likelihood.num_outputs(len(arrays.labels) or 1)
        network = MLP(outputs, hidden, self.family.activation)
        return Posterior(network, self.prior, self.likelihood, (arrays.x_train, arrays.y_train))

    def method(self, effort: ModelEffort) -> Method:
        """What is run."""
        if self.how == "trained":
            training = Training(validation_fraction=0.0)
            return DeepEnsemble(num_members=effort.num_members, training=training)
        if self.how == "fixed":
            bound = {"num_chains": effort.num_chains, "max_doublings": effort.max_doublings}
            return NUTS(**bound, **effort.fixed)
        is_published = self.how == "published"
        settings = {
            "num_draws": effort.num_draws,
            "num_warmup": effort.num_warmup,
            "max_doublings": effort.max_doublings,
            **(effort.ladder if self.how == "ladder" else {}),
        }
        chain = Transdimensional(
            layer_moves=("layer",) if is_published else None,
            num_chains=effort.num_chains,
            num_starts=effort.num_starts,
            gibbs=isinstance(self.prior, HierarchicalGamma),
            **read_by_step(settings),
            **self.family.settings,
        )
        return PublishedChain(chain=chain) if is_published else chain


def run_model(
    problem: ModelProblem, effort: ModelEffort, seed: int, folder: Path | None = None
) -> dict[str, Any]:
    """One split: scores of the average, what the posterior says of the size, convergence, cost.

    Args:
        folder: of checkpoints, from which a run that was stopped goes on; None keeps none.
    """
    arrays = problem.data(seed)
    posterior, method = problem.posterior(arrays), problem.method(effort)
    ensemble = method.run(seed, posterior, folder=folder)
    assert isinstance(ensemble, Ensemble)
    found, has_chains = architecture_posterior(ensemble.scalars), problem.how != "trained"
    findings = found_in(ensemble, method.findings).values() if has_chains else ()
    numbers = scoring.scores(ensemble, arrays, findings)[0]
    of_kind = NUMBERS if arrays.scaler else LABELS
    monitored = ensemble.monitored(arrays.x_test) if has_chains else None
    convergence = judged(ensemble, monitored, findings)
    return jsonable(
        {
            "n_train": len(arrays.x_train),
            "n_test": len(arrays.x_test),
            **{name: numbers[name] for name in of_kind},
            **label_ranks(ensemble, arrays),
            **single_fits(ensemble, arrays),
            "size": found and of_size(found),
            "converged": convergence.converged,
            "reason": convergence.reason,
            "rhat_predictions": convergence.max_rhat_function,
            "within": float(np.mean(ensemble.scalars["acceptance_rate"])) if has_chains else None,
            "seconds": ensemble.cost.total_seconds,
        },
        spell_infinite=True,
    )


def of_size(found: Architecture) -> dict[str, Any]:
    """What the posterior says of the number of layers, or of neurons where it is fixed."""
    size = found.size
    tried = sum(each.tried for each in found.jumps.values())
    return {
        "sizes": list(size.widths),
        "probabilities": list(size.probabilities),
        "mode": size.mode,
        "mean": size.mean,
        "rhat": found.max_rhat,
        "ess": found.min_ess,
        "across": sum(each.accepted for each in found.jumps.values()) / max(tried, 1),
    }


def single_fits(ensemble: Ensemble, arrays: Arrays) -> dict[str, float]:
    """How well single networks fit, over draws and rows: root mean squared error or accuracy."""
    found = {}
    for part, x, y in (
        ("train", arrays.x_train, arrays.y_train),
        ("test", arrays.x_test, arrays.y_test),
    ):
        functions, truth = np.asarray(ensemble.functions(x)), np.asarray(y).ravel()
        if arrays.scaler is None:
            found[f"single_{part}_accuracy"] = float(np.mean(functions.argmax(axis=-1) == truth))
        else:
            error = arrays.scaler.inverse_scale(functions[..., 0] - truth)
            found[f"single_{part}_rmse"] = float(np.sqrt(np.mean(error**2)))
    return found
