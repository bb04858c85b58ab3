"""`credence fit`, `resume`, `predict`, `report`: from a table to a RUN folder and back."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from credence.cli import aliases, messages, options
from credence.errors import InputError, Interrupted
from credence.runs.stopwatch import Stopwatch

app = typer.Typer()


@app.command(epilog="Example: credence fit houses.csv --target price --out houses-run")
def fit(
    table: options.TableName,
    target: options.Target = "",
    task: options.Task = "auto",
    categorical: options.Categorical = None,
    drop: options.Drop = None,
    group: options.Group = None,
    method: Annotated[str, typer.Option(help="auto or a name `credence methods` lists.")] = "auto",
    method_settings: options.MethodSettings = None,
    hidden: options.Hidden = "auto",
    old_width: aliases.Width = None,
    old_depth: aliases.Depth = None,
    activation: options.Activation = "tanh",
    prior: options.Prior = "auto",
    likelihood: options.Likelihood = "auto",
    num_draws: options.NumDraws = None,
    num_chains: options.NumChains = None,
    test_fraction: options.TestFraction = 0.2,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            help="Time budget of the command. It ends training and sampling in time to judge the "
            "result; starting, compiling and judging are not cut short, and may exceed it."
        ),
    ] = None,
    seed: options.Seed = 0,
    out: Annotated[Path, typer.Option(help="Folder to write; it must be new.")] = Path(
        "credence-run"
    ),
    as_json: options.Json = False,
) -> None:
    """Fit a table: predictions with intervals, a verdict on them, and a report."""
    watch = Stopwatch()
    from credence.runs import workflow
    from credence.runs.folder import FitSettings

    widths, told = aliases.applied(
        old_width, old_depth, method, options.widths(hidden), method_settings or []
    )
    settings = FitSettings(
        table=table,
        target=options.target_of(table, target),
        task=task,
        categorical=tuple(categorical or ()),
        drop=tuple(drop or ()),
        group=group,
        method=method,
        method_settings=told,
        hidden=widths,
        activation=activation,
        prior=prior,
        likelihood=likelihood,
        num_draws=num_draws,
        num_chains=num_chains,
        test_fraction=test_fraction,
        max_seconds=max_seconds,
        seed=seed,
    )
    prepare()
    watch.lap("start")
    with _going_on(out):
        finished = workflow.fit(
            settings, out, progress=not as_json, watch=watch, tell=messages.notes
        )
    _conclude(finished, as_json)


@app.command(epilog="Example: credence resume houses-run")
def resume(
    run: options.Run,
    max_seconds: Annotated[
        float | None, typer.Option(help="Of the whole run, what it took before included.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Go on where a killed or interrupted run stopped."""
    watch = Stopwatch()
    from credence.runs import workflow

    prepare()
    watch.lap("start")
    settings = {"max_seconds": max_seconds, "progress": not as_json, "watch": watch}
    with _going_on(run):
        finished = workflow.resume(run, **settings)
    messages.notes(finished.notes)
    _conclude(finished, as_json)


@app.command(
    epilog="Example: credence predict houses-run new.csv --id address --coverage 0.9 --out p.csv"
)
def predict(
    run: options.Run,
    table: options.TableName,
    coverage: Annotated[float, typer.Option(help="Probability that the interval holds.")] = 0.95,
    id_column: Annotated[
        str,
        typer.Option(
            "--id",
            help="Column of TABLE to copy; without it a column `row` counts the rows from 1.",
        ),
    ] = "",
    out: Annotated[Path, typer.Option(help="CSV file to write; - is standard output.")] = Path(
        "predictions.csv"
    ),
    as_json: options.Json = False,
) -> None:
    """Predict new rows: mean, std and interval, or probabilities and entropies.

    The columns of the interval say its coverage: lower_95 and upper_95. Numbers have seven digits,
    and more where a narrow spread needs them.

    Text that starts with =, +, -, @, a tab or a line break gets a ' in front,
    so that no spreadsheet runs it as a formula; numbers stay numbers.
    """
    from credence.runs import prediction
    from credence.runs.export import csv_text, rounded
    from credence.storage import file_to_write, require_writable, write_text

    stream = messages.standard_stream(out)
    if stream is None:
        file_to_write(out)
    elif stream is sys.stdout and as_json:
        raise InputError("--json and the predictions cannot share standard output: name a file.")
    prepare()
    if stream is None and out.exists() and Path(table).exists() and out.samefile(table):
        raise InputError(f"--out {out} is the table itself: choose another file.")
    replaced = " (replaced)" if stream is None and out.exists() else ""
    if stream is None:
        require_writable(out)
    predictions, notes = prediction.predict(run, table, coverage=coverage, id_column=id_column)
    text = csv_text(rounded(predictions))
    if stream is None:
        write_text(out, text)
    else:
        stream.write(text)
    messages.notes(notes)
    place = out if stream is None else "standard output"
    messages.say("Wrote {} predictions to [bold]{}[/bold]{}.", len(predictions), place, replaced)
    if as_json:
        print(json.dumps({"rows": len(predictions), "out": str(out), "notes": notes}))


@app.command(epilog="Example: credence report houses-run")
def report(run: options.Run, as_json: options.Json = False) -> None:
    """Write RUN/report.html, one self-contained file."""
    from credence.runs.page import write_page

    path = write_page(run)
    messages.say("Wrote [bold]{}[/bold].", path)
    if as_json:
        print(json.dumps({"report": str(path)}))


def prepare() -> None:
    """Set JAX up, once, before it computes anything; what to compute was asked for already."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    from credence.environment import configure

    warnings.simplefilter("ignore", ConvergenceWarning)  # `_conclude` says it
    warnings.showwarning = messages.warn
    configure()


@contextmanager
def _going_on(folder: Path) -> Iterator[None]:
    """Tell who interrupts a run the command that goes on with it."""
    try:
        yield
    except Interrupted as stopped:
        raise type(stopped)(f"{stopped} The command is `credence resume {folder}`.") from None


def _conclude(fitted: Any, as_json: bool) -> None:
    """Show a finished run and end with its status."""
    metrics = fitted.metrics
    messages.summary(metrics, (s for found in fitted.findings for s in found.sentences()))
    messages.say("Report: [bold]{}[/bold]", fitted.folder / "report.html")
    if metrics["stopped"] == "interrupt":
        messages.say("`credence resume {}` draws the rest.", fitted.folder)
    messages.finish(metrics | {"run": str(fitted.folder)}, as_json)
