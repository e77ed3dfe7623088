"""Keep tests of rules pure: sockets, processes and real sleeps fail here, but in tests marked `loopback`."""

import asyncio
import sys
import time
from collections.abc import Iterator

import pytest

from lastcall.world.virtual import VirtualLoop

REFUSED = {
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.system",
    "socket.bind",
    "socket.connect",
    "subprocess.Popen",
}
"""Audit events of what reaches the world outside; a pair of sockets raises none of them."""

_seen: list[str] | None = None
"""What the running test did; None while it may do anything."""


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if _seen is not None and event in REFUSED:
        _seen.append(f"{event} {arguments[:2]}"[:200])


sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def pure(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that used a socket, a process or a real sleep, when it has ended: it could catch an error."""
    global _seen
    if request.node.get_closest_marker("loopback"):
        yield
        return
    seen = _seen = list[str]()

    def sleep(seconds: float) -> None:
        if seconds > 0:
            seen.append(f"time.sleep({seconds})")
        real_sleep(seconds)

    async def sleep_in_loop(delay: float, result: object = None) -> object:
        if delay > 0 and not isinstance(asyncio.get_running_loop(), VirtualLoop):
            seen.append(f"asyncio.sleep({delay})")
        return await real_sleep_in_loop(delay, result)

    real_sleep, real_sleep_in_loop = time.sleep, asyncio.sleep
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(asyncio, "sleep", sleep_in_loop)
    try:
        yield
    finally:
        _seen = None
    assert not seen, f"a pure test reached the world outside (mark it `loopback`, or give it a fake): {seen[:5]}"
