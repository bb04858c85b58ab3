"""`credence compare`: any methods on any table, as an experiment of one problem."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from credence.compare.earlier import COMPARISON
from credence.compare.readers import fit_settings
from credence.compare.sources import TableSource
from credence.compare.specs import Experiment, MethodSpec, ModelSpec, Problem
from credence.errors import InputError
from credence.runs.workflow import check_settings
from credence.storage import file_sha256

if TYPE_CHECKING:
    from credence.methods.algorithm import Algorithm


def compare(
    table: str,
    target: str,
    methods: Sequence[str],
    *,
    baseline: str = "",
    num_draws: int = 1000,
    num_chains: int | None = None,
    method_settings: Sequence[str] = (),
    model: ModelSpec | None = None,
    **source: Any,
) -> Experiment:
    """The comparison as an experiment, all settings checked.

    Args:
        table, target: a CSV or Parquet file or a named table, and the column to predict.
        methods: names as `credence methods` lists them.
        baseline: what speed-ups are relative to; by default the first method that is a chain.
        num_draws, num_chains: for every method that has the setting; None leaves its own.
        method_settings: NAME=VALUE for every method that has the setting, METHOD.NAME=VALUE for
            one; see `credence.methods.settings.shared_out`.
        model: network, prior, likelihood.
        source: further arguments of `TableSource`: task, test_fraction, ...
    Raises:
        InputError: for no method, an unknown one, a setting out of range or one that no method has.
    """
    from credence.methods import METHODS, check_name, default_prior
    from credence.methods.settings import shared_out

    model = model or ModelSpec()
    data = TableSource(table=table, target=target, **source)
    if not methods:
        raise InputError(f"--methods names no method: give some of {', '.join(METHODS)}.")
    wanted = {"num_draws": num_draws, "num_chains": num_chains}
    shared = {
        name: value
        for name, value in asdict(model).items()
        if name not in ("network", "prior_settings", "dtype")
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
    own = shared_out({name: METHODS[name] for name in methods}, method_settings)
    rows = tuple(
        MethodSpec(label=name, method=name, settings=_settings(METHODS[name], own[name], wanted))
        for name in methods
    )
    chains = [name for name in methods if METHODS[name].is_chain]
    return Experiment(
        name=COMPARISON,
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


def _settings(
    method: "type[Algorithm]", texts: Sequence[str], wanted: dict[str, Any]
) -> dict[str, Any]:
    """The settings of one method that somebody asked for, as JSON has them."""
    from credence.methods.settings import with_settings

    usual = method.known(**wanted)
    if not texts:
        return usual
    asked = {*usual, *(text.partition("=")[0].partition(".")[0] for text in texts)}
    values = asdict(with_settings(method, texts, **usual))
    return json.loads(json.dumps({name: values[name] for name in values if name in asked}))
