"""Models as plain data and back."""

import json

import pytest

from credence.errors import InputError
from credence.models import (
    MLP,
    Bernoulli,
    Categorical,
    Gaussian,
    HeteroscedasticNormal,
    HeteroscedasticStudentT,
    HierarchicalGamma,
    Logarithmic,
    NoisyArgmax,
    Normal,
    PiecewiseLinear,
    Relevance,
    ResNet,
    StudentT,
    TraceClass,
)
from credence.models.networks.linearized import Linearized
from credence.models.networks.variable_depth import VariableDepthMLP
from credence.models.networks.wrappers import LeadingInputs, PerAction
from credence.models.saved import from_spec, network_from_spec, to_identity, to_spec

PARTS = [
    MLP(3, hidden=(7, 5), activation="relu"),
    MLP(1, hidden=()),
    VariableDepthMLP(1, hidden=(4, 4)),
    ResNet(3, 4, (1, 2), norm="group"),
    Linearized(MLP(2, hidden=(3,))),
    LeadingInputs(MLP(2, hidden=(3,)), 4),
    PerAction(LeadingInputs(MLP(1), 2)),
    PiecewiseLinear(MLP(1, (4,)), ((0.0, 0.5, 1.0), ()), 1.0),
    Logarithmic(MLP(1, (4,)), ((0.0, 0.5, 1.0, 2.0), ())),
    Gaussian("unit", 2.0, 0.5),
    TraceClass(3.0, 0.5, True, True),
    HierarchicalGamma(3.0, 1.0, "all", "unit"),
    Relevance(2.0, 3.0, 1.0, "unit"),
    Normal(0.1),
    Normal(None, 2.0),
    HeteroscedasticNormal(),
    HeteroscedasticStudentT(5.0),
    StudentT(5.0, 0.3),
    Bernoulli(),
    Categorical(2.0),
    NoisyArgmax(0.1),
]


@pytest.mark.parametrize("part", PARTS, ids=repr)
def test_parts_survive_json(part: object) -> None:
    assert from_spec(json.loads(json.dumps(to_spec(part)))) == part


def test_every_part_of_ours_is_known() -> None:
    from credence.models.saved import _KNOWN

    tried = {type(part) for part in PARTS}
    assert tried == set(_KNOWN.values()), "add one of each new kind to PARTS, above"


def test_parts_from_outside_are_named_and_asked_for() -> None:
    class MLP:  # the name alone does not make it ours
        def __repr__(self) -> str:
            return "theirs"

    spec = to_spec(MLP())
    assert spec == {"type": "external", "description": "theirs"}
    with pytest.raises(InputError, match=r"theirs.*Pass the same again when loading"):
        from_spec(spec)


def test_parts_from_outside_are_told_apart_by_class_and_settings() -> None:
    """But not by where they lie in memory, which differs from process to process."""

    class Wide:
        def __init__(self, width: int) -> None:
            self.width, self.activation = width, object()

        def __repr__(self) -> str:
            return f"Net({self.width}, {self.activation!r})"

        init = apply = fan_in = __repr__

    class Deep(Wide):
        pass

    assert to_identity(Wide(3)) == to_identity(Wide(3))
    assert "0x" not in str(to_identity(Wide(3)))
    assert to_identity(Wide(3)) != to_identity(Wide(4))
    assert to_identity(Wide(3)) != to_identity(Deep(3))
    nested = to_identity(LeadingInputs(Wide(3), 2))
    assert nested == to_identity(LeadingInputs(Wide(3), 2))
    assert nested != to_identity(LeadingInputs(Deep(3), 2))
    assert to_identity(MLP(1)) == to_spec(MLP(1))


def test_a_given_network_takes_the_place_of_its_description() -> None:
    network = MLP(2)
    spec = {"type": "Linearized", "network": {"type": "external", "description": "theirs"}}
    assert network_from_spec(spec, network) == Linearized(network)
    assert network_from_spec(spec, Linearized(network)) == Linearized(network)
    assert network_from_spec(to_spec(MLP(1)), network) == network
    nested = {"type": "Linearized", "network": to_spec(LeadingInputs(MLP(1), 3))}
    assert network_from_spec(nested, network) == Linearized(LeadingInputs(network, 3))
    with pytest.raises(InputError, match="theirs"):
        network_from_spec(spec)
