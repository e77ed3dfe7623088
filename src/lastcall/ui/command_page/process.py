"""The page's process of a command: what it is fed becomes the page; it ends with the command, however that ends."""

# check: long functions _serve because it is a process of its own, and shows its whole life in order

import asyncio
import signal
import socket
from collections.abc import Callable

import uvloop

from lastcall.ui.command_page.forecaster import ForecastProcess
from lastcall.ui.command_page.messages import (
    LINE,
    Again,
    Begin,
    Browsers,
    Bye,
    Cluster,
    Failed,
    Link,
    NotOpened,
    Outcomes,
    Over,
    Records,
    Rollout,
    Seen,
    Setup,
    Story,
)
from lastcall.ui.command_page.server import served
from lastcall.ui.command_page.source import FedClusters
from lastcall.ui.rollout.room import RolloutRoom
from lastcall.ui.rollout.texts import state_from_wire
from lastcall.ui.server import NotListening, PageServer
from lastcall.ui.source import StayingCluster
from lastcall.ui.watching import Watching
from lastcall.world import wire
from lastcall.world.messages import Message, Verbs
from lastcall.world.tasks import Tasks
from lastcall.world.world import World


def main(fd: int) -> None:
    """Serve the page; `fd` is its end of the socket pair."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the terminal's are for the command, whose end is this one's
    uvloop.run(_serve(socket.socket(fileno=fd)))


async def _serve(sock: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=sock, limit=LINE)
    begin = Begin.read(_fields(await reader.readline()))

    def tell(message: Message) -> None:
        writer.write(wire.encode(message.to_wire()) + b"\n")

    world = World()
    fed = FedClusters(begin.title)
    source = StayingCluster(begin.cluster, once=True) if begin.cluster else fed
    watching = Watching(source, world, read_only=begin.read_only)
    room = RolloutRoom(world.clock, lambda patch, delays: tell(Again(patch=patch, propagation=delays)))
    forecasts = ForecastProcess(room.forecast)
    room.forecaster = forecasts

    def records(message: Records) -> None:
        room.records(fed.records(message.records))

    def story(message: Story) -> None:
        ending = fed.story(message)
        if message.whole:
            watching.keep_story(ending)

    heard = Verbs(
        {
            Cluster: fed.cluster,
            Records: records,
            Seen: fed.seen,
            Story: story,
            Over: lambda message: fed.over(),
            Setup: lambda message: forecasts.setup({"manifests": message.manifests, "options": message.options}),
            Rollout: lambda message: room.update(state_from_wire(message.state)),
            Outcomes: lambda message: room.outcomes(message.outcomes),
        }
    )

    def server_for(spent: Callable[[], None]) -> PageServer:
        return PageServer(watching, world.clock, spent, lambda count: tell(Browsers(count=count)), room, begin.view)

    try:
        async with (
            Tasks() as tasks,
            served(
                server_for,
                begin.port,
                lambda link: tell(Link(link=link)),
                opens=begin.opens,
                not_opened=lambda: tell(NotOpened()),
            ) as server,
        ):
            tasks.spawn(watching.run(), name="watching")
            tasks.spawn(room.run(), name="rollout")
            tasks.spawn(forecasts.run(), name="forecasts")
            while (line := await reader.readline()) and (fields := _fields(line))["verb"] != Bye.verb:
                do, message = heard.read(fields)
                do(message)
            fed.bye()
            room.bye()
            staying = bool(line) and Bye.read(_fields(line)).staying
            await server.end("trace" if staying else "cluster")
            tasks.cancel()
    except* (NotListening, OSError) as group:
        tell(Failed(why=str(group.exceptions[0])))
    finally:
        writer.close()


def _fields(line: bytes) -> dict[str, object]:
    return wire.decode(line)
