"""A coin for each particle against one coin per step: time of a network, and noise of a cloud.

    python benchmarks/interacting_coins.py

A network 13-64-32-1 on 400 rows, 16 particles, MALA with fresh partners: seconds, seconds of
processor time and gradients per step. Then the rings: 500 particles, fresh partners, 1500
iterations, four seeds, 1000 MMD^2 over iterations 150 to 300 and over the last half.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credence.density.posterior import Posterior
from credence.engine.blocks import init_states, run_block
from credence.kernels.base import Recipe
from credence.kernels.mcmc.mala import one_leapfrog
from credence.methods.interacting.auxiliary import MIXTURE, gaussian
from credence.methods.interacting.kernel import interacting
from credence.models import MLP, Gaussian, Normal
from credence_papers.nonlinear.densities import TARGETS, Effort, Sampler, clouds
from credence_papers.nonlinear.plane_densities import Density, mmd2_path

SEEDS = range(4)


@dataclass(frozen=True, kw_only=True)
class WithCoin(Sampler):
    """A sampler with one coin per step, or one for each particle."""

    synchronous: bool

    def recipe(self, density: Density) -> Recipe:
        recipe = super().recipe(density)
        static = {**dict(recipe.static), "synchronous": self.synchronous}
        return replace(recipe, static=tuple(sorted(static.items())))


def network(synchronous: bool) -> None:
    """400 steps of 16 particles."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 13)).astype(np.float32)
    y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=400)
    posterior = Posterior(MLP(1, hidden=(64, 32)), Gaussian(), Normal(0.1), (x, y))
    num = posterior.num_weights
    static = {
        "auxiliary": MIXTURE,
        "auxiliary_kernel": None,
        "jump": "ar",
        "kernel": one_leapfrog,
        "synchronous": synchronous,
    }
    recipe = Recipe(
        interacting, posterior.log_density, tuple(sorted(static.items())), interacts=True
    )
    settings = {
        "arrays": gaussian(jnp.zeros(num), jnp.full(num, 0.1)),
        "settings": {"step_size": jnp.asarray(1e-3), "inverse_mass": jnp.ones(num)},
        "auxiliary_settings": {},
        "jump_probability": jnp.asarray(0.1),
    }
    start = jnp.asarray(0.1 * rng.normal(size=(16, num)), jnp.float32)
    states = init_states(start, settings, posterior.data, recipe=recipe)

    def block(seed: int) -> Any:
        block = run_block(
            jax.random.key(seed),
            states,
            settings,
            posterior.data,
            recipe=recipe,
            num_draws=20,
            thinning=20,
            batch_size=None,
            devices=1,
            wanted=20,
        )
        return jax.block_until_ready(block)

    block(0)  # compiles
    wall, cpu = time.perf_counter(), time.process_time()
    gradients = float(np.mean(np.asarray(block(1).info["num_gradients"]))) / 20
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"network, {synchronous=}: {wall:.2f} s, CPU {cpu:.2f} s, {gradients:.2f} gradients/step")


def rings(jump: str, synchronous: bool) -> None:
    """Noise of the cloud."""
    target = next(each for each in TARGETS if each.name == "rings")
    label, effort = "", Effort(500, 1500, 30)
    sampler = WithCoin(label=label, gradients=2, jump=jump, is_fresh=True, synchronous=synchronous)
    paths = [
        np.concatenate(
            [
                np.asarray(mmd2_path(draws, density=target.density))
                for draws in clouds(target, sampler, effort, seed)
            ]
        )
        for seed in SEEDS
    ]
    for name, part in (("iterations 150 to 300", slice(4, 10)), ("last half", slice(-25, None))):
        found = 1000 * np.array([path[part].mean() for path in paths])
        error = found.std(ddof=1) / len(found) ** 0.5
        print(f"rings, {jump}, {synchronous=}, {name}: {found.mean():.2f} ± {error:.2f}")


if __name__ == "__main__":
    for one_coin in (False, True, False, True):
        network(one_coin)
    for kind in ("bg", "ar"):
        for one_coin in (False, True):
            rings(kind, one_coin)
