"""Whether everything that a built site links to is there, anchors too, and nothing is loaded from elsewhere. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("use", "href")}
"""What a browser asks for by itself."""
NOT_LOADED = {"canonical", "next", "prev", "alternate"}
_CSS_URL = re.compile(r"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)|@import\s+['\"]?((?:https?:)?//[^'\";]+)")


@dataclass
class _Page(HTMLParser):
    """The links and anchors of one page."""

    loads: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        for name in ("id", "name"):
            if found.get(name):
                self.anchors.add(str(found[name]))
        for name, value in attrs:
            if value is None or (tag == "link" and str(found.get("rel")) in NOT_LOADED):
                continue
            if (tag, name) in LOADED:
                self.loads.append(value)
            elif name == "href":
                self.links.append(value)


def read(files: Mapping[str, str]) -> dict[str, _Page]:
    """Read what ends in .html."""
    pages = {}
    for name, text in files.items():
        if name.endswith(".html"):
            page = pages[name] = _Page()
            page.feed(text)
    return pages


def problems(files: Mapping[str, str], others: set[str]) -> Iterator[str]:
    """Yield the problems. `files`: name → text of pages and styles; `others` are the names of what else is there."""
    pages = read(files)
    names = {*files, *others}
    for name, page in pages.items():
        for address in page.loads:
            if address.startswith(("http:", "https:", "//")):
                yield f"{name}: {address} is loaded from another host"
        for address in (*page.loads, *page.links):
            if why := _missing(name, address, names, pages):
                yield f"{name}: {address}: {why}"
    for name, text in files.items():
        if name.endswith(".css"):
            yield from (f"{name}: {found.group(0)} is loaded from another host" for found in _CSS_URL.finditer(text))


def _missing(name: str, address: str, names: set[str], pages: Mapping[str, _Page]) -> str:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc or address.startswith("javascript:"):
        return ""
    target = normpath(join(dirname(name), unquote(parts.path))) if parts.path else name
    if name == "404.html" and parts.path.startswith("/"):
        target = normpath(unquote(parts.path).lstrip("/"))
    if target not in names:
        target = normpath(join(target, "index.html"))
    if target not in names:
        return "there is no such page"
    anchor = unquote(parts.fragment)
    if anchor and not anchor.startswith(("/", "__")) and target in pages and anchor not in pages[target].anchors:
        return "the page has no such anchor"
    return ""


def site_problems(folder: Path) -> list[str]:
    """Return the problems of a site that was built."""
    texts, others = {}, set()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix in (".html", ".css"):
            texts[name] = path.read_text("utf-8")
        elif path.is_file():
            others.add(name)
    return sorted(set(problems(texts, others)))
