"""Numbers in the sentences of docs/results/fbnn.md."""

from collections.abc import Iterator
from typing import Any

from kept import kept, kept_rows, rows_by_label
from phrases import Phrase, given, made

SGHMC, BATCHES = "BNN-SGHMC", "BNN-SGHMC (128 rows a step)"
HMC, NUTS, MCLMC = (f"{name} on all rows" for name in ("HMC", "NUTS", "MCLMC"))


def phrases() -> Iterator[Phrase]:
    """The phrases of the page, in its order."""
    yield from given(
        "They find it 7 to 62 times as fast",
        "published speed-ups, 7 to 62, could",
        "and a limit of 50 seconds",
        "where the paper has 94 % after 15 to 19 minutes",
        "below 1.05 they agree",
        "do not agree (R-hat above 1.05)",
        "at most 100 seconds a run",
        "at a time on two cores, 50 seconds each",
        "from the draws of 50 seconds",
    )
    yield from at_a_glance()
    yield from of_gaussians()
    yield from of_chains_that_stand_still()
    yield from of_speed_ups()
    yield from of_friction()
    yield made("the best of them has {:.0f} %, where", 100 * best_on_mnist())
    yield from of_late_rows()


def of_late_rows() -> Iterator[Phrase]:
    """Tell which methods took longer than their limit."""
    seconds = {
        (each["name"], row["label"]): row["total_seconds"]
        for each in kept("fbnn_full")["problems"]
        for row in each["rows"]
        if row["status"] == "done"
    }

    def longest(word: str, problem: str = "") -> float:
        return max(
            value
            for (name, label), value in seconds.items()
            if name.startswith(problem) and label.startswith(word)
        )

    yield made("on MNIST {:.0f} s; MCLMC", longest("CES exact (modes-MCLMC)", "mnist"))
    yield made("MCLMC up to {:.0f} s, as", longest("MCLMC"))
    yield made("FBNN on MNIST up to {:.0f} s", longest("FBNN", "mnist"))
    yield made("RNS-HMC on CelebA {:.0f} s", longest("BNN-RNS-HMC", "celeba"))


def of_friction() -> Iterator[Phrase]:
    """Tell what less friction saves SGHMC, and where that leaves it beside exact chains."""
    rows = {
        (row["problem"], row["friction"] or row["method"]): row for row in kept_rows("friction")
    }

    def savings(column: str, friction: float) -> list[float]:
        return [rows[problem, friction][column] / rows[problem, 0.1][column]
                for problem in ("adult", "celeba")]  # fmt: skip

    median, worst = savings("per_median", 0.01), savings("per_worst", 0.01)
    assert all(0.3 < each < 0.5 for each in median), "two fifths"
    assert all(0.2 < each < 0.3 for each in worst), "a fifth to three tenths"
    few = [rows[problem, friction]["per_median"] for problem in ("adult", "celeba")
           for friction in (0.03, 0.02, 0.01, 0.003)]  # fmt: skip
    assert max(few) < 1.4 * min(few), "within two fifths of one another"
    exact = rows["adult", "MCLMC on all rows"]
    assert (
        rows["adult", 0.01]["per_median"]
        < exact["per_median"]
        < 2 * rows["adult", 0.01]["per_median"]
    )
    yield made("({:,.0f} against 970)", rows["adult", 0.01]["per_worst"])
    yield made("against {:.0f}). But", exact["per_worst"])
    yield from given(
        "The runs above have .1.",
        "fifth to three tenths with .01",
        "With .01 the median prediction needs two fifths of the gradients that it needs with .1",
        ".03 and .003 medians are within two fifths",
    )


def of_gaussians() -> Iterator[Phrase]:
    """How much too wide SGHMC draws with a large step."""
    rows = {row["sampler"]: row for row in kept_rows("gaussians")}
    spread = {name: row["spread"] for name, row in rows.items()}
    visits = rows["sghmc_narrow"]["visits"]
    yield made("its draws are {:.2f} times as", spread["sghmc_wide"] / spread["exact"])
    yield made("commonest mode got {:.1f} times its share", max(visits) / (sum(visits) / 25))
    yield from given(
        "25 Gaussians of standard deviation .4",
        "exact draws is below .4",
        "With a step of .5 its draws",
        "With .1 the spread is right",
    )


def at_a_glance() -> Iterator[Phrase]:
    """Tell how far methods that ask the data differ, and where that is more."""
    yield from given(
        "3.82, is an RMSE of 1.95",
        "on its easiest split can be below 1.9; the mean of MC dropout over all is 2.9",
    )
    names = (("fbnn_full", "adult"), ("fbnn_full", "celeba"))
    names += (("fbnn_first_version", "simulated_classification"),)
    widest = max(spread_of_accuracies(*each) for each in names)
    yield made("differ by at most {:.1f} points", 100 * widest)
    loss = [
        row_of("simulated_regression", label, "fbnn_first_version")["mse"]
        for label in ("BNN-SGHMC (first 200)", SGHMC)
    ]
    yield made("an MSE of {:.1f} against {:.2f}", *loss)


def spread_of_accuracies(experiment: str, problem: str) -> float:
    """The largest less the smallest accuracy of what asks the data and not an emulator."""
    done = [row for row in rows_by_label(experiment, problem).values() if row["status"] == "done"]
    found = [row["accuracy"] for row in done if not row["label"].startswith("FBNN")]
    return max(found) - min(found)


def of_chains_that_stand_still() -> Iterator[Phrase]:
    """The largest draws per effective draw, and a chain that agrees and does not predict."""
    yield made(
        "Of 2000 draws they are {:,.0f} to {:,.0f} here and {:,.0f} to {:,.0f} in print",
        *largest("FBNN (SGHMC-pCN)"),
    )
    yield made(
        "of 200 draws {:.0f} to {:.0f} here and {:.0f} to {:.0f} in print",
        *largest("BNN-SGHMC (first 200)"),
    )
    label, data = "FBNN (SGHMC-pCN)", "simulated_classification"
    as_published = {(row["problem"], row["label"]): row for row in kept_rows("fbnn_as_published")}
    row = as_published[data, label]
    yield made("it is right for {:.1f} % of the rows", 100 * row["accuracy"])
    again = row_of(data, label, "fbnn_first_version")["accuracy"]
    yield made("above, and for {:.1f} % in", 100 * again)
    blind = row_of("simulated_classification", "FBNN (pCN-SGHMC)", "fbnn_first_version")
    yield made(
        "FBNN (pCN-SGHMC), has R-hat {:.3f} and accuracy {:.0f} %",
        blind["max_rhat_function"],
        100 * blind["accuracy"],
    )
    yield made("It is {:.2f} times as fast as SGHMC, and right for half", blind["speed_up"])
    wine = as_published["wine", label], row_of("wine", label, "fbnn")
    yield made("on wine its MSE is {:.3f} here, and {:.3f} [below]", *(row["mse"] for row in wine))


def largest(label: str) -> tuple[float, ...]:
    """The range over data sets of the largest draws per effective draw, ours and published."""
    name = "draws_per_effective_draw"
    rows = [row for row in kept_rows("fbnn_as_published") if row["label"] == label]
    ours = [row[name][-1] for row in rows]
    theirs = [row["published"][name][-1] for row in rows if name in row["published"]]
    return min(ours), max(ours), min(theirs), max(theirs)


def of_speed_ups() -> Iterator[Phrase]:
    """Tell how much faster converged chains are than SGHMC, of all rows and of 128 rows a step."""
    adult, celeba = speeds("adult"), speeds("celeba")
    both = (adult, celeba)
    over_all = [found[name] / found[SGHMC] for found in both for name in (HMC, MCLMC)]
    hmc, mclmc, all_rows = (
        [found[name] / found[BATCHES] for found in both] for name in (HMC, MCLMC, SGHMC)
    )
    unsettled = [row_of(problem, BATCHES)["max_rhat_function"] for problem in ("adult", "celeba")]
    limits = min(over_all), max(over_all)
    yield made("have {:.1f} to {:.1f} times as many effective draws per second", *limits)
    yield made("after {:,} draws (R-hat {:.3f} and {:.3f})", num_draws("adult"), *unsettled)
    yield made("has {:.0f} (Adult) and {:.0f} (CelebA) times its effective draws", *hmc)
    yield made("MCLMC {:.0f} and {:.0f} times", *mclmc)
    published = [published_speed_up(problem) for problem in ("adult", "celeba")]
    yield made("The paper has up to {:.0f} and {:.0f} for its emulated chains", *published)
    yield made("has {:.0f} and {:.0f} times the effective draws per second of SGHMC", *all_rows)
    yield made(
        "by factors of {:.1f} to {:.1f}, and NUTS by {:.1f} or not at all",
        *limits,
        adult[NUTS] / adult[SGHMC],
    )
    yield made("is worth {:.0f}, on Adult {:.0f}", all_rows[1], all_rows[0])


def row_of(problem: str, label: str, experiment: str = "fbnn_converged") -> dict[str, Any]:
    """The row of a chain on a data set."""
    return rows_by_label(experiment, problem)[label]


def num_draws(problem: str) -> int:
    """The draws of all chains of SGHMC on 128 rows a step."""
    row = row_of(problem, BATCHES)
    return row["num_chains"] * row["num_draws"]


def published_speed_up(problem: str) -> float:
    """The largest that the paper has for an emulated chain."""
    rows = [
        row
        for row in rows_by_label("fbnn_full", problem).values()
        if row["label"].startswith("FBNN")
    ]
    return max(row["published"].get("speed_up", 0) for row in rows)


def speeds(problem: str) -> dict[str, float]:
    """Effective draws of the worst prediction per second, by chain."""
    labels = (SGHMC, BATCHES, HMC, NUTS, MCLMC)
    rows = {label: row_of(problem, label) for label in labels}
    return {label: row["ess_function"][0] / row["total_seconds"] for label, row in rows.items()}


def best_on_mnist() -> float:
    """The best accuracy on MNIST of what follows no uncorrected emulator."""
    done = [row for row in rows_by_label("fbnn_full", "mnist").values() if row["status"] == "done"]
    return max(row["accuracy"] for row in done if not row["label"].startswith("FBNN"))
