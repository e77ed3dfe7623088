"""Headers that pass, and those that do not. Pure.

What a client proves itself with never reaches a Pod. Sources: net/http/httputil/reverseproxy.go, apiserver
pkg/endpoints/filters/authentication.go and impersonation.go, apimachinery pkg/util/proxy/upgradeaware.go.
"""

import re
from collections.abc import Iterable

Headers = list[tuple[str, str]]

_OF_A_HOP = {
    "connection", "proxy-connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer",
    "transfer-encoding", "upgrade",
}  # fmt: skip
_CREDENTIALS = {"authorization", "x-remote-user", "x-remote-group", "x-remote-uid"}
_CREDENTIAL_PREFIXES = ("impersonate-", "x-remote-extra-")
_CORS = {
    "access-control-allow-credentials", "access-control-allow-headers", "access-control-allow-methods",
    "access-control-allow-origin",
}  # fmt: skip
_BEARER_PROTOCOL = "base64url.bearer.authorization.k8s.io."
"""A token of a WebSocket's client, which cannot set headers (websocket.go:ProtocolAuthenticator)."""
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_IN_A_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def _listed(headers: Headers, name: str) -> list[str]:
    return [
        word.strip().lower()
        for key, value in headers
        if key.lower() == name
        for word in value.split(",")
        if word.strip()
    ]


def wants_upgrade(headers: Iterable[tuple[str, str]]) -> bool:
    """Return whether a request asks for an upgrade. (httpstream.go:IsUpgradeRequest)"""
    return any(key.lower() == "connection" and "upgrade" in value.lower() for key, value in headers)


def request_headers(headers: Headers, client: str, uri: str) -> Headers:
    """Return what the target is sent, except Host and the body's length. `client` is the client's address."""
    hop = _OF_A_HOP | set(_listed(headers, "connection")) | {"expect", "content-length", "host"}
    passed = [
        (_canonical(key), value)
        for key, value in headers
        if (value or key.lower() != "user-agent")
        and not _is_credential(key)
        and key.lower() not in hop | {"x-forwarded-for", "x-forwarded-uri"}
    ]
    if "trailers" in _listed(headers, "te"):
        passed.append(("Te", "trailers"))
    return [*passed, ("X-Forwarded-For", _forwarded_for(headers, client)), ("X-Forwarded-Uri", uri)]


def upgrade_headers(headers: Headers, client: str) -> Headers:
    """Return the headers for an upgrade. Nearly all pass: both ends have to agree on a protocol."""
    left_out = {"x-forwarded-for", "content-length", "transfer-encoding", "expect", "host"}
    passed = []
    for key, value in headers:
        if _is_credential(key) or key.lower() in left_out:
            continue
        if key.lower() == "sec-websocket-protocol":
            value = ", ".join(
                each.strip() for each in value.split(",") if not each.strip().startswith(_BEARER_PROTOCOL)
            )
            if not value:
                continue
        passed.append((key, value))
    return [*passed, ("X-Forwarded-For", _forwarded_for(headers, client))]


def response_headers(headers: Headers) -> Headers:
    """Return what the client gets: nothing about the connection or that lets other origins in, no invalid headers."""
    hop = _OF_A_HOP | set(_listed(headers, "connection")) | _CORS
    return [
        (key, value)
        for key, value in headers
        if key.lower() not in hop and _NAME.fullmatch(key) and not _NOT_IN_A_VALUE.search(value)
    ]


def _canonical(key: str) -> str:
    """As Go writes it; one header in two spellings stays one."""
    return "-".join(part.capitalize() for part in key.split("-"))


def _is_credential(key: str) -> bool:
    key = key.lower()
    return key in _CREDENTIALS or key.startswith(_CREDENTIAL_PREFIXES)


def _forwarded_for(headers: Headers, client: str) -> str:
    before = [value for key, value in headers if key.lower() == "x-forwarded-for"]
    return ", ".join([*before, client])


def sendable(headers: Iterable[tuple[str, str]]) -> Headers:
    """Remove values that are not UTF-8, which aiohttp cannot write."""
    return [(key, value) for key, value in headers if not _SURROGATE.search(key + value)]


_SURROGATE = re.compile(r"[\ud800-\udfff]")
