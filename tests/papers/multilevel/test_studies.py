"""The studies of error against cost as published, and steps whose seed moves all of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from credence.methods.smc.multilevel import allocation
from credence_papers.multilevel import steps
from credence_papers.multilevel.error_cost.study import ErrorCostStudy
from credence_papers.multilevel.studies import (
    PUBLISHED,
    PUBLISHED_256,
    PUBLISHED_SPIRAL,
    STEPS,
)

ALL = pytest.mark.parametrize(
    "study", [PUBLISHED, PUBLISHED_256, PUBLISHED_SPIRAL], ids=lambda study: study.name
)


@ALL
def test_paper_size_has_the_contenders_of_laptop_size(study: ErrorCostStudy) -> None:
    laptop, paper = (study.efforts[size] for size in ("laptop", "paper"))
    assert paper.finest == laptop.finest == (256 if study is PUBLISHED_256 else 128)
    assert [(each.family, each.num_particles) for each in paper.singles] == [
        (each.family, each.num_particles) for each in laptop.singles
    ]
    for name in ("manners", "base_share", "ladders", "base_particles", "reference_nats"):
        assert getattr(paper, name) == getattr(laptop, name)
    assert {each.replicates or paper.replicates for each in paper.singles} == {100}


@ALL
def test_an_interval_has_eight_replicates_behind_it(study: ErrorCostStudy) -> None:
    laptop = study.efforts["laptop"]
    assert min(each.replicates or laptop.replicates for each in laptop.singles) >= 8


def test_the_spiral_leaves_only_long_moves_of_many_particles_out() -> None:
    mine, all_of_them = (
        {(each.family, each.num_particles) for each in study.efforts["laptop"].singles}
        for study in (PUBLISHED_SPIRAL, PUBLISHED)
    )
    missing = all_of_them - mine
    assert mine < all_of_them
    assert all("short" not in family and most > 40 for family, (most,) in missing)


def test_descriptions_tell_the_noise_that_is_not_published() -> None:
    told = {each.source: each.description for each in STEPS.problems}
    assert "noise 0.1" in told["regression"]
    assert "noise 0.1 and scale 2" in told["halfcheetah"]
    assert told["spiral"].endswith("as published.")
    assert all(each.noise_std == 0.1 for each in STEPS.problems if each.source == "regression")


def test_a_seed_moves_the_draws_of_the_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another seed has other nats with the same data; ladders are chosen by the same ones."""
    problem = replace(STEPS.problems[0], num_points=12)
    levels = list(map(problem.posterior, (4, 8)))
    monkeypatch.setattr(type(problem), "at", lambda self, *_: self)
    effort = steps.StepEffort(widths=(4, 8), num_draws=20, problem={})
    study = replace(STEPS, problems=(problem,), efforts={"smoke": effort})
    rows = study.run(tmp_path, size="smoke", num_seeds=2)["problems"]
    fixed = [allocation.nats_between(levels, num_draws=20).tolist() for _ in range(2)]
    assert fixed[0] == fixed[1]
    first, second = (row["nats"] for row in rows)
    assert len({*first, *second, *fixed[0]}) == 3
