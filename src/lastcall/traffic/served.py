"""The load generator as a program of its own, in a Pod: what it does is asked for over HTTP, with its token.

    LASTCALL_TOKEN=… LASTCALL_LOAD='{"target": …}' python3 -m lastcall.traffic.served 8099

It waits for `start`, and sends until `stop`. Answers are JSON. Times are of its own monotonic clock, which `clock`
shows: the client has to find out how far that is from its own.

| request | answer |
|---|---|
| `GET /healthz` | `ok`, without a token |
| `GET /TOKEN/clock` | `{"now": seconds}` |
| `POST /TOKEN/start`, `POST /TOKEN/stop` | `{}` |
| `GET /TOKEN/outcomes/FROM` | `{"outcomes": […], "begun": number, "done": bool}`: those from the FROM-th on |
"""

import asyncio
import hmac
import json
import os
import sys
from collections.abc import Callable
from dataclasses import field
from typing import Any

from lastcall.traffic.generator import Generator
from lastcall.traffic.load import Load
from lastcall.traffic.outcome import Outcome
from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

MOST_AT_ONCE = 5000
"""Outcomes in one answer: about half a megabyte."""
_HEAD_SECONDS = 10.0
_LARGEST_HEAD = 16384


@dataclass(slots=True)
class ServedGenerator:
    """`hold` answers until it is cancelled. `now` is the clock that it shows and measures times by."""

    load: Load
    token: str
    world: World = field(default_factory=World)
    now: Callable[[], float] | None = None
    _outcomes: list[list[Any]] = field(default_factory=list)
    _generator: Generator | None = None
    _done: bool = False
    _tasks: Tasks = field(init=False)

    async def hold(self, host: str, port: int, *, listening: Callable[[int], None] = lambda port: None) -> None:
        """Serve until cancelled. `listening` gets the port, also where 0 asked for any."""
        async with Tasks() as tasks:
            self._tasks = tasks
            server = await asyncio.start_server(self._answer, host, port, limit=_LARGEST_HEAD)
            listening(server.sockets[0].getsockname()[1])
            async with server:
                await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            method, path, *_ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
            status, body = self._respond(method, path)
            reason = {200: "OK", 404: "Not Found"}[status]
            lines = (f"HTTP/1.1 {status} {reason}", "Content-Type: application/json", f"Content-Length: {len(body)}")
            writer.write("\r\n".join((*lines, "Connection: close", "", "")).encode() + body)
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, TimeoutError, ValueError):
            pass  # the client is gone, or speaks another protocol
        finally:
            writer.close()

    def _respond(self, method: str, path: str) -> tuple[int, bytes]:
        if path == "/healthz":
            return 200, b'"ok"'
        _, _, rest = path.partition("/")
        token, _, what = rest.partition("/")
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return 404, b"{}"
        word, _, number = what.partition("/")
        match method, word:
            case "GET", "clock":
                return 200, json.dumps({"now": self._now()}).encode()
            case "POST", "start":
                self._start()
                return 200, b"{}"
            case "POST", "stop":
                if self._generator is not None:
                    self._generator.stop()
                return 200, b"{}"
            case "GET", "outcomes" if number.isdecimal():
                begin = int(number)
                some = self._outcomes[begin : begin + MOST_AT_ONCE]
                done = self._done and begin + len(some) == len(self._outcomes)
                begun = self._generator.begun if self._generator is not None else 0
                return 200, json.dumps({"outcomes": some, "begun": begun, "done": done}).encode()
        return 404, b"{}"

    def _now(self) -> float:
        return self.now() if self.now is not None else monotonic(self.world.clock)

    def _start(self) -> None:
        """Once: a client that has lost the answer asks again."""
        if self._generator is None:
            self._generator = Generator(self.world, self.load, self._note)
            self._tasks.spawn(self._run(self._generator), name="load")

    def _note(self, outcome: Outcome) -> None:
        if self.now is not None:
            ahead = self.now() - monotonic(self.world.clock)
            outcome.planned += ahead
            outcome.sent += ahead
            outcome.finished += ahead
        self._outcomes.append(outcome.to_wire())

    async def _run(self, generator: Generator) -> None:
        await generator.run()
        self._done = True


def main() -> None:
    """Serve until SIGTERM."""
    # late: no test of this module needs it
    import uvloop

    asked = json.loads(os.environ["LASTCALL_LOAD"])
    load = Load(**{**asked, "target": tuple(asked["target"])})
    uvloop.run(ServedGenerator(load, os.environ["LASTCALL_TOKEN"]).hold("0.0.0.0", int(sys.argv[1])))  # noqa: S104


if __name__ == "__main__":
    main()
