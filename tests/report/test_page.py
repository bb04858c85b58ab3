"""The whole page: every task renders, nothing is loaded, no text becomes markup."""

import errno
import html
import os
import re
import stat
from dataclasses import replace
from html.parser import HTMLParser

import jaxtyping
import numpy as np
import pytest
from tools.report_samples import (
    NASTY,
    SAMPLES,
    classification,
    classification_target,
    multi_target,
    nasty_report,
    regression,
    regression_target,
)

from credence import storage
from credence.errors import StorageError
from credence.html.markup import element, escape, shorten
from credence.report import (
    Convergence,
    ReportData,
    RowTable,
    judge,
    render,
    write_report,
)


class Outline(HTMLParser):
    """Ids, tags and visible text; fails where tags are not balanced."""

    VOID = frozenset({"meta", "link", "br"})

    def __init__(self, page: str):
        super().__init__()
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {name: render(sample()) for name, sample in SAMPLES.items()}


@pytest.mark.parametrize("name", SAMPLES)
def test_size(pages, name):
    limit = 500_000 if name != "many_targets" else 1_000_000
    assert len(pages[name].encode()) < limit


@pytest.mark.parametrize("name", SAMPLES)
def test_needs_nothing_from_outside(pages, name):
    assert not re.search(r"https?://|@import|<iframe|<object|<img", pages[name])
    for key, value in Outline(pages[name]).attributes:
        if key in {"src", "href", "xlink:href"}:
            assert value.startswith(("#", "data:,"))


@pytest.mark.parametrize("name", SAMPLES)
def test_ids_are_unique_and_references_resolve(pages, name):
    page, outline = pages[name], Outline(pages[name])
    assert len(outline.ids) == len(set(outline.ids))
    used = re.findall(r'href="#([^"]+)"', page) + re.findall(r"url\(#([^)]+)\)", page)
    used += [i for ids in re.findall(r'aria-labelledby="([^"]+)"', page) for i in ids.split()]
    assert set(used) <= set(outline.ids)


@pytest.mark.parametrize("name", SAMPLES)
def test_charts_follow_the_theme(pages, name):
    """No colour but variables inside a chart, and no clock."""
    for chart in re.findall(r"<svg.*?</svg>", pages[name], flags=re.S):
        assert not re.search(r"(fill|stroke): ?#", chart)
        assert not re.search(r"<metadata|<dc:date|DejaVu", chart)
        assert 'role="img"' in chart
        assert "<title" in chart
        assert "<desc" in chart


def test_all_variables_are_defined_in_both_themes(pages):
    page = pages["converged"]
    light, dark = (
        set(re.findall(r"(--[\w-]+):", css)) for css in re.findall(r":root \{.*?\}", page, re.S)
    )
    assert dark < light
    assert light - dark == {"--font", "--mono"}
    set_inline = {"--level", "--colour", "--share"}
    assert set(re.findall(r"var\((--[\w-]+)\)", page)) <= light | set_inline


@pytest.mark.parametrize("name", ["converged", "three_labels", "multi_target"])
def test_same_input_same_page(pages, name):
    assert render(SAMPLES[name]()) == pages[name]


def test_traces_are_small_and_side_by_side(pages):
    """One chart per row of the table, each narrower than the others of the page."""
    grid = re.search(r'<div class="small-charts">(.*?)</div>', pages["converged"], re.S)[1]
    assert re.findall(r"<title[^>]*>(.*?)</title>", grid) == [
        f"Predictions draw by draw, {row}" for row in ("row 17", "row 43", "row 88")
    ]
    sizes = [view.split()[2:] for view in re.findall(r'viewBox="([^"]+)"', grid)]
    assert all(float(width) < 250 and float(height) < 125 for width, height in sizes)


def test_wide_tables_scroll_and_their_first_column_stays(pages):
    page = pages["converged"]
    assert re.search(r'<div class="scroll"[^>]*><table class="rows">', page)
    style = re.search(r"<style>(.*?)</style>", page, re.S)[1]
    assert re.search(r"\.scroll \{[^}]*overflow-x: auto", style)
    assert re.search(r"\.scroll tbody th[^}]*position: sticky; left: 0", style)


def test_sections_in_order(pages):
    titles = re.findall(r"<h2>(.*?)</h2>", pages["converged"])
    assert titles == [
        "Key numbers",
        "Predictions against truth",
        "Calibration",
        "Where the uncertainty comes from",
        "The rows it is least sure of",
        "What the inputs do",
        "Convergence",
        "What was run, and how to repeat it",
    ]


def test_points_tell_of_themselves_under_the_mouse(pages):
    """Every drawn point has its own tip; the tip of a red one names a truth outside."""
    chart = re.search(r'<svg[^>]*"t1-intervals-title.*?</svg>', pages["converged"], re.S)[0]
    tips = re.findall(r"<use [^>]*><title>(.*?)</title></use>", chart)
    assert len(tips) == 40
    outside = chart[chart.index('id="t1-intervals-outside"') :]
    red = re.findall(r"<title>(.*?)</title>", outside)
    assert red
    for tip in red:
        low, high, observed = map(
            float, re.search(r"from (.*) to (.*); observed (.*)", tip.replace("−", "-")).groups()
        )
        assert not low <= observed <= high
    assert "observed" not in pages["large"].split("t1-intervals")[0].split("t1-predictions")[1]


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2.2 of a colour such as #1a2b3c."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [0, 1])
def test_text_has_the_contrast_that_wcag_asks_for(pages, theme):
    """4.5 for text, 3 for what is drawn."""
    css = re.findall(r":root \{.*?\}", pages["converged"], re.S)[theme]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", css))
    wanted = dict.fromkeys(("ink", "muted", "alarm", "accent"), 4.5)
    wanted |= dict.fromkeys(("second", "third", "fourth"), 3.0)
    paper = luminance(colours["paper"])
    for name, least in wanted.items():
        light, dark = sorted([luminance(colours[name]), paper], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= least, name


def test_inputs_say_what_is_drawn(pages):
    page = pages["converged"]
    assert "Without blood pressure a row is predicted worse by 0.22 nats" in page
    assert "8 inputs of 14 can be missed, one at a time." in page
    assert "12 of 14 inputs drawn." in page
    assert "The mean prediction goes from 100\N{NO-BREAK SPACE}points (at 140) to " in page
    assert "Probability of yes" in pages["two_labels"]
    assert ">setosa</li>" in pages["three_labels"]
    assert "What the inputs do" not in pages["multi_target"]


def test_a_run_that_did_not_converge_says_so_everywhere(pages):
    page = pages["not_converged"]
    assert "<title>Not converged: " in page
    assert page.index("did not converge") < page.index("<h1>")
    sections = re.findall(r"<section>.*?</section>", page, flags=re.S)
    assert len(sections) == 8
    assert all("Not converged: " in section for section in sections)
    assert "Not converged" not in pages["converged"]


def test_thinning_is_said(pages):
    assert "1500 of 20\u202f000 rows drawn" in pages["large"]


def test_many_targets_are_limited(pages):
    page = pages["many_targets"]
    assert page.count('class="chapter"') == 6
    assert "and 2 more, in the table above" in page
    for target in multi_target(8).targets:
        assert f">{target.name}</th>" in page


def test_method_without_chains(pages):
    page = pages["deep_ensemble"]
    assert "Not checked. A deep ensemble draws no chains" in page
    assert ">Use with care</p>" in page


def test_what_was_not_checked_has_no_mark_of_approval():
    """Models that are mixed: their chains need not agree, and nobody looked whether they do."""
    mixed = replace(regression(n=300), convergence=Convergence(None, "Mixed.", unseen_rows=300))
    page = render(mixed)
    mark = '<span class="mark" role="img" aria-label="Not checked">–</span>'
    subject = '<span class="subject">Convergence</span>'
    told = '<span class="sentence">Not checked, and not needed. Mixed.</span>'
    assert f'<li class="not-made">{mark}{subject}{told}</li>' in page
    assert judge(mixed).level == judge(regression(n=300)).level


@pytest.fixture(scope="module")
def harmless() -> list[list[str]]:
    """The tags of the same two pages with plain text."""
    return [Outline(render(make("harmless"))).tags for make in (nasty_report, nasty_labels)]


@pytest.mark.rotates(3)
@pytest.mark.parametrize("text", NASTY)
def test_text_of_the_user_never_becomes_markup(harmless, text):
    pages = render(nasty_report(text)), render(nasty_labels(text))
    assert [Outline(page).tags for page in pages] == harmless
    assert escape(text) in pages[0]
    "".join(pages).encode()  # can be written


def nasty_labels(text: str) -> ReportData:
    report = classification((text, text + "2", "plain"))
    target = replace(report.targets[0], name=text)
    return replace(report, targets=(target,))


def test_text_inside_charts_is_escaped_text():
    """The name of the target is in the chart itself, shortened, and reads as it was written."""
    page = render(nasty_report("<b>&amp;"))
    chart = re.search(r'<svg[^>]*aria-labelledby="t1-predictions-title.*?</svg>', page, re.S)
    assert chart
    texts = [html.unescape(t) for t in re.findall(r"<text[^>]*>(.*?)</text>", chart[0])]
    assert "Observed <b>&amp; (<b>&amp;)" in texts


def test_scripts_other_than_ours_are_forbidden(pages):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', pages["converged"])
    assert policy
    assert "default-src &#x27;none&#x27;" in policy[1]
    assert re.search(r"script-src &#x27;sha256-[\w+/]+=", policy[1])
    assert Outline(pages["converged"]).tags.count("script") == 1


def test_values_that_are_extreme_still_draw():
    target = regression_target()
    scale = {
        name: getattr(target, name) * 1e12
        for name in ("y", "mean", "std", "lower_50", "upper_50", "lower_95", "upper_95")
    }
    render(replace(regression(), targets=(replace(target, **scale),)))
    same = {name: np.zeros(110) for name in [*scale, "aleatoric_std", "epistemic_std"]}
    render(replace(regression(), targets=(replace(target, **same, pit=np.full(110, 0.5)),)))


def test_predictions_that_are_not_finite_still_draw():
    report = regression()
    report.targets[0].mean[:3] = np.nan
    page = render(report)
    assert "3 predictions of 110 are not finite" in page
    assert ">Do not trust</p>" in page


def test_all_right_all_wrong_and_certain():
    report = classification()
    target = report.targets[0]
    certain = np.eye(3)[target.y]
    zero = np.zeros(len(target.y))
    entropies = dict.fromkeys(("entropy_total", "entropy_aleatoric", "entropy_epistemic"), zero)
    for predicted in (target.y, (target.y + 1) % 3):
        changed = replace(target, predicted=predicted, probabilities=certain, **entropies)
        render(replace(report, targets=(changed,)))


def test_nothing_is_finite():
    report = regression()
    report.targets[0].upper_95[:] = np.nan
    assert "0 test rows with finite predictions" in render(report)


def test_convergence_with_nothing_finite():
    nothing = np.full(4, np.nan)
    convergence = Convergence(False, "No.", rhat=nothing, ess_bulk=nothing, ess_tail=nothing)
    render(replace(regression(), convergence=convergence))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: replace(regression(), task="ranking"), "pass 'regression' or 'classification'"),
        (lambda: replace(regression(), targets=()), "needs one RegressionTarget or more"),
        (lambda: replace(regression(), n_test=7), "has 110 rows but n_test is 7"),
        (lambda: replace(regression(), targets=classification().targets), "RegressionTarget"),
        (lambda: replace(regression_target(), y=np.zeros(3)), "lengths differ"),
        (lambda: replace(classification_target(), labels=("a",)), "one column per label"),
        (lambda: RowTable((0,), ("a", "b"), ((1,),)), "lengths differ"),
        (lambda: Convergence(True, "", traces=np.zeros((4, 9, 2))), "one name per point"),
    ],
)
def test_bad_input_gets_a_sentence(make, message, monkeypatch):
    """The shape checks of the tests are off, as for users."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=message):
        make()


def test_element_escapes_by_default():
    assert element("p", "<b>", class_='"x"') == '<p class="&quot;x&quot;">&lt;b&gt;</p>'
    assert element("p", element("b", "&")) == "<p><b>&amp;</b></p>"
    assert escape("a\x00\ud800b") == "a\ufffd\ufffdb"
    assert shorten("abcdef", 4) == "abc…"


def test_write_report(tmp_path):
    path = write_report(regression(n=0), tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == render(regression(n=0))
    assert os.listdir(tmp_path) == ["report.html"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~current_umask()


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def fail_with(code: int):
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
def test_a_failed_write_keeps_the_old_report(tmp_path, monkeypatch, code):
    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr(storage.os, "fsync", fail_with(code))
    words = rf"Could not write .*report.html: {os.strerror(code)}. Choose a folder .* is safe"
    with pytest.raises(StorageError, match=words):
        write_report(regression(n=0), path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.html"]


def test_missing_folder_and_folder_in_the_way(tmp_path):
    path = write_report(regression(n=0), tmp_path / "new" / "report.html")
    assert path.exists(), "the folder is made"
    with pytest.raises(StorageError, match="is a folder, not a file"):
        write_report(regression(n=0), tmp_path / "new")
