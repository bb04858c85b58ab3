"""Fit a table into a RUN folder, or finish a run that was stopped.

What computes is imported by the functions that need it, so that bad input is refused at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from credence.datasets.catalogue.registry import DATASETS
from credence.datasets.catalogue.registry import load as load_dataset
from credence.datasets.catalogue.specs import DatasetSpec
from credence.datasets.checks import CheckedTable, check_table, require_column
from credence.datasets.columns import where
from credence.datasets.tables import read_table
from credence.errors import InputError, StorageError, plural, time_limit
from credence.preprocessing import make_preprocessor
from credence.runs.finishing import Fitted, Rows, finish
from credence.runs.folder import (
    FitSettings,
    Manifest,
    claim,
    read_manifest,
    release,
    require_free,
    require_same_table,
    table_fingerprint,
)
from credence.runs.stopwatch import Stopwatch
from credence.storage import locked

if TYPE_CHECKING:
    from credence.methods import Algorithm

OWN_SPLIT = "The data set's own split is used; --seed does not change which rows are held back."
SHORT_SECONDS = 60.0
"""A budget below this may be exceeded by what is never cut short: about half a minute on two free
cores, twice that on busy ones."""

FEWEST_GROUPS = 4
"""Groups of training rows from which on they can be left out by turns."""


def fit(
    settings: FitSettings,
    folder: Path,
    *,
    progress: bool = False,
    watch: Stopwatch | None = None,
    tell: Callable[[list[str]], None] = lambda notes: None,
) -> Fitted:
    """Check everything, then fit into a new RUN folder.

    Args:
        watch: counts the time; by default from here on.
        tell: gets notes on the table and the time budget before anything expensive starts.
    Raises:
        InputError: for a table, target, setting or folder that cannot be used; nothing is written.
        StorageError: where another process fits there, or the folder cannot be written; `resume`
            goes on once it can.
        Interrupted: on Ctrl-C before there was a draw; `resume` goes on.
    """
    watch = watch or Stopwatch()
    check_ranges(settings)  # and the folder, before a large table is read
    require_free(folder)
    frame, table = read(settings)
    check_settings(settings, table.task)
    settings = replace(settings, max_seconds=time_limit(settings.max_seconds))
    rows = split(settings, frame, table)
    check_held_out(rows)
    from credence.ensembles.provenance import package_versions

    tell([*rows.table.notes, *_notes_on_time(settings)])
    with locked(folder):
        place = str(Path(settings.table).absolute()) if Path(settings.table).is_file() else ""
        fingerprint = table_fingerprint(frame)
        claim(folder, Manifest(settings, fingerprint, package_versions(), table_path=place))
        try:
            return finish(folder, settings, method_of(settings), rows, progress, watch)
        except InputError:
            if "fit" not in watch.laps:  # otherwise `resume` has the networks
                release(folder)
            raise


def resume(
    folder: Path,
    *,
    max_seconds: float | None = None,
    progress: bool = False,
    watch: Stopwatch | None = None,
) -> Fitted:
    """Go on with a run where it stopped; a finished one is only read.

    Args:
        max_seconds: of the whole run, what it took before included; by default what it was given.
        watch: counts the time; by default from here on.
    Raises:
        InputError: where the folder is not a run.
        StorageError: where its table has changed, or another process fits there.
    """
    watch = watch or Stopwatch()
    check_seed_and_time(0, max_seconds)
    if read_manifest(folder).status == "done":
        return _finished(folder)
    with locked(folder):
        manifest = read_manifest(folder)
        if manifest.status == "done":
            return _finished(folder)
        settings = manifest.located
        frame, table = read(settings)
        require_same_table(manifest, table_fingerprint(frame))
        check_settings(settings, table.task)
        settings = replace(settings, max_seconds=time_limit(max_seconds or settings.max_seconds))
        rows = split(settings, frame, table)
        return finish(folder, settings, method_of(settings), rows, progress, watch)


def _notes_on_time(settings: FitSettings) -> list[str]:
    """A note on a budget that is likely to be exceeded."""
    if settings.max_seconds is None or settings.max_seconds >= SHORT_SECONDS:
        return []
    return [
        f"A budget of {settings.max_seconds:g} s is short. Training and sampling get what is left "
        "of it after some is kept to judge the result; starting, compiling and judging are never "
        "cut short, and may take half a minute to a minute by themselves."
    ]


def _finished(folder: Path) -> Fitted:
    """Read what a run that is done has left.

    Raises:
        InputError: where a file is missing.
        StorageError: where one is damaged, or has changed.
    """
    from credence.runs.page import read_record

    record = read_record(folder)
    metrics = record.metrics
    if "verdict" not in metrics or "verdict_reasons" not in metrics:
        raise StorageError(f"{folder / 'metrics.json'} has no verdict: fit again in a new folder.")
    return Fitted(folder, dict(metrics), record.evaluation["notes"], record.findings)


def known_spec(settings: FitSettings) -> DatasetSpec | None:
    """The named data set that the table is, if it is one; a file of that name comes first."""
    return None if Path(settings.table).is_file() else DATASETS.get(settings.table)


def read(settings: FitSettings) -> tuple[pd.DataFrame, CheckedTable]:
    """The table as it is, and checked; a known data set brings its own task.

    Raises:
        InputError: for a table that cannot be used.
    """
    frame = read_table(settings.table, settings.categorical)
    spec, task = known_spec(settings), settings.task
    for column in settings.drop:
        require_column(frame, column)
        if column == settings.target:
            raise InputError(f"'{column}' is the target, and cannot be left out: --drop another.")
    frame = frame.drop(columns=list(settings.drop))
    if task == "auto" and spec is not None and settings.target == spec.target:
        task = spec.task
    group = settings.group
    seen = frame if group is None else without_groups(frame, group, settings.target)
    return frame, check_table(seen, settings.target, task, categorical=settings.categorical)


def without_groups(frame: pd.DataFrame, group: str, target: str) -> pd.DataFrame:
    """The table without the column of groups.

    Raises:
        InputError: where it is not there, is the target, or lacks a group.
    """
    require_column(frame, group)
    if group == target:
        raise InputError(f"'{group}' is the target, and cannot be the --group.")
    missing = frame[group].isna()
    if missing.any():
        raise InputError(
            f"The column '{group}' lacks the group of {plural(int(missing.sum()), 'row')}, the "
            f"first in {where(frame[group], int(missing.to_numpy().argmax()))}: give every row "
            "one, or leave --group out."
        )
    return frame.drop(columns=group)


def check_settings(settings: FitSettings, task: str) -> None:
    """Refuse bad settings before anything is compiled.

    Args:
        task: whose likelihoods are known; "auto" knows them all.
    Raises:
        InputError: with the setting's name.
    """
    from credence import methods
    from credence.estimators.checks import named
    from credence.models import LIKELIHOODS, MLP, PRIORS

    known = {
        "regression": LIKELIHOODS,
        "classification": ("categorical",),
        "auto": (*LIKELIHOODS, "bernoulli", "categorical"),
    }
    named("likelihood", settings.likelihood, dict.fromkeys(("auto", *known[task])))
    if settings.prior != "auto":
        named("prior", settings.prior, PRIORS)
    _check_file_name(settings.table)
    methods.check_name(settings.method)
    MLP(1, settings.hidden or (), settings.activation)
    method_of(settings)
    check_ranges(settings)


def check_ranges(settings: FitSettings) -> None:
    """Refuse settings that are out of range, without knowing the table or any method.

    Raises:
        InputError: with the setting's name.
    """
    check_seed_and_time(settings.seed, settings.max_seconds)
    for name in ("num_draws", "num_chains"):
        count = getattr(settings, name)
        if count is not None and count < 1:
            raise InputError(f"--{name.replace('_', '-')} must be >= 1, got {count}.")
    if not 0 < settings.test_fraction < 1:
        raise InputError(
            f"--test-fraction must be between 0 and 1, got {settings.test_fraction}; 0.2 is usual."
        )


def _check_file_name(table: str) -> None:
    """Refuse a name that no document can hold: the run would be fitted, and never be opened."""
    try:
        table.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"The name of the table, {table!a}, is not in UTF-8: rename the file."
        ) from error


def check_seed_and_time(seed: int, max_seconds: float | None) -> None:
    """Refuse a seed or a time budget out of range."""
    if not 0 <= seed < 2**32:
        raise InputError(f"--seed must be between 0 and {2**32 - 1}, got {seed}.")
    if max_seconds is not None and not max_seconds > 0:
        raise InputError(f"--max-seconds must be > 0, got {max_seconds}.")


def split(settings: FitSettings, whole: pd.DataFrame, table: CheckedTable) -> Rows:
    """Training and held-out rows: a known data set's own split, else at random by the seed.

    Args:
        whole: the table with its column of groups, if it has one.
        table: its rows and columns as networks see them.
    Raises:
        InputError: where too few rows remain to learn from, a label only occurs in the test, or a
            fraction or groups are asked for where there is a split.
    """
    frame, spec = table.frame, known_spec(settings)
    dataset = None if spec is None else load_dataset(spec.name)
    if dataset is not None and dataset.train is not None and dataset.test is not None:
        for option in ("test_fraction", "group"):
            if getattr(settings, option) != getattr(FitSettings, option):
                raise InputError(
                    f"'{settings.table}' has a split of its own, which "
                    f"--{option.replace('_', '-')} cannot change: leave it out, or save the table "
                    "as a file of another name."
                )
        parts = (frame.index.intersection(rows) for rows in (dataset.train, dataset.test))
        train, test = (frame.loc[rows] for rows in parts)
        rows = Rows(replace(table, notes=[*table.notes, OWN_SPLIT]), train, test, True)
    elif settings.group is not None:
        rows = split_by_groups(settings, table, whole.loc[frame.index, settings.group])
    else:
        rows = Rows(table, *random_split(settings, table))
    if table.task == "classification":
        _refuse_unseen(rows)
    return rows


def _refuse_unseen(rows: Rows) -> None:
    """Refuse a label that only occurs in the test."""
    target = rows.table.target
    unseen = set(rows.test[target]) - set(rows.train[target])
    if unseen:
        or_else = (
            "" if rows.has_own_split else ", or give a smaller --test-fraction or another --seed"
        )
        raise InputError(
            f"The label '{min(map(str, unseen))}' is so rare that all its rows were held out: "
            f"merge rare labels{or_else}."
        )


def check_held_out(rows: Rows) -> None:
    """Refuse held-out rows before the fit that would be refused after it.

    Raises:
        InputError: where the network can take none of the numbers, or not those of a held-out row.
    """
    inputs = rows.train.drop(columns=rows.table.target)
    for name in inputs:
        if inputs[name].isna().all() and rows.test[name].notna().any():
            raise InputError(
                f"The column '{name}' has no values in the training rows, only in held-out ones: "
                f"leave it out (--drop '{name}'), or take another --seed."
            )
    make_preprocessor(inputs).transform(rows.test)


def random_split(settings: FitSettings, table: CheckedTable) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and held-out rows at random by the seed, labels in proportion where that can be.

    Raises:
        InputError: where too few rows remain to learn from.
    """
    from sklearn.model_selection import train_test_split

    frame = table.frame
    num_test = max(1, round(settings.test_fraction * len(frame)))
    strata = None
    if table.task == "classification":
        labels = frame[table.target]
        counts = labels.value_counts()
        counts = counts[counts > 0]  # declared categories that do not occur
        if counts.min() >= 2 and len(counts) <= num_test <= len(frame) - len(counts):
            strata = labels
    if len(frame) - num_test < 2:
        raise InputError(
            f"Holding {num_test} of {len(frame)} rows back for testing leaves too few to learn "
            "from: give a table with more rows, or a smaller --test-fraction."
        )
    return train_test_split(frame, test_size=num_test, random_state=settings.seed, stratify=strata)


def split_by_groups(settings: FitSettings, table: CheckedTable, groups: pd.Series) -> Rows:
    """Training and held-out rows, no group in both, at random by the seed.

    Args:
        groups: of the rows of the table.
    Raises:
        InputError: where too few groups remain to learn from.
    """
    from sklearn.model_selection import GroupShuffleSplit

    num_groups = groups.nunique()
    num_test = max(1, round(settings.test_fraction * num_groups))
    if num_groups - num_test < FEWEST_GROUPS:
        raise InputError(
            f"The column '{settings.group}' has {plural(num_groups, 'group')}, and holding "
            f"{num_test} back for testing leaves fewer than {FEWEST_GROUPS} to learn from: leave "
            "--group out, or give a table with more groups."
        )
    divide = GroupShuffleSplit(1, test_size=num_test, random_state=settings.seed)
    train, test = next(divide.split(table.frame, groups=groups))
    note = (
        f"Whole groups of '{settings.group}' are held back: {num_test:,} of {num_groups:,}, with "
        f"{plural(len(test), 'row')}."
    )
    return Rows(
        replace(table, notes=[*table.notes, note]),
        table.frame.iloc[train],
        table.frame.iloc[test],
        groups=pd.Series(pd.factorize(groups)[0], groups.index),
    )


def method_of(settings: FitSettings) -> str | Algorithm:
    """The method by its name, or as an object where it has settings of its own.

    Raises:
        InputError: for settings of no named method, or such as the method does not have.
    """
    from credence.methods import METHODS, check_name
    from credence.methods.settings import with_settings

    texts = list(settings.method_settings)
    if settings.method == "auto":
        if texts:
            raise InputError(
                f"--set {texts[0]} is a setting of a method, but --method auto chooses among "
                "several: name one with --method NAME; `credence methods` lists them."
            )
        return "auto"
    kind = METHODS[check_name(settings.method)]
    usual = kind.given(num_draws=settings.num_draws, num_chains=settings.num_chains)
    return with_settings(kind, texts, **usual) if texts else settings.method
