"""TLS of the load generator: what it trusts, the name that it checks, and how a handshake fails."""

import ssl

from lastcall.traffic.outcome import Lost

HTTP1, HTTP2 = "http/1.1", "h2"


class Secured:
    """Connections to a server that proves to be `name`. `ca_pem` "" trusts the authorities of this machine. A handshake
    has `seconds`.

    Raises ssl.SSLError for a `ca_pem` that has no certificate.
    """

    def __init__(self, name: str, ca_pem: str = "", seconds: float = 10.0) -> None:
        self.name, self.seconds = name, seconds
        self._contexts = {protocol: _context(ca_pem, protocol) for protocol in (HTTP1, HTTP2)}

    def context(self, protocol: str) -> ssl.SSLContext:
        """Return a context that offers the one protocol (ALPN)."""
        return self._contexts[protocol]


def _context(ca_pem: str, protocol: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca_pem or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols([protocol])
    return context


def lost_in_handshake(error: OSError) -> Lost:
    """Return what a failed handshake is to its request. A FIN within it reaches us as a reset without number. Pure."""
    if isinstance(error, ssl.SSLEOFError):
        return "closed before bytes"
    if isinstance(error, ssl.SSLError):
        return "no TLS"
    return "reset before bytes" if error.errno else "closed before bytes"
