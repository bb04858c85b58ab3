"""The report in a real browser: no errors, both themes, no sideways scrolling.

Skipped without Chromium.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tools.report_samples import NASTY, SAMPLES, nasty_report

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


@pytest.mark.parametrize("text", [NASTY[0], NASTY[4]])
def test_text_of_the_user_does_not_run(tmp_path, text):
    path = write_report(nasty_report(text), tmp_path / "report.html")
    page, console = browse(path, tmp_path / "profile")
    assert console == ""
    assert page.count("<script") == 1
    assert "<img" not in page
