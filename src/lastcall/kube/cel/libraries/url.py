"""URLs (apiserver pkg/cel/library/urls.go)."""

import re
from collections.abc import Callable
from typing import ClassVar
from urllib.parse import quote, unquote_to_bytes

from lastcall.kube.api.text.go_url import WRONG_ESCAPE, Parts, URLError, parse, unescape
from lastcall.kube.cel.libraries.library import Library, declared
from lastcall.kube.cel.libraries.measures import always, first_traversed, for_all, one, read_once
from lastcall.kube.cel.values import EvaluationError
from lastcall.world.dataclass import dataclass

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

ENCODED = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]%/]*\Z")
SAFE = "$&+,/:;=@-_.~"
FAILED = "URL parse error during conversion from string: "


@dataclass(frozen=True, slots=True)
class URL:
    parts: Parts
    cel_type: ClassVar[str] = "kubernetes.URL"
    cel_unit: ClassVar[bool] = True


def request_error(text: str) -> str:
    """Return why a text is not the URI of a request; "" if it is."""
    try:
        parse(text, request=True)
    except URLError as error:
        return str(error)
    return ""


def read(text: str) -> URL:
    error = request_error(text)
    if error:
        raise EvaluationError(FAILED + error)
    try:
        return URL(parse(text))
    except URLError as wrong:
        raise EvaluationError(f"{FAILED}{wrong}") from None


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
    """Return the values of each key. Pairs with a semicolon or a wrong escape are left out."""
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
