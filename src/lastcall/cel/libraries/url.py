"""URLs (apiserver pkg/cel/library/urls.go)."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from lastcall.api.field import go_quote
from lastcall.cel.libraries.library import Library, declared
from lastcall.cel.libraries.measures import always, first_traversed, for_all, one, read_once
from lastcall.cel.values import EvaluationError

ROWS = """
url             string_to_url         (string) -> URL
getScheme       url_get_scheme        URL.() -> string
getHost         url_get_host          URL.() -> string
getHostname     url_get_hostname      URL.() -> string
getPort         url_get_port          URL.() -> string
getEscapedPath  url_get_escaped_path  URL.() -> string
getQuery        url_get_query         URL.() -> map(string, list(string))
isURL           is_url_string         (string) -> bool
"""

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
WRONG_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
ASCII_ESCAPE = re.compile(r"%(?!25)[0-7][0-9A-Fa-f]")
NOT_IN_A_HOST = re.compile(r"[^A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff]")
NOT_A_USER = re.compile(r"[^A-Za-z0-9\-._:~!$&'()*+,;=%@]")
PORT = re.compile(r"(?::[0-9]*)?\Z", re.ASCII)
CONTROL = re.compile(r"[\0-\x1f\x7f]")
ENCODED = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]%/]*\Z")
SAFE = "$&+,/:;=@-_.~"
FAILED = "URL parse error during conversion from string: "


class Parts(NamedTuple):
    scheme: str = ""
    opaque: str = ""
    user: str = ""
    host: str = ""
    path: str = ""
    """As it was written."""
    query: str = ""
    fragment: str = ""


@dataclass(frozen=True, slots=True)
class URL:
    parts: Parts
    cel_type: ClassVar[str] = "kubernetes.URL"
    cel_unit: ClassVar[bool] = True


class URLError(ValueError):
    """Go's words for what is wrong (net/url)."""


def parse(text: str, *, request: bool) -> Parts:
    """Go's url.ParseRequestURI (`request`), url.Parse otherwise. Raises URLError."""
    rest, fragment = text, ""
    if not request:
        rest, _, fragment = text.partition("#")
    if CONTROL.search(text):
        raise URLError("net/url: invalid control character in URL")
    if not text and request:
        raise URLError("empty url")
    if rest == "*":
        return Parts(path="*", fragment=fragment)
    if rest.startswith(":"):
        raise URLError("missing protocol scheme")
    found = SCHEME.match(rest)
    scheme = found[0][:-1].lower() if found else ""
    rest = rest[found.end() :] if found else rest
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Parts(scheme, opaque=rest, query=query, fragment=fragment)
        if request:
            raise URLError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise URLError("first path segment in URL cannot contain colon")
    user = host = ""
    if rest.startswith("//") and (scheme or (not request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = parse_authority(authority)
    unescape(rest)
    return Parts(scheme, "", user, host, rest, query, fragment)


def parse_authority(authority: str) -> tuple[str, str]:
    user, _, host = authority.rpartition("@")
    host = parse_host(host)
    if NOT_A_USER.search(user):
        raise URLError("net/url: invalid userinfo")
    unescape(user)
    return user, host


def parse_host(host: str) -> str:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise URLError("missing ']' in host")
        port = host[end + 1 :]
    else:
        at = host.rfind(":")
        port = host[at:] if at >= 0 else ""
    if not PORT.match(port):
        raise URLError(f"invalid port {go_quote(port)} after host")
    wrong = ASCII_ESCAPE.search(host)
    if wrong and not host.startswith("["):
        raise URLError(f"invalid URL escape {go_quote(wrong[0])}")
    unescaped = unescape(host)
    sign = NOT_IN_A_HOST.search(host)
    if sign:
        raise URLError(f"invalid character {go_quote(sign[0])} in host name")
    return unescaped


def unescape(text: str) -> str:
    wrong = WRONG_ESCAPE.search(text)
    if wrong:
        raise URLError(f"invalid URL escape {go_quote(wrong[0])}")
    return unquote_to_bytes(text).decode("utf-8", "replace") if "%" in text else text


def request_error(text: str) -> str:
    """Why a text is not the URI of a request; "" if it is."""
    try:
        parse(text, request=True)
    except URLError as error:
        return f"parse {go_quote(text)}: {error}"
    return ""


def read(text: str) -> URL:
    error = request_error(text)
    if error:
        raise EvaluationError(FAILED + error)
    try:
        return URL(parse(text, request=False))
    except URLError as wrong:
        raise EvaluationError(f"{FAILED}parse {go_quote(text)}: {wrong}") from None


def hostname(url: URL) -> str:
    host = url.parts.host
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def port(url: URL) -> str:
    host = url.parts.host
    return host.rpartition(":")[2] if ":" in host.rpartition("]")[2] else ""


def escaped_path(url: URL) -> str:
    path = url.parts.path
    if path == "*" or ENCODED.match(path):
        return path
    return quote(unquote_to_bytes(path), SAFE)


def query(url: URL) -> dict[str, list[str]]:
    """Pairs with a semicolon or a wrong escape are left out."""
    found: dict[str, list[str]] = {}
    for pair in url.parts.query.split("&"):
        if not pair or ";" in pair or WRONG_ESCAPE.search(pair):
            continue
        key, _, value = pair.replace("+", " ").partition("=")
        found.setdefault(unescape(key), []).append(unescape(value))
    return found


IMPLEMENTATIONS: dict[str, Callable[..., object]] = {
    "string_to_url": read,
    "url_get_scheme": lambda url: url.parts.scheme,
    "url_get_host": lambda url: url.parts.host,
    "url_get_hostname": hostname,
    "url_get_port": port,
    "url_get_escaped_path": escaped_path,
    "url_get_query": query,
    "is_url_string": lambda text: not request_error(text),
}
LIBRARY = Library(
    "url",
    declared(ROWS),
    implementations=IMPLEMENTATIONS,
    costs={**for_all(IMPLEMENTATIONS, one), "string_to_url": first_traversed()},
    estimates={**dict.fromkeys(IMPLEMENTATIONS, always(1)), "string_to_url": read_once(same_size=True)},
)
