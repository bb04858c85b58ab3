"""HTML that escapes by default: text becomes markup only through `element`."""

from __future__ import annotations

import html
from collections.abc import Iterable

VOID = frozenset({"br", "hr", "link", "meta"})  # elements without a closing tag


class Html(str):
    """Text that is already markup; every other string is escaped where it is used."""

    __slots__ = ()


def escape(text: str) -> Html:
    """Any text as safe markup, for content, for quoted attributes and inside SVG.

    Control characters and lone surrogates, which no HTML or UTF-8 file may hold, become U+FFFD.
    """
    if isinstance(text, Html):
        return text
    clean = "".join(c if c.isprintable() or c in " \n\t" else _replacement(c) for c in text)
    return Html(html.escape(clean, quote=True))


def join(parts: Iterable[str]) -> Html:
    """The parts one after another, each escaped unless it is markup."""
    return Html("".join(escape(part) for part in parts))


def element(name: str, /, *children: str, **attributes: str | None) -> Html:
    """`<name attribute="value">children</name>`; class_ is class, aria_label is aria-label."""
    pairs = (
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    opening = f"<{name}{''.join(pairs)}>"
    return Html(opening if name in VOID else f"{opening}{join(children)}</{name}>")


def shorten(text: str, length: int) -> str:
    """The text, cut with an ellipsis where it is longer than `length` characters."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def _replacement(character: str) -> str:
    """Keep what is merely invisible (emoji joiners, odd spaces), replace what no file may hold."""
    code = ord(character)
    forbidden = code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000
    return "\ufffd" if forbidden else character
