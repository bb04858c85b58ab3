"""What all methods share: settings as a frozen dataclass, `run`, and the way to an `Ensemble`.

An `Algorithm` has settings, and `run` gives something that predicts. Nearly all are a `Method`,
which samples or trains the posterior it is given.

A method turns a posterior into an ensemble. `run` opens the driver and hands over to the method's
`_run`, which calls `driver.phase(...)` for its phases and returns draws; `draw` does the same
inside another method. A subclass gives `_run`, and `prepared` where it samples another posterior
than the one it is given.
"""

import dataclasses
import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from credence.density.data import Data, feature_shape, num_targets
from credence.density.posterior import BayesianModel, Params, Position, Posterior
from credence.engine.clock import CompileClock
from credence.engine.driver import Driver
from credence.engine.phases import PhaseResult
from credence.engine.programs import forget_programs
from credence.engine.progress import NoProgress, Progress
from credence.ensembles.averages import AveragedPredictions, AverageStream, average_stream
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.findings import Finding
from credence.ensembles.predictor import Predictor
from credence.ensembles.provenance import Provenance
from credence.environment import require_own_process
from credence.errors import InputError, UnreadSetting, check_numbers, time_limit
from credence.methods.monitor import function_monitor
from credence.methods.work import measured_cost
from credence.models.networks.linearized import linearized
from credence.models.saved import to_identity


class Drawn(NamedTuple):
    """What a method's phases leave: positions and per-draw scalars."""

    positions: Float[Any, "chain draw weight"]
    scalars: dict[str, Float[np.ndarray, "chain draw"]]
    linearized_at: Position | None = None
    """Weights at which networks are linearised (`credence.models.networks.linearized`), or None."""
    weights: Float[np.ndarray, "chain draw"] | None = None
    """How much each counts, sum one, possibly signed; None for equally."""
    found: Mapping[str, Any] = MappingProxyType({})
    """What the run chose for itself, ready for JSON."""

    @classmethod
    def by(cls, phase: PhaseResult) -> "Drawn":
        """All that a phase has drawn."""
        return cls(phase.draws, phase.info)


USUAL_DRAWS = 1000
"""Draws per chain where nobody has said how many."""


@dataclass(frozen=True, kw_only=True)
class Algorithm(ABC):
    """Base of all that can be named as a method: a frozen dataclass of settings with `run`."""

    name: ClassVar[str]
    """The name by which method="..." chooses it."""
    summary: ClassVar[str]
    """One line for `credence methods`."""
    sources: ClassVar[tuple[str, ...]] = ()
    """The papers that a user should cite: authors, title, year."""
    is_chain: ClassVar[bool] = True
    """Whether draws form Markov chains that leave the posterior (nearly) invariant."""
    prior: ClassVar[str] = "fan_in"
    """The prior of the weights where the caller names none: one of `models.PRIORS`."""
    aliases: ClassVar[Mapping[str, str]] = {}
    """What other methods' names for a setting mean here, e.g. num_draws."""
    findings: ClassVar[tuple[type[Finding], ...]] = ()
    """Kinds of what it learns beside predictions: see `credence.ensembles.findings`."""

    def __post_init__(self) -> None:
        """Settings are numbers where they are declared so; subclasses check their ranges."""
        check_numbers(self)

    @abstractmethod
    def run(
        self,
        key: PRNGKeyArray | int,
        posterior: Posterior,
        *,
        folder: str | Path | None = None,
        progress: Progress | None = None,
        max_seconds: float | None = None,
    ) -> Predictor:
        """Learn from the posterior's data and return what predicts.

        Args:
            key: a key of `jax.random.key`, or an integer seed.
            posterior: what to sample.
            folder: where checkpoints go; a run in the same folder with the same arguments goes on
                where it stopped.
            progress: what shows progress (`credence.engine.progress.RichProgress()`); by default
                nothing does.
            max_seconds: wall-clock budget; what is drawn by then is returned.
        Raises:
            Interrupted: on Ctrl-C before there was a draw.
            StorageError: where a checkpoint cannot be written or read.
        """

    def for_named_model(self) -> "Algorithm":
        """Return what runs where the caller names the model: one that tries several keeps to it."""
        return self

    @classmethod
    def from_settings(cls, settings: dict[str, Any], *, is_saved: bool = False) -> "Algorithm":
        """The algorithm that `dataclasses.asdict` described.

        Args:
            is_saved: by an earlier version, it may be, which kept settings that nothing read; these
                are left out, and otherwise refused.
        """
        return from_fields(cls, settings, is_saved=is_saved)

    @classmethod
    def known(cls, **settings: Any) -> dict[str, Any]:
        """Those settings that this method has, under its own names, None left out."""
        names = {field.name for field in dataclasses.fields(cls)}
        named = {cls.aliases.get(name, name): value for name, value in settings.items()}
        return {name: value for name, value in named.items() if name in names and value is not None}

    @classmethod
    def given(cls, **settings: Any) -> dict[str, Any]:
        """Settings under this method's own names; 1000 draws where nobody has said how many.

        Raises:
            InputError: for a setting that this method does not have: none is dropped in silence.
        """
        found = {name: value for name, value in settings.items() if value is not None}
        known = cls.known(**found)
        missing = [name for name in found if cls.aliases.get(name, name) not in known]
        if missing:
            names = ", ".join(field.name for field in dataclasses.fields(cls))
            raise InputError(
                f"The method '{cls.name}' has no {missing[0]}: leave it out, or choose among its "
                f"settings: {names}."
            )
        return cls.known(num_draws=USUAL_DRAWS) | known


@dataclass(frozen=True, kw_only=True)
class Method(Algorithm):
    """Base of all that sample or train the posterior they are given; a subclass has `_run`,
    and perhaps `prepared`."""

    reads_disk: ClassVar[bool] = False
    """Whether inputs may stay on disk: see `credence.density.stored_rows`."""
    streams: ClassVar[bool] = False
    """Whether its draws may be averaged as they come: see `run_averaged`."""

    def run(
        self,
        key: PRNGKeyArray | int,
        posterior: Posterior,
        *,
        folder: str | Path | None = None,
        progress: Progress | None = None,
        max_seconds: float | None = None,
    ) -> Ensemble:
        """Sample (or train) and return the ensemble; arguments and errors as of `Algorithm.run`."""
        posterior, key, seed = self._opened(key, posterior, max_seconds)
        driver = self._driver(key, posterior, folder, progress, max_seconds)
        start = time.perf_counter()
        with CompileClock() as clock:
            with driver:
                drawn = self._run(key, posterior, driver)
            ensemble = self._ensemble(posterior, drawn, driver, seed)
        seconds = time.perf_counter() - start
        cost = measured_cost(driver.results.values(), posterior, seconds, clock.seconds)
        return replace(ensemble, cost=cost)

    def run_averaged(
        self,
        key: PRNGKeyArray | int,
        posterior: Posterior,
        x: Float[Any, "point *feature"],
        y: Any = None,
        *,
        others: Float[Any, "other *input"] | None = None,
        folder: str | Path | None = None,
        progress: Progress | None = None,
        max_seconds: float | None = None,
    ) -> AveragedPredictions:
        """Sample, and keep averages of the predictions at the rows of x in place of the networks.

        Memory does not grow with the number of draws.

        Args:
            x, y: rows to predict, as the network sees them, and their truths where there are any.
            others: further rows without truths, such as images of no known class; predictions there
                are in `others` of the result, and count in no score.
        Other arguments as of `run`.
        Raises:
            InputError: for a method that needs its draws, or rows that do not fit the data.
        """
        self._check_stream()
        posterior, key, seed = self._opened(key, posterior, max_seconds)
        stream = average_stream(posterior, x, y, others)
        driver = self._driver(key, posterior, folder, progress, max_seconds, stream)
        start = time.perf_counter()
        with CompileClock() as clock, driver:
            drawn = self._run(key, posterior, driver)
        seconds = time.perf_counter() - start
        found = AveragedPredictions(
            driver.kept,
            posterior.model,
            stream.has_truths,
            measured_cost(driver.results.values(), posterior, seconds, clock.seconds),
            self._provenance(posterior, drawn, driver, seed),
            drawn.scalars,
        )
        return found if others is None else found.apart(len(x))

    def _check_stream(self) -> None:
        """Refuse to average the draws where the method needs them."""
        if not self.streams:
            raise InputError(
                f"'{self.name}' needs its draws, and cannot average predictions as they come: use "
                "run(), or a method that can, such as 'sgld' or 'sghmc'."
            )

    def _opened(
        self, key: PRNGKeyArray | int, posterior: Posterior, max_seconds: float | None
    ) -> tuple[Posterior, PRNGKeyArray, int | None]:
        """The posterior that is sampled, the key, and the seed it came from; refuses bad input."""
        require_own_process()
        time_limit(max_seconds)  # refuses what is none
        if not (self.reads_disk or posterior.data.rows.in_memory):
            raise InputError(
                f"The inputs lie on disk, and '{self.name}' wants them in memory: use a method "
                "that reads them in chunks (`credence methods` says which do), or pass an array of "
                "some rows."
            )
        forget_programs()
        seed = int(key) if isinstance(key, int | np.integer) else None
        return self.prepared(posterior), as_key(key), seed

    def _driver(
        self,
        key: PRNGKeyArray,
        posterior: Posterior,
        folder: str | Path | None,
        progress: Progress | None,
        max_seconds: float | None,
        stream: AverageStream | None = None,
    ) -> Driver:
        """What runs the phases."""
        kept: dict[str, Any] = {}
        if stream is not None:
            kept["averaged_at"] = rows_fingerprint(stream.data)
            kept["has_truths"] = stream.has_truths
        return Driver(
            None if folder is None else Path(folder),
            progress=progress or NoProgress(),
            monitor=function_monitor(posterior),
            max_seconds=time_limit(max_seconds),
            stream=stream,
            identity=self._identity(key, posterior) | kept,
        )

    def _ensemble(
        self, posterior: Posterior, drawn: Drawn, driver: Driver, seed: int | None = None
    ) -> Ensemble:
        """Draws as something that predicts; its cost is that of the phases so far."""
        model, params = members(posterior, drawn)
        return Ensemble(
            model=model,
            params=params,
            cost=measured_cost(driver.results.values(), posterior, 0.0, 0.0),
            provenance=self._provenance(posterior, drawn, driver, seed),
            num_features=feature_shape(posterior.data),
            num_targets=num_targets(posterior.data),
            is_chain=self.is_chain,
            weights=drawn.weights,
            scalars=drawn.scalars,
        )

    def _provenance(
        self, posterior: Posterior, drawn: Drawn, driver: Driver, seed: int | None
    ) -> Provenance:
        """Say where the result comes from."""
        return Provenance(
            self.name,
            dataclasses.asdict(self),
            seed,
            fingerprint(posterior),
            driver.stopped,
            found=dict(drawn.found),
        )

    def _identity(self, key: PRNGKeyArray, posterior: Posterior) -> dict[str, Any]:
        """What a checkpoint folder belongs to, as JSON data."""
        parts = (posterior.model.network, posterior.model.prior, posterior.model.likelihood)
        return {
            "method": self.name,
            **dataclasses.asdict(self),
            "key": np.asarray(jax.random.key_data(key)).tolist(),
            "model": [{"description": ""} | to_identity(part) for part in parts],
            "data": fingerprint(posterior),
        }

    def prepared(self, posterior: Posterior) -> Posterior:
        """The posterior that is sampled in place of the one given; a method may want another.

        Raises:
            InputError: where the method cannot sample this one, before anything is compiled.
        """
        return posterior

    def draw(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        """Draw inside another method: the same draws as `run`, as phases of a driver that is open.

        The caller opens a part of its run, where these phases have names of their own:

            with driver.part("calibrate", cost_class="calibrate", budget_share=0.3):
                drawn = PCN(num_draws=100).draw(key, posterior, driver)
        """
        return self._run(key, self.prepared(posterior), driver)

    @abstractmethod
    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        """The algorithm, on the prepared posterior."""


def from_fields(cls: type[Any], values: Mapping[str, Any], *, is_saved: bool = False) -> Any:
    """A dataclass from what `dataclasses.asdict` made of it; nested ones are those of defaults.

    Args:
        is_saved: see `Algorithm.from_settings`.
    """
    fields = {field.name: field for field in dataclasses.fields(cls)}
    given = {
        name: from_fields(type(fields[name].default), value, is_saved=is_saved)
        if isinstance(value, dict)
        else _frozen(value)
        for name, value in values.items()
    }
    return _of_those_read(cls, given) if is_saved else cls(**given)


def _of_those_read(cls: type[Any], given: dict[str, Any]) -> Any:
    """A dataclass of those settings that something reads."""
    try:
        return cls(**given)
    except UnreadSetting as refused:
        others = {name: value for name, value in given.items() if name != refused.name}
        return _of_those_read(cls, others)


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


def fingerprint(posterior: Posterior) -> str:
    """SHA-256 of the data (x, y, weight), first 16 hex digits; of x on disk, of some rows."""
    return rows_fingerprint(posterior.data)


def rows_fingerprint(data: Data) -> str:
    """SHA-256 of rows, as `fingerprint`."""
    digest = hashlib.sha256(data.rows.fingerprint())
    for array in jax.tree.leaves(data._replace(x=None)):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
