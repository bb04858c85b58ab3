"""The origin of an ensemble: method, settings, seed, data and versions."""

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from credence.storage import jsonable


@dataclass(frozen=True)
class Provenance:
    """The origin of an ensemble: enough to make it again."""

    method: str
    settings: dict[str, Any]
    seed: int | None
    data_fingerprint: str
    stopped: str = "finished"
    """"finished", or why there are fewer draws than asked for: "time" or "interrupt"."""
    versions: dict[str, str] = field(default_factory=lambda: package_versions())
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    found: dict[str, Any] = field(default_factory=dict)
    """Choices and notes of the run itself; ready for JSON."""

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON data; NumPy's numbers among the settings are plain ones."""
        return asdict(self) | {"settings": jsonable(self.settings)}


def package_versions() -> dict[str, str]:
    """Look up the versions of what the draws depend on."""
    names = ("credence", "jax", "jaxlib", "blackjax", "optax", "numpy", "scikit-learn")
    return {name: version(name) for name in names}
