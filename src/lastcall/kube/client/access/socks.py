"""Connections through a SOCKS5 proxy, by the package aiohttp-socks (the extra `socks`)."""

from lastcall.kube.client.access.errors import KubeconfigError
from lastcall.world.aiohttp_inside.client import aiohttp


def socks_connector(proxy: str, *, keepalive_timeout: float) -> aiohttp.TCPConnector:
    """Make a connector whose proxy resolves names, as with Go's client. Raises KubeconfigError."""
    try:
        # late: of the extra `socks`, which few install
        from aiohttp_socks import ProxyConnector
    except ImportError:
        raise KubeconfigError("a socks5 proxy needs a package: pip install 'lastcall[socks]'") from None
    connector: aiohttp.TCPConnector = ProxyConnector.from_url(
        proxy, rdns=True, limit=0, keepalive_timeout=keepalive_timeout
    )
    return connector
