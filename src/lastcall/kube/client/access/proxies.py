"""Which proxy a request to an API server goes through. Pure.

What the kubeconfig says (`proxy-url`), else the variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY as Go reads them:
loopback never goes through a proxy that a variable names.

Source: client-go tools/clientcmd/helpers.go:parseProxyURL; golang.org/x/net/http/httpproxy.
"""

# check: pure

import ipaddress
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from lastcall.kube.client.access.errors import KubeconfigError
from lastcall.kube.client.access.values import split_url

SCHEMES = ("http", "https", "socks5")


def proxy_for(server: str, proxy_url: str, environ: Mapping[str, str]) -> str:
    """Return the URL of the proxy, or "" for none. Raises KubeconfigError."""
    if proxy_url:
        return _checked(proxy_url, "proxy-url")
    parts = urlsplit(server)
    name = f"{parts.scheme}_proxy"
    key = name.upper() if environ.get(name.upper()) else name
    text = environ.get(key, "")
    if not text or not _goes_through(parts, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return ""
    return _checked(text if "://" in text else f"http://{text}", f"${key}")


def _checked(text: str, field: str) -> str:
    try:
        parts = split_url(text)
    except ValueError as error:
        raise KubeconfigError(f"{field} is not a URL: {error}") from None
    if parts.scheme not in SCHEMES:
        raise KubeconfigError(
            f"{field}: unsupported scheme {parts.scheme!r}, must be http, https, or socks5: write socks5://host:port"
        )
    if not parts.hostname:
        raise KubeconfigError(f"{field}: there is no host in it: write {parts.scheme}://host:port")
    return text


def _goes_through(server: SplitResult, exceptions: str) -> bool:
    """(httpproxy.config:useProxy)"""
    host = (server.hostname or "").rstrip(".")
    port = server.port or {"http": 80, "https": 443}.get(server.scheme, 0)
    if host == "localhost":
        return False
    address = _address(host)
    if address is not None and address.is_loopback:
        return False
    return not any(_matches(each.strip().lower(), host, port, address) for each in exceptions.split(","))


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _matches(rule: str, host: str, port: int, address: _Address | None) -> bool:
    if not rule:
        return False
    if rule == "*":
        return True
    try:
        network = ipaddress.ip_network(rule, strict=False)
        return address is not None and address in network
    except ValueError:
        pass
    name, colon, wanted = rule.rpartition(":")
    if colon and wanted.isdecimal():
        if int(wanted) != port:
            return False
        rule = name.strip("[]")
    if (exact := _address(rule)) is not None:
        return exact == address
    rule = rule.removeprefix("*")
    return host.endswith(rule) if rule.startswith(".") else host == rule or host.endswith(f".{rule}")


def _address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
