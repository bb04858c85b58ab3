"""A kernel of one's own: registered in a few lines, it moves chains, particles and networks.

Every answer is exact: Bayesian linear regression, or the prior where there are no data.
"""

import json
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from tools.exact import linear_regression, weights
from tools.moments import chain_z, moment_z

from credence import kernels
from credence.adaptation import tunable_kernels
from credence.density.data import Data
from credence.density.posterior import Position, Posterior
from credence.errors import InputError
from credence.kernels.base import Kernel, either, metropolis
from credence.methods import (
    CES,
    MCLMC,
    SMC,
    Interacting,
    Mutation,
    ParallelTempering,
    Transdimensional,
    register_kernel,
)
from credence.methods.approximate.deep_ensemble import Training
from credence.methods.surrogate.emulators import Taylor
from credence.models import MLP, Gaussian, Normal

PROBLEM = linear_regression(num_features=1)
TRAINING = Training(max_epochs=20)


class State(NamedTuple):
    position: Position
    log_density: Float[Array, ""]
    gradient: Position


class Info(NamedTuple):
    acceptance_rate: Float[Array, ""]
    is_finite: Bool[Array, ""]
    num_gradients: Int[Array, ""]


def barker(log_density: Any, *, step_size: Any, inverse_mass: Any, power: float = 1.0) -> Kernel:
    """Barker proposals: Livingstone & Zanella, "The Barker proposal" (2022), algorithm 1.

    Every weight moves by a Gaussian number z or by -z; by z with probability
    1 / (1 + exp(-z gradient)). A planted `power` other than 1 makes the law density^power.
    """
    scale = step_size * jnp.sqrt(inverse_mass)

    def init(position: Position, data: Data) -> State:
        return State(position, *jax.value_and_grad(log_density)(position, data))

    def log_proposal(gradient: Position, moved: Position) -> Float[Array, ""]:
        return -jnp.sum(jnp.logaddexp(0.0, -moved * gradient))  # the Gaussian factors cancel

    def step(key: PRNGKeyArray, state: State, data: Data) -> tuple[State, Info]:
        key_size, key_sign, key_accept = jax.random.split(key, 3)
        size = scale * jax.random.normal(key_size, state.position.shape)
        keeps_sign = jax.random.uniform(key_sign, size.shape) < jax.nn.sigmoid(
            size * state.gradient
        )
        moved = jnp.where(keeps_sign, size, -size)
        new = init(state.position + moved, data)
        log_ratio = power * (new.log_density - state.log_density)
        log_ratio += log_proposal(new.gradient, -moved) - log_proposal(state.gradient, moved)
        is_finite = jnp.isfinite(log_ratio)
        rate, is_accepted = metropolis(key_accept, log_ratio, is_finite)
        return either(is_accepted, new, state), Info(rate, is_finite, jnp.ones((), jnp.int32))

    return Kernel(init, step)


BARKER = tunable_kernels.Tunable(
    "barker", barker, target_acceptance_rate=0.57, order=3.0, first_step=1.0
)


@pytest.fixture(autouse=True)
def own_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(tunable_kernels, "_TABLE", dict(tunable_kernels._TABLE))
    return


def plain_chains(**planted: float) -> np.ndarray:
    """Draws of 40 chains by hand, from rest."""
    posterior, (_, covariance) = PROBLEM.posterior, PROBLEM.solve()
    variances = jnp.asarray(np.diag(covariance), jnp.float32)
    kernel = barker(posterior.log_density, step_size=1.5, inverse_mass=variances, **planted)
    key_burn, key_draw = jax.random.split(jax.random.key(0))
    state, _ = kernels.sample(
        key_burn, kernel, jnp.zeros((40, 2)), posterior.data, num_draws=100, keep=nothing
    )
    _, draws = kernels.sample(key_draw, kernel, state, posterior.data, num_draws=3000)
    return np.asarray(draws, float)


def nothing(state: State, info: Info) -> tuple[()]:
    return ()


def test_a_plain_chain() -> None:
    assert moment_z(plain_chains(), PROBLEM) < 4.5


def test_planted_a_power_of_the_density_is_caught() -> None:
    assert moment_z(plain_chains(power=1.3), PROBLEM) > 8


def test_smc() -> None:
    mutation = Mutation(kernel=BARKER)
    ensemble = SMC(num_particles=200, num_runs=20, mutation=mutation).run(1, PROBLEM.posterior)
    ratio = np.exp(ensemble.scalars["log_evidence"] - PROBLEM.log_evidence())
    assert chain_z(ratio, np.ones(())) < 4.5
    assert moment_z(weights(ensemble), PROBLEM) < 4.5


def test_ces() -> None:
    """The emulator is wrong: it has seen half of the rows."""
    method = CES(
        sampler=BARKER, calibration="pcn", emulator=Taylor(num_rows=6, order=1), max_error=1e6,
        num_chains=24, num_draws=300, num_warmup=200, thinning=3, num_calibration=20,
        num_refinements=0, training=TRAINING,
    )  # fmt: skip
    ensemble = method.run(1, PROBLEM.posterior)
    assert moment_z(weights(ensemble), PROBLEM) < 4.5
    assert np.mean(ensemble.scalars["acceptance_rate"]) < 0.95  # it is corrected


@pytest.mark.filterwarnings(
    "ignore::credence.methods.interacting.partner_warnings.DegenerateAuxiliaryWarning"
)
def test_interacting_particles() -> None:
    """Accept-reject jumps to fresh partners have no bias; independent runs tell."""
    method = Interacting(
        kernel=BARKER, auxiliary="prior", num_particles=30, num_draws=60, num_warmup=50,
        training=TRAINING,
    )  # fmt: skip
    runs = [weights(method.run(seed, PROBLEM.posterior)).reshape(-1, 2) for seed in range(8)]
    assert moment_z(np.stack(runs), PROBLEM) < 4.5


def test_networks_of_many_widths() -> None:
    """Widths are uniform without data, and weights are as their prior says."""
    x = np.linspace(-1, 1, 5)[:, None]
    of = Posterior(
        MLP(1, hidden=(3,)),
        Gaussian(scaling="unit"),
        Normal(0.3),
        (x, x[:, 0], np.zeros(5)),
    )
    method = Transdimensional(
        within=BARKER, moves=("plain",), num_jumps=2, num_chains=24, num_draws=150, num_warmup=25
    )
    ensemble = method.run(0, of)
    widths = np.asarray(ensemble.scalars["width"])[..., None] == np.arange(1, 4)
    first, last = ensemble.params.network
    squares = np.sum(first.kernel**2, axis=(-2, -1)) - np.asarray(ensemble.scalars["width"])
    assert chain_z(widths, np.full(3, 1 / 3)).max() < 4.5
    assert chain_z(last.bias[..., 0] ** 2, np.ones(())) < 4.5
    assert chain_z(squares, np.zeros(())) < 4.5


METHODS: dict[str, Any] = {
    "mutation": lambda kernel: SMC(mutation=Mutation(kernel=kernel)),
    "kernel": lambda kernel: Interacting(kernel=kernel, auxiliary_kernel=kernel),
    "sampler": lambda kernel: CES(sampler=kernel),
    "within": lambda kernel: Transdimensional(within=kernel),
}
of_all = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


@of_all
def test_settings_name_it_and_are_read_back(method: Any) -> None:
    given = method(BARKER)
    settings = json.loads(json.dumps(asdict(given)))
    assert "barker" in json.dumps(settings)
    assert type(given).from_settings(settings) == given == method("barker")


@of_all
def test_a_name_that_nobody_registered_is_refused(method: Any) -> None:
    with pytest.raises(InputError, match=r"'barker': choose one of hmc, .* registered first"):
        method("barker")
    register_kernel(BARKER)
    method("barker")


@of_all
def test_two_kernels_of_one_name_are_refused(method: Any) -> None:
    method(BARKER)
    other = tunable_kernels.Tunable("barker", barker, target_acceptance_rate=0.4, order=3.0)
    with pytest.raises(InputError, match="Another kernel has the name 'barker'"):
        method(other)
    register_kernel(other)  # says that it is meant
    method(other)


def test_a_name_of_ours_is_refused() -> None:
    with pytest.raises(InputError, match="'nuts' is a kernel of Credence's own"):
        register_kernel(tunable_kernels.Tunable("nuts", barker, 0.5, 3.0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target_acceptance_rate": 1.0}, "target_acceptance_rate must be strictly between"),
        ({"order": 0.0}, "order must be > 0"),
        ({"first_step": -1.0}, "first_step must be > 0"),
        ({"fewest_weights": 0}, "fewest_weights must be > 0"),
        ({"reference": "posterior"}, "reference must be None"),
    ],
)
def test_rows_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"target_acceptance_rate": 0.5, "order": 1.0}
    with pytest.raises(InputError, match=message):
        tunable_kernels.Tunable("walk", barker, **usual | settings)


ONE_WAY = tunable_kernels.Tunable(
    "one_way", barker, target_acceptance_rate=0.5, order=1.0, is_reversible=False
)


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        (Interacting, {"kernel": "mclmc"}, "cannot be 'mclmc': a jump takes a particle to"),
        (Interacting, {"kernel": "pcn_cloud"}, "cannot be 'pcn_cloud': its reference"),
        (Interacting, {"auxiliary_kernel": "mclmc"}, "The auxiliary kernel cannot be 'mclmc'"),
        (CES, {"sampler": ONE_WAY}, "delayed acceptance is right for steps that are reversible"),
        (CES, {"sampler": "pcn_cloud"}, "how 'pcn' gets the moments"),
        (Transdimensional, {"within": "pcn"}, "which weights there are changes"),
        (Transdimensional, {"within": "mclmc", "sandwich": True}, "right for reversible steps"),
    ],
)
def test_what_would_not_be_exact_is_refused(
    method: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        method(**settings)


@pytest.mark.parametrize(
    "method",
    [
        MCLMC(),
        ParallelTempering(),
        CES(sampler="mclmc"),
        SMC(mutation=Mutation(kernel="mclmc")),
    ],
    ids=lambda method: method.name,
)
def test_one_weight_is_refused_before_anything_is_trained(method: Any) -> None:
    data = np.ones((3, 0), np.float32), np.arange(3, dtype=np.float32)
    posterior = Posterior(MLP(1, ()), Gaussian(), Normal(1.0), data)
    with pytest.raises(InputError, match="'mclmc' needs at least 2 weights, got 1: use 'hmc'"):
        method.run(0, posterior)


def test_a_kernel_may_want_many_weights_of_the_widest_network() -> None:
    """The widest network has 3 max_width + 1 weights."""
    many = tunable_kernels.Tunable("of_many", barker, 0.5, 3.0, fewest_weights=22)
    method = Transdimensional(within=many, max_width=6)
    posterior = Posterior(MLP(1, (2,)), Gaussian(), Normal(1.0), (PROBLEM.x, PROBLEM.y))
    with pytest.raises(InputError, match="'of_many' needs at least 22 weights, got 19"):
        method.prepared(posterior)
    replace(method, max_width=7).prepared(posterior)


def test_mclmc_goes_where_it_is_exact() -> None:
    SMC(mutation=Mutation(kernel="mclmc"))
    CES(sampler="mclmc")  # trajectories of one length
    CES(sampler=ONE_WAY, correction="psis")
    Transdimensional(within="mclmc")
