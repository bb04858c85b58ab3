"""Priors against scipy: densities with their constants, samples, groups."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from tools.exact import assert_mean

from credence.errors import InputError
from credence.models import MLP, Gaussian, HierarchicalGamma, Layer, Prior, TraceClass
from credence.models.priors import NotTraceClassWarning

pytestmark = pytest.mark.usefixtures("checked_keys", "float64")

NETWORK = MLP(2, hidden=(4,))
FAN_INS = (3, 0, 4, 0)
"""Inputs of kernel, bias, kernel, bias, for 3 features."""


def weights(seed: int = 0, network: MLP = NETWORK, features: int = 3) -> tuple[Layer, ...]:
    """Arbitrary parameters, biases not zero."""
    params = jax.jit(network.init)(jax.random.key(seed), jnp.zeros((1, features)))
    return jax.tree.map(lambda leaf: leaf + 0.1, params)


def many(
    prior: Prior, count: int, params: tuple[Layer, ...]
) -> tuple[tuple[Layer, ...], jax.Array]:
    """Independent draws of weights and hyperparameters, leaves (draw, ...)."""
    keys = jax.random.split(jax.random.key(1), count)
    return jax.jit(jax.vmap(lambda key: prior.sample(key, NETWORK, params)))(keys)


def gaussian_stds(prior: Gaussian) -> list[float]:
    return [
        prior.bias_std
        if fan_in == 0
        else prior.weight_std / (fan_in**0.5 if prior.scaling == "fan_in" else 1.0)
        for fan_in in FAN_INS
    ]


GAUSSIANS = [
    Gaussian(),
    Gaussian(scaling="unit"),
    Gaussian(weight_std=2.0),
    Gaussian(bias_std=0.5),
    Gaussian(scaling="unit", weight_std=0.3, bias_std=3.0),
]


@pytest.mark.parametrize("prior", GAUSSIANS, ids=repr)
def test_gaussian_density_is_the_sum_of_normals(prior: Gaussian) -> None:
    params = weights()
    expected = sum(
        stats.norm.logpdf(leaf, scale=std).sum()
        for leaf, std in zip(jax.tree.leaves(params), gaussian_stds(prior), strict=True)
    )
    np.testing.assert_allclose(prior.log_density(NETWORK, params, ()), expected, rtol=1e-12)


def test_every_gaussian_setting_changes_the_density() -> None:
    params = weights()
    densities = [float(prior.log_density(NETWORK, params, ())) for prior in GAUSSIANS]
    assert len(set(densities)) == len(GAUSSIANS)


@pytest.mark.parametrize("prior", [GAUSSIANS[-1], TraceClass(decay_inputs=True)], ids=repr)
def test_gaussian_samples_have_the_stated_variance(prior: Gaussian | TraceClass) -> None:
    params = weights()
    draws, hyper = jax.device_get(many(prior, 4000, params))
    assert hyper == ()
    for draw, std in zip(*map(jax.tree.leaves, (draws, prior.stds(NETWORK, params))), strict=True):
        scaled = draw / np.asarray(std)
        assert_mean(scaled, 0.0, resolution=0.02)
        assert_mean(scaled**2, 1.0, resolution=0.03)
        with pytest.raises(AssertionError):  # standard deviations 10 % too large
            assert_mean((1.1 * scaled) ** 2, 1.0, resolution=0.04)


@pytest.mark.parametrize("decay_inputs", [False, True])
@pytest.mark.parametrize("decay_outputs", [False, True])
def test_trace_class_variances_entry_by_entry(decay_inputs: bool, decay_outputs: bool) -> None:
    alpha, scale = 1.7, 2.5
    prior = TraceClass(alpha, scale, decay_inputs, decay_outputs)
    first, last = prior.stds(NETWORK, weights())
    for j in range(3):
        for i in range(4):
            incoming = (j + 1) if decay_inputs else 1
            assert first.kernel[j, i] ** 2 == pytest.approx(scale * (incoming * (i + 1)) ** -alpha)
    for j in range(4):
        for i in range(2):
            outgoing = (i + 1) if decay_outputs else 1
            assert last.kernel[j, i] ** 2 == pytest.approx(scale * (outgoing * (j + 1)) ** -alpha)
    np.testing.assert_allclose(first.bias**2, scale * np.arange(1, 5.0) ** -alpha)
    outputs = np.arange(1, 3.0) if decay_outputs else np.ones(2)
    np.testing.assert_allclose(last.bias**2, scale * outputs**-alpha)


def total_variance(prior: TraceClass, width: int) -> float:
    network = MLP(1, hidden=(width, width))
    params = jax.eval_shape(network.init, jax.random.key(0), jnp.zeros((1, 3)))
    return float(sum(np.sum(std**2) for std in jax.tree.leaves(prior.stds(network, params))))


def test_below_one_the_trace_diverges_and_a_warning_says_so() -> None:
    """The middle layer's trace is a harmonic number squared at alpha = 1; at 2 it has a limit."""

    def trace(index_sum: float) -> float:  # 3 inputs; index_sum = sum of k^-alpha over a layer
        return 6 * index_sum + index_sum**2 + 1

    assert total_variance(TraceClass(2.0), 1024) < trace(np.pi**2 / 6)  # and no warning
    for alpha in (0.6, 1.0):
        with pytest.warns(NotTraceClassWarning, match=f"alpha = {alpha} <= 1.*add up to inf"):
            prior = TraceClass(alpha)
        for width in (64, 1024):
            index_sum = float(np.sum(np.arange(1.0, width + 1) ** -alpha))
            assert total_variance(prior, width) == pytest.approx(trace(index_sum), rel=1e-6)


def test_trace_class_density_is_the_sum_of_normals() -> None:
    prior, params = TraceClass(alpha=1.5, scale=0.7), weights()
    expected = sum(
        stats.norm.logpdf(leaf, scale=std).sum()
        for leaf, std in zip(
            *map(jax.tree.leaves, (params, prior.stds(NETWORK, params))), strict=True
        )
    )
    np.testing.assert_allclose(prior.log_density(NETWORK, params, ()), expected, rtol=1e-12)


@pytest.mark.parametrize("scaling", ["fan_in", "unit"])
def test_precision_integrates_out_to_a_student_t(scaling: str) -> None:
    """One Gamma(a, b) precision for all weights leaves them a multivariate t with 2a degrees of
    freedom and shape b / (a fan_in): the Jacobian of the log precision and both constants."""
    prior = HierarchicalGamma(shape=1.5, rate=0.7, per="all", scaling=scaling)
    network = MLP(1, hidden=())
    params = weights(network=network, features=2)

    density = jax.jit(lambda hyper: jnp.exp(prior.log_density(network, params, hyper[None])))
    marginal, _ = quad(lambda hyper: float(density(hyper)), -8, 8, epsabs=1e-12)
    fan_in = 2 if scaling == "fan_in" else 1
    shape = 0.7 / 1.5 * np.diag([1 / fan_in, 1 / fan_in, 1.0])
    position = np.concatenate([np.ravel(leaf) for leaf in params[0]])
    expected = stats.multivariate_t.pdf(position, shape=shape, df=3.0)
    assert marginal == pytest.approx(expected, rel=1e-6)


def test_a_precision_per_input_integrates_out_to_a_student_t_of_its_weights() -> None:
    """Gamma(a, b) precisions leave rows of the first kernel, and other arrays, independent
    multivariate t with 2a degrees of freedom, shape b / (a fan_in)."""
    prior = HierarchicalGamma(shape=1.5, rate=0.7, per="input")
    params = weights()
    template = np.asarray(prior.init(NETWORK, params))

    def marginal(index: int) -> float:
        """The density with one precision integrated out, the others at their prior's mean."""
        at = lambda hyper: jnp.asarray(template).at[index].set(hyper)  # noqa: E731
        density = jax.jit(lambda hyper: jnp.exp(prior.log_density(NETWORK, params, at(hyper))))
        return quad(lambda hyper: float(density(hyper)), -12, 8, epsabs=0, epsrel=1e-9)[0]

    first = params[0]
    blocks = [*first.kernel, first.bias, *(np.ravel(leaf) for leaf in params[1])]
    fan_ins = [3, 3, 3, 1, 4, 1]

    def law(index: int) -> float:
        """Log density of a block alone, its precision at the mean of the prior."""
        block, precision = np.asarray(blocks[index]), 1.5 / 0.7
        density = stats.norm.logpdf(block, scale=(precision * fan_ins[index]) ** -0.5).sum()
        return density + stats.gamma.logpdf(precision, 1.5, scale=1 / 0.7) + np.log(precision)

    whole = sum(map(law, range(len(blocks))))
    for index, block in enumerate(blocks):
        shape = 0.7 / 1.5 / fan_ins[index] * np.eye(len(block))
        expected = stats.multivariate_t.logpdf(np.asarray(block), shape=shape, df=3.0)
        assert np.log(marginal(index)) == pytest.approx(whole - law(index) + expected, rel=1e-6)


def test_hierarchical_density_given_the_precisions() -> None:
    prior, params = HierarchicalGamma(shape=3.0, rate=2.0, per="array"), weights()
    hyper = np.array([0.3, -0.2, 0.9, -1.1])
    expected = sum(
        stats.norm.logpdf(leaf, scale=np.exp(-0.5 * log) / (fan_in or 1) ** 0.5).sum()
        + stats.gamma.logpdf(np.exp(log), 3.0, scale=1 / 2.0)
        + log
        for leaf, log, fan_in in zip(jax.tree.leaves(params), hyper, FAN_INS, strict=True)
    )
    actual = prior.log_density(NETWORK, params, jnp.asarray(hyper))
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("per", "groups"),
    [
        ("array", [0, 1, 2, 3]),
        ("layer", [0, 0, 1, 1]),
        ("all", [0, 0, 0, 0]),
        ("input", [[[0], [1], [2]], 3, 4, 5]),
    ],
)
def test_groups(per: str, groups: list[Any]) -> None:
    prior, params = HierarchicalGamma(per=per), weights()
    assert [group.tolist() for group in prior.groups(params)] == groups
    assert prior.init(NETWORK, params).shape == (groups[-1] + 1,)


def test_hierarchical_samples() -> None:
    prior, params = HierarchicalGamma(shape=3.0, rate=1.5, per="layer"), weights()
    draws, hyper = jax.device_get(many(prior, 4000, params))
    assert_mean(np.exp(hyper), 3.0 / 1.5, resolution=0.03)
    assert_mean((np.exp(hyper) - 2.0) ** 2, 3.0 / 1.5**2, resolution=0.1)
    for leaf, group, fan_in in zip(jax.tree.leaves(draws), (0, 0, 1, 1), FAN_INS, strict=True):
        precision = np.exp(hyper[:, group]) * (fan_in or 1)
        scaled = leaf.reshape(4000, -1)[:, 0] ** 2 * precision
        assert_mean(scaled, 1.0, resolution=0.03)
        with pytest.raises(AssertionError):  # precisions that are forgotten
            assert_mean(scaled / np.exp(hyper[:, group]), 1.0, resolution=0.03)


def test_tiny_shape_gives_finite_hyperparameters() -> None:
    prior = HierarchicalGamma(shape=0.001, per="array")
    _, hyper = prior.sample(jax.random.key(0), NETWORK, weights())
    assert np.all(np.isfinite(hyper))


def test_prior_starts_at_its_mean() -> None:
    hyper = HierarchicalGamma(shape=6.0, rate=2.0).init(NETWORK, weights())
    np.testing.assert_allclose(np.exp(hyper), 3.0)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Gaussian(scaling="he"), "Unknown prior scaling 'he': use 'fan_in' or 'unit'"),
        (lambda: Gaussian(weight_std=0.0), "weight_std must be > 0, got 0.0"),
        (lambda: Gaussian(bias_std=float("nan")), "bias_std must be > 0, got nan"),
        (
            lambda: TraceClass(alpha=0.5),
            "alpha must be > 1/2 .* finite variance, got 0.5; 2 is usual",
        ),
        (lambda: TraceClass(alpha=float("nan")), "alpha must be > 1/2"),
        (lambda: TraceClass(scale=-1.0), "scale must be > 0"),
        (lambda: TraceClass(alpha=np.inf), "alpha must be finite"),
        (lambda: Gaussian(weight_std=np.inf), "weight_std must be finite"),
        (lambda: HierarchicalGamma(shape=0.0), "shape must be > 0"),
        (lambda: HierarchicalGamma(rate=-1.0), "rate must be > 0"),
        (lambda: HierarchicalGamma(per="unit"), "Unknown grouping per='unit'"),
        (lambda: HierarchicalGamma(scaling="he"), "Unknown prior scaling 'he'"),
        (lambda: TraceClass().stds(NETWORK, {"kernel": jnp.ones(2)}), "a prior of an MLP"),
        (
            lambda: HierarchicalGamma(per="input").init(NETWORK, {"kernel": jnp.ones(2)}),
            r"HierarchicalGamma\(per='input'\) is a prior of an MLP",
        ),
    ],
)
def test_bad_settings_are_refused(make: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()  # type: ignore[operator]
