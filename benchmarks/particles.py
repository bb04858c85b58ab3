"""Sequential Monte Carlo beside BlackJAX: microseconds per particle-step, and compile times.

    python benchmarks/particles.py --out FOLDER [pcn] [hmc] [compile]
    python benchmarks/particles.py --out FOLDER [--steps 10] [--repeats 5] [--rounds 3]
    python benchmarks/particles.py --out FOLDER --table

256 particles, network 10-64-1 of tanh, 200 rows, trace-class prior (alpha = 2), noise .1, an
ESS target of one half, systematic resampling. Per particle-step: one step of the kernel, all
temperatures of a run, with what happens between them (weighing, resampling, and for ours tuning
and the driver) counted. "Whole run" is all of `SMC.run`, from the prior draws to the ensemble;
"CPU" is its processor time, of all threads, which the load of the machine moves less.

BlackJAX: `adaptive_tempered_smc`, its step jitted, the network written as one would first write it;
a fixed step size, which its cost does not depend on; once more with chunks of 16 (`batch_size`).
HMC takes 5 leapfrogs there; ours tunes their number (see the table), so both are per 5 leapfrogs.

Repetitions take turns within a process and rounds (processes) take turns between one core and two,
where there are two. Compilation: all programs of a run of ours with pCN, in a new process with an
empty cache, then in another. What is done already is in FOLDER/rows.jsonl and is not done again.
Takes up to half an hour on two idle cores; needs Linux.
"""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rows import commits, done, in_new_process, markdown, measure, parser_of

PARTICLES, POINTS, INPUTS, WIDTH, NOISE = 256, 200, 10, 64, 0.1
LEAPFROGS, ESS_TARGET = 5, 0.5
STEP_SIZES = {"pcn": 0.05, "hmc": 0.3}
SECTIONS = ("pcn", "hmc", "compile")
EVENTS = {
    "jaxpr_trace_duration": "trace",
    "jaxpr_to_mlir_module_duration": "lower",
    "backend_compile_duration": "compile",
}
"""Stages of compilation, by the names that JAX has for them."""


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
    """A run by seed: its seconds, those of its temperatures, and its particle-steps."""
    from credence import Posterior, methods
    from credence.methods.smc.mutation import Mutation
    from credence.models import MLP, Normal, TraceClass

    posterior = Posterior(MLP(1, (WIDTH,)), TraceClass(2.0), Normal(NOISE), problem())
    length = 0.15 if kernel == "hmc" else None
    mutation = Mutation(
        kernel=kernel, num_steps=num_steps, ess_target=ESS_TARGET, trajectory_length=length
    )
    method = methods.SMC(num_particles=PARTICLES, num_runs=1, mutation=mutation)

    def run(seed: int) -> dict[str, float]:
        start = clocks()
        ensemble = method.run(seed, posterior)
        seconds, cpu_seconds = (clocks() - start).tolist()
        temperatures = float(ensemble.scalars["num_temperatures"][0, 0])
        steps = PARTICLES * num_steps * temperatures
        leapfrogs = ensemble.cost.gradient_evaluations / POINTS / steps
        phases = ensemble.cost.seconds
        return {
            "seconds": seconds,
            "step_seconds": phases["temper"] + phases["sample"],
            "cpu_seconds": cpu_seconds,
            "particle_steps": steps * (leapfrogs / LEAPFROGS if kernel == "hmc" else 1),
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
        seconds, cpu_seconds = (clocks() - start).tolist()
        return {
            "seconds": seconds,
            "step_seconds": seconds,
            "cpu_seconds": cpu_seconds,
            "particle_steps": PARTICLES * num_steps * temperatures,
            "temperatures": temperatures,
            "leapfrogs": LEAPFROGS if kernel == "hmc" else 0,
        }

    return run


def repetitions(case: dict[str, Any]) -> dict[str, Any]:
    """Runs of every sampler, taking turns; the first of each, which compiles, is not kept."""
    kernel, num_steps = case["kind"], case["num_steps"]
    samplers = {"Credence": ours(kernel, num_steps)}
    if case["num_cores"] == 1:
        samplers["BlackJAX"] = blackjax_smc(kernel, num_steps, 0)
        samplers["BlackJAX, `batch_size=16`"] = blackjax_smc(kernel, num_steps, 16)
    for run in samplers.values():
        run(0)
    return {
        "runs": [
            {"sampler": name, "seed": seed, **run(seed)}
            for seed in range(1, case["repeats"] + 1)
            for name, run in samplers.items()
        ]
    }


def compilation(case: dict[str, Any]) -> dict[str, Any]:
    """Seconds of each stage with an empty cache, and with the one that is left."""
    with tempfile.TemporaryDirectory() as cache:
        return {
            name: in_new_process(stages, case["num_steps"], num_cores=1, cache=cache)
            for name in ("cold", "cached")
        }


def stages(num_steps: int) -> dict[str, float]:
    """Seconds of the stages of compilation in the first run of this process."""
    import jax

    spans: list[tuple[str, float, float]] = []  # stage, start, seconds; outermost only

    def note(event: str, duration_secs: float, **kwargs: str | int) -> None:
        start = time.perf_counter() - duration_secs
        stage = EVENTS.get(event.rpartition("/")[2])
        while stage == "trace" and spans and spans[-1][1] >= start:
            spans.pop()
        if stage:
            spans.append((stage, start, duration_secs))

    run = ours("pcn", num_steps)
    jax.monitoring.register_event_duration_secs_listener(note)
    run(0)
    return {
        stage: sum(seconds for name, _, seconds in spans if name == stage)
        for stage in EVENTS.values()
    }


def measured(case: dict[str, Any]) -> dict[str, Any]:
    """Runs with a kernel, or their compilation."""
    return compilation(case) if case["kind"] == "compile" else repetitions(case)


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each kernel, sampler and number of cores; then the stages of compilation."""
    heads = ("kernel, steps", "sampler", "cores", "us per particle-step", "10-90 %", "whole run",
             "CPU", "temperatures", "leapfrogs per step")  # fmt: skip
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        for run in row.get("runs", ()):
            kernel = f"{row['kind']}, {row['num_steps']}"
            groups.setdefault((kernel, run["sampler"], str(row["num_cores"])), []).append(run)
    lines = markdown(heads, [[*name, *cells(runs)] for name, runs in groups.items()])
    compiled = [
        [name, *(f"{row[name][stage]:.2f}" for stage in EVENTS.values())]
        for row in rows
        if row["kind"] == "compile"
        for name in ("cold", "cached")
    ]
    heads = ("compilation, seconds", "trace", "lower", "compile or read")
    lines += ["", *markdown(heads, compiled)]
    is_hmc = any(kernel.startswith("hmc") for kernel, *_ in groups)
    told = f"Medians, HMC per {LEAPFROGS} leapfrogs." if is_hmc else "Medians."
    return [*lines, "", f"{told} Commit {commits(rows)}."]


def cells(runs: list[dict[str, Any]]) -> list[str]:
    """Medians over runs, times in microseconds per particle-step."""
    step, whole, cpu = (
        [1e6 * run[name] / run["particle_steps"] for run in runs]
        for name in ("step_seconds", "seconds", "cpu_seconds")
    )
    low, high = np.quantile(step, (0.1, 0.9))
    temperatures, leapfrogs = (
        np.mean([run[name] for run in runs]) for name in ("temperatures", "leapfrogs")
    )
    times = [f"{np.median(each):.1f}" for each in (step, whole, cpu)]
    counts = f"{temperatures:.0f}", f"{leapfrogs:.1f}" if leapfrogs else ""
    return [times[0], f"{low:.1f}-{high:.1f}", *times[1:], *counts]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("sections", nargs="*", metavar="pcn | hmc | compile")
    parser.add_argument("--steps", type=int, default=10, help="of the kernel per temperature")
    parser.add_argument("--repeats", type=int, default=5, help="runs per process")
    parser.add_argument("--rounds", type=int, default=3, help="processes")
    options = parser.parse_args()
    cases = [case for kind in options.sections or SECTIONS for case in cases_of(kind, options)]
    measure(options.out, () if options.table else cases, measured)
    print("\n".join(table_lines(done(options.out))))


def cases_of(kind: str, options: Any) -> list[dict[str, Any]]:
    """Cases of a section: rounds that take turns between numbers of cores, or one of all stages."""
    from credence.environment import num_cores

    about = {"kind": kind, "num_steps": options.steps}
    if kind == "compile":
        return [{**about, "num_cores": 1}]
    return [
        {**about, "repeats": options.repeats, "round": number, "num_cores": count}
        for number in range(options.rounds)
        for count in (1, 2)[: num_cores()]
    ]


if __name__ == "__main__":
    main()
