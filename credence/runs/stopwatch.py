"""Measure how long the parts of a command take, by the clock on the wall."""

import time
from collections.abc import Mapping


class Stopwatch:
    """Counts seconds, one lap after another; laps of one name add up."""

    def __init__(self) -> None:
        self._lap_began = time.perf_counter()
        self.laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """End a lap and begin the next."""
        now = time.perf_counter()
        self.laps[name] = self.laps.get(name, 0.0) + now - self._lap_began
        self._lap_began = now

    def seconds(self, phases: Mapping[str, float]) -> dict[str, float]:
        """The laps and, in the place of the lap "fit", the phases that a method counted itself.

        What the fit took beside its phases is in "other"; "total" is the sum. Phases of a resumed
        run count what they took before, too.
        """
        laps = dict(self.laps)
        beside = max(0.0, laps.pop("fit", 0.0) - sum(phases.values()))
        before = {name: laps.pop(name) for name in ("start", "read") if name in laps}
        parts = {**before, **phases, "other": phases.get("other", 0.0) + beside, **laps}
        parts["total"] = sum(parts.values())
        return {name: round(value, 3) for name, value in parts.items()}
