"""Rows on disk: the same log densities and draws as rows in memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credence.density import stored_rows as stored_module
from credence.density.data import minibatch, some_rows
from credence.density.posterior import Posterior
from credence.density.stored_rows import StoredRows, open_rows
from credence.engine.minibatches import epochs
from credence.errors import InputError
from credence.methods import METHODS
from credence.methods.hamiltonian import HMC
from credence.methods.surrogate.ces import CES
from credence.methods.surrogate.emulators import Taylor
from credence.models import MLP, Categorical, Gaussian, Normal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1003, 4)).astype(np.float32)
Y = (X @ [0.5, -0.3, 0.2, 0.0] + 0.3 * RNG.normal(size=1003)).astype(np.float32)
SETTINGS = (MLP(1, (5,)), Gaussian(scaling="fan_in"), Normal())


@pytest.fixture
def path(tmp_path):
    np.save(tmp_path / "x.npy", X)
    return tmp_path / "x.npy"


@pytest.fixture
def both(path):
    """The same posterior from memory and from disk, in chunks that do not divide the rows."""
    return Posterior(*SETTINGS, (X, Y)), Posterior(*SETTINGS, (open_rows(path, chunk_rows=100), Y))


class TestDensities:
    def test_values_and_gradients_are_those_of_memory(self, both) -> None:
        positions = both[0].init(jax.random.key(0), 3)
        found = []
        for posterior in both:
            data = posterior.anchored(positions[0])
            evaluate = jax.value_and_grad(posterior.log_density)
            found.append(jax.jit(jax.vmap(evaluate, (0, None)))(positions, data))
            value = jax.jit(jax.vmap(posterior.log_density, (0, None)))(positions, data)
            np.testing.assert_allclose(value, found[-1][0], rtol=1e-5, atol=1e-3)
        for memory, disk in zip(*found, strict=True):
            np.testing.assert_allclose(disk, memory, rtol=1e-4, atol=2e-3)

    def test_rows_of_two_chunks_count_once(self, both) -> None:
        """The last chunk repeats 97 rows; planted: they count twice."""
        rows, ones = both[1].data.rows, jnp.ones(len(X))
        count = rows.sum_over(lambda _, x, others, weight: jnp.sum(weight), 0.0, ones, ones)
        planted = rows.sum_over(lambda _, x, others, weight: jnp.sum(others), 0.0, ones, ones)
        assert (float(count), float(planted)) == (1003, 1100)

    def test_anchor_is_that_of_memory(self, both) -> None:
        position = both[0].init(jax.random.key(1), 1)[0]
        memory, disk = (posterior.anchored(position).anchor for posterior in both)
        np.testing.assert_allclose(disk, memory, rtol=1e-5, atol=1e-5)

    def test_chains_abreast_share_a_pass(self, both, monkeypatch) -> None:
        reads = []
        original = stored_module.Reader.read
        monkeypatch.setattr(
            stored_module.Reader,
            "read",
            lambda self, start, count: (reads.append(start), original(self, start, count))[1],
        )
        positions = both[1].init(jax.random.key(0), 8)
        values = jax.jit(jax.vmap(both[1].log_density, (0, None)))(positions, both[1].data)
        jax.block_until_ready(values)
        assert reads == [*range(0, 1000, 100), 903]

    def test_another_file_of_the_same_shape_needs_no_new_program(self, path, tmp_path) -> None:
        np.save(tmp_path / "other.npy", 2 * X)
        files = [open_rows(each, chunk_rows=100) for each in (path, tmp_path / "other.npy")]
        traces = []

        @jax.jit
        def total(rows: StoredRows) -> jax.Array:
            traces.append(1)
            weighted = lambda _, x, others, weight: jnp.sum(x * weight[:, None])  # noqa: E731
            return rows.sum_over(weighted, 0.0, (), jnp.ones(len(X)))

        first, second = map(float, map(total, files))
        assert second == pytest.approx(2 * first, rel=1e-4)
        assert len(traces) == 1


class TestRows:
    def test_minibatches_are_the_rows_asked_for(self, both) -> None:
        index, real = jnp.asarray([5, 1002, 7]), jnp.ones(3)
        memory, disk = (minibatch(posterior.data, index, real) for posterior in both)
        for one, other in zip(jax.tree.leaves(memory), jax.tree.leaves(disk), strict=True):
            np.testing.assert_array_equal(one, other)

    def test_an_epoch_has_every_row_once(self, both) -> None:
        num_batches, shuffled = epochs(jax.random.key(0), both[1].data, 100, 11)
        assert num_batches == 11
        load = jax.jit(shuffled(0))
        batches = [load(index) for index in range(11)]
        rows = np.concatenate([batch.x[np.asarray(batch.weight) > 0] for batch in batches])
        np.testing.assert_array_equal(np.sort(rows[:, 0]), np.sort(X[:, 0]))

    def test_a_part_counts_as_much_as_all(self, both) -> None:
        part = some_rows(jax.random.key(0), both[1].data, 200)
        assert part.x.shape == (200, 4)
        assert float(jnp.sum(part.weight)) == pytest.approx(len(X))

    def test_indices_are_those_of_the_array(self, path) -> None:
        rows = open_rows(path)
        np.testing.assert_array_equal(rows[5:9], X[5:9])
        np.testing.assert_array_equal(rows[X[:, 0] > 2], X[X[:, 0] > 2])
        assert rows.fingerprint() == open_rows(path, chunk_rows=7).fingerprint()


class TestMethods:
    def test_other_methods_ask_for_memory(self, both) -> None:
        with pytest.raises(InputError, match="The inputs lie on disk, and 'laplace' wants them"):
            METHODS["laplace"]().run(0, both[1])

    def test_a_hessian_is_refused_with_advice(self, both) -> None:
        with pytest.raises(InputError, match=r"not for a Hessian: use Taylor\(order=1\)"):
            CES(emulator=Taylor(order=2), calibration="pcn", num_chains=1).run(0, both[1])

    def test_hmc_moves_chains_abreast(self, both) -> None:
        assert not HMC()._recipe(both[0]).fixed_cost
        assert HMC()._recipe(both[1]).fixed_cost


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (X.astype(float), "must hold float32"),
        (X[:, 0], "must hold float32"),
        (np.asfortranarray(X), "rows one after the other"),
    ],
)
def test_other_arrays_are_refused(tmp_path, array, message) -> None:
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(InputError, match=message):
        open_rows(tmp_path / "x.npy")


def test_what_is_no_array_is_refused(tmp_path) -> None:
    (tmp_path / "x.npy").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"is not an \.npy array"):
        open_rows(tmp_path / "x.npy")


def test_a_file_is_opened_once_until_it_changes(tmp_path, path) -> None:
    first, again = open_rows(path), open_rows(path, chunk_rows=7)
    assert int(first.handle) == int(again.handle)
    np.save(path, 2 * X[:50])
    np.testing.assert_array_equal(open_rows(path)[:], 2 * X[:50])
    with pytest.raises(InputError, match="cannot be read: No such file"):
        open_rows(tmp_path / "nothing.npy")


def test_windows_has_no_reading_at_a_place(path, monkeypatch) -> None:
    monkeypatch.delattr(stored_module.os, "preadv")
    rows = open_rows(path, chunk_rows=100)
    np.testing.assert_array_equal(rows[:], X)
    np.testing.assert_array_equal(jax.jit(rows.gather)(jnp.asarray([1002, 3])), X[[1002, 3]])


def test_rows_without_weight_are_in_no_part() -> None:
    weight = np.zeros(1003)
    weight[[5, 700, 900]] = [1.0, 2.0, 3.0]
    part = some_rows(jax.random.key(0), Posterior(*SETTINGS, (X, Y, weight)).data, 2)
    assert part.x.shape == (2, 4)
    assert float(part.weight.sum()) == pytest.approx(6.0)
    assert float(part.weight.min()) > 0


def test_missing_values_are_found_where_they_are(tmp_path) -> None:
    planted = X.copy()
    planted[777, 2] = np.nan
    np.save(tmp_path / "x.npy", planted)
    rows = open_rows(tmp_path / "x.npy", chunk_rows=100)
    with pytest.raises(InputError, match="between rows 700 and 800"):
        Posterior(*SETTINGS, (rows, Y))


def test_labels_must_match_rows(path) -> None:
    with pytest.raises(InputError, match="x has 1003 rows but y has 3"):
        Posterior(MLP(2, (5,)), Gaussian(), Categorical(), (open_rows(path), np.array([0, 1, 0])))
