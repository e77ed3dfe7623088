"""What a load generator is asked to send, and where to. Data only."""

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.traffic.outcome import Kind
    from lastcall.world.conntrack import Address


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of the generator. `rates` are requests per second by kind; `timeout` is seconds for one answer."""

    target: "Address" = ("", 0)
    """The Service's; not used once `Generator.targets` was given some."""
    rates: "Mapping[Kind, float]" = field(default_factory=dict)
    host: str = ""
    path: str = "/"
    slow_path: str = "/slow"
    timeout: float = 10.0
    stream_path: str = "/stream"
    websocket_path: str = "/ws"
    length: float = 5.0
    """How long a stream or a WebSocket is held before the client leaves, in seconds."""
    lasting_every: int = 0
    """Of so many streams, and of so many WebSockets, the first is held until the load is over; 0: none is."""
    message_every: float = 0.5
    """Seconds between the messages of a WebSocket."""
    http2_connections: int = 4
    tls_name: str = ""
    """The name that the server's certificate is checked for; "" is a server without TLS."""
    ca_pem: str = ""
    """Whose certificates are trusted; "" is whom this machine trusts."""
    own_ports: bool = False
    """No source port is used again while a node may remember where it led."""

    def asked(self, kind: "Kind") -> tuple[str, str]:
        """Return the path that requests of a kind ask for, and the option that names it."""
        own = {"slow": (self.slow_path, "--slow-path"), "stream": (self.stream_path, "--stream-path")}
        return own.get(kind, (self.path, "--path"))
