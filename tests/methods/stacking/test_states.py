"""These tests hold which values seem to be states of their own."""

import numpy as np
import pytest

from credence.methods.stacking.states import inputs_with_states

NUM_ROWS, NOISE = 10_000, 0.3
SMOOTH = {
    "line": lambda rank: 3 * rank,
    "wave": lambda rank: np.sin(6 * rank),
    "steep": lambda rank: 20 * rank,
}


def table(num_values: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs: a number, an input whose values repeat, and another; and the noise."""
    rng = np.random.default_rng(seed)
    repeated = [rng.integers(0, num_values, NUM_ROWS) for _ in range(2)]
    x = np.stack([rng.normal(size=NUM_ROWS), *repeated], axis=1)
    return x, 0.5 * x[:, 0] + NOISE * rng.normal(size=NUM_ROWS)


@pytest.mark.parametrize("num_values", [70, 633, 1000])
def test_states_are_found_up_to_all_values_that_may_have_knots(num_values: int) -> None:
    """They are found in the input that has them, and in no other."""
    x, y = table(num_values)
    y += np.random.default_rng(1).normal(size=num_values)[x[:, 1].astype(int)]
    assert inputs_with_states(x, y, np.ones(NUM_ROWS), {1, 2}) == {1}


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("num_values", [70, 633])
def test_smooth_functions_are_no_states(name: str, num_values: int) -> None:
    x, y = table(num_values)
    y += SMOOTH[name](x[:, 1] / num_values)
    assert inputs_with_states(x, y, np.ones(NUM_ROWS), {1, 2}) == frozenset()


def test_outliers_do_not_hide_states() -> None:
    x, y = table(200)
    y += np.random.default_rng(1).normal(size=200)[x[:, 1].astype(int)]
    y[:20] += 300.0
    assert inputs_with_states(x, y, np.ones(NUM_ROWS), {1}) == {1}


def test_rows_without_weight_say_nothing() -> None:
    """States of rows that stand for no observation are none."""
    x, y = table(200)
    weight = np.where(np.arange(NUM_ROWS) % 2, 1.0, 0.0)
    y += np.random.default_rng(1).normal(size=200)[x[:, 1].astype(int)] * (weight == 0)
    assert inputs_with_states(x, y, weight, {1}) == frozenset()
    assert inputs_with_states(x, y, 1 - weight, {1}) == {1}
    assert inputs_with_states(x, y, 0 * weight, {1}) == frozenset()
    assert inputs_with_states(x, y, weight, set()) == frozenset()
