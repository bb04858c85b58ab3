"""Figure 1 of the FBNN paper: SGHMC and pCN on 25 Gaussians, beside exact draws.

    python docs/make/gaussians.py     # runs the chains, seconds, into results/gaussians

The paper draws 200,000 times with each and gives no settings: it says that SGHMC explores, and that
pCN "hones in" on the modes. Ours are 25 Gaussians of standard deviation .4, 2 apart, which the
nonlinear paper has, too; one chain each, from the origin. SGHMC runs with two step sizes, since its
draws follow the density only as the step vanishes; pCN is exact with any step, its reference is
N(0, 3^2).
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
from kept import keep_rows, kept_rows, reads_dirty
from parts import markdown, panels, write_figure
from rows import commit

from credence.html.markup import Html
from credence.html.svg import ACCENT, INK, to_svg

NAME = "gaussians"
NUM_DRAWS, NUM_SHOWN = 200_000, 700
SAMPLERS = {
    "exact": "exact draws",
    "sghmc_wide": "SGHMC, step .5",
    "sghmc_narrow": "SGHMC, step .1",
    "pcn": "pCN, step .3",
}
SGHMC_STEPS = {"sghmc_wide": 0.5, "sghmc_narrow": 0.1}
READING = "700 of 200,000 draws, evenly spaced in time."


def drawn(name: str) -> np.ndarray:
    """The draws of a sampler (draw, 2)."""
    import jax
    import jax.numpy as jnp

    from credence import kernels
    from credence_papers.nonlinear.plane_densities import grid

    density = grid()
    if name == "exact":
        return density.sample(0, NUM_DRAWS)
    start, ones = jnp.zeros(2), jnp.ones(2)
    if name == "pcn":
        kernel = kernels.pcn(
            density.log_density, step_size=0.3, reference_mean=start, reference_std=3 * ones
        )
    else:
        kernel = kernels.sghmc(
            density.log_density, step_size=SGHMC_STEPS[name], friction=0.05, inverse_mass=ones
        )
    _, draws = kernels.sample(jax.random.key(0), kernel, start, density.data, num_draws=NUM_DRAWS)
    return np.asarray(draws)


def measured(name: str) -> dict[str, Any]:
    """How often each mode is visited, and how wide it looks."""
    from credence_papers.nonlinear.plane_densities import grid

    density, begin = grid(), time.perf_counter()
    draws = drawn(name)
    seconds = time.perf_counter() - begin
    centres = np.array(density.centres)
    nearest = np.argmin(np.sum((draws[:, None] - centres) ** 2, axis=-1), axis=1)
    visits = np.bincount(nearest, minlength=len(centres))
    spread = np.sqrt(np.mean((draws - centres[nearest]) ** 2))
    return {
        "sampler": name,
        "seed": 0,
        "num_draws": NUM_DRAWS,
        "num_jumps": int(np.sum(nearest[1:] != nearest[:-1])),
        "visits": visits.tolist(),
        "spread": float(spread),
        "seconds": seconds,
        "points": np.round(draws[:: NUM_DRAWS // NUM_SHOWN][:NUM_SHOWN], 2).tolist(),
        "commit": commit(is_needed=True),
    }


def table() -> str:
    """Write a line for each sampler."""
    heads = (
        "sampler",
        "modes seen",
        "draws in the rarest and the commonest (right: 8,000)",
        "jumps",
        "spread in a mode",
    )
    rows = kept_rows(NAME)
    return markdown(heads, [cells(row) for row in rows])


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Tell what one sampler drew."""
    visits = np.array(row["visits"])
    return (
        SAMPLERS[row["sampler"]],
        str(int(np.sum(visits > 0))),
        f"{visits.min():,} ; {visits.max():,}",
        f"{row['num_jumps']:,}",
        f"{row['spread']:.3f}",
    )


def figures(folder: Path) -> None:
    """Draw the chart."""
    if rows := kept_rows(NAME):
        write_figure(folder, "fbnn-gaussians", chart(rows))


def chart(rows: list[dict[str, Any]]) -> Html:
    """Draws of each sampler in a panel of its own."""
    figure, (axes,) = panels(1, len(rows), height=200, sharex=True, sharey=True)
    figure.subplots_adjust(left=0.03, right=0.99, bottom=0.1, top=0.88, wspace=0.06)
    for each, row in zip(axes, rows, strict=True):
        each.plot(*np.transpose(row["points"]), ".", color=ACCENT, markersize=1.6)
        each.set_title(SAMPLERS[row["sampler"]], color=INK, fontsize=9, loc="left")
        each.set(xlim=(-6, 6), ylim=(-6, 6), aspect="equal", xticks=(-4, 0, 4), yticks=(-4, 0, 4))
    return to_svg(figure, "fbnn-gaussians", "Draws from 25 Gaussians by each sampler", READING)


def main() -> None:
    """Run the chains."""
    is_dirty = reads_dirty(__doc__)
    keep_rows(NAME, map(measured, SAMPLERS), is_dirty=is_dirty)
    print(table())


if __name__ == "__main__":
    main()
