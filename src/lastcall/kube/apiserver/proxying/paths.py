"""Paths of proxied requests, as Go cleans, escapes and cuts them. Pure.

Paths are decoded text, bytes that are not UTF-8 as surrogates; what is sent is escaped again, so no byte of a path can
end a line or a request.

Sources: path.Clean, net/url:escape, apimachinery pkg/util/net/http.go:JoinPreservingTrailingSlash,
pkg/util/proxy/upgradeaware.go and transport.go:RoundTrip.
"""

import posixpath
import re
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

_WRONG_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NOT_IN_A_QUERY = re.compile(r"[^!-~]")
_SAFE = "$&+,/:;=@-_.~"
"""What Go leaves as it is in a path, besides letters and digits."""


class Asked(NamedTuple):
    """The request's own path, decoded; the part behind `…/proxy`, cleaned ("" for none); the query as it came."""

    path: str
    rest: str
    query: str


def asked_path(raw: str, parts: tuple[str, ...]) -> Asked | None:
    """Parse a path. `raw` is from the request line, `parts` are its parts behind `proxy`. None for a wrong escape."""
    if not raw.startswith("/"):  # http://host/path
        _, _, raw = raw.partition("//")
        raw = "/" + raw.partition("/")[2]
    raw, _, query = raw.partition("?")
    if _WRONG_ESCAPE.search(raw):
        return None
    path = unquote_to_bytes(raw.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
    rest = ""
    if parts:
        rest = clean("/" + "/".join(parts))
    if path.endswith("/") and not rest.endswith("/"):
        rest += "/"
    query = _NOT_IN_A_QUERY.sub(lambda found: quote(found[0].encode("utf-8", "surrogateescape")), query)
    return Asked(path, rest, query)


def clean(path: str) -> str:
    """Clean an absolute path as Go's path.Clean does."""
    cleaned = posixpath.normpath(path)
    return "/" + cleaned.lstrip("/")


def join(first: str, second: str) -> str:
    """Join paths as Go's path.Join does."""
    both = "/".join(each for each in (first, second) if each)
    if not both:
        return ""
    return clean(both) if both.startswith("/") else posixpath.normpath(both)


def escape(path: str) -> str:
    """Escape a decoded path as Go's URL.EscapedPath does."""
    return quote(path.encode("utf-8", "surrogateescape"), safe=_SAFE)


def prefix_of(asked: Asked) -> str:
    """Return what precedes the part that is passed on: links get it in front. A path that was not clean is not found at
    the end, and stays whole, as in kube-apiserver."""
    return asked.path.removesuffix(asked.rest) if asked.rest else asked.path


def forwarded_uri(asked: Asked) -> str:
    """Return the X-Forwarded-Uri header."""
    uri = join(prefix_of(asked), escape(asked.rest or "/"))
    if (asked.rest or "/").endswith("/") and not uri.endswith("/"):
        uri += "/"
    return quote(uri.encode("utf-8", "surrogateescape"), safe=_SAFE + "%")


def slash_redirect(asked: Asked) -> str:
    """Return where a GET of `…/proxy` is sent (issue.k8s.io/4958)."""
    return escape(asked.path) + "/" + (f"?{asked.query}" if asked.query else "")
