"""Wait until objects are ready, and report what their containers printed."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field

from lastcall.endings import hopeless_reason
from lastcall.errors import Crashed, NotReady
from lastcall.experiment.ready.about import event_line, state_lines
from lastcall.experiment.ready.below import pods_below
from lastcall.experiment.ready.objects import Objects
from lastcall.experiment.ready.readiness import HAVE_PODS, Readiness, is_custom, readiness
from lastcall.experiment.ready.views import Late, ReadinessView, late, until_changed
from lastcall.experiment.ready.waiting import Waiting
from lastcall.experiment.reasons.object_events import events_of, in_short_of, node_of_ending
from lastcall.experiment.reasons.why_not_ready import is_ready
from lastcall.kube.api import PODS, Object, StatusError, name_of, namespace_of
from lastcall.kube.client import Client, ConnectionLost
from lastcall.manifests.applying import Named
from lastcall.records.text import without_repeats
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks

__tracebackhide__ = True  # pytest shows the caller's line

LINES_OF_LOG = 20
_EVENTS, _PODS = 10, 5
"""Of an object that is not as it was waited for, the latest."""


async def wait_ready(objects: Objects, wanted: Sequence[Named], timeout: float) -> None:
    """Return when all are ready. Raises NotReady after `timeout` seconds, or at once where waiting changes nothing."""
    there = Wanted(objects, {named: Readiness(False, "it was not looked at") for named in wanted})
    waiting = Waiting(
        there, objects.clock, (), timeout, lambda *_: None, patience=objects.patience, limited_by="timeout"
    )
    failure: NotReady | Crashed | None = None
    async with Tasks() as tasks:
        for named in list(there.waiting):
            tasks.spawn(there.follow(named), name=f"wait for {named}")
        try:
            await waiting.until(there.ready, "objects to be ready")
        except (NotReady, Crashed) as error:
            failure = error
        tasks.cancel()
    if failure is not None:
        late = [line for each in there.waiting if is_custom(each.resource) for line in await own_lines(objects, each)]
        raise NotReady("\n".join([str(failure), *late]), failure.causes)


@dataclass(slots=True)
class Wanted(ReadinessView):
    """Objects that are waited for one by one: `waiting` has those that are not ready yet."""

    objects: Objects
    waiting: dict[Named, Readiness]
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def client(self) -> Client:
        return self.objects.client

    async def follow(self, named: Named) -> None:
        """Return when an object is ready."""

        def seen(obj: Object | None) -> bool:
            self.waiting[named] = now = readiness(named.resource, obj)
            self._changed.set()
            return now.ready

        await self.objects.wait(named, seen)
        del self.waiting[named]

    async def ready(self) -> str:
        """Answer "" when all are, else which are not, and why."""
        return "; ".join(f"{named} is not ready: {each.failed or each.text}" for named, each in self.waiting.items())

    def failed(self) -> str:
        return next(
            (f"{named} will not be ready: {each.failed}" for named, each in self.waiting.items() if each.failed), ""
        )

    async def pods(self) -> list[Object]:
        return [pod for named in list(self.waiting) for pod in (await self._found(named))[1]]

    async def late(self) -> list[Late]:
        found = [(named, *await self._found(named)) for named in list(self.waiting) if named.resource in HAVE_PODS]
        return [late(str(named), named.resource, obj, pods) for named, obj, pods in found if obj is not None]

    async def _found(self, named: Named) -> tuple[Object | None, list[Object]]:
        """Return an object, None for one that is not there, and its Pods."""
        if named.resource != PODS and named.resource not in HAVE_PODS and not is_custom(named.resource):
            return None, []
        try:
            obj = await self.objects.get(named)
            return obj, [] if obj is None else await pods_below(self.objects, [(named, obj)])
        except (ConnectionLost, StatusError):
            return None, []  # a moment later is as good

    def is_hopeless(self, pod: Object) -> bool:
        return bool(hopeless_reason(pod))

    async def pause(self, clock: Clock) -> None:
        await until_changed(self._changed)

    async def printed(self, pod: Object) -> list[str]:
        return await last_lines(self.objects, pod)


async def own_lines(objects: Objects, named: Named) -> list[str]:
    """Return an object's status and its Events, as far as these can be had."""
    with suppress(ConnectionLost, StatusError):
        if (obj := await objects.get(named)) is not None:
            events = (await events_of(objects.client, obj))[-_EVENTS:]
            about = map(event_line, events)
            kind = named.resource.kind
            state = state_lines(obj, kind, await node_of_ending(objects.client, obj, kind))
            return [f"{named}:", *state, *(["Events:", *about] if events else [])]
    return []


async def story_lines(objects: Objects, named: Named) -> list[str]:
    """Return the same, then its Pods with what they printed."""
    lines = await own_lines(objects, named)
    with suppress(ConnectionLost, StatusError):
        obj = await objects.get(named)
        for pod in (await pods_below(objects, [(named, obj)]))[:_PODS] if obj is not None else ():
            state = f"{name_of(pod)} is Ready" if is_ready(pod) else await in_short_of(objects.client, pod)
            lines += [state, *await last_lines(objects, pod)]
    return lines


async def last_lines(objects: Objects, pod: Object, count: int = LINES_OF_LOG) -> list[str]:
    """Return what each container of a Pod printed last, this time or the time before."""
    found: list[str] = []
    status = pod.get("status") or {}
    for each in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        waits = "waiting" in (each.get("state") or {})
        text = await log_of(objects, pod, str(each["name"]), previous=waits and bool(each.get("lastState")), tail=count)
        if text:
            found.append(f"  what {each['name']} printed last:")
            found += without_repeats(f"    | {line}" for line in text.splitlines())
    return found


async def log_of(objects: Objects, pod: Object, container: str, *, previous: bool, tail: int | None) -> str:
    """Return a container's log; "" where there is none."""
    chunks: list[bytes] = []
    try:
        async for chunk in objects.client.pod_log(
            namespace_of(pod), name_of(pod), container, previous=previous, tail_lines=tail
        ):
            chunks.append(chunk)
    except (ConnectionLost, StatusError):
        pass
    return b"".join(chunks).decode(errors="replace")
