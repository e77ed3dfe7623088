"""A relay on loopback to a port of loopback that can be cut: connections break, and new ones are refused."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Relay:
    def __init__(self, target: int) -> None:
        self._target = target
        self._up = True
        self._open: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def down(self) -> None:
        """Break every connection, and each new one, until `up`."""
        self._up = False
        for each in self._open:
            _end(each)
        self._open.clear()

    def up(self) -> None:
        self._up = True

    def close(self) -> None:
        self.down()
        _end(self._server)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                if not self._up:
                    _end(client)
                    continue
                target = socket.create_connection(("127.0.0.1", self._target))
                self._open += [client, target]
                for one, other in ((client, target), (target, client)):
                    threading.Thread(target=_pump, args=(one, other), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    _end(source)
    _end(sink)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def relay(target: int) -> Iterator[Relay]:
    made = Relay(target)
    try:
        yield made
    finally:
        made.close()
