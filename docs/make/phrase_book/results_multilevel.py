"""Numbers in the sentences of docs/results/multilevel.md."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from kept import kept, kept_rows
from multilevel import evidence_settings, narrower, problems, work_at_equal_spread
from phrases import Phrase, ends, given, made, unkept

from credence.html.wording import number
from credence_papers.multilevel.error_cost.page import scientific
from credence_papers.multilevel.error_cost.results import preparation
from credence_papers.multilevel.prior_rates_page import panels
from credence_papers.multilevel.studies import PUBLISHED, SHORT

DESIGN = ("regression alpha 3", "digits alpha 3", "digits alpha 2", "regression alpha 2")
"""Problems of the published design that sentences tell of: regression, easy, rough, wide."""
SPIRAL = "spiral alpha 3"


def phrases() -> Iterator[Phrase]:
    """The phrases of the page, in its order."""
    yield from of_published_design()
    yield from of_prior_rates()
    yield from of_evidence()
    yield from of_steps()
    yield from of_level_weights()
    yield from of_new_output_weights()
    yield from given(
        "by less than about 0.4 nats",
        "points with noise 0.1 as in the public code",
        "by less than 0.06 nats",
        "where k_l < 0.4 or so",
        "on no step is above 0.4 nats",
        "At 1.4 only the digits can",
        "alpha = 1.1 blue, 1.4 orange",
        "Increments below 2e-6",
    )
    yield from unkept(
        "(measured: a quarter of that in the spiral and at noise 0.5)",
        "was stopped after 20 minutes, where `prior` takes 8",
    )


def of_published_design() -> Iterator[Phrase]:
    """Tell what the runs with the published design say."""
    regression, easy, rough, wide = map(published, DESIGN)
    yield from of_savings(regression, easy, rough, wide)
    yield from of_ladders(regression, easy, rough)
    yield from of_width_256(wide)
    yield from of_savings_at_alpha(regression, easy, rough)
    yield from of_slopes(regression, easy, rough, wide)
    yield from of_cheapest(easy)
    yield from of_moves(regression, easy, rough)
    yield from of_rare_runs(easy)
    yield from of_spiral(published(SPIRAL))
    nominal = regression["fits"]["nominal"]["ratio_widest"]["value"]
    yield made("says less: {:.1f} times in the regression", nominal)


def of_savings(
    regression: dict[str, Any], easy: dict[str, Any], rough: dict[str, Any], wide: dict[str, Any]
) -> Iterator[Phrase]:
    """Tell what one level costs, at the finest width and at its best, in the first bullets."""
    yield made("costs {:.0f} times as much as two levels by counted work", at_widest(easy)[0])
    yield made("and {:.0f} times by the clock, in the digits at alpha 3", at_widest(easy)[1])
    yield made(
        "regression at alpha 3 it is {:.0f} times, and {:.0f} times by the clock",
        *at_widest(regression),
    )
    yield made("alpha 2 it is {:.1f} times, and {:.1f} times by the clock", *at_widest(rough))
    yield made("finest width is 256, it is {:.1f} times by work", at_widest(wide)[0])
    charged = (with_pilots(problem) for problem in (easy, regression, rough, wide))
    yield made(
        "one level would cost {:.0f} times (digits, alpha 3), {:.0f} times (regression, alpha 3), "
        "{:.1f} times (digits, alpha 2) and {:.1f} times (regression, alpha 2) as much",
        *charged,
    )
    least = min(row["mse"] for row in wide["points"] if row["method"] == "mlsmc")
    as_good = [row for row in wide["points"] if row["mse"] <= least]
    assert min(as_good, key=lambda row: row["flops"])["widths"] == [8], "width 8 alone"
    yield made("has {} times the cost ({} to {}) of several levels", *best_of(wide))
    yield made("one level of width 8 costs {} times ({} to {}) as much", *best_of(regression))
    yield made("have 1 inside: {} times ({} to {}) at alpha 3", *best_of(easy))
    yield made("and {} times ({} to {}) at alpha 2", *best_of(rough))


def of_spiral(spiral: dict[str, Any]) -> Iterator[Phrase]:
    """Tell what one level costs in the spiral, and why most of its moves are short."""
    yield made(
        "spiral at alpha 3 it is {:.0f} times, and {:.0f} times by the clock", *at_widest(spiral)
    )
    yield made("as much, by counted work, and {:.0f} times in the spiral", with_pilots(spiral))
    alone = cheapest(spiral, "smc")
    assert alone["widths"] == [4], "one of width 4"
    yield made("one of width 4 has {} times the cost ({} to {})", *best_of(spiral))
    (share,) = spiral["shares"].values()
    yield made("At alpha 3 {:.0f} % of the particles of width 4 are left when", 100 * share)
    reference = spiral["reference"]
    assert (reference["num_chains"], reference["num_draws"], reference["width"]) == (32, 500, 8)
    dearer = ends(
        long["mse"] * long["flops"] / (short["mse"] * short["flops"])
        for short, long in short_and_long(spiral)
        if short["method"] == "smc" and len(short["squares"]) == 32
    )
    yield made("usual moves cost {:.0f} to {:.0f} times as much for an error", *dearer)
    yield made(
        "and in the spiral ({} to {}). In the digits",
        *limits(spiral["fits"]["flops"]["ratio_widest"]),
    )


def of_ladders(
    regression: dict[str, Any], easy: dict[str, Any], rough: dict[str, Any]
) -> Iterator[Phrase]:
    """Tell how many particles are left of the narrow widths that were tried."""
    yield made("changes the log likelihood by {:.3f} nats", *regression["pilots"][0]["nats"])
    assert regression["reference"]["max_rhat"] < 1.01
    yield from given("R-hat of its runs is below 1.01")
    narrow, wide = (100 * regression["shares"][width] for width in ("4", "8"))
    yield made(
        "they are worth {:.0f} % of their number (their effective sample size); those of width 4 "
        "are worth {:.0f} %",
        wide,
        narrow,
    )
    (share,) = rough["shares"].values()
    yield made("Here {:.0f} % of the particles of width 4 are left", 100 * share)
    (share,) = easy["shares"].values()
    yield made("and {:.0f} % of them at alpha 3", 100 * share)
    yield from given("400 images of 0 and 1 by their first 100")


def of_savings_at_alpha(
    regression: dict[str, Any], easy: dict[str, Any], rough: dict[str, Any]
) -> Iterator[Phrase]:
    """Tell where the published saving of about ten is."""
    yield made(
        "in the digits ({} to {}), in the regression",
        *limits(easy["fits"]["flops"]["ratio_widest"]),
    )
    yield made(
        "in the regression ({} to {}) and in the spiral",
        *limits(regression["fits"]["flops"]["ratio_widest"]),
    )
    work, clock = (rough["fits"][each]["ratio_widest"] for each in ("flops", "seconds"))
    assert work["high"] > 10 > clock["high"], "does not exclude ten, does"
    yield made("at alpha 2 it is {} times by work ({} to {}, which", *with_interval(work))
    yield made("and {} times by the clock ({} to {}", *with_interval(clock))


def of_width_256(wide: dict[str, Any]) -> Iterator[Phrase]:
    """Tell why the regression at alpha 2 has a wide base, and what that leaves to save."""
    narrow, chosen = (100 * wide["shares"][width] for width in ("32", "64"))
    yield made(
        "width 64 are worth {:.0f} % of their number, those of width 32 only {:.0f} %",
        chosen,
        narrow,
    )
    (nats,) = wide["pilots"][0]["nats"]
    yield made("differs from the finest by {:.3f} nats", nats)
    assert wide["reference"]["width"] == 64, "the reference is at the narrow width"
    work = wide["fits"]["flops"]["ratio_widest"]
    assert work["high"] < 10, "below ten"
    yield made("below ten**, {} times ({} to {}) by work", *with_interval(work))
    costs = [point(wide, f"smc {width}", 40)["flops"] for width in (256, 64)]
    yield made("only {:.0f} times as much as one of width 64", costs[0] / costs[1])
    alone = [point(wide, f"smc {width}", 640) for width in (8, 32)]
    errors = [1e6 * row[each] for row in alone for each in ("mse", "mse_error")]
    yield made(
        "MSE of {:.1f}e-6 ± {:.1f}e-6, and one of width 32 has {:.1f}e-6 ± {:.1f}e-6", *errors
    )


def of_slopes(
    regression: dict[str, Any], easy: dict[str, Any], rough: dict[str, Any], wide: dict[str, Any]
) -> Iterator[Phrase]:
    """Tell how the cost of several levels grows, and why faster than in theory at alpha 2."""
    steps = [point(rough, "mlsmc 4-128, short moves", count)["mse"] for count in (100, 400, 1600)]
    yield made("have an error {:.1f} to {:.1f} times smaller", *sorted(falls(steps)))
    tries = "mlsmc 4-128, short moves, 16 tries"
    steps = [point(rough, tries, count)["mse"] for count in (100, 400, 1600)]
    yield made("in place of four ({:.1f} to {:.1f} times with 16 tries)", *sorted(falls(steps)))
    for problem, cost, words in (
        (easy, "flops", "slope of several levels is {} ({} to {}) in the digits"),
        (regression, "flops", "and {} ({} to {}) in the regression, by work"),
        (regression, "seconds", "by the clock it is {} ({} to {}) there. At alpha 2"),
        (wide, "flops", "At alpha 2 it is {} ({} to {}) in the regression"),
        (rough, "flops", "and {} ({} to {}) in the digits"),
    ):
        yield made(words, *slope_of(problem, cost))


def of_cheapest(easy: dict[str, Any]) -> Iterator[Phrase]:
    """Tell what an error costs by the cheapest settings of several levels and of one."""
    several, alone = cheapest(easy, "mlsmc"), cheapest(easy, "smc")
    yield made(
        "have an MSE x work of {} (two levels, {} and {} particles) and {} ({} particles of width "
        "{} alone)",
        scientific(several["mse"] * several["flops"]),
        *several["particles"],
        scientific(alone["mse"] * alone["flops"]),
        *alone["particles"],
        *alone["widths"],
    )
    least = min(row["mse"] * row["flops"] for row in easy["points"])
    yield made("cheaper ones, down to {}", scientific(least))


def of_moves(
    regression: dict[str, Any], easy: dict[str, Any], rough: dict[str, Any]
) -> Iterator[Phrase]:
    """Tell what short moves save, and what they cost in error."""
    pairs = [pair for each in (regression, easy, rough) for pair in short_and_long(each)]
    shares = [short["flops"] / long["flops"] for short, long in pairs]
    yield made("about a tenth ({:.2f} to {:.2f})", min(shares), max(shares))
    for count, words in (
        (160, "short moves have {:.1f} to {:.1f} times the error of long ones"),
        (40, "With 40 it is {:.1f} to {:.1f} times as large"),
    ):
        pairs = [pair for pair in short_and_long(easy) if pair[0]["particles"] == [count]]
        yield made(words, *ends(short["mse"] / long["mse"] for short, long in pairs))
    yield made("width 128 have {:.1f} times the error of long moves", short_moves(regression))


def of_rare_runs(easy: dict[str, Any]) -> Iterator[Phrase]:
    """Tell of the few runs that are far off."""
    odd = point(easy, "smc 8, short moves", 2560)
    yield made("mean squared error is {:.2f}e-6", 1e6 * odd["mse"])
    assert odd["mse"] > 3 * point(easy, "smc 4, short moves", 2560)["mse"], "three times"
    yield from given("Of one level at width 128 and 640")


def of_prior_rates() -> Iterator[Phrase]:
    """Tell how near slopes under the prior are to the paper's, where the page says so."""
    slopes = [
        (row["slope"], row["theory"])
        for title, rows in panels(kept("prior_rates")).items()
        for row in rows
        if row["name"] in ("alpha = 2", "alpha = 3")
        or ("relu" in title and row["name"].startswith("alpha"))
    ]
    assert len(slopes) == 12, "two alphas for each of four networks, two more for each of two"
    farthest, theory = min(slopes, key=lambda pair: pair[0] / pair[1])
    assert theory == -3
    assert farthest / theory > 0.9, "within a tenth"
    yield made("the farthest is {:.2f} for -3.0", farthest)


def of_evidence() -> Iterator[Phrase]:
    """Tell what the evidence costs by one level and by several."""
    for name, words in (
        ("regression alpha 3", "takes {} times ({} to {}) the work of two levels in the"),
        ("regression alpha 2", "{} times ({} to {}) in the regression at alpha 2, "),
        ("digits alpha 3", "{} times ({} to {}) in the digits at alpha 3, and"),
        ("digits alpha 2", "{} times ({} to {}) in the digits at alpha 2."),
    ):
        _, widest, several = evidence_settings(published(name))
        ratio = work_at_equal_spread(widest, several)
        yield made(words, *with_interval(ratio))
    narrowest, _, several = evidence_settings(published("digits alpha 2"))
    ratio = work_at_equal_spread(narrowest, several)
    yield made(
        "It takes {} times ({} to {}) the work of two levels at alpha 2, and",
        *with_interval(ratio),
    )
    both = [published(f"regression alpha {alpha}") for alpha in (3, 2)]
    (gap, error), (other, its) = map(evidence_gap, both)
    yield made("by {:.2f} nats ({:.1f} errors) at alpha 3", gap, gap / error)
    yield made("by {:.2f} nats ({:.1f} errors) at alpha 2", other, other / its)
    rises = [rise for problem in both for rise in evidence_rises(problem)]
    yield made("40 give {:.2f} to {:.2f} nats less than 160", min(rises), max(rises))
    of_160 = [evidence_of(point(both[0], f"smc {each}", 160)) for each in (4, 8, 16, 32, 64, 128)]
    higher = ends(each - of_160[-1] for each in of_160[:-1])
    yield made("narrower networks with as many particles are {:.2f} to {:.2f} nats higher", *higher)


def evidence_rises(problem: dict[str, Any]) -> Iterator[float]:
    """How much more log evidence 160 particles of one level find than 40, by long moves."""
    rows = by_setting(problem)
    for (family, count), row in rows.items():
        more = rows.get((family, 160))
        if count == 40 and more and row["method"] == "smc" and SHORT not in family:
            yield evidence_of(more) - evidence_of(row)


def evidence_of(row: dict[str, Any]) -> float:
    """The mean log evidence of the runs of a setting."""
    return float(np.mean(row["log_evidence"]))


def evidence_gap(problem: dict[str, Any]) -> tuple[float, float]:
    """How much more log evidence several levels find than the widest one, and its error."""
    _, *both = evidence_settings(problem)
    widest, several = (np.array(row["log_evidence"]) for row in both)
    errors = (values.std(ddof=1) / len(values) ** 0.5 for values in (widest, several))
    return float(several.mean() - widest.mean()), float(np.hypot(*errors))


def with_pilots(problem: dict[str, Any]) -> float:
    """The ratio of work against the finest width, a whole pilot charged to every replicate."""
    num_runs = PUBLISHED.efforts["laptop"].pilot_runs
    pilots = [{**pilot, "all_flops": num_runs * pilot["flops"]} for pilot in problem["pilots"]]
    found = preparation(problem["points"], pilots, 0.0, problem["reference"]["noise"])
    return found["ratio_widest"]["value"]


def at_widest(problem: dict[str, Any]) -> list[float]:
    """How many times as much one level costs at the finest width: by work, and by the clock."""
    return [problem["fits"][each]["ratio_widest"]["value"] for each in ("flops", "seconds")]


def best_of(problem: dict[str, Any]) -> tuple[str, str, str]:
    """The cost of one level at its best narrower width over that of several, with its interval."""
    return with_interval(narrower(problem, "flops"))


def cheapest(problem: dict[str, Any], method: str) -> dict[str, Any]:
    """The setting with most particles by which an error costs the least work."""
    rows = [row for row in problem["points"] if row["method"] == method]
    most = max(row["particles"][0] for row in rows)
    many = [row for row in rows if row["particles"][0] == most]
    return min(many, key=lambda row: row["mse"] * row["flops"])


def point(problem: dict[str, Any], family: str, particles: int) -> dict[str, Any]:
    """The row of a setting."""
    return by_setting(problem)[family, particles]


def by_setting(problem: dict[str, Any]) -> dict[tuple[str, int], dict[str, Any]]:
    """All rows, by method with its widths and moves, and particles of the narrowest network."""
    return {(row["family"], row["particles"][0]): row for row in problem["points"]}


def short_and_long(problem: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The settings with short moves, each beside the one with long moves and as many particles."""
    rows = by_setting(problem)
    return [
        (row, rows[long])
        for (family, count), row in rows.items()
        if SHORT in family and (long := (family.replace(f", {SHORT}", ""), count)) in rows
    ]


def falls(values: list[float]) -> list[float]:
    """The factors by which every value falls to the next."""
    return [first / second for first, second in pairwise(values)]


def published(name: str) -> dict[str, Any]:
    """The results of a problem of the published design."""
    rows = {row["name"]: row for row in problems()}
    return rows[f"published {name}"]


def limits(fitted: dict[str, Any]) -> tuple[str, str]:
    """The interval of a ratio, as in the table."""
    return number(fitted["low"], 2), number(fitted["high"], 2)


def with_interval(fitted: dict[str, Any]) -> tuple[str, str, str]:
    """A ratio with its interval, as in the table."""
    return number(fitted["value"], 2), *limits(fitted)


def slope_of(problem: dict[str, Any], cost: str) -> Iterator[str]:
    """The slope of several levels with its interval, by a measure of cost."""
    return (
        text.replace("−", "-") for text in with_interval(problem["fits"][cost]["slopes"]["mlsmc"])
    )


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
        "The noise is 0.1 in the regression and in the *choices*",
        "at the published 0.01 of the regression all its steps are 100 times",
    )


def of_level_weights() -> Iterator[Phrase]:
    """Tell how far the posterior is from what the prior says of a step."""
    rows = {(row["problem"], row["coarse"]): row for row in kept_rows("level_weights")}
    share = rows["digits alpha 2", 4]["share_of_means"]
    yield made("({:.0f} % in [another run](#when-it-pays)", 100 * share)
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
