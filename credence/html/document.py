"""A whole page: one HTML file with its style and script inside, that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from credence.html.markup import Html, element


def document(title: str, body: Html) -> str:
    """Wrap a body into one self-contained HTML document: style, script and all."""
    script = _read("theme.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (  # no network, and no script but our own, whatever the text of the page
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", Html(_read("style.css"))),
        element(
            "style",
            Html(_read("dark.css")),
            id="dark",
            media="screen and (prefers-color-scheme: dark)",
        ),
    )
    page = element("html", head, element("body", body, element("script", Html(script))), lang="en")
    return f"<!doctype html>\n{page}\n"


def _read(name: str) -> str:
    """Read a file that lies beside this module."""
    return resources.files("credence.html").joinpath(name).read_text(encoding="utf-8")
