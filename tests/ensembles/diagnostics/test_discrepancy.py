"""Unbiased MMD² of Gaussian samples against its exact value."""

import numpy as np
import pytest
from scipy.integrate import quad
from tools.diagnostics_samples import REFUSED, z_score

from credence.ensembles.diagnostics import (
    discrepancy,
    gaussian_kernel,
    inverse_multiquadric_kernel,
    mmd2,
)

SHIFT = np.array([0.6, 0.0, -0.3])


def gaussian_mmd2(width, shift=SHIFT):
    """MMD² between N(0, I) and N(shift, I), Gaussian kernel."""
    total = width**2 + 2
    peak = (width**2 / total) ** (len(shift) / 2)
    return 2 * peak * (1 - np.exp(-(shift @ shift) / (2 * total)))


def inverse_multiquadric_mmd2(shift=SHIFT):
    """The kernel is a mixture of Gaussians: (1 + d²)^(-1/2) = ∫ t^(-1/2) exp(-t - t d²) dt / √π."""
    return quad(
        lambda r: 2 / np.sqrt(np.pi) * np.exp(-(r**2)) * gaussian_mmd2(1 / (r * np.sqrt(2)), shift),
        0,
        np.inf,
    )[0]


def with_diagonal(x, y, kernel):
    """The planted error: the biased estimate, which pairs every point with itself."""

    def mean(a, b):
        return kernel(((a[:, None] - b) ** 2).sum(axis=-1)).mean()

    return mean(x, x) + mean(y, y) - 2 * mean(x, y)


def replicates(estimate, kernel, shift=SHIFT, number=300):
    rng = np.random.default_rng(0)
    samples = [(rng.normal(size=(40, 3)), shift + rng.normal(size=(50, 3))) for _ in range(number)]
    return [estimate(x, y, kernel) for x, y in samples]


@pytest.mark.parametrize(
    ("kernel", "exact"),
    [
        (gaussian_kernel(1.5), gaussian_mmd2(1.5)),
        (gaussian_kernel(0.5), gaussian_mmd2(0.5)),
        (inverse_multiquadric_kernel(), inverse_multiquadric_mmd2()),
        (
            lambda d2: np.exp(-d2) + np.exp(-2 * d2),
            gaussian_mmd2(np.sqrt(1 / 2)) + gaussian_mmd2(1 / 2),
        ),
    ],
    ids=["gaussian", "narrow", "inverse multiquadric", "sum"],
)
def test_mean_is_exact(kernel, exact):
    assert z_score(replicates(mmd2, kernel), exact) < 4.5
    assert z_score(replicates(with_diagonal, kernel), exact) > 8  # planted: diagonal included


def test_equal_laws_have_mean_zero():
    kernel = gaussian_kernel(1.0)
    values = replicates(mmd2, kernel, shift=np.zeros(3))
    assert min(values) < 0
    assert z_score(values, 0) < 4.5
    assert z_score(replicates(mmd2, kernel, shift=np.array([0.6, 0, 0])), 0) > 8  # planted: shifted


def test_scale_is_a_unit_of_length():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(10, 2)), rng.normal(size=(12, 2))
    for kernel in (gaussian_kernel, inverse_multiquadric_kernel):
        assert mmd2(3 * x, 3 * y, kernel(3.0)) == pytest.approx(mmd2(x, y, kernel(1.0)))
        assert mmd2(3 * x, 3 * y, kernel(1.0)) != pytest.approx(mmd2(x, y, kernel(1.0)))


def test_blocks_do_not_change_the_result(monkeypatch):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(31, 2)), rng.normal(size=(17, 2))
    whole = mmd2(x, y, gaussian_kernel(1.0))
    monkeypatch.setattr(discrepancy, "MAX_PAIRS", 40)
    assert mmd2(x, y, gaussian_kernel(1.0)) == pytest.approx(whole, rel=1e-12)


def test_refuses_bad_input():
    x, kernel = np.random.default_rng(3).normal(size=(5, 2)), gaussian_kernel(1.0)
    with pytest.raises(ValueError, match="at least 2 rows"):
        mmd2(x, x[:1], kernel)
    with pytest.raises(REFUSED):
        mmd2(x, x[:, :1], kernel)
    with pytest.raises(ValueError, match="y has 10 values that are not finite"):
        mmd2(x, x * np.nan, kernel)
    for make in (gaussian_kernel, inverse_multiquadric_kernel):
        for wrong in (0.0, -1.0, float("nan")):
            with pytest.raises(ValueError, match="must be > 0"):
                make(wrong)
