"""How long the paper's experiment in the plane takes: Boltzmann-Gibbs jumps on three densities.

    JAX_NUM_CPU_DEVICES=2 python benchmarks/interacting.py

2000 particles, 10,000 iterations, the squared maximum mean discrepancy every 10 iterations, MALA
for particles and partners, one seed. The goal is 60 s on two cores for all three densities; the
number of devices is how many cores the particles are spread over. Compilation is shown apart. "CPU"
is processor time of all threads, compilation included, which the load of the machine moves less.
"""

import argparse
import time

import jax
import numpy as np

from credence.engine.clock import CompileClock
from credence_papers.nonlinear.densities import SAMPLERS, TARGETS, Effort, clouds
from credence_papers.nonlinear.plane_densities import mmd2_path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--particles", type=int, default=2000)
    parser.add_argument("--iterations", type=int, default=10_000)
    parser.add_argument("--samplers", default="BG")
    arguments = parser.parse_args()
    effort = Effort(arguments.particles, arguments.iterations, 10)
    wanted = arguments.samplers.split(";")
    print(f"{jax.local_device_count()} device(s): {jax.devices()[0].device_kind}")
    for sampler in (each for each in SAMPLERS if each.label in wanted):
        total, cpu = 0.0, time.process_time()
        for target in TARGETS:
            start, moving = time.perf_counter(), 0.0
            with CompileClock() as clock:
                found = []
                for draws in clouds(target, sampler, effort, 0):
                    before = time.perf_counter()
                    found.append(np.asarray(mmd2_path(draws, density=target.density)))
                    moving += time.perf_counter() - before
            seconds = time.perf_counter() - start - clock.seconds
            total += seconds
            print(
                f"{sampler.label}, {target.name}: {seconds:.1f} s, of which MMD {moving:.1f} s "
                f"(compiling included there); compilation {clock.seconds:.1f} s; "
                f"MMD^2 {np.mean(np.concatenate(found)[-100:]):.5f}"
            )
        cpu = time.process_time() - cpu
        print(f"{sampler.label}: {total:.1f} s without compilation, CPU {cpu:.1f} s")


if __name__ == "__main__":
    main()
