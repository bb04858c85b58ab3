"""Linear against nonlinear MCMC on Bayesian networks for tables and digits, at equal gradients."""

from dataclasses import replace
from typing import Any

from credence.compare.specs import Experiment, MethodSpec, ModelSpec, Problem, RowLimits
from credence_papers.fbnn.tables import FBNN

PARTICLES = 16
RUNGS = 3
STEPS = 36
"""Gradients per particle and draw: a sampler that takes g a step makes STEPS / g steps."""
ONE_COIN = 2.1
"""Gradients of a step with partners and one coin: potentials are computed in a tenth of them."""
DRAWS = {"smoke": 4, "laptop": 200, "paper": 1000}
WARMUP = {"smoke": 2, "laptop": 100, "paper": 250}
"""Warm-up of every size, in draws."""


def _sampler(
    label: str, gradients: float, method: str = "interacting", **settings: Any
) -> MethodSpec:
    """Steps per draw such that all samplers have as many gradients.

    Args:
        gradients: of a step, that of the partners included.
    """
    chains = "num_particles" if method == "interacting" else "num_chains"
    thinning = {size: 2 if size == "smoke" else max(1, int(STEPS / gradients)) for size in DRAWS}
    return MethodSpec(
        label=label,
        method=method,
        settings=settings,
        by_size={
            size: {
                chains: 4 if size == "smoke" else PARTICLES,
                "num_draws": DRAWS[size],
                "num_warmup": WARMUP[size] * thinning[size],
                "thinning": thinning[size],
                "training": {"max_epochs": 2 if size == "smoke" else 200},
            }
            for size in DRAWS
        },
    )


def _problem(name: str, hidden: tuple[int, ...], **rows: RowLimits) -> Problem:
    """A problem of the FBNN tables with a smaller network; no numbers are published for these."""
    found = next(each for each in FBNN.problems if each.name == name)
    shape = "-".join(map(str, hidden))
    return replace(
        found,
        name=f"{name}_{shape}",
        description=f"{found.description.split(',')[0]}, {shape} hidden tanh neurons.",
        model=ModelSpec(
            hidden=hidden, activation="tanh", prior="unit", likelihood=found.model.likelihood
        ),
        rows={**found.rows, **rows},
        published=(),
        reasons=(),
    )


NONLINEAR = Experiment(
    name="nonlinear_networks",
    description="Linear against nonlinear MCMC on networks for Boston, wine and MNIST, at equal "
    "numbers of gradients.",
    source='after Vuckovic, "Nonlinear MCMC for Bayesian Machine Learning" (2022), section 4, who '
    "has no such tables",
    baseline="MALA",
    methods=(
        _sampler("MALA", 1, "mala"),
        _sampler("AR tempered", 3, kernel="mala"),
        _sampler("BG tempered", 3, kernel="mala", jump="bg"),
        _sampler("AR tempered (one coin)", ONE_COIN, kernel="mala", synchronous=True),
        _sampler("BG tempered (one coin)", ONE_COIN, kernel="mala", jump="bg", synchronous=True),
        _sampler(
            f"AR ladder of {RUNGS}",
            2 * RUNGS + 1,
            kernel="mala",
            auxiliary="ladder",
            num_rungs=RUNGS,
        ),
        _sampler("AR deep ensemble", 2, kernel="mala", auxiliary="ensemble"),
        _sampler("AR Laplace", 2, kernel="mala", auxiliary="laplace"),
        MethodSpec(
            label="NUTS (reference)",
            method="nuts",
            by_size={
                "smoke": {"num_draws": 4, "num_warmup": 2, "num_chains": 2},
                "laptop": {"num_draws": 500, "num_warmup": 250},
            },
        ),
    ),
    problems=(
        _problem("boston", (10,)),
        _problem("wine", (10,)),
        _problem("mnist", (5,), laptop=RowLimits(train=500, test=1000)),
    ),
    reasons=(
        "Gradients are those of the particles and of their partners together; every sampler but "
        f"the reference has {STEPS} per particle and draw. Potentials of partners drawn afresh "
        "count as gradients: the kernel computes both at once.",
        "Particles share partners, so that R-hat between them may look better than it is.",
    ),
)
