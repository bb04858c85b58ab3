"""The rows of the FBNN paper's tables, and what stands beside them."""

from dataclasses import replace
from typing import Any

from credence.compare.specs import MethodSpec
from credence.methods.surrogate.public_code import crank_nicolson_step

SMOKE = {"num_draws": 20, "num_chains": 2}
LAPTOP = {"num_draws": 500, "num_chains": 4}
PAPER = {"num_draws": 2000, "num_chains": 4}
H = 0.01
"""The step of pCN in the public code."""
CALIBRATION = 200
"""Draws that teach an emulator, as published."""
EMULATORS = {
    **{name: name for name in ("boston", "wine", "adult", "mnist", "celeba", "year", "svhn")},
    "alzheimer_diagnosis": "alzheimer",
    "alzheimer_hippocampus": "alzheimer",
    "simulated_large_regression": "simulated",
    "simulated_large_classification": "simulated",
    "simulated_regression": "public_code",
    "simulated_classification": "public_code",
}
"""Problems, and whose emulator of table 2 is theirs; the public code's example has its own."""
BY_PROBLEM = {name: {"emulator": f"published:{of}"} for name, of in EMULATORS.items()}
RAW = "credence.methods.surrogate.public_code:PublicSGHMC"
"""SGHMC with the public code's steps, from a random start."""


def chain(label: str, method: str, share: float = 1.0, **smoke: int) -> MethodSpec:
    """Four chains; at laptop size together the 2000 draws of the paper, or a share of them."""
    sizes = {"smoke": SMOKE | smoke, "laptop": LAPTOP, "paper": PAPER}
    return MethodSpec(
        label=label,
        method=method,
        by_size={
            size: {**settings, "num_draws": max(4, round(share * settings["num_draws"]))}
            for size, settings in sizes.items()
        },
    )


def raw(label: str, num_draws: int) -> MethodSpec:
    """Draw in so many epochs of SGHMC with the public code's steps, from four random starts."""
    settings = {"num_draws": num_draws, "num_chains": 4}
    return MethodSpec(label=label, method=RAW, settings=settings, by_size={"smoke": SMOKE})


def draws(label: str, method: str, **settings: Any) -> MethodSpec:
    """Independent draws from an approximation, 2000 at paper size."""
    numbers = {"smoke": 20, "laptop": 500, "paper": 2000}
    return MethodSpec(
        label=label,
        method=method,
        settings=settings,
        by_size={s: {"num_draws": n} for s, n in numbers.items()},
    )


UNCORRECTED = {
    "correction": "none",
    "num_refinements": 0,
    "thinning": 1,
    "max_error": 1e9,
}


def _ces(
    label: str, calibration: str, sampler: str, num_calibration: int, **settings: Any
) -> MethodSpec:
    """Calibrate by draws, emulate, and sample with a warm-up, at the usual three sizes."""
    sizes = {"smoke": SMOKE | {"num_calibration": 20}, "laptop": LAPTOP, "paper": PAPER}
    return MethodSpec(
        label=label,
        method="ces",
        settings={"calibration": calibration, "sampler": sampler, "num_warmup": 250, **settings},
        by_size={size: {"num_calibration": num_calibration} | each for size, each in sizes.items()},
    )


def emulated(label: str, calibration: str, sampler: str, **settings: Any) -> MethodSpec:
    """The first 200 raw draws from every start teach the published emulator, and 2000 follow it."""
    around = {"reference": "prior"} if sampler == "pcn" else {}
    published = {"emulator": "network", **UNCORRECTED, **around, **settings}
    found = _ces(label, calibration, sampler, CALIBRATION, **published)
    return replace(found, by_problem=BY_PROBLEM)


def as_published(label: str, emulator: str | None = None) -> MethodSpec:
    """The paper's method with the steps of its code, from four starts.

    200 raw epochs of SGHMC from a random start teach the emulator, and 2000 steps of pCN with
    h = .01, one a draw, follow it from the last epoch on. What the code has otherwise stands in the
    reasons of the experiments.

    Args:
        emulator: on all problems; None for that of each.
    """
    steps = {"step_size": crank_nicolson_step(H), "surrogate_steps": 1}
    found = emulated(label, "sghmc_public", "pcn", **steps)
    many = {"num_calibration": CALIBRATION, "num_draws": 2000, "num_chains": 4}
    smoke = SMOKE | {"num_calibration": 20}
    sizes = {"smoke": smoke, "laptop": many, "paper": many}
    if emulator is None:
        return replace(found, by_size=sizes)
    settings = {**found.settings, "emulator": emulator}
    return replace(found, by_size=sizes, settings=settings, by_problem={})


def exact(label: str, calibration: str, sampler: str) -> MethodSpec:
    """A coreset proposes, and all rows decide."""
    return _ces(label, calibration, sampler, 50, max_error=1e9)


STOPPED = {"training": {"validation_fraction": 0.1}}
"""A network that is best on rows it has not seen, as is its noise: at a mode for all rows the noise
is that of rows which the network knows, and collapses."""

METHODS = (
    MethodSpec(label="DNN", method="map", settings=STOPPED),
    MethodSpec(label="Ensemble-DNN", method="deep_ensemble"),
    draws("BNN-VI", "variational"),
    draws("BNN-Lasso", "laplace", prior_precision="evidence"),
    draws("BNN-MC-Dropout", "mc_dropout", rate=None),
    chain("BNN-SGHMC", "sghmc"),
    raw("BNN-SGHMC with the public code's steps", 2000),
    raw("BNN-SGHMC (first 200)", CALIBRATION),
    draws("SWAG", "swag"),
    chain("BNN-RNS-HMC", "rns_hmc"),
    chain("BNN-pCN", "pcn"),
    emulated("FBNN (pCN-SGHMC)", "pcn_public", "sghmc"),
    emulated("FBNN (pCN-pCN)", "pcn_public", "pcn"),
    emulated("FBNN (SGHMC-SGHMC)", "sghmc_public", "sghmc"),
    as_published("FBNN (SGHMC-pCN)"),
    as_published(
        "FBNN (SGHMC-pCN) with the public code's emulator", emulator="published:public_code"
    ),
    chain("HMC on all rows", "hmc", num_warmup=25),
    chain("NUTS on all rows", "nuts", num_warmup=25),
    chain("MCLMC on all rows", "mclmc", num_warmup=25),
)
"""The fourteen rows, SGHMC and the emulator of the public code, and exact chains that emulate
nothing."""
EXACT = (exact("CES exact (SGHMC-HMC)", "sghmc", "hmc"),
         exact("CES exact (modes-MCLMC)", "mode", "mclmc"))  # fmt: skip
"""Rows for data of more rows than a coreset takes whole."""


def sghmc(rows: int | str, num_draws: int) -> MethodSpec:
    """SGHMC with so many rows a step, and draws for which chains may agree."""
    spec = replace(chain(f"BNN-SGHMC ({rows} rows a step)", "sghmc"), settings={"batch_size": rows})
    return longer(spec, num_draws)


def longer(spec: MethodSpec, num_draws: int) -> MethodSpec:
    """The row with so many draws; as before at smoke size."""
    sizes = {size: {**each, "num_draws": num_draws} for size, each in spec.by_size.items()}
    return replace(spec, by_size={**sizes, "smoke": spec.by_size["smoke"]})


CONVERGED = (
    sghmc("all", 3000),
    sghmc(1024, 2000),
    sghmc(32, 2000),
    *(longer(spec, 2000) for spec in METHODS if spec.label.endswith("on all rows")),
)
"""SGHMC with all rows, with the library's usual minibatches and with the published ones; and exact
chains."""
