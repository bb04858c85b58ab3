"""Files that appear whole or not at all, and trees that come back as they were."""

import errno
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credence.checkpoint import claim_folder, load_tree, save_tree
from credence.errors import StorageError
from credence.storage import atomic_path, write_text


class Tree(NamedTuple):
    weights: jax.Array
    key: jax.Array
    count: np.ndarray
    done: bool


def make_tree(seed: int = 0) -> Tree:
    key = jax.random.key(seed)
    return Tree(jax.random.normal(key, (2, 3)), jax.random.fold_in(key, 1), np.arange(4.0), True)


def test_tree_comes_back_as_it_was(tmp_path):
    tree = make_tree(1)
    save_tree(tmp_path / "deep" / "tree.npz", tree)
    back = load_tree(tmp_path / "deep" / "tree.npz", make_tree(0))
    np.testing.assert_array_equal(back.weights, tree.weights)
    np.testing.assert_array_equal(back.count, tree.count)
    np.testing.assert_array_equal(jax.random.key_data(back.key), jax.random.key_data(tree.key))
    assert isinstance(back.weights, jax.Array)
    assert isinstance(back.count, np.ndarray)
    assert bool(back.done) is True


def test_shapes_are_enough_to_load(tmp_path):
    tree = {"a": jnp.ones((2, 2)), "b": jnp.zeros(3, int)}
    save_tree(tmp_path / "tree.npz", tree)
    back = load_tree(tmp_path / "tree.npz", jax.eval_shape(lambda: tree))
    np.testing.assert_array_equal(back["b"], tree["b"])


@pytest.mark.parametrize(
    "like", [{"a": np.ones(3)}, {"a": np.ones(2), "b": np.ones(2)}, {}], ids=str
)
def test_another_structure_is_refused(tmp_path, like):
    save_tree(tmp_path / "tree.npz", {"a": np.ones(2)})
    with pytest.raises(StorageError, match="written by other settings"):
        load_tree(tmp_path / "tree.npz", like)


def test_broken_files_are_refused_in_a_sentence(tmp_path):
    path = tmp_path / "tree.npz"
    save_tree(path, {"a": np.ones(200)})
    whole = path.read_bytes()
    for broken in (b"", whole[: len(whole) // 2], b"not an archive"):
        path.write_bytes(broken)
        with pytest.raises(StorageError, match="cannot be read"):
            load_tree(path, {"a": np.ones(200)})
    with pytest.raises(StorageError, match="cannot be read"):
        load_tree(tmp_path / "missing.npz", {"a": np.ones(200)})


def test_loading_runs_no_code(tmp_path):
    """An array of pickled objects is refused, not unpickled."""
    np.savez(tmp_path / "tree.npz", leaf_0000=np.array([{"an": "object"}], dtype=object))
    with pytest.raises(StorageError, match="cannot be read"):
        load_tree(tmp_path / "tree.npz", {"a": np.ones(1)})


def test_an_error_while_writing_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "notes.txt"
    write_text(path, "old")

    def fail(error: Exception) -> None:
        with atomic_path(path) as temporary:
            temporary.write_text("half of the ne")
            raise error

    with pytest.raises(StorageError, match=r"Could not write .*notes.txt: No space left"):
        fail(OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(KeyboardInterrupt):
        fail(KeyboardInterrupt())
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="Could not write"):
        save_tree(tmp_path / "file" / "tree.npz", {"a": np.ones(1)})


def test_a_folder_belongs_to_one_run(tmp_path):
    identity = {"method": "nuts", "num_draws": 100, "hidden": (50, 50)}
    claim_folder(tmp_path / "run", identity)
    claim_folder(tmp_path / "run", identity)
    with pytest.raises(StorageError, match="num_draws was 100, now it is 200"):
        claim_folder(tmp_path / "run", {**identity, "num_draws": 200})
    with pytest.raises(StorageError, match="thinning was None, now it is 2"):
        claim_folder(tmp_path / "run", {**identity, "thinning": 2})
    (tmp_path / "run" / "identity.json").write_text("{half of")
    with pytest.raises(StorageError, match="cannot be read"):
        claim_folder(tmp_path / "run", identity)
