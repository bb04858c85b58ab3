"""What is spoiled: finished RUN folders and a table; and all that a user does with them."""

import dataclasses
import hashlib
import io
import json
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tools.earlier_format import run_as_format_1

from credence.report import judge, render
from credence.runs import prediction, workflow
from credence.runs.folder import FILES, FitSettings
from credence.runs.page import report_data

Files = dict[str, bytes]


def houses(num_rows: int = 40) -> pd.DataFrame:
    """A table of numbers and names."""
    rng = np.random.default_rng(0)
    area, city = rng.uniform(40, 200, num_rows), rng.choice(["Bern", "Basel", "Zug"], num_rows)
    price = 3 * area + 50 * (city == "Zug") + rng.normal(0, 10, num_rows)
    sold = np.where(price > 360, "yes", "no")
    return pd.DataFrame(
        {"area": area.round(2), "city": city, "price": price.round(2), "sold": sold}
    )


def make_subjects(folder: Path) -> dict[str, Files]:
    """Files of RUN folders by name: regression, classification, and regression in format 1."""
    table = folder / "houses.csv"
    houses().to_csv(table, index=False)
    quick = {"table": str(table), "hidden": (3,), "num_draws": 20, "num_chains": 2, "method": "hmc"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        workflow.fit(FitSettings(target="price", **quick), folder / "regression")
        workflow.fit(FitSettings(target="sold", **quick), folder / "classification")
    shutil.copytree(folder / "regression", folder / "format 1")
    run_as_format_1(folder / "format 1")
    return {name: _files(folder / name) for name in ("regression", "classification", "format 1")}


def _files(folder: Path) -> Files:
    paths = (path for path in folder.rglob("*") if path.is_file())
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    return {name: found[name] for name in found if name not in ("report.html", ".lock")}


def use(folder: Path, table: Path) -> dict[str, Any]:
    """All that a user does with a finished RUN: predict, resume, and the report's content."""
    predictions, _ = prediction.predict(folder, str(table))
    return {
        "predictions": predictions.to_csv(),
        "metrics": workflow.resume(folder).metrics,
        "report": report_data(folder),
    }


def show(found: Mapping[str, Any]) -> None:
    """What is written of it, on a page and in the terminal."""
    from credence.cli import messages

    messages.summary(found["metrics"])
    judge(found["report"])
    render(found["report"])


def said(found: Mapping[str, Any]) -> str:
    """All of it as one text, the same where nothing differs."""
    report = dataclasses.asdict(found["report"])
    as_text = lambda value: value.tolist() if isinstance(value, np.ndarray) else repr(value)  # noqa: E731
    return json.dumps({**found, "report": report}, default=as_text, sort_keys=True)


def forged(files: Files, changed: str) -> Files:
    """The files with all checksums made again, as somebody would who knows how they are made."""
    files = dict(files)
    arrays = "ensemble/ensemble.npz" if "ensemble/ensemble.npz" in files else "ensemble/ensemble.nc"
    _seal(files, changed, {})
    _seal(files, "ensemble/ensemble.json", {"arrays_sha256": _sha256(files.get(arrays))})
    ensemble = {"ensemble_sha256": _sha256(files.get("ensemble/ensemble.json"))}
    _seal(files, "ensemble/estimator.json", ensemble)
    sealed = (*FILES, "ensemble/ensemble.json", "ensemble/ensemble.npz")
    checksums = {name: _sha256(files.get(name)) for name in sealed}
    _seal(files, "manifest.json", {"checksums": checksums})
    return files


def _seal(files: Files, name: str, changes: dict[str, Any]) -> None:
    """Put changes and a checksum into a document; one of format 1 or no JSON stays as it is."""
    try:
        document = json.loads(files.get(name, b""))
        is_older = "sha256" not in document and document.get("format", 1) == 1
        document |= {key: value for key, value in changes.items() if key in document}
    except (ValueError, RecursionError, TypeError, AttributeError):
        return
    document.pop("sha256", None)
    content = {key: value for key, value in document.items() if key != "format"}
    if not is_older:
        text = json.dumps(content, sort_keys=True)
        document["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    files[name] = json.dumps(document, indent=2).encode()


def _sha256(content: bytes | None) -> str:
    return hashlib.sha256(content or b"").hexdigest()


def quiet() -> None:
    """What the command line says goes nowhere."""
    from rich.console import Console

    from credence.cli import messages

    messages.console = Console(file=io.StringIO())
