"""The study on features of photographs: who runs with what, how results are told."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from credence.compare.runner import NoWatch
from credence.density.posterior import Posterior
from credence.errors import InputError, Interrupted
from credence.methods.minibatch_steps import USUAL_FRICTION
from credence.models import MLP, Categorical, Gaussian
from credence_papers.cache import Cache
from credence_papers.nonlinear import feature_rows as module
from credence_papers.nonlinear import feature_study
from credence_papers.nonlinear.feature_contenders import (
    BASELINE,
    CONTENDERS,
    REFERENCE,
    ColdSGLD,
    Contender,
    wanted,
)
from credence_papers.nonlinear.feature_page import cells, published_cells, render, worse_cells
from credence_papers.nonlinear.feature_rows import (
    FeatureRows,
    check_images,
    feature_rows,
    standardised,
    turned,
)
from credence_papers.nonlinear.feature_runs import LazyRows
from credence_papers.nonlinear.feature_said import Said, against_baseline, against_reference
from credence_papers.nonlinear.feature_study import (
    CIFAR10_FEATURES,
    FeatureStudy,
    compared,
    over_seeds,
)
from credence_papers.nonlinear.patch_features import PatchFeatures

STUDY = CIFAR10_FEATURES


class TestContenders:
    @pytest.mark.parametrize("size", STUDY.efforts)
    @pytest.mark.parametrize("contender", CONTENDERS, ids=lambda each: each.label)
    def test_settings_are_those_of_the_method(self, contender: Contender, size: str) -> None:
        method = contender.build(STUDY.efforts[size])
        assert method.name == contender.method
        if contender.is_streamed:
            method._check_stream()  # type: ignore[attr-defined]

    def test_a_particle_and_its_partner_stand_against_two_chains(self) -> None:
        effort = STUDY.efforts["paper"]
        found = {each.label: each.at(effort) for each in CONTENDERS}
        assert found["Nonlinear (BG)"]["num_chains"] == effort.particles
        assert found["SGLD (linear)"]["num_chains"] == 2 * effort.particles
        assert found["Deep ensemble"]["num_members"] == 2 * effort.particles
        exact = found["Nonlinear (BG), potentials of all rows"]
        assert exact["potential_rows"] == effort.num_train
        assert {**exact, "jump_probability": 0.1} == {
            **found["Nonlinear (BG)"],
            "thinning": exact["thinning"],
            "potential_rows": effort.num_train,
            "synchronous": True,
            "jump_probability": 0.1,
        }
        assert found["Laplace"]["num_draws"] == 2 * effort.particles * effort.num_draws

    def test_draws_cost_as_many_gradients(self) -> None:
        """Counted by hand: 5 passes of 196 steps; a value is a third; all rows are 196 batches."""
        effort = STUDY.efforts["paper"]
        rare = 0.02
        of_a_step = {
            "SGLD (linear)": 2,  # two networks
            "SGLD, RMSprop at 1e-4 (published linear)": 2,
            "Nonlinear (BG)": 2 + 1 / 3,
            "Nonlinear (AR)": 2 + 2 / 3,
            "Nonlinear (BG), rare jumps": 2 + rare / 3,
            "Nonlinear (AR), rare jumps": 2 + 2 * rare / 3,
            "Nonlinear (BG), potentials of all rows": 2 + rare * 196 / 3,
            "Nonlinear (AR), potentials of all rows": 2 + 2 * rare * 196 / 3,
            "SGHMC": 2,
            "Cyclical SGHMC": 2 * 2,  # half of a cycle explores
        }
        for contender in CONTENDERS:
            if contender.label in of_a_step:
                cost = contender.at(effort)["thinning"] * of_a_step[contender.label]
                assert 0.99 * 2 * 980 < cost < 2 * 980 + 1e-6, contender.label

    def test_momentum_drifts_as_fast_as_langevin(self) -> None:
        found = {each.label: each.at(STUDY.efforts["paper"]) for each in CONTENDERS}
        drift = found["SGLD (linear)"]["step_size"] / 2
        assert found["SGHMC"]["step_size"] ** 2 / USUAL_FRICTION == pytest.approx(drift)
        assert found["Cyclical SGHMC"]["step_size"] == 2 * found["SGHMC"]["step_size"]

    def test_early_averages_are_of_as_many_networks_at_equal_cost(self) -> None:
        problem = next(each for each in STUDY.problems if each.is_early)
        effort = STUDY.effort(problem, "paper")
        found = {each.label: each.at(effort) for each in wanted(effort)}
        linear, jumping = found["SGLD (linear)"], found["Nonlinear (BG)"]
        assert linear["num_chains"] == jumping["num_chains"] == effort.particles
        assert jumping["thinning"] == int(linear["thinning"] / (2 + 1 / 3))
        assert linear["thinning"] == 196 // 2

    def test_the_published_linear_sampler_is_cold(self) -> None:
        contender = next(each for each in CONTENDERS if each.method == ColdSGLD.name)
        method = contender.build(STUDY.efforts["smoke"])
        posterior = Posterior(
            MLP(2, ()), Gaussian(), Categorical(), (np.ones((50, 1)), np.arange(50) % 2)
        )
        for settings in method._published_settings(posterior):  # type: ignore[attr-defined]
            assert settings["temperature"] == np.float32(1e-4)

    def test_problems_have_contenders_and_seeds_of_their_own(self) -> None:
        number = {
            each.name: (len(wanted(STUDY.effort(each, "paper"))), STUDY.seeds_of(each, "paper"))
            for each in STUDY.problems
        }
        assert number["softmax"] == (len(CONTENDERS), 5)
        assert (number["hidden_64"], number["held_out"]) == ((6, 2), (5, 3))
        assert {STUDY.seeds_of(each, "smoke") for each in STUDY.problems} == {1}

    def test_a_contender_that_is_not_known_is_refused(self) -> None:
        with pytest.raises(InputError, match="Typo"):
            wanted(replace(STUDY.efforts["smoke"], contenders=("Typo",)))

    def test_the_reference_runs_where_an_effort_has_one(self) -> None:
        labels = {size: [c.label for c in wanted(e)] for size, e in STUDY.efforts.items()}
        assert labels["paper"] == [each.label for each in CONTENDERS]
        assert "MCLMC (reference)" not in labels["laptop"]


class TestSaid:
    """Probabilities of the test images, and how they are compared."""

    Y = np.array([0, 1, 1])

    def said(self, first: float, std: float) -> Said:
        mean = np.tile([first, 1 - first], (3, 1))
        return Said.by(mean, np.full((3, 2), std**2), self.Y)

    def test_distances_are_known_for_two_classes(self) -> None:
        """Planted: the divergence the other way round."""
        found = against_reference(self.said(0.5, 0.2), self.said(0.75, 0.1))
        kl = 0.75 * np.log(0.75 / 0.5) + 0.25 * np.log(0.25 / 0.5)
        assert found["total_variation"] == pytest.approx(0.25)
        assert found["kl"] == pytest.approx(kl)
        assert found["std_ratio"] == pytest.approx(2, rel=1e-3)
        planted = against_reference(self.said(0.75, 0.1), self.said(0.5, 0.2))["kl"]
        assert abs(planted - kl) > 0.01

    def test_likelihoods_are_compared_row_by_row(self) -> None:
        found = against_baseline(self.said(0.5, 0.1), self.said(0.75, 0.1))
        more = np.array([np.log(1.5), np.log(0.5), np.log(0.5)])
        assert found["nll_more"] == pytest.approx(more.mean(), rel=1e-5)
        error = more.std(ddof=1) / 3**0.5
        assert found["nll_more_over_rows"] == pytest.approx(error, rel=1e-5)

    def test_it_is_kept_in_half_precision(self, tmp_path: Path) -> None:
        said = self.said(0.3, 0.1)
        said.write(tmp_path / "new" / "said.npz")
        again = Said.read(tmp_path / "new" / "said.npz")
        assert again.mean.dtype == again.std.dtype == np.float16
        np.testing.assert_array_equal(again.mean, said.mean)
        np.testing.assert_array_equal(again.nll, said.nll)

    @pytest.mark.parametrize(
        ("rhat", "is_reference"), [(1.005, True), (1.02, False), ("inf", False)]
    )
    def test_a_reference_must_have_converged(
        self, rhat: Any, is_reference: bool, tmp_path: Path
    ) -> None:
        files = {}
        for number, label in enumerate((BASELINE, "SGHMC", REFERENCE)):
            files[label] = tmp_path / f"{number}.npz"
            self.said(0.5 + 0.1 * number, 0.1).write(files[label])
        found = compared({label: run(max_rhat=rhat) for label in files}, files)
        assert found[REFERENCE]["is_converged"] == is_reference
        assert ("kl" in found["SGHMC"]) == is_reference
        assert "nll_more" in found["SGHMC"]
        assert "nll_more" not in found[BASELINE]
        row = {"problem": "softmax", "label": REFERENCE, **over_seeds([found[REFERENCE]])}
        name = cells({"contenders": [row]})[1][0][1]
        assert ("has not converged" in name) != is_reference


class TestFailures:
    """Runs that are not whole are not kept, and hinder nobody."""

    EFFORT = replace(STUDY.efforts["smoke"], contenders=(BASELINE, "SGHMC", "Laplace", REFERENCE))

    @pytest.fixture
    def calls(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
        """Runs that take no time; Laplace always fails."""
        calls = []

        def quick(problem: Any, contender: Contender, effort: Any, seed: int, *_: Any) -> Any:
            calls.append((contender.label, seed))
            if contender.label == "Laplace":
                raise InputError("It is too large.")
            return run()

        monkeypatch.setattr(feature_study, "measured", quick)
        monkeypatch.setattr(feature_study, "check_images", lambda: None)
        return calls

    def study(self) -> FeatureStudy:
        return replace(STUDY, problems=STUDY.problems[:1], efforts={"smoke": self.EFFORT})

    def test_a_contender_that_fails_is_told_and_tried_again(
        self, calls: list[tuple[str, int]], tmp_path: Path
    ) -> None:
        told = self.study().run(tmp_path, size="smoke")
        failed = {row["label"]: row.get("failed") for row in told["contenders"]}
        assert failed == {
            BASELINE: None,
            "SGHMC": None,
            "Laplace": "It is too large.",
            REFERENCE: None,
        }
        assert (told["failed"], told["converged"]) == (1, False)
        assert "failed: It is too large." in (tmp_path / "report.html").read_text()
        assert len(list((tmp_path / "runs").glob("*.json"))) == 3
        assert len(calls) == 4
        self.study().run(tmp_path, size="smoke")
        assert calls[4:] == [("Laplace", 0)]

    def test_the_reference_runs_once_for_all_seeds(
        self, calls: list[tuple[str, int]], tmp_path: Path
    ) -> None:
        told = self.study().run(tmp_path, size="smoke", seed=3, num_seeds=2)
        assert [call for call in calls if call[0] == REFERENCE] == [(REFERENCE, 0)]
        assert [call for call in calls if call[0] == "SGHMC"] == [("SGHMC", 3), ("SGHMC", 4)]
        rows = {row["label"]: row for row in told["contenders"]}
        assert (rows[REFERENCE]["num_seeds"], rows["SGHMC"]["num_seeds"]) == (1, 2)
        assert rows[REFERENCE]["accuracy_error"] is None

    @pytest.mark.parametrize("label", [BASELINE, "SGHMC", "Deep ensemble"])
    def test_a_stopped_run_is_not_kept(
        self, label: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Planted: what a run leaves on Ctrl-C, half of its draws."""

        class Stopped:
            def run(self, *_: Any, folder: Path, **__: Any) -> Any:
                (folder / "half").mkdir(parents=True)
                return SimpleNamespace(provenance=SimpleNamespace(stopped="interrupt"))

            run_averaged = run

        x, y = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32), np.arange(20) % 10
        rows = FeatureRows(x, y.astype(np.int32), x, y.astype(np.int32), {}, x[:0], "0")
        monkeypatch.setattr(LazyRows, "__call__", lambda self: rows)
        monkeypatch.setattr(Contender, "build", lambda *_: Stopped())
        effort = replace(self.EFFORT, contenders=(label,))
        with pytest.raises(Interrupted, match="run again to go on"):
            STUDY.run_one(STUDY.problems[0], effort, 0, Cache(tmp_path, NoWatch()))
        assert not list((tmp_path / "runs").glob("*"))
        assert list((tmp_path / "checkpoints").rglob("half"))


def run(**more: Any) -> dict[str, Any]:
    numbers = ("accuracy", "nll", "ece", "ece_all_classes", "mce", "mce_all_classes", "brier")
    return {**dict.fromkeys(numbers, 0.25), "max_rhat": 1.5, "work": 2e9, "seconds": 3.0, **more}


SUMMARY = {
    "experiment": "cifar10_features",
    "description": "photographs",
    "size": "smoke",
    "num_seeds": 2,
    "source": "a paper",
    **STUDY.summary(
        STUDY.efforts["smoke"],
        [
            {
                "problem": "softmax",
                "label": "Nonlinear (BG)",
                **over_seeds(
                    [
                        run(accuracy=a, path_work=[1e6, 2e6], path_accuracy=[0.5, a])
                        for a in (0.7, 0.8)
                    ]
                ),
            },
            {"problem": "softmax", "label": "Laplace", **over_seeds([run()])},
        ],
    ),
}


class TestPage:
    def test_seeds_have_means_and_standard_errors(self) -> None:
        found = over_seeds([run(accuracy=0.7), run(accuracy=0.8)])
        assert found["accuracy"] == pytest.approx(0.75)
        assert found["accuracy_error"] == pytest.approx(0.05)
        assert over_seeds([run()])["accuracy_error"] is None
        assert over_seeds([run(max_rhat=None)])["max_rhat"] is None
        assert over_seeds([run(nll=1.0), run(nll=None)])["nll"] is None  # one failed

    def test_the_table_has_what_there_is(self) -> None:
        heads, (jumping, laplace) = cells(SUMMARY)
        row = dict(zip(heads, jumping, strict=True))
        assert row["accuracy"] == "0.7500 ± 0.0500"
        assert row["ECE, all classes"] == "25.00 ± 0.00"
        assert dict(zip(heads, laplace, strict=True))["jumps accepted"] == "-"

    def test_published_columns_stand_side_by_side(self) -> None:
        rows = {row[0]: row[1:] for row in published_cells(SUMMARY)[1]}
        assert rows["Nonlinear (BG)"] == ["0.8428", "0.8474", "0.14", "0.16"]
        assert rows["Nonlinear (AR)"] == ["diverged", "0.8467", "diverged", "0.15"]

    def test_strange_images_have_a_table_of_their_own(self) -> None:
        told = {**SUMMARY, "contenders": [{**SUMMARY["contenders"][0], "blur_ece": 0.125}]}
        heads, (row,) = worse_cells(told)
        cells = dict(zip(heads, row, strict=True))
        assert (cells["blur: ECE"], cells["noise: ECE"]) == ("12.50", "-")
        assert cells["strangers, AUROC"] == "-"
        assert "blur: ECE" in render(told)

    def test_the_page_shows_the_curve(self) -> None:
        page = render(SUMMARY)
        assert page.count("<svg") == 1
        assert "Nonlinear (BG)" in page


class TestRows:
    SETTINGS = PatchFeatures(size=3, num_centres=4, num_patches=100, num_rounds=2)

    @pytest.fixture
    def images(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """A small data set in place of the photographs; the list grows with every reading."""
        calls: list[str] = []
        x = np.random.default_rng(0).integers(0, 256, size=(30, 8, 8, 3)).astype(np.uint8)

        class Small:
            arrays = {"x": x, "y": np.arange(30) % 10}  # noqa: RUF012
            train, test = np.arange(20), np.arange(20, 30)

        def load(name: str) -> Small:
            calls.append(name)
            return Small()

        monkeypatch.setattr(module, "load", load)
        return calls

    def test_features_are_computed_once(self, images: list[str], tmp_path: Path) -> None:
        first, again = (feature_rows(self.SETTINGS, 20, 10, tmp_path, NoWatch()) for _ in range(2))
        assert images == ["cifar10"]
        np.testing.assert_array_equal(first.x_train, again.x_train)
        assert first.sha256 == again.sha256
        assert first.x_train.shape == (20, 16)
        assert list(first.x_worse) == ["noise", "blur", "contrast"]
        assert all(x.shape == first.x_test.shape for x in first.x_worse.values())
        assert np.abs(first.x_worse["blur"] - first.x_test).max() > 0.1
        np.testing.assert_allclose(first.x_train.mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(first.x_train.var(axis=0).sum(), 16, rtol=1e-4)
        other = PatchFeatures(size=3, num_centres=4, num_patches=100, num_rounds=2, seed=1)
        feature_rows(other, 20, 10, tmp_path, NoWatch())
        assert len(images) == 2

    def test_classes_without_a_label_are_strangers(self, images: list[str], tmp_path: Path) -> None:
        whole = feature_rows(self.SETTINGS, 20, 10, tmp_path, NoWatch())
        assert whole.without(()) is whole
        assert len(whole.x_others) == 3 * 10
        part = whole.without((3, 8))
        assert set(part.y_train) == set(part.y_test) == set(range(8))
        np.testing.assert_array_equal(part.x_strangers, whole.x_test[np.isin(whole.y_test, (3, 8))])
        kept = ~np.isin(whole.y_test, (3, 8))
        names = np.array([0, 1, 2, 4, 5, 6, 7, 9])
        np.testing.assert_array_equal(names[part.y_test], whole.y_test[kept])
        np.testing.assert_array_equal(part.x_worse["noise"], whole.x_worse["noise"][kept])
        assert len(part.x_others) == 3 * 8 + 2

    def test_scales_are_those_of_the_training_rows(self) -> None:
        train = np.array([[1.0, 5.0], [3.0, 5.0]])
        x, z = standardised(train, np.array([[4.0, 6.0]]))
        np.testing.assert_allclose(x, [[-1, 0], [1, 0]])
        np.testing.assert_allclose(z, [[2, 0]])

    def test_principal_axes_leave_distances_as_they_are(self) -> None:
        rng = np.random.default_rng(0)
        train = rng.normal(size=(50, 6)) @ rng.normal(size=(6, 6))
        test = rng.normal(size=(9, 6))
        x, z = turned(train, test)
        np.testing.assert_allclose(x @ x.T, train @ train.T, atol=1e-9)
        np.testing.assert_allclose(x @ z.T, train @ test.T, atol=1e-9)
        second = x.T @ x
        np.testing.assert_allclose(second - np.diag(np.diag(second)), 0, atol=1e-9)
        assert np.all(np.diff(np.diag(second)) < 0)


def test_images_that_are_nowhere_are_missed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nowhere:
        found = "nowhere"

        class spec:
            name = "cifar10"

    def load(name: str) -> None:
        raise InputError(f"The data set '{name}' is not to be had.")

    monkeypatch.setattr(module, "list_datasets", lambda: [Nowhere])
    monkeypatch.setattr(module, "load", load)
    with pytest.raises(InputError, match="not to be had"):
        check_images()


@pytest.mark.slow
def test_the_study_writes_its_page_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two contenders of the smoke size, on images made here."""
    rng = np.random.default_rng(0)

    class Small:
        arrays = {  # noqa: RUF012
            "x": rng.integers(0, 256, size=(80, 12, 12, 3)).astype(np.uint8),
            "y": np.arange(80) % 10,
        }
        train, test = np.arange(60), np.arange(60, 80)

    monkeypatch.setattr(module, "load", lambda name: Small())
    monkeypatch.setattr(module, "list_datasets", list)
    smoke = replace(
        STUDY.efforts["smoke"],
        num_train=60,
        batch_size=20,
        num_test=20,
        contenders=("Nonlinear (BG)", "Deep ensemble"),
    )
    study: FeatureStudy = replace(STUDY, efforts={"smoke": smoke})
    summary = study.run(tmp_path, size="smoke", problems=("softmax",))
    assert [row["label"] for row in summary["contenders"]] == list(smoke.contenders)
    strange = study.run(tmp_path / "strange", size="smoke", problems=("held_out",))
    for row in strange["contenders"]:
        assert 0 <= row["strangers_auroc"] <= 1
        assert np.isfinite([row[f"{kind}_nll"] for kind in ("noise", "blur", "contrast")]).all()
    assert len(summary["contenders"][0]["path_accuracy"]) == smoke.num_draws
    work = summary["contenders"][0]["path_work"]
    assert work[-1] == pytest.approx(summary["contenders"][0]["work"])
    assert (tmp_path / "report.html").read_text().count("<svg") == 1
    assert not list((tmp_path / "checkpoints").glob("*"))
    assert json.dumps(study.run(tmp_path, size="smoke", problems=("softmax",))) == json.dumps(
        summary
    )
