"""Jumps on a ladder of temperatures: every rung keeps its law, whose sizes are known exactly."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import stats
from tools.stops import AfterBlocks, Stop
from tools.widths import (
    Toy,
    chi_squared,
    count_widths,
    in_chunks,
    jitted,
    network_target,
    no_data,
    prior_scores,
    toy,
)

from credence import Posterior, methods
from credence.density.posterior import flat_log_density
from credence.kernels.mcmc import replica_exchange
from credence.kernels.mcmc.hmc import hmc
from credence.methods import SMC, Transdimensional
from credence.methods.evidence import LogEvidence
from credence.methods.transdimensional import ladder
from credence.methods.transdimensional.active_neurons import count_active
from credence.methods.transdimensional.size_priors import DepthPrior, WidthPrior
from credence.methods.transdimensional.target import Point
from credence.models import MLP, Gaussian, HierarchicalGamma, Normal

NUM_REPLICATES, NUM_SWEEPS = 3000, 6
POWERS = (0.0, 0.05, 0.3, 1.0)
"""Powers of the ladder, and of the laws that its rungs start from and should keep."""


def at_power(power: float) -> Toy:
    """A likelihood to a power is, but for a constant, that of a larger noise."""
    known = toy()
    return known._replace(noise_std=known.noise_std / max(power, 1e-9) ** 0.5)


def run(powers: tuple[float, ...] = POWERS) -> tuple[Any, Any]:
    """Replicates that start from the exact law of the ladder: ends, and what the sweeps told."""
    target, data = toy().target, toy().data
    points = [at_power(t).points(seed, NUM_REPLICATES) for seed, t in enumerate(POWERS)]
    flat = jax.vmap(lambda params: ravel_pytree(params)[0])
    start = jnp.stack([flat(each.params) for each in points], axis=1)
    size = start.shape[-1]
    kernel = ladder.on_a_ladder(
        flat_log_density(target.model),
        target=target,
        powers=jnp.asarray(powers),
        step_size=jnp.full(len(powers), 0.15),
        inverse_mass=jnp.ones((len(powers), size)),
        within=hmc,
        within_settings=(("max_integration_steps", 5), ("trajectory_length", 0.75)),
        moves=("informed",),
        num_jumps=2,
    )

    def replicate(key: Any, positions: Any) -> Any:
        step = lambda state, key: kernel.step(key, state, data)  # noqa: E731
        keys = jax.random.split(key, NUM_SWEEPS)
        state, info = jax.lax.scan(step, kernel.init(positions, data), keys)
        widths = jax.vmap(lambda position: target.model.unravel(position, data).network)(
            state.positions
        )
        return jnp.sum(widths[-1].kernel[..., 0] != 0, axis=-1), info

    keys = jax.random.split(jax.random.key(1), NUM_REPLICATES)
    return jitted(lambda keys, start: in_chunks(replicate, keys, start))(keys, start)


def worst_p(widths: Any) -> float:
    """The smallest p-value of the rungs' widths against their exact laws."""
    found = []
    for rung, power in enumerate(POWERS):
        known = at_power(power)
        counts = count_widths(widths[:, rung], known.largest)
        found.append(chi_squared(counts, known.probabilities())[1])
    print(found)
    return min(found)


@pytest.mark.usefixtures("float64")
def test_every_rung_keeps_its_law() -> None:
    widths, info = run()
    assert worst_p(widths) > 1e-3
    exchanged = np.nanmean(info.exchange_rate, axis=(0, 1))
    nats = np.asarray(info.log_likelihood)[:, -1, -1]
    z = (nats.mean() - toy().mean_log_likelihood()) / (nats.std() / len(nats) ** 0.5)
    print(exchanged, z)
    assert exchanged.min() > 0.1, "else nothing is tested"
    assert abs(z) < 4.5
    assert np.asarray(info.is_restart).any()


@pytest.mark.usefixtures("float64")
def test_rungs_abreast_are_those_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.NUM_REPLICATES", 20)
    widths, info = run()
    monkeypatch.setattr(ladder, "over_rungs", ladder.abreast)
    widths_abreast, info_abreast = run()
    np.testing.assert_array_equal(widths, widths_abreast)
    np.testing.assert_allclose(info.log_likelihood, info_abreast.log_likelihood, rtol=1e-9)


@pytest.mark.usefixtures("float64")
def test_planted_powers_of_other_rungs_are_caught() -> None:
    assert worst_p(run((0.0, 0.05, 0.8, 1.0))[0]) < 1e-8


@pytest.mark.usefixtures("float64")
def test_planted_exchanges_the_wrong_way_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = replica_exchange.exchanged
    wrong = lambda key, nats, *more: right(key, -nats, *more)  # noqa: E731
    monkeypatch.setattr(replica_exchange, "exchanged", wrong)
    assert worst_p(run()[0]) < 1e-8


DEEP = network_target(
    largest=(3, 3),
    prior=HierarchicalGamma(4.0, 4.0),
    likelihood=Normal(noise_std=None),
    width_prior=WidthPrior("poisson", 2.0),
    depth_prior=DepthPrior("geometric", 2.0),
)


@pytest.mark.usefixtures("float64")
def test_the_hottest_rung_is_drawn_from_the_prior() -> None:
    """Sizes have their law, and squares of weights the mean variance at their size."""
    data = no_data()
    keys = jax.random.split(jax.random.key(3), 4000)
    params = jitted(jax.vmap(lambda key: DEEP.sample_prior(key, data)))(keys)
    widths = np.asarray(count_active(params.network))
    depths = (widths > 0).sum(axis=1)
    assert DEEP.depth_prior is not None
    for found, law, room in ((depths, DEEP.depth_prior, 2), (widths[:, 0], DEEP.width_prior, 3)):
        exact = np.exp(law.log_probs(room))[1:-1]
        assert chi_squared(count_widths(found, room), exact)[1] > 1e-3
    z = prior_scores(DEEP, Point(params, jnp.asarray(widths, jnp.int32), jnp.zeros(4000)))
    print(z)
    assert max(map(abs, z.values())) < 4.5


X = np.random.default_rng(0).normal(size=(30, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * np.random.default_rng(1).normal(size=30)
QUICK: dict[str, Any] = {
    "num_chains": 2, "num_draws": 60, "num_warmup": 50, "num_jumps": 3, "within": "hmc",
    "max_integration_steps": 8, "num_rungs": 4,
}  # fmt: skip


def posterior(width: int = 4) -> Posterior:
    return Posterior(MLP(1, (width,)), Gaussian(scaling="unit"), Normal(noise_std=0.3), (X, Y))


def test_a_ladder_tells_sizes_evidence_and_exchanges_and_goes_on(tmp_path: Path) -> None:
    whole = Transdimensional(**QUICK).run(0, posterior())
    found = methods.findings(whole)
    assert {"architecture", "log_evidence", "exchanges"} <= set(found)
    assert len(found["exchanges"].powers) == 4
    assert all(np.shape(each) == (2, 60) for each in whole.scalars.values())
    with pytest.raises(Stop):
        Transdimensional(**QUICK).run(0, posterior(), folder=tmp_path, progress=AfterBlocks(3))
    again = Transdimensional(**QUICK).run(0, posterior(), folder=tmp_path)
    jax.tree.map(np.testing.assert_array_equal, whole.params, again.params)
    thinned = Transdimensional(**QUICK | {"thinning": 2}).run(0, posterior())
    num_jumps = [np.mean(each.scalars["num_jumps"]) for each in (thinned, whole)]
    assert num_jumps[0] == pytest.approx(2 * num_jumps[1], rel=0.2)
    assert min(methods.findings(thinned)["exchanges"].rates) > 0
    plain = methods.findings(Transdimensional(**QUICK | {"num_rungs": 1}).run(0, posterior()))
    assert "exchanges" not in plain


@pytest.mark.slow
def test_sizes_and_evidence_are_those_of_particles_at_every_size() -> None:
    smc = SMC(num_particles=2000, num_runs=16)
    evidences = [LogEvidence.of(smc.run(k, posterior(k))) for k in range(1, 5)]
    log_z = np.array([each.nats for each in evidences if each is not None])
    errors = np.array([each.standard_error for each in evidences if each is not None])
    exact = np.exp(log_z - np.logaddexp.reduce(log_z))
    long = Transdimensional(num_chains=16, num_draws=400, num_warmup=300, num_rungs=6)
    ensemble = long.run(0, posterior())
    shares = np.array([(ensemble.scalars["width"] == k).mean(axis=1) for k in range(1, 5)])
    of_evidences = (np.diag(exact) - np.outer(exact, exact)) ** 2 @ errors**2
    error = np.sqrt(shares.var(axis=1, ddof=1) / 16 + of_evidences)
    z = (shares.mean(axis=1) - exact) / np.maximum(error, 1e-4)
    nats = np.asarray(ensemble.scalars["log_evidence"])[:, 0]
    mean = np.logaddexp.reduce(log_z) - np.log(4)
    nats_z = (nats.mean() - mean) / np.hypot(nats.std(ddof=1) / 4, errors.max())
    print(f"shares {shares.mean(axis=1)}, {exact}, z {z}; evidence {nats.mean()}, {mean}, {nats_z}")
    assert np.abs(z).max() < 4.5
    assert stats.norm.sf(abs(nats_z)) > 1e-5
