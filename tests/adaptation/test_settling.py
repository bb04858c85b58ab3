"""A warm-up ends when what the chains predict no longer gets better."""

import jax.numpy as jnp
import numpy as np

from credence.adaptation.settling import WINDOW, Settling, is_better, until_settled
from credence.engine.blocks import Block
from credence.engine.phases import Adapter

ROWS = 50


def round_of(log_probs: np.ndarray) -> Block:
    return Block(states=log_probs, draws=jnp.zeros((1, 1, 1)), info={})


def adapter() -> Adapter:
    inner = Adapter(
        np.zeros(()),
        lambda memory: {"step_size": memory},
        lambda memory, block: memory + 1,
        tuned=lambda memory: {"step_size": -memory},
    )
    return until_settled(inner, lambda block: block.states, ROWS)


def windows(levels: list[float]) -> list[bool]:
    """Whether it has finished after each window of rounds at these levels."""
    settling, rows = adapter(), np.random.default_rng(0).normal(size=ROWS)
    memory, found = settling.memory, []
    for level in levels:
        for _ in range(WINDOW):
            memory = settling.update(memory, round_of(rows + level))
        found.append(settling.finished(memory))
    return found


def test_it_goes_on_while_windows_get_better() -> None:
    assert windows([0, 1, 2, 3, 4]) == [False] * 5


def test_it_ends_two_windows_after_the_best() -> None:
    assert windows([0, 1, 1, 1, 9]) == [False, False, False, True, False]
    assert windows([0, 1, -1, -3]) == [False, False, False, True]


def test_a_better_window_starts_the_count_again() -> None:
    assert windows([0, 0, 1, 1, 1]) == [False, False, False, False, True]


def test_a_window_is_the_mean_probability_of_its_rounds() -> None:
    settling = adapter()
    memory: Settling = settling.memory
    for log_prob in (-1.0, -4.0, -2.0, -3.0):
        memory = settling.update(memory, round_of(np.full(ROWS, log_prob)))
    exact = np.log(np.exp([-1.0, -4.0, -2.0, -3.0]).sum())
    np.testing.assert_allclose(memory.best, exact)
    assert memory.round == 0
    assert np.all(memory.log_sum == -np.inf)


def test_better_is_more_than_the_error_over_rows() -> None:
    rng = np.random.default_rng(1)
    gain = rng.normal(size=ROWS)
    gain = (gain - gain.mean()) / gain.std()
    error = ROWS**-0.5
    assert is_better(gain + 1.1 * error, np.zeros(ROWS))
    assert not is_better(gain + 0.9 * error, np.zeros(ROWS))
    assert is_better(np.zeros(ROWS), np.full(ROWS, -np.inf)), "the first window"
    assert not is_better(np.full(ROWS, -np.inf), np.full(ROWS, -np.inf))


def test_the_kernel_is_tuned_as_before() -> None:
    settling = adapter()
    memory = settling.update(settling.memory, round_of(np.zeros(ROWS)))
    assert settling.settings(memory) == {"step_size": 1}
    assert settling.tuned(memory) == {"step_size": -1}
