"""What init tells front, one JSON object a line over a socket pair.

Messages: `{"event": "started", "role": …, "pid": …}`, `{"event": "died", "role": …, "pid": …, "exitCode": … | null,
"signal": … | null}` (with `restartsIn`, seconds, when init starts it again), `{"event": "restarted", "role": …, "pid":
…}`, `{"event": "failed", "message": …, "errno": …}` (the namespaces could not be set up), `{"event": "link", "node": …,
"connected": …, "error": … | null}`. The last one answers what front may ask: `{"node": …, "connected": …}`, to cut or
to mend a node's link. When front closes its end, or dies, init ends and the kernel ends everything else.
"""

import json
import socket
from typing import Any, cast

Message = dict[str, Any]


class ChannelWriter:
    """What one end says. A peer that is gone is not an error here: it is noticed by other means."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock

    def send(self, message: Message) -> None:
        try:
            self.socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            return


class ChannelReader:
    """What one end hears; non-blocking once `socket.setblocking(False)` was called."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._buffer = b""
        self.closed = False

    def read(self) -> list[Message]:
        """The complete messages available; `closed` turns True when the peer is gone."""
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return []
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return [cast(Message, json.loads(line)) for line in lines if line]
