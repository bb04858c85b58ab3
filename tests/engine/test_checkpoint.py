"""Files that appear whole or not at all, and trees that come back as they were."""

import errno
import os
import socket
import stat
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credence.engine.checkpoint import claim_folder, load_tree, save_tree
from credence.errors import StorageError
from credence.storage import atomic_path, file_to_write, write_text


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


def test_a_link_stays_and_its_file_is_written(tmp_path):
    """A link to a file, a link to that link from another folder, and one to no file yet."""
    (tmp_path / "data").mkdir()
    (tmp_path / "first").symlink_to("data/notes.txt")
    (tmp_path / "data" / "second").symlink_to(tmp_path / "first")
    for link, text in (("first", "one"), ("data/second", "two")):
        write_text(tmp_path / link, text)
        assert (tmp_path / "data" / "notes.txt").read_text() == text
        assert (tmp_path / link).is_symlink()
    assert sorted(os.listdir(tmp_path / "data")) == ["notes.txt", "second"]


def test_links_that_lead_nowhere_are_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(StorageError, match="Could not write"):
        write_text(tmp_path / "a", "lost")
    assert (tmp_path / "a").is_symlink()


def test_a_replaced_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "secret.txt"
    path.touch(mode=0o600)
    with atomic_path(path) as temporary:
        temporary.write_text("new")
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600, "others could read it meanwhile"
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)
    path.chmod(0o444)
    write_text(path, "newer")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("newer", 0o444)


def test_what_is_no_file_is_not_replaced_by_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    os.mkfifo("pipe")
    Path("folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for name in ("pipe", "folder", "socket"):
            kind = stat.S_IFMT(Path(name).stat().st_mode)
            with pytest.raises(StorageError, match=f"{name} is a {name}, not a file"):
                write_text(Path(name), "text")
            assert stat.S_IFMT(Path(name).stat().st_mode) == kind
    with pytest.raises(StorageError, match="/dev/null is a device, not a file"):
        file_to_write(Path("/dev/null"))


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
