"""Numbers in the sentences of docs/explanation/multilevel.md."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from kept import kept, kept_rows
from phrases import Phrase, given, made

from credence.html.wording import number
from credence_papers.multilevel.error_cost.page import scientific


def phrases() -> Iterator[Phrase]:
    """The phrases of the page, in its order."""
    yield from of_published_design()
    yield from of_steps()
    yield from of_level_weights()
    yield from of_new_output_weights()
    yield from given(
        "by less than about 0.4 nats",
        "points with noise 0.1 as in the public code",
        "by less than 0.06 nats",
        "is below 1.01",
        "in the spiral and at noise 0.5",
        "where k_l < 0.4 or so",
        "on no step is above 0.4 nats",
        "At 1.4 only the digits can",
        "alpha = 1.1 blue, 1.4 orange",
        "Increments below 2e-6",
        "was stopped after 20 minutes",
    )


def of_published_design() -> Iterator[Phrase]:
    """Tell what the runs with the published design say."""
    problem = published("regression alpha 3")
    fits, pilot = problem["fits"], problem["pilots"][0]
    work, seconds = (fits[measure]["ratio_widest"] for measure in ("flops", "seconds"))
    at_best = limits(fits["flops"]["ratio"])
    cost = f"{number(fits['flops']['ratio']['value'], 2)}"
    yield made("costs {:.0f} times as much as two levels by counted work", work["value"])
    yield made("and {:.0f} times by the clock, in the regression", seconds["value"])
    yield made("we reached: {} times the cost ({} to {})", cost, *at_best)
    yield from of_digits()
    yield made("changes the log likelihood by {:.3f} nats", *pilot["nats"])
    yield made("above the paper's ten ({} to {})", *limits(work))
    yield made("and that by the clock holds it ({} to {})", *limits(seconds))
    yield made("and the interval ({} to {}) leaves", *at_best)
    yield made("their error {:.0f} times that of particles which move", short_moves(problem))


def of_digits() -> Iterator[Phrase]:
    """Tell the savings in the digits, and what several tries bring."""
    problem = published("digits alpha 2")
    fits, (share,) = problem["fits"], problem["shares"].values()
    work, seconds = (fits[measure]["ratio_widest"] for measure in ("flops", "seconds"))
    yield made("alpha 2 it is {:.0f} times, and {:.1f} times by the clock", *values(work, seconds))
    best = fits["flops"]["ratio"]
    cost = number(best["value"], 2)
    yield made("in the regression, and {} times ({} to {}) in the digits", cost, *limits(best))
    yield made("Here {:.0f} % of the particles of width 4 are left", 100 * share)
    yield made("the same ({} to {}, and {} to {})", *limits(work), *limits(seconds))
    products = [
        scientific(row["mse"] * row["flops"])
        for row in sorted(problem["points"], key=lambda row: "tries" not in row["family"])
        if row["method"] == "mlsmc" and row["particles"][0] == 100
    ]
    yield made("MSE x work is {} with 16 tries and {} without them", *products)
    yield from given(
        "400 images of 0 and 1 by their first 100", "at 100 particles of the narrow width"
    )


def values(*fitted: dict[str, Any]) -> list[float]:
    """The ratios themselves."""
    return [each["value"] for each in fitted]


def published(name: str) -> dict[str, Any]:
    """The results of a problem of the published design."""
    rows = {row["name"]: row for row in kept("multilevel_published")["problems"]}
    return rows[f"published {name}"]


def limits(fitted: dict[str, Any]) -> tuple[str, str]:
    """The interval of a ratio, as in the table."""
    return number(fitted["low"], 2), number(fitted["high"], 2)


def short_moves(problem: dict[str, Any]) -> float:
    """The factor by which short moves raise the error of 40 particles of the finest network."""
    of_40 = [row for row in problem["points"] if row["particles"] == [40]]
    error = {row["family"]: row["mse"] for row in of_40 if row["widths"] == [128]}
    short, enough = sorted(error.values(), reverse=True)
    return short / enough


def of_steps() -> Iterator[Phrase]:
    """Tell what the steps between widths cost."""
    nats = {row["name"]: np.array(row["nats"]) for row in kept("multilevel_steps")["problems"]}
    times = nats["regression alpha 2"] / nats["regression, two layers, prior (4.2) alpha 2"]
    yield made(
        "make the steps {:.0f} to {:.0f} times smaller than one layer", min(times), max(times)
    )
    yield from given(
        "of the choices is 0.1; at the published 0.01 of the regression all its steps are 100 times"
    )


def of_level_weights() -> Iterator[Phrase]:
    """Tell how far the posterior is from what the prior says of a step."""
    rows = {(row["problem"], row["coarse"]): row for row in kept_rows("level_weights")}
    regression, spiral = rows["regression alpha 2", 32], rows["spiral alpha 2", 8]
    about = -regression["mean"], regression["prior_nats"], regression["std"]
    yield made(
        "by {:.2f} nats in place of {:.2f}, and log G has a standard deviation of {:.1f}", *about
    )
    assert 0.25 < regression["share"] < 0.4, "a third"
    yield made("by {:.2f} nats in place of {:.1f}. There", -spiral["mean"], spiral["prior_nats"])
    for row in rows.values():
        is_class = row["problem"].startswith(("digits", "spiral"))
        assert is_class == (-row["mean"] < row["prior_nats"]), "nearer, or farther"


def of_new_output_weights() -> Iterator[Phrase]:
    """Tell what new output weights from their law given the data bring."""
    rows = kept_rows("new_output_weights")
    biased = [
        row["log_evidence"]
        for row in rows
        if row["proposal"] == "conditional"
        and row["num_particles"] == [400, 200]
        and row["step"] in ("2/1/8/16", "2/1/8/64")
    ]
    right = [row["log_evidence"] for row in rows if row["step"] == "2/1/32/128"]
    yield made(
        "too low with `conditional` ({:.2f} and {:.2f}, where {:.1f} is right)",
        *biased,
        np.mean(right),
    )
    yield from given("The regression has 100 points, noise 0.1")
