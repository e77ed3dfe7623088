"""The Events about an object, for a person who asks why."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from lastcall.endings import Wait, hopeless_reason, wait_of
from lastcall.errors import UnreadyCause
from lastcall.experiment.reasons.webhooks import Webhooks, lines_of_refusal, speaks_of_a_webhook
from lastcall.experiment.reasons.why_not_ready import (
    has_failed,
    hook_fails_again_and_again,
    in_short,
    why_not_ready,
    why_still_there,
    without_names,
)
from lastcall.kube.api import (
    EVENTS,
    JOBS,
    MUTATINGWEBHOOKCONFIGURATIONS,
    NODES,
    PODS,
    REPLICASETS,
    SERVICES,
    VALIDATINGWEBHOOKCONFIGURATIONS,
    Object,
    Resource,
    StatusError,
    is_terminating,
    name_of,
    namespace_of,
    uid_of,
)
from lastcall.kube.client import Client, ConnectionLost
from lastcall.kube.controllers import controller_of
from lastcall.records.record import Record
from lastcall.world.clock import Clock, monotonic

if TYPE_CHECKING:
    from lastcall.experiment.reasons.named import Explained

LOOK_SECONDS = 0.05
LONGEST_SECONDS = 1.0


async def events_of(client: Client, obj: Object) -> list[Object]:
    """Return the Events of an object, as far as they can be read."""
    with suppress(StatusError, ConnectionLost):
        listed = await client.list(EVENTS, namespace_of(obj), field_selector=f"involvedObject.uid={uid_of(obj)}")
        return listed.items
    return []


async def node_of(client: Client, pod: Object) -> Object | None:
    """Return the Node of a Pod; None if it has none, or if the Node cannot be read."""
    name = (pod.get("spec") or {}).get("nodeName")
    if name:
        with suppress(StatusError, ConnectionLost):
            return await client.get(NODES, name)
    return None


async def node_of_ending(client: Client, obj: Object, kind: str = "Pod") -> Object | None:
    """Return the Node of a Pod that is being deleted, whose kubelet has to end it; None for any other object."""
    return await node_of(client, obj) if kind == "Pod" and is_terminating(obj) else None


async def wait_on(client: Client, obj: Object, kind: str = "Pod", at: datetime | None = None) -> Wait | None:
    """Return what an object that is being deleted waits for, with a Pod's Node; None for one that is not deleted."""
    return wait_of(obj, kind, now=at, node=await node_of_ending(client, obj, kind))


async def why_it_stays(client: Client, pod: Object, at: datetime) -> list[str]:
    """Return lines about a Pod that is being deleted: what it waits for, and what ends that safely."""
    return why_still_there(pod, now=at, node=await node_of_ending(client, pod))


async def in_short_of(client: Client, pod: Object) -> str:
    """Return one line about a Pod, with its Events and, while it ends, its Node (`in_short`)."""
    return in_short(pod, await events_of(client, pod), await node_of_ending(client, pod))


async def runtime_of(client: Client, pod: Object) -> str:
    """Return the containerRuntimeVersion of a Pod's node (`containerd://2.1.4`); "" if it cannot be read."""
    node = await node_of(client, pod) or {}
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get("containerRuntimeVersion") or "")


async def events_around(client: Client, owner: Object) -> list[Object]:
    """Return the Events about an owner and about what is between it and its Pods, as far as they are available."""
    about = [owner]
    for resource in (REPLICASETS, JOBS):
        with suppress(StatusError, ConnectionLost):
            listed = await client.list(resource, namespace_of(owner))
            about += [each for each in listed.items if (controller_of(each) or {}).get("uid") == uid_of(owner)]
    return [event for each in about for event in await events_of(client, each)]


async def webhooks_of(client: Client, events: Sequence[Object]) -> Webhooks:
    """Return what the cluster knows of its webhooks, if one of the Events is about one; as far as it can be read."""
    found = Webhooks()
    if any(speaks_of_a_webhook(str(each.get("message"))) for each in events):
        with suppress(StatusError, ConnectionLost):
            configurations: list[Object] = []
            for resource in (MUTATINGWEBHOOKCONFIGURATIONS, VALIDATINGWEBHOOKCONFIGURATIONS):
                listed = await client.list(resource)
                configurations += ({"kind": resource.kind, **each} for each in listed.items)
            found = Webhooks(configurations)
            services = (await client.list(SERVICES)).items
            found = Webhooks(configurations, services, (await client.list(PODS)).items)
    return found


async def what_refuses_the_delete(client: Client, resource: Resource, obj: Object) -> list[str]:
    """Ask for the DELETE of an object as a dry run; return which webhook refuses it and what to change, [] for none.

    Whoever deletes it for its owner, as the garbage collector does, gets the same answer, and nobody shows it. One that
    is being deleted is not asked about: its DELETE was accepted, and something else holds it.
    """
    if is_terminating(obj):
        return []
    try:
        await client.delete(resource, name_of(obj), namespace_of(obj), uid=uid_of(obj), dry_run=True)
    except StatusError as error:
        return lines_of_refusal(error.message, await webhooks_of(client, [{"message": error.message}]))
    except ConnectionLost:
        pass
    return []


async def what_refuses_the_deletes(client: Client, pods: Iterable[Object]) -> dict[str, list[str]]:
    """Return `namespace/name` → the same, of those Pods whose DELETE a webhook refuses."""
    found = {f"{namespace_of(pod)}/{name_of(pod)}": await what_refuses_the_delete(client, PODS, pod) for pod in pods}
    return {key: lines for key, lines in found.items() if lines}


async def with_fixes(client: Client, error: StatusError) -> str:
    """Return what an error of a write says, with what to change where a webhook refused it."""
    webhooks = await webhooks_of(client, [{"message": error.message}])
    return "\n".join([error.message, *lines_of_refusal(error.message, webhooks)[1:]])


async def hook_keeps_failing(client: Client, pod: Object) -> bool:
    """Return whether a postStart hook of the Pod fails again and again."""
    return has_failed(pod) and hook_fails_again_and_again(await events_of(client, pod))


async def last_events_of(client: Client, clock: Clock, pod: Object) -> list[Object]:
    """Return the Events of a Pod that is given up.

    A status says that there is no hope, and the Events that say why are written right after it: they are waited for, a
    second at most.
    """
    until = monotonic(clock) + (LONGEST_SECONDS if hopeless_reason(pod) else 0.0)
    known = -1
    while True:
        events = await events_of(client, pod)
        whole = len(events) == known and any(event.get("type") == "Warning" for event in events)
        if whole or monotonic(clock) >= until:
            return events
        known = len(events)
        await clock.sleep(LOOK_SECONDS)


async def why_late(
    client: Client, clock: Clock, pods: Iterable[Object], records: Sequence[Record], version: str
) -> "Explained":
    """Return what the cluster, its records and the containers say of Pods that are not Ready; of those that are alike
    it is said once."""
    # late: 3.6 ms of `demo`
    from lastcall.experiment.reasons.failures import explain
    from lastcall.experiment.reasons.named import Explained

    lines: list[str] = []
    causes: list[UnreadyCause] = []
    seen: dict[tuple[str, ...], str] = {}
    for pod in pods:
        events = await last_events_of(client, clock, pod)
        head, *why = why_not_ready(pod, events, await runtime_of(client, pod))
        name = f"{namespace_of(pod)}/{name_of(pod)}"
        same_as = seen.setdefault(without_names(pod, why), name)
        if same_as != name:
            lines.append(f"{head}, as {same_as}")
            continue
        explained = explain(why, pod, records, version, now_ns=clock.monotonic_ns(), events=events)
        lines += [head, *explained.lines]
        causes += explained.causes
    return Explained(tuple(lines), tuple(causes))
