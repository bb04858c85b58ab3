"""Gradients of networks of encoded inputs: ramps that are summed up, and paths that are looked up.

    python benchmarks/encoded_inputs.py --out FOLDER

8,611 rows of 4 inputs, of which one has as many ramps as the row of the table says and the others
32 each; hidden layers of 32 and 32, 20 chains, float32. Milliseconds of a gradient of one chain on
all rows, the fastest of ten, in the chunks that the library makes of chains. What is done already
is in FOLDER/rows.jsonl and is not done again.
"""

import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rows import add_row, commit, commits, done, parser_of, values

NUM_ROWS, NUM_CHAINS, OTHERS = 8611, 20, 32
RAMPS = (64, 128, 256, 633)


def milliseconds(num_ramps: int, *, is_summed: bool) -> float:
    """Time a gradient by one way or the other."""
    from credence import Posterior, models
    from credence.models.networks import encodings

    encodings.FEWEST_ROWS = NUM_ROWS + 1 if is_summed else 0
    spread = 2.0 if is_summed else 1.9  # another model, so that no program is found again
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(NUM_ROWS, 4)).astype(np.float32)
    knots = [tuple(np.linspace(0, 1, n + 1).tolist()) for n in (num_ramps, *[OTHERS] * 3)]
    network = models.PiecewiseLinear(models.MLP(1, (32, 32)), tuple(knots), spread)
    data = x, np.sin(9 * x[:, 0])
    posterior = Posterior(network, models.Gaussian("unit"), models.Normal(), data)
    positions = posterior.init(jax.random.key(0), NUM_CHAINS)

    @jax.jit
    def gradients(positions: Any, data: Any) -> Any:
        return jax.vmap(jax.value_and_grad(posterior.log_density), (0, None))(positions, data)

    taken = []
    for _ in range(11):
        start = time.perf_counter()
        jax.block_until_ready(gradients(positions, posterior.data))
        taken.append(time.perf_counter() - start)
    return 1e3 * min(taken[1:]) / NUM_CHAINS


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each number of ramps."""
    lines = [
        "| ramps | summed up, ms | looked up, ms |",
        "|---|---|---|",
        *(f"| {row['num_ramps']} | {row['summed']:.2f} | {row['looked_up']:.2f} |" for row in rows),
    ]
    return [*lines, "", f"{values(rows, 'num_cores')} cores, commit {commits(rows)}."]


def main() -> None:
    options = parser_of(__doc__).parse_args()
    folder: Path = options.out
    import credence
    from credence.environment import num_cores
    from credence.models.networks import encodings

    credence.configure()
    folder.mkdir(parents=True, exist_ok=True)
    encodings.MOST_SUMMED = OTHERS
    known = {row["num_ramps"] for row in done(folder)}
    for num_ramps in () if options.table else RAMPS:
        if num_ramps in known:
            continue
        row = {
            "num_ramps": num_ramps,
            "summed": milliseconds(num_ramps, is_summed=True),
            "looked_up": milliseconds(num_ramps, is_summed=False),
            "num_cores": num_cores(),
            "commit": commit(),
        }
        add_row(folder, row)
    print("\n".join(table_lines(done(folder))))


if __name__ == "__main__":
    main()
