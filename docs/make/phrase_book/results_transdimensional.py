"""Numbers in the sentences of docs/results/transdimensional.md."""

from collections.abc import Iterator
from typing import Any

import network_sizes
import numpy as np
from architectures import architecture
from kept import kept, kept_rows
from phrases import Phrase, ends, given, made, share, unkept

from credence.compare.seeds import mean_and_error
from credence_papers.transdimensional.boston_models import MODELS

DIGITS = "transdimensional_digit_models"


def phrases() -> Iterator[Phrase]:
    """The phrases of the page, in its order."""
    yield from given("started at different sizes; below 1.05 they agree")
    yield from of_sizes()
    yield from of_models()
    yield from of_digits()
    yield from of_depths()
    yield from of_widths()
    yield from of_learnt_noise()
    yield from of_published_experiments()
    boston = architecture("transdimensional_boston", "boston_2a")
    single = np.mean(boston["single"])
    numbers = single, boston["scores"]["rmse"]
    yield made("2a have an RMSE of {:.2f} in the mean, and the average of all has {:.2f}", *numbers)


def of_models() -> Iterator[Phrase]:
    """Tell what models of Boston housing say side by side."""
    rows = {row["name"]: row for row in kept("transdimensional_models")["models"]}
    yield made("these {} of its {} models", len(rows), len(MODELS.problems))
    yield from of_ladders(rows)
    sampled = {name: row for name, row in rows.items() if row["size"] and "ladder" not in name}
    fixed = [row["means"]["rmse"] for name, row in sampled.items() if is_fixed(name)]
    learnt = {name: row for name, row in sampled.items() if not is_fixed(name)}
    yield made("is {:.2f} thousand dollars or more", min(fixed))
    best = max(row["means"]["rmse"] for row in learnt.values())
    yield made("it is {:.2f} or less in both families", best)
    gains = [
        rows[f"{name.partition('-')[0]}-a"]["means"]["nll"] - row["means"]["nll"]
        for name, row in learnt.items()
    ]
    yield made("costs {:.1f} to {:.1f} nats less", *ends(gains))
    rhats = ends(row["size"]["rhat_worst"] for row in learnt.values())
    yield made("R-hat of the size is {:.1f} to {:.1f}, so that", *rhats)
    share = 100 * rows["deep-a-published-chain"]["size"]["across"]
    yield made("accepts {:.1f} % of its jumps", share)
    yield from given(
        "The published errors (3.55 for this family",
        "where the thesis reports 1.1 %",
    )


def of_ladders(rows: dict[str, Any]) -> Iterator[Phrase]:
    """Tell what a ladder of temperatures makes of chains that do not agree, on ten splits."""
    plain, ladder = rows["wide-b"], rows["wide-b-ladder"]
    before = plain["rhat_predictions_worst"], plain["size"]["rhat_worst"]
    rhats = ladder["rhat_predictions"]
    yield made("predictions falls from {:.2f} to {:.2f}", before[0], rhats[0])
    yield made("that of the size from {:.2f} to {:.2f}", before[1], ladder["size"]["rhat"][0])
    errors = plain["means"]["rmse"], ladder["rmse"][0]
    yield made("the error from {:.2f} to {:.2f}", *errors)
    low = sum(rhat < 1.05 for rhat in rhats)
    found = (ladder[f"rhat_predictions_{which}"] for which in ("median", "worst"))
    yield made("R-hat below 1.05 on {}, {:.2f} in the median and {:.2f} at worst", low, *found)
    yield made("{:.2f} in the median. More temperatures", ladder["size"]["rhat_median"])
    mean, error = ladder["means"]["rmse"], ladder["errors"]["rmse"]
    spread = mean, error, min(ladder["rmse"]), max(ladder["rmse"])
    yield made("an error of {:.2f} ± {:.2f}, from {:.2f} to {:.2f} by the split", *spread)
    held = (100 * ladder[which]["coverage_95"] for which in ("means", "errors"))
    yield made("and its intervals hold {:.1f} ± {:.1f} % of the rows", *held)
    yield from of_inputs(ladder, rows["wide-e-ladder"])
    yield from of_three_layers(rows)


def of_inputs(plain: dict[str, Any], by_input: dict[str, Any]) -> Iterator[Phrase]:
    """Tell what a precision for each input is worth, on the same splits."""
    gain = np.subtract(plain["rmse"], by_input["rmse"])
    error = gain.std(ddof=1) / len(gain) ** 0.5
    yield made("seems to be worth {:.2f} ± {:.2f} thousand dollars", gain.mean(), error)
    means, errors = by_input["means"], by_input["errors"]
    yield made("the error is {:.2f} ± {:.2f}, a test row", means["rmse"], errors["rmse"])
    yield made("costs {:.2f} nats in place of {:.2f}", means["nll"], plain["means"]["nll"])
    held = (100 * each["coverage_95"] for each in (means, errors))
    yield made("and intervals hold {:.1f} ± {:.1f} % of the rows. An input", *held)
    yield made("predictions {:.2f} in the median)", by_input["rhat_predictions_median"])
    others = kept_rows("boston_halves")
    names = {row["model"] for row in others}
    assert min(np.mean([r["rmse"] for r in others if r["model"] == name]) for name in names) > 3.42
    yield from given("has less than 3.42 in the mean")


def of_three_layers(rows: dict[str, Any]) -> Iterator[Phrase]:
    """Tell what three large layers bring, with each prior of the weights."""
    large = {name[6:]: row for name, row in rows.items() if name.startswith("large-")}
    assert all(row["num_splits"] == 10 for row in large.values())
    error = {name: (row["means"]["rmse"], row["errors"]["rmse"]) for name, row in large.items()}
    yield made("have an error of {:.2f} thousand dollars, where", error["e"][0])
    yield from given("the best published one, on other splits, is 3.42")
    yield made("with the noise fixed their error is {:.2f} ± {:.2f}", *error["a"])
    yield made("have an error of {:.2f} ± {:.2f} with a precision for each input", *error["e"])
    held = (100 * large["e"][which]["coverage_95"] for which in ("means", "errors"))
    yield made("intervals hold {:.1f} ± {:.1f} % of the rows. That is", *held)
    gain = np.subtract(rows["wide-e-ladder"]["rmse"], large["e"]["rmse"])
    less = gain.mean(), gain.std(ddof=1) / len(gain) ** 0.5
    yield made("That is {:.2f} ± {:.2f} thousand dollars less than by", *less)
    yield made("each layer (c) gives {:.2f} ± {:.2f}, and", *error["c-layer"])
    yield made("all weights (b) {:.2f} ± {:.2f}:", *error["b"])
    yield made("costs error, {:.2f} ± {:.2f}, and has", *error["d"])
    assert large["d"]["means"]["nll"] == min(row["means"]["nll"] for row in large.values())
    yield made("lowest NLL, {:.2f}.", large["d"]["means"]["nll"])
    yield made("predictions {:.2f} in the median of model e", large["e"]["rhat_predictions_median"])
    yield made("is {:.2f} above that of `large-e`", 3.42 - error["e"][0])
    yield from given("The best published error, 3.42, is")


def is_fixed(model: str) -> bool:
    """Whether a model of Boston housing has the noise fixed as published."""
    return model.split("-")[1] == "a"


def of_digits() -> Iterator[Phrase]:
    """Tell what models of the digits say side by side, and where they miss the published shares."""
    rows = {row["name"].removeprefix("digits-"): row for row in kept(DIGITS)["models"]}
    right = {name: (row["means"]["accuracy"], row["errors"]["accuracy"])
             for name, row in rows.items()}  # fmt: skip
    nll, ece = ({name: row["means"][which] for name, row in rows.items()}
                for which in ("nll", "ece"))  # fmt: skip
    assert min(right[name][0] for name in rows if name.startswith("10")) > 0.9065
    assert all(row["num_splits"] == 10 for row in rows.values())
    yield from given(
        "| a | softmax(z / 10), as published | N(0, 1), as published |",
        "| b | softmax(z / 2), as published | N(0, 1), as published |",
    )
    yield from given("are .9065 for (a) and .926 for (b)", "where .975 and .978 are published")
    yield made("Ours are {} ± {} and {} ± {}.", *map(share, right["10-a"] + right["10-b"]))
    yield made("{} ± {} for (a) and {} ± {} for (b)", *map(share, right["5-a"] + right["5-b"]))
    splits = [np.array(rows[name]["accuracy"]) for name in ("5-a", "5-b")]
    yield made("standard deviation of {} and {}", *(share(each.std(ddof=1)) for each in splits))
    yield made("on {} of {} splits (b) has", int((splits[1] > 0.9785).sum()), len(splits[1]))
    yield from given("has more than .978", "95 of the 1000 published test images")
    yield made("(b) would have {}", share(0.095 + 0.905 * right["5-b"][0]))
    assert abs(right["5-c-block"][0] - right["5-b"][0]) < right["5-b"][1]
    yield made("NLL is {} in place of {}, and ECE", share(nll["5-c-block"]), share(nll["5-b"]))
    yield made("ECE {} in place of {}", share(ece["5-c-block"]), share(ece["5-b"]))
    yield made("ten digits NLL is {} in place of {}", share(nll["10-c-layer"]), share(nll["10-b"]))
    for classes in ("5", "10"):
        assert min(nll, key=lambda name: nll[name] if name.startswith(classes) else 9) == (
            f"{classes}-b-trained"
        )
    yield made("NLL is {} and {}, lower", share(nll["5-b-trained"]), share(nll["10-b-trained"]))
    paired = {name: np.array(rows[f"{name}-b"]["accuracy"]) - rows[f"{name}-b-trained"]["accuracy"]
              for name in ("5", "10")}  # fmt: skip
    fewer = {name: mean_and_error(list(each)) for name, each in paired.items()}
    assert abs(fewer["5"][0]) < fewer["5"][1], "about as often"
    yield made("as (b), on ten {} ± {} less often", *map(share, fewer["10"]))
    learnt = [row for name, row in rows.items() if "-c" in name or name.endswith("-e")]
    yield made("width is {:.2f} to {:.2f} in", *ends(row["size"]["rhat_median"] for row in learnt))
    predicted = ends(row["rhat_predictions_median"] for row in learnt)
    yield made("predictions {:.2f} to {:.2f}. Chains", *predicted)
    fixed = [row for name, row in rows.items() if name.endswith(("-a", "-b"))]
    assert max(row["rhat_predictions_worst"] for row in fixed) < 1.05
    assert max(row["size"]["rhat_median"] for row in fixed) < 1.055


def of_depths() -> Iterator[Phrase]:
    """Tell how far the four ways to the depth are from one another."""
    ways = {row["way"]: row for row in kept("transdimensional_depth_ways")["ways"]}
    nats = {way: np.array(row["log_ratio"]) for way, row in ways.items()}
    off = {way: differences(ways["jumps"], row) for way, row in ways.items() if way != "jumps"}
    assert [d + 2 for d in np.flatnonzero(np.abs(off["crossings"]) > 2)] == [6], "at all but six"
    assert [d + 2 for d in np.flatnonzero(np.abs(off["ladder"]) > 2)] == [8], "at all but eight"
    above = (nats["crossings"] - nats["jumps"])[5]
    yield made("are {:.2f} nats above, {:.1f} standard errors of both", above, -off["crossings"][4])
    below = (nats["jumps"] - nats["ladder"])[7]
    yield made("is {:.2f} nats below, {:.1f} standard errors", below, off["ladder"][6])
    probability = np.exp(nats["jumps"]) / np.sum(np.exp(nats["jumps"]))
    yield made("have a probability of {:.1f} %", 100 * probability[7])
    deepest = (ways["crossings"][name][7] for name in ("log_ratio", "error"))
    yield made("side with the jumps: {:.2f} ± {:.2f}", *deepest)
    lower = nats["particles"] < nats["jumps"]
    assert [d + 1 for d in np.flatnonzero(~lower)] == [1, 3], "at all depths but three"
    yield made("by {:.1f} standard errors of both already at two", off["particles"][0])
    above = (nats["jumps"] - nats["particles"])[6:]
    yield made("and by {:.2f} nats at seven and by {:.2f} at eight", *above)
    yield from unkept("by up to 4.3 standard errors", "the ladder by 8.7 at")


def differences(one: dict[str, Any], other: dict[str, Any]) -> np.ndarray:
    """Differences of log p(depth) / p(1) of two ways, in standard errors of both, by depth."""
    values, errors = (
        [np.array(way[name][1:]) for way in (one, other)] for name in ("log_ratio", "error")
    )
    most = min(map(len, values))
    both = np.hypot(errors[0][:most], errors[1][:most])
    return (values[0][:most] - values[1][:most]) / both


def of_sizes() -> Iterator[Phrase]:
    """Tell what averaging over the size is worth on ten tables."""
    rows = kept_rows("network_sizes")
    by_table = {name: network_sizes.of_data(rows, name) for name in network_sizes.DATASETS}
    average = {name: mean_nll(mine[network_sizes.AVERAGE]) for name, mine in by_table.items()}

    def above(model: str) -> dict[str, float]:
        return {name: mean_nll(mine[model]) - average[name] for name, mine in by_table.items()}

    wide, without = above("32"), above(network_sizes.NO_SETTLING)
    yacht = -wide.pop("yacht")
    yield made("are within {:.3f} nats of each", max(map(abs, wide.values())))
    yield made("Two neurons cost up to {:.2f} nats more", max(above("2").values()))
    yield made("more than the average, and 8 up to {:.2f}.", max(above("8").values()))
    settled = {name: [network_sizes.rhat_of(row) for row in mine["average"]]
               for name, mine in by_table.items()}  # fmt: skip
    assert [name for name, rhats in settled.items() if max(rhats) < 1.05] == ["forest_fires"]
    yield from given("average is below 1.05 on forest fires alone")
    yield made("32 neurons are better by {:.2f} nats: the chains", yacht)
    worse = (without.pop(name) for name in ("yacht", "energy", "airfoil"))
    yield made("NLL is higher by {:.2f}, {:.2f} and {:.2f} nats on yacht", *worse)
    yield made("it differs by at most {:.3f}, either way.", max(map(abs, without.values())))


def mean_nll(rows: list[dict[str, Any]]) -> float:
    """The mean over splits, nats."""
    return float(np.mean([row["nll"] for row in rows]))


def of_widths() -> Iterator[Phrase]:
    """Tell what the thesis says of the width of XOR."""
    yield from given("The published mode, 7, is not")


def of_learnt_noise() -> Iterator[Phrase]:
    """Tell what share of the test rows intervals hold where the noise is learnt."""
    boston, wine = (
        architecture("transdimensional_uci", f"{name}_width") for name in ("boston", "wine")
    )
    yield made("Boston ({} rows to learn from)", boston["n_train"])
    yield made("red wine ({} rows)", wine["n_train"])
    held = (100 * row["scores"]["coverage_95"] for row in (boston, wine))
    told = "hold {:.1f} % of the 51 test rows of Boston, and {:.1f} % of the 160 of wine"
    yield made(told, *held)
    yield from given("a ladder of 36 temperatures, whose networks jump")


def of_published_experiments() -> Iterator[Phrase]:
    """Tell what the thesis's three experiments say."""
    yield from given(
        "of 12 temperatures, and 2500 draws after 300 of warm-up",
        "outputs scaled by .1 (a) or .5 (b)",
        "noise variance 1 (a) or .8 (b)",
        "the prior's (4.5 in 2a and 2b, 2.5 in 4a and 4b)",
        "95 of 1000 with five classes and 191 of 2000 with ten",
    )
