"""Four ways find p(depth) of one posterior, each with errors from repetition.

jumps       reversible jumps between depths, several runs of several chains
ladder      parallel tempering at every depth alone: the evidence by bridge sampling
crossings   the same with other random numbers: how often jumps from its draws would be accepted
particles   sequential Monte Carlo from the prior to the posterior of every depth alone

The first two share nothing. Crossings share the ratio of a jump with the first, and the kind of
chain with the second, but neither how long a chain stays at a depth nor a bridge. All give
log p(d) - log p(1) under a uniform prior of the depth; the error of each is that of a mean over
runs with independent random numbers. Crossings are tried under a prior of the depth that makes all
depths about equally probable afterwards, so that as many lead up as down. It is divided out.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import numpy as np
from rich.table import Table

from credence.density.posterior import Posterior
from credence.ensembles.diagnostics import rhat
from credence.ensembles.diagnostics.convergence import RHAT_LIMIT
from credence.html.document import document
from credence.html.markup import element
from credence.html.parts import masthead, section, table
from credence.methods import SMC, Mutation, ParallelTempering, Transdimensional
from credence.methods.evidence import LogEvidence
from credence.methods.exchanges import Exchanges
from credence.methods.transdimensional.architecture.posterior import architecture_posterior
from credence.methods.transdimensional.size_priors import DepthPrior
from credence.storage import jsonable
from credence_papers.cache import Cache, number
from credence_papers.study import Row, Study, with_seed
from credence_papers.transdimensional import crossings
from credence_papers.transdimensional.runs import ArchitectureProblem, Effort
from credence_papers.transdimensional.three_ways import of_size

DEEP = 7
"""Layers from which on ladders get twice as many draws: there they are slowest."""


@dataclass(frozen=True)
class DepthEffort:
    """How much each way is given.

    Args:
        num_runs: independent repetitions; of ladders, those that run side by side.
        num_batches: by way, how many times so many ladders run, one batch after the other; once by
            default.
        depths: that are compared, from 1 on; the jumps go as deep as the problem does.
        jumps: of one run.
        depth_prior: of crossings.
        chain_length: draws of every particle that moves, all of which are particles at the next
            temperature (waste-free SMC).
    """

    num_runs: int
    depths: int
    jumps: Effort
    depth_prior: DepthPrior
    num_particles: int
    chain_length: int
    num_rungs: int
    num_draws: int
    num_warmup: int
    num_batches: Mapping[str, int] = field(default_factory=dict)

    def of(self, way: str, piece: int) -> tuple[Any, ...]:
        """What that piece of that way depends on."""
        if way == "jumps":
            return (self.jumps, self.depths)
        if way == "particles":
            return self.num_runs, self.num_particles, self.chain_length
        if way == "ladder":
            return (self.ladders(piece),)
        return self.ladders(), self.depth_prior

    def crossing(self, problem: ArchitectureProblem) -> Transdimensional:
        """Jumps between depths, under the prior of the depth."""
        return replace(problem.method(self.jumps), depth_prior=self.depth_prior)

    def log_prior(self, problem: ArchitectureProblem) -> np.ndarray:
        """Return the log prior of every depth, from 1 on, less that of the first, in nats."""
        assert problem.max_depth is not None
        nats = self.depth_prior.log_probs(problem.max_depth)[1 : self.depths + 1]
        return nats - nats[0]

    def ladders(self, depth: int = 1) -> ParallelTempering:
        """A ladder for each run."""
        return ParallelTempering(
            num_chains=self.num_runs,
            num_rungs=self.num_rungs,
            num_draws=self.num_draws * (2 if depth >= DEEP else 1),
            num_warmup=self.num_warmup,
        )


@dataclass(frozen=True, kw_only=True)
class DepthWay:
    """One way to one posterior over the depth."""

    name: str
    description: str = field(compare=False)
    way: str
    problem: ArchitectureProblem


@dataclass(frozen=True, kw_only=True)
class DepthStudy(Study[DepthWay, DepthEffort]):
    """Four ways to p(depth)."""

    def run_one(self, problem: DepthWay, effort: DepthEffort, seed: int, cache: Cache) -> Any:
        """One way on one split, piece by piece: a deeper study keeps what is there, and one of
        more batches, too."""
        by_depth = range(1, effort.depths + 1)
        pieces = range(effort.num_runs) if problem.way == "jumps" else by_depth
        further = range(1, effort.num_batches.get(problem.way, 1))
        batches = [(), *((batch,) for batch in further)]  # the first has no number
        piece = PIECES[problem.way]

        def kept(*which: int) -> dict[str, Any]:
            return cache.kept(
                ", ".join([problem.name, *map(str, which)]),
                [problem, effort.of(problem.way, which[0]), seed, *which],
                lambda: piece(problem.problem, effort, seed, *which),
            )

        return [joined([kept(each, *batch) for batch in batches]) for each in pieces]

    def rows(self, problem: DepthWay, effort: DepthEffort, results: Mapping[int, Any]) -> list[Row]:
        """A row a way and split."""
        row, tell = {"name": problem.name, "way": problem.way}, TELL[problem.way]
        if problem.way == "crossings":
            tell = partial(tell, log_prior=effort.log_prior(problem.problem))
        return [with_seed({**row, **tell(found)}, seed, results) for seed, found in results.items()]

    def sentence(self, row: Row) -> str:
        """log p(d) / p(1) of all depths."""
        return f"{row['name']}: {', '.join(cells(row))}, {row['seconds']:.0f} s"

    def summary(self, effort: DepthEffort, rows: list[Row]) -> dict[str, Any]:
        """All ways, and whether their chains agree, of those that have chains."""
        return {"ways": rows, "converged": all(row["converged"] is not False for row in rows)}

    def render(self, summary: dict[str, Any]) -> str:
        """The page as text."""
        rows = [[row["name"], *cells(row)] for row in summary["ways"]]
        heads = ["", *(str(d + 1) for d in range(max(map(len, rows)) - 1))]
        found = table(heads, [row + [""] * (len(heads) - len(row)) for row in rows])
        body = section("log p(depth) less log p(1), nats", found, is_converged=True)
        head = masthead(summary["description"], f"Credence · size {summary['size']}")
        return document(f"Depths: {summary['experiment']}", element("main", head, body))

    def table(self, summary: dict[str, Any]) -> Table:
        """One line a way."""
        found = Table("way", "log p(depth) - log p(1), nats", "R-hat", "seconds")
        for row in summary["ways"]:
            ratios = ", ".join(cells(row))
            rhat = "–" if row["rhat"] is None else f"{float(row['rhat']):.3f}"
            found.add_row(row["name"], ratios, rhat, f"{row['seconds']:.0f}")
        return found


def joined(batches: list[dict[str, Any]]) -> dict[str, Any]:
    """All runs of a depth as one result."""
    first, *_ = batches
    together = {
        name: [each for batch in batches for each in batch[name]]
        for name in first
        if isinstance(first[name], list)
    }
    rhats = [batch["rhat"] for batch in batches if batch["rhat"] is not None]
    seconds = sum(batch["seconds"] for batch in batches)
    return {**first, **together, "rhat": max(rhats, default=None), "seconds": seconds}


def by_jumps(
    problem: ArchitectureProblem, effort: DepthEffort, seed: int, run: int
) -> dict[str, Any]:
    """Shares of the depths in one run."""
    key = number([problem.name, "jumps", seed, run])
    ensemble = problem.method(effort.jumps).run(key, problem.posterior(problem.data(seed)))
    found = architecture_posterior(ensemble.scalars)
    assert found is not None
    assert found.depth is not None
    shares = dict(zip(found.depth.widths, found.depth.probabilities, strict=True))
    return {
        "shares": [shares.get(d, 0.0) for d in range(1, effort.depths + 1)],
        "rhat": found.max_rhat,
        "seconds": ensemble.cost.total_seconds,
    }


def by_particles(
    problem: ArchitectureProblem, effort: DepthEffort, seed: int, depth: int
) -> dict[str, Any]:
    """Log evidence of one depth, run by run."""
    posterior = sized(problem, seed, depth)
    method = SMC(
        num_particles=effort.num_particles,
        num_runs=effort.num_runs,
        chain_length=effort.chain_length,
        mutation=Mutation(num_steps=1),
    )
    ensemble = method.run(number([problem.name, "particles", seed, depth]), posterior)
    assert LogEvidence.of(ensemble) is not None
    nats = np.asarray(ensemble.scalars["log_evidence"], float)
    return {"nats": nats[:, 0].tolist(), "rhat": None, "seconds": ensemble.cost.total_seconds}


def by_ladder(
    problem: ArchitectureProblem, effort: DepthEffort, seed: int, *which: int
) -> dict[str, Any]:
    """Log evidence of one depth, run by run.

    Args:
        which: the depth, and the batch of ladders after the first one.
    """
    depth = which[0]
    key = number([problem.name, "ladder", seed, *which])
    ensemble = effort.ladders(depth).run(key, sized(problem, seed, depth))
    exchanges = Exchanges.of(ensemble)
    assert exchanges is not None
    return {
        "nats": np.asarray(ensemble.scalars["log_evidence"], float)[:, 0].tolist(),
        "rhat": float(rhat(np.asarray(ensemble.scalars["log_likelihood"]))),
        "exchange_rate": min(exchanges.rates),
        "num_restarts": list(exchanges.num_restarts),
        "seconds": ensemble.cost.total_seconds,
    }


def by_crossings(
    problem: ArchitectureProblem, effort: DepthEffort, seed: int, *which: int
) -> dict[str, Any]:
    """Rates of jumps from one depth that are accepted, run by run.

    Args:
        which: the depth, and the batch of ladders after the first one.
    """
    key, key_jumps = (number([problem.name, part, seed, *which]) for part in ("crossings", "tries"))
    ensemble = effort.ladders().run(key, sized(problem, seed, which[0]))
    method = effort.crossing(problem)
    widest = method.prepared(problem.posterior(problem.data(seed)))
    start = time.perf_counter()
    up, down = crossings.rates(
        jax.random.key(key_jumps),
        method.target(widest),
        method.kinds_between_depths(widest),
        ensemble.params,
        widest.data,
    )
    return {
        "up": up.tolist(),
        "down": down.tolist(),
        "rhat": float(rhat(np.asarray(ensemble.scalars["log_likelihood"]))),
        "seconds": ensemble.cost.total_seconds + time.perf_counter() - start,
    }


def sized(problem: ArchitectureProblem, seed: int, depth: int) -> Posterior:
    """The posterior of the networks of one depth."""
    return of_size(problem.posterior(problem.data(seed)), depth, is_deep=True)


def from_evidences(found: list[dict[str, Any]]) -> Row:
    """Differences of the mean log evidences from that of one layer."""
    nats = np.array([each["nats"] for each in found])
    return against_first(nats.mean(axis=1), nats.std(axis=1, ddof=1) / nats.shape[1] ** 0.5, found)


def from_particles(found: list[dict[str, Any]]) -> Row:
    """Differences of the logarithms of mean evidences, which are unbiased."""
    evidences = [LogEvidence.of_runs(np.array(each["nats"])) for each in found]
    nats, errors = ([getattr(each, name) for each in evidences]
                    for name in ("nats", "standard_error"))  # fmt: skip
    return against_first(np.array(nats), np.array(errors), found)


def against_first(nats: np.ndarray, errors: np.ndarray, found: list[dict[str, Any]]) -> Row:
    """Log evidences less that of one layer; the errors of two add in squares."""
    error = np.append(0.0, np.hypot(errors[1:], errors[0]))
    return {**told(nats - nats[0], error, found), "log_evidence": nats.tolist()}


def from_crossings(found: list[dict[str, Any]], log_prior: np.ndarray) -> Row:
    """Sums of the steps from one depth to the next; None from one on that no run made.

    Args:
        log_prior: of every depth, under which jumps were tried.
    """
    up, down = (np.array([each[way] for each in found]) for way in ("up", "down"))
    log_ratio, error = crossings.log_ratios(up[:-1], down[1:])
    return told(log_ratio - log_prior, error, found)


def from_jumps(found: list[dict[str, Any]]) -> Row:
    """Logarithms of mean shares, with errors by first order.

    None where a depth, or the first one that all are compared with, was never seen.
    """
    shares = np.array([each["shares"] for each in found])
    mean = np.where((shares > 0).any(axis=0), shares.mean(axis=0), np.nan)
    relative = shares / mean - shares[:, :1] / mean[0]
    error = relative.std(axis=0, ddof=1) / len(shares) ** 0.5
    return told(np.log(mean / mean[0]), error, found)


def told(log_ratio: np.ndarray, error: np.ndarray, found: list[dict[str, Any]]) -> Row:
    """The ratios with their errors, the worst R-hat, whether all chains agree, and all seconds.

    Of particles, which are no chains, None says whether they do.
    """
    known = [each["rhat"] for each in found if each["rhat"] is not None]
    seconds = sum(each["seconds"] for each in found)
    row = {
        "log_ratio": log_ratio.tolist(),
        "error": error.tolist(),
        "rhat": jsonable(max(known, default=None), spell_infinite=True),
        "converged": all(each < RHAT_LIMIT for each in known) if known else None,
        "seconds": seconds,
        "num_pieces": len(found),
    }
    return jsonable(row)


PIECES = {"jumps": by_jumps, "particles": by_particles, "ladder": by_ladder,
          "crossings": by_crossings}  # fmt: skip
TELL = {"jumps": from_jumps, "particles": from_particles, "ladder": from_evidences,
        "crossings": from_crossings}  # fmt: skip


def cells(row: Row) -> list[str]:
    """Every depth's logarithm with its error; a dash where it is not known."""
    pairs = zip(row["log_ratio"], row["error"], strict=True)
    return ["–" if value is None else f"{value:.2f} ± {error:.2f}" for value, error in pairs]
