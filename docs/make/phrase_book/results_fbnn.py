"""Numbers in the sentences of docs/results/fbnn.md."""

from collections.abc import Iterator
from typing import Any

from kept import kept
from phrases import Phrase, given, made

SGHMC, BATCHES = "BNN-SGHMC", "BNN-SGHMC (128 rows a step)"
HMC, NUTS, MCLMC = (f"{name} on all rows" for name in ("HMC", "NUTS", "MCLMC"))


def phrases() -> Iterator[Phrase]:
    """The phrases of the page, in its order."""
    yield from given(
        "find it 7 to 62 times as fast",
        "on Adult and CelebA after 50 seconds",
        "where the paper has 94 % after 15 to 19 minutes",
        "(below 1.05 they agree)",
        "do not agree (R-hat above 1.05)",
        "at most 100 seconds a run",
        "had other work too, 50 seconds each",
        "from the draws of 50 seconds",
        "took longer than their 50 seconds",
        "was stopped after 17 minutes",
    )
    yield from of_speed_ups()
    yield made("the best of them has {:.0f} % then", 100 * best_on_mnist())


def of_speed_ups() -> Iterator[Phrase]:
    """How much faster converged chains are than SGHMC, of all rows and of 128 rows a step."""
    adult, celeba = speeds("adult"), speeds("celeba")
    both = (adult, celeba)
    over_all = [found[name] / found[SGHMC] for found in both for name in (HMC, MCLMC)]
    hmc, mclmc, all_rows = (
        [found[name] / found[BATCHES] for found in both] for name in (HMC, MCLMC, SGHMC)
    )
    unsettled = [row_of(problem, BATCHES)["max_rhat_function"] for problem in ("adult", "celeba")]
    limits = min(over_all), max(over_all)
    yield made("have {:.1f} to {:.1f} times as many effective draws per second", *limits)
    yield made("it is {:.0f} to {:.0f} times", min(hmc), round(max(mclmc), -1))
    yield made("that SGHMC has not converged (R-hat {:.3f} and {:.3f})", *unsettled)
    yield made("after 32,000 draws (R-hat {:.3f} and {:.3f})", *unsettled)
    yield made("has {:.0f} (Adult) and {:.0f} (CelebA) times its effective draws", *hmc)
    yield made("MCLMC {:.0f} and {:.0f} times", *mclmc)
    yield made("has {:.0f} and {:.0f} times the effective draws per second of the", *all_rows)
    yield made(
        "by factors of {:.1f} to {:.1f}, and NUTS by {:.1f} or not at all",
        *limits,
        adult[NUTS] / adult[SGHMC],
    )
    yield made("is worth {:.0f}, on Adult {:.0f}", all_rows[1], all_rows[0])


def row_of(problem: str, label: str) -> dict[str, Any]:
    """The row of a chain on a data set."""
    rows = rows_of("fbnn_converged", problem)
    (row,) = (row for row in rows if row["label"] == label)
    return row


def rows_of(experiment: str, problem: str) -> list[dict[str, Any]]:
    """The rows of an experiment on a data set."""
    found = (each for each in kept(experiment)["problems"] if each["name"] == problem)
    return next(found)["rows"]


def speeds(problem: str) -> dict[str, float]:
    """Effective draws of the worst prediction per second, by chain."""
    labels = (SGHMC, BATCHES, HMC, NUTS, MCLMC)
    rows = {label: row_of(problem, label) for label in labels}
    return {label: row["ess_function"][0] / row["total_seconds"] for label, row in rows.items()}


def best_on_mnist() -> float:
    """The best accuracy on MNIST of what follows no uncorrected emulator."""
    done = [row for row in rows_of("fbnn_full", "mnist") if row["status"] == "done"]
    return max(row["accuracy"] for row in done if not row["label"].startswith("FBNN"))
