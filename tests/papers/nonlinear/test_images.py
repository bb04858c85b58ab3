"""Images as they are, not as vectors: each channel standardised."""

import numpy as np
import pytest

from credence.compare.cell import build_network
from credence.compare.encodings import channels
from credence.compare.sources import ImageSource
from credence.compare.specs import ModelSpec, RowLimits
from credence.methods.minibatch_steps import USUAL_FRICTION
from credence.models import MLP, ResNet
from credence_papers.nonlinear.images import CIFAR10, CIFAR10_RESNET20, CIFAR10_SMALL


def test_channels_are_centred_whatever_the_number_of_pixels() -> None:
    """Single precision alone would lose the sum of so many: 2^25 pixels of 200 or so."""
    x = np.full((2**15, 32, 32, 1), 200, np.uint8)
    x[:, ::2] = 202
    train, test = channels(x, x[:2])
    assert train.dtype == np.float32
    np.testing.assert_allclose(np.unique(train), [-1, 1], atol=1e-4)
    np.testing.assert_array_equal(test, train[:2])


def test_networks_by_name() -> None:
    assert build_network(ModelSpec(network="resnet20"), 10) == ResNet.of_depth(20, 10)
    half = ModelSpec(network="resnet20", dtype="bfloat16")
    assert build_network(half, 10) == ResNet.of_depth(20, 10, dtype="bfloat16")
    assert build_network(ModelSpec(hidden=(3,)), 1) == MLP(1, (3,))


def test_the_small_experiment_has_two_chains_for_a_particle_and_its_partner() -> None:
    cells = CIFAR10_SMALL.cells("laptop")
    assert [each.label for each in cells] == [each.label for each in CIFAR10.methods]
    for each in cells:
        assert each.source == ImageSource(name="cifar10", as_vectors=False, shrink=2)
        assert each.model == ModelSpec(network="resnet8")
        assert each.rows == RowLimits(train=10_000, test=10_000)
    chains = {"sghmc": 8, "sgld": 8, "nonlinear_sgld": 4}
    samplers = [each for each in cells if each.method in chains]
    assert len(samplers) == 7
    for each in samplers:
        longer = 2 if each.label.endswith("as many networks)") else 1
        steps_per_pass = -(-10_000 // each.settings["batch_size"])
        assert each.settings["num_chains"] == chains[each.method] / longer
        assert each.settings["thinning"] == longer * steps_per_pass
        assert steps_per_pass == 79
        assert each.settings["num_warmup"] == 10 * longer * steps_per_pass
        assert each.settings["training"] == {"max_epochs": 20}
        drift = each.settings["step_size"] / 2  # of Langevin; with friction it is s^2 / friction
        if each.method == "sghmc":
            drift = each.settings["step_size"] ** 2 / USUAL_FRICTION
        assert drift == pytest.approx(0.2 * 128 / 10_000)
    of_own_rows = [each.settings for each in cells if "potential_rows" in each.settings]
    assert [(each["potential_rows"], each["synchronous"]) for each in of_own_rows] == [
        (2048, True)
    ] * 2
    assert cells[0].settings == {"num_members": 8, "training": {"max_epochs": 40}}
    assert [each.name for each in CIFAR10_SMALL.cells("paper")] == [each.name for each in cells]


def test_the_experiment_for_a_gpu_sees_all_images_in_half_precision() -> None:
    for each in CIFAR10_RESNET20.cells("paper"):
        assert each.model == ModelSpec(network="resnet20", dtype="bfloat16")
        assert each.rows == RowLimits()
    early = [
        each.settings for each in CIFAR10_RESNET20.cells("laptop") if "thinning" in each.settings
    ]
    assert {each["num_warmup"] / -(-50_000 // each["batch_size"]) for each in early} == {4, 8}
    assert {each["num_draws"] * each["thinning"] for each in early} == {4 * 196, 8 * 196}
