"""A shell in a container: the page's WebSocket and that of `exec`, with the bytes of each passed to the other."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from aiohttp import WSMsgType, web

from lastcall.kube.api import PODS, AnyObject, name_of, namespace_of
from lastcall.ui.source import PageClient
from lastcall.world.tasks import Tasks

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
"""The first byte of a message is its channel: 0 stdin, 1 stdout, 2 stderr, 3 the Status at the end."""
MOST_MESSAGE = 1 << 16


async def hold(
    page: web.WebSocketResponse, client: PageClient, pod: AnyObject, container: str, words: Sequence[str]
) -> None:
    """Hold a terminal until one of both ends. Raises StatusError, ConnectionLost when exec is refused."""
    query = [("command", word) for word in words]
    query += [("container", container)] if container else []
    query += [("stdin", "true"), ("stdout", "true"), ("stderr", "true"), ("tty", "false")]
    path = PODS.path(quote(namespace_of(pod), safe=""), quote(name_of(pod), safe=""), "exec")
    async with client.websocket(path, query, PROTOCOLS) as shell, Tasks() as tasks:

        async def pass_on(source: Any, target: Any) -> None:
            async for message in source:
                if message.type != WSMsgType.BINARY or target.closed:
                    break
                await target.send_bytes(message.data)
            tasks.cancel()

        tasks.spawn(pass_on(page, shell), name="stdin")
        tasks.spawn(pass_on(shell, page), name="output")
