"""Serve the control socket in front. `socket.py` has the protocol."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import Protocol

from lastcall._version import __version__
from lastcall.kube.cluster.control.socket import (
    LINE_BYTES,
    AddNode,
    Fields,
    Logs,
    Node,
    Publish,
    Records,
    RemoveNode,
    Status,
    Stop,
    decode,
    encode,
    hello,
    peer,
    socket_address,
)
from lastcall.kube.cluster.directory import SOCKET, ClusterDirectory
from lastcall.kube.cluster.errors import ControlError
from lastcall.world.messages import Message, Verbs, WrongMessage
from lastcall.world.tasks import Tasks, unless


class Answers(Protocol):
    """What front answers. Each verb yields messages; the server adds the end. Raises ControlError for bad input."""

    def status(self, request: Status) -> AsyncIterator[Fields]: ...
    def stop(self, request: Stop) -> AsyncIterator[Fields]: ...
    def records(self, request: Records) -> AsyncIterator[Fields]: ...
    def logs(self, request: Logs) -> AsyncIterator[Fields]: ...
    def publish(self, request: Publish) -> AsyncIterator[Fields]: ...
    def node(self, request: Node) -> AsyncIterator[Fields]: ...
    def add_node(self, request: AddNode) -> AsyncIterator[Fields]: ...
    def remove_node(self, request: RemoveNode) -> AsyncIterator[Fields]: ...


def verbs(answers: Answers) -> Verbs:
    """Return the verbs that front understands. A newer lastcall may send fields that are not known here."""
    table: dict[type[Message], Callable[..., AsyncIterator[Fields]]] = {
        Status: answers.status,
        Stop: answers.stop,
        Records: answers.records,
        Logs: answers.logs,
        Publish: answers.publish,
        Node: answers.node,
        AddNode: answers.add_node,
        RemoveNode: answers.remove_node,
    }
    return Verbs(table, newer=True)


def listen(directory: ClusterDirectory) -> socket.socket:
    """Open the listening socket in the cluster's directory. Raises OSError."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    with suppress(FileNotFoundError):
        os.unlink(SOCKET, dir_fd=directory.fd)
    sock.bind(socket_address(directory))
    os.chmod(SOCKET, 0o600, dir_fd=directory.fd)
    return sock


async def serve(sock: socket.socket, answers: Answers, log: Callable[[str], None]) -> None:
    """Serve until cancelled. An answer that fails is reported to the client and to `log`; the server goes on."""
    known = verbs(answers)
    async with Tasks() as tasks:

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await _Conversation(reader, writer, known, tasks).hold()
            except (ConnectionError, TimeoutError):
                pass  # the client has gone
            except Exception as error:
                log(f"control socket: {type(error).__name__}: {error}")
            finally:
                writer.close()

        def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.spawn(handle(reader, writer), name="control connection")

        server = await asyncio.start_unix_server(accepted, sock=sock, limit=LINE_BYTES)
        try:
            await asyncio.Event().wait()
        finally:
            server.close()
            tasks.cancel()


class _Conversation:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, known: Verbs, tasks: Tasks) -> None:
        self._reader = reader
        self._writer = writer
        self._verbs = known
        self._tasks = tasks

    async def hold(self) -> None:
        uid = peer(self._writer.get_extra_info("socket"))[1]
        if uid != os.geteuid():
            await self._say({"error": f"this cluster is of uid {os.geteuid()}, and you are uid {uid}"})
            return
        await self._say(hello())
        while True:
            try:
                line = await self._reader.readline()
            except ValueError:
                await self._say({"error": f"a request is one line of at most {LINE_BYTES} bytes"})
                return
            if not line:
                return
            follows = False
            try:
                answer, request = self._verbs.read(decode(line))
                if follows := getattr(request, "follow", False):
                    await self._answer_while_there(answer(request))
                else:
                    await self._answer(answer(request))
            except WrongMessage as error:
                await self._say({"error": f"lastcall {__version__}: {error}"})
            except ControlError as error:
                await self._say({"error": str(error)})
            if follows:
                return

    async def _answer(self, answers: AsyncIterator[Fields]) -> None:
        async with aclosing(answers) as messages:  # type: ignore[type-var]  # they are generators
            async for message in messages:
                await self._say(message)
        await self._say({"end": True})

    async def _answer_while_there(self, answers: AsyncIterator[Fields]) -> None:
        """An answer that may have no end: it ends with the connection. No request may follow on it."""
        gone = asyncio.Event()

        async def watch() -> None:
            with suppress(ConnectionError, ValueError):
                await self._reader.read(1)
            gone.set()

        watcher = self._tasks.spawn(watch(), name="control client")
        try:
            await unless(self._answer(answers), gone)
        finally:
            watcher.cancel()

    async def _say(self, message: Fields) -> None:
        self._writer.write(encode(message))
        await self._writer.drain()
