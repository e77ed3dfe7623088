"""Requests that are sent while something ends: from this machine, over a published port, at a fixed rate."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from lastcall.errors import ClusterError
from lastcall.traffic.generator import Load
from lastcall.traffic.outcome import LOST_MEANS, Kind, Outcome
from lastcall.world.clock import Clock
from lastcall.world.tasks import Tasks, unless

CONTROL_SECONDS = 0.5
"""Requests are sent for so long before the DELETE: what does not answer then says nothing of an end."""
SETTLE_SECONDS = 0.5
FIRST_ANSWER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Requests:
    """Which requests to send: `target` as `svc/web:80` or `pod/web:8080`, `rate` a second, `timeout` seconds each."""

    target: str
    rate: float = 50.0
    kind: Kind = "fresh"
    path: str = "/"
    timeout: float = 10.0


@dataclass(slots=True)
class Sent:
    """What became of them. Every request that was sent is in `total` once."""

    requests: Requests
    total: int = 0
    lost: list[Outcome] = field(default_factory=list)
    good_before: int = 0
    """Answers in the time before the DELETE."""
    failed: str = ""
    """Why the load generator could not go on, "" where it could."""

    @property
    def text(self) -> str:
        """A line for people, and one for each way in which requests were lost."""
        kinds = Counter(outcome.lost for outcome in self.lost)
        lines = [f"{len(self.lost)} of {self.total} requests to {self.requests.target} were lost"]
        lines += [f"  {lost} ({count} times): {LOST_MEANS[lost]}" for lost, count in kinds.most_common() if lost]
        return "\n".join(lines)


@asynccontextmanager
async def sending(requests: Requests, address: tuple[str, int], clock: Clock) -> AsyncIterator[Sent]:
    """Send from before the block until after it. Raises ClusterError when nobody answers before the block."""
    # late: pytest imports the plugin in every run, with a cluster or without
    from lastcall.kube.cluster import ControlError
    from lastcall.traffic.process import LoadClient

    sent = Sent(requests)
    try:
        client = await LoadClient.on_host()
    except ControlError as error:
        raise ClusterError(str(error)) from error
    answered, over = asyncio.Event(), asyncio.Event()
    began = False

    async def read() -> None:
        try:
            async for outcome in client.outcomes():
                if not outcome.lost:
                    answered.set()
                if not began:
                    sent.good_before += not outcome.lost
                    continue
                sent.total += 1
                if outcome.lost and outcome.measured:
                    sent.lost.append(outcome)
        except ControlError as error:
            sent.failed = str(error)
        finally:
            over.set()

    try:
        async with Tasks() as tasks:
            tasks.spawn(read(), name="outcomes")
            host = requests.target.partition("/")[2].partition(":")[0].rpartition("/")[2]
            client.start(
                Load(address, {requests.kind: requests.rate}, host=host, path=requests.path, timeout=requests.timeout)
            )
            try:
                async with asyncio.timeout(FIRST_ANSWER_SECONDS):
                    await unless(answered.wait(), over)
            except TimeoutError:
                pass
            if not answered.is_set():
                tasks.cancel()
            else:
                await clock.sleep(CONTROL_SECONDS)
                began = True
                yield sent
                await clock.sleep(SETTLE_SECONDS)
                client.stop()
                async with asyncio.timeout(requests.timeout + FIRST_ANSWER_SECONDS):
                    await over.wait()
    finally:
        client.close()
    if sent.failed or not answered.is_set():
        raise ClusterError(sent.failed or _silent(requests))


def _silent(requests: Requests) -> str:
    return (
        f"nothing at {requests.target} answered {requests.kind} requests to {requests.path} within "
        f"{FIRST_ANSWER_SECONDS:g} s: does it listen on that port, and is it ready?"
    )
