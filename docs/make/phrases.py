"""Numbers in sentences: words of a page whose numbers are made from the results, or are given.

A page may have a module in `docs/make/phrase_book/`, such as `results_multilevel` for
docs/results/multilevel.md, whose `phrases()` lists them.
`python docs/make/pages.py` writes the numbers that have changed into the sentences. The words
around them may have to change too: it names the pages that it has written.
"""

import importlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

BOOK = Path(__file__).parent / "phrase_book"
NUMBER = r"[-−]?(?:\d{1,3}(?:[,\u00a0\u202f ]\d{3})+|\d*\.\d+|\d+)(?:e[-−]?\d+)?"
"""A number as a page writes it, such as -0.5, 1 234, .91 or 3.1e−6."""
MEASURED = re.compile(
    r"[-−]?\d*\.\d+(?:e[-−]?\d+)?"
    r"|\d[\d,]*(?= ?%| (?:times\b|seconds\b|s\b|ms\b|minutes\b|hours\b|nats\b|MiB\b|GiB\b))"
)
"""A number that looks measured: it has a decimal point, or a unit."""
NOT_PROSE = (
    re.compile(r"<!-- made: .*?<!-- end -->", re.DOTALL),
    re.compile(r"^( *)(```|~~~|:::).*?^\1\2", re.DOTALL | re.MULTILINE),
    re.compile(r"^---\n.*?^---$", re.DOTALL | re.MULTILINE),
    re.compile(r"^ {4,}\S.*$", re.MULTILINE),
    re.compile(r"`[^`\n]+`|\$[^$]+\$"),
    re.compile(r"(?<=\])\([^)\s]*\)|^\[[^\]]+\]: .*$", re.MULTILINE),
    re.compile(
        r"\b(?:algorithms?|tables?|figures?|sections?|equations?|theorem)\s\(?[\d.]+", re.IGNORECASE
    ),
    re.compile(r"\(\d+\.\d+\)|\b95 %|!\[[^\]]*\]"),
    re.compile(r"\balpha (?:= )?\d\.\d(?:(?:, | and )\d\.\d)*"),
    re.compile(r"\b(?:Python|JAX)\s\d+(?:\.\d+)+|\bApache-2\.0\b"),
)
"""Parts that are made already, code, formulas, targets of links, places in a paper, the level of
intervals, the decay of a prior, and versions."""


@dataclass(frozen=True)
class Phrase:
    """Words of a page, as they stand there but for line breaks.

    Args:
        words: with {} or a format such as {:.2f} in the place of each number that is made.
        values: these numbers. Without any the numbers of the phrase are given: a setting, a
            published number, or arithmetic that the sentence shows.
        is_kept: False where they were measured and no results are kept.
    """

    words: str
    values: tuple[Any, ...] = ()
    is_kept: bool = True

    def numbers(self) -> list[str]:
        """The numbers as the page should write them."""
        forms = re.findall(r"\{[^}]*\}", self.words)
        assert len(forms) == len(self.values), self.words
        try:
            return [form.format(value) for form, value in zip(forms, self.values, strict=True)]
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.words}: {error}") from error

    def found(self, text: str) -> re.Match[str]:
        """Find the phrase in a page, wherever lines end, with any numbers in the places of those
        made."""
        pieces = [re.escape(piece) for piece in re.split(r"\{[^}]*\}", self.words)]
        pattern = f"({NUMBER})".join(pieces) if self.values else pieces[0]
        places = list(re.finditer(re.sub(r"(?:\\ )+", r"\\s+", pattern), text))
        if len(places) != 1:
            raise LookupError(f"Stands {len(places)} times: {self.words}")
        return places[0]


def made(words: str, *values: Any) -> Phrase:
    """A phrase whose numbers are made from results."""
    assert values
    return Phrase(words, values)


def given(*words: str) -> Iterator[Phrase]:
    """Phrases whose numbers are settings, are published, or follow by arithmetic."""
    return map(Phrase, words)


def unkept(*words: str) -> Iterator[Phrase]:
    """Phrases whose numbers were measured in runs of which no results are kept.

    There should be fewer of them, and never more: `tests/docs/test_pages.py` lists them all.
    """
    return (Phrase(each, is_kept=False) for each in words)


def share(value: float, digits: int = 3) -> str:
    """Write a share without a zero before the point."""
    return f"{value:.{digits}f}".removeprefix("0")


def ends(values: Iterable[float]) -> tuple[float, float]:
    """Find the least and the largest value."""
    values = tuple(values)
    return min(values), max(values)


@cache
def phrases_of(name: str) -> list[Phrase]:
    """The phrases of a page, by its path such as docs/results/multilevel.md."""
    module = Path(name).with_suffix("").as_posix().removeprefix("docs/").replace("/", "_")
    if not (BOOK / f"{module}.py").exists():
        return []
    return list(importlib.import_module(f"phrase_book.{module}").phrases())


def rewritten(text: str, phrases: list[Phrase]) -> str:
    """The text of a page with the numbers of its phrases made again."""
    for phrase in phrases:
        place = phrase.found(text)
        for index, number in reversed(list(enumerate(phrase.numbers(), start=1))):
            start, end = place.span(index)
            text = text[:start] + number + text[end:]
    return text


def untraced(
    text: str, phrases: list[Phrase], *, besides: tuple[re.Pattern[str], ...] = ()
) -> list[str]:
    """Numbers of a page that look measured and stand in no phrase, each with words around it.

    Args:
        besides: further parts of the page that may have such numbers.
    """
    covered = [phrase.found(text).span() for phrase in phrases]
    for pattern in (*NOT_PROSE, *besides):
        covered += [place.span() for place in pattern.finditer(text)]
    return [
        " ".join(text[max(number.start() - 30, 0) : number.end() + 20].split())
        for number in MEASURED.finditer(text)
        if not any(start <= number.start() and number.end() <= end for start, end in covered)
    ]
