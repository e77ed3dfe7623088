"""HTML and SVG from Python: everything that is not `Markup` is escaped, so nothing a container prints becomes a tag."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from typing import TypeAlias

from lastcall.records.language import ENGLISH, told
from lastcall.records.quoting import without_commands
from lastcall.records.text import printable


class Markup(str):
    """Text that is markup already. Made by `tag`, `join` and from the package's own assets only."""

    __slots__ = ()


Content: TypeAlias = "str | int | float | Iterable[Content] | None"

_language = ContextVar("language of the page that is made", default=ENGLISH)

_VOID = frozenset(("meta", "link", "br", "hr", "input", "col"))


@contextmanager
def telling(language: str) -> Iterator[None]:
    """What is made within is told in that language (`records/language.py`)."""
    before = _language.set(language)
    try:
        yield
    finally:
        _language.reset(before)


def said(value: object) -> str:
    """In the language of the page that is made."""
    return told(value, _language.get()) if isinstance(value, str) else str(value)


def text(value: object, limit: int = 4000) -> Markup:
    """Escaped text in one line; control characters, direction marks and lone surrogates are shown as escapes."""
    if isinstance(value, Markup):
        return value
    return Markup(without_commands(escape(printable(said(value), limit)), lambda character: f"&#{ord(character)};"))


def tag(name: str, /, *content: Content, **attributes: object) -> Markup:
    """Make an element: `tag("a", "x < y", href="#p1", class_="m")`.

    A trailing `_` of an attribute name is dropped and others become `-`; None and False leave the attribute out, True
    writes it without a value.
    """
    head = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        written = key.rstrip("_").replace("_", "-")
        head.append(written if value is True else f'{written}="{text(value)}"')
    opening = " ".join(head)
    body = join(content)
    if not body and name in _VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{body}</{name}>")


def svg(name: str, /, *content: Content, **attributes: object) -> Markup:
    """The same for an element of SVG: without content it closes itself."""
    body = join(content)
    element = tag(name, body, **attributes)
    return element if body else Markup(f"{element[: -len(f'></{name}>')]}/>")


def join(content: Content) -> Markup:
    """All of `content` one after the other; None is nothing."""
    if content is None:
        return Markup("")
    if isinstance(content, str | int | float):
        return text(content)
    return Markup("".join(map(join, content)))


_CODE = re.compile(r"`([^`]+)`")


def prose(sentence: str) -> Markup:
    """Return a sentence, escaped; what stands between backticks is set as code."""
    parts = _CODE.split(said(sentence))
    return join([tag("code", part) if index % 2 else part for index, part in enumerate(parts)])


def percent(share: float) -> str:
    """Return a share of the width, 0 to 1, with the digits that a wide screen can show."""
    return f"{share * 100:.2f}".rstrip("0").rstrip(".") + "%"
