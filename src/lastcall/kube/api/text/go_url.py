"""URLs as Go 1.26 reads them, with its errors. Pure.

Source: net/url/url.go (Parse, ParseRequestURI, parseAuthority, parseHost, unescape), net/netip (ParseAddr).
"""

# check: pure

import re
from ipaddress import AddressValueError, IPv6Address
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from lastcall.kube.api.field import go_quote

WRONG_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)")
_PORT = re.compile(r"(?::[0-9]*)?\Z", re.ASCII)
_CONTROL = re.compile(r"[\0-\x1f\x7f]")
_NOT_A_USER = re.compile(r"[^A-Za-z0-9\-._:~!$&'()*+,;=%@]")
_NOT_IN_A_HOST = re.compile(r"[^A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff]")
_ASCII_ESCAPE = re.compile(r"%(?!25)[0-7][0-9A-Fa-f]")
_IPV4 = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}", re.ASCII)
_IN_USER = "$&+,;="
"""What a user's name keeps unescaped when it is printed, besides letters, digits and `-_.~`."""


class URLError(ValueError):
    """Go does not read the text as a URL. The text is Go's: `parse "…": why`."""


class Parts(NamedTuple):
    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    """As Go prints it; None without an `@`."""
    host: str = ""
    """With its port."""
    path: str = ""
    """As it was written."""
    query: str = ""
    fragment: str = ""


def parse(text: str, *, request: bool = False) -> Parts:
    """Return the parts of a URL. Raises URLError. (url.ParseRequestURI with `request`, else url.Parse)"""
    rest, _, fragment = (text, "", "") if request else text.partition("#")
    try:
        parts = _parse(rest, request)
    except ValueError as error:
        raise URLError(f"parse {go_quote(rest)}: {error}") from None
    try:
        return parts._replace(fragment=unescape(fragment))
    except ValueError as error:
        raise URLError(f"parse {go_quote(text)}: {error}") from None


def unescape(text: str) -> str:
    """Return a text without its percent escapes. Raises ValueError with Go's words."""
    if wrong := WRONG_ESCAPE.search(text):
        raise ValueError(f"invalid URL escape {go_quote(wrong[0])}")
    return unquote_to_bytes(text).decode("utf-8", "replace") if "%" in text else text


def _parse(text: str, request: bool) -> Parts:
    """Return the parts of a URL without fragment. Raises ValueError with Go's words."""
    if _CONTROL.search(text):
        raise ValueError("net/url: invalid control character in URL")
    if not text and request:
        raise ValueError("empty url")
    if text == "*":
        return Parts(path="*")
    if text.startswith(":"):
        raise ValueError("missing protocol scheme")
    found = _SCHEME.match(text)
    scheme = found[0].lower() if found else ""
    rest, _, query = (text[found.end() + 1 :] if found else text).partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Parts(scheme, opaque=rest, query=query)
        if request:
            raise ValueError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise ValueError("first path segment in URL cannot contain colon")
    user, host = None, ""
    if rest.startswith("//") and (scheme or (not request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        before, at, after = authority.rpartition("@")
        host = _host(after)
        user = _user(before) if at else None
    unescape(rest)
    return Parts(scheme, "", user, host, rest, query)


def _user(text: str) -> str:
    """Return a user as Go prints one. Raises ValueError."""
    if _NOT_A_USER.search(text):
        raise ValueError("net/url: invalid userinfo")
    unescape(text)
    return ":".join(quote(unquote_to_bytes(part), _IN_USER) for part in text.split(":", 1))


def _host(text: str) -> str:
    """Return a host with its port. Raises ValueError."""
    opening = text.rfind("[")
    if opening > 0:
        raise ValueError("invalid IP-literal")
    if opening == 0:
        return _address(text)
    if (colon := text.find(":")) >= 0:
        _check_port(text[colon:])
    return _host_text(text)


def _address(text: str) -> str:
    """Return an address in brackets, with its port. Raises ValueError."""
    closing = text.rfind("]")
    if closing < 0:
        raise ValueError("missing ']' in host")
    port = text[closing + 1 :]
    _check_port(port)
    address, zoned, zone = text[1:closing].partition("%25")
    address = _host_text(address) + (f"%{unescape(zone)}" if zoned else "")
    try:
        IPv6Address(address)
    except AddressValueError:
        if _IPV4.fullmatch(address):
            raise ValueError("invalid IP-literal") from None
        raise ValueError(f"invalid host: ParseAddr({go_quote(address)}): unable to parse IP") from None
    return f"[{address}]{port}"


def _check_port(text: str) -> None:
    if not _PORT.match(text):
        raise ValueError(f"invalid port {go_quote(text)} after host")


def _host_text(text: str) -> str:
    """Return a host, in which only bytes that are not ASCII may be escaped. Raises ValueError."""
    wrong = [found for each in (WRONG_ESCAPE, _ASCII_ESCAPE, _NOT_IN_A_HOST) if (found := each.search(text))]
    if wrong:
        first = min(wrong, key=lambda found: found.start())
        if first[0].startswith("%"):
            raise ValueError(f"invalid URL escape {go_quote(first[0])}")
        raise ValueError(f"invalid character {go_quote(first[0])} in host name")
    return unescape(text)
