"""Which requests are meant for this server: those of HTTP/1 with a Host that is its own.

A page in a browser may reach a server on loopback by a name of its own that it lets point there (DNS rebinding); then
the Host is that name. Kubernetes answers any Host; a server that is always on loopback should not.
"""

import re
from collections.abc import Iterable
from ipaddress import ip_address

from lastcall.world.aiohttp_inside import server as web

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9A-Za-z._-]*))(?::[0-9]*)?")
"""Address or name, with or without a port. (RFC 9110, section 7.2; names as in RFC 1123)"""


MOST_KNOWN = 64
"""Host headers that are remembered."""


class Hosts:
    """The names and addresses of a server: those given, loopback, and what a connection was made to."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset(name.lower() for name in ("localhost", *names))
        self._own: set[str] = set()
        """Host headers that are ours on every connection: clients have few, and this is asked with every request."""

    def refusal(self, request: web.BaseRequest) -> web.Response | None:
        """Return the answer (400, or 421 Misdirected Request) to a request that is not for this server, else None."""
        if request.version[0] != 1:
            return _refused(400, "400 Bad Request: HTTP/1.1 is spoken here")
        host = request.headers.get("Host") or ""
        is_path = request.raw_path.startswith("/")
        if is_path and host in self._own:
            return None
        everywhere = True
        hosts = [host]
        if host and not is_path and request.host != host:  # the request line says where it goes, too
            hosts.append(f"[{request.host}]" if ":" in request.host else request.host)
        for asked in hosts:
            if (name := host_name(asked)) is None:
                return _refused(400, "400 Bad Request: malformed Host header")
            if not self._is_ours(name):
                everywhere = False
                if not _connected_to(name, request):
                    return _refused(421, f"421 Misdirected Request: this server is not {name}")
        if everywhere and len(self._own) < MOST_KNOWN:
            self._own.add(host)
        return None

    def _is_ours(self, name: str) -> bool:
        if name in self._names or not name:  # only a client without a name for it sends none
            return True
        try:
            return ip_address(name).is_loopback
        except ValueError:
            return False


def _connected_to(name: str, request: web.BaseRequest) -> bool:
    """Whether `name` is the address that the request's connection was made to."""
    local = request.transport.get_extra_info("sockname") if request.transport is not None else None
    try:
        return isinstance(local, tuple) and local[0] == str(ip_address(name))
    except ValueError:
        return False


def host_name(host: str) -> str | None:
    """Return the name or address of a Host header, in lower case, without port; None if it is malformed."""
    found = _HOST.fullmatch(host)
    if found is None:
        return None
    address, name = found.groups()
    return (address or name or "").lower().removesuffix(".")


def _refused(status: int, text: str) -> web.Response:
    response = web.Response(status=status, text=text)
    response.force_close()
    return response
