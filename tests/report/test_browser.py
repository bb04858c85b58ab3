"""The report in a real browser: no errors, both themes, no sideways scrolling.

Skipped without Chromium, as in CI; `make docs-browser` installs it.
"""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tools import experiment_samples as samples
from tools.report_samples import NASTY, SAMPLES, nasty_report

from credence.compare.results import summarise
from credence.compare.show.page import render
from credence.report import write_report

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next((path for path in map(shutil.which, NAMES) if path), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

# Reads the page as shown and leaves the answer in the title, where --dump-dom finds it.
PROBE = """<script>addEventListener("load", () => {
  const style = (selector) => getComputedStyle(document.querySelector(selector));
  document.title = JSON.stringify([
    getComputedStyle(document.body).backgroundColor,
    style(".chart text").fill,
    document.documentElement.scrollWidth > innerWidth,
  ]);
});</script>"""


def browse(path: Path, profile: Path, theme: str = "light", width: int = 1100) -> tuple[str, str]:
    """The DOM after scripts ran, and what the console said."""
    assert CHROMIUM is not None
    quiet = ("background-networking", "component-update", "sync", "quic", "gpu", "extensions")
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--no-first-run",
        *(f"--disable-{feature}" for feature in quiet),
        "--enable-logging=stderr",
        f"--user-data-dir={profile}",
        f"--window-size={width},2000",
        "--dump-dom",
        f"{path.as_uri()}?theme={theme}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, "\n".join(re.findall(r".*CONSOLE.*", done.stderr))


@pytest.mark.parametrize("name", ["converged", "not_converged", "three_labels", "multi_target"])
def test_no_errors_in_either_theme(tmp_path, name):
    path = write_report(SAMPLES[name](), tmp_path / "report.html")
    for theme, other in (("light", "Dark"), ("dark", "Light")):
        page, console = browse(path, tmp_path / "profile", theme)
        assert console == ""
        assert f'data-theme="{theme}"' in page
        assert re.search(rf'<button id="theme"[^>]*>{other}</button>', page)
        assert "hidden" not in re.findall(r'<button id="theme"[^>]*>', page)[0]


def test_colours_and_width(tmp_path):
    """Charts change with the theme and a phone never scrolls sideways."""
    path = write_report(SAMPLES["converged"](), tmp_path / "report.html")
    page = re.sub(r"<meta http-equiv=[^>]*>", "", path.read_text(encoding="utf-8"))
    path.write_text(page.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    seen = {}
    for theme in ("light", "dark"):
        dom, _ = browse(path, tmp_path / "profile", theme, width=500)
        seen[theme] = re.search(r"<title>(.*?)</title>", dom)[1]
    assert seen["light"] == '["rgb(255, 255, 255)","rgb(93, 105, 114)",false]'
    assert seen["dark"] == '["rgb(20, 24, 28)","rgb(152, 163, 171)",false]'


def test_the_rows_it_is_least_sure_of_fit_a_desktop(tmp_path):
    """Ten columns and ours need no scrolling; their names break over lines instead."""
    path = write_report(SAMPLES["converged"](), tmp_path / "report.html")
    page = re.sub(r"<meta http-equiv=[^>]*>", "", path.read_text(encoding="utf-8"))
    probe = """<script>addEventListener("load", () => {
      const box = document.querySelector(".rows").parentElement;
      document.title = box.scrollWidth - box.clientWidth;
    });</script>"""
    path.write_text(page.replace("</body>", probe + "</body>"), encoding="utf-8")
    dom, _ = browse(path, tmp_path / "profile", width=1100)
    assert "<title>0</title>" in dom


def probed(path: Path, profile: Path, expression: str, **options: Any) -> Any:
    """The value of a JavaScript expression once the page is shown."""
    page = re.sub(r"<meta http-equiv=[^>]*>", "", path.read_text(encoding="utf-8"))
    probe = (
        '<script>addEventListener("load", () => '
        f"{{ document.title = JSON.stringify({expression}); }});</script>"
    )
    path.write_text(page.replace("</body>", probe + "</body>"), encoding="utf-8")
    dom, _ = browse(path, profile, **options)
    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", dom)[1]))


def test_the_keyboard_reaches_what_can_be_used(tmp_path):
    """The button, links, and tables that scroll take the focus, and show that they have it."""
    path = write_report(SAMPLES["multi_target"](), tmp_path / "report.html")
    expression = """[...document.querySelectorAll("button, a[href], .scroll")].map((element) => {
      element.focus({ focusVisible: true });
      const style = getComputedStyle(element);
      return [document.activeElement === element, style.outlineStyle !== "none"];
    })"""
    found = probed(path, tmp_path / "profile", expression)
    assert len(found) > 4
    assert all(has_focus and shows_it for has_focus, shows_it in found)


def test_points_have_tips(tmp_path):
    path = write_report(SAMPLES["converged"](), tmp_path / "report.html")
    expression = 'document.querySelectorAll("use > title").length'
    assert probed(path, tmp_path / "profile", expression) == 110 + 40


def test_it_prints(tmp_path):
    """Paper has no button and nothing that scrolls."""
    path = write_report(SAMPLES["converged"](), tmp_path / "report.html")
    out = tmp_path / "report.pdf"
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--print-to-pdf={out}"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", path.as_uri()]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    assert 3 <= len(re.findall(rb"/Type /Page\b", out.read_bytes())) <= 12


def test_the_page_of_a_comparison(tmp_path):
    path = tmp_path / "report.html"
    outcomes = [samples.done("nuts"), samples.done("sghmc")]
    names = [outcome.cell.label for outcome in outcomes]
    table = summarise(samples.experiment(*names), outcomes, size="smoke", seed=0, n_jobs=1)
    path.write_text(render(table), encoding="utf-8")
    for theme in ("light", "dark"):
        page, console = browse(path, tmp_path / "profile", theme, width=500)
        assert console == ""
        assert f'data-theme="{theme}"' in page
    expression = "document.documentElement.scrollWidth > innerWidth"
    assert probed(path, tmp_path / "profile", expression, width=500) is False


@pytest.mark.parametrize("text", [NASTY[0], NASTY[4]])
def test_text_of_the_user_does_not_run(tmp_path, text):
    path = write_report(nasty_report(text), tmp_path / "report.html")
    page, console = browse(path, tmp_path / "profile")
    assert console == ""
    assert page.count("<script") == 1
    assert "<img" not in page
