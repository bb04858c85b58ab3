"""Models as plain data and back: a saved model is read without running code from the file."""

import re
from dataclasses import fields, is_dataclass
from typing import Any

from credence.errors import InputError
from credence.models import priors, relevance
from credence.models.likelihoods import labels, noisy_argmax, numbers
from credence.models.networks import encodings, linearized, residual, variable_depth, wrappers
from credence.models.networks import mlp as networks
from credence.schema import build

_KNOWN: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        encodings.Logarithmic,
        encodings.PiecewiseLinear,
        linearized.Linearized,
        networks.MLP,
        residual.ResNet,
        priors.Gaussian,
        priors.HierarchicalGamma,
        priors.TraceClass,
        relevance.Relevance,
        labels.Bernoulli,
        labels.Categorical,
        numbers.HeteroscedasticNormal,
        numbers.HeteroscedasticStudentT,
        numbers.Normal,
        numbers.StudentT,
        noisy_argmax.NoisyArgmax,
        variable_depth.VariableDepthMLP,
        wrappers.LeadingInputs,
        wrappers.PerAction,
    )
}

_ADDRESS = re.compile(r"(?: at )?\b0x[0-9a-fA-F]+")


def to_spec(part: Any) -> dict[str, Any]:
    """A network, prior or likelihood as JSON data; one from outside is only named."""
    name = type(part).__name__
    if _KNOWN.get(name) is type(part) and is_dataclass(part):
        settings = {field.name: getattr(part, field.name) for field in fields(part)}  # type: ignore[arg-type]
        return {
            "type": name,
            **{key: to_spec(v) if _is_part(v) else v for key, v in settings.items()},
        }
    return {"type": "external", "description": repr(part)}


def _is_part(value: Any) -> bool:
    """Whether a setting is a part by itself; networks from outside may be of any class."""
    return is_dataclass(value) or isinstance(value, networks.Network)


def to_identity(part: Any) -> dict[str, Any]:
    """Return what tells a part from others, as JSON data that is the same in every process.

    Of one from outside: its class, and its `repr` without addresses in memory.
    """
    spec = to_spec(part)
    if spec["type"] == "external":
        kind, text = type(part), _ADDRESS.sub("", spec["description"])
        return spec | {"class": f"{kind.__module__}.{kind.__qualname__}", "description": text}
    nested = {key: getattr(part, key) for key, value in spec.items() if isinstance(value, dict)}
    return spec | {key: to_identity(each) for key, each in nested.items()}


def from_spec(spec: dict[str, Any]) -> Any:
    """The part that `to_spec` described.

    Raises:
        InputError: for a part from outside Credence, which its owner must pass again.
        ValueError: for settings that the part does not take.
    """
    settings = {k: from_spec(v) if isinstance(v, dict) else v for k, v in spec.items()}
    name = str(settings.pop("type", None))
    if name not in _KNOWN:
        raise InputError(
            f"The file describes a part that is not Credence's own ({settings!s:.200}). Pass the "
            "same again when loading: load(path, network=..., prior=..., likelihood=...)."
        )
    try:
        return build(_KNOWN[name], settings, name)
    except InputError as error:
        raise ValueError(f"{name}: {error}") from error


def own_or_given(spec: dict[str, Any], given: Any = None) -> Any:
    """The prior or likelihood that `to_spec` described; one from outside is the one given.

    Raises:
        InputError: where none is given that is needed, or it is another one by its `repr`.
    """
    if given is None or spec["type"] != "external":
        return from_spec(spec)
    found, described = (_ADDRESS.sub("", text) for text in (repr(given), spec["description"]))
    if found != described:
        raise InputError(f"The file was written with {described:.200}, and {found:.200} is given.")
    return given


def network_from_spec(spec: dict[str, Any], network: Any = None) -> Any:
    """The network that `to_spec` described, or the one given in its place.

    A network around another one (linearised, of the first inputs, per action) may be given by the
    one inside.
    """
    if network is None:
        return from_spec(spec)
    if "network" not in spec or isinstance(network, _KNOWN.get(spec["type"], object)):
        return network
    return from_spec(spec | {"network": network_from_spec(spec["network"], network)})
