"""Numbers in the sentences of docs/results/multilevel_tables.md."""

from collections.abc import Iterator
from typing import Any

from kept import kept_rows, rows_by_label
from phrases import Phrase, given, made, share

from credence.datasets.prepared.sentence_models import MINILM, MPNET


def phrases() -> Iterator[Phrase]:
    """The phrases of the page, in its order."""
    yield from of_reviews()
    yield from of_digits()
    yield from given("counted below 0.001")


def of_reviews() -> Iterator[Phrase]:
    """Accuracies of film reviews, and the entropy of a logistic regression."""
    rows = rows_by_label("imdb", "tfidf", "laptop")
    right = {label: share(row["accuracy"], 3) for label, row in rows.items()}
    coarse, weighed = right["Coarse (SMC on half of the inputs)"], right["Importance sampling"]
    several, smc = rows["MLSMC (increment tempered)"], rows["SMC on all inputs"]
    left = rows["Importance sampling"]["ess_share"]
    yield made("leaves {:.0f} of 30 particles", 30 * left)
    yield made("the accuracy falls from {} to {}", coarse, weighed)
    yield made(
        "is about as accurate as SMC on all inputs ({} and {}), in {:.1f} times the seconds",
        share(several["accuracy"], 3),
        share(smc["accuracy"], 3),
        several["total_seconds"] / smc["total_seconds"],
    )
    yield made("a MAP network does as well as any ({})", right["MAP"])
    yield made("next to no epistemic entropy ({} nats)", share(smc["epistemic_id"], 3))
    yield from given("Table 2 from .797 to .866 does not")
    yield from of_sentence_model()
    yield from of_two_models()


def of_sentence_model() -> Iterator[Phrase]:
    """Accuracies with the paper's small sentence model, from all reviews and from some."""
    labels = "SMC on all inputs", "MLSMC (increment tempered)", "Coarse (SMC on half of the inputs)"
    for size in ("paper", "laptop"):
        rows = rows_by_label("imdb", "minilm", size)
        smc, several, coarse = (rows[label] for label in labels)
        right = [share(row["accuracy"], 3) for row in (smc, several, coarse)]
        if size == "paper":
            yield from given("whose accuracy is .797 in print, with a log loss of .444 nats")
            yield made("Ours has {} and {} from all 25,000", right[0], share(smc["nll"], 3))
            ratio = several["total_seconds"] / smc["total_seconds"]
            yield made(
                "is as good ({} and {}), in {:.1f} times the seconds; half of them have {}",
                right[1],
                share(several["nll"], 3),
                ratio,
                right[2],
            )
        else:
            yield made(
                "SMC on all inputs has {}, half of them {}, and multilevel SMC {}",
                right[0],
                right[2],
                right[1],
            )
            error = max(row["standard_errors"]["accuracy"] for row in (smc, several, coarse))
            yield made("with standard errors of {}", share(error, 3))


def of_two_models() -> Iterator[Phrase]:
    """Accuracies of the step from the small sentence model to the large one."""
    rows = rows_by_label("imdb_two_models", "minilm_mpnet", "paper")
    ways = small, weighed, increment, several, large = (
        "Coarse (SMC on the small model)",
        "Importance sampling",
        "+ mutated increment",
        "MLSMC (increment tempered)",
        "SMC on the large model",
    )
    right = {way: share(rows[way]["accuracy"], 3) for way in ways}
    loss = {way: share(rows[way]["nll"], 3) for way in ways}
    yield from given("from .797 to .866, and to .870 with the increment")
    yield made("ours goes from {} to {} and {}", right[small], right[weighed], right[increment])
    yield from given("log losses of .444, .337 and .327 nats")
    yield made("ours are {}, {} and {}", loss[small], loss[weighed], loss[increment])
    yield made("{:.0f} of the 30 particles counts", 30 * rows[weighed]["ess_share"])
    turned, alone = read_by(MINILM, MPNET), read_by(MPNET, MPNET)
    yield made(
        "has {} and {} when it reads the large model's",
        share(turned["accuracy"]),
        share(turned["log_loss"]),
    )
    yield made(
        "One learnt on the large model's has {} and {}",
        share(alone["accuracy"]),
        share(alone["log_loss"]),
    )
    yield made(
        "Multilevel SMC has {} and {}, and SMC on the large model alone {} and {}",
        right[several],
        loss[several],
        right[large],
        loss[large],
    )
    ratio = rows[several]["total_seconds"] / rows[large]["total_seconds"]
    yield made("The first takes {:.1f} times the seconds of the second", ratio)


def read_by(learnt_on: str, read: str) -> dict[str, Any]:
    """The row of weights learnt on one model's numbers that read another's."""
    found = kept_rows("two_sentence_models")
    (row,) = (row for row in found if (row["learnt on"], row["read"]) == (learnt_on, read))
    return row


def of_digits() -> Iterator[Phrase]:
    """Doubt about digits that were not taught."""
    rows = rows_by_label("mnist_ood")
    smc, ensemble, several = rows["SMC"], rows["Deep ensemble"], rows["MLSMC"]
    doubts = [share(row["epistemic_others"], 2) for row in (smc, ensemble)]
    told = [share(row["ood_auroc"], 2) for row in (ensemble, smc)]
    right = [share(row["accuracy"], 3) for row in (several, smc)]
    yield made("than a deep ensemble does ({} against {} nats)", *doubts)
    yield made(
        "Multilevel SMC doubts them less than SMC does ({} nats)",
        share(several["epistemic_others"], 2),
    )
    yield made("from known digits (AUROC {} against {} of SMC", *told)
    yield made(
        "does worse than SMC (accuracy {} against {}), in {:.1f} times the seconds",
        *right,
        several["total_seconds"] / smc["total_seconds"],
    )
    yield from given("though nowhere near its 1.8")
