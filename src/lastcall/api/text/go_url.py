"""URLs as Go's net/url.Parse reads them (Go 1.26), with its errors. Pure.

Source: net/url/url.go (Parse, parseAuthority, parseHost, unescape), net/netip (ParseAddr).
"""

# check: pure

import re
from ipaddress import AddressValueError, IPv6Address
from typing import NamedTuple
from urllib.parse import quote, unquote

from lastcall.api.field import go_quote

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*(?=:)")
_PORT = re.compile(r"(?::[0-9]*)?")
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_NOT_IN_HOSTS = re.compile(r"[\x00-\x20#/?@\\^`{|}\x7f]")
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}|%[0-9A-Fa-f]{2}", re.DOTALL)
_IN_USER = "$&+,;=:"
"""What a user's name keeps unescaped when it is printed, but for the colon and what no name has."""


class URLError(ValueError):
    """Go does not read the text as a URL. The text is Go's: `parse "…": why`."""


class URL(NamedTuple):
    """The parts that Go finds; `user` is None without an `@`."""

    scheme: str
    user: str | None
    host: str
    query: str
    fragment: str


def parse(text: str) -> URL:
    """Return the parts of a URL. Raises URLError."""
    before, _, fragment = text.partition("#")
    try:
        scheme, user, host, query = _parse(before)
    except ValueError as error:
        raise URLError(f"parse {go_quote(before)}: {error}") from None
    try:
        _check_escapes(fragment)
    except ValueError as error:
        raise URLError(f"parse {go_quote(text)}: {error}") from None
    return URL(scheme, user, host, query, unquote(fragment))


def _parse(text: str) -> tuple[str, str | None, str, str]:
    """(scheme, user, host, query) of a URL without fragment. Raises ValueError."""
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise ValueError("net/url: invalid control character in URL")
    if text.startswith(":"):
        raise ValueError("missing protocol scheme")
    found = _SCHEME.match(text)
    scheme = found[0].lower() if found else ""
    rest = text[len(scheme) + 1 :] if found else text
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if not scheme and ":" in rest.partition("/")[0]:
            raise ValueError("first path segment in URL cannot contain colon")
        if not scheme:
            _check_escapes(rest)
        return scheme, None, "", query
    user, host = None, ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        before, at, after = authority.rpartition("@")
        host = _host(after)
        if at:
            user = _user(before)
    _check_escapes(rest)
    return scheme, user, host, query


def _user(text: str) -> str:
    """Return a user as Go prints one. Raises ValueError."""
    if not _USER.fullmatch(text):
        raise ValueError("net/url: invalid userinfo")
    _check_escapes(text)
    return ":".join(quote(unquote(part), safe=_IN_USER.replace(":", "")) for part in text.split(":", 1))


def _host(text: str) -> str:
    """Return a host with its port. Raises ValueError."""
    opening = text.rfind("[")
    if opening >= 0:
        if opening:
            raise ValueError("invalid IP-literal")
        closing = text.rfind("]")
        if closing < 0:
            raise ValueError("missing ']' in host")
        port = text[closing + 1 :]
        _check_port(port)
        address, zoned, zone = text[1:closing].partition("%25")
        _check_host(address)
        _check_escapes(zone)
        _check_address(unquote(address) + ("%" + unquote(zone) if zoned else ""))
        return text
    if (colon := text.find(":")) >= 0:
        _check_port(text[colon:])
    _check_host(text)
    return unquote(text)


def _check_port(text: str) -> None:
    if not _PORT.fullmatch(text):
        raise ValueError(f"invalid port {go_quote(text)} after host")


def _check_address(text: str) -> None:
    try:
        IPv6Address(text)
    except AddressValueError:
        if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3}){3}", text):
            raise ValueError("invalid IP-literal") from None
        raise ValueError(f"invalid host: ParseAddr({go_quote(text)}): unable to parse IP") from None


def _check_host(text: str) -> None:
    """Only bytes that are not ASCII may be escaped in a host."""
    for index, char in enumerate(text):
        if char == "%":
            _check_escapes(text[index : index + 3])
            if text[index + 1] < "8":
                raise ValueError(f"invalid URL escape {go_quote(text[index : index + 3])}")
        elif _NOT_IN_HOSTS.match(char):
            raise ValueError(f"invalid character {go_quote(char)} in host name")


def _check_escapes(text: str) -> None:
    for found in _ESCAPE.finditer(text):
        if not re.fullmatch(r"%[0-9A-Fa-f]{2}", found[0]):
            raise ValueError(f"invalid URL escape {go_quote(found[0])}")
