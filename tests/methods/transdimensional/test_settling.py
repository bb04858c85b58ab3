"""A warm-up that begins without jumps: when they start, and that sampling has them as before."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from credence.density.posterior import Posterior
from credence.engine.blocks import Block
from credence.engine.phases import Adapter
from credence.kernels.mcmc.hmc import hmc
from credence.methods import Transdimensional
from credence.methods.transdimensional import method as method_module
from credence.methods.transdimensional.kernel import transdimensional
from credence.methods.transdimensional.settling import settling_first
from credence.methods.transdimensional.target import VariableWidth
from credence.models import MLP, Gaussian, Normal

RNG = np.random.default_rng(3)
X = RNG.normal(size=(20, 2))
POSTERIOR = Posterior(
    MLP(1, (6,)), Gaussian(scaling="unit"), Normal(0.3), (X, np.tanh(X[:, 0]) + X[:, 1] ** 2)
)
BLOCK = Block((), jnp.zeros((1, 1, 1)), {})


def test_jumps_begin_after_so_many_rounds() -> None:
    others: Any = Adapter(
        7, lambda memory: {"step_size": memory, "num_jumps": np.int32(3)},
        lambda memory, block: memory + 1,
        tuned=lambda memory: {"step_size": -memory, "num_jumps": np.int32(4)},
    )  # fmt: skip
    adapter = settling_first(others, 2)
    memory, told = adapter.memory, []
    for _ in range(4):
        told.append(adapter.settings(memory))
        memory = adapter.update(memory, BLOCK)
    assert [int(each["num_jumps"]) for each in told] == [0, 0, 3, 3]
    assert [each["step_size"] for each in told] == [7, 8, 9, 10]
    assert adapter.tuned(memory) == {"step_size": -11, "num_jumps": 4}


def test_one_program_has_as_many_jumps_as_it_is_told() -> None:
    target = VariableWidth(POSTERIOR.model, Transdimensional().width_prior, None)
    start = POSTERIOR.init(jax.random.key(0), 1)[0]

    def after(num_jumps: Any) -> Any:
        kernel = transdimensional(
            POSTERIOR.log_density, target=target, within=hmc, moves=("plain",),
            step_size=0.05, inverse_mass=jnp.ones(len(start)), num_jumps=num_jumps,
        )  # fmt: skip
        state = kernel.init(start, POSTERIOR.data)
        keys = jax.random.split(jax.random.key(1), 30)
        return jax.lax.scan(lambda s, key: kernel.step(key, s, POSTERIOR.data), state, keys)

    fixed = jax.jit(lambda: after(5))()
    told = jax.jit(after)
    jumping, resting = told(jnp.int32(5)), told(jnp.int32(0))
    jax.tree.map(np.testing.assert_array_equal, fixed, jumping)
    assert np.all(jumping[1].num_jumps <= 5)
    assert np.ptp(ravel_pytree(jumping[1].num_jumps_accepted)[0]) > 0
    assert int(resting[0].widths[0]) == 6
    assert not np.any(resting[1].num_jumps)
    assert not np.any(resting[1].jump_cost)
    assert np.all(resting[1].is_finite)


def test_sampling_jumps_even_where_no_warm_up_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(method_module, "SETTLING", 1.0)
    method = Transdimensional(
        num_chains=4, num_draws=2, num_warmup=60, num_jumps=20, initial_widths=(3,) * 4,
        max_doublings=3, moves=("plain",),
    )  # fmt: skip
    found = method.run(0, POSTERIOR)
    assert np.any(found.scalars["width"] != 3)
