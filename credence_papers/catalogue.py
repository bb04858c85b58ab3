"""The published experiments, by name."""

from credence.compare.specs import Experiment
from credence.errors import InputError, did_you_mean
from credence_papers.fbnn.tables import FBNN, FBNN_CONVERGED, FBNN_FIRST_VERSION
from credence_papers.multilevel.tables import IMDB, MNIST_OOD
from credence_papers.nonlinear.images import CIFAR10
from credence_papers.nonlinear.tables import NONLINEAR

EXPERIMENTS: dict[str, Experiment] = {
    each.name: each
    for each in (FBNN, FBNN_CONVERGED, FBNN_FIRST_VERSION, IMDB, MNIST_OOD, CIFAR10, NONLINEAR)
}


def find(name: str) -> Experiment:
    """The experiment of that name.

    Raises:
        InputError: if there is none; the sentence suggests the nearest name.
    """
    if name not in EXPERIMENTS:
        raise InputError(
            f"There is no experiment '{name}': choose one of {', '.join(EXPERIMENTS)}."
            + did_you_mean(name, EXPERIMENTS)
        )
    return EXPERIMENTS[name]
