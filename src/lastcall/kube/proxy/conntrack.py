"""Which UDP flows of the kernel have to end because an endpoint no longer serves. Pure.

Source: pkg/proxy/conntrack/cleanup.go:CleanStaleEntries.
"""

from collections.abc import Iterable

from lastcall.kube.nftables.conntrack import UDPFrontend
from lastcall.kube.proxy.rules import PortRules


def frontends_to_clean(rules: Iterable[PortRules]) -> dict[UDPFrontend, frozenset[str]]:
    """Return by UDP address and port the endpoints that may keep their flows. A Service without endpoints keeps all."""
    found: dict[UDPFrontend, frozenset[str]] = {}
    for port in rules:
        if not port.serving:
            continue
        for frontend in port.frontends:
            if frontend.protocol == "UDP":
                found[frontend.address, frontend.port] = frozenset(port.serving)
    return found
