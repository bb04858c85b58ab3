"""One method on one problem, in a process of its own, so that memory and compile time are its own.

    python -m credence.compare.cell SPEC.json OUT.json NUM_DEVICES

OUT.json is written whole or not at all. Whatever fails becomes a result too: a cell with its error
in a sentence. A process that is stopped leaves its checkpoints beside OUT.json, and goes on there.
"""

import json
import shutil
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from credence.compare.specs import CellSpec, ModelSpec, cell_from_json
from credence.errors import CredenceError, InputError, Interrupted, OutOfTime, did_you_mean

if TYPE_CHECKING:
    from credence.compare.problem import Arrays
    from credence.density.posterior import Posterior
    from credence.ensembles.averages import AveragedPredictions
    from credence.ensembles.predictor import Predictor
    from credence.methods.algorithm import Algorithm
    from credence.models import Network

Judged = tuple[dict[str, Any], dict[str, list[Any]]]
"""Scores and convergence, and numbers row by row."""
Judge = Callable[[], Judged]

INTERRUPTED = 130


def main(spec_path: Path, out_path: Path, num_devices: int) -> int:
    """Run the cell; 0 where OUT.json was written, be it with an error."""
    from credence.environment import configure
    from credence.storage import write_text

    configure(num_devices, compilation_cache=False)  # a program found ready would cost nothing
    cell = cell_from_json(json.loads(spec_path.read_text(encoding="utf-8")))
    checkpoints = out_path.with_suffix(".checkpoint")
    may_go_on = False
    try:
        text = json.dumps(compute(cell, checkpoints), allow_nan=False)
    except (Interrupted, KeyboardInterrupt) as stop:
        if not isinstance(stop, OutOfTime):
            return INTERRUPTED
        text = json.dumps(failed(stop))
    except Exception as error:
        text = json.dumps(failed(error))
        may_go_on = not isinstance(error, InputError)  # after a full disk, say
    write_text(out_path, text)
    if not may_go_on:
        shutil.rmtree(checkpoints, ignore_errors=True)
    return 0


def failed(error: Exception) -> dict[str, Any]:
    """The result of a cell that could not be computed."""
    is_ours = isinstance(error, CredenceError)
    sentence = str(error) if is_ours else f"{type(error).__name__}: {error}"
    trace = "" if is_ours else "".join(traceback.format_exception(error))
    return {"status": "failed", "error": sentence, "traceback": trace}


def compute(cell: CellSpec, folder: Path | None = None) -> dict[str, Any]:
    """The cell's result as JSON data: scores, convergence, cost, memory.

    Raises:
        InputError: for an unknown method, setting, model or data that cannot be used.
        Interrupted: on Ctrl-C; with a folder, the next call goes on where this one stopped.
    """
    from credence.compare import problem
    from credence.environment import source_commit

    commit = source_commit()  # before anything changes
    method = build_method(cell)
    arrays = problem.load_cell(cell)
    posterior = build_posterior(cell, arrays)
    before = peak_memory_mib()
    run = run_averaged if cell.averaged else run_whole
    ensemble, judge = run(cell, method, posterior, arrays, folder)
    after = peak_memory_mib()
    if ensemble.provenance.stopped == "interrupt":
        raise Interrupted(f"Stopped in '{cell.name}'; run again to go on.")
    start = time.perf_counter()
    judged, rows = judge()
    if arrays.groups is not None:
        rows["group"] = arrays.groups[1].tolist()
    return {
        "status": "done",
        "problem": arrays.size | {"num_weights": posterior.num_weights},
        **judged,
        "cost": ensemble.cost.to_dict(),
        "evaluation_seconds": time.perf_counter() - start,
        "peak_memory_mib": after,
        "memory_before_mib": before,
        **_draws(ensemble),
        "commit": commit,
        "rows": rows,
    }


def run_whole(
    cell: CellSpec,
    method: "Algorithm",
    posterior: "Posterior",
    arrays: "Arrays",
    folder: Path | None,
) -> "tuple[Predictor, Judge]":
    """Run the method, and say how its ensemble is judged."""
    from credence.compare import scoring
    from credence.ensembles.findings import found_in

    ensemble = method.run(cell.seed, posterior, folder=folder, max_seconds=cell.max_seconds)

    def judge() -> Judged:
        findings = found_in(ensemble, method.findings).values()
        numbers, rows = scoring.scores(ensemble, arrays, findings)
        return {"scores": numbers, **scoring.judge(ensemble, arrays.x_test, findings)}, rows

    return ensemble, judge


def run_averaged(
    cell: CellSpec,
    method: "Algorithm",
    posterior: "Posterior",
    arrays: "Arrays",
    folder: Path | None,
) -> "tuple[AveragedPredictions, Judge]":
    """Run the method without keeping its networks, and say how its averages are judged.

    Raises:
        InputError: for a task other than classification, or a method that cannot.
    """
    from credence.compare import scoring
    from credence.ensembles.findings import read_from
    from credence.methods.base import Method

    if arrays.task != "classification" or not isinstance(method, Method):
        raise InputError(
            "averaged=True is for labels, and for methods that sample one posterior: leave it out "
            f"for '{cell.label}'."
        )
    averaged = method.run_averaged(
        cell.seed,
        posterior,
        arrays.x_test,
        arrays.y_test,
        folder=folder,
        max_seconds=cell.max_seconds,
    )
    findings = read_from(averaged.provenance.found, {}, method.findings).values()
    return averaged, lambda: scoring.judge_averaged(averaged, arrays, posterior, findings)


def _draws(ensemble: "Predictor | AveragedPredictions") -> dict[str, Any]:
    """What was drawn, how, and where."""
    import jax

    from credence.storage import jsonable

    return {
        "is_chain": ensemble.is_chain,
        "num_chains": ensemble.num_chains,
        "num_draws": ensemble.num_draws,
        "stopped": ensemble.provenance.stopped,
        "divergences": ensemble.num_divergences,
        "settings": jsonable(ensemble.provenance.settings, spell_infinite=True),
        "versions": ensemble.provenance.versions,
        "device": str(jax.devices()[0].device_kind),
        "num_devices": jax.device_count(),
    }


def build_method(cell: CellSpec) -> "Algorithm":
    """The method with its settings, for the model of the cell.

    Raises:
        InputError: for an unknown method or setting.
    """
    from credence.methods import METHODS

    chosen = METHODS.find(cell.method)
    known = [each.name for each in fields(chosen)]
    for name in cell.settings:
        if name not in known:
            raise InputError(
                f"The method '{cell.method}' has no setting '{name}': it has {', '.join(known)}."
                + did_you_mean(name, known)
            )
    return chosen.from_settings(dict(cell.settings)).for_named_model()


def build_posterior(cell: CellSpec, arrays: "Arrays") -> "Posterior":
    """Network, prior and likelihood on the training rows.

    Raises:
        InputError: for an unknown name, or a likelihood that does not fit the task.
    """
    from credence.density.posterior import Posterior
    from credence.estimators.checks import named
    from credence.models import LIKELIHOODS, PRIORS, Bernoulli, Categorical

    if arrays.task == "regression":
        known = {"auto": LIKELIHOODS["normal"], **LIKELIHOODS}
    else:
        known = {"auto": Categorical, "categorical": Categorical, "bernoulli": Bernoulli}
    likelihood = named("likelihood", cell.model.likelihood, known)()
    outputs = likelihood.num_outputs(len(arrays.labels) or 1)
    network = build_network(cell.model, outputs)
    prior = named("prior", cell.model.prior, PRIORS)
    prior = replace(prior, **cell.model.prior_settings)
    groups = None if arrays.groups is None else arrays.groups[0]
    return Posterior(network, prior, likelihood, (arrays.x_train, arrays.y_train), groups)


def build_network(model: ModelSpec, num_outputs: int) -> "Network":
    """A model's network.

    Raises:
        InputError: for an unknown one.
    """
    from credence.models import MLP, ResNet

    if model.network == "mlp":
        return MLP(num_outputs, tuple(model.hidden), model.activation)
    depth = model.network.removeprefix("resnet")
    if depth == model.network or not depth.isdigit():
        raise InputError(f"Unknown network '{model.network}': use 'mlp' or one as 'resnet18'.")
    return ResNet.of_depth(int(depth), num_outputs, dtype=model.dtype)


def peak_memory_mib() -> float | None:
    """Largest resident memory of this process so far; None where the system does not tell.

    Linux carries getrusage's figure over from the parent process, so /proc is read there.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text(encoding="utf-8").splitlines()
        found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
        return int(found[0]) / 2**10 if found else None
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
