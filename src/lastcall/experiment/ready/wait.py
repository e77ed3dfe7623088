"""Waits until objects are ready, and tells why they are not."""

import asyncio
from collections.abc import Sequence

from lastcall.errors import NotReady, UnreadyCause
from lastcall.experiment.ready.objects import Objects, pods_below
from lastcall.experiment.ready.readiness import HAVE_PODS, Readiness, readiness
from lastcall.experiment.reasons.named import Explained, causes_in
from lastcall.experiment.reasons.object_events import events_of, hook_keeps_failing, last_events_of, webhooks_of
from lastcall.experiment.reasons.why_not_ready import (
    hopeless_reason,
    is_crash_looping,
    is_ready,
    programs_of,
    told_once,
    why_no_pods,
    why_not_ready,
)
from lastcall.kube.api import PODS, Object, StatusError, name_of, namespace_of
from lastcall.kube.client import ConnectionLost
from lastcall.manifests.applying import Named
from lastcall.world.tasks import Tasks, unless

__tracebackhide__ = True  # pytest shows the caller's line

LOOK_SECONDS = 0.5
"""Between two looks at whether Pods that are waited for can still become Ready."""
LINES_OF_LOG = 20


async def wait_ready(objects: Objects, wanted: Sequence[Named], timeout: float) -> None:
    """Return when all are ready. Raises NotReady after `timeout` seconds, or at once where waiting changes nothing."""
    waiting = {named: Readiness(False, "it was not looked at") for named in wanted}
    hopeless = asyncio.Event()

    async def follow(named: Named) -> None:
        def seen(obj: Object | None) -> bool:
            waiting[named] = now = readiness(named.resource, obj)
            if now.failed:
                hopeless.set()
            return now.ready

        await objects.wait(named, seen)
        del waiting[named]

    async def follow_all() -> None:
        async with Tasks() as tasks:
            for named in dict.fromkeys(wanted):
                tasks.spawn(follow(named), name=f"wait for {named}")

    why = "will not be ready"
    try:
        async with asyncio.timeout(timeout), Tasks() as tasks:
            tasks.spawn(_look_for_hope(objects, waiting, hopeless), name="look for hope")
            await unless(follow_all(), hopeless)
            tasks.cancel()
    except TimeoutError:
        why = f"is not ready after {timeout:g} s"
    if waiting:
        said = await told(objects, waiting, why)
        raise NotReady("\n".join(said.lines), said.causes)


async def _look_for_hope(objects: Objects, waiting: dict[Named, Readiness], hopeless: asyncio.Event) -> None:
    """Set `hopeless` when a Pod of what is waited for can never become Ready."""
    while not hopeless.is_set():
        await objects.clock.sleep(LOOK_SECONDS)
        for named in list(waiting):
            pods = await _pods_of(objects, named)
            for pod in pods:
                if hopeless_reason(pod) or is_crash_looping(pod) or await hook_keeps_failing(objects.client, pod):
                    hopeless.set()


async def _pods_of(objects: Objects, named: Named) -> list[Object]:
    if named.resource != PODS and named.resource not in HAVE_PODS:
        return []
    try:
        obj = await objects.get(named)
        return [] if obj is None else await pods_below(objects.client, objects.clock, named, obj)
    except (ConnectionLost, StatusError):
        return []  # a moment later is as good


async def told(objects: Objects, waiting: dict[Named, Readiness], why: str) -> Explained:
    """Of everything that is not ready: how far it is, its Pods, their Events, and what they printed last."""
    lines: list[str] = []
    causes: list[UnreadyCause] = []
    for named, how_far in waiting.items():
        text = how_far.failed or how_far.text
        lines.append(f"{named} {why}{f': {text}' if text else ''}")
        obj = await objects.get(named)
        if obj is None:
            continue
        pods = await _pods_of(objects, named)
        late = [pod for pod in pods if not is_ready(pod) and (pod.get("status") or {}).get("phase") != "Succeeded"]
        if named.resource in HAVE_PODS:
            ready = sum(map(is_ready, pods))
            events = await events_of(objects.client, obj)
            webhooks = await webhooks_of(objects.client, events)
            said = told_once(why_no_pods(str(named), obj, ready, None, events, webhooks)[1:])
            lines += said
            causes += causes_in(str(named), said)
        for pod in late:
            events = await last_events_of(objects.client, objects.clock, pod)
            said = why_not_ready(pod, events)
            lines += [*said, *await last_lines(objects, pod)]
            what = f"{namespace_of(pod)}/{name_of(pod)}"
            causes += causes_in(what, said, programs=programs_of(pod, events))
    return Explained(tuple(lines), tuple(causes))


async def last_lines(objects: Objects, pod: Object, count: int = LINES_OF_LOG) -> list[str]:
    """Return what each container of a Pod printed last, this time or the time before."""
    found: list[str] = []
    status = pod.get("status") or {}
    for each in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        waits = "waiting" in (each.get("state") or {})
        text = await log_of(objects, pod, str(each["name"]), previous=waits and bool(each.get("lastState")), tail=count)
        if text:
            found.append(f"  what {each['name']} printed last:")
            found += [f"    | {line}" for line in text.splitlines()]
    return found


async def log_of(objects: Objects, pod: Object, container: str, *, previous: bool, tail: int | None) -> str:
    """A container's log; "" where there is none."""
    chunks: list[bytes] = []
    try:
        async for chunk in objects.client.pod_log(
            namespace_of(pod), name_of(pod), container, previous=previous, tail_lines=tail
        ):
            chunks.append(chunk)
    except (ConnectionLost, StatusError):
        pass
    return b"".join(chunks).decode(errors="replace")
