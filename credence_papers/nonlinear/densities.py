"""Samplers on densities in the plane, and one run of each: clouds, and how far they are off."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from credence.engine.blocks import chain_devices, init_states, run_block, spread
from credence.ensembles.diagnostics.discrepancy import inverse_multiquadric_kernel, mmd2
from credence.kernels.base import Kernel, Recipe, Settings
from credence.kernels.mcmc.mala import mala
from credence.kernels.sgmcmc.ula import ula
from credence.methods.interacting.auxiliary import MIXTURE, gaussian
from credence.methods.interacting.kernel import interacting
from credence_papers.nonlinear.plane_densities import (
    Density,
    circle,
    grid,
    mmd2_path,
    rings,
    uniform_start,
)
from credence_papers.nonlinear.published_mala import published_mala

STEP = 1e-3
"""tau of the proposal x + tau grad + sqrt(2 tau) noise."""
JUMP_PROBABILITY = 0.1
BLOCKS = 10
"""Compiled blocks of a run."""
NUM_EXACT = 10_000
"""Exact draws that the other kernel's discrepancy is taken from."""
LANGEVIN: dict[str, Callable[..., Kernel]] = {
    "mala": mala,
    "ula": ula,
    "published": published_mala,
}
"""Langevin kernels; the published one has a fault."""


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """A row of the table.

    Args:
        gradients: of the target, per iteration and particle.
        jump: "bg" or "ar"; None for a linear kernel.
        is_fresh: partners are drawn afresh; otherwise they move as the particles do.
        langevin: how particles move, one of `LANGEVIN`.
    """

    label: str
    gradients: int
    jump: str | None = None
    is_fresh: bool = False
    langevin: str = "mala"

    def recipe(self, density: Density) -> Recipe:
        """The recipe by which a block of steps builds the sampler's kernel."""
        langevin = LANGEVIN[self.langevin]
        if self.jump is None:
            return Recipe(langevin, density.log_density)
        static = (
            ("auxiliary", MIXTURE),
            ("auxiliary_kernel", None if self.is_fresh else langevin),
            ("jump", self.jump),
            ("kernel", langevin),
        )
        return Recipe(interacting, density.log_density, static, interacts=True)

    def settings(self, auxiliary_variance: float) -> Settings:
        """Settings of the kernel; h = 2 tau in our units."""
        step = {"step_size": jnp.asarray(2 * STEP), "inverse_mass": jnp.ones(2)}
        if self.jump is None:
            return step
        return {
            "arrays": gaussian(jnp.zeros(2), jnp.full(2, auxiliary_variance**0.5)),
            "settings": step,
            "auxiliary_settings": {} if self.is_fresh else step,
            "jump_probability": jnp.asarray(JUMP_PROBABILITY),
        }


SAMPLERS = (
    Sampler(label="MALA", gradients=1),
    Sampler(label="ULA", gradients=1, langevin="ula"),
    Sampler(label="BG", gradients=2, jump="bg"),
    Sampler(label="AR", gradients=2, jump="ar"),
    Sampler(label="BG, fresh partners", gradients=2, jump="bg", is_fresh=True),
    Sampler(label="AR, fresh partners", gradients=2, jump="ar", is_fresh=True),
    Sampler(label="MALA, faulty as published", gradients=1, langevin="published"),
    Sampler(label="BG, faulty as published", gradients=2, jump="bg", langevin="published"),
    Sampler(label="AR, faulty as published", gradients=2, jump="ar", langevin="published"),
)


@dataclass(frozen=True, kw_only=True)
class Target:
    """A density, its auxiliary N(0, variance I), and what the paper says of it."""

    name: str
    description: str = field(compare=False)
    density: Density
    auxiliary_variance: float
    published: str = field(compare=False)


TARGETS = (
    Target(
        name="circle",
        description="8 Gaussians on radius 2",
        density=circle(),
        auxiliary_variance=4.0,
        published="a nonlinear sampler ends lower than MALA, by the least of the three",
    ),
    Target(
        name="rings",
        description="two rings of radius 1 and 2",
        density=rings(),
        auxiliary_variance=4.0,
        published="nonlinear better than MALA, 'particularly evident'",
    ),
    Target(
        name="grid",
        description="25 Gaussians on a grid with spacing 2",
        density=grid(),
        auxiliary_variance=20.0,
        published="nonlinear better than MALA, 'particularly evident'",
    ),
)


@dataclass(frozen=True)
class Effort:
    """How much is run: the discrepancy is taken every `every` iterations."""

    particles: int
    iterations: int
    every: int

    @property
    def num_draws(self) -> int:
        """Clouds whose discrepancy is taken: as many in every block."""
        return BLOCKS * (self.iterations // self.every // BLOCKS)


def measured(target: Target, sampler: Sampler, effort: Effort, seed: int) -> dict[str, Any]:
    """One run: the discrepancy along the way, that of another kernel at the end, and seconds."""
    start, found, last = time.perf_counter(), [], np.zeros((0, 2))
    for draws in clouds(target, sampler, effort, seed):
        found.append(np.asarray(mmd2_path(draws, density=target.density)))
        last = np.asarray(draws[:, -1], float)
    seconds = time.perf_counter() - start
    exact = target.density.sample(seed, NUM_EXACT)
    far = mmd2(last, exact, inverse_multiquadric_kernel())
    return {"mmd2": np.concatenate(found).tolist(), "imq": far, "seconds": seconds}


def clouds(
    target: Target, sampler: Sampler, effort: Effort, seed: int
) -> Iterator[Float[Array, "particle draw 2"]]:
    """Every so-many-th cloud of a run, block by block; particles and partners start uniform on a
    square."""
    recipe, settings = sampler.recipe(target.density), sampler.settings(target.auxiliary_variance)
    key_start, key_partners, key_run = jax.random.split(jax.random.key(seed), 3)
    data, devices = target.density.data, chain_devices(effort.particles)
    positions = uniform_start(key_start, effort.particles)
    states = init_states(positions, settings, data, recipe=recipe)
    if sampler.jump is not None:
        elsewhere = uniform_start(key_partners, effort.particles)
        partners = init_states(elsewhere, settings, data, recipe=recipe)
        states = states._replace(auxiliary=partners.auxiliary)
    states = spread(states, devices)
    num_draws = effort.num_draws // BLOCKS
    for index in range(BLOCKS):
        block = run_block(
            jax.random.fold_in(key_run, index),
            states,
            settings,
            data,
            recipe=recipe,
            num_draws=num_draws,
            thinning=effort.every,
            batch_size=None,
            devices=devices,
            wanted=num_draws,
        )
        states = block.states
        yield jnp.asarray(np.asarray(block.draws))


NUM_REPEATS = 20
"""Clouds of exact draws that tell the noise of MMD^2."""


def noise(density: Density, num: int) -> float:
    """Standard deviation of MMD^2 of so many exact draws."""
    draws = np.stack([density.sample(1000 + each, num) for each in range(NUM_REPEATS)], axis=1)
    return float(np.std(mmd2_path(jnp.asarray(draws, float), density=density), ddof=1))
