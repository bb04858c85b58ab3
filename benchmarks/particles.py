"""Sequential Monte Carlo beside BlackJAX: microseconds per particle-step, and compile times.

    python benchmarks/particles.py [pcn] [hmc] [compile] [--steps 10] [--repeats 5] [--rounds 3]

256 particles, network 10-64-1 of tanh, 200 rows, trace-class prior (alpha = 2), noise .1, an
ESS target of one half, systematic resampling. Per particle-step: one step of the kernel, all
temperatures of a run, with what happens between them (weighing, resampling, and for ours tuning
and the driver) counted. The column "run" is the whole of `SMC.run`, from the prior draws to the
ensemble; "CPU" is its processor time, of all threads, which the load of the machine moves less.

BlackJAX: `adaptive_tempered_smc`, its step jitted, the network written as one would first write it;
a fixed step size, which its cost does not depend on. "In chunks" sets its `batch_size` to 16.
HMC takes 5 leapfrogs there; ours tunes their number (see the table), so both are per 5 leapfrogs.

Repetitions take turns within a process and rounds (processes) take turns between one core and two.
Compilation: each program of a run, in a new process with an empty cache, then in another.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

PARTICLES, POINTS, INPUTS, WIDTH, NOISE = 256, 200, 10, 64, 0.1
LEAPFROGS, ESS_TARGET = 5, 0.5
STEP_SIZES = {"pcn": 0.05, "hmc": 0.3}
KINDS = ("trace", "lower", "compile")
EVENTS = ("jaxpr_trace_duration", "jaxpr_to_mlir_module_duration", "backend_compile_duration")


def stds() -> np.ndarray:
    """Standard deviations of the trace-class prior: kernel and bias of every layer."""
    decay = 1 / np.arange(1.0, WIDTH + 1)
    return np.concatenate([np.tile(decay, INPUTS), decay, decay, [1.0]]).astype(np.float32)


def network(position: Any, x: Any) -> Any:
    """Outputs (point,) of the weights in flat order."""
    import jax.numpy as jnp

    cuts = np.cumsum([INPUTS * WIDTH, WIDTH, WIDTH])
    kernel, bias, last, offset = jnp.split(position, cuts)
    return jnp.tanh(x @ kernel.reshape(INPUTS, WIDTH) + bias) @ last + offset


def problem() -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets of a network drawn from the prior."""
    rng = np.random.default_rng(0)
    x = rng.normal(2.0, 0.5**0.5, (POINTS, INPUTS))
    weights = stds() * rng.normal(size=len(stds()))
    y = np.asarray(network(weights, x)) + NOISE * rng.normal(size=POINTS)
    return x.astype(np.float32), y.astype(np.float32)


def clocks() -> np.ndarray:
    """Seconds on the wall, and of this process on all processors."""
    return np.array([time.perf_counter(), time.process_time()])


def ours(kernel: str, num_steps: int) -> Callable[[int], dict[str, float]]:
    """A run by seed: seconds of the run and of its temperatures, and particle-steps."""
    from credence import Posterior, methods
    from credence.methods.smc.mutation import Mutation
    from credence.models import MLP, Normal, TraceClass

    posterior = Posterior(MLP(1, (WIDTH,)), TraceClass(2.0), Normal(NOISE), problem())
    mutation = Mutation(
        kernel=kernel, num_steps=num_steps, ess_target=ESS_TARGET, trajectory_length=0.15
    )
    method = methods.SMC(num_particles=PARTICLES, num_runs=1, mutation=mutation)

    def run(seed: int) -> dict[str, float]:
        start = clocks()
        ensemble = method.run(seed, posterior)
        run, cpu = clocks() - start
        temperatures = float(ensemble.scalars["num_temperatures"][0, 0])
        steps = PARTICLES * num_steps * temperatures
        leapfrogs = ensemble.cost.gradient_evaluations / POINTS / steps
        if kernel == "hmc":
            steps *= leapfrogs / LEAPFROGS
        phases = ensemble.cost.seconds
        return {
            "seconds": phases["temper"] + phases["sample"],
            "run": run,
            "cpu": cpu,
            "steps": steps,
            "temperatures": temperatures,
            "leapfrogs": leapfrogs,
        }

    return run


class State(NamedTuple):
    """State of a pCN step for BlackJAX."""

    position: Any
    logdensity: Any


def blackjax_pcn(log_prior: Callable) -> tuple[Callable, Callable]:
    """Step and init of pCN with the prior as reference, as BlackJAX's SMC calls them."""
    import jax
    import jax.numpy as jnp

    scale = jnp.asarray(stds())

    def init(position: Any, logdensity_fn: Callable) -> State:
        return State(position, logdensity_fn(position))

    def step(key: Any, state: State, logdensity_fn: Callable, step_size: Any) -> tuple[State, Any]:
        key_noise, key_accept = jax.random.split(key)
        noise = scale * jax.random.normal(key_noise, state.position.shape)
        proposal = jnp.sqrt(1 - step_size**2) * state.position + step_size * noise
        new = init(proposal, logdensity_fn)
        log_ratio = new.logdensity - log_prior(new.position)
        log_ratio -= state.logdensity - log_prior(state.position)
        is_accepted = jnp.log(jax.random.uniform(key_accept)) < log_ratio
        return jax.tree.map(partial(jnp.where, is_accepted), new, state), is_accepted

    return step, init


def blackjax_smc(kernel: str, num_steps: int, chunk: int) -> Callable[[int], dict[str, float]]:
    """The same by BlackJAX."""
    import blackjax
    import jax
    import jax.numpy as jnp
    from blackjax.smc import extend_params
    from blackjax.smc.resampling import systematic
    from jax.scipy.stats import norm

    x, y = map(jnp.asarray, problem())
    scale = jnp.asarray(stds())

    def log_prior(position: Any) -> Any:
        return jnp.sum(norm.logpdf(position, scale=scale))

    def log_likelihood(position: Any) -> Any:
        return jnp.sum(norm.logpdf(y, network(position, x), NOISE))

    settings = {"step_size": jnp.asarray(STEP_SIZES[kernel])}
    if kernel == "pcn":
        step, init = blackjax_pcn(log_prior)
    else:
        step, init = blackjax.hmc.build_kernel(), blackjax.hmc.init
        settings |= {"inverse_mass_matrix": (0.1 * scale) ** 2}
        settings |= {"num_integration_steps": jnp.asarray(LEAPFROGS)}
    smc = blackjax.adaptive_tempered_smc(
        log_prior,
        log_likelihood,
        step,
        init,
        extend_params(settings),  # type: ignore[arg-type]
        systematic,
        ESS_TARGET,
        num_mcmc_steps=num_steps,
        batch_size=chunk,
    )
    advance = jax.jit(smc.step)

    def run(seed: int) -> dict[str, float]:
        start, key, temperatures = clocks(), jax.random.key(seed), 0
        shape = PARTICLES, len(stds())
        state: Any = smc.init(scale * jax.random.normal(jax.random.fold_in(key, 0), shape))
        while state.tempering_param < 1:
            temperatures += 1
            state, _ = advance(jax.random.fold_in(key, temperatures), state)
        seconds, cpu = clocks() - start
        steps = PARTICLES * num_steps * temperatures
        return {
            "seconds": seconds,
            "run": seconds,
            "cpu": cpu,
            "steps": steps,
            "temperatures": temperatures,
            "leapfrogs": LEAPFROGS,
        }

    return run


def repetitions(kernel: str, num_steps: int, repeats: int, alone: bool) -> dict[str, list]:
    """Runs of every contender, taking turns; the first of each, which compiles, is not kept."""
    contenders = {"credence": ours(kernel, num_steps)}
    if not alone:
        contenders["BlackJAX"] = blackjax_smc(kernel, num_steps, 0)
        contenders["BlackJAX in chunks"] = blackjax_smc(kernel, num_steps, 16)
    for run in contenders.values():
        run(0)
    results = {name: [] for name in contenders}
    for seed in range(1, repeats + 1):
        for name, run in contenders.items():
            results[name].append(run(seed))
    return results


class Spans:
    """What JAX traced, lowered and compiled: (kind, program, start, end), outermost only."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, str, float, float]] = []

    def __call__(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        end = time.perf_counter()
        start = end - duration_secs
        for kind, name in zip(KINDS, EVENTS, strict=True):
            if event.endswith(name):
                program = str(kwargs.get("fun_name", "?")).removeprefix("jit(").rstrip(")")
                while kind == "trace" and self.spans and self.spans[-1][2] >= start:
                    self.spans.pop()
                self.spans.append((kind, program, start, end))


def compilation(num_steps: int) -> dict[str, dict[str, float]]:
    """Seconds by program and kind of the first run of this process."""
    import jax

    run, spans = ours("pcn", num_steps), Spans()
    jax.monitoring.register_event_duration_secs_listener(spans)
    run(0)
    seconds: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys((*KINDS, "n"), 0.0))
    for kind, program, start, end in spans.spans:
        seconds[program][kind] += end - start
        seconds[program]["n"] += kind == KINDS[-1]
    return seconds


def in_new_process(cores: list[int], cache: str, arguments: list[str]) -> Any:
    """What this script prints with these arguments, on these cores, a JAX device on each."""
    environment = {
        **os.environ,
        "JAX_NUM_CPU_DEVICES": str(len(cores)),
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    command = [sys.executable, __file__, *arguments, "--cores", *map(str, cores)]
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output)


def throughput(kernel: str, settings: argparse.Namespace, cores: list[int], cache: str) -> None:
    """Print the table of a kernel."""
    results: dict[str, list] = defaultdict(list)
    arguments = [kernel, "--steps", str(settings.steps), "--repeats", str(settings.repeats)]
    for _ in range(settings.rounds):
        for num_cores in range(1, min(len(cores), 2) + 1):
            found = in_new_process(cores[:num_cores], cache, arguments)
            for name, runs in found.items():
                results[f"{name}, {num_cores} core{'s' * (num_cores > 1)}"] += runs
    print(f"\n| {kernel} | us per particle-step | 10-90 % | run | CPU | temperatures | leapfrogs |")
    print("|---|---|---|---|---|---|---|")
    for name, runs in results.items():
        step, run, cpu = (
            np.array([1e6 * result[what] / result["steps"] for result in runs])
            for what in ("seconds", "run", "cpu")
        )
        temperatures, leapfrogs = (
            np.mean([result[what] for result in runs]) for what in ("temperatures", "leapfrogs")
        )
        spread = "-".join(f"{value:.1f}" for value in np.quantile(step, (0.1, 0.9)))
        count = f"{leapfrogs:.1f}" if kernel == "hmc" else ""
        print(
            f"| {name} | {np.median(step):.1f} | {spread} | {np.median(run):.1f} "
            f"| {np.median(cpu):.1f} | {temperatures:.0f} | {count} |"
        )


def compile_table(settings: argparse.Namespace, cores: list[int]) -> None:
    """Print seconds by program, cold and from the cache."""
    with tempfile.TemporaryDirectory() as cache:
        arguments = ["compile", "--steps", str(settings.steps)]
        cold, cached = (in_new_process(cores[:1], cache, arguments) for _ in range(2))
    print("\n| program | times | cold: trace, lower, compile | cached: trace, lower, read |")
    print("|---|---|---|---|")

    def total(seconds: dict[str, float]) -> float:
        return sum(seconds[kind] for kind in KINDS)

    def cell(seconds: dict[str, float]) -> str:
        return ", ".join(f"{seconds[kind]:.2f}" for kind in KINDS)

    def added(tables: list[dict[str, float]]) -> dict[str, float]:
        return {kind: sum(table[kind] for table in tables) for kind in (*KINDS, "n")}

    large = [program for program in cold if total(cold[program]) > 0.1]
    small = [program for program in cold if program not in large]
    rows = {program: (cold[program], cached.get(program, added([]))) for program in large}
    rows["the others"] = (
        added([cold[program] for program in small]),
        added([cached[program] for program in cached if program not in large]),
    )
    rows["all"] = added(list(cold.values())), added(list(cached.values()))
    for program, (first, second) in sorted(rows.items(), key=lambda row: total(row[1][0])):
        print(f"| {program} | {first['n']:.0f} | {cell(first)} | {cell(second)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description="Particles: time per step and to compile.")
    parser.add_argument("sections", nargs="*", metavar="pcn | hmc | compile", default=[])
    parser.add_argument("--steps", type=int, default=10, help="of the kernel per temperature")
    parser.add_argument("--repeats", type=int, default=5, help="runs per process")
    parser.add_argument("--rounds", type=int, default=3, help="processes")
    parser.add_argument("--cores", type=int, nargs="*", help=argparse.SUPPRESS)
    settings = parser.parse_args()
    sections = settings.sections or ["pcn", "hmc", "compile"]
    if settings.cores:
        os.sched_setaffinity(0, settings.cores)
        if sections == ["compile"]:
            print(json.dumps(compilation(settings.steps)))
        else:
            alone = len(settings.cores) > 1
            print(json.dumps(repetitions(sections[0], settings.steps, settings.repeats, alone)))
        return
    cores = sorted(os.sched_getaffinity(0))
    print(f"{vars(settings)} | {PARTICLES} particles, {INPUTS}-{WIDTH}-1, {POINTS} rows, noise")
    print(f"{NOISE}, ESS target {ESS_TARGET}, step sizes of BlackJAX {STEP_SIZES}, cores {cores}")
    before = os.getloadavg()
    with tempfile.TemporaryDirectory() as cache:
        for section in sections:
            if section == "compile":
                compile_table(settings, cores)
            else:
                throughput(section, settings, cores, cache)
    loads = " to ".join(f"{load[0]:.1f}" for load in (before, os.getloadavg()))
    print(f"\nLoad of the machine, {os.cpu_count()} cores, this script included: {loads}")


if __name__ == "__main__":
    main()
