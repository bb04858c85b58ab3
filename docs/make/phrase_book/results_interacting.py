"""Numbers in the sentences of docs/results/interacting.md."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from kept import kept
from phrases import Phrase, ends, given, made

from credence.compare.seeds import mean_and_error
from credence_papers.nonlinear.plane_densities import RATES, rings


def phrases() -> Iterator[Phrase]:
    """The phrases of the page, in its order."""
    yield from given("R-hat* compares chains; below 1.05")
    yield from of_the_plane()
    yield from of_networks()
    yield from of_photographs()


def of_photographs() -> Iterator[Phrase]:
    """Tell what samplers of a softmax on features of photographs give."""
    summary = kept("cifar10_features")
    rows = {row["label"]: row for row in summary["contenders"]}
    langevin = [row for name, row in rows.items() if name.startswith(("SGLD", "Nonlinear"))]
    accuracy = np.array([row["accuracy"] for row in langevin])
    yield made("accuracies are {:.4f} to {:.4f} and", accuracy.min(), accuracy.max())
    yield made("likelihoods {:.4f} to {:.4f}", *ends(row["nll"] for row in langevin))
    error = np.sqrt(np.mean(accuracy * (1 - accuracy)) / summary["num_test"])
    yield made("of 10,000 images has a standard error of {:.4f}", error)
    lowest = sorted(langevin, key=lambda row: row["nll"])[:3]
    assert all("SGLD" in row["label"] or "published" in row["label"] for row in lowest)
    with_partners = {name: row for name, row in rows.items() if row["potential_ess"] is not None}
    warm = [row for name, row in with_partners.items() if "published" not in name]
    cold = [row for name, row in with_partners.items() if "published" in name]
    yield made(
        "are worth {:.1f} to {:.1f} particles ({:.1f} with the published cold partners",
        *ends(row["potential_ess"] for row in warm),
        max(row["potential_ess"] for row in cold),
    )
    yield made("R-hat is {:.2f} to {:.2f}, so that", *ends(row["max_rhat"] for row in langevin))
    yield made("hardly moved (R-hat {:.1f})", rows["SGHMC"]["max_rhat"])
    yield from of_calibration(rows)
    yield from of_one_seed()
    yield from given("Steps have the size h = 0.002", "as their partners, 1e-4")


COLD = "Nonlinear (BG), RMSprop partners at 1e-4 (published)"
LINEAR = ("SGLD (linear)", "SGLD, RMSprop (linear)")


def of_calibration(rows: dict[str, dict[str, Any]]) -> Iterator[Phrase]:
    """Tell how sure samplers are, of images as they are and of worse ones."""
    found = sorted(100 * rows[name]["ece_all_classes"] for name in (COLD, *LINEAR))
    yield made(
        "over all classes of {:.2f} %, and the linear chains have {:.2f} and {:.2f} %", *found
    )
    errors = [100 * rows[name]["ece_all_classes_error"] for name in (COLD, *LINEAR)]
    yield made("with errors of about {:.2f}", max(errors))
    yield from given("0.14 against 0.24")
    others = {row["label"]: row for row in kept("cifar10_features", "laptop")["contenders"]}
    cold, *linear = (100 * others[name]["ece_all_classes"] for name in (COLD, *LINEAR))
    yield made("the same BG has {:.2f} %", cold)
    yield made("the linear chains {:.2f} and {:.2f} %: the features", *linear)
    under_noise = [100 * rows[name]["noise_ece"] for name in (COLD, LINEAR[0])]
    ensemble = rows["Deep ensemble"]
    yield made("noise its probabilities are off by {:.1f} points", under_noise[0])
    yield made("those of ten trained networks by {:.1f}", 100 * ensemble["noise_ece"])
    yield made("and those of SGLD by {:.1f}.", under_noise[1])
    for kind in ("noise", "blur"):
        assert ensemble[f"{kind}_ece"] > rows[COLD][f"{kind}_ece"], "as trained networks are"
        assert rows[COLD][f"{kind}_ece"] > 1.05 * max(rows[n][f"{kind}_ece"] for n in LINEAR)
    shares = [row["noise_accuracy"] for row in rows.values()]
    assert 1 / 6.5 < min(shares) < max(shares) < 1 / 5.5, "every sixth"
    off = min(100 * row["noise_ece"] for row in rows.values())
    yield made("probabilities are off by {:.0f} points or more", off)


def of_one_seed() -> Iterator[Phrase]:
    """Tell what contenders give that were run with one seed only."""
    rows = {row["label"]: row for row in kept("cifar10_features", "laptop")["contenders"]}
    assert rows["Nonlinear (AR), RMSprop partners at 1e-4 (published)"]["accepted_jumps"] == 0
    laplace, linear = rows["Laplace"], rows["SGLD (linear)"]
    yield made("accuracy of {:.4f} and an NLL of {:.4f}", laplace["accuracy"], laplace["nll"])
    yield made("SGLD had {:.4f} and {:.4f}", linear["accuracy"], linear["nll"])


def of_the_plane() -> Iterator[Phrase]:
    """Tell what samplers on the three densities do."""
    summary = kept("densities")
    noise = {target["name"]: target["noise"] for target in summary["targets"]}
    error = {name: each / summary["num_seeds"] ** 0.5 for name, each in noise.items()}
    rows = {(row["target"], row["sampler"]): row for row in summary["densities"]}
    yield from given("of step τ = 0.001, ε = 0.1", "uniform on [−7.5, 7.5]²", "√h, here 1.96")
    yield made(
        "standard deviation of {:.2f} (circle), {:.2f} (rings) and {:.2f} (grid)",
        *(1000 * noise[name] for name in ("circle", "rings", "grid")),
    )
    yield made(
        "is lost in the grey band after {} iterations. On",
        last_above(rows["circle", "MALA"], 2 * error["circle"]),
    )
    on_the_grid = rows["grid", "MALA"]
    assert min(on_the_grid["mean"]) > 2 * error["grid"], "comes near to it"
    yield made(
        "near to it, {:.2f} ± {:.2f} at",
        1000 * on_the_grid["mmd2"],
        1000 * on_the_grid["mmd2_error"],
    )
    yield made("would end at MMD² = {:.4f}", distance_without_jacobian())
    seconds = [row["seconds"] for (_, sampler), row in rows.items() if sampler == "BG"]
    yield made("took {:.0f} to {:.0f} s on two cores", min(seconds), max(seconds))


def last_above(row: dict[str, Any], level: float) -> int:
    """The last iteration at which the mean over the seeds is above a level."""
    return int(np.array(row["iterations"])[np.array(row["mean"]) > level][-1])


def distance_without_jacobian() -> float:
    """MMD² between the rings and draws that give them equal masses, by quadrature."""
    target, step = rings(), 0.01
    radius = np.arange(0, max(target.radii) + 8 * target.std, step)
    peaks = np.exp(-0.5 * ((radius[:, None] - target.radii) / target.std) ** 2).sum(axis=1)
    right = radius * peaks
    difference = peaks / peaks.sum() - right / right.sum()
    angles = np.linspace(0, 2 * np.pi, 120, endpoint=False)
    kernel = np.mean([kernel_at(radius, angle) for angle in angles], axis=0)
    return float(difference @ kernel @ difference)


def kernel_at(radius: np.ndarray, angle: float) -> np.ndarray:
    """The kernel between points that lie at these distances from the centre, at an angle."""
    squares = radius[:, None] ** 2 + radius**2 - 2 * np.outer(radius, radius) * np.cos(angle)
    return np.sum([np.exp(-rate * squares) for rate in RATES], axis=0)


def of_networks() -> Iterator[Phrase]:
    """Tell what samplers of small networks cost and give."""
    problems = {each["name"]: each for each in kept("nonlinear_networks")["problems"]}
    rows = {name: {row["label"]: row for row in each["rows"]} for name, each in problems.items()}
    boston = rows["boston_10"]
    steps = (
        boston[name]["settings"]["thinning"] for name in ("AR tempered (one coin)", "AR tempered")
    )
    yield from given("2.1 with these and one coin")
    yield made("With one coin for all, {} steps cost as many gradients as {}", *steps)
    yield made("of {} weights or more", min(each["num_weights"] for each in problems.values()))
    cost = [
        each["NUTS (reference)"]["gradient_evaluations"] / each["MALA"]["gradient_evaluations"]
        for each in rows.values()
    ]
    yield made("four chains with {:.0f} to {:.0f} times the gradients", min(cost), max(cost))
    nuts, mala = (
        np.array(boston[name]["scores_by_seed"]["nll"]) for name in ("NUTS (reference)", "MALA")
    )
    mean, error = mean_and_error(list(mala - nuts))
    yield made("lower by {:.3f} ± {:.3f} than that of MALA", mean, error)
