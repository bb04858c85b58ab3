"""Photographs: nonlinear MCMC for a residual network, as an experiment."""

from typing import Any

from credence.compare.sources import ImageSource
from credence.compare.specs import Experiment, ModelSpec, Problem, Published, RowLimits
from credence_papers.nonlinear.image_contenders import (
    EARLY,
    LAPTOP,
    PAPER,
    SMALL,
    SMOKE,
    contenders,
)

PUBLISHED: tuple[dict[str, Any], ...] = (
    {"label": "Linear", "tempered": False, "accuracy": 0.8501, "ece_all_classes": 0.0024},
    {"label": "Linear", "tempered": True, "accuracy": 0.8501, "ece_all_classes": 0.0026},
    {"label": "Nonlinear (BG)", "tempered": False, "accuracy": 0.8428, "ece_all_classes": 0.0014},
    {"label": "Nonlinear (BG)", "tempered": True, "accuracy": 0.8474, "ece_all_classes": 0.0016},
    {"label": "Nonlinear (AR)", "tempered": False, "accuracy": None, "ece_all_classes": None},
    {"label": "Nonlinear (AR)", "tempered": True, "accuracy": 0.8467, "ece_all_classes": 0.0015},
)
"""Table 1: ResNet-18, ten networks, five seeds. "Tempered" particles are as cold as their partners,
1e-4; accept-reject diverged at temperature 1. Standard deviations are .0008 to .0028 of accuracies
and .0001 to .0005 of calibration errors."""

OURS = {
    "Linear": "SGLD (linear)",
    "Nonlinear (BG)": "Nonlinear (Boltzmann-Gibbs)",
    "Nonlinear (AR)": "Nonlinear (accept-reject)",
}
"""What our rows are called; those of table 1 that are tempered have no row of ours."""


def _printed(row: dict[str, Any]) -> Published:
    """A row of table 1 beside ours, or one for itself."""
    label = OURS[row["label"]] + (", tempered (published only)" if row["tempered"] else "")
    return Published(
        label=label, values={score: row[score] for score in ("accuracy", "ece_all_classes")}
    )


TABLE_1 = (
    *(_printed(row) for row in PUBLISHED if row["accuracy"]),
    Published(
        label="Full-batch HMC, ResNet-20 (Izmailov et al., 2021)",
        values={"accuracy": 0.914, "nll": 0.277, "ece": 0.052},
    ),
    Published(
        label="Cyclical SGHMC, ResNet-20, no augmentation (Izmailov et al., 2021)",
        values={"accuracy": 0.888, "nll": 0.352},
    ),
)
"""Results of the published potentials; accept-reject diverged where particles are not tempered."""

REASONS = (
    "The published code averages the cross-entropy over classes and rows and does not scale it "
    "to all of them, and its noise is outside the square root: it ran at temperatures from "
    "1e-8 to 5e5, and its potentials were all but constant, so that jumps were copies. Ours is "
    "the log posterior of all rows at temperature 1.",
    "The published linear sampler is the auxiliary chain of the nonlinear run, Langevin with "
    "the RMSprop preconditioner. Ours is a run of its own, with a metric from its warm-up, and "
    "two chains for every particle and its partner. That is no equal cost: potentials of many "
    "rows come on top, so that particles jump together (one coin) where there are such; the "
    "steps' cost is in the table.",
    "The published partners are colder than the posterior (power 1e4), as in the row 'as "
    "published' here. Those of the other rows are a little hotter, at a temperature of 1 + "
    "sqrt(2 / weights), so that potentials vary by one nat; "
    "nearly every jump is then accepted, and particles share partners.",
    "We take filter response normalisation: with batch normalisation the outputs for an image "
    "depend on the other images of its batch, and there is no likelihood.",
    "No augmentation: crops and flips of an image are no further observations, and a sum over "
    "them is the likelihood of no model.",
    "The published calibration error is over the probabilities of all classes; the one of the "
    "top label is what other papers report.",
)

CIFAR10 = Experiment(
    name="cifar10",
    description="Photographs by a residual network: nonlinear MCMC against linear, SGHMC and a "
    "deep ensemble, with the published numbers.",
    source='Vuckovic, "Nonlinear MCMC for Bayesian Machine Learning" (2022), section 4.2 and '
    "table 1",
    baseline="SGLD (linear)",
    num_seeds={"paper": 5},
    methods=contenders({"smoke": SMOKE, "laptop": LAPTOP, "paper": PAPER}),
    problems=(
        Problem(
            name="cifar10",
            description="Photographs in ten classes, a residual network with filter response "
            "normalisation and Swish, weights N(0, 1/fan_in), scales and biases N(0, 1), no "
            "augmentation.",
            source=ImageSource(name="cifar10", as_vectors=False),
            model=ModelSpec(network="resnet18"),
            models={"smoke": ModelSpec(network="resnet8"), "laptop": ModelSpec(network="resnet8")},
            rows={
                "smoke": RowLimits(train=96, test=64),
                "laptop": RowLimits(train=2000, test=1000),
            },
            published=TABLE_1,
        ),
    ),
    reasons=(
        *REASONS,
        "At laptop size there are 2,000 of 50,000 training images and 8 of 18 layers.",
    ),
)

CIFAR10_SMALL = Experiment(
    name="cifar10_small",
    description="Photographs of 16 x 16 pixels by a residual network of eight layers: the "
    "contenders of cifar10 on 10,000 images.",
    source=CIFAR10.source,
    baseline="SGLD (linear)",
    methods=contenders({"smoke": SMOKE, "laptop": SMALL, "paper": SMALL}),
    problems=(
        Problem(
            name="cifar10_small",
            description="Photographs in ten classes, of 16 x 16 pixels, model and prior as of "
            "cifar10.",
            source=ImageSource(name="cifar10", as_vectors=False, shrink=2),
            model=ModelSpec(network="resnet8"),
            rows={
                "smoke": RowLimits(train=96, test=64),
                "laptop": RowLimits(train=10_000, test=10_000),
                "paper": RowLimits(train=10_000, test=10_000),
            },
            published=TABLE_1,
        ),
    ),
    reasons=(
        *REASONS,
        "There are 10,000 of 50,000 training images, a quarter of the pixels and 8 of 18 layers; "
        "sizes laptop and paper are the same.",
    ),
)

CIFAR10_RESNET20 = Experiment(
    name="cifar10_resnet20",
    description="Photographs by a residual network of 20 layers, for a GPU: the contenders of "
    "cifar10 on all images.",
    source=CIFAR10.source,
    baseline="SGLD (linear)",
    methods=contenders({"smoke": SMOKE, "laptop": EARLY, "paper": PAPER}),
    problems=(
        Problem(
            name="cifar10_resnet20",
            description="Photographs in ten classes, model and prior as of cifar10, convolutions "
            "in bfloat16.",
            source=ImageSource(name="cifar10", as_vectors=False),
            model=ModelSpec(network="resnet20", dtype="bfloat16"),
            models={"smoke": ModelSpec(network="resnet20")},
            rows={"smoke": RowLimits(train=96, test=64)},
            published=TABLE_1,
        ),
    ),
    reasons=(
        *REASONS,
        "The network is ResNet-20, with a quarter of the channels of ResNet-18. Size laptop is "
        "its beginning, for a GPU: 4 networks and 4 partners in place of ten each, "
        "and 16 passes over the images in place of 300.",
    ),
)
