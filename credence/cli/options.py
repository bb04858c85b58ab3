"""Arguments and options that several commands take, and how their text is read."""

from pathlib import Path
from typing import Annotated

import typer

from credence.errors import InputError, quoted

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that `credence fit` wrote.")]
TableName = Annotated[
    str, typer.Argument(metavar="TABLE", help="A CSV or Parquet file, or the name of a data set.")
]

Target = Annotated[str, typer.Option(help="Column to predict; a known data set has its own.")]
Task = Annotated[str, typer.Option(help="auto, regression or classification.")]
Categorical = Annotated[
    list[str] | None, typer.Option(help="A column whose numbers are names; may be repeated.")
]
Drop = Annotated[list[str] | None, typer.Option(help="A column to leave out; may be repeated.")]
Group = Annotated[
    str | None,
    typer.Option(
        help="Column that says which rows belong together, such as those of a patient: whole "
        "groups are held back. It is no input."
    ),
]
Hidden = Annotated[
    str,
    typer.Option(
        help="Widths of the hidden layers, e.g. 50 or 50,50; auto lets the method choose."
    ),
]
Activation = Annotated[str, typer.Option(help="Activation of the hidden layers.")]
Prior = Annotated[
    str,
    typer.Option(
        help="Prior of the weights: auto, fan_in, unit, trace_class, hierarchical or relevance."
    ),
]
Likelihood = Annotated[
    str, typer.Option(help="Noise: auto, normal, student_t, heteroscedastic or heteroscedastic_t.")
]
MethodSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A setting of the method, as `credence methods NAME` lists them; may be repeated.",
    ),
]
ComparedSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="[METHOD.]NAME=VALUE",
        help="A setting of one method, or of all that have it; may be repeated.",
    ),
]
NumDraws = Annotated[
    int | None, typer.Option(help="Draws per chain; by default 1000 with most methods.")
]
NumChains = Annotated[
    int | None,
    typer.Option(help="Independent chains, runs or particles; by default 4 with most methods."),
]
TestFraction = Annotated[float, typer.Option(help="Share of rows held out for testing.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Seeds = Annotated[
    int | None,
    typer.Option(help="Repetitions with seeds that follow; by default the experiment's own."),
]

Jobs = Annotated[int, typer.Option(help="Cells at a time; 1 gives comparable times.")]
Backend = Annotated[str, typer.Option(help="Of joblib: loky, or dask or ray on a cluster.")]
CellSeconds = Annotated[
    float | None, typer.Option(help="Time budget of every method; scoring comes on top.")
]
ExperimentOut = Annotated[
    Path, typer.Option(help="Folder to write; that of the same command goes on.")
]

Json = Annotated[
    bool, typer.Option("--json", help="Also print a JSON summary, on standard output.")
]


def widths(hidden: str) -> tuple[int, ...] | None:
    """'50,50' to (50, 50); '' or '0' is a linear model, 'auto' is None."""
    if hidden.strip() == "auto":
        return None
    try:
        found = tuple(int(part) for part in hidden.split(",") if part.strip())
    except ValueError:
        raise InputError(
            f"--hidden takes whole numbers separated by commas, got {hidden!r}; try 50 or 50,50."
        ) from None
    return () if found == (0,) else found


def words(text: str) -> tuple[str, ...]:
    """'a, b' to ('a', 'b')."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def target_of(table: str, target: str) -> str:
    """The target asked for, or that of a known data set.

    Raises:
        InputError: where there is neither; the sentence names the columns, or says that there is no
            such table. Also where the data set is no table.
    """
    from credence.datasets.catalogue.registry import DATASETS

    spec = None if target or Path(table).exists() else DATASETS.get(table)
    if spec is not None and spec.layout != "table":
        raise InputError(
            f"'{table}' is a data set of {spec.layout}, not a table: in Python take "
            f"datasets.load('{table}') and a Posterior; `credence experiment list` has experiments "
            "on it."
        )
    found = target or (spec and spec.target)
    if not found:
        from credence.datasets.tables import read_table

        raise InputError(
            "Which column is to be predicted? Say --target COLUMN, one of "
            f"{quoted(read_table(table).columns)}."
        )
    return found
