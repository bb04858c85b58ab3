"""Experiments A1 to A5 of multilevel SMC, and the prior rates: error against cost, by name.

Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class Neural Networks",
sections 4 and 5. At laptop size one core does a problem in half an hour to ten hours.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from credence_papers.multilevel.error_cost.settings_tried import Contender, Effort, doubled
from credence_papers.multilevel.error_cost.study import ErrorCostStudy
from credence_papers.multilevel.error_cost.width_problems import WidthProblem
from credence_papers.multilevel.prior_rates import Effort as RateEffort
from credence_papers.multilevel.prior_rates import RateStudy, panels
from credence_papers.multilevel.steps import steps_study
from credence_papers.multilevel.tables import PAPER_TITLE as SOURCE

HMC = {"num_steps": 2, "trajectory_length": 0.5, "target_acceptance_rate": 0.65}
"""Two short trajectories per temperature: of the settings tried, the least work for a variance."""

ALPHAS = (1.1, 1.4, 1.7, 1.9, 2.0, 3.0)
SMOOTH = (
    "Published: cost falls as MSE^-1, and is about 10 times below one level's at the lowest MSE."
)
ROUGH = "Published: below the canonical rate, and still about 3 times cheaper than one level."


def efforts(finest: int = 32) -> dict[str, Effort]:
    """The three sizes.

    Args:
        finest: width at laptop size.
    """
    smoke = Effort(
        widths=(4,),
        particles=(16,),
        ladders=((2, 4),),
        base_particles=(20,),
        replicates=4,
        reference={"num_draws": 20, "num_chains": 2, "num_warmup": 20},
        pilot_particles=16,
        pilot_runs=4,
        biases=False,
        mutation=HMC,
        problem={"num_points": 10, "num_interest": 4},
    )
    laptop = Effort(
        widths=(8, 16, finest),
        particles=(40, 320, 2560),
        ladders=(doubled(finest // 4, finest),),
        base_particles=(80, 640, 5120),
        replicates=16,
        reference={"num_draws": 2000, "num_chains": 4, "num_warmup": 500},
        pilot_particles=60,
        mutation=HMC,
    )
    paper = Effort(
        widths=(8, 16, 32, 64, 128),
        particles=(50, 200, 800, 3200),
        ladders=(doubled(8, 64), doubled(16, 128), doubled(32, 128), (64, 128)),
        base_particles=(100, 400, 1600, 6400),
        replicates=100,
        reference={"num_draws": 10000, "num_chains": 8, "num_warmup": 2000},
        mutation=HMC,
    )
    return {"smoke": smoke, "laptop": laptop, "paper": paper}


_CLASSES: dict[str, tuple[dict[str, Any], str]] = {
    "spiral": (
        {"source": "spiral", "num_points": 1000},
        "Two arms of a spiral, radius 16, each a class.",
    ),
    "digits": (
        {"source": "digits", "num_points": 400, "num_features": 100},
        "Images of 0 and 1 by their first principal components.",
    ),
    "halfcheetah": (
        {"source": "halfcheetah", "num_points": 90, "noise_std": 0.1, "scale": 2.0},
        "Choices of a runner among 8 actions by the value of 17-dimensional states, through noise "
        "0.1.",
    ),
    "mountain_car": (
        {"source": "mountain_car", "num_points": 100, "noise_std": 0.1, "scale": 2.0},
        "Choices of a driver among 3 actions by the value of 2-dimensional states, through noise "
        "0.1.",
    ),
}
"""Problems of classes and choices with their published data: settings, and a description."""


def _classes(kind: str, alpha: float, name: str = "", **settings: Any) -> WidthProblem:
    """A problem of classes or choices, as published but for these settings."""
    known, description = _CLASSES[kind]
    return _named(name or kind, alpha, description=description, **known, **settings)


def _named(kind: str, alpha: float, **settings: Any) -> WidthProblem:
    return WidthProblem(name=f"{kind} alpha {alpha:g}", alpha=alpha, **settings)


SHORT = "short moves"
AT_ONCE = {"direct_ess": 0.02}
"""Levels are reached by weights alone, also where few particles are left: the difference of two
levels has more variance in these replicates, but no particle is moved at the finest width."""


def _long(width: int, replicates: Mapping[int, int | None]) -> tuple[Contender, ...]:
    """One level by the usual moves.

    Args:
        replicates: by number of particles; those of the effort for None.
    """
    return tuple(
        Contender(method="smc", widths=(width,), num_particles=(count,), replicates=number)
        for count, number in replicates.items()
    )


def _short(
    *widths: int, counts: tuple[int, ...] = (40, 160, 640), replicates: int | None = None
) -> tuple[Contender, ...]:
    """One level by two short trajectories at every temperature, which leave particles about where
    they are: the least work for an error in some problems, and dear in others."""
    return tuple(
        Contender(
            method="smc",
            widths=(width,),
            num_particles=(count,),
            mutation=HMC,
            manner=SHORT,
            replicates=replicates,
        )
        for width in widths
        for count in counts
    )


def _often(effort: Effort) -> Effort:
    """The same contenders, each a hundred times, and a reference of twice as many runs."""
    further = tuple(replace(each, replicates=None) for each in effort.further)
    reference = {**effort.reference, "num_runs": 2 * effort.reference["num_runs"]}
    return replace(effort, replicates=100, further=further, reference=reference)


_DEEP = efforts(128)
DEEP = ErrorCostStudy(
    name="multilevel_deep",
    description="Error against cost, two hidden layers and few noisy data: levels at their best",
    problems=(
        WidthProblem(
            name="deep noise 1 alpha 1.4", alpha=1.4, source="regression", num_points=20,
            noise_std=1.0, depth=2,
            description="A particle's cost grows as width^2, and 20 points with noise 1 change the "
            "likelihood by less than 0.4 nats from width 16 on: no tempering between levels.",
        ),
    ),
    efforts={
        **_DEEP,
        "laptop": replace(
            _DEEP["laptop"],
            widths=(16, 32, 64),
            particles=(1000, 10_000),
            further=(
                *_long(32, {30_000: 16}), *_long(64, {30_000: 8}),
                *_long(128, {1000: 8, 5000: 8}),
            ),
            ladders=(doubled(16, 128),),
            base_particles=(1000, 3000, 8000),
            pilot_particles=400,
            biases=False,
            mutation={},  # short moves leave a rare mode, which some runs then miss
            reference={"num_particles": 2500, "num_runs": 32, "together": 4},
        ),
    },
    source=SOURCE,
)  # fmt: skip
_PRINTED: dict[str, Any] = {"depth": 2, "decay_inputs": True}
"""Two hidden layers, and the prior (4.2) as the paper prints it."""
_AT_SIZES = efforts()
_AT_128_SHORT = (
    *_short(4, 8, counts=(40, 160, 640, 2560)),
    *_short(16, 32),
    *_short(128, replicates=8),
)
_AT_128 = replace(
    _AT_SIZES["laptop"],
    widths=(8, 16, 32),
    particles=(40, 160),
    further=(
        *_long(4, {40: 32, 160: 32, 640: 32}),
        *_long(8, {640: 32}),
        *_long(64, {40: 16, 160: 8}),
        *_long(128, {40: 8, 160: 8}),
        *_AT_128_SHORT,
    ),
    ladders=None,
    base_share=0.7,
    base_particles=(100, 400),
    manners={
        "": {**AT_ONCE, "base_particles": (100, 400, 1600)},
        "16 tries": {**AT_ONCE, "num_tries": 16},
        SHORT: {**AT_ONCE, "mutation": HMC, "base_particles": (100, 400, 1600)},
        f"{SHORT}, 16 tries": {
            **AT_ONCE,
            "mutation": HMC,
            "num_tries": 16,
            "base_particles": (100, 400, 1600),
        },
    },
    replicates=32,
    biases=False,
    mutation={},
    reference={"num_particles": 500, "num_runs": 32},
    reference_nats=0.06,
    reference_width=128,
)
PUBLISHED = ErrorCostStudy(
    name="multilevel_published",
    description="Error against cost, two hidden layers, the prior and the widths as published",
    problems=(
        *(
            _named(
                "published regression", alpha, source="regression", num_points=100, **_PRINTED,
                description="10 inputs N(2, 0.5), targets from a network of widths 256, 256; the "
                "prior (4.2), and data as many and as noisy as in the public code.",
            )
            for alpha in (3.0, 2.0, 1.9, 1.7, 1.4)
        ),
        *(
            _classes(kind, alpha, f"published {kind}", **_PRINTED)
            for kind in _CLASSES
            if kind != "spiral"
            for alpha in (3.0, 2.0)
        ),
    ),
    efforts={
        "smoke": replace(_AT_SIZES["smoke"], ladders=None, widths=(4, 8)),
        "laptop": _AT_128,
        "paper": _often(_AT_128),
    },
    source=SOURCE,
    published={
        f"published {kind} alpha {alpha:g}": SMOOTH if alpha > 1.5 else ROUGH
        for kind in ("regression", "digits", "spiral", "halfcheetah", "mountain_car")
        for alpha in ALPHAS
    },
)  # fmt: skip
_OF_SPIRAL = replace(
    _AT_128,
    particles=(40,),
    further=(
        *_long(4, {40: 32, 160: 32, 640: 32}),
        *_long(8, {160: None}),
        *_long(16, {160: None}),
        *_long(64, {40: 16}),
        *_long(128, {40: 8}),
        *_AT_128_SHORT,
    ),
)
"""The usual moves cost 12 to 41 times as much for an error as short ones with a thousand points. In
wide networks they are therefore tried with 40 particles only."""
PUBLISHED_SPIRAL = replace(
    PUBLISHED,
    name="multilevel_published_spiral",
    description="Error against cost, the prior and the widths as published: two arms of a spiral",
    problems=tuple(
        _classes("spiral", alpha, "published spiral", **_PRINTED) for alpha in (3.0, 2.0)
    ),
    efforts={**PUBLISHED.efforts, "laptop": _OF_SPIRAL, "paper": _often(_OF_SPIRAL)},
)
_AT_256 = replace(
    _AT_128,
    reference={"num_particles": 500, "num_runs": 8},
    reference_width=256,
    reference_nats=0.07,
    base_particles=(25, 100, 400),
    manners={
        "4 tries": {**AT_ONCE, "num_tries": 4},
        f"{SHORT}, 4 tries": {**AT_ONCE, "num_tries": 4, "mutation": HMC},
    },
    further=(
        *_long(8, {640: 32}),
        *_long(16, {640: 32}),
        *_long(32, {640: 16}),
        *_long(64, {40: 8, 160: 8}),
        *_long(128, {40: 8, 160: 8}),
        *_long(256, {40: 8, 80: 8}),
        *_short(8, 16, 32),
        *_short(64, 128, counts=(40, 160), replicates=8),
        *_short(256, counts=(40,), replicates=16),
        *_short(256, counts=(160, 640), replicates=8),
    ),
)
PUBLISHED_256 = replace(
    PUBLISHED,
    name="multilevel_published_256",
    description="Error against cost, the prior as published, and networks of twice the width",
    problems=PUBLISHED.problems[:2],
    efforts={**PUBLISHED.efforts, "laptop": _AT_256, "paper": _often(_AT_256)},
)
_CASES = (
    (4.0, 100, "relu", 7, 2.04),
    (2.0, 100, "relu", 7, 2.02),
    (4.0, 400, "relu", 7, 2.07),
    (4.0, 100, "tanh", 7, 2.04),
    (4.0, 100, "relu", 3, 2.34),
)
_ONE_FAMILY = replace(
    _AT_128,
    particles=(40,),
    further=(),
    manners={"": {**AT_ONCE, "base_particles": (100, 400, 1600)}},
)
"""Several levels in one manner: where the cheapest of several is taken, the line jumps from one to
another, and its slope is that of no method."""
SENSITIVITY = ErrorCostStudy(
    name="multilevel_sensitivity",
    description="Sensitivity of the rate of error against cost (Table 1)",
    problems=tuple(
        WidthProblem(
            name=f"case {i}", alpha=alpha, source="digits", num_points=400, num_features=inputs,
            activation=activation, **_PRINTED,
            description=f"MNIST 0 or 1 by {inputs} components (as published); L = {levels}.",
        )
        for i, (alpha, inputs, activation, levels, _) in enumerate(_CASES, 1)
    ),
    efforts={**PUBLISHED.efforts, "laptop": _ONE_FAMILY, "paper": _often(_ONE_FAMILY)},
    source=SOURCE,
    limits={f"case {i}": 2**levels for i, (*_, levels, _) in enumerate(_CASES, 1)},
    published={
        f"case {i}": f"Published: cost ~ error^-{rate} in the root mean square, a slope of "
        f"{-rate / 2:.2f} against the MSE."
        for i, (*_, rate) in enumerate(_CASES, 1)
    },
)  # fmt: skip
PRIOR_RATES = RateStudy(
    name="prior_rates",
    description="How fast networks stop changing as they widen, under the prior",
    problems=panels(),
    efforts={
        "smoke": RateEffort((3, 3), 2000),
        "laptop": RateEffort((10, 7), 30_000),
        "paper": RateEffort((11, 8), 200_000),
    },
    source=SOURCE + ", Figures 1 and 2",
)

_TWO_HUNDRED = {"num_points": 200, "source": "regression"}
_PLACES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("regression", _TWO_HUNDRED),
    ("regression, prior (4.2)", {**_TWO_HUNDRED, "decay_inputs": True}),
    ("regression, two layers", {**_TWO_HUNDRED, "depth": 2}),
    ("regression, two layers, prior (4.2)", {**_TWO_HUNDRED, "depth": 2, "decay_inputs": True}),
    ("spiral", _CLASSES["spiral"][0]),
    ("spiral, two layers", {**_CLASSES["spiral"][0], "depth": 2}),
    ("MNIST 0 or 1", _CLASSES["digits"][0]),
    ("MNIST 0 or 1, two layers", {**_CLASSES["digits"][0], "depth": 2}),
    ("HalfCheetah", _CLASSES["halfcheetah"][0]),
    ("mountain car", _CLASSES["mountain_car"][0]),
)
_AS = {
    "regression": "200 points as published, noise 0.1 as in the public code; the paper prints 0.01",
    "halfcheetah": "noise 0.1 and scale 2 as in the earlier public code; the paper prints noise "
    "0.01",
    "mountain_car": "noise 0.1 and scale 2 as of HalfCheetah in the earlier public code",
}
"""What of a problem is not as published, by its source."""
STEPS = steps_study(
    tuple(
        _named(
            place,
            alpha,
            description=f"{place}, {_AS.get(settings['source'], 'as published')}.",
            **settings,
        )
        for place, settings in _PLACES
        for alpha in (1.1, 1.4, 1.7, 2.0, 3.0)
    ),
    "multilevel_steps",
    SOURCE,
)
