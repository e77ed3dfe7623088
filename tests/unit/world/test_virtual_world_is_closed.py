"""Nothing in the virtual world reaches the real one, by asyncio or by a blocking call."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from lastcall.world.virtual import VirtualDeadlockError, VirtualWorldError, run_virtual
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

TRUE = (sys.executable, "-c", "")


def in_virtual_world(call: Callable[[], Any]) -> None:
    async def main(world: World) -> None:
        answer = call()
        if asyncio.iscoroutine(answer):
            await answer

    run_virtual(main)


def loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


ASYNC: dict[str, Callable[[], Any]] = {
    "open_connection": lambda: asyncio.open_connection("127.0.0.1", 1),
    "start_server": lambda: asyncio.start_server(lambda r, w: None, "127.0.0.1", 0),
    "open_unix_connection": lambda: asyncio.open_unix_connection("/nowhere"),
    "start_unix_server": lambda: asyncio.start_unix_server(lambda r, w: None, "/tmp/never-made"),
    "create_datagram_endpoint": lambda: loop().create_datagram_endpoint(
        asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)
    ),
    "getaddrinfo": lambda: loop().getaddrinfo("localhost", 1),
    "connect_read_pipe": lambda: loop().connect_read_pipe(asyncio.Protocol, sys.stdin),
    "add_reader": lambda: loop().add_reader(0, lambda: None),
    "create_subprocess_exec": lambda: asyncio.create_subprocess_exec(*TRUE),
    "create_subprocess_shell": lambda: asyncio.create_subprocess_shell("true"),
    "to_thread": lambda: asyncio.to_thread(lambda: None),
    "run_in_executor": lambda: loop().run_in_executor(None, lambda: None),
}

BLOCKING: dict[str, Callable[[], Any]] = {
    "socket": socket.socket,
    "create_connection": lambda: socket.create_connection(("127.0.0.1", 1)),
    "socketpair": socket.socketpair,
    "gethostbyname": lambda: socket.gethostbyname("localhost"),
    "subprocess.run": lambda: subprocess.run(TRUE, check=False),
    "os.system": lambda: os.system("true"),
    "os.fork": os.fork,
}
if sys.version_info >= (3, 12):
    BLOCKING["thread"] = lambda: threading.Thread(target=lambda: None).start()
if sys.version_info >= (3, 13):
    BLOCKING["time.sleep"] = lambda: time.sleep(0)


@pytest.mark.parametrize("name", [*ASYNC, *BLOCKING])
def test_what_reaches_for_the_real_world_raises(name: str) -> None:
    with pytest.raises(VirtualWorldError, match="the virtual world has no"):
        in_virtual_world({**ASYNC, **BLOCKING}[name])


def test_the_real_world_is_open_again_afterwards_and_was_for_others() -> None:
    meanwhile: list[int] = []
    begin, end = threading.Event(), threading.Event()

    def elsewhere() -> None:
        begin.wait(60)
        meanwhile.append(subprocess.run(TRUE, check=False).returncode)
        end.set()

    async def main(world: World) -> None:
        begin.set()
        assert end.wait(60)

    other = threading.Thread(target=elsewhere)
    other.start()
    run_virtual(main)
    other.join()
    assert meanwhile == [0] and subprocess.run(TRUE, check=False).returncode == 0
    with pytest.raises(VirtualDeadlockError):
        in_virtual_world(lambda: asyncio.Event().wait())
    socket.socket().close()
