"""What a person sees while a run goes on."""

import io

import numpy as np
import pytest
from rich.console import Console

from credence.engine.progress import Monitor, NoProgress, Progress, RichProgress
from credence.methods.monitor import convergence_words


@pytest.fixture
def screen():
    return io.StringIO()


@pytest.fixture
def progress(screen):
    console = Console(file=screen, width=140, force_terminal=False)
    return RichProgress(console, seconds_between_checks=0.0)


def block(seed: int, divergent: int = 0):
    """Draws (2 chains, 50 draws, 3 weights) and their info."""
    draws = np.random.default_rng(seed).normal(size=(2, 50, 3)).astype(np.float32)
    is_divergent = np.zeros((2, 50))
    is_divergent.flat[:divergent] = 1.0
    return draws, {"acceptance_rate": np.full((2, 50), 0.83), "is_divergent": is_divergent}


def test_a_phase_ends_as_one_line_with_what_matters(progress, screen):
    monitor = Monitor(lambda draws: draws[..., :2], convergence_words)
    with progress.phase("sample", num_draws=100, monitor=monitor) as line:
        for seed in range(2):
            line.advance(50)
            line.show(*block(seed, divergent=3))
    assert len(screen.getvalue().strip().splitlines()) == 1
    for words in ("sample", "100%", "acceptance 0.83", "divergent 6", "R-hat 1.0", "ESS "):
        assert words in screen.getvalue()


def test_r_hat_tells_chains_that_disagree(progress, screen):
    monitor = Monitor(lambda draws: draws[..., :1], convergence_words)
    draws, info = block(0)
    draws[1] += 10.0
    with progress.phase("sample", num_draws=50, monitor=monitor) as line:
        line.show(draws, info)
    shown = screen.getvalue().split("R-hat ")[1].split()[0]
    assert float(shown) > 1.5


@pytest.mark.parametrize(
    ("num_chains", "num_draws", "spread", "words"),
    [
        (1, 50, 1.0, "ESS "),
        (2, 3, 1.0, "3 draws per chain cannot be judged"),
        (2, 50, 0.0, "the chains did not move"),
    ],
)
def test_what_is_not_known_of_chains_is_left_out(
    num_chains: int, num_draws: int, spread: float, words: str
):
    """One chain has no R-hat; where nothing is known, the line says why."""
    normal = np.random.default_rng(0).normal(size=(num_chains, num_draws, 3))
    found = convergence_words(spread * normal)
    assert words in found
    assert "R-hat" not in found


def test_training_shows_its_loss_and_needs_no_draws(progress, screen):
    monitor = Monitor(lambda draws: pytest.fail("there are no draws to look at"), str)
    with progress.phase("train", num_draws=4, monitor=monitor) as line:
        line.advance(4)
        line.show(np.zeros((2, 0, 3)), {"loss": np.array([[3.0, 1.0], [2.0, 2.0]])})
    assert "loss 1.500" in screen.getvalue()


def test_a_resumed_phase_starts_where_it_was(progress, screen):
    with progress.phase("sample", num_draws=100, done=60):
        pass
    assert "60%" in screen.getvalue()


def test_surplus_draws_do_not_show_more_than_everything(progress, screen):
    with progress.phase("sample", num_draws=100, done=80) as line:
        line.advance(40)
    assert "100%" in screen.getvalue()


def test_sentences_are_shown(progress, screen):
    progress.say("Stopping after this block.")
    assert "Stopping after this block." in screen.getvalue()


def test_no_progress_shows_nothing(capsys):
    silent = NoProgress()
    with silent.phase("sample", 10) as line:
        line.advance(10)
        line.show(*block(0))
    silent.say("nothing")
    assert capsys.readouterr() == ("", "")


def test_a_phase_of_unknown_length_shows_its_temperature(progress, screen):
    info = {"temperature": np.full((4, 1), 0.125), "acceptance_rate": np.full((4, 1), 0.75)}
    with progress.phase("temper", None) as line:
        line.advance(1)
        line.show(np.zeros((4, 1, 2)), info)
        line.finish()
    for words in ("temper", "temperature 0.12", "acceptance 0.75", "100%"):
        assert words in screen.getvalue()


def test_both_are_progress_and_neither_is_the_other(progress):
    assert isinstance(progress, Progress)
    assert isinstance(NoProgress(), Progress)
    assert not isinstance(progress, NoProgress)


def test_a_monitor_sees_all_draws_so_far(progress, screen):
    seen = []
    monitor = Monitor(lambda draws: draws[..., :1], lambda found: seen.append(found) or "fine")
    with progress.phase("sample", num_draws=100, monitor=monitor) as line:
        for seed in range(2):
            line.show(*block(seed))
    assert [found.shape for found in seen] == [(2, 50, 1), (2, 100, 1)]
    assert "fine" in screen.getvalue()
