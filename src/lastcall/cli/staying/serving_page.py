"""Serves the live page of a cluster that stays in this process, until a signal comes."""

import asyncio

from lastcall.cli.terminal import say
from lastcall.errors import WorldError
from lastcall.ui import AskedPage, NotListening, PageServer, StayingCluster, Watching
from lastcall.ui.command_page import served
from lastcall.world.interrupts import Interrupts
from lastcall.world.tasks import Tasks
from lastcall.world.world import World


def serve_page(name: str, asked: AskedPage) -> int:
    """Serve the page of a cluster. Return the exit status. Raises WorldError where the port is taken."""
    with Interrupts(message="the page is closed") as interrupts:
        asyncio.run(_serve(name, asked, interrupts))
    return 0


async def _serve(name: str, asked: AskedPage, interrupts: Interrupts) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    interrupts.on_first = lambda: loop.call_soon_threadsafe(stop.set)
    if interrupts.number:
        stop.set()
    world, links = World(), 0

    def tell(link: str) -> None:
        nonlocal links
        links += 1
        if links == 1:
            say(f"cluster {name}: {link}", "for one browser; Ctrl-C ends the page, not the cluster")
        else:
            say(f"for another browser: {link}")

    watching = Watching(StayingCluster(name), world, read_only=asked.read_only)
    failed: Exception | None = None
    try:
        async with (
            Tasks() as tasks,
            served(
                lambda spent: PageServer(watching, world.clock, spent),
                asked.port,
                tell,
                opens=asked.opens,
                not_opened=lambda: say("no browser found: open the link yourself", err=True),
            ) as server,
        ):
            tasks.spawn(watching.run(), name="watching")
            await stop.wait()
            await server.end("page")
            tasks.cancel()
    except* (NotListening, OSError) as group:
        failed = group.exceptions[0]  # Python before 3.11.4 wraps what is raised here in a group
    if failed is not None:
        raise WorldError(str(failed)) from failed
