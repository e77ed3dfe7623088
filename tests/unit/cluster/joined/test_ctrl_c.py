"""Ctrl-C with --drain: the node ends in order, whatever else goes on in its event loop."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from lastcall.cli.clusters.joining.life import JoinedLife, JoinOptions
from lastcall.cli.interrupts import Interrupts
from lastcall.cluster.joined.asked import Asked
from lastcall.world import walls


class Teller:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def ready(self, facts: dict[str, Any]) -> None:
        pass


class Front:
    """Whose loop has nothing to do until it is asked to stop."""

    def __init__(self) -> None:
        self.drained = False
        self._stop = asyncio.Event()

    def wall(self) -> walls.standing:
        return walls.standing()

    def stop_soon(self) -> None:
        self._stop.set()

    async def run(self, ready: Callable[[dict[str, Any]], None], timeout: float) -> None:
        ready({})
        await self._stop.wait()
        self.drained = True


def test_a_node_that_has_nothing_to_do_begins_to_drain_at_once() -> None:
    teller, interrupts = Teller(), Interrupts()
    life = JoinedLife(JoinOptions(Asked("n1"), drain=True), teller, None, interrupts, None, None)  # type: ignore[arg-type]

    async def story() -> Front:
        front = Front()
        living = asyncio.ensure_future(life._in_loop(front))  # type: ignore[arg-type]  # what it needs of one
        await asyncio.sleep(0.1)
        # As a signal's handler: not in the loop, which sleeps.
        threading.Timer(0.1, lambda: interrupts.on_first and interrupts.on_first()).start()
        await asyncio.wait_for(living, 20)
        return front

    began = asyncio.run(timed(story()))
    assert began < 10, "it woke up by something else"
    assert teller.notes == ["draining node n1; Ctrl-C again ends it at once"]


async def timed(story: Any) -> float:
    began = asyncio.get_running_loop().time()
    front = await story
    assert front.drained
    return asyncio.get_running_loop().time() - began
