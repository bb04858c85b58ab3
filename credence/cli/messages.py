"""What commands say and the statuses they end with; JSON and listings go to standard output."""

import json
from typing import Any

import typer
from rich.console import Console, RenderableType
from rich.table import Table

BAD_INPUT = 2
NOT_CONVERGED = 3
INTERRUPTED = 130

VERDICTS = {
    "trust": "[bold green]Trust:[/bold green] the uncertainty held up on rows it never saw.",
    "care": "[bold yellow]Use with care.[/bold yellow]",
    "do_not_trust": "[bold red]Do not trust.[/bold red]",
}

MAX_COUNTS = 8
"""Widths or depths of which a summary gives the probability."""

console = Console(stderr=True)


def say(text: str) -> None:
    """A sentence with markup."""
    console.print(text, highlight=False, soft_wrap=True)


def notes(sentences: list[str]) -> None:
    """What was done to the data."""
    for sentence in sentences:
        console.print(f"Note: {sentence}", markup=False, highlight=False, soft_wrap=True)


def warn(message: object, *_: Any, **__: Any) -> None:
    """In place of `warnings.showwarning`: the sentence, without the line of code that raised it."""
    console.print(
        f"Warning: {message}", style="yellow", markup=False, highlight=False, soft_wrap=True
    )


def complain(error: object) -> None:
    """Why nothing was done."""
    console.print(f"Error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)


def finish(result: dict[str, Any], as_json: bool) -> None:
    """End a command that computed something, with its status."""
    if as_json:
        print(json.dumps(result))
    if result["converged"] is False:
        raise typer.Exit(NOT_CONVERGED)


def show(table: RenderableType, content: Any, as_json: bool) -> None:
    """What was asked to be seen, on standard output: as a table, or as JSON."""
    if as_json:
        print(json.dumps(content))
    else:
        Console().print(table)


def summary(metrics: dict[str, Any]) -> None:
    """A finished run: the verdict first."""
    say(VERDICTS[metrics["verdict"]])
    for reason in metrics["verdict_reasons"]:
        console.print(f"  {reason}", markup=False, highlight=False, soft_wrap=True)
    if metrics["converged"]:
        say(f"Converged: {metrics['convergence_reason']}")
    if metrics["stopped"] != "finished":
        cause = {"time": "the time budget is spent", "interrupt": "interrupted"}
        say(f"Only {metrics['num_draws']} draws per chain: {cause[metrics['stopped']]}.")
    say(f"Method [bold]{metrics['method']}[/bold]: {metrics['method_reason']}")
    if "log_evidence" in metrics:
        say(f"Log evidence {_log_evidence(metrics)}.")
    if "architecture" in metrics:
        _architecture(metrics["architecture"])
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
    say(f"Fitted in {sum(seconds.values()):.1f} s: {parts}.")


def _log_evidence(metrics: dict[str, Any]) -> str:
    """With the standard error that the runs show, where there are several."""
    error = metrics["log_evidence_error"]
    shown = "" if error is None else f" +- {error:.2g}"
    return f"{metrics['log_evidence']:.2f}{shown} nats"


def _architecture(found: dict[str, Any]) -> None:
    """What the data say of the network's size, how sure that is, and how the chains moved."""
    first, width, depth = found["likeliest"][0], found["width"], found["depth"]
    layers = "-".join(map(str, first["widths"]))
    say(
        f"Hidden units [bold]{layers}[/bold] are the most probable, "
        f"p = {_with_error(first['probability'], first['standard_error'])} "
        f"of {found['num_architectures']} architectures visited; R-hat at most "
        f"{_number(found['max_rhat'])}, ESS at least {_number(found['min_ess'])}."
    )
    say(f"p(width given the data): {_probabilities(width)}.")
    if depth is not None:
        say(f"p(depth given the data): {_probabilities(depth)}.")
    rates = ", ".join(
        f"{name} {each['rate']:.1%} of {each['tried']:,}"
        for name, each in found["jumps"].items()
        if each["tried"]
    )
    states = f"{found['num_states']:,} distinct states in {found['num_draws']:,} draws"
    say(f"Jumps accepted: {rates or 'none was possible'}; {states}.")


def _probabilities(posterior: dict[str, Any]) -> str:
    """The likeliest counts, in their order."""
    rows = list(
        zip(
            posterior["widths"],
            posterior["probabilities"],
            posterior["standard_errors"],
            strict=True,
        )
    )
    shown = sorted(sorted(rows, key=lambda row: -row[1])[:MAX_COUNTS])
    found = ", ".join(f"{k}: {_with_error(p, error)}" for k, p, error in shown if p > 0)
    return f"{found}; mean {posterior['mean']:.2f}"


def _with_error(value: float, error: float | None) -> str:
    return f"{value:.3f}" if error is None else f"{value:.3f} +- {error:.3f}"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.4g}"
