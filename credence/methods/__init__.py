"""Whole algorithms: each turns a posterior into an ensemble, `method.run(key, posterior)`.

`resolve` finds them by name and decides for "auto". Methods share

    algorithm, base          what can be named as a method, and what samples a posterior
    chains, training         chains that are tuned together, their members
    minibatch_steps          rows of a step, and how long it may be
    scouts                   further starts, to see whether there are other modes
    evidence, exchanges      what several methods find: the evidence, how a ladder's states travel
    settings                 settings by name, and values written as text
    monitor, work            what is shown of a run, and what it cost

A folder is an algorithm with kernels and parts of its own, or, `approximate`, several that stand in
for the posterior. Other packages add theirs by the entry point group `credence.methods` (see
`credence.extensions`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from credence.adaptation.tunable_kernels import Tunable, register_kernel
from credence.density.posterior import Posterior
from credence.ensembles.findings import Finding, Findings, found_in, read_from
from credence.ensembles.predictor import Predictor
from credence.errors import InputError, did_you_mean
from credence.extensions import Registry
from credence.methods.algorithm import USUAL_DRAWS, Algorithm
from credence.methods.approximate.deep_ensemble import MAP, DeepEnsemble
from credence.methods.approximate.mc_dropout import MCDropout
from credence.methods.approximate.swag import SWAG
from credence.methods.approximate.variational import Variational
from credence.methods.base import Method
from credence.methods.hamiltonian import HMC, MALA, MCLMC, NUTS
from credence.methods.interacting.method import Interacting
from credence.methods.interacting.nonlinear_sgld import NonlinearSGLD
from credence.methods.laplace.method import Laplace
from credence.methods.parallel_tempering import ParallelTempering
from credence.methods.pcn import PCN
from credence.methods.smc.method import SMC
from credence.methods.smc.multilevel.method import MLSMC
from credence.methods.smc.mutation import Mutation
from credence.methods.stacking.method import Stacking
from credence.methods.stacking.models import OWN_MODEL
from credence.methods.stochastic_gradient import SGHMC, SGLD, ULA
from credence.methods.surrogate.ces import CES
from credence.methods.surrogate.rns_hmc import RNSHMC
from credence.methods.training import Training
from credence.methods.transdimensional.method import Transdimensional

__all__ = [
    "CES",
    "HMC",
    "MALA",
    "MAP",
    "MCLMC",
    "METHODS",
    "MLSMC",
    "NUTS",
    "PCN",
    "RNSHMC",
    "SGHMC",
    "SGLD",
    "SMC",
    "SWAG",
    "ULA",
    "Algorithm",
    "DeepEnsemble",
    "Interacting",
    "Laplace",
    "MCDropout",
    "Method",
    "Mutation",
    "NonlinearSGLD",
    "ParallelTempering",
    "Stacking",
    "Training",
    "Transdimensional",
    "Tunable",
    "Variational",
    "citation",
    "findings",
    "register_kernel",
    "resolve",
]

OURS: tuple[type[Algorithm], ...] = (
    MAP,
    DeepEnsemble,
    Laplace,
    Variational,
    MCDropout,
    SWAG,
    HMC,
    NUTS,
    MCLMC,
    MALA,
    ULA,
    SGLD,
    NonlinearSGLD,
    SGHMC,
    PCN,
    ParallelTempering,
    RNSHMC,
    CES,
    SMC,
    MLSMC,
    Interacting,
    Transdimensional,
    Stacking,
)
METHODS: Registry[type[Algorithm]] = Registry(
    "method",
    "credence.methods",
    lambda found: isinstance(found, type) and issubclass(found, Algorithm),
    {method.name: method for method in OURS},
)
"""All methods by name: ours, and those that other packages add."""

FEWEST_STACKED = 20
"""Rows from which "auto" tries several models: of fewer, scores of unseen rows say little."""
FEWEST_PASSES = 20
"""Passes over the rows, below which networks are not trained to the end."""
LARGEST_EXACT = 3e7
"""Rows times weights up to which "auto" samples: about ten minutes for 4 chains on two cores."""


def resolve(
    method: str | Algorithm, posterior: Posterior, *, is_model_named: bool = True, **settings: Any
) -> tuple[Algorithm, str]:
    """A method object, and in a sentence why it runs.

    Args:
        method: "auto", a name in `METHODS`, or a method object.
        posterior: what "auto" judges by.
        is_model_named: whether the model of the posterior is to be kept, by "auto" and by a method
            that tries several models and was told of none.
        settings: of a named method; None where it keeps its own. "auto" uses those that the
            method it chooses has.
    Raises:
        InputError: for an unknown name, a setting out of range or one that the method lacks.
    """

    def keeping_model(chosen: Algorithm) -> Algorithm:
        return chosen.for_named_model() if is_model_named else chosen

    if isinstance(method, Algorithm):
        unused = [name for name, value in settings.items() if value is not None]
        if unused:
            raise InputError(
                f"{unused[0]} and a method object were given: set it in the object, "
                f"{type(method).__name__}({unused[0]}=...)."
            )
        return keeping_model(method), "Chosen by the caller."
    if method == "auto":
        is_named = is_model_named or any(value is not None for value in settings.values())
        name, own, reason = choose(posterior, is_model_named=is_named)
        chosen = METHODS[name]
        usual = chosen.known(num_draws=USUAL_DRAWS)
        return chosen(**usual | own | chosen.known(**settings)), reason
    chosen = METHODS[check_name(method)]
    return keeping_model(chosen(**chosen.given(**settings))), "Chosen by the caller."


def findings(ensemble: Predictor) -> Findings:
    """Findings of a method beside predictions, by name: `findings(ensemble)["log_evidence"]`.

    Works on an ensemble that was loaded, too. A method that is no longer installed, or was never
    registered, has none here: see `credence.ensembles.findings.found_in` for those.
    """
    return found_in(ensemble, finding_kinds(ensemble.provenance.method))


def saved_findings(
    method: str, metrics: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> Findings:
    """The same from the documents of a run, which a method of that name made.

    Raises:
        ValueError: where one of them is damaged.
    """
    return read_from(metrics, arrays, finding_kinds(method))


def finding_kinds(method: str) -> tuple[type[Finding], ...]:
    """The kinds of finding that a method of that name declares; none where it is not known."""
    return METHODS[method].findings if method in METHODS else ()


def citation(method: str | Algorithm) -> str:
    """The papers to cite when a method was used, one a line: authors, title, year.

    Args:
        method: a name in `METHODS`, or a method object; "auto" takes `stacking` in most cases.
    Raises:
        InputError: for a name that is not known.
    """
    if isinstance(method, str):
        check_name(method)
        method_class = METHODS["stacking" if method == "auto" else method]
    else:
        method_class = type(method)
    return "\n".join(f"{source}." for source in method_class.sources)


def default_prior(*methods: str | Algorithm) -> str:
    """The prior of the weights where none is named: the first that one of the methods needs."""
    priors = [getattr(METHODS.get(str(method), method), "prior", "fan_in") for method in methods]
    return next((prior for prior in priors if prior != "fan_in"), "fan_in")


def check_name(name: str) -> str:
    """The name, if there is such a method.

    Raises:
        InputError: otherwise, with the nearest name.
    """
    if name not in METHODS and name != "auto":
        raise InputError(
            f"Unknown method {name!r}: choose auto or one of {', '.join(METHODS)}."
            + did_you_mean(name, METHODS)
        )
    return name


def choose(posterior: Posterior, *, is_model_named: bool = True) -> tuple[str, dict[str, Any], str]:
    """The method "auto" takes, settings of it, and why.

    A chain of 1000 draws costs about 35,000 passes over rows and weights; an ensemble a thousand.
    In between, a short chain from each of several trained networks costs little more than these:
    Sommer, Robnik, Nozadze, Seljak & Ruegamer, "Microcanonical Langevin ensembles" (2025).

    Args:
        is_model_named: whether the model of the posterior is to be kept. Otherwise several are
            tried, and weighed by rows that they have not seen.
    """
    size = f"{posterior.num_points:,} rows and {posterior.num_weights:,} weights"
    if not is_model_named and posterior.num_points >= FEWEST_STACKED:
        told = "No model was named: several are tried, on rows that they have not seen."
        return "stacking", {}, told
    if posterior.num_weights < 2:
        return "hmc", {}, "A single weight needs no more."
    if posterior.num_points * posterior.num_weights <= LARGEST_EXACT:
        told = f"{size} are few enough to sample the posterior exactly, and it is fastest."
        return "mclmc", {}, told
    is_table = len(posterior.data.x.shape) == 2
    if is_table and Stacking().affordable_passes(posterior) >= FEWEST_PASSES:
        told = (
            f"{size} would take long to sample: short chains start at trained networks, and rows "
            "that they leave out say how far to trust them."
        )
        return "stacking", {"models": (OWN_MODEL,)}, told
    told = f"{size} would take long to sample; an ensemble of trained networks is usual then."
    return "deep_ensemble", {}, told
