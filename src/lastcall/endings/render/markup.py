"""HTML from Python: everything that is not `Markup` is escaped, so nothing a container prints becomes a tag."""

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from lastcall.records.quoting import without_commands
from lastcall.records.text import printable


class Markup(str):
    """Text that is markup already. Made by `tag`, `join` and from the package's own assets only."""

    __slots__ = ()


Content: TypeAlias = "str | int | float | Iterable[Content] | None"

_VOID = frozenset(("meta", "link", "br", "hr", "input", "col"))


def text(value: object, limit: int = 4000) -> Markup:
    """Escape text, in one line; control characters, direction marks and lone surrogates are shown as escapes."""
    if isinstance(value, Markup):
        return value
    return Markup(without_commands(escape(printable(str(value), limit)), lambda character: f"&#{ord(character)};"))


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


def join(content: Content) -> Markup:
    """Join all of `content`, one after the other; None is nothing."""
    if content is None:
        return Markup("")
    if isinstance(content, str | int | float):
        return text(content)
    return Markup("".join(map(join, content)))
