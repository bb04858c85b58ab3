"""Numbers in the sentences of docs/explanation/stacking.md."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from kept import kept_rows
from peers import OURS, default_model, of_model
from phrases import Phrase, given, made

SMALL, MIDDLE, LARGE = (
    ("boston", "concrete", "energy", "wine", "yacht"),
    ("kin8nm", "naval", "power"),
    ("protein",),
)
PLAIN = "32-32, prior unit, noise heteroscedastic_t"
ENCODED = "32-32 of encoded inputs, prior unit, noise heteroscedastic_t"
ENCODED_VALUES = ENCODED.replace("inputs", "values")


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page, in its order."""
    yield from given("more than 25 times as far from the median")
    yield from of_encoded_inputs()
    yield from of_encoded_values()
    yield from given("their tail index is above 0.7")
    yield from of_time()


def of_encoded_inputs() -> Iterator[Phrase]:
    """Say what encoded inputs bring, beside the same network of plain inputs."""
    gain = partial(gain_of, ENCODED)
    yield made("On protein a left-out row gains {:.2f} nats by the encoding", gain("protein"))
    yield made("it loses {:.2f} nats on the smooth robot arm kin8nm", -gain("kin8nm"))
    yield made("kin8nm, and {:.2f} on naval", -gain("naval"))


def gain_of(model: str, name: str) -> float:
    """Compute by how much a model beats the one of plain inputs, in nats for each left-out row."""
    of_fits = [
        {each["model"]: each["log_score"] for each in row["models"]}
        for row in of_model(kept_rows("default_model"), name, OURS)
    ]
    return float(np.mean([scores[model] - scores[PLAIN] for scores in of_fits]))


def of_encoded_values() -> Iterator[Phrase]:
    """Say what knots at every value bring on power plant, and what they cost."""
    rows = kept_rows("default_model")
    ours, trees = (
        np.mean([row["rmse"] for row in of_model(rows, "power", model)])
        for model in (OURS, "lightgbm")
    )
    most = max(kept_rows("encoded_inputs"), key=lambda row: row["num_ramps"])
    yield made("the condenser has {} values", most["num_ramps"])
    yield from given("rises by more than 15 % then")
    yield made("a left-out row gains {:.2f} nats by `plv-`", gain_of(ENCODED_VALUES, "power"))
    yield made("the fit has an RMSE of {:.2f}, where LightGBM has {:.2f}", ours, trees)
    yield made("a gradient takes {:.1f} ms in place of {:.1f}", most["looked_up"], most["summed"])


def of_time() -> Iterator[Phrase]:
    """Say how long fits take on two cores."""
    small, middle, large = map(seconds_of_each, (SMALL, MIDDLE, LARGE))
    yield made("up to 1500 rows take {:.0f} to {:.0f} seconds", min(small), max(small))
    yield made("7000 to 11,000 rows {:.0f} to {:.0f} minutes", min(middle) / 60, max(middle) / 60)
    yield made("one of 41,000 rows {:.0f}", large[0] / 60)
    compiling = max(
        row["seconds_by_phase"]["compile"]
        for row in kept_rows("default_model")
        if row["model"] == OURS and row.get("num_cores", 2) > 1
    )
    yield made("took up to {:.0f} seconds more", compiling)


def seconds_of_each(names: tuple[str, ...]) -> list[float]:
    """Compute the median seconds of fits on two cores, by data set."""
    rows = kept_rows("default_model")
    of_sets = [default_model.seconds_of(of_model(rows, name, OURS)) for name in names]
    return [float(np.median(seconds)) for seconds in of_sets]
