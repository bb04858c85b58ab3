"""Numbers in the sentences of docs/explanation/transdimensional.md."""

from collections.abc import Iterator

from architectures import architecture, published_rows
from faults import without_fault
from phrases import Phrase, given, made


def phrases() -> Iterator[Phrase]:
    """The phrases of the page, in its order."""
    yield from given("R-hat of the size below 1.05", "above 1.05 they have not")
    yield from of_kinds_of_jump()
    yield from of_planted_errors()
    yield from of_boston()


def of_kinds_of_jump() -> Iterator[Phrase]:
    """Tell what the warm-up found of two kinds of jump on XOR."""
    xor = architecture("transdimensional_xor", "xor")
    rate = {name: told["rate"] for name, told in xor["architecture"]["jumps"].items()}
    times = rate["informed"] / rate["plain"]
    yield made("an informed jump is accepted {:.1f} times as often as a plain one", times)
    yield made("So {:.0f} % of the jumps are plain", 100 * xor["move_probabilities"]["plain"])


def of_boston() -> Iterator[Phrase]:
    """Tell the thesis's errors on Boston, and ours."""
    rows = published_rows("transdimensional_boston")
    theirs = [row["published"]["rmse"] for row in rows]
    ours = [row["scores"]["rmse"] for row in rows]
    yield made("do not ({:.2f} to {:.2f} thousand dollars; ours", min(theirs), max(theirs))
    yield made("ours are {:.2f} to {:.2f}), nor", min(ours), max(ours))


def of_planted_errors() -> Iterator[Phrase]:
    """Bounds that the tests check, and an error that they plant."""
    yield from given("within 4.5 standard errors", "a planted factor of 0.3 nats")
    yield made("and have chi-squared {:.0f} to {:.0f} for the widths", *without_fault())
