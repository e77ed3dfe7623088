"""The watches of a follower: which there are, what was missed of them, and what may not be read."""

import asyncio
from collections.abc import Callable, Iterable, Iterator

from lastcall.kube.api import ENDPOINTSLICES, EVENTS, PODS, Object, Resource, StatusError, uid_of
from lastcall.kube.client import Client, commands_for
from lastcall.trace.following.around import WATCHED, OnEvent, OnList, RelatedObjects
from lastcall.trace.following.events import EventIndex
from lastcall.trace.following.slices import EndpointTracker
from lastcall.trace.following.state import SharedState
from lastcall.trace.rights import MissingRight, missing
from lastcall.trace.scope import Scope
from lastcall.trace.sources import Gap, Source

OnObject = Callable[[Resource, str, Object], None]
"""Called with the resource, `ADDED`, `MODIFIED` or `DELETED`, and the object."""
OWNERS_WAIT_SECONDS = 10.0
"""How long Pods wait for what is around them to be known."""


class Watches:
    """`on_note` hears of gaps and of rights that are missing, `on_blind` that Pods may not be read, `on_object` of all
    objects but Events and EndpointSlices."""

    def __init__(
        self,
        shared: SharedState,
        client: Client,
        scope: Scope,
        on_note: Callable[[str], None],
        on_blind: Callable[[StatusError], None],
        on_object: OnObject | None = None,
    ) -> None:
        self.missing: dict[tuple[str, str], MissingRight] = {}
        """What may not be read, by (resource, namespace)."""
        self.sources: list[Source] = []
        self._shared = shared
        self._client = client
        self._scope = scope
        self._on_note = on_note
        self._on_blind = on_blind
        self._on_object = on_object
        self._event_index: EventIndex

    def commands(self) -> list[str]:
        """Return commands for an administrator's shell, which grant all missing permissions."""
        missing = sorted(self.missing.items())  # not as the answers came: a role's name has its rights
        return commands_for(right for _, each in missing for right in each.rights)

    def refused(self, resource: Resource, namespace: str, error: StatusError, subresource: str = "") -> None:
        """Note that a request was not allowed."""
        right = missing(resource, error, subresource=subresource)
        if (right.resource, namespace) in self.missing:
            return
        self.missing[(right.resource, namespace)] = right
        if resource is PODS and not subresource:
            self._on_blind(error)
            return
        self._on_note(right.sentence)

    async def start_around(
        self, around: RelatedObjects, slices: EndpointTracker, event_index: EventIndex, over: asyncio.Event
    ) -> None:
        """Watch all but Pods, and wait until it is known, OWNERS_WAIT_SECONDS have passed, or `over` is set."""
        namespace = self._scope.namespace
        self._event_index = event_index
        for resource in WATCHED:
            on_event, on_list = around.handlers(resource)
            if resource.plural == "namespaces":
                only = f"metadata.name={namespace}" if namespace else ""
                self._watch(resource, "", on_event, on_list, field_selector=only)
            else:
                self._watch(resource, namespace if resource.namespaced else "", on_event, on_list)
        self._watch(ENDPOINTSLICES, namespace, slices.change, slices.listed)
        self._watch(EVENTS, namespace, event_index.event, None)
        waited = 0.0
        while waited < OWNERS_WAIT_SECONDS and not (over.is_set() or all(map(self._is_settled, self.sources))):
            await self._shared.world.clock.sleep(0.05)
            waited += 0.05

    def start_pods(self, on_event: OnEvent, on_list: OnList) -> None:
        """Watch the Pods of the scope."""
        scope = self._scope
        names = [each.name for each in scope.targets] if scope.only_pods else []
        self._watch(
            PODS,
            scope.namespace,
            on_event,
            on_list,
            label_selector=scope.selector,
            field_selector=f"metadata.name={names[0]}" if len(names) == 1 else "",
        )

    def _watch(
        self,
        resource: Resource,
        namespace: str,
        on_event: OnEvent,
        on_list: OnList | None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> None:
        if self._on_object is not None and resource not in (EVENTS, ENDPOINTSLICES):
            on_event, on_list = _also(self._on_object, resource, on_event, on_list)
        source = Source(
            self._client,
            resource,
            namespace,
            self._shared.world,
            on_event,
            on_list,
            on_gap=lambda gap: self._gap(resource, gap),
            on_refused=lambda error: self.refused(resource, namespace, error),
            on_synced=self._event_index.whole_from_now if resource is EVENTS else lambda: None,
            on_trouble=self._on_note,
            label_selector=label_selector,
            field_selector=field_selector,
        )
        self.sources.append(source)
        self._shared.spawn(source.run(), name=f"trace {resource.plural}")

    def _is_settled(self, source: Source) -> bool:
        return source.synced or (source.resource.plural, source.namespace) in self.missing

    def _gap(self, resource: Resource, gap: Gap) -> None:
        self._on_note(gap.sentence)
        if resource is EVENTS and gap.lost:
            self._event_index.whole_from_now()
        for timeline in self._shared.timelines.values():
            timeline.not_shown.setdefault(gap.sentence, "gap")


def _also(
    on_object: OnObject, resource: Resource, on_event: OnEvent, on_list: OnList | None
) -> tuple[OnEvent, OnList | None]:
    """Return handlers of a watch that tell `on_object`, too; what a list no longer has is reported as deleted."""
    there: dict[str, Object] = {}

    def event(type_: str, obj: Object) -> None:
        on_event(type_, obj)
        if type_ == "DELETED":
            there.pop(uid_of(obj), None)
        else:
            there[uid_of(obj)] = _identity(obj)
        on_object(resource, type_, obj)

    def whole(items: Iterable[Object]) -> None:
        assert on_list is not None
        listed: dict[str, Object] = {}

        def each() -> Iterator[Object]:
            for obj in items:
                yield obj
                listed[uid_of(obj)] = _identity(obj)
                on_object(resource, "ADDED", obj)

        on_list(each())
        for uid in [each for each in there if each not in listed]:
            on_object(resource, "DELETED", there[uid])
        there.clear()
        there.update(listed)

    return event, whole if on_list is not None else None


def _identity(obj: Object) -> Object:
    """All that is kept of an object that is there."""
    meta = obj["metadata"]
    return {"metadata": {key: meta[key] for key in ("uid", "name", "namespace") if key in meta}}
