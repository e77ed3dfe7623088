"""The live page of `lastcall trace --ui`, in the trace's own process: it shows what the trace sees, and only reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from lastcall.endings import Ending
from lastcall.errors import WorldError
from lastcall.ui import AskedPage, NotListening, PageClient, PageServer, TracedCluster, Watching
from lastcall.ui.command_page import served
from lastcall.world.tasks import Tasks
from lastcall.world.world import World


class TracePage:
    """Run the page until cancelled; call `end` before that, so that browsers hear of it."""

    def __init__(
        self,
        asked: AskedPage,
        facts: dict[str, Any],
        client: PageClient,
        world: World,
        ending: Callable[[str], Ending | None],
        note: Callable[[str], None],
    ) -> None:
        self.source = TracedCluster(str(facts["name"]), facts, client, ending)
        self.watching = Watching(self.source, world)
        self._asked = asked
        self._world = world
        self._note = note
        self._ends, self._ended = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        """Serve. Raises WorldError where the port is taken, or the page cannot be handed to a browser."""
        links = 0

        def tell(link: str) -> None:
            nonlocal links
            links += 1
            self._note(f"{'page, for one browser' if links == 1 else 'for another browser'}: {link}")

        failed: Exception | None = None
        try:
            async with (
                Tasks() as tasks,
                served(
                    lambda spent: PageServer(self.watching, self._world.clock, spent),
                    self._asked.port,
                    tell,
                    opens=self._asked.opens,
                    not_opened=lambda: self._note("no browser found: open the link yourself"),
                ) as server,
            ):
                tasks.spawn(self.watching.run(), name="watching")
                await self._ends.wait()
                self.source.end()
                await server.end("trace")
                tasks.cancel()
        except* (NotListening, OSError) as group:
            failed = group.exceptions[0]  # Python before 3.11.4 wraps what is raised here in a group
        finally:
            self._ended.set()
        if failed is not None:
            raise WorldError(f"--ui: {failed}") from failed

    async def end(self) -> None:
        """Return when browsers have heard of the end."""
        self._ends.set()
        await self._ended.wait()
