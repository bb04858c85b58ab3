"""The proposal of new output weights: its law, and evidence and means with it."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import stats
from tools.moments import chain_z

from credence.density.posterior import Posterior
from credence.errors import InputError
from credence.methods.smc.multilevel import proposal as proposal_module
from credence.methods.smc.multilevel.levels import with_networks
from credence.methods.smc.multilevel.method import MLSMC
from credence.methods.smc.multilevel.proposal import (
    PRIOR_SHARE,
    NewOutputs,
    from_conditional,
    new_outputs,
    to_level_from_conditional,
)
from credence.methods.smc.mutation import Mutation
from credence.models import MLP, Categorical, HeteroscedasticNormal, Normal, TraceClass
from credence.models.networks.dense import Layer
from credence.models.networks.wrappers import LeadingInputs, PerAction
from credence.models.priors import GaussianPrior

RNG = np.random.default_rng(8)
NOISE_STD = 0.3
X, Y = RNG.normal(size=(12, 2)), RNG.normal(size=(12, 2))
WEIGHT = np.where(np.arange(12) < 4, 2.0, 1.0)


def levels(likelihood: Any, y: Any = Y, widths: tuple[int, ...] = (3, 7)) -> list[Posterior]:
    """Two hidden layers, two outputs, rows that count differently."""
    fine = MLP(2, hidden=(widths[1], widths[1]))
    posterior = Posterior(fine, TraceClass(alpha=1.2), likelihood, (X, y, WEIGHT))
    return with_networks(posterior, [MLP(2, hidden=(widths[0], widths[0])), fine])


def drawn(posterior: Posterior, seed: int = 0) -> Any:
    return posterior.model.sample_prior(jax.random.key(seed), posterior.data)


def collapsed(params: Any, noise_std: np.ndarray) -> float:
    """Log N(y; f, noise + H D H') of the fine network without its new output weights, by scipy."""
    layers = [jax.tree.map(lambda leaf: np.asarray(leaf, float), each) for each in params.network]
    z = X
    for layer in layers[:-1]:
        z = np.tanh(z @ layer.kernel + layer.bias)
    stds = TraceClass(alpha=1.2).stds(MLP(2, hidden=(7, 7)), params.network)[-1].kernel
    stds = np.broadcast_to(np.asarray(stds, float), layers[-1].kernel.shape)
    total = 0.0
    for output in range(2):
        new = z[:, 3:] * stds[3:, output]
        f = z[:, :3] @ layers[-1].kernel[:3, output] + layers[-1].bias[output]
        covariance = np.diag(noise_std[output] ** 2 / WEIGHT) + new @ new.T
        total += stats.multivariate_normal.logpdf(Y[:, output], f, covariance)
    # a row that counts w times is w rows: N(y; f, s^2)^w is N(y; f, s^2 / w) up to a constant
    constant = (WEIGHT - 1) * np.log(2 * np.pi * noise_std[:, None] ** 2) + np.log(WEIGHT)
    return total - 0.5 * float(np.sum(constant))


def log_end_less_start(pair: list[Posterior], params: Any) -> tuple[float, float]:
    """Log G by the bridge, and the coarse log likelihood."""
    coarse, fine = pair
    bridge = to_level_from_conditional(coarse.model, fine.model, 1)
    position = ravel_pytree(params)[0]
    start, end = (end(position, fine.data) for end in (bridge.log_start, bridge.log_end))
    small = params._replace(
        network=tuple(
            Layer(layer.kernel[tuple(slice(n) for n in shape)], layer.bias[: shape[1]])
            for layer, shape in zip(params.network, [(2, 3), (3, 3), (3, 2)], strict=True)
        )
    )
    return float(end - start), float(coarse.model.log_likelihood(small, coarse.data))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("noise_std", [NOISE_STD, None], ids=["fixed", "learnt"])
def test_g_is_the_collapsed_likelihood_over_the_coarse_one(noise_std: float | None) -> None:
    pair = levels(Normal(noise_std))
    for seed in range(3):
        params = drawn(pair[1], seed)
        stds = np.full(2, noise_std) if noise_std else np.exp(np.asarray(params.likelihood, float))
        log_g, coarse = log_end_less_start(pair, params)
        np.testing.assert_allclose(log_g, collapsed(params, stds) - coarse, rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("changed", ["mean", "root", "stds"])
def test_a_wrong_law_is_seen(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pair, right = levels(Normal(NOISE_STD)), new_outputs

    def wrong(*args: Any, **kwargs: Any) -> NewOutputs:
        law = right(*args, **kwargs)
        return law._replace(**{changed: 1.01 * getattr(law, changed)})

    to_level_from_conditional.cache_clear()
    monkeypatch.setattr(proposal_module, "new_outputs", wrong)
    params = drawn(pair[1])
    log_g, coarse = log_end_less_start(pair, params)
    to_level_from_conditional.cache_clear()
    assert abs(log_g - collapsed(params, np.full(2, NOISE_STD)) + coarse) > 1e-3


@pytest.mark.usefixtures("float64")
def test_draws_have_the_law() -> None:
    """Draws, in units of the law's standard deviations, are standard normal."""
    pair = levels(Normal(NOISE_STD))
    coarse, fine = (each.model for each in pair)
    small = ravel_pytree(drawn(pair[0]))[0]
    count = 20_000
    positions = jnp.broadcast_to(small, (1, count, len(small)))
    fine_positions = from_conditional(
        jax.random.key(1), positions, pair[1].data, coarse=coarse, fine=fine
    )

    def turned(position: Any) -> Any:
        params = fine.unravel(position, pair[1].data)
        law = new_outputs(params, pair[1].data, coarse=coarse, fine=fine)
        units = params.network[-1].kernel[3:].T / law.stds
        return jnp.einsum("oij,oi->oj", law.root, units - law.mean).ravel()

    z = np.asarray(jax.lax.map(turned, fine_positions[0], batch_size=500))
    moments = {"mean": z, "square": z**2 - 1, "next": z[:, 1:] * z[:, :-1]}
    worst = {k: np.max(np.abs(v.mean(0)) / (v.std(0) / count**0.5)) for k, v in moments.items()}
    print(worst)
    assert max(worst.values()) < 4.5


@pytest.mark.usefixtures("float64")
def test_labels_have_a_newton_step() -> None:
    """Mean and precision are those of one Newton step from zero, by automatic differentiation."""
    pair = levels(Categorical(2), RNG.integers(0, 2, size=12))
    coarse, fine = (each.model for each in pair)
    params = drawn(pair[1])
    data = pair[1].data
    law = new_outputs(params, data, coarse=coarse, fine=fine)

    def log_density(units: Any, output: int) -> Any:
        last = params.network[-1]
        kernel = last.kernel.at[3:].set(0.0).at[3:, output].set(units * law.stds[output])
        network = (*params.network[:-1], last._replace(kernel=kernel))
        return fine.log_likelihood(params._replace(network=network), data) - 0.5 * units @ units

    for output in range(law.mean.shape[0]):
        zero = jnp.zeros(4)
        slope = jax.grad(log_density)(zero, output)
        precision = -jax.hessian(log_density)(zero, output)
        np.testing.assert_allclose(law.root[output] @ law.root[output].T, precision, atol=1e-9)
        np.testing.assert_allclose(law.mean[output], jnp.linalg.solve(precision, slope), atol=1e-9)


def mean_of_inverse_ratios(law: NewOutputs) -> tuple[float, float]:
    """Mean of prior over law at draws of the law, which is 1, and its standard error."""
    keys = jax.random.split(jax.random.key(2), 40_000)
    ratios = jax.vmap(lambda key: jnp.exp(-law.log_over_prior(law.sample(key))))(keys)
    return float(ratios.mean()), float(ratios.std() / len(ratios) ** 0.5)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("likelihood", [Categorical(2), HeteroscedasticNormal()])
def test_where_the_law_is_not_exact_some_draws_come_from_the_prior(likelihood: Any) -> None:
    """They bound prior over law; planted: draws without that share, weighed as if with it."""
    y = RNG.integers(0, 2, size=12) if isinstance(likelihood, Categorical) else Y[:, :1]
    pair = levels(likelihood, y)
    law = new_outputs(drawn(pair[1]), pair[1].data, coarse=pair[0].model, fine=pair[1].model)
    far = 50 * jnp.ones_like(law.stds).T
    assert float(law.log_over_prior(far)) == pytest.approx(np.log(PRIOR_SHARE))
    mean, error = mean_of_inverse_ratios(law)
    assert abs(mean - 1) < 4.5 * error

    class Planted(NewOutputs):
        def sample(self, key: Any) -> Any:
            return NewOutputs(*self[:3], 0.0).sample(key)

    mean, error = mean_of_inverse_ratios(Planted(*law))
    assert abs(mean - 1) > 8 * error


@dataclass(frozen=True)
class Decay(GaussianPrior):
    """The standard deviation of the weight of input k is k^-1.25, that of the bias 1/2."""

    def stds(self, network: Any, params: Any) -> Any:
        ((kernel, _),) = params
        return (Layer(jnp.arange(1.0, kernel.shape[0] + 1)[:, None] ** -1.25, jnp.asarray(0.5)),)


FEATURES = np.sqrt(2) * np.cos(
    RNG.uniform(-1, 1, size=(20, 1)) * 3 * RNG.normal(size=24) + RNG.uniform(0, 6, size=24)
)
SIGNAL = FEATURES @ (np.arange(1, 25) ** -1.25 * RNG.normal(size=24))
LINEAR_Y = SIGNAL[:, None] + NOISE_STD * RNG.normal(size=(20, 1))


def linear() -> Posterior:
    """Linear in its weights, so that evidence and means are known."""
    network = LeadingInputs(MLP(1, hidden=()), 24)
    return Posterior(network, Decay(), Normal(NOISE_STD), (FEATURES, LINEAR_Y))


def exact_linear(num: int) -> tuple[np.ndarray, float]:
    """Posterior mean of the function at the first five rows, and log evidence."""
    design = np.c_[FEATURES[:, :num] * np.arange(1, num + 1) ** -1.25, np.full(20, 0.5)]
    covariance = design @ design.T + NOISE_STD**2 * np.eye(20)
    mean = design[:5] @ design.T @ np.linalg.solve(covariance, LINEAR_Y[:, 0])
    return mean, float(stats.multivariate_normal.logpdf(LINEAR_Y[:, 0], cov=covariance))


def linear_scores(proposal: str) -> tuple[float, float]:
    """Worst |z| over runs of the finest level's mean and of the evidence."""
    method = MLSMC(
        coarse=tuple(LeadingInputs(MLP(1, hidden=()), num) for num in (6, 12)),
        num_particles=(800, 400, 200),
        num_runs=40,
        proposal=proposal,
        mutation=Mutation(kernel="pcn"),
    )
    ensemble = method.run(3, linear())
    mean, log_evidence = exact_linear(24)
    functions = ensemble.functions(FEATURES[:5])[..., 0]
    sums = 40 * np.einsum("rm,rmp->rp", np.asarray(ensemble.weights), functions)
    evidence = np.exp(ensemble.scalars["log_evidence"][:, :1] - log_evidence) - 1
    z_mean = np.max(chain_z((sums - mean)[:, None], np.zeros(5)))
    return float(z_mean), float(np.max(chain_z(evidence[:, None], np.zeros(1))))


@pytest.mark.usefixtures("float64")
def test_linear_networks_have_the_known_mean_and_evidence() -> None:
    scores = linear_scores("conditional")
    print(scores)
    assert max(scores) < 4.5


@pytest.mark.usefixtures("float64")
def test_weights_from_the_conditional_weighed_as_if_from_the_prior_are_seen(monkeypatch) -> None:
    right = proposal_module.PROPOSALS
    wrong = right["conditional"]._replace(bridge=right["prior"].bridge)
    monkeypatch.setitem(right, "conditional", wrong)
    scores = linear_scores("conditional")
    print(scores)
    assert max(scores) > 8


def hidden_posterior() -> Posterior:
    x = np.linspace(-1, 1, 8)[:, None]
    y = np.sin(3 * x)
    return Posterior(MLP(1, hidden=(8,)), TraceClass(alpha=1.1), Normal(0.2), (x, y))


@pytest.mark.slow
@pytest.mark.usefixtures("float64")
def test_hidden_neurons_have_the_evidence_of_importance_sampling() -> None:
    """Incoming weights from the prior, all output weights integrated out, by brute force."""
    posterior = hidden_posterior()
    x, y = (np.asarray(values, float) for values in (posterior.data.x, posterior.data.y))
    keys = jax.random.split(jax.random.key(4), 400_000)

    @jax.jit
    def log_marginal(key: Any) -> Any:
        params = posterior.model.sample_prior(key, posterior.data)
        stds = posterior.model.prior.stds(posterior.model.network, params.network)[-1]
        hidden, _ = params.network
        z = jnp.tanh(x @ hidden.kernel + hidden.bias) * jnp.reshape(stds.kernel, (1, -1))
        covariance = z @ z.T + jnp.reshape(stds.bias, ()) ** 2 + 0.04 * jnp.eye(8)
        return jax.scipy.stats.multivariate_normal.logpdf(y[:, 0], jnp.zeros(8), covariance)

    logs = np.asarray(jax.lax.map(log_marginal, keys, batch_size=10_000))
    top = logs.max()
    terms = np.exp(logs - top)
    truth = top + np.log(terms.mean())
    error = terms.std() / terms.mean() / len(terms) ** 0.5
    method = MLSMC(widths=((2,), (8,)), num_particles=(2000, 1000), num_runs=24)
    for proposal in ("prior", "conditional"):
        ensemble = replace(method, proposal=proposal).run(1, posterior)
        ratio = np.exp(ensemble.scalars["log_evidence"][:, 0] - truth)
        spread = np.hypot(ratio.std(ddof=1) / 24**0.5, error)
        print(proposal, ratio.mean(), spread, ensemble.cost.seconds)
        assert abs(ratio.mean() - 1) < 4.5 * spread


BAD = {
    "only with particles from below": (
        lambda: MLSMC(proposal="conditional", coupling="independent"),
        "coupling",
    ),
    "unknown": (lambda: MLSMC(proposal="conditonal"), "conditional"),
    "another network": (
        lambda: MLSMC(proposal="conditional", widths=((2,), (4,))).run(
            0,
            Posterior(
                PerAction(MLP(1, hidden=(4,))),
                TraceClass(alpha=1.1),
                Categorical(3),
                (RNG.normal(size=(6, 3, 2)), np.arange(6) % 3),
            ),
        ),
        "proposal",
    ),
}


@pytest.mark.parametrize(("run", "word"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_a_sentence(run: Any, word: str) -> None:
    with pytest.raises(InputError, match=word):
        run()
