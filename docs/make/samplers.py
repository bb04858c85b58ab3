"""The table of `benchmarks/diabetes.py`: samplers of Credence, NumPyro and BlackJAX, from rows.

Rows come from `python benchmarks/diabetes.py --out results/samplers`.
"""

from typing import Any

import numpy as np
from diabetes_samplers import THINNINGS
from kept import kept_rows
from parts import markdown
from rows import values

FULL_NAMES = {
    "auto": "**`auto`** of a named network (adjusted MCLMC, exact)",
    "nuts": "`nuts`",
    "numpyro": "NumPyro, NUTS, vectorised",
    "numpyro-parallel": "NumPyro, NUTS, a device for each chain",
    "blackjax": "BlackJAX, NUTS under `vmap`",
    "blackjax-parallel": "BlackJAX, NUTS, a device for each chain",
    "blackjax-chees": "BlackJAX, ChEES-HMC, 32 chains",
    **{
        f"blackjax-mclmc-{steps}{where}": f"BlackJAX, unadjusted MCLMC, {steps} steps a draw{how}"
        for where, how in (("", ""), ("-parallel", ", a device for each chain"))
        for steps in THINNINGS
    },
}
OURS = ("auto", "nuts")
PRIORS = {"fan_in": "Weights N(0, 1/fan_in)", "unit": "Weights N(0, 1)"}
HEADS = (
    "sampler", "min ESS / s", "median ESS / s", "seconds", "R-hat", "worst offset", "sd ratio",
)  # fmt: skip
LARGEST_RHAT = 1.01
LARGEST_Z = 4.0
"""Standard errors by which the worst of 50 means may be off by chance."""


def medians(runs: list[dict[str, Any]]) -> dict[str, float]:
    """Medians over the repeats of what the table shows."""
    columns = {
        "min_rate": [run["min_ess"] / run["seconds"] for run in runs],
        "median_rate": [run["median_ess"] / run["seconds"] for run in runs],
        **{
            name: [run[name] for run in runs]
            for name in ("min_ess", "seconds", "max_rhat", "worst_offset", "mean_std_ratio")
        },
    }
    return {name: float(np.median(column)) for name, column in columns.items()}


def is_right(found: dict[str, float]) -> bool:
    """Whether the chains agree with each other and their means with the long reference."""
    z = found["worst_offset"] * found["min_ess"] ** 0.5
    return found["max_rhat"] < LARGEST_RHAT and z < LARGEST_Z


def of_prior(runs: list[dict[str, Any]]) -> str:
    """The table of one prior, contenders in the order in which they ran."""
    rows = []
    for contender in dict.fromkeys(run["contender"] for run in runs):
        found = medians([run for run in runs if run["contender"] == contender])
        name = FULL_NAMES[contender] + ("" if is_right(found) else " (not to be trusted here)")
        rates = [f"{found[rate]:.0f}" for rate in ("min_rate", "median_rate")]
        rest = [f"{found[name]:.3f}" for name in ("max_rhat", "worst_offset", "mean_std_ratio")]
        rows.append([name, *rates, f"{found['seconds']:.1f}", *rest])
    return markdown(HEADS, rows)


def lead(runs: list[dict[str, Any]]) -> str:
    """How the default compares with the fastest of the others that is to be trusted."""
    each = {
        name: medians([run for run in runs if run["contender"] == name])
        for name in dict.fromkeys(run["contender"] for run in runs)
    }
    peers = {name: found for name, found in each.items() if name not in OURS}
    trusted = {name: found["min_rate"] for name, found in peers.items() if is_right(found)}
    best = max(trusted, key=trusted.__getitem__)
    ratio = each["auto"]["min_rate"] / trusted[best]
    return (
        f"The fastest of the others that is to be trusted is {FULL_NAMES[best]}; `auto` has "
        f"{ratio:.1f} times its smallest ESS per second."
    )


def table() -> str:
    """The tables of all designs and priors, with what ran and where."""
    runs = kept_rows("samplers")
    designs = dict.fromkeys((run["num_draws"], run["is_cold"]) for run in runs)
    lines = [line for design in designs for line in of_design(runs, *design)]
    lines.append(
        f"Medians over seeds, {values(runs, 'num_cores')} cores, nothing else running. *Not to be "
        f"trusted here*: R-hat of predictions is {LARGEST_RHAT} or more, or the worst of 50 means "
        f"is off by {LARGEST_Z:.0f} or more of the standard errors that its own ESS says."
    )
    return "\n".join(lines)


def of_design(runs: list[dict[str, Any]], num_draws: int, is_cold: bool) -> list[str]:
    """The tables of one number of draws, with or without compiled programs to begin with."""
    mine = [run for run in runs if (run["num_draws"], run["is_cold"]) == (num_draws, is_cold)]
    lines = []
    for prior, title in PRIORS.items():
        of_this = [run for run in mine if run["prior"] == prior]
        if of_this:
            about = f"{title}, {num_draws:,} draws, {'an empty' if is_cold else 'a warm'} cache"
            ran = f"commit {values(of_this, 'commit')}, seeds {values(of_this, 'seed')}"
            lines += [f"{about} ({ran}):", "", of_prior(of_this), "", lead(of_this), ""]
    return lines


def by_rows_a_step() -> str:
    """The table of `benchmarks/stochastic_gradient.py wine`: at as many passes, by rows a step."""
    heads = ("", "rows a step", "mean off by", "Monte Carlo error", "sd ratio", "R-hat", "min ESS",
             "seconds")  # fmt: skip
    names = ("off", "error", "sd_ratio", "rhat")
    rows = []
    for row in kept_rows("minibatches"):
        numbers = [f"{row[name]:.3f}" if name in row else "" for name in names]
        seen = f"{row.get('batch_size', row['num_points']):,}"
        rows.append(
            [row["method"].upper(), seen, *numbers, f"{row['ess']:,.0f}", f"{row['seconds']:.0f}"]
        )
    return markdown(heads, rows)
