"""The whole table: what is run, and whether it passes."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
from tools.laws import (
    cyclical_chain,
    frozen_adapted_chain,
    frozen_rms_chain,
    sghmc_chain,
    sgld_chain,
    ula_chain,
)
from tools.targets import correlated, gaussian_log_density, standard

from .cells import Bias, Cell, Size, bias_cell, exact_cell, law_cell
from .planted import Planted, is_caught, planted_jobs
from .rows import EXACT, UNADJUSTED, Row
from .slopes import FINITE_STEP, Slope, slope_jobs
from .targets import gaussians, others

LAWS: list[Callable[..., Any]] = [
    ula_chain,
    sgld_chain,
    frozen_rms_chain,
    sghmc_chain,
    frozen_adapted_chain,
    cyclical_chain,
]
"""Unadjusted kernels whose stationary law on a Gaussian is known."""
BIASED = ("standard-20", "correlated-20", "banana", "mixture", "linear", "logistic")
"""Targets on which the bias of unadjusted kernels is reported."""
PASS = 4.5
"""Largest score of a right kernel, in standard errors."""


class Table(NamedTuple):
    """All results, in the order of the rows."""

    exact: list[Cell]
    laws: list[Cell]
    biases: list[Bias]
    planted: list[Planted]
    slopes: list[Slope]

    def faults(self) -> list[Any]:
        """What should not be: empty if all is well."""
        wrong: list[Any] = [cell for cell in self.exact + self.laws if not cell.worst < PASS]
        wrong += [cell for cell in self.exact if not abs(cell.memory) < 0.9]
        wrong += [planted for planted in self.planted if not is_caught(planted)]
        return wrong + [slope for slope in self.slopes if not is_as_in_theory(slope)]


def to_json(table: Table) -> dict[str, list[dict[str, Any]]]:
    """The table as JSON data, numbers with six digits, NaN as None."""
    return {
        name: [{key: short(value) for key, value in row._asdict().items()} for row in rows]
        for name, rows in table._asdict().items()
    }


def short(value: Any) -> Any:
    """A number with six digits, None for NaN; what is no number as it is."""
    if isinstance(value, str):
        return value
    return None if math.isnan(value) else float(f"{value:.6g}")


def from_json(found: dict[str, Any]) -> Table:
    """The table that `to_json` made JSON data of."""
    return Table(
        *(
            [make(**{key: numbers(value) for key, value in row.items()}) for row in found[name]]
            for name, make in zip(Table._fields, (Cell, Cell, Bias, Planted, Slope), strict=True)
        )
    )


def numbers(value: Any) -> Any:
    """NaN for None."""
    return math.nan if value is None else value


def is_as_in_theory(slope: Slope) -> bool:
    """Whether a slope is within 4.5 standard errors and what a finite step may add."""
    return abs(slope.measured - slope.theory) < FINITE_STEP + PASS * slope.error


def jobs(
    size: Size, rows: list[Row], laws: list[Callable[..., Any]]
) -> list[list[Callable[[], Any]]]:
    """What is to be run for each field of `Table`, for some kernels or, with `EXACT`, all."""
    is_all = rows is EXACT
    targets = gaussians() + others()
    shapes = [(standard, {}), (correlated, {"correlation": 0.5})]
    exact = [
        partial(exact_cell, row, target, size)
        for row in rows
        for target in targets
        if row.only in ("", target.name)
    ]
    of_laws = [
        partial(law_cell, make, shape(dimension, **settings), size)
        for make in laws
        for dimension in (2, 20, 200)
        for shape, settings in shapes
    ]
    biases = [
        partial(bias_cell, row, target, size)
        for row in UNADJUSTED
        for target in targets
        if target.name in BIASED
        and not (row.counts_rows and target.log_density is gaussian_log_density)
    ]
    return [
        exact,
        of_laws,
        biases if is_all else [],
        planted_jobs(rows, laws),
        slope_jobs(size) if is_all else [],
    ]


def run(
    size: Size,
    *,
    rows: list[Row] = EXACT,
    laws: list[Callable[..., Any]] = LAWS,
    report: Callable[[Any], None] = lambda result: None,
) -> Table:
    """Run the table in double precision, one job after another: XLA itself uses all cores.

    Args:
        rows, laws: the kernels; biases and slopes are run for all of them only.
        report: called with every result as it comes.
    """
    with jax.enable_x64(True):
        return Table(*(list(told(kind, report)) for kind in jobs(size, rows, laws)))


def told(kind: list[Callable[[], Any]], report: Callable[[Any], None]) -> Iterator[Any]:
    """Results of jobs, each reported; jobs share no programs, and all together are too many."""
    for job in kind:
        result = job()
        jax.clear_caches()
        report(result)
        yield result
