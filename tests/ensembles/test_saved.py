"""Ensembles as files: they keep every bit, and what is broken or forged is refused."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from tools.ensembles import ENSEMBLES, X, make_ensemble

from credence.ensembles.ensemble import Ensemble
from credence.errors import InputError, StorageError
from credence.models import MLP, Categorical
from credence.storage import file_sha256, read_arrays, write_arrays, write_json

pytestmark = pytest.mark.usefixtures("checked_keys")


@pytest.mark.parametrize("settings", ENSEMBLES.values(), ids=ENSEMBLES)
def test_files_keep_every_bit(settings: dict[str, Any], tmp_path: Path) -> None:
    saved = make_ensemble(**settings)
    saved.save(tmp_path)
    loaded = Ensemble.load(tmp_path)
    assert jax.tree.structure(loaded.params) == jax.tree.structure(saved.params)
    for ours, theirs in zip(*map(jax.tree.leaves, (saved.params, loaded.params)), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    for name in ("model", "cost", "provenance", "num_features", "num_targets", "is_chain"):
        assert getattr(loaded, name) == getattr(saved, name), name
    np.testing.assert_array_equal(loaded.weights, saved.weights)
    assert loaded.scalars.keys() == saved.scalars.keys()
    np.testing.assert_array_equal(
        loaded.scalars["acceptance_rate"], saved.scalars["acceptance_rate"]
    )
    np.testing.assert_array_equal(loaded.predictive(X).mean(), saved.predictive(X).mean())


def test_saving_again_replaces(tmp_path: Path) -> None:
    make_ensemble().save(tmp_path)
    make_ensemble(classes=3).save(tmp_path)
    assert Ensemble.load(tmp_path).model.likelihood == Categorical()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ensemble.json", "ensemble.npz"]


def break_json(folder: Path) -> None:
    text = (folder / "ensemble.json").read_text()
    (folder / "ensemble.json").write_text(text[: len(text) // 2])


def break_arrays(folder: Path) -> None:
    content = (folder / "ensemble.npz").read_bytes()
    (folder / "ensemble.npz").write_bytes(content[: len(content) // 2])


def flip_bit(folder: Path) -> None:
    content = bytearray((folder / "ensemble.npz").read_bytes())
    content[-5] ^= 1
    (folder / "ensemble.npz").write_bytes(bytes(content))


def replace_arrays_only(folder: Path) -> None:
    """A run killed between the two files of its second save."""
    make_ensemble(weights=np.full((2, 3), 1 / 6)).save(folder / "new")
    (folder / "new" / "ensemble.npz").replace(folder / "ensemble.npz")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder: (folder / "ensemble.json").unlink(), r"\.json .*no such file"),
        (lambda folder: (folder / "ensemble.npz").unlink(), r"\.npz .*no such file"),
        (lambda folder: (folder / "ensemble.json").write_text("{}"), r"\.json .*is missing"),
        (break_json, r"\.json cannot be read"),
        (break_arrays, r"\.npz .*checksum does not fit"),
        (flip_bit, r"\.npz .*checksum does not fit"),
        (replace_arrays_only, r"\.npz .*checksum does not fit"),
    ],
    ids=["no json", "no arrays", "empty json", "half json", "half arrays", "bit", "two saves"],
)
def test_broken_folders_are_refused(damage: Any, words: str, tmp_path: Path) -> None:
    make_ensemble().save(tmp_path)
    damage(tmp_path)
    with pytest.raises(StorageError, match=words):
        Ensemble.load(tmp_path)


def test_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"nowhere/ensemble.json .*no such file"):
        Ensemble.load(tmp_path / "nowhere")


def forge(folder: Path, **changes: Any) -> None:
    """Change ensemble.json as somebody would who knows how its checksum is made."""
    document = json.loads((folder / "ensemble.json").read_text())
    document = {k: v for k, v in document.items() if k not in ("format", "sha256")}
    write_json(folder / "ensemble.json", document | changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_features": 10**10}, "The file holds arrays"),
        ({"num_features": [10**9] * 5}, "cannot be read"),
        ({"num_targets": 10**10}, "The file holds arrays"),
        ({"num_features": "3"}, "num_features must be"),
        ({"num_features": -3}, "cannot be read"),
        ({"network": {"type": "MLP", "num_outputs": 1, "hidden": [10**10]}}, "holds arrays"),
        ({"network": {"type": "MLP", "num_outputs": 1, "hidden": [2] * 10**5}}, "cannot be those"),
        ({"network": {"type": "ResNet", "num_outputs": 1, "blocks": [10**9]}}, "cannot be those"),
        ({"network": {"type": "MLP", "num_outputs": 1, "hidden": ["4"]}}, r"hidden\[0\] must be"),
        ({"network": {"type": "MLP", "num_outputs": 1, "hidden": [-4]}}, "at least one neuron"),
        ({"likelihood": {"type": "StudentT", "df": 1.0}}, "StudentT"),
        ({"cost": {"flops": -1.0}}, "finite number >= 0"),
        ({"arrays_sha256": 3}, "arrays_sha256 must be str"),
    ],
)
def test_what_a_forged_folder_declares_is_compared_before_it_is_allocated(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    make_ensemble().save(tmp_path)
    forge(tmp_path, **changes)
    with pytest.raises(StorageError, match=words) as refusal:
        Ensemble.load(tmp_path)
    assert "ensemble.json cannot be read" in str(refusal.value)


def test_a_changed_description_is_refused(tmp_path: Path) -> None:
    make_ensemble().save(tmp_path)
    path = tmp_path / "ensemble.json"
    path.write_text(path.read_text().replace('"seed": 3', '"seed": 4'))
    with pytest.raises(StorageError, match=r"ensemble.json .*it has been changed"):
        Ensemble.load(tmp_path)


def test_nested_too_deep_is_refused(tmp_path: Path) -> None:
    make_ensemble().save(tmp_path)
    (tmp_path / "ensemble.json").write_text('{"network": ' + "[" * 100_000)
    with pytest.raises(StorageError, match=r"ensemble.json cannot be read"):
        Ensemble.load(tmp_path)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda arrays: arrays.pop("network.0.kernel"),
        lambda arrays: arrays.update(surplus=np.zeros((2, 3, 5))),
        lambda arrays: arrays.update(weights=np.full((3, 2), 1 / 6)),
        lambda arrays: arrays.update({"stat.log_density": np.zeros((2, 3, 4))}),
        lambda arrays: arrays.update({"stat.log_density": np.array([["a"] * 3] * 2)}),
        lambda arrays: arrays.update({k: v[:0] for k, v in arrays.items()}),
    ],
    ids=["lacking", "surplus", "other draws", "more than draws", "text", "none"],
)
def test_arrays_that_do_not_belong_together_are_refused(spoil: Any, tmp_path: Path) -> None:
    make_ensemble().save(tmp_path)
    arrays = read_arrays(tmp_path / "ensemble.npz")
    spoil(arrays)
    write_arrays(tmp_path / "ensemble.npz", arrays)
    forge(tmp_path, arrays_sha256=file_sha256(tmp_path / "ensemble.npz"))
    with pytest.raises(StorageError, match="cannot be read"):
        Ensemble.load(tmp_path)


def test_other_format_is_refused(tmp_path: Path) -> None:
    make_ensemble().save(tmp_path)
    about = json.loads((tmp_path / "ensemble.json").read_text())
    (tmp_path / "ensemble.json").write_text(json.dumps(about | {"format": 99}))
    with pytest.raises(StorageError, match=r"has format 99, .* this version reads 1"):
        Ensemble.load(tmp_path)


def test_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="Could not write"):
        make_ensemble().save(tmp_path / "file")


def test_another_network_is_refused(tmp_path: Path) -> None:
    make_ensemble().save(tmp_path)
    for network in (MLP(1, hidden=(5,)), MLP(1, hidden=(4, 4))):
        with pytest.raises(InputError, match="pass the network that was fitted"):
            Ensemble.load(tmp_path, network=network)


def test_nothing_is_pickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("pickle was used")

    for name in ("load", "loads", "dump", "dumps", "Pickler", "Unpickler"):
        monkeypatch.setattr(f"pickle.{name}", refuse)
    make_ensemble().save(tmp_path)
    Ensemble.load(tmp_path)
