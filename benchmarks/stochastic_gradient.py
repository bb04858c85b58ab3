"""Stochastic gradient samplers: steps per second, and what they sample.

    python benchmarks/stochastic_gradient.py speed
    CREDENCE_DATA=... python benchmarks/stochastic_gradient.py wine --out results/minibatches

speed: SGHMC at batch 256 on a table of Adult's size (32,561 x 14, simulated; network 14-60-30-1,
Bernoulli), the driver's compiled blocks beside a plain Python loop that slices a batch and calls a
jitted step, as a training script would. Without compilation; on one device, and 64 chains on all.

wine: predictive means and standard deviations of SGHMC and SGLD on red wine (network 11-10-10-1,
learnt noise), by rows a step at as many passes over all rows, against a long NUTS (made first,
about 3 minutes). Offsets are in posterior standard deviations of the noise-free prediction at 160
held-out rows. What is in `rows.jsonl` already is not run again.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rows import add_row, commit, done

BATCH, ROWS, FEATURES, STEPS = 256, 32_561, 14, 1000
PASSES = 90
"""A draw is kept after so many passes over all rows."""


def speed() -> None:
    """Print steps per second of one chain and of 64, and of the loop."""
    import jax

    from credence import Posterior
    from credence.engine.blocks import init_states, run_block, spread
    from credence.kernels.base import Recipe
    from credence.kernels.sgmcmc.sghmc import sghmc
    from credence.models import MLP, Bernoulli, Gaussian

    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    y = (x[:, 0] + rng.normal(size=ROWS) > 0).astype(np.int32)
    posterior = Posterior(MLP(1, (60, 30)), Gaussian(), Bernoulli(), (x, y))
    recipe = Recipe(sghmc, posterior.log_density)
    settings = {
        "step_size": np.float32(1e-3),
        "friction": np.float32(0.1),
        "inverse_mass": np.ones(posterior.num_weights, np.float32),
    }

    def blocks(num_chains: int, devices: int = 1) -> Callable[[int], Any]:
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

    loop = steps_per_second(plain_loop(posterior, settings))
    one, many = steps_per_second(blocks(1)), steps_per_second(blocks(64))
    print(f"Python loop of jitted steps, 1 chain {loop:10,.0f} steps per second")
    print(f"compiled blocks, 1 chain             {one:10,.0f} ({one / loop:.1f}x)")
    print(f"compiled blocks, 64 chains           {many:10,.0f} (64 chains cost {one / many:.1f}x)")
    devices = jax.local_device_count()
    spread_out = steps_per_second(blocks(64, devices))
    print(f"64 chains on {devices} devices {spread_out:23,.0f} ({one / spread_out:.1f}x)")


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("speed", "wine"))
    parser.add_argument("--out", type=Path, default=Path("minibatches"))
    options = parser.parse_args()
    import credence

    credence.configure()
    return speed() if options.part == "speed" else wine(options.out)


if __name__ == "__main__":
    main()
