"""Interacting particles: exact finite-cloud laws, and the mistakes that change them."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.clouds import OUTER, rings, run_clouds
from tools.targets import correlated, gaussian_log_density, standard, z_scores
from tools.two_state import (
    NOTHING,
    kernel,
    log_auxiliary,
    mean_with_past,
    potential,
    shares,
    stationary_law,
)

from credence.errors import InputError
from credence.kernels.base import Kernel
from credence.kernels.mcmc.hmc import leapfrogs
from credence.kernels.mcmc.mala import mala
from credence.kernels.mcmc.pcn import pcn
from credence.kernels.sgmcmc.ula import ula
from credence.methods.interacting import kernel as module
from credence.methods.interacting.auxiliary import MIXTURE, Auxiliary, gaussian, tempered
from credence.methods.interacting.kernel import interacting

pytestmark = [pytest.mark.usefixtures("float64"), pytest.mark.rotates(3)]

NUM_CLOUDS, NUM_STEPS = 4000, 50
BG = {2: 0.39922, 5: 0.55203, 20: 0.66924}
AR = {2: 0.67517, 5: 0.68966, 20: 0.69737}


def mean_z(built: Kernel, num: int, exact: float, num_clouds: int = NUM_CLOUDS) -> float:
    """z of the share of ones, with the standard error over independent clouds."""
    found = simulated(built, num, num_clouds)
    return float((found.mean() - exact) / (found.std(ddof=1) / len(found) ** 0.5))


def variance_z(built: Kernel, num: int, exact: float) -> float:
    """z of the variance of a cloud's share of ones."""
    found = simulated(built, num, NUM_CLOUDS)
    squares = (found - found.mean()) ** 2
    error = squares.std(ddof=1) / len(found) ** 0.5
    return float((squares.mean() * len(found) / (len(found) - 1) - exact) / error)


def simulated(built: Kernel, num: int, num_clouds: int) -> Any:
    found = shares(built, 0, num_clouds=num_clouds, num_particles=num, num_steps=NUM_STEPS)
    return np.asarray(found)


class TestTwoStates:
    """N1: stationary law of finite clouds."""

    @pytest.mark.parametrize(("jump", "known"), [("bg", BG), ("ar", AR)])
    def test_exact_law_is_the_known_one(self, jump: str, known: dict[int, float]) -> None:
        for num, one in known.items():
            assert abs(stationary_law(num, jump).mean - one) < 1e-5

    @pytest.mark.parametrize("jump", ["bg", "ar"])
    @pytest.mark.parametrize("num", [2, 5, 20])
    @pytest.mark.parametrize("synchronous", [False, True])
    def test_finite_clouds_have_the_exact_law(self, jump: str, num: int, synchronous: bool) -> None:
        law = stationary_law(num, jump, synchronous=synchronous)
        built = kernel(jump, synchronous=synchronous)
        z = mean_z(built, num, law.mean), variance_z(built, num, law.variance)
        print(f"{jump}, N = {num}: z of mean {z[0]:.1f}, of variance {z[1]:.1f}")
        assert max(map(abs, z)) < 4.5

    @pytest.mark.parametrize("jump", ["bg", "ar"])
    def test_one_coin_for_all_keeps_the_law_of_a_particle(self, jump: str) -> None:
        """One coin raises the variance of a cloud, which tells the two apart."""
        for num in (2, 5, 20):
            one, each = (stationary_law(num, jump, synchronous=s) for s in (True, False))
            np.testing.assert_allclose(one.mean, each.mean, rtol=1e-6)
            assert one.variance > each.variance
        if jump == "bg":  # accept-reject hardly differs
            z = variance_z(kernel(jump), 20, one.variance)
            print(f"variance with a coin each, {each.variance:.5f}, against that with one coin "
                  f"for all, {one.variance:.5f}: z {z:.1f}")  # fmt: skip
            assert abs(z) > 8

    @pytest.mark.parametrize("jump", ["bg", "ar"])
    def test_move_then_jump_has_its_own_exact_law(self, jump: str) -> None:
        law, mixed = stationary_law(5, jump, composed=True), stationary_law(5, jump)
        built = kernel(jump, composed=True)
        z = mean_z(built, 5, law.mean), variance_z(built, 5, law.variance)
        print(f"{jump}, composed: z {z[0]:.1f}, {z[1]:.1f}; mixture's law {mixed.mean:.5f}")
        assert max(map(abs, z)) < 4.5

    @pytest.mark.parametrize("jump", ["bg", "ar"])
    def test_jumps_to_the_two_latest_clouds(self, jump: str) -> None:
        exact = mean_with_past(2, jump)
        z = mean_z(kernel(jump, num_past=2), 2, exact, 4 * NUM_CLOUDS)
        print(f"{jump}, jumps to two clouds: z {z:.1f}")
        assert abs(z) < 4.5
        if jump == "bg":  # accept-reject hardly differs
            planted = mean_z(kernel(jump), 2, exact, 4 * NUM_CLOUDS)
            print(f"to the newest alone: z {planted:.1f}")
            assert abs(planted) > 8

    @pytest.mark.parametrize("selection", ["stratified", "systematic"])
    def test_strata_keep_the_law_of_a_particle_and_lower_the_variance(self, selection: str) -> None:
        law = stationary_law(20, "bg")
        built = kernel("bg", selection=selection)
        z, variance = mean_z(built, 20, law.mean), variance_z(built, 20, law.variance)
        print(f"{selection}: z {z:.1f}; variance against multinomial {variance:.1f}")
        assert abs(z) < 4.5
        assert variance < 2


class TestPlantedErrors:
    """Each must be caught by the same numbers."""

    @pytest.mark.parametrize("synchronous", [False, True])
    @pytest.mark.parametrize("jump", ["bg", "ar"])
    @pytest.mark.parametrize(
        ("name", "wrong"),
        [
            ("1 / G", lambda *at: -potential(*at)),
            ("uniform", lambda *at: 0 * at[0]),
            ("eta omitted", lambda *at: at[0]),
        ],
    )
    def test_wrong_potentials(self, jump: str, name: str, wrong: Any, synchronous: bool) -> None:
        density = Auxiliary(log_auxiliary, wrong)
        z = mean_z(
            kernel(jump, density, synchronous=synchronous), 20, stationary_law(20, jump).mean
        )
        print(f"{jump}, {name}: z {z:.0f}")
        assert abs(z) > 8

    def test_potentials_that_do_not_follow_their_states(self, monkeypatch: Any) -> None:
        honest = module.boltzmann_gibbs

        def wrong(level: Any, cloud: Any, origin: Any) -> Any:
            rolled = jnp.roll(cloud.log_potential, 1, axis=0)
            return honest(level, cloud._replace(log_potential=rolled), origin)

        monkeypatch.setattr(module, "boltzmann_gibbs", wrong)
        z = mean_z(kernel("bg"), 20, stationary_law(20, "bg").mean)
        print(f"un-permuted potentials: z {z:.0f}")
        assert abs(z) > 8

    def test_shared_uniforms(self, monkeypatch: Any) -> None:
        honest = module.level_in_cloud

        def wrong(uniform: Any, selection: str, axes: Any) -> Any:
            return module.everyone(honest(uniform, selection, axes), axes)[0]

        monkeypatch.setattr(module, "level_in_cloud", wrong)
        law, built = stationary_law(20, "bg"), kernel("bg")
        z = mean_z(built, 20, law.mean), variance_z(built, 20, law.variance)
        print(f"shared uniforms: z of mean {z[0]:.1f}, of variance {z[1]:.1f}")
        assert abs(z[1]) > 8


@pytest.mark.parametrize(
    ("jump", "expected"), [("bg", {5: -0.74, 10: -0.69, 20: -0.62, 100: -0.55}), ("ar", {})]
)
def test_bias_falls_as_one_over_the_number_of_particles(
    jump: str, expected: dict[int, float]
) -> None:
    """N2, from the exact law."""
    for num, value in expected.items():
        one = particle_mean(num, jump)
        assert abs(num * (one - 0.7) - value) < 0.006, (num, num * (one - 0.7))
    if jump == "ar":
        scaled = [num * (particle_mean(num, jump) - 0.7) for num in (10, 20, 100)]
        np.testing.assert_allclose(scaled, -0.052, atol=0.0015)


def particle_mean(num: int, jump: str) -> float:
    """Mean of one particle: the chain on (x, ones among Y) is enough, and small."""
    from tools.two_state import Q, _stationary, step_matrix, sums

    aux, size = sums(num, Q), num + 1
    transitions = np.zeros((2, size, 2, size))
    for c in range(size):
        transitions[:, :, :, c] = step_matrix(jump, c / num)[:, None, :] * aux[None, :, c, None]
    return float(_stationary(transitions.reshape(2 * size, -1)).reshape(2, -1).sum(axis=1)[1])


TARGET = correlated(2)
STD = np.linalg.norm(TARGET.cholesky, axis=1)
LINEAR = {"mala": mala, "hmc": leapfrogs, "pcn": pcn, "ula": ula}


def linear_settings(name: str) -> dict[str, Any]:
    """Settings of a linear kernel, in the precision of the test."""
    if name == "pcn":
        reference = {"reference_mean": jnp.asarray(TARGET.mean), "reference_std": jnp.asarray(STD)}
        return {"step_size": 0.7, **reference}
    length = {"num_integration_steps": 3} if name == "hmc" else {}
    return {"step_size": 0.7, "inverse_mass": jnp.asarray(STD**2), **length}


def around() -> Any:
    """A wider Gaussian, off the target."""
    return gaussian(TARGET.mean + 0.3 * STD, 1.3 * STD)


def on_gaussian(jump: str, linear: str = "mala", **settings: Any) -> Kernel:
    """Interacting particles on a correlated Gaussian, fresh partners from a wider one."""
    return interacting(
        gaussian_log_density,
        **{
            "auxiliary": MIXTURE,
            "arrays": around(),
            "kernel": LINEAR[linear],
            "settings": linear_settings(linear),
            "auxiliary_kernel": None,
            "auxiliary_settings": {},
            "jump_probability": 0.3,
            "jump": jump,
            "axes": ("particle",),
            **settings,
        },
    )


class TestGaussian:
    """Accept-reject jumps to fresh partners are exact in clouds of any size."""

    @staticmethod
    def ends(built: Kernel, data: Any, num_clouds: int = 8000) -> Any:
        """One particle of each cloud of three, after ten steps from exact draws."""
        starts = TARGET.sample(1, 3 * num_clouds).reshape(num_clouds, 3, 2)
        states, info = run_clouds(built, starts, starts, data, num_steps=10)
        return TARGET.whiten(states.position[:, 0]), info

    @pytest.mark.parametrize("synchronous", [False, True])
    @pytest.mark.parametrize("linear", ["mala", "hmc", "pcn"])
    def test_accept_reject_is_exact(self, linear: str, synchronous: bool) -> None:
        built = on_gaussian("ar", linear, synchronous=synchronous)
        whitened, info = self.ends(built, TARGET.data)
        planted, _ = self.ends(built, TARGET._replace(factor=1.2).data)
        z, wrong = max(z_scores(whitened).values()), max(z_scores(planted).values())
        print(f"ar with {linear}: z {z:.1f}; target to the power 1.2: {wrong:.1f}")
        assert z < 4.5
        assert wrong > 8
        assert np.all(info.is_finite)
        assert np.mean(info.is_jump) == pytest.approx(0.3, abs=0.01)
        expected = 0.3 * float(np.mean(info.jump_acceptance_rate[info.is_jump]))
        assert np.mean(info.is_accepted_jump) == pytest.approx(expected, abs=0.01)
        assert 0.3 < np.mean(info.jump_acceptance_rate) < 0.9

    @pytest.mark.rotates(3)
    def test_boltzmann_gibbs_bias_falls_with_the_number_of_particles(self) -> None:
        """E |X|^2 from clouds of 4 to 64; AR's stays at 2."""
        built, sizes = on_gaussian("bg", jump_probability=0.9), (4, 16, 64)
        found = [np.mean(np.sum(self.cloud(built, num) ** 2, axis=-1)) - 2 for num in sizes]
        print(
            "BG, excess of E |X|^2:",
            *(f"{num}: {z:.3f}" for num, z in zip(sizes, found, strict=True)),
        )
        assert found[0] > 4 * found[2] > 0

    @staticmethod
    def cloud(built: Kernel, num: int) -> Any:
        count = 40_000 // num
        starts = TARGET.sample(2, count * num).reshape(count, num, 2)
        states, _ = run_clouds(built, starts, starts, TARGET.data, num_steps=10)
        return TARGET.whiten(states.position.reshape(-1, 2))

    @pytest.mark.parametrize("synchronous", [False, True])
    @pytest.mark.parametrize("jump", ["bg", "ar"])
    def test_constants_change_nothing(self, jump: str, synchronous: bool) -> None:
        """N4: of the target's log density or of the auxiliary's."""
        higher = MIXTURE._replace(
            log_density=lambda *at: MIXTURE.log_density(*at) + 500.0,
            log_potential=lambda *at: MIXTURE.log_potential(*at) - 500.0,
        )
        starts = TARGET.sample(3, 60).reshape(3, 20, 2)
        plain, moved = (
            run_clouds(built, starts, starts, TARGET.data, num_steps=20)[0].position
            for built in (
                on_gaussian(jump, auxiliary=density, synchronous=synchronous)
                for density in (MIXTURE, higher)
            )
        )
        np.testing.assert_allclose(plain, moved, rtol=1e-9)
        assert np.mean(plain == starts) < 0.1

    def test_potentials_are_target_over_auxiliary(self) -> None:
        starts = TARGET.sample(3, 20).reshape(1, 20, 2)
        states, info = run_clouds(on_gaussian("bg"), starts, starts, TARGET.data, num_steps=3)
        past = states.past.state.position[0, :, 0]
        np.testing.assert_array_equal(past, states.auxiliary.position[0])
        exact = [
            gaussian_log_density(y, TARGET.data) - MIXTURE.log_density(y, TARGET.data, around())
            for y in past
        ]
        np.testing.assert_allclose(states.past.log_potential[0, :, 0], exact, rtol=1e-12)
        weights = np.exp(exact)
        ess = np.sum(weights) ** 2 / np.sum(weights**2)
        np.testing.assert_allclose(info.potential_ess[0, -1], ess, rtol=1e-6)

    @pytest.mark.rotates(3)
    def test_partners_whose_potential_is_not_finite_are_never_jumped_to(self) -> None:
        """The target is NaN for positive first weights; half of the partners are there."""
        target = standard(2)._replace(bound=0.0)
        starts = -abs(target.sample(4, 2000)).reshape(100, 20, 2)
        for jump in ("bg", "ar"):
            built = on_gaussian(jump, arrays=gaussian(jnp.zeros(2), jnp.full(2, 1.5)))
            states, info = run_clouds(built, starts, starts, target.data, num_steps=10)
            assert np.all(states.position[..., 0] < 0)
            assert np.mean(info.is_finite) < 0.6

    def test_nobody_jumps_where_no_potential_is_finite(self) -> None:
        starts = TARGET.sample(4, 40).reshape(2, 20, 2)
        nowhere = TARGET._replace(bound=-np.inf).data
        for jump in ("bg", "ar"):
            states, info = run_clouds(on_gaussian(jump), starts, starts, nowhere, num_steps=5)
            np.testing.assert_array_equal(states.position, starts)
            assert not np.any(info.is_accepted_jump)
            assert not np.any(info.is_finite)


def still(log_density: Any) -> Kernel:
    """A deterministic Q: the next point of a grid."""
    return Kernel(
        lambda position, data: module._Place(position),
        lambda key, state, data: (
            module._Place(state.position + 1.0),
            module._Drawn(jnp.ones((), bool)),
        ),
    )


@pytest.mark.parametrize("synchronous", [False, True])
@pytest.mark.parametrize("jump", ["bg", "ar"])
def test_jumps_land_on_the_newest_auxiliary_states(
    jump: str, synchronous: bool, monkeypatch: Any
) -> None:
    """N3: with eps = 1, X is a part of the new Y; a stale cloud is a part of the old."""
    settings: dict[str, Any] = {
        "jump_probability": 1.0,
        "auxiliary_kernel": still,
        "synchronous": synchronous,
    }
    starts = TARGET.sample(5, 40).reshape(1, 40, 2)

    def share_on_new(built: Kernel) -> float:
        states, info = run_clouds(built, starts, starts, TARGET.data, num_steps=1)
        jumped = np.asarray(info.is_accepted_jump[0, 0])
        x, y = np.asarray(states.position[0])[jumped], starts[0] + 1.0
        return float(np.mean([np.any(np.all(y == each, axis=1)) for each in x]))

    assert share_on_new(on_gaussian(jump, **settings)) == 1
    honest = module._Pair.remembered
    stale = lambda self, state, partner, data: honest(self, state, partner - 1.0, data)  # noqa: E731
    monkeypatch.setattr(module._Pair, "remembered", stale)
    assert share_on_new(on_gaussian(jump, **settings)) == 0


@pytest.mark.rotates(4)
@pytest.mark.parametrize("synchronous", [False, True])
@pytest.mark.parametrize("jump", ["bg", "ar"])
def test_rings_far_from_the_start(jump: str, synchronous: bool) -> None:
    """N5: 2/3 of the mass is on the outer ring, where plain MALA leaves nearly all.

    Partners start in equilibrium: from (5, 5) they would need more than 1500 steps to get there.
    """
    step = {"step_size": 0.006, "inverse_mass": jnp.ones(2)}
    rng = np.random.default_rng(6)
    starts, partners = 5 + rng.normal(size=(8, 400, 2)), 2 * rng.normal(size=(8, 400, 2))

    def outer_z(probability: float) -> tuple[float, float]:
        built = interacting(
            rings,
            auxiliary=MIXTURE,
            arrays=gaussian(jnp.zeros(2), jnp.full(2, 2.0)),
            kernel=mala,
            settings=step,
            auxiliary_kernel=mala,
            auxiliary_settings=step,
            jump_probability=probability,
            jump=jump,
            synchronous=synchronous,
            axes=("particle",),
        )
        states, _ = run_clouds(built, starts, partners, NOTHING, num_steps=1500)
        share = np.mean(np.linalg.norm(states.position, axis=-1) > 1.5, axis=1)
        error = np.std(share, ddof=1) / len(share) ** 0.5
        return float(share.mean()), float((share.mean() - OUTER) / error)

    (share, z), (control, planted) = outer_z(0.1), outer_z(1e-9)
    print(f"{jump}: P(|z| > 1.5) = {share:.4f} (z {z:.1f}); MALA {control:.4f} (z {planted:.0f})")
    assert abs(z) < 4.5
    assert abs(planted) > 8
    assert control > 0.95


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"jump_probability": 0.0}, "between 0 and 1"),
            ({"jump_probability": -0.1}, "between 0 and 1"),
            ({"jump_probability": 1.5}, "between 0 and 1"),
            ({"jump_probability": float("nan")}, "between 0 and 1"),
            ({"jump": "hop"}, "Unknown jump 'hop'"),
            ({"selection": "best"}, "Unknown selection 'best'"),
            ({"num_past": 0}, "num_past must be at least 1"),
            ({"num_past": 2, "synchronous": True}, "num_past=2 remembers the potentials"),
            ({"auxiliary": Auxiliary(lambda *_: 0.0, lambda *_: 0.0)}, "cannot be drawn from"),
        ],
    )
    def test_bad_settings(self, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(InputError, match=re.escape(message)):
            on_gaussian(**{"jump": "bg", **settings})

    def test_a_particle_alone(self) -> None:
        starts = jnp.zeros((2, 1, 2))
        with pytest.raises(InputError, match="at least 2 particles, got 1"):
            run_clouds(on_gaussian("bg"), starts, starts, TARGET.data, num_steps=1)


@pytest.mark.parametrize(
    ("linear", "jump", "expected"),
    [("mala", "bg", (0, 2)), ("hmc", "ar", (0, 4)), ("pcn", "ar", (2, 0)), ("ula", "ar", (2, 1))],
)
def test_work_is_counted(linear: str, jump: str, expected: tuple[int, int]) -> None:
    """Log densities without and with gradient: K's own, and its first state at Y."""
    starts = TARGET.sample(4, 20).reshape(1, 20, 2)
    _, info = run_clouds(on_gaussian(jump, linear), starts, starts, TARGET.data, num_steps=2)
    assert (int(info.num_evaluations[0, 0, 0]), int(info.num_gradients[0, 0, 0])) == expected


@pytest.mark.parametrize(("linear", "own", "jumping"), [("mala", 1, 2), ("hmc", 3, 4)])
def test_only_jumps_cost_a_potential(linear: str, own: int, jumping: int) -> None:
    """One coin is thrown for all: seen by the count, and in the compiled step, which branches."""
    starts = TARGET.sample(4, 200).reshape(10, 20, 2)
    built = on_gaussian("ar", linear, synchronous=True)
    _, info = run_clouds(built, starts, starts, TARGET.data, num_steps=30)
    assert np.all(info.is_jump == info.is_jump[..., :1])
    np.testing.assert_array_equal(info.num_gradients, np.where(info.is_jump, jumping, own))
    assert 0.2 < np.mean(info.is_jump) < 0.4
    assert np.all(info.potential_ess > 1)

    def traced(built: Kernel) -> str:
        states = jax.vmap(lambda x: built.init(x, TARGET.data))(starts[0])
        step = jax.vmap(
            lambda key, state: built.step(key, state, TARGET.data), axis_name="particle"
        )
        return str(jax.make_jaxpr(step)(jax.random.split(jax.random.key(0), 20), states))

    assert " cond[" in traced(built)
    assert " cond[" not in traced(on_gaussian("ar", linear))


def test_partners_on_a_tempered_target_cost_a_likelihood() -> None:
    starts = TARGET.sample(4, 20).reshape(1, 20, 2)
    built = on_gaussian(
        "ar",
        auxiliary=tempered(gaussian_log_density),
        arrays=jnp.asarray(1.5),
        auxiliary_kernel=mala,
        auxiliary_settings=linear_settings("mala"),
    )
    states, info = run_clouds(built, starts, starts, TARGET.data, num_steps=2)
    assert int(info.num_gradients[0, 0, 0]) == 3
    y = states.auxiliary.position[0, 0]
    exact = (1 - 1 / 1.5) * gaussian_log_density(y, TARGET.data)
    np.testing.assert_allclose(states.past.log_potential[0, 0, 0], exact)
    np.testing.assert_allclose(
        states.auxiliary.log_density[0, 0], gaussian_log_density(y, TARGET.data) / 1.5
    )
