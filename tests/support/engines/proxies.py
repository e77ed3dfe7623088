"""A proxy on loopback that speaks HTTP CONNECT and SOCKS5, and notes whom it was asked for. For tests."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lastcall.kube.apiserver.auth.pki import ClusterCA


class Proxy:
    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[str] = []
        self._tls = tls
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError):
            client = connection if self._tls is None else self._tls.wrap_socket(connection, server_side=True)
            first = client.recv(1)
            host, port = self._socks(client) if first == b"\x05" else self._connect(client, first)
            self.asked.append(f"{host}:{port}")
            target = socket.create_connection((host, port), timeout=10)
            client.sendall(
                b"\x05\0\0\x01\0\0\0\0\0\0" if first == b"\x05" else b"HTTP/1.1 200 Connection established\r\n\r\n"
            )
            threading.Thread(target=_pump, args=(target, client), daemon=True).start()
            _pump(client, target)

    def _connect(self, client: socket.socket, head: bytes) -> tuple[str, int]:
        while not head.endswith(b"\r\n\r\n"):
            head += client.recv(1)
        host, _, port = head.split()[1].decode().rpartition(":")
        return host, int(port)

    def _socks(self, client: socket.socket) -> tuple[str, int]:
        client.recv(client.recv(1)[0])
        client.sendall(b"\x05\0")
        kind = client.recv(4)[3]
        host = socket.inet_ntoa(client.recv(4)) if kind == 1 else client.recv(client.recv(1)[0]).decode()
        return host, int.from_bytes(client.recv(2), "big")


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxy(tls: ssl.SSLContext | None = None) -> Iterator[Proxy]:
    made = Proxy(tls)
    try:
        yield made
    finally:
        made.close()


class Severed:
    """A way to host:port on loopback that can be cut and opened again, as when a server restarts: connections end, and
    new ones are refused."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._open: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self._begin()

    def _begin(self) -> None:
        threading.Thread(target=self._accept, args=(self._server,), daemon=True).start()

    def cut(self) -> None:
        for each in (self._server, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()

    def open_again(self) -> None:
        self._server = socket.create_server(("127.0.0.1", self.port))
        self._begin()

    close = cut

    def _accept(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                target = socket.create_connection(self._target, timeout=10)
                target.settimeout(None)
                self._open += [client, target]
                for way in ((client, target), (target, client)):
                    threading.Thread(target=_pump, args=way, daemon=True).start()


class TLSEntrance:
    """As an Ingress that ends TLS: https on a loopback port, with a certificate for `localhost` of an authority of its
    own, in front of host:port."""

    def __init__(self, host: str, port: int, folder: Path) -> None:
        authority = ClusterCA.create()
        certificate, key = authority.issue_server(["localhost"])
        own = folder / "entrance.pem"
        own.write_bytes(certificate + key)
        self.ca = folder / "entrance-ca.pem"
        self.ca.write_bytes(authority.certificate_pem)
        self.ca.chmod(0o644)
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(own)
        own.unlink()
        self._target = (host, port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        serving = asyncio.start_server(self._relay, "127.0.0.1", 0, ssl=self._tls)
        server = asyncio.run_coroutine_threadsafe(serving, self._loop).result(30)
        self.url = f"https://localhost:{server.sockets[0].getsockname()[1]}"

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()
        self.ca.unlink()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                while data := await source.read(65536):
                    sink.write(data)
                    await sink.drain()
            sink.close()

        try:
            inner_reader, inner_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))
