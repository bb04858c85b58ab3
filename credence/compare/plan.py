"""`credence compare`: any methods on any table, as an experiment of one problem."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from credence.compare.problem import fit_settings
from credence.compare.sources import TableSource
from credence.compare.specs import Experiment, MethodSpec, ModelSpec, Problem
from credence.errors import InputError
from credence.runs.workflow import check_settings
from credence.storage import file_sha256


def compare(
    table: str,
    target: str,
    methods: Sequence[str],
    *,
    baseline: str = "",
    num_draws: int = 1000,
    num_chains: int | None = None,
    model: ModelSpec | None = None,
    **source: Any,
) -> Experiment:
    """The comparison as an experiment, all settings checked.

    Args:
        table, target: a CSV or Parquet file or a named table, and the column to predict.
        methods: names as `credence methods` lists them.
        baseline: what speed-ups are relative to; by default the first method that is a chain.
        num_draws, num_chains: for every method that has the setting; None leaves its own.
        model: network, prior, likelihood.
        source: further arguments of `TableSource`: task, test_fraction, ...
    Raises:
        InputError: for no method, an unknown one, or a setting out of range.
    """
    from credence.methods import METHODS, check_name, default_prior

    model = model or ModelSpec()
    data = TableSource(table=table, target=target, **source)
    if not methods:
        raise InputError(f"--methods names no method: give some of {', '.join(METHODS)}.")
    wanted = {"num_draws": num_draws, "num_chains": num_chains}
    shared = {
        name: value
        for name, value in asdict(model).items()
        if name not in ("network", "prior_settings")
    }
    for name in methods:
        check_name(name)
    check_settings(fit_settings(data, method="auto", **wanted, **shared), task="auto")
    if model.prior == "auto":
        model = replace(model, prior=default_prior(*methods))
    if "auto" in methods:
        raise InputError(f"'auto' is a choice, not a method: name some of {', '.join(METHODS)}.")
    path = Path(table).expanduser()
    if path.is_file():
        data = replace(data, sha256=file_sha256(path))
    rows = tuple(
        MethodSpec(
            label=name,
            method=name,
            settings=METHODS[name].known(**wanted),
        )
        for name in methods
    )
    chains = [name for name in methods if METHODS[name].is_chain]
    return Experiment(
        name="compare",
        description=f"Methods compared on {path.name}, predicting {target}.",
        problems=(
            Problem(
                name=path.stem or table,
                description=f"'{target}' from the other columns of {path.name}.",
                source=data,
                model=model,
            ),
        ),
        methods=rows,
        baseline=baseline or (chains or list(methods))[0],
    )
