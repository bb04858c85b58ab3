"""One program of an error-cost study: a reference, the choice of a ladder, a pilot, or replicates
of one setting."""

from collections.abc import Iterable
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, PRNGKeyArray

from credence_papers.cache import number
from credence_papers.multilevel.error_cost.settings_tried import NARROWEST, Contender, Job, doubled
from credence_papers.multilevel.error_cost.width_problems import WidthProblem


def execute(job: Job) -> dict[str, Any]:
    """Run one program."""
    import jax

    from credence import methods

    problem, interest = job.problem, job.problem.interest()
    key = jax.random.fold_in(jax.random.key(job.seed), number(job))
    if job.kind == "ladder":
        return _ladder(key, job)
    if job.contender is None:
        settings, keys = dict(job.settings), [key]
        if together := settings.pop("together", None):
            keys = jax.random.split(key, ceil(settings["num_runs"] / together))
            settings["num_runs"] = together
        method = (methods.SMC if "num_particles" in settings else methods.NUTS)(**settings)
        runs = (method.run(each, problem.posterior(job.width)) for each in keys)
        return {"method": method.name, **_reference(runs, interest)}
    posterior = problem.posterior(job.contender.widths[-1])
    together = job.batch or job.replicates
    method = build(job.contender, problem, together)
    if job.kind == "pilot":
        return _pilot(method.run(key, posterior), job)
    keys = jax.random.split(key, ceil(job.replicates / together))
    return joined([_replicates(method.run(each, posterior), interest) for each in keys])


def build(contender: Contender, problem: WidthProblem, num_runs: int) -> Any:
    """The method of a contender."""
    from credence import methods

    mutation = methods.Mutation(**contender.mutation)
    settings = {"num_runs": num_runs, "mutation": mutation, **contender.settings}
    if contender.method == "smc":
        return methods.SMC(num_particles=contender.num_particles[0], **settings)
    widths = tuple((width,) * problem.depth for width in contender.widths)
    return methods.MLSMC(widths=widths, num_particles=contender.num_particles, **settings)


def estimates(ensemble: Any, interest: np.ndarray) -> Float[np.ndarray, "run quantity"]:
    """Posterior means of every run."""
    functions = np.asarray(ensemble.functions(interest), float)
    functions = functions.reshape(*functions.shape[:2], -1)
    if ensemble.weights is None:
        return functions.mean(axis=1)
    return len(functions) * np.einsum("rm,rmq->rq", ensemble.weights, functions)


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Replicates of several runs of one program, which is compiled in the first.

    Seconds are the mean work by the median speed: a replicate that was tempered between levels
    counts with all that it took, a run that something else disturbed as the others.
    """
    flops, seconds = ([part[name] for part in parts] for name in ("flops", "seconds"))
    return {
        "means": [row for part in parts for row in part["means"]],
        "log_evidence": [row for part in parts for row in part["log_evidence"]],
        "num_temperatures": [row for part in parts for row in part["num_temperatures"]],
        "flops": float(np.mean(flops)),
        "seconds": float(np.mean(flops) * np.median(np.divide(seconds, flops))),
        "compile_seconds": float(np.sum([part["compile_seconds"] for part in parts])),
    }


def _ladder(key: PRNGKeyArray, job: Job) -> dict[str, Any]:
    """The finest width, and the narrowest whose particles can be weighed to it."""
    import jax

    from credence.engine.driver import Driver
    from credence.methods import Mutation
    from credence.methods.smc.multilevel.reach import narrowest, share_left
    from credence.methods.work import total_flops

    widths, num_tries = doubled(NARROWEST, job.width), job.settings["num_tries"]
    keys = jax.random.split(key, len(widths))
    work: list[float] = []

    def share(level: int) -> float:
        coarse, fine = map(job.problem.posterior, (widths[level], job.width))
        with Driver() as driver:
            found = share_left(keys[level], driver, coarse, fine, Mutation(), num_tries=num_tries)
            work.append(total_flops(driver.results.values()))
            return found

    base, shares = narrowest(len(widths), share, job.settings["share"])
    tried = {str(width): found for width, found in zip(widths, shares, strict=False)}
    return {"widths": sorted({widths[base], job.width}), "shares": tried, "flops": sum(work)}


def _replicates(ensemble: Any, interest: np.ndarray) -> dict[str, Any]:
    runs, seconds = ensemble.num_chains, dict(ensemble.cost.seconds)
    compiling = seconds.pop("compile", 0.0)
    return {
        "means": estimates(ensemble, interest).tolist(),
        "flops": ensemble.cost.flops / runs,
        "seconds": sum(seconds.values()) / runs,
        "compile_seconds": compiling,
        "log_evidence": np.asarray(ensemble.scalars["log_evidence"], float)[:, 0].tolist(),
        "num_temperatures": temperatures(ensemble),
    }


def temperatures(ensemble: Any) -> list[list[int]]:
    """Temperatures that every run visited on its way to every level."""
    visited = np.asarray(ensemble.scalars["num_temperatures"], int)
    levels = np.asarray(ensemble.scalars.get("increment", np.zeros(visited.shape)))[0]
    _, first = np.unique(levels, return_index=True)
    return visited[:, first].tolist()


def _reference(ensembles: Iterable[Any], interest: np.ndarray) -> dict[str, Any]:
    """Posterior means of all chains, or runs, of one method, and whether these agree.

    Args:
        ensembles: of equally many draws, made one after another: a part of the runs each.
    """
    from credence.ensembles.diagnostics.convergence import assess

    found = [_of_part(each, interest) for each in ensembles]
    functions, monitored = (
        np.concatenate([getattr(part, name) for part in found])
        for name in ("functions", "monitored")
    )
    families = [part.families for part in found if part.families is not None]
    judged = assess(monitored, families=np.concatenate(families) if families else None)
    return {
        "chain_means": functions.reshape(*functions.shape[:2], -1).mean(axis=1).tolist(),
        "spread": float(np.mean(functions.std(axis=(0, 1)) ** 2)),
        "max_rhat": judged.max_rhat_function,
        "min_ess": judged.min_ess_function,
        "converged": judged.converged,
        "num_draws": functions.shape[1],
        "seconds": sum(part.seconds for part in found),
    }


class _Part(NamedTuple):
    """What is needed of an ensemble of a reference."""

    functions: Float[np.ndarray, "chain draw point output"]
    monitored: Float[np.ndarray, "chain draw point quantity"]
    families: Any
    seconds: float


def _of_part(ensemble: Any, interest: np.ndarray) -> _Part:
    return _Part(
        np.asarray(ensemble.functions(interest), float),
        np.asarray(ensemble.monitored(interest)),
        ensemble.families,
        ensemble.cost.total_seconds,
    )


def _pilot(ensemble: Any, job: Job) -> dict[str, Any]:
    """Variance and cost of every level's term, for one particle; and the step in nats."""
    from credence.methods.smc.multilevel.allocation import increments, nats_between

    assert job.contender is not None
    found = increments(ensemble, job.problem.interest())
    levels = [job.problem.posterior(width) for width in job.contender.widths]
    return {
        "variances": found.variances.tolist(),
        "costs": found.costs.tolist(),
        "nats": nats_between(levels).tolist() if len(levels) > 1 else [],
        "flops": ensemble.cost.flops / ensemble.num_chains,
        "seconds": ensemble.cost.total_seconds / ensemble.num_chains,
    }
