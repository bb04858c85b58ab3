"""Rows in groups: what a fit promises of new groups, with groups named and without.

    python benchmarks/grouped_rows.py --out FOLDER
    python benchmarks/grouped_rows.py --out FOLDER --table

Tables of a known law: 40 groups of 8 rows, as of patients. Two inputs belong to the group, and one
to the row; the target has an effect of the group that no input explains, and noise:

    y = sin(x) + z + effect of the group (sd 0.7) + noise (sd 0.3).

Each is fitted by the method of `fit` without options. Beside what rows that networks left out say
stands the truth of 2000 rows of new groups.
"""

import time
from typing import Any

import numpy as np
from rows import add_row, commit, commits, done, markdown, parser_of

from credence import BNNRegressor, configure

NUM_GROUPS, ROWS_OF_GROUP, NUM_NEW = 40, 8, 2000
EFFECT, NOISE = 0.7, 0.3
NUM_TABLES = 6


def rows_of(
    rng: np.random.Generator, num_groups: int, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw inputs, targets and groups."""
    groups = np.repeat(np.arange(num_groups), size)
    of_group = rng.normal(size=(num_groups, 2))[groups]
    effect = EFFECT * rng.normal(size=num_groups)[groups]
    x = rng.normal(size=len(groups))
    y = np.sin(2 * x) + 0.5 * of_group[:, 0] + effect + NOISE * rng.normal(size=len(groups))
    return np.column_stack([x, of_group]), y, groups


def measured(number: int, is_named: bool) -> dict[str, Any]:
    """Fit a table, and compare what was promised with what happens in new groups."""
    rng = np.random.default_rng(number)
    x, y, groups = rows_of(rng, NUM_GROUPS, ROWS_OF_GROUP)
    x_new, y_new, _ = rows_of(rng, NUM_NEW, 1)
    start = time.perf_counter()
    model = BNNRegressor(random_state=0).fit(x, y, groups=groups if is_named else None)
    seconds = time.perf_counter() - start
    unseen = model.left_out_
    assert unseen is not None
    inside = (unseen["lower_95"] <= unseen["y"]) & (unseen["y"] <= unseen["upper_95"])
    numbers = model.scores(x_new, y_new).numbers
    return {
        "table": number,
        "groups": is_named,
        "promised": float(np.mean(inside)),
        "promised_log_loss": -float(np.mean(unseen["log_prob"])),
        "coverage": numbers["coverage_95"],
        "conformal": numbers["coverage_95_conformal"],
        "log_loss": numbers["nll"],
        "seconds": seconds,
        "commit": commit(),
    }


def table_lines(found: list[dict[str, Any]]) -> list[str]:
    """A row for fits with groups, and one for those without: means over tables."""
    names = {
        "promised": "95 % intervals hold, of rows left out",
        "coverage": "of new groups",
        "conformal": "conformal 95 %, of new groups",
        "promised_log_loss": "log loss, rows left out (nats)",
        "log_loss": "of new groups",
    }
    rows = []
    for is_named in (False, True):
        mine = [row for row in found if row["groups"] is is_named]
        means = [np.mean([row[name] for row in mine]) for name in names]
        shares = [f"{100 * mean:.1f} %" for mean in means[:3]]
        told = "`groups` named" if is_named else "not named"
        rows.append([told, *shares, *(f"{mean:.2f}" for mean in means[3:])])
    return [*markdown(["", *names.values()], rows), "", f"Commit {commits(found)}."]


def main() -> None:
    """Run what is not done yet, and print the table."""
    options = parser_of(__doc__).parse_args()
    configure()
    options.out.mkdir(parents=True, exist_ok=True)
    known = {(row["table"], row["groups"]) for row in done(options.out)}
    for number in () if options.table else range(NUM_TABLES):
        for is_named in (False, True):
            if (number, is_named) not in known:
                row = measured(number, is_named)
                add_row(options.out, row)
                print(row, flush=True)
    print("\n".join(table_lines(done(options.out))))


if __name__ == "__main__":
    main()
