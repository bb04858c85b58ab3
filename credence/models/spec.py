"""Models as plain data and back: a saved model is read without running code from the file."""

from dataclasses import asdict, is_dataclass
from typing import Any

from credence.errors import InputError
from credence.models import likelihoods, networks, priors

_KNOWN: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        networks.MLP,
        priors.Gaussian,
        priors.HierarchicalGamma,
        priors.TraceClass,
        likelihoods.Bernoulli,
        likelihoods.Categorical,
        likelihoods.HeteroscedasticNormal,
        likelihoods.Normal,
        likelihoods.StudentT,
    )
}


def to_spec(part: Any) -> dict[str, Any]:
    """A network, prior or likelihood as JSON data; one from outside is only named."""
    name = type(part).__name__
    if _KNOWN.get(name) is type(part) and is_dataclass(part):
        return {"type": name, **asdict(part)}  # type: ignore[arg-type]
    return {"type": "external", "description": repr(part)}


def from_spec(spec: dict[str, Any]) -> Any:
    """The part that `to_spec` described.

    Raises:
        InputError: for a part from outside Credence, which its owner must pass again.
    """
    settings = dict(spec)
    name = settings.pop("type")
    if name not in _KNOWN:
        raise InputError(
            f"The file describes a part that is not Credence's own ({settings}): "
            "pass the same network when loading, load(path, network=...)."
        )
    return _KNOWN[name](
        **{key: tuple(v) if isinstance(v, list) else v for key, v in settings.items()}
    )
