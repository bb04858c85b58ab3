"""Numbers in the sentences of docs/explanation/parallel_tempering.md."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from kept import rows_by
from many_modes import off
from phrases import Phrase, given, made


def phrases() -> Iterator[Phrase]:
    """The phrases of the page: what samplers found of many modes."""
    yield from of_simulated_rows(rows_by("many_modes", "method", data="simulated"))
    rows = rows_by("many_modes", "method", data="boston")
    smc, tempered, *others = (rows[name] for name in ("smc", "parallel_tempering", "mclmc", "nuts"))
    yield made(
        "SMC has R-hat {:.3f} between its runs, and parallel tempering {:.3f} between",
        *(row["rhat"] for row in (smc, tempered)),
    )
    yield made("means differ by at most {:.2f} standard deviations", off(tempered, smc))
    apart = abs(tempered["log_evidence"] - smc["log_evidence"])
    error = np.hypot(tempered["log_evidence_error"], smc["log_evidence_error"])
    yield made("They differ in log evidence by {:.2f} nats", apart)
    yield made("{:.1f} times the error of the difference", apart / error)
    yield made("Their R-hat is {:.2f} and {:.2f}", *(row["rhat"] for row in others))
    yield made("off by up to {:.1f} standard deviations", max(off(row, smc) for row in others))
    assert 8 < smc["seconds"] / max(row["seconds"] for row in others) < 12, "a tenth"
    assert max(off(tempered, smc), off(smc, tempered)) < 0.2, "they agree"
    long = rows["long_mclmc"]
    yield made("to R-hat {:.3f} with {:.0f} effective draws", long["rhat"], long["ess"])
    yield made("its means to within {:.2f} standard deviations", off(long, smc))
    assert 0.4 < long["seconds"] / tempered["seconds"] < 0.6, "half the time"
    yield from given("by our rule (R-hat below 1.05, 100 effective draws)")
    assert long["ess"] < 100, "not yet converged"
    per_second = [row["ess"] / row["seconds"] for row in (tempered, long)]
    assert 1.7 < per_second[0] / per_second[1] < 2.5, "twice as many"
    yield made("{} draws of the prior came down", tempered["num_restarts"])
    yield made("has {:.0f} effective draws of {:,}", tempered["ess"], 4 * tempered["num_draws"])


def of_simulated_rows(rows: dict[str, dict[str, Any]]) -> Iterator[Phrase]:
    """Tell where long chains are enough."""
    chain, nuts, smc = rows["mclmc"], rows["nuts"], rows["smc"]
    long = rows["long_nuts"]
    yield made("NUTS comes to R-hat {:.2f} in {:,.0f} s", nuts["rhat"], nuts["seconds"])
    assert long["num_draws"] == 4 * nuts["num_draws"], "four times as many"
    yield made("to {:.3f}, with {:.0f} effective", long["rhat"], long["ess"])
    apart, error = off(long, chain), np.hypot(long["ess"] ** -0.5, chain["ess"] ** -0.5)
    yield made("are at most {:.2f} standard deviations apart", apart)
    yield made("which is {:.1f} times the", apart / error)
    yield made("at the worst of {} rows", len(long["mean"]))
    yield made("It has R-hat {:.3f}, with {:.0f} effective draws", chain["rhat"], chain["ess"])
    yield made("(off by at most {:.2f} standard deviations)", off(chain, smc))
    yield made("differ from each other (R-hat {:.3f})", smc["rhat"])
