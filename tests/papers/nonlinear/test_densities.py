"""The densities in the plane: embeddings, exact draws, and the study that runs on them."""

import json
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credence.ensembles.diagnostics.discrepancy import mmd2
from credence.errors import InputError
from credence_papers.cache import digest
from credence_papers.nonlinear.densities import SAMPLERS, TARGETS, Effort, clouds
from credence_papers.nonlinear.density_study import DENSITIES
from credence_papers.nonlinear.plane_densities import circle, grid, mean_of_pairs, mmd2_path, rings

ALL = {"circle": circle(), "rings": rings(), "grid": grid()}
densities = pytest.mark.parametrize("name", ALL)


def kernel(squares: Any) -> Any:
    return np.exp(-squares) + np.exp(-2 * squares)


def path(draws: Any, density: Any) -> np.ndarray:
    """MMD^2 of samples (sample, point, 2)."""
    return np.asarray(mmd2_path(jnp.asarray(draws).swapaxes(0, 1), density=density))


@densities
@pytest.mark.usefixtures("float64")
def test_embedding_is_the_mean_kernel_of_exact_draws(name: str) -> None:
    density, x = ALL[name], np.array([[0.1, 0.2], [1.5, -1.0], [4.0, 3.0]])
    draws = density.sample(0, 100_000)
    values = kernel(np.sum((x[:, None] - draws) ** 2, axis=-1))
    error = values.std(axis=1, ddof=1) / len(draws) ** 0.5
    z = (np.asarray(density.embedding(jnp.asarray(x))) - values.mean(axis=1)) / (error + 1e-12)
    pairs = kernel(np.sum((draws[::2] - draws[1::2]) ** 2, axis=-1))
    own = (density.self_similarity - pairs.mean()) / (pairs.std() / len(pairs) ** 0.5)
    print(f"{name}: z {np.abs(z).max():.1f}, {own:.1f}")
    assert np.abs(z).max() < 4.5
    assert abs(own) < 4.5


@densities
@pytest.mark.usefixtures("float64")
def test_exact_draws_are_at_distance_zero(name: str) -> None:
    """N6 for these densities: unbiased; with the diagonal, or a tenth too wide, it is not."""
    density = ALL[name]
    draws = np.stack([density.sample(seed, 400) for seed in range(100)])
    found, wide = path(draws, density), path(1.1 * draws, density)
    diagonal = found + 2 / 400  # k(x, x) = 2 for one of a point's 400 pairs, about
    z = [each.mean() / (each.std(ddof=1) / 10) for each in (found, diagonal, wide)]
    print(f"{name}: z {z[0]:.1f}; with the diagonal {z[1]:.0f}; a tenth too wide {z[2]:.0f}")
    assert abs(z[0]) < 4.5
    assert min(z[1:]) > 8


@pytest.mark.usefixtures("float64")
def test_rings_without_the_jacobian_are_caught() -> None:
    """Equal masses on both rings, as in the paper's code: MMD^2 = .017."""
    rng = np.random.default_rng(0)
    radius = rng.choice([1.0, 2.0], size=(20, 2000)) + rng.normal(size=(20, 2000)) / 8
    angle = rng.uniform(0, 2 * np.pi, size=radius.shape)
    draws = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    assert np.mean(path(draws, rings())) == pytest.approx(0.0166, abs=0.002)
    masses = np.mean(np.linalg.norm(rings().sample(0, 100_000), axis=-1) > 1.5)
    assert masses == pytest.approx(2 / 3, abs=0.007)


@densities
@pytest.mark.usefixtures("float64")
def test_log_density_is_that_of_the_draws(name: str) -> None:
    """E of its gradient is zero, and of position times gradient minus one (Stein's identity)."""
    density = ALL[name]
    x = jnp.asarray(density.sample(3, 40_000))
    gradient = np.asarray(jax.vmap(jax.grad(density.log_density), (0, None))(x, density.data))
    for values in (gradient, 1 + np.asarray(x) * gradient):
        z = values.mean(axis=0) / (values.std(axis=0) / len(x) ** 0.5)
        assert np.abs(z).max() < 4.5
    wrong = 1 + 2 * np.asarray(x) * gradient  # of the density squared
    assert np.abs(wrong.mean(axis=0) / (wrong.std(axis=0) / len(x) ** 0.5)).max() > 8


@pytest.mark.parametrize("num", [16, 21])
def test_blocks_of_pairs_are_all_pairs(num: int) -> None:
    x = np.random.default_rng(0).normal(size=(num, 2))
    plain = kernel(np.sum((x[:, None] - x) ** 2, axis=-1))
    exact = (plain.sum() - 2 * num) / (num * (num - 1))
    found = mean_of_pairs(jnp.asarray(x), lambda s: jnp.exp(-s) + jnp.exp(-2 * s))
    np.testing.assert_allclose(found, exact, rtol=1e-5)


@pytest.mark.slow
def test_embedded_distance_is_that_from_many_draws() -> None:
    density = grid()
    x = 1.3 * density.sample(0, 500)
    far = mmd2(x, density.sample(1, 20_000), kernel)
    assert path(x[None], density)[0] == pytest.approx(far, abs=5e-4)


TINY = replace(
    DENSITIES,
    efforts={"smoke": Effort(16, 20, 2)},
    samplers=SAMPLERS[:1] + SAMPLERS[2:4] + SAMPLERS[5:],
)


@pytest.mark.slow
def test_study_writes_page_and_results_and_goes_on(tmp_path: Any) -> None:
    summary = TINY.run(tmp_path, size="smoke", problems=("rings",))
    assert [row["sampler"] for row in summary["densities"]] == [s.label for s in TINY.samplers]
    assert all(len(row["mean"]) == 10 for row in summary["densities"])
    page = (tmp_path / "report.html").read_text()
    assert "two rings" in page
    assert page.count("<svg") == 2
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}
    again = TINY.run(tmp_path, size="smoke", problems=("rings",))
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()} == times
    assert json.dumps(again) == json.dumps(summary)
    with pytest.raises(InputError, match="no problem 'square'"):
        TINY.run(tmp_path, size="smoke", problems=("square",))


@pytest.mark.slow
@pytest.mark.parametrize("label", ["BG, fresh partners", "AR, fresh partners"])
def test_long_runs_end_at_the_density(label: str) -> None:
    """Long-run MMD^2 of 8 seeds: AR to fresh partners is exact, BG has its O(1/N)."""
    target = next(target for target in TARGETS if target.name == "rings")
    (sampler,) = (each for each in SAMPLERS if each.label == label)
    effort = Effort(400, 3000, 300)
    ends = []
    for seed in range(8):
        *_, last = clouds(target, sampler, effort, seed)
        ends.append(path(np.asarray(last[:, -1])[None], target.density)[0])
    z = np.mean(ends) / (np.std(ends, ddof=1) / len(ends) ** 0.5)
    print(f"{label}: MMD^2 {np.mean(ends):.5f}, z {z:.1f}")
    assert abs(np.mean(ends)) < 0.004
    if label.startswith("AR"):
        assert abs(z) < 4.5


def test_runs_are_found_again_by_another_process() -> None:
    """What names a run holds no address, and no text that changes nothing."""
    names = {digest([target, sampler]) for target in TARGETS for sampler in SAMPLERS}
    assert len(names) == len(TARGETS) * len(SAMPLERS)
    (first, *_) = TARGETS
    assert digest(replace(first, description="x", published="y")) == digest(first)
    assert digest(replace(first, auxiliary_variance=3.0)) != digest(first)
