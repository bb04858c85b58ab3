"""ULA, SGLD and SGHMC as whole methods, against the exact law of their discretisation.

Without a hidden layer the posterior is N(mean, P^-1), and with all rows in every step the chain is
a linear recursion whose stationary covariance is known.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov
from tools.exact import linear_regression, weights
from tools.moments import chain_z

from credence.adaptation import gradient_metric as preconditioning
from credence.adaptation.gradient_metric import (
    gradient_metric,
    gradient_moments,
    prior_precision,
)
from credence.density.data import Data, minibatch
from credence.density.posterior import Posterior
from credence.engine.blocks import Block
from credence.engine.clock import CompileClock
from credence.engine.driver import Driver
from credence.errors import InputError
from credence.kernels.sgmcmc.sghmc import sghmc
from credence.kernels.sgmcmc.ula import LangevinState, ula
from credence.methods.minibatch_steps import minibatch_rows
from credence.methods.stochastic_gradient import (
    SGHMC,
    SGLD,
    ULA,
    StochasticGradient,
)
from credence.methods.training import Training
from credence.models import (
    MLP,
    Gaussian,
    HierarchicalGamma,
    Network,
    Normal,
    ResNet,
    TraceClass,
)

pytestmark = pytest.mark.rotates(3)

SETTINGS: dict[str, Any] = {
    "num_chains": 64,
    "num_draws": 300,
    "num_warmup": 1000,
    "thinning": 10,
    "training": Training(max_epochs=300),
}
PROBLEM = linear_regression()
slow = lambda method: pytest.param(method, marks=pytest.mark.slow)  # noqa: E731
ULA_STEP, SGHMC_STEP, FRICTION = 0.02, 0.12, 0.2


def precision() -> np.ndarray:
    return np.linalg.inv(PROBLEM.solve()[1])


def langevin_covariance() -> np.ndarray:
    transition = np.eye(4) - 0.5 * ULA_STEP * precision()
    return solve_discrete_lyapunov(transition, ULA_STEP * np.eye(4))


def momentum_covariance() -> np.ndarray:
    identity, pull = np.eye(4), SGHMC_STEP**2 * precision()
    transition = np.block(
        [[identity - pull, (1 - FRICTION) * identity], [-pull, (1 - FRICTION) * identity]]
    )
    noise = 2 * FRICTION * SGHMC_STEP**2 * np.kron(np.ones((2, 2)), identity)
    return solve_discrete_lyapunov(transition, noise)[:4, :4]


EXACT = {
    "ula": (ULA(step_size=ULA_STEP, preconditioner="none", **SETTINGS), langevin_covariance),
    "sghmc": (
        SGHMC(step_size=SGHMC_STEP, friction=FRICTION, preconditioner="none", **SETTINGS),
        momentum_covariance,
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_law_of_the_discretised_chain(name: str):
    method, covariance = EXACT[name]
    draws = weights(method.run(0, PROBLEM.posterior))
    centred = draws - PROBLEM.solve()[0]
    products = centred[..., :, None] * centred[..., None, :]
    assert chain_z(draws, PROBLEM.solve()[0]).max() < 4.5
    assert chain_z(products, covariance()).max() < 4.5
    # Planted: the law of the continuous process, which no step size above 0 has.
    assert chain_z(products, PROBLEM.solve()[1]).max() > 8


@pytest.mark.parametrize(
    "method", [SGLD(preconditioner="rms"), SGHMC(preconditioner="scale_adapted")]
)
def test_preconditioners_of_their_papers_run(method: StochasticGradient):
    """They run to the end: what `test_near_the_posterior` shows of them is slow."""
    few = replace(method, num_chains=2, num_draws=3, num_warmup=4, thinning=2,
                  training=Training(max_epochs=2))  # fmt: skip
    assert np.isfinite(weights(few.run(0, PROBLEM.posterior))).all()


@partial(jax.jit, static_argnames=("build", "num_rows"))
def _squares(build: Any, rows: Any, settings: Any, *, num_rows: int) -> Any:
    """Squared weights of a Gaussian posterior, of minibatches drawn afresh: (draw, weight)."""
    ones = jnp.ones(len(rows))
    data = Data(rows, ones, ones)

    def log_density(w: Any, data: Any) -> Any:
        return -0.5 * jnp.mean(jnp.sum((w - data.x) ** 2, axis=-1))

    kernel = build(log_density, inverse_mass=jnp.ones(rows.shape[1]), **settings)

    def step(state: Any, key: Any) -> Any:
        key_rows, key_step = jax.random.split(key)
        index = jax.random.permutation(key_rows, len(rows))[:num_rows]
        state, _ = kernel.step(key_step, state, minibatch(data, index, ones[:num_rows]))
        return state, state.position**2

    key_start, key_run = jax.random.split(jax.random.key(0))
    start = kernel.init(jax.random.normal(key_start, (rows.shape[1],)), data)
    return jax.lax.scan(step, start, jax.random.split(key_run, 1400))[1][400:]


class TestStepsOnMinibatchesAreAsStableAsALeapfrog:
    """A step on rows drawn afresh adds to a Gaussian's variance what its leapfrog may."""

    NUM_POINTS, NUM_ROWS, LEAPFROG = 40, 4, 0.8
    ALLOWED = LEAPFROG**2 / 4
    """Share of the variance; terms of higher order add about as large a share of it again."""

    def added(self, build: Any, **settings: float) -> tuple[float, float]:
        """Share added to the variance, and its standard error: 1,000 weights, most independent.

        A weight of posterior N(0, 1) is the mean of rows of variance N.
        """
        rows = np.random.default_rng(0).normal(size=(self.NUM_POINTS, 1000))
        rows -= rows.mean(axis=0)
        rows *= self.NUM_POINTS**0.5 / rows.std(axis=0, ddof=1)
        squares = _squares(build, rows.astype(np.float32), settings, num_rows=self.NUM_ROWS)
        means = np.asarray(squares, float).mean(axis=0)
        return float(means.mean() - 1), float(means.std(ddof=1) / len(means) ** 0.5)

    def stable(self, method: StochasticGradient) -> float:
        return float(method._stable(self.LEAPFROG, self.NUM_ROWS, self.NUM_POINTS))

    def test_sghmc_adds_what_sgld_adds(self) -> None:
        """Planted: a quarter of the gradients' noise."""
        found = {"sgld": self.added(ula, step_size=self.stable(SGLD()))}
        for friction in (0.1, 0.5):
            step_size = self.stable(SGHMC(friction=friction))
            found[f"sghmc, friction {friction}"] = self.added(
                sghmc, step_size=step_size, friction=friction
            )
        quarter = self.LEAPFROG / (1 + 9 / (2 * 0.1)) ** 0.5
        planted, _ = self.added(sghmc, step_size=quarter, friction=0.1)
        print(f"allowed {self.ALLOWED:.4f}, planted {planted:.4f}; {found}")
        for share, error in found.values():
            assert error < 0.1 * self.ALLOWED
            assert abs(share - self.ALLOWED) < 5 * error + self.ALLOWED**2
            assert planted > self.ALLOWED + 8 * error + self.ALLOWED**2


@pytest.mark.parametrize(
    "method",
    [
        slow(SGLD(**SETTINGS)),
        SGLD(batch_size=4, **SETTINGS),
        slow(SGLD(preconditioner="rms", **SETTINGS | {"step_size": 0.002})),
        SGLD(num_cycles=3, **SETTINGS | {"step_size": 0.1}),
        slow(SGHMC(**SETTINGS)),
        SGHMC(batch_size=4, **SETTINGS),
        slow(
            SGHMC(preconditioner="scale_adapted", **SETTINGS | {"step_size": 0.01, "thinning": 200})
        ),
    ],
    ids=lambda m: f"{m.name}-{m.preconditioner}-{m.batch_size}-{m.num_cycles}",
)
def test_near_the_posterior(method: StochasticGradient):
    """Defaults and variants: means within .15 sd, standard deviations within 15 %.

    Of most chains: where each finds a mass of its own ("scale_adapted"), one in a hundred or so
    finds one too small, and its steps are far too long.
    """
    draws = weights(method.run(0, PROBLEM.posterior))
    mean, covariance = PROBLEM.solve()
    std = np.sqrt(np.diag(covariance))
    assert draws.shape == (method.num_chains, method.num_draws, 4)
    if method.preconditioner == "scale_adapted":
        spreads = draws.std(1).max(axis=1)
        draws = draws[spreads < 3 * np.median(spreads)]
        assert len(draws) >= 0.95 * method.num_chains
    draws = draws.reshape(-1, 4)
    assert np.abs((draws.mean(0) - mean) / std).max() < 0.15
    assert np.abs(draws.std(0) / std - 1).max() < 0.15


def test_full_gradients_at_the_posterior_have_its_precision():
    """E[g g'] = P for a Gaussian posterior, in standard errors of independent draws."""
    mean, covariance = PROBLEM.solve()
    draws = np.random.default_rng(0).multivariate_normal(mean, covariance, 4000)
    posterior = PROBLEM.posterior
    square, _ = gradient_moments(
        jax.random.key(0),
        jnp.asarray(draws, jnp.float32),
        posterior.data,
        log_density=posterior.log_density,
        batch_size=4,
    )
    exact = np.diag(precision())
    z = np.abs(np.asarray(square) / exact - 1) * (len(draws) / 2) ** 0.5
    assert z.max() < 4.5
    assert (np.abs(np.asarray(square) / (1.15 * exact) - 1) * (len(draws) / 2) ** 0.5).max() > 4.5


def test_variance_of_the_rows_gradients():
    """The likelihood's gradient of every row at one position, in closed form."""
    posterior, design = PROBLEM.posterior, np.column_stack([PROBLEM.x, np.ones(len(PROBLEM.x))])
    mean = PROBLEM.solve()[0]
    _, variance = gradient_moments(
        jax.random.key(1),
        jnp.tile(jnp.asarray(mean, jnp.float32), (20_000, 1)),
        posterior.data,
        log_density=posterior.log_density,
        batch_size=4,
    )
    per_row = design * (PROBLEM.y - design @ mean)[:, None] / PROBLEM.noise_std**2
    np.testing.assert_allclose(variance, per_row.var(axis=0, ddof=1), rtol=0.05)


def test_a_single_row_says_nothing_of_the_variance():
    """Precisions are then those of the prior, and finite."""
    posterior = Posterior(MLP(1), Gaussian(), Normal(noise_std=1.0), (np.ones((1, 1)), np.ones(1)))
    _, variance = gradient_moments(
        jax.random.key(0),
        jnp.zeros((2, posterior.num_weights)),
        posterior.data,
        log_density=posterior.log_density,
        batch_size=1,
    )
    np.testing.assert_array_equal(variance, 0)


def test_metric_is_near_the_inverse_precision():
    posterior = PROBLEM.posterior
    draws = np.random.default_rng(1).multivariate_normal(*PROBLEM.solve(), 200)
    positions = jnp.asarray(draws, jnp.float32)
    adapter = gradient_metric(
        jax.random.key(0),
        posterior,
        positions,
        num_rounds=4,
        target_acceptance_rate=0.9,
    )
    memory = adapter.memory

    block = Block(LangevinState(positions), positions[:, None], {})
    for _ in range(4):
        memory = adapter.update(memory, block)
    np.testing.assert_allclose(
        adapter.settings(memory)["inverse_mass"], 1 / np.diag(precision()), rtol=0.5
    )


def test_a_narrow_prior_is_in_the_first_metric() -> None:
    """The precision is that of the prior where the data say little. Planted: 1 in its place."""
    rng = np.random.default_rng(0)
    x, y = 0.01 * rng.normal(size=(30, 400)), rng.normal(size=30)
    posterior = Posterior(MLP(1, ()), Gaussian("fan_in"), Normal(1.0), (x, y))
    positions = posterior.init(jax.random.key(0), 4)
    adapter = gradient_metric(
        jax.random.key(1), posterior, positions, num_rounds=4, target_acceptance_rate=0.9
    )
    inverse_mass = adapter.settings(adapter.memory)["inverse_mass"]
    kernel = posterior.unravel(jnp.asarray(inverse_mass)).network[0].kernel
    exact = 1 / (400 + (x**2).sum(axis=0))[:, None]
    np.testing.assert_allclose(kernel, exact, rtol=0.01)
    assert (kernel * 100 < 1).all(), "planted: about 1"


def test_the_prior_s_precision_is_exact_where_weights_are_independent() -> None:
    posterior = Posterior(MLP(1, (3,)), TraceClass(alpha=1.5), Normal(), (PROBLEM.x, PROBLEM.y))
    positions = posterior.init(jax.random.key(0), 2)
    found = prior_precision(
        jax.random.key(1), positions, posterior.data, log_density=posterior.log_density
    )
    params = posterior.unravel(positions[0])
    stds = posterior.model.prior.stds(posterior.model.network, params.network)
    exact = jax.tree.map(lambda leaf, std: jnp.broadcast_to(std, leaf.shape), params.network, stds)
    of_weights = posterior.unravel(found).network
    for layer, wanted in zip(of_weights, exact, strict=True):
        np.testing.assert_allclose(layer.kernel, wanted.kernel**-2, rtol=1e-4)
        np.testing.assert_allclose(layer.bias, wanted.bias**-2, rtol=1e-4)


@pytest.mark.parametrize(("num_chains", "num_trials"), [(1, 2), (4, 8), (20, 8)])
def test_trials_of_a_step_size_do_not_grow_with_the_chains(
    num_chains: int, num_trials: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each costs passes over all rows; they start from chains far apart in the list."""
    starts = []

    def tried(key: Any, positions: Any, *_: Any, **__: Any) -> float:
        starts.append(np.asarray(positions)[:, 0])
        return 0.9

    monkeypatch.setattr(preconditioning, "trial_acceptance", tried)
    positions = jnp.tile(0.01 * jnp.arange(num_chains, dtype=jnp.float32)[:, None], (1, 4))
    adapter = gradient_metric(
        jax.random.key(0), PROBLEM.posterior, positions, num_rounds=4, target_acceptance_rate=0.9
    )
    adapter.update(adapter.memory, Block(LangevinState(positions), positions[:, None], {}))
    (found,) = starts
    assert len(found) == num_trials
    assert len(np.unique(found)) == min(num_chains, num_trials)


@pytest.mark.parametrize("step_size", [None, 0.02])
def test_trials_are_for_a_step_size_that_is_looked_for(
    step_size: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each costs passes over all rows."""
    tried = []

    def watched(*_: Any, **__: Any) -> float:
        tried.append(True)
        return 0.9

    monkeypatch.setattr(preconditioning, "trial_acceptance", watched)
    monkeypatch.setattr(preconditioning, "reasonable_step_size", watched)
    few = SGLD(step_size=step_size, num_chains=2, num_draws=2, num_warmup=20, thinning=2,
               training=Training(max_epochs=2))  # fmt: skip
    assert np.isfinite(weights(few.run(0, PROBLEM.posterior))).all()
    assert bool(tried) == (step_size is None)


@pytest.mark.parametrize(
    ("settings", "steps"), [({}, 200), ({"thinning": 5}, 50), ({"thinning": 980}, 500)]
)
def test_a_warm_up_has_rounds_however_far_draws_are_apart(
    settings: dict[str, int], steps: int
) -> None:
    """Planted: a round of ten draws, of which 9,800 steps would be the whole warm-up."""
    rounds = SGHMC(num_warmup=4000, **settings)._warmup_rounds(PROBLEM.posterior)
    assert (rounds.round_steps, rounds.number) == (steps, 4000 // steps)
    assert rounds.number >= 8


@pytest.mark.parametrize(
    ("num_draws", "num_cycles", "share"),
    [(10, 3, 0.5), (7, 2, 0.3), (4, 4, 0.9), (8, 2, 0.6), (8, 2, 0.2)],
)
def test_cycles_give_the_draws_asked_for(num_draws: int, num_cycles: int, share: float):
    """Single precision must not drop a draw where a share of a cycle falls on a step."""
    settings = SETTINGS | {"num_chains": 2, "num_draws": num_draws, "num_warmup": 100}
    method = SGLD(num_cycles=num_cycles, exploration_share=share, **settings)
    ensemble = method.run(0, PROBLEM.posterior)
    assert weights(ensemble).shape == (2, num_draws, 4)
    assert np.all(ensemble.scalars["is_exploring"] == 0)


@pytest.mark.parametrize(
    "method", [SGLD(preconditioner="rms"), SGHMC(preconditioner="scale_adapted")]
)
def test_cycles_keep_the_preconditioner_of_the_warm_up(
    method: StochasticGradient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V is frozen after the warm-up; one per row, which it starts from, is not what it found."""
    found, phase = {}, Driver.phase

    def watched(self: Driver, name: str, *rest: Any) -> Any:
        found[name] = phase(self, name, *rest)
        return found[name]

    monkeypatch.setattr(Driver, "phase", watched)
    few = replace(method, num_chains=2, num_draws=4, num_cycles=2, num_warmup=40, thinning=2,
                  training=Training(max_epochs=2))  # fmt: skip
    few.run(0, PROBLEM.posterior)
    learnt = found["warmup"].states.mean_square
    np.testing.assert_array_equal(found["sample"].states.inner.mean_square, learnt)
    assert not np.allclose(learnt, len(PROBLEM.x))


def test_resumed_run_is_the_same(tmp_path):
    method = SGHMC(**SETTINGS | {"num_chains": 2, "num_draws": 40, "num_warmup": 200})
    whole = weights(method.run(0, PROBLEM.posterior))
    first = weights(method.run(0, PROBLEM.posterior, folder=tmp_path))
    again = weights(method.run(0, PROBLEM.posterior, folder=tmp_path))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, whole)


def test_second_data_set_compiles_nothing():
    method = SGHMC(**SETTINGS | {"num_chains": 2, "num_draws": 40, "num_warmup": 200})
    method.run(0, PROBLEM.posterior)
    other = linear_regression(seed=5).posterior
    with CompileClock() as clock:
        method.run(1, other)
    assert clock.num_traces == 0


@pytest.mark.rotates(3)
def test_hierarchical_precisions_by_gibbs():
    """The sampler with Gibbs updates still has the moments that it has without."""
    posterior = Posterior(
        MLP(1, hidden=()),
        HierarchicalGamma(shape=4.0, rate=4.0, scaling="unit"),
        Normal(PROBLEM.noise_std),
        (PROBLEM.x, PROBLEM.y),
    )
    settings = SETTINGS | {"num_draws": 500}
    plain, gibbs = (SGHMC(gibbs=g, **settings).run(3, posterior) for g in (False, True))
    a, b = (np.asarray(e.params.prior).mean(axis=1)[:, 0] for e in (plain, gibbs))
    error = ((a.var() + b.var()) / len(a)) ** 0.5
    assert abs(a.mean() - b.mean()) < 5 * error + 0.02
    assert b.std() > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"step_size": 0.0}, "step_size must be > 0"),
        ({"step_size": float("nan")}, "step_size must be > 0"),
        ({"thinning": 0}, "thinning must be > 0"),
        ({"batch_size": 0}, "batch_size must be > 0"),
        ({"target_acceptance_rate": 1.0}, "target_acceptance_rate .* 0.9 is usual"),
        ({"exploration_share": 1.0}, "exploration_share"),
        ({"num_cycles": -1}, "num_cycles"),
        ({"preconditioner": "magic"}, "preconditioner"),
        ({"gibbs": True, "num_cycles": 2}, "do not go together"),
    ],
)
@pytest.mark.parametrize("method", [SGLD, SGHMC])
def test_bad_settings(method: type[StochasticGradient], settings: dict, message: str):
    with pytest.raises(InputError, match=message):
        method(**settings)


def test_ula_takes_all_rows():
    """A batch size would be passed over, so it is refused."""
    with pytest.raises(InputError, match=r"all rows in every step, got batch_size=32: .* use sgld"):
        ULA(batch_size=32)


@pytest.mark.parametrize(("batch_size", "share"), [(None, 0.0), (12, 0.0), (4, 2 / 3)])
def test_scale_adapted_takes_for_noise_what_minibatches_add(batch_size: int | None, share: float):
    """Nothing is noise of gradients of all rows; taken for it, no injected noise was left."""
    method = SGHMC(preconditioner="scale_adapted", batch_size=batch_size)
    for settings in method._published_settings(PROBLEM.posterior):
        assert settings["noise_share"] == pytest.approx(share)


@pytest.mark.parametrize("friction", [0.0, -0.1, 1.5, float("nan")])
def test_friction_out_of_range(friction: float):
    with pytest.raises(InputError, match="friction must be in"):
        SGHMC(friction=friction)


@pytest.mark.parametrize(
    ("friction", "batch_size", "expected"),
    [(None, None, 0.01), (None, "all", 0.01), (None, 4, 0.1), (0.3, 4, 0.3)],
)
def test_friction_by_default_is_low_where_a_step_sees_all_rows(
    friction: float | None, batch_size: int | str | None, expected: float
):
    """The step goes with it: a friction of .01 with noise of minibatches would shorten it."""
    method = SGHMC(friction=friction, batch_size=batch_size)
    metric = {"step_size": np.float32(0.5), "inverse_mass": np.ones(4, np.float32)}
    settings = method._settings(metric, PROBLEM.posterior)
    noise = 2 * (12 / 4 - 1) / expected if batch_size == 4 else 0
    assert settings["friction"] == pytest.approx(expected)
    assert settings["step_size"] == pytest.approx(0.5 / (1 + noise) ** 0.5)


def test_a_word_that_is_no_number_of_rows():
    with pytest.raises(InputError, match="'all' or None, got 'most'"):
        SGLD(batch_size="most")


def test_batch_larger_than_the_data():
    with pytest.raises(InputError, match="more than the 12 rows"):
        SGLD(batch_size=13).run(0, PROBLEM.posterior)


@pytest.mark.parametrize(
    ("network", "shape", "rows"),
    [
        (MLP(1, (2,)), (8192, 2), 8192),
        (MLP(1, (2,)), (8193, 2), 1024),
        (ResNet.of_depth(8, 1), (200, 8, 8, 3), 128),
    ],
)
def test_a_step_sees_all_of_few_rows_and_few_images(network: Network, shape: Any, rows: int):
    data = np.zeros(shape, np.float32), np.zeros(shape[0], np.float32)
    posterior = Posterior(network, Gaussian(), Normal(), data)
    assert minibatch_rows(None, posterior) == rows
    assert minibatch_rows(100, posterior) == 100


def test_gibbs_needs_a_hierarchical_prior():
    with pytest.raises(InputError, match="hierarchical"):
        SGLD(gibbs=True).run(0, PROBLEM.posterior)
