"""The node's end of its connection to the witness of another runtime (`lastcall.kube.cri.v1.witness`).

Nothing of a Pod waits for it: what it does not answer within `ANSWER_SECONDS` is not known.
"""

import asyncio
import logging
from contextlib import suppress
from typing import TypeVar

import orjson

from lastcall.kube.cri.v1.witness import messages
from lastcall.world.clock import Clock, monotonic
from lastcall.world.messages import Message, WrongMessage

ANSWER_SECONDS = 2.0
AWAY_SECONDS, MOST_AWAY_SECONDS = 0.5, 30.0
"""A witness that does not answer is left alone for so long, twice as long each time."""

M = TypeVar("M", bound=Message)

log = logging.getLogger(__name__)


class Witness:
    """Asks; answers False or None for what is not known. Watches all again when the witness is another one."""

    def __init__(self, path: str, clock: Clock) -> None:
        """`path` of its socket; nothing is connected yet."""
        self._path, self._clock = path, clock
        self._lock = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._watched: set[str] = set()
        self._running: dict[str, messages.Watch] = {}
        """What a new witness is to watch: of the watched ones those that have not ended."""
        self._away_until = 0.0
        self._away_seconds = AWAY_SECONDS

    def watches(self, container_id: str) -> bool:
        return container_id in self._watched

    async def watch(self, message: messages.Watch) -> bool:
        """Return whether the start of the container is on record."""
        answer = await self._ask(message, messages.Watching)
        if answer is None or not answer.done:
            return False
        self._watched.add(message.id)
        self._running[message.id] = messages.Watch.read({**message.to_wire(), "known": True, "start": answer.start})
        return True

    async def stopping(self, container_id: str, number: int, timeout: int) -> bool:
        """Announce that StopContainer comes next. Return whether the records of the stop are written."""
        return await self._done(messages.Stopping(id=container_id, signal=number, timeout=timeout))

    async def ended(self, container_id: str, exit_code: int, *, oom_killed: bool) -> bool:
        """Return whether the end is on record."""
        self._running.pop(container_id, None)
        return await self._done(messages.Ended(id=container_id, exit_code=exit_code, oom_killed=oom_killed))

    async def listeners(self, container_id: str) -> list[tuple[str, int]] | None:
        """Return (address, port) of those of a running container; None when it is not known."""
        answer = await self._ask(messages.Listeners(id=container_id), messages.Listening)
        if answer is None or answer.listeners is None:
            return None
        return [(str(each["address"]), int(each["port"])) for each in answer.listeners]

    async def forget(self, container_id: str) -> None:
        """Forget a container that is removed."""
        self._running.pop(container_id, None)
        if container_id in self._watched:
            self._watched.discard(container_id)
            await self._done(messages.Forget(id=container_id))

    async def _done(self, message: Message) -> bool:
        answer = await self._ask(message, messages.Done)
        return answer is not None and answer.done

    async def _ask(self, message: Message, kind: type[M]) -> M | None:
        async with self._lock:
            if monotonic(self._clock) < self._away_until:
                return None
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    answer = await self._answer(message, kind)
                    self._away_seconds = AWAY_SECONDS
                    return answer
            except (OSError, EOFError, TimeoutError, ValueError, WrongMessage) as error:
                self._lose(error)
                return None
            except BaseException:
                self.close()  # cancelled: the answer that comes is another question's
                raise

    async def _answer(self, message: Message, kind: type[M]) -> M:
        """Return the answer, of another witness if the one that was connected has ended."""
        if self._streams is not None:
            try:
                return await self._exchange(message, kind)
            except (OSError, EOFError):
                self.close()
        await self._connect()
        return await self._exchange(message, kind)

    async def _connect(self) -> None:
        """Watch again what a witness that has died watched: its successor knows of nothing."""
        self._streams = await asyncio.open_unix_connection(self._path)
        for each in list(self._running.values()):
            await self._exchange(each, messages.Watching)

    async def _exchange(self, message: Message, kind: type[M]) -> M:
        assert self._streams is not None
        reader, writer = self._streams
        writer.write(orjson.dumps(message.to_wire()) + b"\n")
        await writer.drain()
        line = await reader.readline()
        if not line.endswith(b"\n"):
            raise EOFError("it has hung up")
        answer = orjson.loads(line)
        if not isinstance(answer, dict):
            raise WrongMessage(f"an answer is not a JSON object: {answer!r:.80}")
        if "error" in answer:
            log.warning("the witness cannot answer %s: %s", message.verb, answer["error"])
            raise WrongMessage(str(answer["error"]))
        return kind.read(answer)

    def _lose(self, error: Exception) -> None:
        self.close()
        self._away_until = monotonic(self._clock) + self._away_seconds
        first = self._away_seconds == AWAY_SECONDS
        self._away_seconds = min(2 * self._away_seconds, MOST_AWAY_SECONDS)
        if first:
            why = str(error) or type(error).__name__
            log.warning("the witness at %s does not answer: %s; stories lack what it would see", self._path, why)

    def close(self) -> None:
        """Close it. Idempotent."""
        if self._streams is not None:
            with suppress(OSError, RuntimeError):
                self._streams[1].close()
            self._streams = None
