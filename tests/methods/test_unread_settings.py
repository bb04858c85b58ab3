"""Settings that nothing would read are refused; saved by earlier versions, they are left out."""

from dataclasses import asdict
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from credence import Posterior
from credence.adaptation.tunable_kernels import tunable_kernel
from credence.errors import InputError, UnreadSetting
from credence.methods import (
    CES,
    MLSMC,
    SGHMC,
    SGLD,
    SMC,
    Laplace,
    Mutation,
    NonlinearSGLD,
    ParallelTempering,
    Training,
    Transdimensional,
)
from credence.methods.algorithm import from_fields
from credence.methods.smc.multilevel import nested
from credence.methods.surrogate.emulators import Network
from credence.methods.transdimensional.size_priors import DepthPrior, WidthPrior
from credence.models import MLP, Gaussian, Normal

Case = tuple[Any, dict[str, Any], dict[str, Any], dict[str, Any]]
CASES: list[Case] = [
    (ParallelTempering, {"kernel": "mala"}, {"num_leapfrogs": 8}, {"kernel": "hmc"}),
    (Mutation, {"kernel": "pcn"}, {"trajectory_length": 1.5}, {"kernel": "mclmc"}),
    (Mutation, {"kernel": "nuts"}, {"trajectory_length": 0.2}, {"kernel": "hmc"}),
    (Mutation, {"num_steps": 3}, {"max_steps": 100}, {"num_steps": None}),
    (Mutation, {"num_steps": 3}, {"autocorrelation": 0.5}, {"num_steps": None}),
    (Transdimensional, {"within": "mala"}, {"trajectory_length": 1.0}, {"within": "mclmc"}),
    (Transdimensional, {"within": "mclmc"}, {"max_integration_steps": 64}, {"within": "hmc"}),
    (Transdimensional, {"within": "hmc"}, {"max_doublings": 8}, {"within": "nuts"}),
    (Transdimensional, {}, {"num_temperatures": 10}, {"moves": ("annealed_by_2",)}),
    (
        Transdimensional,
        {"max_depth": 2},
        {"num_integration_steps": 5},
        {"layer_moves": ("annealed_layer",)},
    ),
    (Transdimensional, {"moves": ("annealed",)}, {"split_std": 0.5}, {"moves": ("split_merge",)}),
    (Transdimensional, {}, {"identity_std": 0.5}, {"max_depth": 2}),
    (
        Transdimensional,
        {"max_depth": 2, "layer_moves": ("layer",)},
        {"identity_std": 0.5},
        {"layer_moves": ("identity_layer",)},
    ),
    (WidthPrior, {"smallest": 2}, {"mean": 3.0}, {"shape": "poisson"}),
    (DepthPrior, {}, {"mean": 3.0}, {"shape": "geometric"}),
    (Laplace, {"noise": "mode"}, {"held_out_fraction": 0.2}, {"noise": "held_out"}),
    (SGLD, {}, {"exploration_share": 0.5}, {"num_cycles": 2}),
    (NonlinearSGLD, {}, {"exploration_share": 0.5}, {}),
    (SGLD, {"step_size": 1e-4}, {"target_acceptance_rate": 0.8}, {"step_size": None}),
    (
        SGHMC,
        {"preconditioner": "scale_adapted"},
        {"target_acceptance_rate": 0.8},
        {"preconditioner": "none"},
    ),
    (MLSMC, {"widths": ((2,), (4,))}, {"ratio": 2.0}, {"widths": None}),
    (MLSMC, {"coarse": (MLP(1, (2,)),)}, {"num_levels": 2}, {"coarse": ()}),
    (MLSMC, {"coarse": (MLP(1, (2,)),)}, {"base": 2}, {"coarse": ()}),
    (CES, {"sampler": "nuts"}, {"reference": "posterior"}, {"sampler": "pcn"}),
    (CES, {"sampler": "sghmc", "correction": "none"}, {"reference": "prior"}, {"sampler": "pcn"}),
    (CES, {}, {"calibration_rows": 30}, {"calibration": "sghmc"}),
    (
        CES,
        {"step_size": 0.1, "surrogate_steps": 5},
        {"target_acceptance_rate": 0.3},
        {"step_size": None},
    ),
    (
        CES,
        {"calibration": "sghmc_public"},
        {"training": Training(patience=3)},
        {"calibration": "sghmc"},
    ),
    (
        Network,
        {"target": "log_likelihood"},
        {"num_components": 50},
        {"target": "outputs"},
    ),
]
each = pytest.mark.parametrize(
    ("kind", "others", "given", "reads"),
    CASES,
    ids=[f"{kind.__name__}-{next(iter(given))}-{i}" for i, (kind, _, given, _) in enumerate(CASES)],
)


@each
def test_a_setting_that_nothing_reads_is_refused(
    kind: Any, others: dict[str, Any], given: dict[str, Any], reads: dict[str, Any]
) -> None:
    """The sentence names it; without it, and where it is read, nothing is refused."""
    (name,) = given
    with pytest.raises(UnreadSetting, match=f"{name}.*leave it out") as refused:
        kind(**others, **given)
    assert refused.value.name == name
    kind(**others)
    if reads:
        assert getattr(kind(**others | reads, **given), name) == given[name]


@each
def test_a_saved_setting_that_nothing_reads_is_left_out(
    kind: Any, others: dict[str, Any], given: dict[str, Any], reads: dict[str, Any]
) -> None:
    """Earlier versions wrote the number that was usual, whether it was read or not."""
    wanted = kind(**others)
    values = {name: getattr(wanted, name) for name in others} | given
    assert from_fields(kind, values, is_saved=True) == wanted
    with pytest.raises(UnreadSetting):
        from_fields(kind, values)
    if reads:
        kept = from_fields(kind, values | reads, is_saved=True)
        assert kept == kind(**others | reads, **given)


def test_saved_parts_of_a_method_are_read_too() -> None:
    """A run of SMC by pCN, as version 0.1.0 wrote it."""
    method = SMC(mutation=Mutation(kernel="pcn", num_steps=3))
    saved = asdict(method)
    saved["mutation"] |= {"trajectory_length": 1.5, "max_steps": 100, "autocorrelation": 0.5}
    assert SMC.from_settings(saved, is_saved=True) == method
    with pytest.raises(InputError, match=r"trajectory_length=1\.5 is of HMC and MCLMC"):
        SMC.from_settings(saved)
    emulated = CES(calibration="pcn", emulator=Network(target="log_likelihood"))
    saved = asdict(emulated)
    saved["emulator"] |= {"num_components": 50}
    assert CES.from_settings(saved | {"reference": "posterior"}, is_saved=True) == emulated
    chain = Transdimensional(width_prior=WidthPrior(smallest=2))
    saved = asdict(chain) | {"training": {"max_epochs": 2000}, "split_std": 0.5}
    saved["width_prior"] |= {"mean": 3.0}
    assert Transdimensional.from_settings(saved, is_saved=True) == chain


def test_what_is_usual_is_what_is_told() -> None:
    """None gives the kernels what the numbers in the docstrings give, and other numbers do not."""
    tuning = Mutation().first(np.zeros(3), np.ones(3))
    settings = lambda **told: Mutation(**told).settings(tuning, 0.5)["settings"]  # noqa: E731
    length = lambda **told: float(settings(**told)["trajectory_length"])  # noqa: E731
    assert length() == length(trajectory_length=1.5) != length(trajectory_length=1.0)
    kernel = tunable_kernel("mclmc")
    static = lambda **told: ParallelTempering(**told)._static(kernel)  # noqa: E731
    assert static() == static(num_leapfrogs=8) != static(num_leapfrogs=9)
    assert (
        nested.widths((81,)) == nested.widths((81,), ratio=2.0) != nested.widths((81,), ratio=3.0)
    )


def is_done(num_steps: int, distance: float, **told: Any) -> bool:
    """Whether a mutation ends after so many steps, at so many squared standard deviations."""
    mutation = Mutation(**told)
    tuning = mutation.first(np.zeros(3), np.ones(3))
    info = {"acceptance_rate": jnp.full(4, 0.8), "distance": jnp.full(4, distance)}
    tuning = mutation.after(tuning, info)._replace(steps_taken=np.int32(num_steps))
    return mutation.is_done(tuning)


def test_usual_ends_of_a_mutation() -> None:
    """Mutations end after 100 steps, or once half the distance leaves an autocorrelation of .5."""
    assert not is_done(99, 0.5)
    assert is_done(100, 0.5)
    assert is_done(99, 0.5, max_steps=99)
    assert not is_done(5, 0.99)
    assert is_done(5, 1.01)
    assert not is_done(5, 1.01, autocorrelation=0.4)


def test_usual_settings_of_jumps() -> None:
    x = np.linspace(-1, 1, 10)[:, None]
    posterior = Posterior(MLP(1, (4,)), Gaussian(scaling="unit"), Normal(0.3), (x, x[:, 0]))

    def static(**told: Any) -> dict[str, Any]:
        method = Transdimensional(**told)
        of = method.widest(posterior)
        return dict(method._recipe(of, method.target(of)).static)

    usual = {"num_temperatures": 10, "num_integration_steps": 5, "max_doublings": 8}
    moves = {"moves": ("annealed", "split_merge"), "max_depth": 2}
    usual |= {"split_std": 0.5, "identity_std": 0.5}
    assert static(**moves) == static(**moves, **usual)
    for name, value in usual.items():
        assert static(**moves) != static(**moves, **usual | {name: value * 2})
    lengths = {"max_integration_steps": 64, "trajectory_length": 1.0}
    assert static(within="hmc") == static(within="hmc", **lengths)


def test_usual_share_of_rows_for_the_noise() -> None:
    x = np.linspace(-1, 1, 20)[:, None]
    learnt = Posterior(MLP(1, ()), Gaussian(), Normal(), (x, x))
    assert Laplace()._training(learnt).validation_fraction == 0.2
    assert Laplace(held_out_fraction=0.3)._training(learnt).validation_fraction == 0.3
