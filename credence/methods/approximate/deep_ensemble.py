"""Deep ensembles and their single member, the maximum a posteriori network.

Lakshminarayanan, Pritzel & Blundell, "Simple and scalable predictive uncertainty estimation using
deep ensembles" (2017): independent trainings from random starts. Members maximise the log posterior
by Adam with early stopping; see `credence.methods.training`.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import PRNGKeyArray

from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.errors import require_positive
from credence.methods.base import Drawn, Method
from credence.methods.training import Training, train


@dataclass(frozen=True, kw_only=True)
class DeepEnsemble(Method):
    """Independently trained members, equally weighted.

    Args:
        num_members: number of networks; 5 as in the paper.
        training: see `Training`.
    """

    name: ClassVar[str] = "deep_ensemble"
    summary: ClassVar[str] = "independently trained networks (approximate)"
    sources: ClassVar[tuple[str, ...]] = (
        (
            'Lakshminarayanan, Pritzel & Blundell, "Simple and scalable predictive '
            'uncertainty estimation using deep ensembles" (2017)'
        ),
    )
    is_chain: ClassVar[bool] = False

    num_members: int = 5
    training: Training = field(default=Training())

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(num_members=self.num_members)

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        return _members(key, posterior, driver, self.num_members, self.training)


@dataclass(frozen=True, kw_only=True)
class MAP(Method):
    """One network at a maximum of the posterior: no uncertainty of the weights.

    Args:
        training: see `Training`.
    """

    name: ClassVar[str] = "map"
    summary: ClassVar[str] = "one network at a maximum of the posterior (no weight uncertainty)"
    sources: ClassVar[tuple[str, ...]] = (
        'MacKay, "A practical Bayesian framework for backpropagation networks" (1992)',
    )
    is_chain: ClassVar[bool] = False

    training: Training = field(default=Training(validation_fraction=0.0))

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        return _members(key, posterior, driver, 1, self.training)


def _members(
    key: PRNGKeyArray, posterior: Posterior, driver: Driver, number: int, training: Training
) -> Drawn:
    """Train `number` networks and return them as draws of a single chain."""
    trained = train(key, posterior, driver, number, training, may_stop_early=True)
    return Drawn(trained.positions[None], {"validation_loss": np.asarray(trained.loss)[None]})
