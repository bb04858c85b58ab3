"""The page is one self-contained file, escapes all text, and says first whom not to believe."""

import io
import re
from html.parser import HTMLParser

import pytest
from rich.console import Console
from tools import experiment_samples as samples

from credence.compare.results import summarise
from credence.compare.show import terminal as show
from credence.compare.show.page import render

NASTY = ("<script>alert(1)</script>", "</svg></title><img src=x onerror=alert(2)>", "@@m0@@ & \x00")


def page(*outcomes, **about) -> str:
    labels = [outcome.cell.label for outcome in outcomes]
    experiment = samples.experiment(*labels, **about)
    return render(summarise(experiment, outcomes, size="smoke", seed=0, n_jobs=1))


class Balanced(HTMLParser):
    """Fails where tags are not balanced or ids repeat."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.feed(text)
        assert not self.open
        assert len(self.ids) == len(set(self.ids))

    def handle_starttag(self, tag, attrs) -> None:
        self.ids += [value for name, value in attrs if name == "id"]
        self.loads += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.ids += [value for name, value in attrs if name == "id"]
        self.loads += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_self_contained(task: str) -> None:
    text = page(
        samples.done("base", task=task),
        samples.done("stuck", task=task, converged=False, seconds=300),
        samples.done("net", task=task, converged=None),
        samples.failed("gone"),
    )
    loads = Balanced(text).loads
    assert all(value.startswith(("#", "data:")) for value in loads)
    assert "default-src &#x27;none&#x27;" in text
    assert text.count("<svg") == 3
    assert text.index("Compare with care") < text.index("Scores on the test rows")
    for words in ("not converged", "Unknown method &#x27;nope&#x27;.", "Published numbers"):
        assert words in text


@pytest.mark.parametrize("nasty", NASTY)
def test_text_is_escaped(nasty: str) -> None:
    text = page(
        samples.done(nasty, problem=nasty),
        samples.failed("b", error=nasty, problem=nasty),
        name=nasty,
        description=nasty,
        problem=nasty,
        reasons=(nasty,),
    )
    Balanced(text)
    assert len(re.findall("<script", text)) == 1
    assert "<img" not in text
    assert "\x00" not in text


def test_the_weights_are_those_of_the_network() -> None:
    """Two numbers kept for each weight do not count twice, even in a cell of an old version."""
    outcomes = samples.done("base"), samples.done("laplace", converged=None)
    outcomes[1].result["num_weights"] = 9
    assert "4 unknown weights" in page(*outcomes)
    for outcome in outcomes:
        outcome.result["problem"]["num_weights"] = 5
    assert "5 unknown weights" in page(*outcomes)


@pytest.mark.parametrize(
    ("converged", "asked", "words"),
    [
        (True, 500, "4 x 500, warm-up cut short"),
        (None, 1, "1 x 1, training cut short"),
        (True, 1000, "4 x 500, out of time"),
        (True, None, "4 x 500, out of time"),
    ],
)
def test_the_page_says_what_time_cut_short(converged, asked, words) -> None:
    outcome = samples.done("a", converged=converged)
    outcome.result["stopped"] = "time"
    outcome.result["settings"] = {} if asked is None else {"num_draws": asked}
    assert f">{words}<" in page(outcome, samples.done("b"))


def test_all_failed() -> None:
    text = page(samples.failed("a"), samples.failed("b"))
    Balanced(text)
    assert "Nothing could be run." in text
    assert "<svg" not in text


def test_a_terminal_tells_why_a_cell_failed() -> None:
    """The reason is a sentence beneath the table: in a column it would be a word wide."""
    error = "The chain has not moved: " + "explore for longer. " * 20
    outcomes = [samples.done("a"), samples.failed("b", error=error)]
    summary = summarise(samples.experiment("a", "b"), outcomes, size="smoke", seed=0, n_jobs=1)
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(show.results(summary))
    lines = console.export_text().splitlines()
    assert any(line.startswith("b failed: The chain has not moved: explore") for line in lines)
    assert len(lines) < 20


def test_a_terminal_of_80_columns_cuts_nothing() -> None:
    labels = ("BNN-MC-Dropout", "FBNN (SGHMC-SGHMC) with the emulator of others")
    outcomes = [samples.done(label, converged=True) for label in labels]
    summary = summarise(samples.experiment(*labels), outcomes, size="smoke", seed=0, n_jobs=1)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(show.results(summary))
    text = console.export_text()
    assert "…" not in text
    for word in ("BNN-MC-Dropout", "(SGHMC-SGHMC)", "coverage", "time, s", "R-hat", "ESS"):
        assert word in text
    assert "speed-up over" in " ".join(text.split())
    assert "Out of time" not in text


def test_a_terminal_says_what_ran_out_of_time() -> None:
    outcome = samples.done("a", converged=False)
    outcome.result["stopped"] = "time"
    summary = summarise(samples.experiment("a"), [outcome], size="smoke", seed=0, n_jobs=1)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(show.results(summary))
    assert "Out of time, with the draws it had by then: a." in console.export_text()
    assert ", out of time, not converged" in show.cell_line(outcome)


def test_missing_numbers() -> None:
    """A score that is not finite is a dash, not a crash."""
    outcome = samples.done("a")
    outcome.result["scores"] |= dict.fromkeys(("rmse", "mse", "nll", "coverage_95"))
    outcome.result.update({"ess_function": None, "ess_weights": None, "peak_memory_mib": None})
    Balanced(page(outcome))
