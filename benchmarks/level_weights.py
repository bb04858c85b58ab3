"""How far apart are two widths where it counts, at the posterior of the narrow one?

    CREDENCE_DATA=... python benchmarks/level_weights.py --out FOLDER
    python benchmarks/level_weights.py --out FOLDER --table

Problems are those of the experiment `multilevel_published`: two hidden layers of tanh, the prior
(4.2). `allocation.nats_between` says under the prior by how many nats the log likelihood changes
from one width to the next. Here 200 particles of SMC at the narrow width get 50 draws each of the
weights that are new at the wide one, and G is the ratio of the two likelihoods. Listed are the mean
and the standard deviation of log G; the effective share of the particles when they are weighed by
G, and when each is weighed by the mean of its 50 draws (more tries per particle lead from the
first share to the second); and seconds. A cell is a process of its own; what has a row is not
done again.
"""

import warnings
from typing import Any

from rows import how_run, markdown, run_cases

NUM_PARTICLES, NUM_DRAWS = 200, 50
CASES = (
    ("regression alpha 3", 8, 128),
    ("regression alpha 2", 16, 32),
    ("regression alpha 2", 32, 128),
    ("regression alpha 2", 64, 128),
    ("digits alpha 3", 4, 128),
    ("digits alpha 2", 4, 128),
    ("digits alpha 2", 8, 128),
    ("spiral alpha 3", 8, 128),
    ("spiral alpha 2", 8, 128),
    ("spiral alpha 2", 16, 128),
    ("spiral alpha 2", 32, 128),
    ("halfcheetah alpha 3", 4, 128),
    ("halfcheetah alpha 2", 8, 64),
    ("mountain_car alpha 3", 4, 128),
    ("mountain_car alpha 2", 4, 128),
)


def cases(seed: int) -> list[dict[str, Any]]:
    """Every step between two widths."""
    return [
        {"problem": problem, "coarse": coarse, "fine": fine, "seed": seed, "num_cores": 1}
        for problem, coarse, fine in CASES
    ]


def measured(case: dict[str, Any]) -> dict[str, Any]:
    """Draw particles of the narrow network, extend them, and look at their weights."""
    import jax

    import credence
    from credence.engine.driver import Driver
    from credence.methods import Mutation
    from credence.methods.smc.multilevel import reach
    from credence.methods.smc.multilevel.allocation import nats_between
    from credence_papers.multilevel.studies import PUBLISHED

    credence.configure()
    warnings.simplefilter("ignore")
    name = f"published {case['problem']}"
    (problem,) = (each for each in PUBLISHED.problems if each.name == name)
    coarse, fine = problem.posterior(case["coarse"]), problem.posterior(case["fine"])
    key_cloud, key_new = jax.random.split(jax.random.key(case["seed"]))
    with Driver() as driver:
        pair = reach.pair_of(driver, coarse, fine, Mutation(), NUM_PARTICLES)
        cloud, pair = reach.particles(key_cloud, pair)
        log_weights = reach.log_weights(key_new, pair, cloud, NUM_DRAWS)
    return {
        "prior_nats": float(nats_between([coarse, fine])[0]),
        "mean": float(log_weights.mean()),
        "std": float(log_weights.std()),
        "share": reach.share_of_tries(log_weights.reshape(-1, 1)),
        "share_of_means": reach.share_of_tries(log_weights),
    }


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each step."""
    heads = ("problem", "widths", "nats under the prior", "mean of log G", "its sd",
             "effective share", "of means over 50 draws")  # fmt: skip
    found = {(row["problem"], row["coarse"], row["fine"]): row for row in rows}
    lines = [
        [
            row["problem"].replace("_", " "), f"{row['coarse']}, {row['fine']}",
            f"{row['prior_nats']:.2g}", f"{row['mean']:.2g}", f"{row['std']:.2g}",
            f"{row['share']:.2f}", f"{row['share_of_means']:.2f}",
        ]
        for row in (found[case] for case in CASES if case in found)
    ]  # fmt: skip
    return [*markdown(heads, lines), "", how_run(rows)]


if __name__ == "__main__":
    run_cases(__doc__, cases, measured, table_lines)
