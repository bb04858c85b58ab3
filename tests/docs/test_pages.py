"""Numbers in the pages are those of the committed results."""

import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "make"))
import pages  # noqa: E402
import phrases  # noqa: E402

LINKED = "docs/results/papers.md"
"""The summary, whose numbers link to the page that they are of."""
CLAIMED = re.compile(r"^\|[^|\n]*\|[^|\n]*\|", re.MULTILINE)
"""The first two cells of its tables: a claim, and what is published."""


def num_measured(text: str) -> int:
    """How many cells of tables have a number with a point, outside of what is made."""
    rows = [line for line in pages.PART.sub("", text).splitlines() if line.startswith("|")]
    return sum(len(re.findall(r"\d*\.\d+", row)) > 0 for row in rows)


def test_tables_of_measurements_are_made() -> None:
    typed = {
        name
        for path in pages.paths()
        if num_measured(path.read_text(encoding="utf-8"))
        and (name := path.relative_to(ROOT).as_posix()) not in {*pages.WHOLE, LINKED}
    }
    assert typed == set()


@pytest.mark.parametrize("path", pages.paths(), ids=lambda path: path.stem)
def test_tables_are_those_of_the_results(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert pages.made(path).splitlines() == text.splitlines()
    assert text.count("<!-- made: ") == text.count("<!-- end -->")


def test_figures_are_those_of_the_results(tmp_path: Path) -> None:
    for draw in pages.FIGURES:
        draw(tmp_path)
    assert list(tmp_path.iterdir())
    for made in tmp_path.iterdir():
        assert made.read_text("utf-8") == (ROOT / "docs" / "figures" / made.name).read_text("utf-8")


def test_every_figure_is_on_a_page() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in pages.paths())
    figures = {path.name for path in (ROOT / "docs" / "figures").glob("*.svg")}
    assert {name for name in figures if name not in text} == set()


def test_a_number_that_is_changed_by_hand_is_found(tmp_path: Path, monkeypatch) -> None:
    """The planted error."""
    page = tmp_path / "docs" / "results" / "interacting.md"
    page.parent.mkdir(parents=True)
    text = (ROOT / page.relative_to(tmp_path)).read_text(encoding="utf-8")
    row = re.search(r"\| rings \| MALA \| 1 \| (\d+\.\d+)", text)
    assert row is not None
    changed = text[: row.start(1)] + "1.23" + text[row.end(1) :]
    page.write_text(changed, encoding="utf-8")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    assert pages.made(page).splitlines() == text.splitlines() != changed.splitlines()


@pytest.mark.parametrize("path", pages.paths(), ids=lambda path: path.stem)
def test_numbers_in_sentences_are_made_or_said_to_be_given(path: Path) -> None:
    name = path.relative_to(ROOT).as_posix()
    if name not in pages.WHOLE:
        text = path.read_text(encoding="utf-8")
        besides = (CLAIMED,) if name == LINKED else ()
        assert phrases.untraced(text, phrases.phrases_of(name), besides=besides) == []


UNKEPT = {
    "(measured: a quarter of that in the spiral and at noise 0.5)",
    "was stopped after 20 minutes, where `prior` takes 8",
    "by up to 4.3 standard errors",
    "the ladder by 8.7 at",
    "22 to 30 GiB of its memory together, so less than 2 GiB a network",
}
"""All that pages may say of runs whose results are not kept; nothing is to be added."""


def test_what_was_measured_is_kept_but_for_a_known_few() -> None:
    names = (path.relative_to(ROOT).as_posix() for path in pages.paths())
    found = {each.words for name in names for each in phrases.phrases_of(name) if not each.is_kept}
    assert found == UNKEPT


def test_a_number_in_a_sentence_that_differs_is_found_and_written() -> None:
    """The planted error."""
    made = phrases.made("costs {:.0f} times as much, or {:.1f} nats", 26.5, -0.25)
    text = "One level costs 1 234 times\nas much, or 0.31 nats. The rest took 5 s, R-hat 1.01."
    found = phrases.rewritten(text, [made])
    assert found == text.replace("1 234", "26").replace("0.31", "-0.2")
    assert phrases.rewritten(found, [made]) == found
    with pytest.raises(LookupError, match="Stands 0 times"):
        phrases.rewritten(text, [phrases.made("costs {:.0f} times less", 26.5)])


def test_a_page_that_cannot_be_made_stops_no_other(tmp_path: Path, monkeypatch, capsys) -> None:
    """The planted errors."""
    texts = {"a": "It costs 5 nats.", "b": "It takes 5 nats.", "c": "5 s", "d": "It takes 5 nats."}
    for name, text in texts.items():
        (tmp_path / f"{name}.md").write_text(text, encoding="utf-8")

    def phrases_of(name: str) -> list[phrases.Phrase]:
        assert name != "c.md"
        return [phrases.made("takes {:.0f} nats", None if name == "b.md" else 6)]

    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "FIGURES", ())
    monkeypatch.setattr(pages, "paths", lambda: [tmp_path / f"{name}.md" for name in texts])
    monkeypatch.setattr(phrases, "phrases_of", phrases_of)
    monkeypatch.setattr(sys, "argv", ["pages.py"])
    with pytest.raises(SystemExit, match="1"):
        pages.main()
    written, *faults = capsys.readouterr().out.splitlines()
    assert written == "written: d.md"
    for fault, name, words in zip(
        faults,
        "abc",
        ("Stands 0 times: takes", "takes {:.0f} nats: ", "AssertionError"),
        strict=True,
    ):
        assert fault.startswith(f"not made: {name}.md: ")
        assert words in fault
    assert (tmp_path / "d.md").read_text(encoding="utf-8") == "It takes 6 nats."


def test_an_assertion_is_told_by_its_line() -> None:
    faults: list[str] = []
    with pages.noted(faults, "a.md"):
        pages.phrases.made("takes 5 nats")
    assert "phrases.py, line " in faults[0]
    assert "assert values" in faults[0]


def test_a_number_in_a_sentence_without_a_source_is_found() -> None:
    """The planted error."""
    text = "In 20 rows `x = 1.5` gave 0.31 nats (Table 2.1).\n\n    code 1.7\n\n5 s, 12 %."
    given = list(phrases.given("gave 0.31 nats"))
    assert len(phrases.untraced(text, [])) == 3
    assert len(phrases.untraced(text, given)) == 2


def section(page: Path, anchor: str) -> str:
    """The text of a page under a heading, or all of it."""
    text = page.read_text(encoding="utf-8")
    if not anchor:
        return text
    parts = re.split(r"^(#+ .*)$", text, flags=re.MULTILINE)
    for index in range(1, len(parts), 2):
        if slug(parts[index]) == anchor:
            return parts[index + 1]
    raise AssertionError(f"{page.name} has no heading {anchor}")


def slug(heading: str) -> str:
    """The anchor of a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.lstrip("# ").lower())
    return kept.replace(" ", "-")


def numbers(text: str) -> list[str]:
    """Numbers with a point or an exponent, whatever their sign."""
    text = re.sub(r"Algorithm \d\.\d", "", text)
    return re.findall(r"\d*\.\d+(?:e-?\d+)?|\d+e-?\d+", text)


def stands(number: str, there: list[str]) -> bool:
    """Whether one of these numbers, rounded like this one, is it."""
    digits = len(number.partition("e")[0].partition(".")[2])
    spell = f"{{:.{digits}{'e' if 'e' in number else 'f'}}}".format
    return any(spell(float(each)) == spell(float(number)) for each in there)


def linked_numbers(page: Path) -> list[tuple[str, str]]:
    """Texts of links with such numbers, each with the page and heading it leads to."""
    text = page.read_text(encoding="utf-8")
    names = dict(re.findall(r"^\[(\w+)\]: (\S+)$", text, flags=re.MULTILINE))
    direct = re.findall(r"\[([^\]]+)\]\((\S+?)\)", text)
    named = [(label, names[name]) for label, name in re.findall(r"\[([^\]]+)\]\[(\w+)\]", text)]
    return [(label, target) for label, target in direct + named if numbers(label)]


def test_numbers_of_the_summary_stand_where_its_links_lead() -> None:
    summary = ROOT / LINKED
    links = linked_numbers(summary)
    assert len(links) > 30
    missing = {}
    for label, target in links:
        name, _, anchor = target.partition("#")
        there = numbers(section((summary.parent / name).resolve(), anchor))
        if found := [number for number in numbers(label) if not stands(number, there)]:
            missing[f"[{label}]({target})"] = found
    assert missing == {}


def test_tables_of_chains_show_draws_and_errors_over_splits() -> None:
    row = {
        "label": "A", "status": "done", "error": None, "converged": True, "published": {
            "accuracy": 0.83, "draws_per_effective_draw": [16, 202, 1520]},
        "accuracy": 0.8412, "ece": 0.02, "nll": 0.35, "max_rhat_function": 1.01,
        "standard_errors": {"accuracy": 0.0021, "nll": 0.004}, "ess_function": [50, 60, 70],
        "ess_weights": [9, 10, 11], "draws_per_effective_draw": [1.2, 3.1, 40.0],
        "total_seconds": 12.0, "speed_up_text": "2x", "peak_memory_mib": 500,
        "num_chains": 4, "num_draws": 2000, "stopped": None,
    }  # fmt: skip
    summary = {"baseline": "A", "num_seeds": 5}
    problem = {"task": "classification", "rows": [row]}
    head, _, line = pages.experiment_tables.table_of_chains(problem, "A").splitlines()
    assert "| chains x draws |" in head
    for part in (
        "83 / 84.1 ± 0.21 %",
        "0.35 ± 0.004",
        "4 x 2,000",
        "16 ; 202 ; 1,520 / 1 ; 3 ; 40",
    ):
        assert f"| {part} |" in line
    legend = pages.experiment_tables.legend({**summary, "problems": [problem]})
    assert "standard error over 5 splits" in legend


@pytest.mark.parametrize(
    ("regression", "ours", "text"),
    [
        (True, {"mse": 3.8349, "total_seconds": 90}, "yes: mse, seconds"),
        (True, {"mse": 3.836, "total_seconds": 90}, "yes: seconds; no: mse"),
        (False, {"accuracy": 0.826, "total_seconds": 91, "speed_up": 8}, "yes: accuracy, speed-up; "
         "no: seconds"),
        (False, {"accuracy": 0.824, "total_seconds": 91, "speed_up": 6}, "no: accuracy, seconds, "
         "speed-up"),
    ],
)  # fmt: skip
def test_what_is_beaten_is_at_least_as_good_as_printed(regression: bool, ours: Any, text: str):
    published = {"mse": 3.83, "accuracy": 0.83, "total_seconds": 90, "speed_up": 7}
    row = {"speed_up": None, "published": published, **ours}
    beaten = partial(pages.experiment_tables.beaten, regression=regression, is_baseline=False)
    assert beaten(row) == text
    assert beaten({**row, "published": {}}) == "-"
    assert "seconds" in text
    assert "seconds" not in beaten({**row, "stopped": "time"})
    assert "speed-up" not in beaten(row, is_baseline=True)


def test_chains_that_stand_still_or_are_short_have_no_numbers_that_flatter() -> None:
    row = {
        "label": "A", "status": "done", "error": None, "converged": False, "published": {},
        "accuracy": 0.8, "ece": 0.02, "nll": 0.3, "max_rhat_function": None,
        "reason": "The chains disagree: R-hat is inf, not below 1.05; draw more.",
        "ess_function": [16, 16, 16], "ess_weights": [9, 10, 11], "total_seconds": 12.0,
        "draws_per_effective_draw": [1, 2, 3], "speed_up_text": "n/a", "peak_memory_mib": 500,
        "num_chains": 4, "num_draws": 4, "stopped": None, "emulator_error": "0.2",
        "emulator_acceptance": "1.0",
    }  # fmt: skip
    tables = pages.experiment_tables
    problem = {"task": "classification", "rows": [row]}
    line = tables.table_of_chains(problem, "A").splitlines()[-1]
    assert "| 4 x 4 | ∞ | - | - | - / - |" in line
    assert line.endswith("| 0.2 | stands still |")
    legend = tables.legend({"baseline": "A", "problems": [problem]})
    assert "R-hat is ∞ where chains stand still in different places" in legend
    assert "no ESS of fewer than 50 draws" in legend
    longer = row | {"num_draws": 13, "max_rhat_function": 12.0, "reason": "R-hat is 12.000."}
    problem = {"task": "classification", "rows": [longer]}
    line = tables.table_of_chains(problem, "A").splitlines()[-1]
    assert "| > 10 | 16 ; 16 ; 16 | 9 ; 10 ; 11 | - / 1 ; 2 ; 3 |" in line
    assert line.endswith("| 0.2 | accepted 1 |")
    assert "∞" not in tables.legend({"baseline": "A", "problems": [problem]})


def test_a_method_that_failed_still_shows_what_was_published() -> None:
    """The reason is a line below the table."""
    failed = {
        "label": "B", "status": "failed", "error": "There is no mode.", "converged": None,
        "published": {"accuracy": 0.94, "ece": 0.241, "total_seconds": 914, "speed_up": 16.8},
    }  # fmt: skip
    problem = {
        "name": "digits", "description": "Digits.", "n_train": 9, "n_test": 1, "n_features": 2,
        "task": "classification", "rows": [failed], "reasons": [],
    }  # fmt: skip
    line = pages.experiment_tables.table_of_chains(problem, "A").splitlines()[-1]
    assert line.startswith("| B | 94 % / failed | 0.241 / failed |")
    assert "| 914 / - | 16.8 / - |" in line
    assert "- B failed: There is no mode." in pages.experiment_tables.section(problem, "A")


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("A failed: No mode is left: it is 6.5 nats off. Raise n. Or wait.",
         "A failed: No mode is left: it is 6.5 nats off."),
        ("A failed: AssertionError: ",
         "A failed by a fault of our program, which gave no message."),
        ("A failed: The emulator is off by inf nats (inf%). Explore.",
         "A failed: the chain that led to the draws has not moved, so that the emulator's error "
         "there is infinite."),
        ("A: 2 of 5 seeds.", "A: 2 of 5 seeds."),
    ],
)  # fmt: skip
def test_of_failures_the_reason_is_told_and_no_advice(sentence: str, told: str) -> None:
    assert pages.experiment_tables.without_advice(sentence) == told


def test_the_command_has_the_time_limit_of_the_run(monkeypatch) -> None:
    tables = pages.experiment_tables
    kept = {
        "experiment": "fbnn", "size": "laptop", "seed": 0, "n_jobs": 2, "versions": {},
        "machine": "", "commit": "", "baseline": "", "problems": [],
    }  # fmt: skip
    monkeypatch.setattr(tables, "kept", {"older": kept, "newer": {**kept, "max_seconds": 7.5}}.get)
    assert " --jobs 2`;" in tables.sections("older")
    assert " --jobs 2 --max-seconds 50`;" in tables.sections("older", max_seconds=50)
    assert " --jobs 2 --max-seconds 7.5`;" in tables.sections("newer", max_seconds=50)


def test_the_command_names_the_problems_where_some_have_not_been_run() -> None:
    summary = {"experiment": "fbnn", "problems": [{"name": "boston"}, {"name": "wine"}]}
    assert pages.experiment_tables.problems(summary) == " --problems boston,wine"
    names = [{"name": each.name} for each in pages.experiment_tables.find("fbnn").problems]
    assert pages.experiment_tables.problems({**summary, "problems": names}) == ""
