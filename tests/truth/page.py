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

A sampler draws points at random. It should draw each one as often as a given probability density
says, its *target*. This page tests whether the kernels below do; SMC, parallel tempering, jumps
between sizes and emulated chains have tests of their own. We start many chains at
correct draws of a target that is known exactly, take some steps, and test whether the draws are
still correct. The number in a cell is the largest deviation, in standard errors: below 4.5 passes.
{verdict} One table has no pass mark, and only reports:
[how far kernels without an accept-or-reject test are off](#unadjusted-kernels-bias).
`make truth` computes the tables, and no number in them is written by hand.

## How to read it

One step of a sampler is a *kernel*, and a sequence of steps is a *chain*
([what each kernel does](../explanation/mathematics.md)). A kernel is right if it leaves the target
*invariant*: a correct draw is still a correct draw after the step. All chains start at independent
correct draws, so their ends should be independent correct draws again, and we know how much these
scatter by chance. Each chain gives one draw, its end. So no draw depends on another one, and the
beginning of a chain need not be thrown away. A cell of the first two tables shows

    worst deviation in standard errors · effective draws per 1000 gradients

A cell is empty where a kernel was not run, and a dash stands where gradients do not count.

**The deviation.** The draws are first *whitened*: changed to coordinates that are independent and
standard normal if the draws are right. These quantities are then compared with their exact values:

- means, variances and covariances of up to {coordinates} coordinates;
- the sum of the squares of all coordinates (chi^2);
- how the first and the last coordinate spread over 20 bins that are equally likely;
- for some targets moments of their own: of the banana, of the logistic regression, and of the
  mixture the share of draws on each side.

The cell has the worst of them. There are so many that the worst is often near 3 by chance, so the
pass mark is 4.5.

**Effective draws** are the number of independent draws that would tell as much (ArviZ's bulk ESS).
They are counted in {long} long chains, and the cell has the smallest number over the coordinates
and their sum of squares. `pcn` needs no gradient: its number is per 1000 densities.

**Names.** `adjusted_mclmc` is the kernel of the method `mclmc`, and `surrogate_hmc` that of
`rns_hmc`: here its paths follow a Gaussian that is a little off. `sgld` is `ula` on minibatches.
`rms_sgld` and `scale_adapted_sghmc` are SGLD and SGHMC with a scale for each weight. `cyclical` has
a step size that falls and starts anew. `gibbs_precisions` draws the precisions of a prior, given
the weights.

**Settings** follow one plain rule for all targets, and no kernel learns the scales of the weights
(no *preconditioning*). So the numbers compare dimensions and shapes, not tuned methods. A leapfrog
is .8 times the smallest width of the target, and a trajectory 1.5 times the largest; the variance
of MALA's step is .8 times the square of the smallest. Beyond 20 dimensions steps shrink as theory
says, with d^-1/4 for leapfrogs and d^-1/3 for MALA.
`interacting` is the first of two particles that jump to fresh partners by accept-reject, with MALA
between jumps. There are {chains} chains, or {few} for targets of 100 weights or more.

**Targets**, by the names of the columns:

- `standard` and `correlated`, in 2, 20 and 200 dimensions: the Gaussian N(0, I), and one with
  correlations, whose widest direction is about ten times as wide as its narrowest;
- `banana`: a curved ridge;
- `mixture`: two separate peaks of unequal weight;
- `linear`: a Bayesian linear regression, whose answer is a formula;
- `logistic`: a Bayesian logistic regression, whose answer is integrated numerically on a fine grid;
- `hierarchical`: the weights of a network, and logarithms of the precisions (1 / variance) that
  its prior gives them. It is a *funnel*: wide where a precision is small, narrow where it is large.
"""

LAWS = """
## Unadjusted kernels: exact law of the discretised chain

These kernels have no test that accepts or rejects a step, so they end in a law that is a little
off the target. On a Gaussian we can compute that law exactly for the step size that is used: the
kernel is a linear recursion, and the law follows from a Lyapunov equation. Friction, minibatch
noise (`sgld`) and cycles are included. Chains that start in that law must stay in it. Two kernels
learn the scales of the weights as they go; "frozen" says that they do not do so here. A cell has
the worst deviation in standard errors.
"""

BIASES = """
## Unadjusted kernels: bias

This table is reported, not judged. Chains start in exact draws of the *target* and take 100 to 300
steps. A cell says by how many percent the mean square of the whitened weights is then too large,
with its standard error. It is the price of leaving out the test that accepts or rejects, at these
step sizes (`ula`: .2 times the smallest variance; `sghmc` and `mclmc`: .3 times the smallest
width).

"Adapting" kernels still learn the scales of the weights. `scale_adapted_sghmc` is meant to do so
only in the warm-up, whose draws are thrown away. "Diverged": the mean square is more than ten times
too large.
"""

PLANTED = """
## Planted errors

A test that cannot fail shows nothing. Each line is a kernel with a mistake, on the 20-dimensional
standard Gaussian (or the funnel) with {planted} chains. The worst deviation must be below 4.5
without the mistake, and above 8 with it.
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
    verdict = f"**{len(faults)} faults.**" if faults else "**All tests pass.**"
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
