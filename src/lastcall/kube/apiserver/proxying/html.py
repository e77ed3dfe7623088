"""Links in HTML, rewritten while it passes.

Tags are written anew with their attributes, all else stays as it is. Only the tag that has not ended yet is kept. Of
scripts' contents only the end tag is looked for (Go's tokenizer also knows `<script>` within `<!--` within a script).

Sources: apimachinery pkg/util/proxy/transport.go:rewriteHTML, golang.org/x/net/html (Tokenizer, Token.String).
"""

import re
from collections.abc import Callable
from html import unescape

LONGEST_TAG = 64 << 10
"""Bytes of a tag, a comment's start or an end tag; a longer one passes as it is."""
_MOST_LOOKS = 64
"""At a tag that does not end: a target that sends byte by byte costs no more."""

_LINKS: dict[str, tuple[str, ...]] = {
    "a": ("href",), "applet": ("codebase",), "area": ("href",), "audio": ("src",), "base": ("href",),
    "blockquote": ("cite",), "body": ("background",), "button": ("formaction",), "command": ("icon",),
    "del": ("cite",), "embed": ("src",), "form": ("action",), "frame": ("longdesc", "src"), "head": ("profile",),
    "html": ("manifest",), "iframe": ("longdesc", "src"), "img": ("longdesc", "src", "usemap"),
    "input": ("src", "usemap", "formaction"), "ins": ("cite",), "link": ("href",),
    "object": ("classid", "codebase", "data", "usemap"), "q": ("cite",), "script": ("src",), "source": ("src",),
    "video": ("poster", "src"),
}  # fmt: skip
"""Attributes with URLs, by tag (atomsToAttrs)."""
_RAW = {"iframe", "noembed", "noframes", "plaintext", "script", "style", "textarea", "title", "xmp"}
"""The content of these is not HTML, up to their end tags."""

_ATTRIBUTE = re.compile(
    r"""[\s/]*(?P<key>[^\s/>=][^\s/>=]*|=[^\s/>=]*)"""
    r"""(?:\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<plain>[^\s>"'][^\s>]*)|(?=>)))?"""
)
_NAME = re.compile(r"<([A-Za-z][^\s/>]*)")
_TAG_END = re.compile(r"[\s/]*>")
_ESCAPED = str.maketrans({"&": "&amp;", "'": "&#39;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "\r": "&#13;"})


class LinkRewriter:
    """`feed` what comes and `finish` at the end; both answer what goes on. `rewrite` gets an attribute's value."""

    def __init__(self, rewrite: Callable[[str], str]) -> None:
        self._rewrite = rewrite
        self._kept = ""
        self._looks = 0
        self._raw = ""
        """The tag whose end is looked for, "" for none."""

    def feed(self, data: bytes) -> bytes:
        kept, self._kept = self._kept, ""
        text = data.decode("latin-1")
        if kept and ">" not in text and len(kept) + len(text) <= LONGEST_TAG and not self._raw:
            self._kept = kept + text
            return b""
        out, rest = self._passed(kept + text)
        if rest and (len(rest) > LONGEST_TAG or self._looks >= _MOST_LOOKS):
            out, rest, self._looks = out + rest, "", 0
        self._looks = self._looks + 1 if rest else 0
        self._kept = rest
        return out.encode("latin-1")

    def finish(self) -> bytes:
        rest, self._kept = self._kept, ""
        return rest.encode("latin-1")

    def _passed(self, text: str) -> tuple[str, str]:
        """(what is settled, what has to wait for more)"""
        out: list[str] = []
        at = 0
        while at < len(text):
            start, end = self._next(text, at)
            if start < 0:
                out.append(text[at:])
                break
            out.append(text[at:start])
            if end < 0:
                return "".join(out), text[start:]
            piece = text[start:end]
            out.append(self._tag(piece) if not self._raw and _NAME.match(piece) else piece)
            if self._raw and piece.startswith("</"):
                self._raw = ""
            at = end
        return "".join(out), ""

    def _next(self, text: str, at: int) -> tuple[int, int]:
        """Start and end of the next piece that is markup: start -1 for none, end -1 for one that has not ended."""
        if self._raw:
            return _end_of_raw(text, at, self._raw)
        while True:
            start = text.find("<", at)
            if start < 0:
                return -1, -1
            after = text[start + 1 : start + 4]
            if not after:
                return start, -1
            if after[0] == "!":
                return start, _end_of_declaration(text, start, after)
            if after[0] == "?" or (after[0] == "/" and len(after) > 1 and not after[1].isalpha()):
                return start, text.find(">", start) + 1 or -1
            if after[0] == "/" or (after[0].isascii() and after[0].isalpha()):
                return start, _end_of_tag(text, start)
            at = start + 1

    def _tag(self, piece: str) -> str:
        """A start tag, written as Go writes it."""
        found = _NAME.match(piece)
        assert found is not None
        name = _utf8(found[1]).lower()
        links = _LINKS.get(name, ())
        out = [f"<{name}"]
        at, seen = found.end(), len(piece) - 1
        while (attribute := _ATTRIBUTE.match(piece, at, seen + 1)) is not None and attribute.start("key") < seen:
            at = attribute.end()
            key = _utf8(attribute["key"]).lower()
            value = next((attribute[way] for way in ("double", "single", "plain") if attribute[way] is not None), "")
            value = unescape(_utf8(value).replace("\r\n", "\n").replace("\r", "\n"))
            if key in links:
                value = self._rewrite(value)
            out.append(f' {key}="{value.translate(_ESCAPED)}"')
        if name in _RAW:
            self._raw = name
        out.append("/>" if piece[-2] == "/" else ">")
        return "".join(out).encode("utf-8", "surrogateescape").decode("latin-1")


def _end_of_tag(text: str, start: int) -> int:
    """Behind the `>` that ends a tag, quotes seen; -1 when it has not come."""
    found = re.compile(r"</?[^\s/>]*").match(text, start)
    at = found.end() if found is not None else start + 1
    while True:
        if (end := _TAG_END.match(text, at)) is not None:
            return end.end()
        attribute = _ATTRIBUTE.match(text, at)
        if attribute is None or attribute.end() >= len(text):
            return -1
        at = attribute.end()
        if (quote := _OPEN_QUOTE.match(text, at)) is not None and text.find(quote[1], quote.end()) < 0:
            return -1


_OPEN_QUOTE = re.compile(r"\s*=\s*([\"'])")


def _end_of_declaration(text: str, start: int, after: str) -> int:
    if after.startswith("!--"):
        if text.startswith("<!-->", start):
            return start + 5
        if text.startswith("<!--->", start):
            return start + 6
        end = text.find("-->", start + 4)
        return end + 3 if end >= 0 else -1
    return text.find(">", start) + 1 or -1 if len(after) == 3 or ">" in after else -1


def _end_of_raw(text: str, at: int, name: str) -> tuple[int, int]:
    """The end tag of a raw element. Of what cannot be its start nothing is kept."""
    if name == "plaintext":
        return -1, -1
    wanted = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    if (found := wanted.search(text, at)) is not None:
        return found.start(), _end_of_tag(text, found.start())
    last = text.rfind("<", max(at, len(text) - len(name) - 3))
    if last >= 0 and f"</{name}".startswith(text[last:].lower()):
        return last, -1
    return -1, -1


def _utf8(text: str) -> str:
    return text.encode("latin-1").decode("utf-8", "surrogateescape")
