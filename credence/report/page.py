"""The whole page: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from credence.html.document import document
from credence.html.markup import Html, element, join
from credence.html.parts import masthead
from credence.html.wording import count
from credence.report import sections_classification, sections_regression
from credence.report.data import ClassificationTarget, RegressionTarget, ReportData
from credence.report.judging.evidence import collect_evidence
from credence.report.judging.levels import ErrorRates
from credence.report.judging.verdict import Level, Verdict, verdict
from credence.report.sections_inputs import inputs_section
from credence.report.sections_run import convergence_section, run_section

MAX_CHAPTERS = 6  # targets with sections of their own

WORDS = {
    Level.TRUST: ("Trust", "trust", "✓"),
    Level.CARE: ("Use with care", "care", "!"),
    Level.CANNOT_TELL: ("Cannot tell", "cannot-tell", "?"),
    Level.DO_NOT_TRUST: ("Do not trust", "do-not-trust", "✕"),
}
NOT_MADE = ("Not checked", "not-made", "–")
"""The word, class and mark of a check of which there was nothing to check."""
BAR = "This run did not converge. Do not rely on any number below."


def judge(report: ReportData) -> Verdict:
    """The verdict on a report's run."""
    pairs = zip(report.targets, report.left_out, strict=False)
    rates = ErrorRates.of(len(report.targets), num_looks=2 if report.left_out else 1)
    judged = verdict(
        report.convergence.converged,
        report.convergence.reason,
        [collect_evidence(target, rates=rates) for target in report.targets],
        report.convergence.unseen_rows,
        [collect_evidence(target, left_out, rates) for target, left_out in pairs],
    )
    return judged._replace(has_own_split=report.has_own_split)


def render(report: ReportData) -> str:
    """The report as one HTML document; the same input gives the same text.

    Every piece of text in `report` may hold any characters; it is escaped.
    """
    judged = judge(report)
    is_converged = report.convergence.converged is not False
    bar = element("div", element("div", BAR), class_="bar", role="alert")
    main = element(
        "main",
        _header(report),
        _verdict(judged),
        *_body(report, is_converged),
        *_findings(report, is_converged),
        convergence_section(report.convergence),
        run_section(report),
    )
    title = f"{WORDS[judged.level][0]}: {report.title}"
    if not is_converged:
        title = f"Not converged: {report.title}"
    return document(title, join([*([] if is_converged else [bar]), main]))


def _findings(report: ReportData, is_converged: bool) -> list[Html]:
    """The sections of what the method learnt beside predictions."""
    seconds = report.run.seconds
    found = [each.section(seconds, is_converged=is_converged) for each in report.findings]
    return [section for section in found if section is not None]


def _header(report: ReportData) -> Html:
    facts = (
        f"Credence report · {report.task} · {report.method} · "
        f"{count(report.n_train, 'training row')}, {count(report.n_test, 'test row')}"
    )
    return masthead(report.title, facts)


def _verdict(judged: Verdict) -> Html:
    caveat = (
        "The verdict holds for new rows that resemble the test rows. "
        "It says nothing about rows unlike any the model was trained on."
    )
    word = WORDS[judged.level][0]
    checks = [(c.level if c.is_made else None, c.subject, c.sentence) for c in judged.checks]
    return verdict_block(judged.level, word, judged.headline, checks, caveat, judged.advice)


def verdict_block(
    level: Level,
    word: str,
    headline: str,
    checks: Iterable[tuple[Level | None, str, str]],
    caveat: str,
    advice: Sequence[str] = (),
) -> Html:
    """What a page says first; a check is its level (None: not made), what it is of, a sentence."""
    to_do = [
        element("p", "What you can do", class_="to-do"),
        element("ul", *(element("li", sentence) for sentence in advice), class_="notes"),
    ]
    return element(
        "div",
        element("p", word, class_="word"),
        element("p", headline, class_="headline"),
        element("ul", *map(_check_item, checks), class_="checks"),
        *(to_do if advice else []),
        element("p", caveat, class_="small"),
        class_=f"verdict {WORDS[level][1]}",
    )


def _check_item(check: tuple[Level | None, str, str]) -> Html:
    level, subject, sentence = check
    word, class_, mark = NOT_MADE if level is None else WORDS[level]
    return element(
        "li",
        element("span", mark, class_="mark", role="img", aria_label=word),
        element("span", subject, class_="subject"),
        element("span", sentence, class_="sentence"),
        class_=class_,
    )


def _body(report: ReportData, is_converged: bool) -> list[Html]:
    """Key numbers, the sections of every target, as chapters if there are several, inputs."""
    if report.task == "regression":
        targets = [t for t in report.targets if isinstance(t, RegressionTarget)]
        numbers = sections_regression.numbers_section(targets, report.metrics, is_converged)
    else:
        labels = [t for t in report.targets if isinstance(t, ClassificationTarget)]
        numbers = sections_classification.numbers_section(labels, report.metrics, is_converged)
    shown = range(min(len(report.targets), MAX_CHAPTERS))
    chapters = [_chapter(report, i, is_converged) for i in shown]
    return [numbers, *_contents(report), *chapters, *inputs_section(report, is_converged)]


def _chapter(report: ReportData, i: int, is_converged: bool) -> Html:
    target, prefix = report.targets[i], f"t{i + 1}"
    if isinstance(target, RegressionTarget):
        sections = sections_regression.target_sections(target, prefix, is_converged)
    else:
        sections = sections_classification.target_sections(target, prefix, is_converged)
    if len(report.targets) == 1:
        return join(sections)
    place = f"Target {i + 1} of {len(report.targets)}"
    title = element("div", element("p", place, class_="small"), element("h2", target.name),
                    class_="chapter", id=prefix)  # fmt: skip
    return join([title, *sections])


def _contents(report: ReportData) -> list[Html]:
    """Links to the targets; those beyond the limit are in the table of key numbers only."""
    n = len(report.targets)
    if n == 1:
        return []
    shown = report.targets[:MAX_CHAPTERS]
    links = [element("a", t.name, href=f"#t{i + 1}") for i, t in enumerate(shown)]
    more = f"and {n - MAX_CHAPTERS} more, in the table above" if n > MAX_CHAPTERS else ""
    items = [*links, *([element("span", more)] if more else [])]
    return [element("nav", *items, class_="contents small", aria_label="Targets")]
