"""A ladder of tempered particles: the law of the coldest rung, and mistakes that change it."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from tools.clouds import OUTER, RADII, rings, run_clouds
from tools.targets import correlated, gaussian_log_density
from tools.two_state import NOTHING

from credence.kernels.base import Kernel
from credence.kernels.mcmc.mala import mala
from credence.methods.interacting import tempered_ladder as module
from credence.methods.interacting.tempered_ladder import tempered_ladder

pytestmark = [pytest.mark.usefixtures("float64"), pytest.mark.rotates(3)]

TARGET = correlated(2)
RATIO, NUM_RUNGS, JUMP_PROBABILITY = 2.0, 2, 0.3


def ladder(jump: str = "ar", **settings: Any) -> Kernel:
    """The ladder on a correlated Gaussian, temperatures 1, 2 and 4."""
    metric = jnp.asarray(np.diag(TARGET.cholesky @ TARGET.cholesky.T))
    return tempered_ladder(
        gaussian_log_density,
        ratio=RATIO,
        kernel=mala,
        rungs=[
            {"step_size": 0.5 * RATIO**rung, "inverse_mass": metric}
            for rung in range(NUM_RUNGS + 1)
        ],
        jump_probability=JUMP_PROBABILITY,
        jump=jump,
        axes=("particle",),
        **settings,
    )


def rungs_z(built: Kernel, *, num_clouds: int = 300, num: int = 32) -> list[float]:
    """z of every rung's mean square, whitened, against 2; coldest first; errors between clouds."""
    starts = TARGET.sample(1, num_clouds * num).reshape(num_clouds, num, 2)
    state, info = run_clouds(built, starts, starts, TARGET.data, num_steps=150)
    assert np.all(info.is_finite)
    found = []
    for rung in range(NUM_RUNGS + 1):
        whitened = TARGET.whiten(np.asarray(state.position).reshape(-1, 2)) / RATIO ** (rung / 2)
        means = np.mean(np.sum(whitened**2, axis=-1).reshape(num_clouds, num), axis=1)
        found.append(float((means.mean() - 2) / (means.std(ddof=1) / num_clouds**0.5)))
        state = getattr(state, "auxiliary", None)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("synchronous", [False, True])
def test_every_level_has_its_power_of_the_target(synchronous: bool) -> None:
    found = rungs_z(ladder(synchronous=synchronous))
    print("z by rung:", *(f"{z:.1f}" for z in found))
    assert max(map(abs, found)) < 4.5


@pytest.mark.sized
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("upside down", lambda right: lambda *at: -right(*at)),
        ("uniform", lambda right: lambda *at: 0 * at[0]),
        ("a rung too hot", lambda right: lambda log_target, *at: right(log_target / RATIO, *at)),
        ("a rung too cold", lambda right: lambda log_target, *at: right(log_target * RATIO, *at)),
    ],
)
def test_potentials_of_the_wrong_level_are_caught(
    name: str, wrong: Any, monkeypatch: Any, size_of: Any
) -> None:
    honest = module.power

    def planted(density: Any) -> Any:
        right = honest(density)
        return right._replace(log_potential=wrong(right.log_potential))

    monkeypatch.setattr(module, "power", planted)
    found = rungs_z(ladder())
    size_of(f"potential {name}", on="tempered cloud", of="mean", standard_errors=abs(found[0]))
    assert abs(found[0]) > 8


@pytest.mark.rotates(3)
def test_work_and_info_are_those_of_all_levels() -> None:
    starts = TARGET.sample(2, 120).reshape(3, 40, 2)
    state, info = run_clouds(ladder(), starts, starts, TARGET.data, num_steps=4)
    assert np.all(info.num_gradients == 2 * NUM_RUNGS + 1)
    cold, middle, hot = state, state.auxiliary, state.auxiliary.auxiliary
    log_density = gaussian_log_density(hot.position[0, 0], TARGET.data)
    np.testing.assert_allclose(hot.log_density[0, 0], log_density / RATIO**2)
    np.testing.assert_allclose(info.log_potential[0, -1, 0], (1 / 2 - 1 / 4) * log_density)
    np.testing.assert_allclose(middle.past.log_potential[0, 0, 0], info.log_potential[0, -1, 0])
    expected = (1 - 1 / 2) * gaussian_log_density(middle.position[0, 0], TARGET.data)
    np.testing.assert_allclose(cold.past.log_potential[0, 0, 0], expected)


@pytest.mark.slow
@pytest.mark.parametrize("jump", ["bg", "ar"])
def test_rings_far_from_the_start(jump: str) -> None:
    """2/3 of the mass is on the outer ring; all rungs start at (5, 5)."""
    ratio, num_rungs = 4.0, 3
    starts = 5 + np.random.default_rng(6).normal(size=(8, 400, 2))

    def outer(probability: float) -> tuple[float, float]:
        built = tempered_ladder(
            rings,
            ratio=ratio,
            kernel=mala,
            rungs=[
                {"step_size": 0.006 * ratio**rung, "inverse_mass": jnp.ones(2)}
                for rung in range(num_rungs + 1)
            ],
            jump_probability=probability,
            jump=jump,
            axes=("particle",),
        )
        states, _ = run_clouds(built, starts, starts, NOTHING, num_steps=1500)
        share = np.mean(np.linalg.norm(states.position, axis=-1) > np.mean(RADII), axis=1)
        error = np.std(share, ddof=1) / len(share) ** 0.5
        return float(share.mean()), float((share.mean() - OUTER) / error)

    (share, z), (control, planted) = outer(0.1), outer(1e-9)
    print(f"{jump}: P(|z| > 1.5) = {share:.4f} (z {z:.1f}); MALA {control:.4f} (z {planted:.0f})")
    assert abs(z) < 4.5
    assert abs(planted) > 8
