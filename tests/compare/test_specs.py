"""Experiments are data: to JSON and back, checked, and as published."""

import json
import math
from dataclasses import asdict, fields, replace

import jax
import jax.numpy as jnp
import pytest
from tools import experiment_samples as samples

from credence.compare import EXPERIMENTS, find
from credence.compare.cell import build_method
from credence.compare.sources import ImageSource, TableSource, moved
from credence.compare.specs import (
    SIZES,
    CellSpec,
    Experiment,
    MethodSpec,
    ModelSpec,
    RowLimits,
    cell_from_json,
    to_json,
)
from credence.errors import InputError
from credence.methods.surrogate.emulators import emulator_named
from credence.methods.surrogate.public_code import crank_nicolson_step
from credence.models import MLP
from credence_papers.fbnn.methods import METHODS
from credence_papers.fbnn.tables import FBNN_FULL

PUBLISHED_WEIGHTS = {
    "boston": (13, 1, 3009),
    "wine": (11, 1, 241),
    "adult": (14, 1, 2761),
    "mnist": (784, 10, 3985),  # 3961 published: 784-5-5-1
    "celeba": (39, 1, 1521),
    "simulated_regression": (3, 1, 56),
    "simulated_classification": (3, 1, 56),
    "year": (90, 1, 81_901),
    "svhn": (3072, 10, 171_313),
    "alzheimer_diagnosis": (56, 1, 33_345),
    "simulated_large_regression": (1000, 1, 52_547),  # 52,832 published
}
TABLES = {name: each for name, each in EXPERIMENTS.items() if isinstance(each, Experiment)}
TABLES["fbnn_full"] = FBNN_FULL  # also where this checkout was installed before it had one
PROBLEMS = {p.name: p for each in TABLES.values() for p in each.problems}


@pytest.mark.parametrize("name", TABLES)
def test_json_round_trip(name: str) -> None:
    experiment = TABLES[name]
    found = json.loads(json.dumps(to_json(experiment)))
    assert found == to_json(experiment)
    assert found.keys() == {each.name for each in fields(experiment)}
    for problem, told in zip(experiment.problems, found["problems"], strict=True):
        assert told.keys() >= {each.name for each in fields(problem)}
        assert told["rows"] == {size: asdict(rows) for size, rows in problem.rows.items()}
        assert told["models"] == {size: to_json(model) for size, model in problem.models.items()}
        assert told["published"] == [to_json(each) for each in problem.published]
    for size in SIZES:
        for cell in experiment.cells(size, seed=3, max_seconds=9.0):
            back = cell_from_json(json.loads(json.dumps(to_json(cell))))
            assert back == cell
            assert back.name == cell.name


@pytest.mark.parametrize("name", PUBLISHED_WEIGHTS)
def test_networks_have_the_published_number_of_weights(name: str) -> None:
    inputs, outputs, expected = PUBLISHED_WEIGHTS[name]
    model = PROBLEMS[name].model
    network = MLP(outputs, model.hidden, model.activation)
    params = jax.eval_shape(network.init, jax.random.key(0), jnp.zeros((1, inputs)))
    assert sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params)) == expected


def test_published_rows() -> None:
    """Every table has its 14 (first version: 7) rows, and every own row stands among them."""
    for experiment in (find("fbnn"), find("fbnn_first_version")):
        expected = 14 if experiment.name == "fbnn" else 7
        ours = ("all rows", "public code")
        own = {m.label for m in experiment.methods if not any(word in m.label for word in ours)}
        for problem in experiment.problems:
            labels = {entry.label for entry in problem.published}
            assert len(problem.published) == len(labels) == expected
            assert expected < 14 or own <= labels
    boston = {entry.label: entry.values for entry in PROBLEMS["boston"].published}
    assert boston["BNN-SGHMC"] == {
        "mse": 3.83,
        "coverage_95": 0.753,
        "total_seconds": 888,
        "draws_per_effective_draw": [76, 649, 1536],
        "draws_per_effective_draw_per_second": 0.085,
        "speed_up": 1.0,
    }
    # The printed ratio of min ESS and seconds, where three digits allow the comparison.
    assert pytest.approx(0.085, abs=1e-3) == 76 / 888


def test_published_emulators_go_with_their_data() -> None:
    """Every problem has the emulator of its data set; the first version that of the public code."""
    (row,) = (each for each in METHODS if each.label == "FBNN (SGHMC-pCN)")
    assert row.at("paper", "adult")["emulator"] == "published:adult"
    assert row.at("paper", "simulated_regression")["emulator"] == "published:public_code"
    for name in ("fbnn", "fbnn_full", "fbnn_first_version"):
        for each in TABLES[name].problems:
            emulator = row.at("paper", each.name)["emulator"]
            assert emulator_named(emulator).activation == "relu"
    assert row.at("smoke", "wine")["num_draws"] == 20
    assert row.at("laptop", "wine")["step_size"] == pytest.approx(crank_nicolson_step(0.01))


def test_baselines_are_at_their_best() -> None:
    """Noise on rows not seen, a prior precision by evidence; emulators learn from 200 draws."""
    cells = {cell.label: cell for cell in find("fbnn").only(("boston",)).cells("laptop")}
    assert build_method(cells["DNN"]).training.validation_fraction == 0.1
    assert build_method(cells["BNN-Lasso"]).prior_precision == "evidence"
    assert build_method(cells["BNN-MC-Dropout"]).rate is None
    for label in ("FBNN (pCN-SGHMC)", "FBNN (pCN-pCN)", "FBNN (SGHMC-SGHMC)", "FBNN (SGHMC-pCN)"):
        method = build_method(cells[label])
        assert method.num_calibration == 200
        assert method.calibration == ("pcn_public" if "(pCN" in label else "sghmc_public")


def test_every_row_of_every_experiment_can_be_built() -> None:
    """No row has a setting that its method does not have, or does not read."""
    experiments = [each for each in map(find, EXPERIMENTS) if isinstance(each, Experiment)]
    cells = [cell for each in experiments for size in SIZES for cell in each.cells(size)]
    assert len({cell.method for cell in map(checked_row, cells)}) > 15


def checked_row(cell: CellSpec) -> CellSpec:
    """The same row, whose method has been built."""
    build_method(cell)
    return cell


def test_full_size_is_all_rows_but_for_smoke() -> None:
    problems = {each.name: each for each in FBNN_FULL.problems}
    for each in problems.values():
        assert set(each.rows) == {"smoke"}
    large = problems["simulated_large_regression"]
    assert large.source_at("laptop").settings["n_samples"] == 200_000
    assert large.source_at("smoke").settings["n_samples"] == 300
    optional = {name for name, each in problems.items() if each.is_optional}
    assert optional == {"year", "svhn", "alzheimer_diagnosis", "alzheimer_hippocampus"}


def test_cell_names_tell_cells_apart() -> None:
    experiment = find("fbnn")
    cells = [cell for size in SIZES for seed in (0, 1) for cell in experiment.cells(size, seed)]
    assert len({cell.name for cell in cells}) == len({json.dumps(to_json(c)) for c in cells})
    first = cells[0]
    assert replace(first, settings={"x": 1}).name != first.name
    assert replace(first, version="0").name != first.name
    assert "/" not in replace(first, problem="../../x").name


def test_cells_of_whole_images_keep_the_names_they_had() -> None:
    """Names in the files of cells that were finished before sources could shrink images, and
    convolutions be in half precision."""
    cell = CellSpec(
        problem="p",
        source=ImageSource(name="mnist"),
        model=ModelSpec(),
        rows=RowLimits(),
        label="l",
        method="map",
        settings={},
        version="0.1.0",
    )
    assert cell.name == "p--l--dec3790982"
    of_table = replace(cell, source=TableSource(table="t.csv", target="y"), version="0")
    assert of_table.name == "p--l--ea0e104d2b"
    assert replace(cell, source=ImageSource(name="mnist", shrink=2)).name != cell.name
    assert replace(cell, model=ModelSpec(dtype="bfloat16")).name != cell.name
    old = to_json(cell)
    del old["source"]["shrink"], old["model"]["dtype"]
    assert cell_from_json(old) == cell


def test_seeds_follow_one_another() -> None:
    experiment = replace(samples.experiment("a", "b"), num_seeds={"laptop": 3})
    assert [cell.seed for cell in experiment.cells("smoke", 7)] == [7, 7]
    assert [cell.seed for cell in experiment.cells("laptop", 7)] == [7, 8, 9] * 2
    assert [cell.seed for cell in experiment.cells("laptop", num_seeds=2)] == [0, 1] * 2


def test_a_seed_moves_the_split_and_simulated_data() -> None:
    experiment = samples.experiment("a", "b")
    cells = experiment.cells("laptop", 7, num_seeds=2)
    assert [cell.source.split_seed for cell in cells] == [7, 8] * 2
    (boston,) = find("fbnn").only(("boston",), ("nuts",)).problems
    assert moved(boston.source, 3) == replace(boston.source, split_seed=3)
    assert moved(boston.source, 0) == boston.source
    (problem,) = find("fbnn_first_version").only(("simulated_regression",)).problems
    source = moved(problem.source, 3)
    assert (source.split_seed, source.settings["random_state"]) == (3, 3)
    assert problem.source.settings["random_state"] == 0


def test_models_may_differ_by_size() -> None:
    (each,) = samples.experiment("a").problems
    small = replace(each.model, hidden=(3,), prior_settings={"alpha": 3.0})
    experiment = replace(
        samples.experiment("a"), problems=(replace(each, models={"smoke": small}),)
    )
    assert experiment.cells("smoke")[0].model == small
    assert experiment.cells("paper")[0].model == each.model
    assert to_json(experiment)["problems"][0]["models"] == {"smoke": to_json(small)}


def test_only_keeps_the_baseline() -> None:
    part = find("fbnn").only(("wine",), ("nuts",))
    assert [p.name for p in part.problems] == ["wine"]
    assert [m.label for m in part.methods] == ["BNN-SGHMC", "NUTS on all rows"]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: find("fbn"), "Did you mean 'fbnn'"),
        (lambda: find("fbnn").only(("bostn",)), "Did you mean 'boston'"),
        (lambda: find("fbnn").only((), ("nutz",)), "Did you mean 'nuts'"),
        (lambda: find("fbnn").cells("lapto"), "Did you mean 'laptop'"),
        (lambda: samples.experiment("a", "a"), "given twice"),
        (lambda: samples.experiment("a, b"), "has a comma"),
        (lambda: samples.experiment("alpha", baseline="alpa"), "Did you mean 'alpha'"),
        (lambda: replace(samples.experiment("a"), methods=()), "no method"),
        (lambda: replace(samples.experiment("a"), problems=()), "no problem"),
        (lambda: cell_from_json({"name": "x"}), "does not describe"),
    ],
)
def test_bad_input(make, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()


def test_sizes_change_settings() -> None:
    method = MethodSpec(
        label="a", method="b", settings={"x": 1, "y": 1}, by_size={"smoke": {"x": 0}}
    )
    assert method.at("smoke") == {"x": 0, "y": 1}
    assert method.at("paper") == {"x": 1, "y": 1}
