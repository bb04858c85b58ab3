"""Images as they are, not as vectors: each channel standardised."""

import numpy as np

from credence.compare.cell import build_network
from credence.compare.problem import _channels
from credence.compare.specs import ModelSpec
from credence.models import MLP, ResNet


def test_channels_are_centred_whatever_the_number_of_pixels() -> None:
    """Single precision alone would lose the sum of so many: 2^25 pixels of 200 or so."""
    x = np.full((2**15, 32, 32, 1), 200, np.uint8)
    x[:, ::2] = 202
    train, test = _channels(x, x[:2])
    assert train.dtype == np.float32
    np.testing.assert_allclose(np.unique(train), [-1, 1], atol=1e-4)
    np.testing.assert_array_equal(test, train[:2])


def test_networks_by_name() -> None:
    assert build_network(ModelSpec(network="resnet20"), 10) == ResNet.of_depth(20, 10)
    assert build_network(ModelSpec(hidden=(3,)), 1) == MLP(1, (3,))
