"""`credence methods`, `datasets`, `doctor`: what there is."""

from contextlib import suppress
from dataclasses import is_dataclass
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from credence.cli import messages
from credence.cli.options import Json
from credence.cli.runs import prepare
from credence.errors import InputError
from credence.storage import jsonable

app = typer.Typer()

AUTO = (
    "'auto' has no settings, since it chooses a method: --set needs a method that is named. Where "
    "no model is named it is 'stacking', but for very small and very large tables: see `credence "
    "methods stacking`."
)


@app.command(epilog="Example: credence methods nuts")
def methods(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="A method whose settings to list.")
    ] = "",
    as_json: Json = False,
) -> None:
    """List the methods that --method knows, or the settings of one, for --set."""
    from credence.methods import METHODS, check_name

    if name == "auto":
        messages.show(AUTO, {}, as_json)
        return
    if name:
        _settings(check_name(name), as_json)
        return
    summaries = METHODS.described(lambda method: method.summary)
    listing = Table("method", "what it is", "reads disk")
    listing.add_row("auto", "several networks, mixed; of one that is named, a sampler by its size")
    for each, summary in summaries.items():
        listing.add_row(each, summary, "yes" if _reads_disk(each) else "")
    messages.show(listing, summaries, as_json)


def _reads_disk(name: str) -> bool:
    """Whether a method takes inputs that lie on disk; one that cannot be imported does not."""
    from credence.methods import METHODS, Method

    with suppress(InputError):
        method = METHODS[name]
        return issubclass(method, Method) and method.reads_disk
    return False


def _settings(name: str, as_json: bool) -> None:
    """Show what --set takes with a method."""
    from credence.methods import METHODS
    from credence.methods.settings import default_text, settings_of, usual_value

    method = METHODS[name]
    found = settings_of(method)
    plain = [one for one in found if not is_dataclass(one.default)]
    listing = Table(Column("setting", no_wrap=True), "default", "what it is", title=name)
    for one in plain:
        listing.add_row(one.name, default_text(method, one), one.meaning)
    about = {
        one.name: {"default": jsonable(usual_value(method, one)), "meaning": one.meaning}
        for one in plain
    }
    messages.show(listing, about, as_json)


@app.command(epilog="Example: CREDENCE_DATA=~/data credence datasets")
def datasets(as_json: Json = False) -> None:
    """List the data sets known by name, and where each can be had now."""
    from credence.datasets.catalogue.registry import list_datasets

    keys = ("name", "task", "target", "rows", "columns", "description", "licence")
    found = []
    listing = Table(Column("name", no_wrap=True), "what it is", Column("where", no_wrap=True))
    for row in list_datasets():
        spec = row.spec
        found.append({key: getattr(spec, key) for key in keys} | {"where": row.found})
        task = f"{spec.task} of {spec.target}" if spec.target else f"{spec.layout}, {spec.task}"
        about = f"{task}, {spec.rows:,} x {spec.columns:,}: {spec.description}"
        listing.add_row(spec.name, about, row.found)
    messages.show(listing, found, as_json)


@app.command(epilog="Example: credence doctor")
def doctor(as_json: Json = False) -> None:
    """Show versions, devices, threads, cache and memory; for bug reports."""
    prepare()
    found = examine()
    listing = Table("what", "found", show_header=False)
    for name, value in found.items():
        listing.add_row(name, ", ".join(value) if isinstance(value, list) else str(value))
    messages.show(listing, found, as_json)


def examine() -> dict[str, Any]:
    """What `doctor` shows."""
    import platform

    import jax

    from credence.datasets.catalogue.sources import data_folder
    from credence.ensembles.provenance import package_versions
    from credence.environment import cache_folder, num_cores
    from credence.program_cache import folder_within, programs_in

    cache = cache_folder()
    compiled = programs_in(folder_within(cache))
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
        "data_folder": str(data_folder() or "not set (CREDENCE_DATA)"),
    }


def _memory_gib() -> float | None:
    """Physical memory, where the system tells."""
    import os

    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None
