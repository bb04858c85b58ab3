"""Simulated and derived data sets: the equations they claim, and facts of the real files."""

import numpy as np
import pytest
from tools.data_folder import needs_data
from tools.exact import assert_mean

from credence import datasets
from credence.datasets.prepared.digits import principal_components, principal_digits
from credence.datasets.prepared.inverse_rl import halfcheetah, mountain_car, move
from credence.datasets.prepared.simulated import spiral, xor
from credence.errors import InputError


def test_spiral_without_noise_lies_on_its_arms():
    """The radius to the power 1/p is uniform, and so is the angle; the arms are point-symmetric."""
    x, y = spiral(20_000, noise_std=0.0, radius=3.0, power=0.5)
    assert x.shape == (40_000, 2)
    assert np.bincount(y).tolist() == [20_000, 20_000]
    for label in (0, 1):
        arm = x[y == label] * (1 - 2 * label)
        uniform = (np.hypot(*arm.T) / 3.0) ** 2
        angle = np.arctan2(arm[:, 1], arm[:, 0]) % (2 * np.pi)
        turn = (angle / (2 * np.pi)) ** 2
        for part in (uniform, turn):
            assert_mean(part, 0.5, resolution=0.005)
            assert_mean((part - 0.5) ** 2, 1 / 12, resolution=0.001)


def test_xor_has_the_published_clouds():
    x, y = xor(10_000, variance=0.005)  # no point crosses an axis
    assert np.bincount(y).tolist() == [20_000, 20_000]
    corner = np.sign(x)
    assert np.all((corner[:, 0] == corner[:, 1])[y == 0])
    assert_mean(x - corner / 2, 0.0, resolution=0.002)
    assert_mean((x - corner / 2) ** 2, 0.005, resolution=0.001)
    assert xor()[0].shape == (200, 2)
    for settings in ({"num_per_cloud": 0}, {"variance": 0.0}):
        with pytest.raises(InputError, match="xor needs"):
            xor(**settings)


def test_spiral_has_the_published_settings_and_the_stated_noise():
    x, y = spiral()
    assert x.shape == (1000, 2)
    clean, same = spiral(noise_std=0.0)
    np.testing.assert_array_equal(y, same)
    assert np.hypot(*clean.T).max() < 16
    assert_mean((x - clean).ravel() ** 2, 0.01, resolution=0.001)
    assert np.any(spiral(seed=1)[0] != x)
    np.testing.assert_array_equal(spiral()[0], x)


def test_the_car_moves_as_published():
    """Velocity += 0.001 (action - 1) - 0.0025 cos(3 position), within bounds."""
    velocity = 0.01 + 0.001 - 0.0025 * np.cos(-1.5)
    assert move(-0.5, 0.01, 2) == pytest.approx((-0.5 + velocity, velocity))
    assert move(-0.5, 0.2, 1) == pytest.approx((-0.43, 0.07))
    assert move(-1.19, -0.07, 0) == (-1.2, 0.0)
    assert move(0.59, 0.07, 2)[0] == 0.6


def test_the_driver_pushes_the_way_the_car_goes_and_arrives():
    x, y = mountain_car(400, keep_every=1)
    assert x.shape == (400, 3, 2)
    assert np.abs(x).max() <= 1
    states = np.array([0.9, 0.07]) * (x + 1) + np.array([-1.2, -0.07])
    states[..., 1] = 0.07 * x[..., 1]
    position, velocity = states[..., 0], states[..., 1]
    assert set(y) == {0, 2}
    np.testing.assert_allclose(velocity[:, 2] - velocity[:, 0], 0.002, atol=1e-12)
    chosen = np.arange(400), y
    arrivals = np.flatnonzero(position[chosen] >= 0.5)
    assert len(arrivals) >= 2
    same_run = np.setdiff1d(np.arange(399), arrivals)
    for step in same_run:  # each decision starts where the one before it led
        start = position[step, y[step]], velocity[step, y[step]]
        for action in range(3):
            expected = move(*start, action)
            found = position[step + 1, action], velocity[step + 1, action]
            assert found == pytest.approx(expected, abs=1e-12)
        assert y[step + 1] == (2 if start[1] >= 0 else 0)


def test_every_setting_of_the_car_changes_the_decisions():
    base = mountain_car(50)
    np.testing.assert_array_equal(mountain_car(50).x, base.x)
    for settings in ({"seed": 1}, {"keep_every": 4}, {"mistake_probability": 0.5}):
        assert np.any(mountain_car(50, **settings).x != base.x)
    careless = mountain_car(2000, keep_every=1, mistake_probability=0.3)
    assert_mean(careless.y == 1, 0.1, resolution=0.01)  # a third of the mistakes


@needs_data
def test_halfcheetah_states_follow_their_actions():
    """The six motors drive the last six velocities: over the mean of the eight actions these are
    nearly linear in the action. With actions in another order they are not."""
    x, y = halfcheetah()
    assert x.shape == (100, 8, 17)
    assert np.bincount(y).tolist() == [1, 5, 4, 16, 22, 38, 7, 7]
    assert np.abs(x).max() < 1
    arrays = datasets.load("halfcheetah_discrete_actions").arrays

    def explained(x):
        actions = np.tile(arrays["actions"] - arrays["actions"].mean(axis=0), (100, 1))
        effect = (x - x.mean(axis=1, keepdims=True))[..., 11:].reshape(800, 6)
        rest = effect - actions @ np.linalg.lstsq(actions, effect)[0]
        return 1 - (rest**2).sum() / (effect**2).sum()

    assert explained(x) > 0.85
    chosen_first = [[action, *np.delete(np.arange(8), action)] for action in y]
    assert explained(np.take_along_axis(x, np.array(chosen_first)[..., None], axis=1)) < 0.7
    low = arrays["x_test_100"][0, 0, 8]
    assert x[0, 0, 8] == pytest.approx(2 * (low + 1.5) / 9.5 - 1)


@needs_data
def test_digits_by_their_principal_components():
    digits = principal_digits(20, num_train=50)
    assert digits.x_train.shape == (50, 20)
    assert digits.x_test.shape == (2115, 20)
    assert np.bincount(digits.y_test).tolist() == [980, 1135]
    fewer = principal_digits(5, num_train=50)
    np.testing.assert_allclose(fewer.x_train, digits.x_train[:, :5], atol=1e-9)
    assert np.all(np.diff(digits.x_test.var(axis=0)[:3]) < 0)
    assert np.any(principal_digits(5, num_train=50, seed=1).x_train != fewer.x_train)
    assert fewer.x_others.shape == (0, 5)
    strangers = principal_digits(5, num_train=50, others=(8, 9))
    np.testing.assert_array_equal(strangers.x_train, fewer.x_train)
    assert strangers.x_others.shape == (974 + 1009, 5)
    every = principal_digits(3, digits=(4, 7, 1), num_train=None)
    assert np.bincount(every.y_train).tolist() == [5842, 6265, 6742]
    assert np.bincount(every.y_test).tolist() == [982, 1028, 1135]
    np.testing.assert_allclose(every.x_train.mean(axis=0), 0.0, atol=1e-9)
    with pytest.raises(InputError, match="num_train must be from 1 to 12665, got 20000"):
        principal_digits(3, num_train=20_000)


def test_principal_components_of_a_known_covariance():
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    scores = np.linalg.qr(rng.normal(size=(50, 4)) - 0.0)[0]
    scores = np.linalg.qr(scores - scores.mean(axis=0))[0] * [4.0, 3.0, 2.0, 1.0]
    x = scores @ rotation.T + 7.0
    mean, directions = principal_components(x, 3)
    np.testing.assert_allclose(mean, 7.0)
    np.testing.assert_allclose(np.abs(directions.T @ rotation[:, :3]), np.eye(3), atol=1e-10)
    assert np.all(directions[np.abs(directions).argmax(axis=0), np.arange(3)] > 0)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: spiral(0), "num_per_class >= 1.*got 0"),
        (lambda: spiral(noise_std=-1.0), "noise_std >= 0.*-1.0"),
        (lambda: mountain_car(0), "must be >= 1"),
        (lambda: mountain_car(mistake_probability=2.0), r"in \[0, 1\], got 100, 5 and 2.0"),
        (lambda: principal_digits(0), "num_components must be from 1 to 784, got 0"),
        (lambda: principal_digits(digits=(1, 1)), "different numbers from 0 to 9"),
        (lambda: principal_digits(digits=(10,)), "different numbers from 0 to 9"),
        (lambda: principal_digits(digits=(0, 1), others=(1,)), "different numbers from 0 to 9"),
    ],
)
def test_bad_settings_are_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
