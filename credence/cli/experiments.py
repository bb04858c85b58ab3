"""`credence compare` and `credence experiment`: methods on equal terms, side by side."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from credence.cli import messages, options

ExperimentName = Annotated[str, typer.Argument(metavar="NAME", help="As `list` shows it.")]

app = typer.Typer()
published = typer.Typer(
    help="The published experiments: list, show and run them.", no_args_is_help=True
)


@app.command(
    epilog="Example: credence compare houses.csv --target price --methods nuts,deep_ensemble "
    "--set nuts.num_warmup=1000"
)
def compare(
    table: options.TableName,
    methods: Annotated[str, typer.Option(help="Names from `credence methods`, with commas.")],
    target: options.Target = "",
    baseline: Annotated[
        str, typer.Option(help="What speed-ups are relative to; by default the first chain.")
    ] = "",
    task: options.Task = "auto",
    categorical: options.Categorical = None,
    drop: options.Drop = None,
    group: options.Group = None,
    hidden: options.Hidden = "50",
    activation: options.Activation = "tanh",
    prior: options.Prior = "auto",
    likelihood: options.Likelihood = "auto",
    num_draws: options.NumDraws = None,
    num_chains: options.NumChains = None,
    method_settings: options.ComparedSettings = None,
    test_fraction: options.TestFraction = 0.2,
    max_seconds: options.CellSeconds = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = 1,
    backend: options.Backend = "loky",
    out: options.ExperimentOut = Path("credence-compare"),
    as_json: options.Json = False,
) -> None:
    """Compare methods on a table, on equal terms, each in a process of its own.

    Status 3 where a method failed or a chain did not converge.
    """
    from credence.compare import compare as plan
    from credence.compare.specs import ModelSpec
    from credence.methods.algorithm import USUAL_DRAWS

    widths = options.widths(hidden)
    experiment = plan(
        table,
        options.target_of(table, target),
        options.words(methods),
        baseline=baseline,
        num_draws=USUAL_DRAWS if num_draws is None else num_draws,
        num_chains=num_chains,
        method_settings=tuple(method_settings or ()),
        model=ModelSpec(
            hidden=ModelSpec.hidden if widths is None else widths,
            activation=activation,
            prior=prior,
            likelihood=likelihood,
        ),
        task=task,
        categorical=tuple(categorical or ()),
        drop=tuple(drop or ()),
        group=group,
        test_fraction=test_fraction,
    )
    settings = {"seed": seed, "n_jobs": jobs, "backend": backend, "max_seconds": max_seconds}
    _run(experiment, out, as_json, settings)


@published.command("list", epilog="Example: credence experiment list")
def experiment_list(as_json: options.Json = False) -> None:
    """List the published experiments."""
    from credence.compare import EXPERIMENTS
    from credence.compare.show import terminal as show

    descriptions = EXPERIMENTS.described(lambda each: each.description)
    problems = EXPERIMENTS.described(lambda each: ", ".join(p.name for p in each.problems))
    messages.show(show.experiment_list(descriptions, problems), descriptions, as_json)


@published.command("show", epilog="Example: credence experiment show fbnn")
def experiment_show(name: ExperimentName, as_json: options.Json = False) -> None:
    """Show an experiment: problems, methods, settings, published numbers."""
    from credence.compare import Experiment, find
    from credence.compare.show import terminal as show
    from credence.compare.specs import to_json

    found = find(name)
    if isinstance(found, Experiment):
        messages.show(show.experiment_details(found), to_json(found), as_json)
    else:
        messages.show(found.details(), found.about(), as_json)


@published.command(
    "run", epilog="Example: credence experiment run fbnn --size smoke --problems boston --out fbnn"
)
def experiment_run(
    name: ExperimentName,
    size: Annotated[str, typer.Option(help="smoke, laptop or paper.")] = "laptop",
    problems: Annotated[str, typer.Option(help="Only these, with commas.")] = "",
    methods: Annotated[str, typer.Option(help="Only these, and the baseline.")] = "",
    max_seconds: options.CellSeconds = None,
    seed: options.Seed = 0,
    seeds: options.Seeds = None,
    jobs: options.Jobs = 1,
    backend: options.Backend = "loky",
    out: options.ExperimentOut = Path("credence-experiment"),
    as_json: options.Json = False,
) -> None:
    """Run an experiment; finished cells are kept, so the same command goes on where it stopped.

    Status 3 where a method failed or a chain did not converge.
    """
    from credence.compare import Experiment, find

    found, named = find(name), options.words(problems)
    settings = {"size": size, "seed": seed, "num_seeds": seeds}
    if isinstance(found, Experiment):
        more = {"n_jobs": jobs, "backend": backend, "max_seconds": max_seconds}
        _run(found.only(named, options.words(methods)), out, as_json, settings | more)
    else:
        _refuse(
            name,
            methods=methods,
            max_seconds=max_seconds,
            jobs=jobs != 1,
            backend=backend != "loky",
        )
        _run_study(found, out, as_json, settings | {"problems": named})


def _run(experiment: Any, out: Path, as_json: bool, settings: dict[str, Any]) -> None:
    """Run, show the table, end with the status."""
    from credence.compare import run
    from credence.compare.show import terminal as show

    summary = _watched(lambda watch: run(experiment, out, watch=watch, **settings), out)
    _conclude(summary, show.results(summary), out, as_json)


def _refuse(name: str, **given: Any) -> None:
    """Refuse options that a study has no use for, whose methods and budgets are its own."""
    from credence.errors import InputError

    for option in (option for option, value in given.items() if value):
        raise InputError(
            f"'{name}' has methods and sizes of its own: leave out --{option.replace('_', '-')}, "
            "or choose among its problems and sizes."
        )


def _run_study(study: Any, out: Path, as_json: bool, settings: dict[str, Any]) -> None:
    """Run a study, show its results, end with the status."""
    from credence.environment import configure

    configure(compilation_cache=False)  # a program found ready would cost nothing
    summary = _watched(lambda watch: study.run(out, watch=watch, **settings), out)
    _conclude({"converged": True} | summary, study.table(summary), out, as_json)


def _watched(run: Callable[[Any], dict[str, Any]], out: Path) -> dict[str, Any]:
    """The summary of a run that a person sees; Ctrl-C ends the command."""
    from credence.compare.show.terminal import RichWatch

    try:
        with RichWatch(messages.console) as watch:
            return run(watch)
    except KeyboardInterrupt:
        messages.say("Stopped. What is finished is kept in {}: the same command goes on.", out)
        raise typer.Exit(messages.INTERRUPTED) from None


def _conclude(summary: dict[str, Any], table: Any, out: Path, as_json: bool) -> None:
    """Show the table, end with the status."""
    messages.console.print(table)
    messages.say("Page: [bold]{}[/bold]", out / "report.html")
    messages.finish(summary | {"out": str(out)}, as_json)
