"""The page as one file that needs nothing else: stories and rollouts to keep and to share.

It has the script and the style of the live page. What is shown is a block of JSON; without JavaScript the same is
there as text. The file's Content-Security-Policy lets only the script and the style run whose hashes it names.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from lastcall._version import __version__
from lastcall.endings.render import Markup, quoted_json, tag
from lastcall.records.language import ENGLISH, translate
from lastcall.records.quoting import several_lines

BLOCK = "saved"
"""The id of the data, for the script (ui/src/saved.ts)."""


def saved_page(
    title: str, data: Mapping[str, Any], text: str, *, scripts: Sequence[str] = ("ui.js",), language: str = ENGLISH
) -> str:
    """Return the page. `data` is what the script shows, `text` what a reader without JavaScript sees."""
    style, code = asset("ui.css"), [asset(name) for name in scripts]
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hash(style)}",
            f"script-src {' '.join(map(_hash, code))}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        )
    )
    shown = translate({**data, "title": title, "language": language}, language)
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"lastcall {__version__}"),
        tag("title", f"{translate(title, language)} · lastcall"),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(style)),
    ]
    plain = tag("main", tag("pre", _lines(text), class_="plain", lang=ENGLISH))
    body = [
        tag("div", plain, id="app"),
        tag("script", Markup(_json(shown)), type="application/json", id=BLOCK),
        [tag("script", Markup(each)) for each in code],
    ]
    return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', body), lang=language)}\n"


def asset(name: str) -> str:
    """Return a file of the page."""
    return (resources.files("lastcall.ui") / "assets" / name).read_text("utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _lines(text: str) -> list[Markup]:
    """Each escaped for itself: escaping shows line ends as escapes."""
    return [Markup(tag("span", line) + "\n") for line in text.splitlines()]


def _json(data: Any) -> str:
    """What is not seen is shown as an escape, as in every page; and nothing in it ends the block."""
    text = quoted_json(_seen(data))
    return text.replace("<", "\\u003c")


def _seen(data: Any) -> Any:
    if isinstance(data, str):
        return several_lines(data)
    if isinstance(data, Mapping):
        return {key: _seen(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_seen(each) for each in data]
    return data
