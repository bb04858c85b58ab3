"""The command line: `credence fit`, `predict`, `report`, `resume`, `compare`, `experiment`, ...

People's text goes to standard error; with --json a machine-readable summary alone goes to standard
output. Exit status: 0 done, 2 bad input, 3 done but not converged. Heavy imports happen inside the
commands, so that --help is quick.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

import credence
from credence.errors import CredenceError, InputError, Interrupted

BAD_INPUT = 2
NOT_CONVERGED = 3
INTERRUPTED = 130

app = typer.Typer(
    help="Neural networks with honest uncertainty.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
)
experiment_app = typer.Typer(
    help="The published experiments: list, show and run them.", no_args_is_help=True
)
app.add_typer(experiment_app, name="experiment")
console = Console(stderr=True)

Json = Annotated[
    bool, typer.Option("--json", help="Also print a JSON summary, on standard output.")
]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that `credence fit` wrote.")]
TableArgument = Annotated[
    str, typer.Argument(metavar="TABLE", help="A CSV or Parquet file, or the name of a data set.")
]


def main() -> None:
    """Run the command line; errors a user can mend become a sentence and a status."""
    try:
        app()
    except Interrupted as stopped:
        _say(f"{stopped} `credence resume` with the run's folder goes on.")
        sys.exit(INTERRUPTED)
    except CredenceError as error:
        _complain(error)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        _complain("Stopped.")
        sys.exit(INTERRUPTED)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        print(credence.__version__)
        raise typer.Exit


@app.command(epilog="Example: credence fit houses.csv --target price --out houses-run")
def fit(
    table: TableArgument,
    target: Annotated[
        str, typer.Option(help="Column to predict; a known data set has its own.")
    ] = "",
    task: Annotated[str, typer.Option(help="auto, regression or classification.")] = "auto",
    categorical: Annotated[
        list[str] | None, typer.Option(help="A column whose numbers are names; may be repeated.")
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="A column to leave out; may be repeated.")
    ] = None,
    method: Annotated[str, typer.Option(help="auto or a name `credence methods` lists.")] = "auto",
    hidden: Annotated[
        str, typer.Option(help="Widths of the hidden layers, e.g. 50 or 50,50.")
    ] = "50",
    activation: Annotated[str, typer.Option(help="Activation of the hidden layers.")] = "tanh",
    prior: Annotated[
        str, typer.Option(help="Of the weights: fan_in, unit, trace_class or hierarchical.")
    ] = "fan_in",
    likelihood: Annotated[
        str, typer.Option(help="Noise: auto, normal, student_t or heteroscedastic.")
    ] = "auto",
    num_draws: Annotated[int, typer.Option(help="Draws per chain.")] = 1000,
    num_chains: Annotated[int, typer.Option(help="Independent chains.")] = 4,
    test_fraction: Annotated[float, typer.Option(help="Share of rows held out for testing.")] = 0.2,
    max_seconds: Annotated[
        float | None, typer.Option(help="Time budget of the fit; the block that runs is finished.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same result.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder to write; it must be new.")] = Path(
        "credence-run"
    ),
    as_json: Json = False,
) -> None:
    """Fit a table: predictions with intervals, a verdict on them, and a report."""
    from credence.runs import workflow
    from credence.runs.folder import FitSettings

    settings = FitSettings(
        table=table,
        target=target or _known_target(table),
        task=task,
        categorical=tuple(categorical or ()),
        drop=tuple(drop or ()),
        method=method,
        hidden=_widths(hidden),
        activation=activation,
        prior=prior,
        likelihood=likelihood,
        num_draws=num_draws,
        num_chains=num_chains,
        test_fraction=test_fraction,
        max_seconds=max_seconds,
        seed=seed,
    )
    _prepare()
    _conclude(workflow.fit(settings, out, progress=not as_json), as_json)


@app.command(epilog="Example: credence resume houses-run")
def resume(run: Run, as_json: Json = False) -> None:
    """Go on where a killed or interrupted run stopped."""
    from credence.runs import workflow

    _prepare()
    _conclude(workflow.resume(run, progress=not as_json), as_json)


@app.command(epilog="Example: credence predict houses-run new.csv --coverage 0.9 --out prices.csv")
def predict(
    run: Run,
    table: TableArgument,
    coverage: Annotated[float, typer.Option(help="Probability that the interval holds.")] = 0.95,
    out: Annotated[Path, typer.Option(help="CSV file to write.")] = Path("predictions.csv"),
    as_json: Json = False,
) -> None:
    """Predict new rows: mean, std and interval, or probabilities and entropies."""
    from credence.checkpoint import write_text
    from credence.runs import workflow

    _prepare()
    if out.exists() and Path(table).exists() and out.samefile(table):
        raise InputError(f"--out {out} is the table itself: choose another file.")
    replaced = " (replaced)" if out.exists() else ""
    predictions, notes = workflow.predict(run, table, coverage=coverage)
    write_text(out, predictions.to_csv(index=False))
    _say_notes(notes)
    _say(f"Wrote {len(predictions)} predictions to [bold]{out}[/bold]{replaced}.")
    if as_json:
        print(json.dumps({"rows": len(predictions), "out": str(out), "notes": notes}))


@app.command(epilog="Example: credence report houses-run")
def report(run: Run, as_json: Json = False) -> None:
    """Write RUN/report.html, one self-contained file."""
    from credence.runs.page import write_page

    path = write_page(run)
    _say(f"Wrote [bold]{path}[/bold].")
    if as_json:
        print(json.dumps({"report": str(path)}))


Jobs = Annotated[int, typer.Option(help="Cells at a time; 1 gives comparable times.")]
Backend = Annotated[str, typer.Option(help="Of joblib: loky, or dask or ray on a cluster.")]
CellSeconds = Annotated[float | None, typer.Option(help="Time budget of every method.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Out = Annotated[Path, typer.Option(help="Folder to write; an earlier one goes on.")]


@app.command(
    epilog="Example: credence compare houses.csv --target price --methods nuts,deep_ensemble"
)
def compare(
    table: TableArgument,
    methods: Annotated[str, typer.Option(help="Names from `credence methods`, with commas.")],
    target: Annotated[
        str, typer.Option(help="Column to predict; a known data set has its own.")
    ] = "",
    baseline: Annotated[
        str, typer.Option(help="What speed-ups are relative to; by default the first chain.")
    ] = "",
    task: Annotated[str, typer.Option(help="auto, regression or classification.")] = "auto",
    hidden: Annotated[
        str, typer.Option(help="Widths of the hidden layers, e.g. 50 or 50,50.")
    ] = "50",
    activation: Annotated[str, typer.Option(help="Activation of the hidden layers.")] = "tanh",
    prior: Annotated[
        str, typer.Option(help="Of the weights: fan_in, unit, trace_class or hierarchical.")
    ] = "fan_in",
    likelihood: Annotated[
        str, typer.Option(help="Noise: auto, normal, student_t or heteroscedastic.")
    ] = "auto",
    num_draws: Annotated[int, typer.Option(help="Draws per chain.")] = 1000,
    num_chains: Annotated[int, typer.Option(help="Independent chains.")] = 4,
    test_fraction: Annotated[float, typer.Option(help="Share of rows held out for testing.")] = 0.2,
    max_seconds: CellSeconds = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    backend: Backend = "loky",
    out: Out = Path("credence-compare"),
    as_json: Json = False,
) -> None:
    """Compare methods on a table, on equal terms, each in a process of its own.

    Status 3 where a method failed or a chain did not converge.
    """
    from credence.experiments import compare as plan
    from credence.experiments.specs import ModelSpec

    experiment = plan(
        table,
        target or _known_target(table),
        _words(methods),
        baseline=baseline,
        num_draws=num_draws,
        num_chains=num_chains,
        model=ModelSpec(
            hidden=_widths(hidden), activation=activation, prior=prior, likelihood=likelihood
        ),
        task=task,
        test_fraction=test_fraction,
        split_seed=seed,
    )
    options = {"seed": seed, "n_jobs": jobs, "backend": backend, "max_seconds": max_seconds}
    _run_experiment(experiment, out, as_json, options)


@experiment_app.command("list", epilog="Example: credence experiment list")
def experiment_list(as_json: Json = False) -> None:
    """List the published experiments."""
    from credence.experiments import EXPERIMENTS, show

    if as_json:
        print(json.dumps({name: each.description for name, each in EXPERIMENTS.items()}))
        return
    Console().print(show.experiment_list(EXPERIMENTS))


ExperimentName = Annotated[str, typer.Argument(metavar="NAME", help="As `list` shows it.")]


@experiment_app.command("show", epilog="Example: credence experiment show fbnn")
def experiment_show(name: ExperimentName, as_json: Json = False) -> None:
    """Show an experiment: problems, methods, settings, published numbers."""
    from credence.experiments import find, show
    from credence.experiments.specs import to_json

    experiment = find(name)
    if as_json:
        print(json.dumps(to_json(experiment)))
        return
    Console().print(show.experiment_details(experiment))


@experiment_app.command(
    "run", epilog="Example: credence experiment run fbnn --size smoke --problems boston --out fbnn"
)
def experiment_run(
    name: ExperimentName,
    size: Annotated[str, typer.Option(help="smoke, laptop or paper.")] = "laptop",
    problems: Annotated[str, typer.Option(help="Only these, with commas.")] = "",
    methods: Annotated[str, typer.Option(help="Only these, and the baseline.")] = "",
    max_seconds: CellSeconds = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    backend: Backend = "loky",
    out: Out = Path("credence-experiment"),
    as_json: Json = False,
) -> None:
    """Run an experiment; finished cells are kept, so the same command goes on where it stopped.

    Status 3 where a method failed or a chain did not converge.
    """
    from credence.experiments import find

    experiment = find(name).only(_words(problems), _words(methods))
    options = {"seed": seed, "n_jobs": jobs, "backend": backend, "max_seconds": max_seconds}
    _run_experiment(experiment, out, as_json, options | {"size": size})


def _run_experiment(experiment: Any, out: Path, as_json: bool, options: dict[str, Any]) -> None:
    """Run, show the table, end with the status."""
    from credence.experiments import run, show

    try:
        with show.RichWatch(console) as watch:
            summary = run(experiment, out, watch=watch, **options)
    except KeyboardInterrupt:
        _say(f"Stopped. Finished cells are kept in {out}: the same command goes on.")
        raise typer.Exit(INTERRUPTED) from None
    console.print(show.results(summary))
    _say(f"Page: [bold]{out / 'report.html'}[/bold]")
    if as_json:
        print(json.dumps(summary | {"out": str(out)}))
    if summary["converged"] is False:
        raise typer.Exit(NOT_CONVERGED)


@app.command(epilog="Example: credence methods")
def methods(as_json: Json = False) -> None:
    """List the methods that --method knows."""
    from credence.methods import METHODS

    if as_json:
        print(json.dumps({name: method.summary for name, method in METHODS.items()}))
        return
    listing = Table("method", "what it is")
    listing.add_row("auto", "chooses by the size of data and network, and says why")
    for name, method in METHODS.items():
        listing.add_row(name, method.summary)
    Console().print(listing)


@app.command(epilog="Example: CREDENCE_DATA=~/data credence datasets")
def datasets(as_json: Json = False) -> None:
    """List the data sets known by name, and where each can be had now."""
    from credence.datasets.registry import list_datasets

    rows = list_datasets()
    if as_json:
        keys = ("name", "task", "target", "rows", "columns", "description", "licence")
        print(
            json.dumps(
                [
                    {key: getattr(row.spec, key) for key in keys} | {"where": row.found}
                    for row in rows
                ]
            )
        )
        return
    listing = Table(
        Column("name", no_wrap=True), "task", "target", "rows x columns", "where", "description"
    )
    for row in rows:
        spec = row.spec
        size = f"{spec.rows:,} x {spec.columns:,}"
        listing.add_row(spec.name, spec.task, spec.target or "", size, row.found, spec.description)
    Console().print(listing)


@app.command(epilog="Example: credence doctor")
def doctor(as_json: Json = False) -> None:
    """Show versions, devices, threads, cache and memory; for bug reports."""
    _prepare()
    found = examine()
    if as_json:
        print(json.dumps(found))
        return
    listing = Table("what", "found", show_header=False)
    for name, value in found.items():
        listing.add_row(name, ", ".join(value) if isinstance(value, list) else str(value))
    Console().print(listing)


def examine() -> dict[str, Any]:
    """What `doctor` shows."""
    import platform

    import jax

    from credence.ensemble import package_versions
    from credence.environment import cache_folder, num_cores

    cache = cache_folder()
    compiled = list((cache / "compiled").glob("*")) if cache.is_dir() else []
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        **package_versions(),
        "devices": [str(device) for device in jax.devices()],
        "cores": num_cores(),
        "memory_gib": _memory_gib(),
        "cache": str(cache),
        "cached_programs": len(compiled),
        "cache_mib": round(sum(file.stat().st_size for file in compiled) / 2**20, 1),
        "data_folder": str(_data_folder() or "not set (CREDENCE_DATA)"),
    }


def _memory_gib() -> float | None:
    """Physical memory, where the system tells."""
    import os

    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None


def _data_folder() -> Path | None:
    from credence.datasets.sources import data_folder

    return data_folder()


def _prepare() -> None:
    """Set JAX up, once, before it computes anything; what to compute was asked for already."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    from credence.environment import configure

    warnings.simplefilter("ignore", ConvergenceWarning)  # `_conclude` says it
    configure()


def _widths(hidden: str) -> tuple[int, ...]:
    """'50,50' to (50, 50); '' or '0' is a linear model."""
    try:
        widths = tuple(int(part) for part in hidden.split(",") if part.strip())
    except ValueError:
        raise InputError(
            f"--hidden takes whole numbers separated by commas, got {hidden!r}; try 50 or 50,50."
        ) from None
    return () if widths == (0,) else widths


def _words(text: str) -> tuple[str, ...]:
    """'a, b' to ('a', 'b')."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _known_target(table: str) -> str:
    """The target of a known data set; otherwise --target is missing."""
    from credence.datasets.registry import DATASETS

    spec = None if Path(table).exists() else DATASETS.get(table)
    if spec is None or spec.target is None:
        raise InputError("Which column is to be predicted? Say --target COLUMN.")
    return spec.target


def _conclude(fitted: Any, as_json: bool) -> None:
    """Show a finished run and end with its status."""
    metrics = fitted.metrics
    _say_notes(fitted.notes)
    _show_summary(metrics)
    _say(f"Report: [bold]{fitted.folder / 'report.html'}[/bold]")
    if metrics["stopped"] == "interrupt":
        _say(f"`credence resume {fitted.folder}` draws the rest.")
    if as_json:
        print(json.dumps(metrics | {"run": str(fitted.folder)}))
    if metrics["converged"] is False:
        raise typer.Exit(NOT_CONVERGED)


VERDICTS = {
    "trust": "[bold green]Trust:[/bold green] the uncertainty held up on rows it never saw.",
    "care": "[bold yellow]Use with care.[/bold yellow]",
    "do_not_trust": "[bold red]Do not trust.[/bold red]",
}


def _show_summary(metrics: dict[str, Any]) -> None:
    _say(VERDICTS[metrics["verdict"]])
    for reason in metrics["verdict_reasons"]:
        console.print(f"  {reason}", markup=False, highlight=False, soft_wrap=True)
    if metrics["converged"]:
        _say(f"Converged: {metrics['convergence_reason']}")
    if metrics["stopped"] != "finished":
        cause = {"time": "the time budget is spent", "interrupt": "interrupted"}
        _say(f"Only {metrics['num_draws']} draws per chain: {cause[metrics['stopped']]}.")
    _say(f"Method [bold]{metrics['method']}[/bold]: {metrics['method_reason']}")
    shown = (
        ("rmse", "nll", "crps", "coverage_95")
        if metrics["task"] == "regression"
        else ("accuracy", "nll", "ece", "brier", "auroc")
    )
    listing = Table(*shown, title=f"On {metrics['n_test']} held-out rows")
    listing.add_row(*(_number(metrics[name]) for name in shown))
    console.print(listing)
    seconds = metrics["seconds"]
    parts = ", ".join(f"{name} {value:.1f}" for name, value in seconds.items() if value >= 0.05)
    _say(f"Fitted in {sum(seconds.values()):.1f} s: {parts}.")


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.4g}"


def _say_notes(notes: list[str]) -> None:
    for note in notes:
        console.print(f"Note: {note}", markup=False, highlight=False, soft_wrap=True)


def _say(text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)


def _complain(error: object) -> None:
    console.print(f"Error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
