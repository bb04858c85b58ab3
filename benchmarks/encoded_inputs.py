"""Gradients of networks of encoded inputs: ramps that are summed up, and paths that are looked up.

    python benchmarks/encoded_inputs.py --out FOLDER

8,611 rows of 4 inputs, of which one has as many ramps as the row of the table says and the others
32 each; hidden layers of 32 and 32, 20 chains, float32. Milliseconds of a gradient of one chain on
all rows, the fastest of ten, in the chunks that the library makes of chains. What is done already
is in FOLDER/rows.jsonl and is not done again.
"""

import time
from typing import Any

import numpy as np
from rows import commits, done, markdown, measure, parser_of, values

NUM_ROWS, NUM_CHAINS, OTHERS = 8611, 20, 32
RAMPS = (64, 128, 256, 633)


def milliseconds(num_ramps: int, *, is_summed: bool) -> float:
    """Time a gradient by one way or the other."""
    import jax

    from credence import Posterior, models
    from credence.models.networks import encodings

    encodings.MOST_SUMMED = OTHERS
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


def measured(case: dict[str, Any]) -> dict[str, Any]:
    """Milliseconds by both ways."""
    import credence

    credence.configure()
    return {
        "summed": milliseconds(case["num_ramps"], is_summed=True),
        "looked_up": milliseconds(case["num_ramps"], is_summed=False),
    }


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each number of ramps."""
    ways = ("summed", "looked_up")
    cells = [[f"{row['num_ramps']}", *(f"{row[way]:.2f}" for way in ways)] for row in rows]
    lines = markdown(("ramps", "summed up, ms", "looked up, ms"), cells)
    return [*lines, "", f"{values(rows, 'num_cores')} cores, commit {commits(rows)}."]


def main() -> None:
    options = parser_of(__doc__).parse_args()
    from credence.environment import num_cores

    cases = [{"num_ramps": num_ramps, "num_cores": num_cores()} for num_ramps in RAMPS]
    measure(options.out, () if options.table else cases, measured)
    print("\n".join(table_lines(done(options.out))))


if __name__ == "__main__":
    main()
