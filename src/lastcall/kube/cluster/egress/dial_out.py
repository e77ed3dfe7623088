"""Front's dialing: a TCP connection from the host, through the host's proxy where the environment names one.

Blocking: it runs in a thread of its own. Source of the proxy rules: golang.org/x/net/http/httpproxy.
"""

import base64
import ipaddress
import os
import socket
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from lastcall.world.dataclass import dataclass

CONNECT_SECONDS = 20.0
"""For one address; a name may have several."""
_MAX_PROXY_ANSWER = 16 * 1024


class DialOutError(Exception):
    """No connection; the text is Go's wording, which Kubernetes shows to users."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy that is asked with CONNECT. `authorization` is the header's value, "" for none."""

    host: str
    port: int
    authorization: str = ""


def dial_out(host: str, port: int, *, tls: bool, environ: Mapping[str, str] | None = None) -> socket.socket:
    """Return a connected, blocking socket; TLS is the caller's. Raises DialOutError."""
    proxy = proxy_for(host, port, tls=tls, environ=os.environ if environ is None else environ)
    if proxy is None:
        return _connect(host, port)
    try:
        sock = _connect(proxy.host, proxy.port)
    except DialOutError as error:
        raise DialOutError(f"proxyconnect tcp: {error}") from error
    try:
        _tunnel(sock, host, port, proxy)
    except BaseException:
        sock.close()
        raise
    return sock


def proxy_for(host: str, port: int, *, tls: bool, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy of `HTTPS_PROXY` (`HTTP_PROXY` without TLS); None for `NO_PROXY` and loopback.

    Raises DialOutError for a proxy that cannot be used.
    """
    name = "HTTPS_PROXY" if tls else "HTTP_PROXY"
    text = environ.get(name) or environ.get(name.lower()) or ""
    no_proxy = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if not text or is_loopback(host) or _is_excepted(host, port, no_proxy):
        return None
    parts = urlsplit(text if "://" in text else f"http://{text}")
    try:
        proxy_port = parts.port or 80
    except ValueError:
        proxy_port = 0
    if parts.scheme != "http" or not parts.hostname or not proxy_port:
        shown = f"{parts.scheme}://{parts.hostname}" if parts.hostname else "no URL"
        raise DialOutError(f"{name} is {shown}: only http://HOST:PORT proxies can be used")
    authorization = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return Proxy(parts.hostname, proxy_port, authorization)


def is_loopback(host: str) -> bool:
    """Return True for `localhost` and addresses of the loopback network. No name is looked up."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _is_excepted(host: str, port: int, no_proxy: str) -> bool:
    host = host.lower()
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        address = None
    for entry in (part.strip().lower() for part in no_proxy.split(",")):
        if entry == "*":
            return True
        if not entry:
            continue
        if address is not None:
            try:
                if address in ipaddress.ip_network(entry, strict=False):
                    return True
            except ValueError:
                pass
        name, _, wanted = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
        if wanted and wanted != str(port):
            continue
        name = name.removeprefix("*")
        if name.startswith(".") and host.endswith(name):
            return True
        if host == name or host.endswith(f".{name}"):
            return True
    return False


def _connect(host: str, port: int) -> socket.socket:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        raise DialOutError(f"dial tcp: lookup {host}: no such host") from None
    first = ""
    for family, kind, protocol, _, address in addresses:
        shown = f"[{address[0]}]:{port}" if family == socket.AF_INET6 else f"{address[0]}:{port}"
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(CONNECT_SECONDS)
            sock.connect(address)
            sock.settimeout(None)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except TimeoutError:
            first = first or f"dial tcp {shown}: i/o timeout"
        except OSError as error:
            first = first or f"dial tcp {shown}: connect: {(error.strerror or str(error)).lower()}"
        sock.close()
    raise DialOutError(first or f"dial tcp: lookup {host}: no such host")


def _tunnel(sock: socket.socket, host: str, port: int, proxy: Proxy) -> None:
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if any(character.isspace() for character in target):
        raise DialOutError(f"{host!r} is not a host name")
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    answer = b""
    try:
        sock.settimeout(CONNECT_SECONDS)
        sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("idna" if not target.isascii() else "ascii"))
        while b"\r\n\r\n" not in answer:
            # One byte at a time: what follows the answer is the registry's.
            byte = sock.recv(1)
            if not byte or len(answer) > _MAX_PROXY_ANSWER:
                raise DialOutError(f"proxyconnect tcp: {proxy.host}:{proxy.port} does not answer as a proxy")
            answer += byte
        sock.settimeout(None)
    except OSError as error:
        why = "i/o timeout" if isinstance(error, TimeoutError) else (error.strerror or str(error)).lower()
        raise DialOutError(f"proxyconnect tcp: {proxy.host}:{proxy.port}: {why}") from None
    status = answer.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
    if len(status) < 2 or status[1] != "200":
        raise DialOutError(f"proxyconnect tcp: {proxy.host}:{proxy.port}: {' '.join(status[1:]) or 'no status'}")
