"""Numbers in the sentences of benchmarks/README.md."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
from assurance import is_faulty
from kept import kept_rows
from phrases import Phrase, given, made


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page, in its order."""
    yield from of_particles()
    yield from given("in 300 seconds each, agree with 900 seconds of NUTS")
    yield from of_stochastic_gradients()
    yield from of_assurance()
    yield from of_large_tables()


def of_particles() -> Iterator[Phrase]:
    """Say how long a step of a particle takes beside BlackJAX."""
    yield from given("noise .1, 10 steps of the kernel")
    ours = step_seconds("Credence", 1)
    plain, chunks = step_seconds("BlackJAX", 1), step_seconds("BlackJAX, `batch_size=16`", 1)
    yield made("one core, {:.2f} of the time of BlackJAX in chunks", ours / chunks)
    yield made("and {:.2f} of it as one would first write it", ours / plain)
    yield made("A second core is {:.1f} times as fast", ours / step_seconds("Credence", 2))


def step_seconds(sampler: str, num_cores: int) -> float:
    """Compute the median seconds of a particle-step of a sampler, all its run counted."""
    rows = [row for row in kept_rows("particles") if row["num_cores"] == num_cores]
    runs = [run for row in rows for run in row.get("runs", ()) if run["sampler"] == sampler]
    return float(np.median([run["seconds"] / run["particle_steps"] for run in runs]))


def of_stochastic_gradients() -> Iterator[Phrase]:
    """Say what small batches bring."""
    rows = [row for row in kept_rows("minibatches") if "batch_size" in row]
    largest = max(row["batch_size"] for row in rows)
    ratios = [row["sd_ratio"] for row in rows if row["batch_size"] == largest]
    ess = {row["batch_size"]: row["ess"] for row in rows if row["method"] == "sghmc"}
    yield made("right to within {:.1f} Monte Carlo", max(row["off"] / row["error"] for row in rows))
    agreed = {row["batch_size"] for row in rows if row["rhat"] < 1.05}
    assert agreed == {512, largest}, "Only SGHMC on 512 and on all rows"
    yield from given("has R-hat below 1.05, so that the others")
    yield made("steps of all rows widen the law by {:.0f} %", 100 * (np.mean(ratios) - 1))
    yield made("has {:.0f} times the effective draws", ess[largest] / ess[128])


def of_assurance() -> Iterator[Phrase]:
    """Say how often the verdict misled."""
    rows = kept_rows("assurance")
    faulty = [row for row in rows if is_faulty(row)]
    trusted = sum(row["verdict"] == "trust" for row in rows)
    noises = Counter(row["noise"] for row in faulty)
    refused = [row for row in rows if row["verdict_of_test_rows"] == "do_not_trust"]
    held = min(row["true_coverage_95"] for row in faulty)
    yield made('None of {} verdicts "trust" is false', trusted)
    yield made("fewer than {:.0f} in 100 are (one-sided", 100 * (1 - 0.05 ** (1 / trusted)))
    assert {row["verdict"] for row in faulty} == {"do_not_trust"}, "refuses them all"
    assert set(noises) == {"little", "outliers"}
    yield made(
        "{} models are faulty, and the verdict refuses them all. Their targets have hardly any "
        "noise ({}) or outliers ({})",
        len(faulty),
        noises["little"],
        noises["outliers"],
    )
    yield made("all their 95 % intervals hold {:.0f} % of fresh rows or more", 100 * held)
    yield made(
        "{} sound models were refused by their 100 test rows",
        sum(not is_faulty(row) for row in refused),
    )


def of_large_tables() -> Iterator[Phrase]:
    """Say what chains cost on a large table."""
    seconds = {row["model"]: row["seconds"] for row in kept_rows("large_table")}
    yield from given("noise alone has RMSE .3 and NLL .215")
    yield made("for {:.1f} times the time", seconds["auto"] / seconds["deep_ensemble-20"])
