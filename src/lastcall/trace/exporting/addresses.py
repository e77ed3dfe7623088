"""Where it listens and where it sends to, as users write it. Pure.

Loopback is the rule: it listens elsewhere only when an address says so, and sends in plain text to loopback alone.
"""

# check: pure

import ipaddress
from urllib.parse import SplitResult, urlsplit

from lastcall.world.dataclass import dataclass

DEFAULT_LISTEN = "127.0.0.1:9464"
"""The port that OpenTelemetry's specification has for Prometheus exporters (`OTEL_EXPORTER_PROMETHEUS_PORT`)."""


class AddressError(ValueError):
    """The text names the value and the fix."""


@dataclass(frozen=True, slots=True)
class Listen:
    """`host` is an IP address; port 0 lets the kernel choose."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        return ipaddress.ip_address(self.host).is_loopback

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen(text: str, example: str = DEFAULT_LISTEN) -> Listen:
    """Parse `ADDRESS:PORT`, `[ADDRESS]:PORT` for IPv6, or `localhost:PORT`. Raises AddressError, with the `example`.

    A name is not looked up, and nothing before the port does not mean every address: 0.0.0.0 does.
    """
    host, colon, port = text.strip().rpartition(":")
    if not colon:
        raise AddressError(f"{text!r} has no port; fix: {example}")
    if not port.isdecimal() or not port.isascii() or int(port) > 65535:
        raise AddressError(f"{port!r} in {text!r} is not a port: 0 to 65535; fix: {example}")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise AddressError(f"{text!r}: an IPv6 address needs brackets; fix: [{host}]:{port}")
    host = "127.0.0.1" if host == "localhost" else host
    if not host:
        raise AddressError(f"{text!r} has no address; fix: 127.0.0.1:{port}, or 0.0.0.0:{port} for every address")
    try:
        return Listen(str(ipaddress.ip_address(host)), int(port))
    except ValueError:
        raise AddressError(f"{host!r} in {text!r} is not an IP address; fix: 127.0.0.1:{port}") from None


def parse_endpoint(text: str) -> str:
    """Return the URL that spans are sent to, with OTLP's path where the URL has none. Raises AddressError.

    Names of Pods and users go there: plain http is for loopback, https for everywhere else.
    """
    try:
        parts = urlsplit(text.strip())
        _ = parts.port
    except ValueError as error:
        raise AddressError(f"{text!r} is not a URL: {error}; fix: http://127.0.0.1:4318") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise AddressError(f"{text!r} is not an http or https URL; fix: http://127.0.0.1:4318")
    if parts.username is not None or parts.password is not None:
        raise AddressError("the URL contains credentials; fix: put them into OTEL_EXPORTER_OTLP_HEADERS")
    if parts.query or parts.fragment:
        raise AddressError(f"{text!r} has a query or a fragment; fix: remove it")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise AddressError(f"{text!r} sends plain http to another machine; fix: use https, or a collector on 127.0.0.1")
    path = parts.path.rstrip("/")
    path = path if path.endswith("/v1/traces") else f"{path}/v1/traces"
    return SplitResult(parts.scheme, parts.netloc, path, "", "").geturl()


def is_loopback_url(url: str) -> bool:
    """Return whether a URL of `parse_endpoint` is on this machine."""
    return _is_loopback(urlsplit(url).hostname or "")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
