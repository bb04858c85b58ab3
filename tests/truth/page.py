"""The table as a page of the documentation."""

from importlib.metadata import version
from typing import Any

import numpy as np

from .cells import FULL, Bias, Cell
from .planted import NUM_CHAINS
from .table import from_json

DIVERGED = 10.0
"""Excess of the mean square from which on a number says nothing more."""

HEAD = """# The truth table

A sampler is to draw points, each as often as a given probability density, its *target*, says.
Does it? On this page every *kernel* of Credence, that is one step of a sampler, meets targets for
which the right answer is known exactly, and its draws are compared with that. `make truth`
computes these numbers; nothing on this page is written by hand. {verdict}

## How to read it

Chains start in *independent exact draws* of the target and take some steps. If the kernel leaves
the target invariant, the ends are independent exact draws again, so their deviations have honest
standard errors: no burn-in, no autocorrelation, no tuning of tolerances. A cell shows

    worst deviation in standard errors · effective draws per 1000 gradients

The deviation is the largest over means, variances and covariances of up to {coordinates} whitened
coordinates, chi^2 over all, the distribution of the first and the last in 20 bins, and the
target's own functionals (second moments of the banana, the label of the mixture). Of so many
functionals the worst is often near 3; the pass mark is 4.5. The effective sample size is ArviZ's
bulk ESS, the smallest over coordinates and their sum of squares, from {long} long chains; for
`pcn`, which needs no gradient, per 1000 densities. The settings are plain ones without
preconditioning, the same rule for all targets, so these numbers compare dimensions and shapes,
not tuned methods. `interacting` is the first of two particles that jump to fresh partners by
accept-reject, with MALA between jumps. Chains: {chains}, from 100 weights on {few}.

Targets: N(0, I) and a correlated Gaussian in 2, 20 and 200 dimensions (widths over a range of
about 10); a banana; two modes of unequal weight; Bayesian linear regression in closed form;
Bayesian logistic regression by quadrature; a network's weights and log precisions under their
hierarchical prior, a funnel.
"""

LAWS = """
## Unadjusted kernels: exact law of the discretised chain

On a Gaussian these kernels are linear recursions, and their stationary law follows from a
Lyapunov equation, step size, friction, minibatch noise (`sgld`) and cycles included. Started in
that law they must stay in it; what is frozen is the preconditioner. Worst deviation in standard
errors.
"""

BIASES = """
## Unadjusted kernels: bias

What no law is known for is reported, not judged: chains start in exact draws of the *target* and
take 100 to 300 steps; shown is by how many percent the mean square of the whitened weights is too
large, with its standard error. It is the price of leaving the Metropolis test out at these step
sizes (`ula`: .2 times the smallest variance; `sghmc` and `mclmc`: .3 times the smallest width).

"Adapting" is a kernel whose preconditioner still follows the chain; the scale-adapted one is meant
to be like that in burn-in only. "Diverged": the mean square is more than ten times too large.
"""

PLANTED = """
## Planted errors

A test that cannot fail shows nothing. Each line is a kernel with a mistake, on the 20-dimensional
standard Gaussian (or the funnel) with {planted} chains: worst deviation without and with it. It
must be below 4.5 and above 8.
"""

SLOPES = """
## Orders of accuracy

log2 of the ratio of an error at steps h and h/2, with its standard error, on N(0, I) in 20
dimensions. Trajectories have a fixed length; a finite step may add up to .3 to the theory's
limit.
"""


def page(found: dict[str, Any]) -> str:
    """The results that `python -m truth` keeps, in Markdown."""
    table = from_json(found)
    faults = table.faults()
    verdict = f"**{len(faults)} faults.**" if faults else "**All cells pass.**"
    head = HEAD.format(
        verdict=verdict,
        coordinates=20,
        long=FULL.num_long_chains,
        chains=FULL.num_chains,
        few=FULL.chains(200),
    )
    parts = [
        head,
        "\n## Exact kernels\n",
        *grids(table.exact, exact_text),
        LAWS,
        *grids(table.laws, lambda cell: f"{cell.worst:.1f}"),
        BIASES,
        *grids(table.biases, bias_text),
        PLANTED.format(planted=NUM_CHAINS),
        markdown(
            ["kernel", "mistake", "without", "with"],
            [[p.kernel, p.error, f"{p.right:.1f}", f"{p.wrong:.0f}"] for p in table.planted],
        ),
        SLOPES,
        markdown(
            ["kernel", "error", "theory", "measured"],
            [
                [s.kernel, s.quantity, f"{s.theory:g}", f"{s.measured:.2f} ± {s.error:.2f}"]
                for s in table.slopes
            ],
        ),
        footer(found),
    ]
    return "\n".join(parts)


def exact_text(cell: Cell) -> str:
    """A cell of the first table."""
    if np.isnan(cell.efficiency):
        return f"{cell.worst:.1f} · –"
    return f"{cell.worst:.1f} · {1000 * cell.efficiency:.3g}"


def bias_text(bias: Bias) -> str:
    """A bias in percent, if there is a law to have one."""
    if not bias.excess < DIVERGED:
        return "diverged"
    return f"{100 * bias.excess:+.1f} ± {100 * bias.error:.1f}"


def grids(cells: list[Any], text: Any, width: int = 6) -> list[str]:
    """Kernels down, targets across, at most `width` targets side by side."""
    targets = list(dict.fromkeys(cell.target for cell in cells))
    found = {(cell.kernel, cell.target): text(cell) for cell in cells}
    result = []
    for start in range(0, len(targets), width):
        across = targets[start : start + width]
        names = dict.fromkeys(cell.kernel for cell in cells if cell.target in across)
        rows = [[name, *(found.get((name, target), "") for target in across)] for name in names]
        result.append(markdown(["kernel", *across], rows))
    return result


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def about(*, seconds: float, cores: int, date: str) -> dict[str, Any]:
    """Tell when, where and with what the table was made."""
    names = ("credence", "jax", "blackjax", "arviz-stats", "numpy", "scipy")
    versions = {name: version(name) for name in names}
    return {"date": date, "versions": versions, "seconds": round(seconds), "cores": cores}


def footer(found: dict[str, Any]) -> str:
    """The page's last line: the date, versions, and how long it took."""
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    return (
        f"\n{found['date']}; {versions}; double precision, fixed seeds, "
        f"{found['seconds']} s on {found['cores']} cores.\n"
    )
