"""The command line: `credence fit`, `predict`, `report`, `resume`, `compare`, `experiment`, ...

People's text goes to standard error; with --json a machine-readable summary alone goes to standard
output. Exit status: 0 done, 2 bad input, 3 done but not converged, 130 interrupted. Heavy imports
happen inside the commands, so that --help is quick.

runs         fit, resume, predict, report
experiments  compare; experiment list, show, run
listings     methods, datasets, doctor
options      what several commands take
messages     what is said to people, and the statuses
interrupts   Ctrl-C
aliases      options of 0.1.0 that still work
"""

import sys
from typing import Annotated

import typer

import credence
from credence.cli import experiments, listings, messages, runs
from credence.cli.interrupts import delivered_again, is_interrupt
from credence.errors import CredenceError, Interrupted

app = typer.Typer(
    help="Neural networks with honest uncertainty.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
)
for commands in (runs.app, experiments.app, listings.app):
    app.add_typer(commands)
app.add_typer(experiments.published, name="experiment")


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        print(credence.__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line; errors a user can mend become a sentence and a status."""
    try:
        with delivered_again():
            app()
    except Interrupted as stopped:
        messages.say("{}", stopped)
        sys.exit(messages.INTERRUPTED)
    except CredenceError as error:
        messages.complain(error)
        sys.exit(messages.BAD_INPUT)
    except (KeyboardInterrupt, SystemExit) as stop:
        if not is_interrupt(stop):
            raise
        messages.say("Stopped. A run that had saved something goes on: credence resume RUN.")
        sys.exit(messages.INTERRUPTED)
