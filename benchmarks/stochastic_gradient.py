"""Stochastic gradient samplers: steps per second, and what they sample.

    python benchmarks/stochastic_gradient.py speed --out FOLDER [--table]
    CREDENCE_DATA=... python benchmarks/stochastic_gradient.py wine --out results/minibatches

speed: SGHMC at batch 256 on a table of Adult's size (32,561 x 14, simulated; network 14-60-30-1,
Bernoulli), the driver's compiled blocks beside a plain Python loop that slices a batch and calls a
jitted step, as a training script would. Without compilation; in a process that is pinned to one
core, and in one with all of them, there also with 64 chains spread over a device for each core.
Takes about four minutes on two idle cores; needs Linux.

wine: predictive means and standard deviations of SGHMC and SGLD on red wine (network 11-10-10-1,
learnt noise), by rows a step at as many passes over all rows, against a long NUTS (made first,
about 3 minutes). Offsets are in posterior standard deviations of the noise-free prediction at 160
held-out rows.

What is in `rows.jsonl` of the folder already is not run again.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rows import add_row, commit, commits, done, markdown, measure, parser_of

BATCH, ROWS, FEATURES, STEPS = 256, 32_561, 14, 1000
PROGRAMS = {
    ("loop", 1): "Python loop of jitted steps, 1 chain",
    ("blocks", 1): "compiled blocks, 1 chain",
    ("blocks", 64): "compiled blocks, 64 chains",
    ("sharded", 64): "compiled blocks, 64 chains, a device for each core",
}
"""Programs that are timed, each with its number of chains."""
PASSES = 90
"""A draw is kept after so many passes over all rows."""


def speed_cases(all_cores: int) -> list[dict[str, Any]]:
    """Programs of one core, and of all."""
    return [
        {"program": program, "num_chains": num_chains, "num_cores": num_cores}
        for num_cores in sorted({1, all_cores})
        for program, num_chains in PROGRAMS
        if num_cores > 1 or program != "sharded"
    ]


def speed(case: dict[str, Any]) -> dict[str, Any]:
    """Steps per second of a program."""
    from credence import Posterior
    from credence.engine.blocks import chain_devices
    from credence.models import MLP, Bernoulli, Gaussian

    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    y = (x[:, 0] + rng.normal(size=ROWS) > 0).astype(np.int32)
    posterior = Posterior(MLP(1, (60, 30)), Gaussian(), Bernoulli(), (x, y))
    settings = {
        "step_size": np.float32(1e-3),
        "friction": np.float32(0.1),
        "inverse_mass": np.ones(posterior.num_weights, np.float32),
    }
    program, num_chains = case["program"], case["num_chains"]
    devices = chain_devices(num_chains) if program == "sharded" else 1
    if program == "loop":
        run = plain_loop(posterior, settings)
    else:
        run = blocks(posterior, settings, num_chains, devices)
    return {"num_devices": devices, "steps_per_second": steps_per_second(run)}


def blocks(
    posterior: Any, settings: dict[str, Any], num_chains: int, devices: int
) -> Callable[[int], Any]:
    """SGHMC in compiled blocks, as the library runs it."""
    import jax

    from credence.engine.blocks import init_states, run_block, spread
    from credence.kernels.base import Recipe
    from credence.kernels.sgmcmc.sghmc import sghmc

    recipe = Recipe(sghmc, posterior.log_density)
    positions = posterior.init(jax.random.key(0), num_chains)
    states = init_states(positions, settings, posterior.data, recipe=recipe)
    states = spread(states, devices)
    return lambda seed: (
        run_block(
            jax.random.key(seed),
            states,
            settings,
            posterior.data,
            recipe=recipe,
            num_draws=STEPS // 100,
            thinning=100,
            batch_size=BATCH,
            devices=devices,
            wanted=STEPS // 100,
        ).draws
    )


def plain_loop(posterior: Any, settings: dict[str, Any]) -> Callable[[int], Any]:
    """SGHMC as a script would write it: shuffle, slice, call a jitted step."""
    import jax

    from credence.density.data import Data
    from credence.kernels.sgmcmc.sghmc import sghmc

    kernel = sghmc(posterior.log_density, **settings)
    step = jax.jit(kernel.step)
    x, y = np.asarray(posterior.data.x), np.asarray(posterior.data.y)
    weight = np.full(BATCH, len(x) / BATCH, np.float32)
    start = kernel.init(posterior.init(jax.random.key(0), 1)[0], posterior.data)

    def run(seed: int) -> Any:
        rng, state, key, at = np.random.default_rng(seed), start, jax.random.key(seed), len(x)
        order = np.arange(len(x))
        for _ in range(STEPS):
            if at + BATCH > len(x):
                order, at = rng.permutation(len(x)), 0
            rows = order[at : at + BATCH]
            key, key_step = jax.random.split(key)
            state, _ = step(key_step, state, Data(x[rows], y[rows], weight))
            at += BATCH
        return state.position

    return run


def steps_per_second(run: Callable[[int], Any], repeats: int = 5) -> float:
    """Median over repeats, after a call that compiles."""
    import jax

    jax.block_until_ready(run(0))
    seconds = []
    for seed in range(1, repeats + 1):
        begin = time.perf_counter()
        jax.block_until_ready(run(seed))
        seconds.append(time.perf_counter() - begin)
    return STEPS / float(np.median(seconds))


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Steps per second: a line for each program, a column for each number of cores."""
    rates = {
        (row["program"], row["num_chains"], row["num_cores"]): row["steps_per_second"]
        for row in rows
    }
    counts = sorted({row["num_cores"] for row in rows})
    heads = ["steps per second", *("one core" if n == 1 else f"all {n} cores" for n in counts)]
    lines = [
        [name, *(cell(rates, *program, count) for count in counts)]
        for program, name in PROGRAMS.items()
    ]
    return [*markdown(heads, lines), "", f"Commit {commits(rows)}."]


def cell(rates: dict[tuple, float], program: str, num_chains: int, num_cores: int) -> str:
    """The rate of a program: one chain's beside the loop's, the cost of many beside one chain's."""
    rate = rates.get((program, num_chains, num_cores))
    if rate is None:
        return ""
    if num_chains == 1:
        return f"{rate:,.0f} ({rate / rates['loop', 1, num_cores]:.1f}x)"
    return f"{rate:,.0f} (cost {rates['blocks', 1, num_cores] / rate:.1f}x one chain)"


def wine(out: Path) -> None:
    """Write how far the samplers' predictions are from NUTS's."""
    from credence import Posterior, datasets, methods
    from credence.ensembles.diagnostics.convergence import assess
    from credence.models import MLP, Gaussian, Normal

    data = datasets.load("wine_quality_red", split=0)
    x = data.frame.drop(columns=data.target).to_numpy(float)
    y = data.frame[data.target].to_numpy(float)
    train, test = data.train, data.test
    x = (x - x[train].mean(axis=0)) / x[train].std(axis=0)
    y = (y - y[train].mean()) / y[train].std()
    posterior = Posterior(MLP(1, (10, 10)), Gaussian(), Normal(), (x[train], y[train]))

    def predictions(method: Any) -> tuple[np.ndarray, dict[str, Any]]:
        ensemble = method.run(0, posterior)
        found = assess(ensemble.monitored(x[test]))
        return ensemble.functions(x[test])[..., 0], {
            "method": method.name,
            "num_points": posterior.num_points,
            "num_draws": method.num_draws,
            "rhat": found.max_rhat_function,
            "ess": found.min_ess_function,
            "seconds": ensemble.cost.total_seconds,
            "commit": commit(),
        }

    out.mkdir(parents=True, exist_ok=True)
    known = {(row["method"], row.get("batch_size")): row for row in done(out)}
    reference = known.get(("nuts", None))
    if reference is None:
        exact, reference = predictions(methods.NUTS(num_draws=2000))
        moments = {"mean": exact.mean(axis=(0, 1)), "std": exact.std(axis=(0, 1))}
        reference |= {name: np.round(each, 5).tolist() for name, each in moments.items()}
        add_row(out, reference)
    mean, std = np.array(reference["mean"]), np.array(reference["std"])
    for kind in (methods.SGHMC, methods.SGLD):
        for batch_size in (128, 512, posterior.num_points):
            if (kind.name, batch_size) in known:
                continue
            thinning = round(PASSES * posterior.num_points / batch_size)
            functions, about = predictions(kind(batch_size=batch_size, thinning=thinning))
            chains = functions.mean(axis=1)
            offset = (chains.mean(axis=0) - mean) / std
            error = chains.std(axis=0, ddof=1) / len(chains) ** 0.5 / std
            about |= {
                "batch_size": batch_size,
                "passes": PASSES,
                "off": float(np.abs(offset).mean()),
                "error": float(error.mean()),
                "sd_ratio": float((functions.std(axis=(0, 1)) / std).mean()),
            }
            add_row(out, about)
            print(about, flush=True)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("part", choices=("speed", "wine"))
    options = parser.parse_args()
    if options.part == "speed":
        from credence.environment import num_cores

        measure(options.out, () if options.table else speed_cases(num_cores()), speed)
        print("\n".join(table_lines(done(options.out))))
    elif options.table:
        parser.error("the table of wine is made by docs/make/pages.py")
    else:
        import credence

        credence.configure()
        wine(options.out)


if __name__ == "__main__":
    main()
