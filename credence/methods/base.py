"""What all methods share: settings as a frozen dataclass, `run`, and the way to an `Ensemble`.

A method turns a posterior into an ensemble. `run` opens the driver and hands over to the method's
`_run`, which calls `driver.phase(...)` for its phases and returns draws. A chain method starts
from the members of a deep ensemble, because a sampler started at random wastes its warm-up.
"""

import dataclasses
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.clock import CompileClock
from credence.diagnostics.cost import Cost
from credence.ensemble import Ensemble, Provenance
from credence.environment import forget_programs, require_own_process
from credence.errors import InputError, check_numbers
from credence.models.linearized import linearized
from credence.models.spec import to_spec
from credence.models.stored import StoredRows
from credence.phases import PhaseResult
from credence.posterior import (
    BayesianModel,
    Data,
    Params,
    Position,
    Posterior,
    num_targets,
    rows_at,
)
from credence.progress import Monitor, NoProgress, Progress
from credence.run import Driver


class Drawn(NamedTuple):
    """What a method's phases leave: positions and per-draw scalars."""

    positions: Float[Any, "chain draw weight"]
    scalars: dict[str, Float[np.ndarray, "chain draw"]]
    linearized_at: Position | None = None
    """Where set, the members' networks are linearised there: see `credence.models.linearized`."""
    weights: Float[np.ndarray, "chain draw"] | None = None
    """How much each counts, sum one, possibly signed; None for equally."""
    found: Mapping[str, Any] = MappingProxyType({})
    """What the run chose for itself, ready for JSON."""

    @classmethod
    def by(cls, phase: PhaseResult) -> "Drawn":
        """All that a phase has drawn."""
        return cls(phase.draws, phase.info)


@dataclass(frozen=True, kw_only=True)
class Method:
    """Base of all methods; a subclass is a frozen dataclass of settings with `_run`."""

    name: ClassVar[str]
    """As given to method="..."."""
    summary: ClassVar[str]
    """One line for `credence methods`."""
    is_chain: ClassVar[bool] = True
    """Whether draws form Markov chains that leave the posterior (nearly) invariant."""
    prior: ClassVar[str] = "fan_in"
    """Of the weights, where the caller names none: one of `models.PRIORS`."""
    reads_disk: ClassVar[bool] = False
    """Whether inputs may stay on disk: see `models.stored`."""
    aliases: ClassVar[Mapping[str, str]] = {}
    """What other methods' names for a setting mean here, e.g. num_draws."""

    def __post_init__(self) -> None:
        """Settings are numbers where they are declared so; subclasses check their ranges."""
        check_numbers(self)

    def run(
        self,
        key: PRNGKeyArray | int,
        posterior: Posterior,
        *,
        folder: str | Path | None = None,
        progress: Progress | None = None,
        max_seconds: float | None = None,
    ) -> Ensemble:
        """Sample (or train) and return the ensemble.

        Args:
            key: a key of `jax.random.key`, or an integer seed.
            posterior: what to sample.
            folder: where checkpoints go; a run in the same folder with the same arguments goes on
                where it stopped.
            progress: what shows progress (`credence.progress.RichProgress()`); nothing by default.
            max_seconds: wall-clock budget; what is drawn by then is returned.
        Raises:
            Interrupted: on Ctrl-C before there was a draw.
            StorageError: where a checkpoint cannot be written or read.
        """
        require_own_process()
        if max_seconds is not None and not max_seconds > 0:
            raise InputError(f"max_seconds must be > 0, got {max_seconds}.")
        if isinstance(posterior.data.x, StoredRows) and not self.reads_disk:
            raise InputError(
                f"The inputs lie on disk, and '{self.name}' wants them in memory: use 'ces', "
                "'nuts', 'hmc' or 'pcn', which read them in chunks, or pass an array of some rows."
            )
        forget_programs()
        seed = int(key) if isinstance(key, int | np.integer) else None
        key = as_key(key)
        watcher = progress or NoProgress()
        watcher.monitor = function_monitor(posterior)
        start = time.perf_counter()
        checkpoints = None if folder is None else Path(folder)
        driver = Driver(
            checkpoints,
            progress=watcher,
            max_seconds=max_seconds,
            identity=self._identity(key, posterior),
        )
        with CompileClock() as clock:
            with driver:
                drawn = self._run(key, posterior, driver)
            model, params = members(posterior, drawn)
        seconds = time.perf_counter() - start
        return Ensemble(
            model=model,
            params=params,
            cost=measured_cost(driver, posterior, seconds, clock.seconds),
            provenance=Provenance(
                self.name,
                dataclasses.asdict(self),
                seed,
                fingerprint(posterior),
                driver.stopped,
                found=dict(drawn.found),
            ),
            num_features=feature_shape(posterior),
            num_targets=num_targets(posterior.data),
            is_chain=self.is_chain,
            weights=drawn.weights,
            scalars=drawn.scalars,
        )

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> "Method":
        """The method that `dataclasses.asdict` described."""
        return from_fields(cls, settings)

    @classmethod
    def known(cls, **settings: Any) -> dict[str, Any]:
        """Those settings that this method has, under its own names, None left out."""
        names = {field.name for field in dataclasses.fields(cls)}
        named = {cls.aliases.get(name, name): value for name, value in settings.items()}
        return {name: value for name, value in named.items() if name in names and value is not None}

    def _identity(self, key: PRNGKeyArray, posterior: Posterior) -> dict[str, Any]:
        """What a checkpoint folder belongs to, as JSON data."""
        parts = (posterior.model.network, posterior.model.prior, posterior.model.likelihood)
        return {
            "method": self.name,
            **dataclasses.asdict(self),
            "key": np.asarray(jax.random.key_data(key)).tolist(),
            "model": [to_spec(part) | {"description": ""} for part in parts],
            "data": fingerprint(posterior),
        }

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        raise NotImplementedError


def from_fields(cls: type[Any], values: Mapping[str, Any]) -> Any:
    """A dataclass from what `dataclasses.asdict` made of it; nested ones are those of defaults."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    return cls(
        **{
            name: from_fields(type(fields[name].default), value)
            if isinstance(value, dict)
            else _frozen(value)
            for name, value in values.items()
        }
    )


def _frozen(value: Any) -> Any:
    """Tuples, where JSON made lists of them."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def members(posterior: Posterior, drawn: Drawn) -> tuple[BayesianModel, Params]:
    """The drawn parameters, leaves (chain, draw, ...) on the host, and their model."""
    model = posterior.model
    params = jax.device_get(posterior.unravel(jnp.asarray(drawn.positions)))
    if drawn.linearized_at is None:
        return model, params
    mode = jax.device_get(posterior.unravel(drawn.linearized_at)).network
    network, weights = linearized(model.network, mode, params.network)
    return replace(model, network=network), params._replace(network=weights)


def as_key(key: PRNGKeyArray | int) -> PRNGKeyArray:
    """A new-style key from a key or a seed."""
    if isinstance(key, int | np.integer):
        return jax.random.key(int(key))
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    return jax.random.wrap_key_data(key)


def feature_shape(posterior: Posterior) -> int | tuple[int, ...]:
    """Number of features, or the shape of an image."""
    shape = posterior.data.x.shape[1:]
    return shape[0] if len(shape) == 1 else shape


def fingerprint(posterior: Posterior) -> str:
    """SHA-256 of the data (x, y, weight), first 16 hex digits; of x on disk, of some rows."""
    digest, data = hashlib.sha256(), posterior.data
    if isinstance(data.x, StoredRows):
        digest.update(data.x.fingerprint())
        data = data._replace(x=None)
    for array in jax.tree.leaves(data):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def function_monitor(posterior: Posterior, num_points: int = 20) -> Monitor:
    """Predictions at a few training inputs, for the live R-hat and ESS."""
    chosen = np.linspace(0, posterior.num_points - 1, min(num_points, posterior.num_points))
    rows = rows_at(posterior.data, np.unique(chosen.astype(int)))
    return lambda draws: np.asarray(_first_output(jnp.asarray(draws), rows, model=posterior.model))


@partial(jax.jit, static_argnames="model")
def _first_output(
    draws: Float[Array, "chain draw weight"],
    rows: Data,
    *,
    model: BayesianModel,
) -> Float[Array, "chain draw row"]:
    def output(position: Float[Array, " weight"]) -> Float[Array, " row"]:
        return model.network.apply(model.unravel(position, rows).network, rows.x)[:, 0]

    return jax.vmap(jax.vmap(output))(draws)


def measured_cost(
    driver: Driver, posterior: Posterior, seconds: float, compile_seconds: float
) -> Cost:
    """All work the kernels' steps did, in evaluations of single data points, and where time went.

    What adapters take between blocks (a first step size, trials of one) is in the seconds only.

    Nominal FLOPs: 2 per weight and point forward, 6 for a value with its gradient; as often as a
    weight is used, where the network says that it is used more than once. Seconds of all
    phases add up to the wall time; what belongs to no phase is "other", and phases that differ only
    after their first word ("temper 8", "temper 16") count together. A resumed run counts what its
    phases took before as well.
    """
    results = driver.results.values()
    phases: dict[str, float] = {}
    for name, result in driver.results.items():
        kind = name.split()[0]
        phases[kind] = phases.get(kind, 0.0) + result.seconds
    phases["compile"] = max(sum(result.compile_seconds for result in results), compile_seconds)
    phases["other"] = max(seconds - sum(phases.values()), 0.0)
    gradients = sum(_evaluated(result, "num_gradients") for result in results)
    values = sum(_evaluated(result, "num_evaluations") for result in results)
    return Cost(
        likelihood_evaluations=values + gradients,
        gradient_evaluations=gradients,
        flops=uses_per_weight(posterior) * sum(map(flops, results)),
        seconds=phases,
    )


def uses_per_weight(posterior: Posterior) -> float:
    """How often a network multiplies by a weight for one point; 1 unless it says otherwise."""
    network, data = posterior.model.network, posterior.data
    if not hasattr(network, "uses_per_weight"):
        return 1.0
    template = posterior.model.template(data)
    return network.uses_per_weight(template.network, feature_shape(posterior))  # type: ignore[attr-defined]


def flops(result: PhaseResult) -> float:
    """Of a phase: two per weight and data point for a value, four more for its gradient; and what
    its surrogate took."""
    values, gradients = (_evaluated(result, name) for name in ("num_evaluations", "num_gradients"))
    surrogates = result.info.get("num_surrogate_evaluations", np.zeros(())).sum(dtype=float)
    exact = result.num_weights * (2.0 * values + 6.0 * gradients)
    return exact + result.surrogate_flops * float(surrogates)


def _evaluated(result: PhaseResult, count: str) -> int:
    """Data points at which a phase's steps evaluated the likelihood, by a count of their Info."""
    return int(result.info[count].sum()) * result.num_rows if count in result.info else 0
