"""URLs in answers, led through the proxy where they are of the target's own host. Pure.

Source: apimachinery pkg/util/proxy/transport.go:rewriteURL; Go's net/url for what a URL is and how it is written.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import quote, unquote_to_bytes

from lastcall.kube.api.field import go_quote
from lastcall.kube.apiserver.proxying.paths import escape, join
from lastcall.world.dataclass import dataclass

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_WRONG_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_RAW_PATH = re.compile(r"[A-Za-z0-9$&+,/:;=@\-_.~!'()*\[\]%]*")


Rewrite = Callable[[str], str]
"""Raises NoURL."""


class NoURL(ValueError):
    """What Go says of a text that is not a URL."""


@dataclass(frozen=True, slots=True)
class URL:
    """`path` is decoded; `raw_path` is how it was written. `query` and `fragment` None: not there."""

    scheme: str
    user: str
    host: str
    path: str
    raw_path: str
    query: str | None
    fragment: str | None
    opaque: str = ""

    def __str__(self) -> str:
        text = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            text += self.opaque
        else:
            if self.host or self.user or (self.scheme and self.path.startswith("//")):
                text += "//" + (f"{self.user}@" if self.user else "") + self.host
            path = self.escaped_path()
            if path and not path.startswith("/") and self.host:
                text += "/"
            if not text and ":" in path.partition("/")[0]:
                text += "./"
            text += path
        if self.query is not None:
            text += f"?{self.query}"
        return text + (f"#{self.fragment}" if self.fragment else "")

    def escaped_path(self) -> str:
        if _RAW_PATH.fullmatch(self.raw_path) and _unescaped(self.raw_path) == self.path:
            return self.raw_path
        return "*" if self.path == "*" else escape(self.path)


def parse(text: str) -> URL:
    """Parse a URL. Raises NoURL."""
    if _CONTROL.search(text):
        raise NoURL(f"parse {go_quote(text)}: net/url: invalid control character in URL")
    rest, _, fragment = text.partition("#")
    scheme = ""
    if rest.startswith(":"):
        raise NoURL(f"parse {go_quote(text)}: missing protocol scheme")
    if (found := _SCHEME.fullmatch(rest)) is not None:
        scheme, rest = found[1].lower(), found[2]
    rest, mark, query_text = rest.partition("?")
    query = query_text if mark else None
    kept_fragment = quote(unquote_to_bytes(fragment), safe="$&+,/:;=@-_.~?!()*") if "#" in text else None
    if scheme and not rest.startswith("/"):
        return URL(scheme, "", "", "", "", query, kept_fragment, rest)
    if not scheme and ":" in rest.partition("/")[0]:
        raise NoURL(f"parse {go_quote(text)}: first path segment in URL cannot contain colon")
    user = host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        user, _, host = authority.rpartition("@")
        if host.startswith("[") and "]" not in host:
            raise NoURL(f"parse {go_quote(text)}: missing ']' in host")
        if re.search(r'[ "<>\\^`{|}]', host):
            raise NoURL(f"parse {go_quote(text)}: invalid character in host name")
    if (wrong := _WRONG_ESCAPE.search(rest)) is not None:
        raise NoURL(f"parse {go_quote(text)}: invalid URL escape {go_quote(wrong[0])}")
    return URL(scheme, user, host, _unescaped(rest), rest, query, kept_fragment)


def rewritten(url: URL, target: str, host: str, prefix: str) -> str:
    """Return the URL as the client is to see it.

    `target` is the target's host and port, `host` the Host header that it was asked with, `prefix` what precedes its
    paths here.
    """
    elsewhere = url.host not in ("", target, host)
    if elsewhere or not url.path.startswith("/"):
        return str(url)
    if url.host != host:
        url = replace(url, scheme="", host="")
    if url.path.startswith(prefix):
        return str(url)
    path = join(prefix, url.path)
    if url.path.endswith("/") and not path.endswith("/"):
        path += "/"
    return str(replace(url, path=path))


def _unescaped(text: str) -> str:
    return unquote_to_bytes(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
