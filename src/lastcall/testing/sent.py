"""Requests that are sent while something ends: from this machine, over a published port, at a fixed rate."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from lastcall.errors import ClusterError
from lastcall.kube.cluster import ControlError
from lastcall.traffic import LOST_MEANS, Kind, Load, Outcome
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks, unless

if TYPE_CHECKING:
    from lastcall.traffic import LoadClient

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
        """Return a line for people, and one for each way in which requests were lost."""
        kinds = Counter(outcome.lost for outcome in self.lost)
        lines = [f"{len(self.lost)} of {self.total} requests to {self.requests.target} were lost"]
        lines += [f"  {lost} ({count} times): {LOST_MEANS[lost]}" for lost, count in kinds.most_common() if lost]
        return "\n".join(lines)


@asynccontextmanager
async def sending(requests: Requests, address: tuple[str, int], clock: Clock) -> AsyncIterator[Sent]:
    """Send from before the block until after it. Raises ClusterError when nobody answers before the block."""
    # late: pytest imports the plugin in every run, with a cluster or without
    from lastcall.kube.cluster import ControlError
    from lastcall.traffic import LoadClient

    sent = Sent(requests)
    try:
        client = await LoadClient.on_host()
    except ControlError as error:
        raise ClusterError(str(error)) from error
    outcomes = _Outcomes(sent)
    try:
        async with Tasks() as tasks:
            tasks.spawn(outcomes.read(client), name="outcomes")
            host = requests.target.partition("/")[2].partition(":")[0].rpartition("/")[2]
            client.start(
                Load(address, {requests.kind: requests.rate}, host=host, path=requests.path, timeout=requests.timeout)
            )
            try:
                async with asyncio.timeout(FIRST_ANSWER_SECONDS):
                    await unless(outcomes.answered.wait(), outcomes.over)
            except TimeoutError:
                pass
            if not outcomes.answered.is_set():
                tasks.cancel()
            else:
                await clock.sleep(CONTROL_SECONDS)
                outcomes.count = True
                yield sent
                await clock.sleep(SETTLE_SECONDS)
                client.stop()
                async with asyncio.timeout(requests.timeout + FIRST_ANSWER_SECONDS):
                    await outcomes.over.wait()
    finally:
        client.close()
    if sent.failed or not outcomes.answered.is_set():
        raise ClusterError(sent.failed or _silent(requests))


class _Outcomes:
    """What the load generator says, read into `sent`. What comes before `count` is set is for comparison."""

    def __init__(self, sent: Sent) -> None:
        self._sent = sent
        self.answered, self.over = asyncio.Event(), asyncio.Event()
        self.count = False

    async def read(self, client: "LoadClient") -> None:
        try:
            async for outcome in client.outcomes():
                self._add(outcome)
        except ControlError as error:
            self._sent.failed = str(error)
        finally:
            self.over.set()

    def _add(self, outcome: Outcome) -> None:
        if not outcome.lost:
            self.answered.set()
        if not self.count:
            self._sent.good_before += not outcome.lost
            return
        self._sent.total += 1
        if outcome.lost and outcome.measured:
            self._sent.lost.append(outcome)


def _silent(requests: Requests) -> str:
    return (
        f"nothing at {requests.target} answered {requests.kind} requests to {requests.path} within "
        f"{FIRST_ANSWER_SECONDS:g} s: check that it is Ready and listens on that port"
    )
