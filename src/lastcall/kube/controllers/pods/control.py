"""Making and deleting Pods for an owner, with the Events that owners write.

Source: pkg/controller/controller_utils.go (RealPodControl, GetPodFromTemplate, FilterActivePods, slowStartBatch).
"""

# check: observes because it records its own decision

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, cast

from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.meta import AnyObject, copy_object, is_terminating, name_of, namespace_of, uid_of
from lastcall.kube.api.pods.spec import get_condition, is_pod_terminal
from lastcall.kube.api.resources import PODS
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.api.validators.workloads import is_pod_name_prefix
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.controllers.errors import namespace_is_terminating
from lastcall.records import kinds
from lastcall.records.record import Recorder
from lastcall.world.tasks import gather

if TYPE_CHECKING:
    from lastcall.kube.api.types.meta import ObjectMeta, OwnerReference
    from lastcall.kube.api.types.pod import Pod, PodTemplateSpec
    from lastcall.records.definitions.controllers import DeletionDecided
    from lastcall.records.definitions.parts import GroundsOfDecision, OwnerOfDecision
    from lastcall.records.rules import Rule

SLOW_START_INITIAL_BATCH = 1


def is_pod_active(pod: Pod) -> bool:
    """Return whether the Pod has neither ended nor is ending. (`IsPodActive`)"""
    return not is_pod_terminal(pod) and not is_terminating(pod)


def is_pod_terminating(pod: Pod) -> bool:
    """Return whether the Pod is being deleted and has not ended yet. (`IsPodTerminating`)"""
    return not is_pod_terminal(pod) and is_terminating(pod)


def seconds_until_available(pod: Pod, min_ready_seconds: int, now: float) -> float | None:
    """Return 0.0 when the Pod is available, the seconds until it will be, None when it is not Ready.

    `now` is seconds since the epoch. (`podutil.IsPodAvailable`)
    """
    condition = get_condition(pod.get("status") or {}, "Ready")
    if condition is None or condition.get("status") != "True":
        return None
    if min_ready_seconds == 0:
        return 0.0
    since = condition.get("lastTransitionTime")
    if not since:
        return None
    return max(0.0, parse_rfc3339(since).timestamp() + min_ready_seconds - now)


def pod_from_template(template: PodTemplateSpec, owner_name: str, reference: OwnerReference) -> Pod:
    """Make a Pod from the template's labels, annotations, finalizers and spec, with a generated name.

    A name that would be no valid prefix loses its hyphen. (`GetPodFromTemplate`)
    """
    prefix = f"{owner_name}-"
    if is_pod_name_prefix(prefix):
        prefix = owner_name
    meta = template.get("metadata") or {}
    made: ObjectMeta = {
        "labels": dict(meta.get("labels") or {}),
        "annotations": dict(meta.get("annotations") or {}),
        "finalizers": list(meta.get("finalizers") or ()),
        "generateName": prefix,
        "ownerReferences": [reference],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": cast("ObjectMeta", {key: value for key, value in made.items() if value}),
        "spec": copy_object(template.get("spec") or {}),
    }


class PodControl:
    """Writes for one controller. `events` says what was done about the owner; `recorder` says why a Pod has to end."""

    def __init__(self, client: Client, events: EventRecorder, recorder: Recorder) -> None:
        self._client = client
        self._events = events
        self._recorder = recorder

    async def create(self, pod: Pod, namespace: str, owner: AnyObject) -> Pod:
        """Create a Pod. Raises StatusError; the Event FailedCreate is left out when the namespace is terminating."""
        try:
            created = await self._client.create(PODS, pod, namespace)
        except StatusError as error:
            if not namespace_is_terminating(error):
                self._events.event(owner, "Warning", "FailedCreate", f"Error creating: {error.message}")
            raise
        self._events.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {name_of(created)}")
        return cast("Pod", created)

    async def delete(self, pod: Pod, owner: AnyObject, *, rule: Rule, why: str, facts: GroundsOfDecision) -> None:
        """Delete with the Pod's own grace period. A Pod that is gone already is a success. Raises StatusError.

        `rule`, `why` (one sentence for people) and `facts` become the record DeletionDecided, the cause in the Pod's
        story.
        """
        await delete_pod(self._client, self._recorder, pod, owner, rule=rule, why=why, facts=facts, events=self._events)


def owner_facts(owner: AnyObject) -> OwnerOfDecision:
    """Return what a record of a decision says about the owner it was made for.

    By uid and generation the story finds who wrote what the owner asks for.
    """
    meta = owner["metadata"]
    return {
        "ownerKind": owner.get("kind", ""),
        "owner": name_of(owner),
        "ownerUid": uid_of(owner),
        "ownerGeneration": meta.get("generation", 0),
        "ownerResourceVersion": meta.get("resourceVersion", ""),
    }


async def delete_pod(
    client: Client,
    recorder: Recorder,
    pod: AnyObject,
    owner: AnyObject | None,
    *,
    rule: Rule,
    why: str,
    facts: GroundsOfDecision,
    events: EventRecorder | None = None,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Delete a Pod as `PodControl.delete` does, without an owner. `options` are those of `Client.delete`."""
    about: OwnerOfDecision = {} if owner is None else owner_facts(owner)
    version = pod["metadata"]["resourceVersion"]
    decided: DeletionDecided = {"why": why, **about, **facts, "observedResourceVersion": version}
    recorder.record(kinds.DELETION_DECIDED, pod_uid=uid_of(pod), rule=rule, facts=decided)
    try:
        await client.delete(PODS, name_of(pod), namespace_of(pod), **(options or {}))
    except StatusError as error:
        if is_not_found(error):
            return
        if events is not None and owner is not None:
            events.event(owner, "Warning", "FailedDelete", f"Error deleting: {error.message}")
        raise
    if events is not None and owner is not None:
        events.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")


async def slow_start_batch(
    count: int, act: Callable[[], Coroutine[Any, Any, None]], initial: int = SLOW_START_INITIAL_BATCH
) -> tuple[int, Exception | None]:
    """Call `act` `count` times in batches of 1, 2, 4, …; return (how many succeeded, the first error).

    A batch with an error is the last one, so that a controller that cannot succeed does not flood the server.
    """
    done, batch = 0, min(count, initial)
    while batch > 0:
        errors = [error for error in await gather(act() for _ in range(batch)) if error is not None]
        done += batch - len(errors)
        if errors:
            return done, errors[0]
        batch = min(2 * batch, count - done)
    return done, None
