"""The page's side of the process that predicts rollouts (`experiment/rollout/forecast.py`)."""

# check: starts processes because a Python without a shell plays rollouts in virtual time for the live page

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lastcall.records.said import tell
from lastcall.ui.command_page.messages import LINE
from lastcall.ui.rollout.values import Values
from lastcall.world import wire
from lastcall.world.tasks import Tasks


class ForecastProcess:
    """`setup` before `ask`; `tell` hears the answers while this runs."""

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell
        self._setup: dict[str, Any] = {}
        self._waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def setup(self, setup: dict[str, Any]) -> None:
        """Take manifests and options of the experiments to come."""
        self._setup = setup
        self._waiting.put_nowait({"setup": setup})

    def ask(self, number: int, values: Values, patch: dict[str, Any], measured: dict[str, Any]) -> None:
        self._waiting.put_nowait({"number": number, "values": values.to_wire(), "patch": patch, "measured": measured})

    async def run(self) -> None:
        """Pass questions and answers on, until cancelled."""
        while True:
            first = await self._waiting.get()
            if "setup" not in first:
                await self._talk(first)

    async def _talk(self, question: dict[str, Any]) -> None:
        """With one process, until it ends."""
        ours, theirs = socket.socketpair()
        program = f"from lastcall.experiment.rollout.forecast import main; main({theirs.fileno()})"
        process = subprocess.Popen(  # noqa: ASYNC220, S603 (our own program)
            [sys.executable, "-c", program], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
        theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours, limit=LINE)
        number = question["number"]

        async def ask() -> None:
            nonlocal number
            for each in ({"setup": self._setup}, question):
                writer.write(wire.encode(each) + b"\n")
            while True:
                more = await self._waiting.get()
                number = more.get("number", number)
                writer.write(wire.encode(more) + b"\n")

        try:
            async with Tasks() as tasks:
                tasks.spawn(ask(), name="questions")
                with suppress(ConnectionError):
                    while line := await reader.readline():
                        self._tell(wire.decode(line))
                tasks.cancel()
            self._tell({"number": number, "error": tell("the process that predicts has ended"), "done": True})
        finally:
            writer.close()
            process.kill()
            process.wait()
