"""A command's side of its page: starts the page's process, feeds it, and hears what its user wants.

Nothing here waits for the page. What it does not take is kept, up to `MOST_WAITING`; then the page gets nothing more.
"""

# check: starts processes because the live page of a command is a Python without a shell
# check: many attributes PageLink because it has both ends of the page: its process, and what was sent to it

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from lastcall.kube.cluster import record_message
from lastcall.records.record import Record
from lastcall.ui.asked import AskedPage
from lastcall.ui.command_page.messages import (
    Again,
    Begin,
    Browsers,
    Bye,
    Cluster,
    Failed,
    Link,
    NotOpened,
    Over,
    Records,
)
from lastcall.world import wire
from lastcall.world.clock import Clock, monotonic
from lastcall.world.messages import Message, Verbs

TURN_SECONDS = 0.05
MOST_WAITING = 64 << 20
"""Bytes that the page's process has not taken."""
END_SECONDS = 15.0
"""How long that process may take to say goodbye to its browsers."""
LINK_SECONDS = 10.0
"""How long its process may take to start."""
BROWSER_SECONDS = 60.0
"""How long a browser is waited for before Pods end."""


class PageLink:
    """Made when the roles of the cluster were forked, for they need not know it; `close` at the end, whatever happened.

    `say` writes a line to the user. `again` is what the user asked for in the page, until it is taken.
    """

    def __init__(self, asked: AskedPage, title: str, say: Callable[[str], None], *, cluster: str = "") -> None:
        self.say = say
        self.again: Again | None = None
        self.link = ""
        self.failed = ""
        self.browsers = 0
        self.seen = False
        """Whether a browser has come."""
        self.before_turn: Callable[[], None] = lambda: None
        """Called before what waits is sent."""
        self._records: list[dict[str, Any]] = []
        self._out, self._in = bytearray(), bytearray()
        self._gone = False
        self._verbs = Verbs(
            {
                Link: self._linked,
                NotOpened: lambda message: self.say("no browser found: open the link yourself"),
                Browsers: self._looking,
                Again: self._wants,
                Failed: self._fails,
            }
        )
        self._socket, theirs = socket.socketpair()
        program = f"from lastcall.ui.command_page.process import main; main({theirs.fileno()})"
        self.process = subprocess.Popen(  # noqa: S603 (our own program)
            [sys.executable, "-c", program], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
        theirs.close()
        self._socket.setblocking(False)
        self.tell(
            Begin(
                title=title,
                port=asked.port,
                opens=asked.opens,
                cluster=cluster,
                read_only=asked.read_only,
                view=asked.view,
            )
        )

    # -- feeding ------------------------------------------------------------------------------------------------------

    def tell(self, message: Message) -> None:
        """Send it after the records so far."""
        self._put_records()
        self._put(message)
        self._send()

    def cluster(self, name: str, version: str, kubeconfig: str, asked: dict[str, Any] | None = None) -> None:
        """Announce a cluster. `version` is its Kubernetes's, `kubeconfig` a path. `asked`: how an existing one is
        reached (`ContextOptions`)."""
        facts = {"name": name, "kubernetesVersion": version, "kubeconfig": kubeconfig}
        self.tell(Cluster(facts=facts, asked=asked))

    def over(self) -> None:
        """Announce that the cluster has ended."""
        self.tell(Over())

    def record(self, record: Record) -> None:
        """Keep a record for the next turn."""
        if not self._gone:
            self._records.append(record_message(record)["record"])

    def turn(self) -> None:
        """Send what waits, and hear what came. Never blocks."""
        self.before_turn()
        self._put_records()
        self._send()
        self._hear()

    @contextmanager
    def turning(self) -> Iterator[None]:
        """Turn by the running loop, until the block ends."""
        loop, timers = asyncio.get_running_loop(), list[asyncio.TimerHandle]()

        def turn() -> None:
            self.turn()
            timers[:] = [loop.call_later(TURN_SECONDS, turn)]

        turn()
        try:
            yield
        finally:
            timers[0].cancel()
            self.turn()

    async def linked(self, clock: Clock, seconds: float = LINK_SECONDS) -> str:
        """Return the first link, "" when it does not come in time. Call it within `turning`."""
        deadline = monotonic(clock) + seconds
        while not (self.link or self._gone) and monotonic(clock) < deadline:
            await clock.sleep(TURN_SECONDS)
        return self.link

    async def somebody_looks(self, clock: Clock, what: str) -> None:
        """Return when a browser has come, or after `BROWSER_SECONDS`. Call it within `turning`."""
        await self.linked(clock)
        if not self.browsers and not self._gone:
            self.say(f"{what} when a browser has opened the page, after {BROWSER_SECONDS:g} s at the latest")
        deadline = monotonic(clock) + BROWSER_SECONDS
        while not (self.seen or self._gone) and monotonic(clock) < deadline:
            await clock.sleep(TURN_SECONDS)

    def _put_records(self) -> None:
        if self._records:
            records, self._records = self._records, []
            self._put(Records(records=records))

    def _put(self, message: Message) -> None:
        if self._gone:
            return
        if len(self._out) > MOST_WAITING:
            self._lose("its process takes nothing")
            return
        self._out += wire.encode(message.to_wire()) + b"\n"

    def _send(self) -> None:
        with suppress(BlockingIOError):
            while self._out and not self._gone:
                try:
                    sent = self._socket.send(self._out[: 1 << 18])
                except BlockingIOError:
                    raise
                except OSError:
                    self._hear()  # it may have said why it ends
                    self._lose("its process has ended")
                    return
                del self._out[:sent]

    def _lose(self, why: str) -> None:
        if not self._gone:
            self._gone = True
            self._out.clear()
            self._records.clear()
            self.browsers = 0
            if not self.failed:
                self.say(f"the page is gone: {why}")

    # -- hearing ------------------------------------------------------------------------------------------------------

    def _hear(self) -> None:
        ended = self._gone
        while not ended:
            try:
                came = self._socket.recv(1 << 16)
            except BlockingIOError:
                break
            except OSError:
                came = b""
            ended = not came
            self._in += came
        *lines, rest = bytes(self._in).split(b"\n")
        self._in = bytearray(rest)
        for line in lines:
            do, message = self._verbs.read(wire.decode(line))
            do(message)
        if ended:
            self._lose("its process has ended")

    def _linked(self, message: Link) -> None:
        again, self.link = bool(self.link), message.link
        which = "for another browser" if again else "page, for one browser"
        self.say(f"{which}: {message.link}")

    def _looking(self, message: Browsers) -> None:
        self.browsers = message.count
        self.seen = self.seen or message.count > 0

    def _wants(self, message: Again) -> None:
        self.again = message

    def _fails(self, message: Failed) -> None:
        self.failed = message.why
        self.say(f"there is no page: {message.why}")

    # -- the end ------------------------------------------------------------------------------------------------------

    def close(self, *, staying: bool = False) -> None:
        """Let it say goodbye to its browsers, and end it. `staying`: the cluster runs on. Never raises."""
        with suppress(OSError, ValueError):
            self._socket.settimeout(END_SECONDS)
            self._put(Bye(staying=staying))
            if not self._gone:
                self._socket.sendall(self._out)
            self._socket.shutdown(socket.SHUT_WR)
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._socket.close()
