"""Rows: whoever asks gets the same answers from memory, from disk and from a stranger's class."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credence import methods
from credence.density.data import minibatch, rows_at
from credence.density.posterior import Posterior
from credence.density.rows import ArrayRows, Rows, checked_rows, rows_of
from credence.density.stored_rows import open_rows
from credence.errors import InputError
from credence.models import MLP, Gaussian, Normal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(37, 3)).astype(np.float32)
WEIGHT = RNG.uniform(size=37).astype(np.float32)
SETTINGS = (MLP(1, (4,)), Gaussian(), Normal())


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True)
class Halves:
    """Rows that somebody keeps in half precision: a class that Credence does not know."""

    kept: Any

    @property
    def _rows(self) -> ArrayRows:
        return ArrayRows(jnp.asarray(self.kept, jnp.float32))

    shape = property(lambda self: self._rows.shape)
    dtype = property(lambda self: self._rows.dtype)
    in_memory = property(lambda self: True)

    def sum_over(self, *args: Any) -> Any:
        return self._rows.sum_over(*args)

    def map_over(self, *args: Any) -> Any:
        return self._rows.map_over(*args)

    def gather(self, index: Any) -> Any:
        return self._rows.gather(index)

    def take(self, index: Any) -> Any:
        return self._rows.take(index)

    def example(self) -> Any:
        return self._rows.example()

    def check_finite(self) -> None:
        self._rows.check_finite()

    def fingerprint(self) -> bytes:
        return self._rows.fingerprint()

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        return (self.kept,), None

    @classmethod
    def tree_unflatten(cls, _: None, leaves: tuple[Any]) -> "Halves":
        return cls(*leaves)


@pytest.fixture(params=["array", "file", "stranger"])
def rows(request, tmp_path) -> Rows:
    if request.param == "file":
        np.save(tmp_path / "x.npy", X)
        return rows_of(open_rows(tmp_path / "x.npy", chunk_rows=10))
    return rows_of(jnp.asarray(X) if request.param == "array" else Halves(X))


class TestProtocol:
    def test_what_they_stand_for(self, rows) -> None:
        assert isinstance(rows, Rows)
        assert (rows.shape, np.dtype(rows.dtype)) == (X.shape, X.dtype)
        assert rows.example().shape[1:] == X.shape[1:]

    def test_a_sum_counts_every_row_by_its_weight(self, rows) -> None:
        def total(scale: Any, x: Any, others: Any, weight: Any) -> Any:
            return scale * jnp.sum(weight * others * x[:, 0])

        def value(scale: Any) -> Any:
            return rows.sum_over(total, scale, jnp.asarray(X[:, 1]), jnp.asarray(WEIGHT))

        found, gradient = jax.jit(jax.value_and_grad(value))(2.0)
        exact = np.sum(WEIGHT.astype(float) * X[:, 1] * X[:, 0])
        np.testing.assert_allclose([found, gradient], [2 * exact, exact], rtol=1e-5)

    def test_a_map_gives_every_row_once(self, rows) -> None:
        found = jax.jit(lambda y: rows.map_over(lambda x, y: x + y[:, None], y))(X[:, 0])
        np.testing.assert_array_equal(found, X + X[:, :1])

    def test_rows_are_found_by_position(self, rows) -> None:
        index = np.asarray([30, 2, 2])
        np.testing.assert_array_equal(jax.jit(rows.gather)(index), X[index])
        for wanted in (index, slice(3, 9), X[:, 0] > 0):
            np.testing.assert_array_equal(rows.take(wanted), X[wanted])

    def test_a_fingerprint_tells_rows_apart(self, rows, tmp_path) -> None:
        np.save(tmp_path / "other.npy", X + 1)
        others = [X + 1, open_rows(tmp_path / "other.npy"), Halves(X + 1)]
        assert rows.fingerprint() not in {rows_of(other).fingerprint() for other in others}
        assert rows.fingerprint() == rows.fingerprint()


class TestPosterior:
    def test_log_densities_and_minibatches_are_those_of_an_array(self, rows) -> None:
        y = X.sum(axis=1)
        given = rows.x if isinstance(rows, ArrayRows) else rows
        memory, other = (Posterior(*SETTINGS, (x, y, WEIGHT)) for x in (X, given))
        position = memory.init(jax.random.key(0), 1)[0]
        found = [
            jax.jit(jax.value_and_grad(p.log_density))(position, p.data) for p in (memory, other)
        ]
        for one, another in zip(*found, strict=True):
            np.testing.assert_allclose(another, one, rtol=1e-4, atol=1e-4)
        index = jnp.asarray([0, 36])
        for part in (
            lambda data: minibatch(data, index, jnp.ones(2)),
            lambda data: rows_at(data, index),
        ):
            parts = part(memory.data), part(other.data)
            for one, another in zip(*map(jax.tree.leaves, parts), strict=True):
                np.testing.assert_array_equal(one, another)

    def test_chains_move_over_them(self, rows) -> None:
        """The same draws but for rounding, which a few steps multiply, whoever keeps the rows."""
        method = methods.HMC(num_draws=4, num_warmup=4, num_chains=2)
        y = X.sum(axis=1)
        given = rows.x if isinstance(rows, ArrayRows) else rows
        memory, other = (method.run(0, Posterior(*SETTINGS, (x, y))) for x in (X, given))
        np.testing.assert_allclose(other.functions(X), memory.functions(X), atol=0.1)


def test_an_array_is_checked_at_the_door() -> None:
    with pytest.raises(InputError, match="x must be numbers"):
        checked_rows([["a"]])
    with pytest.raises(InputError, match="x has NaN or infinite values"):
        checked_rows([[np.nan]])
    assert checked_rows([[1, 2]]).dtype == jnp.result_type(float)
