"""What all that sample or train a posterior share: `run`, and the way to an `Ensemble`.

A `Method` is an `Algorithm` that turns a posterior into an ensemble. `run` opens the driver and
hands over to the method's `_run`, which calls `driver.phase(...)` for its phases and returns draws;
`draw` does the same inside another method. A subclass gives `_run`, and `prepared` where it samples
another posterior than the one it is given.
"""

import dataclasses
import hashlib
import time
from abc import abstractmethod
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
from credence.ensembles.provenance import Provenance
from credence.environment import require_own_process
from credence.errors import InputError, time_limit
from credence.methods.algorithm import Algorithm
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
    """SHA-256 of the data (x, y, weight, perhaps groups), first 16 hex digits; of x on disk, of
    some rows."""
    found = rows_fingerprint(posterior.data)
    if posterior.groups is None:
        return found
    return hashlib.sha256(found.encode() + posterior.groups.tobytes()).hexdigest()[:16]


def rows_fingerprint(data: Data) -> str:
    """SHA-256 of rows, as `fingerprint`."""
    digest = hashlib.sha256(data.rows.fingerprint())
    for array in jax.tree.leaves(data._replace(x=None)):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
