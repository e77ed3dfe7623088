"""The watches of a follower: which there are, what was missed of them, and what may not be read."""

from collections.abc import Callable

from lastcall.api.errors import StatusError
from lastcall.api.resources import ENDPOINTSLICES, EVENTS, PODS, Resource
from lastcall.client.access.rights import commands_for
from lastcall.client.api import Client
from lastcall.tracing.following.around import WATCHED, AroundPods, OnEvent, OnList
from lastcall.tracing.following.news import News
from lastcall.tracing.following.shelf import Shelf
from lastcall.tracing.following.slices import Slices
from lastcall.tracing.rights import MissingRight, missing
from lastcall.tracing.scope import Scope
from lastcall.tracing.sources import Gap, Source

OWNERS_WAIT_SECONDS = 10.0
"""How long Pods wait for what is around them to be known."""


class Watching:
    """`on_note` hears of gaps and of rights that are missing, `on_blind` that Pods may not be read."""

    def __init__(
        self,
        shelf: Shelf,
        client: Client,
        scope: Scope,
        on_note: Callable[[str], None],
        on_blind: Callable[[StatusError], None],
    ) -> None:
        self.missing: dict[tuple[str, str], MissingRight] = {}
        """What may not be read, by (resource, namespace)."""
        self.sources: list[Source] = []
        self._shelf = shelf
        self._client = client
        self._scope = scope
        self._on_note = on_note
        self._on_blind = on_blind
        self._news: News

    def commands(self) -> list[str]:
        """For an administrator's shell: what gives all the rights that are missing."""
        missing = sorted(self.missing.items())  # not as the answers came: a role's name has its rights
        return commands_for(right for _, each in missing for right in each.rights)

    def refused(self, resource: Resource, namespace: str, error: StatusError, subresource: str = "") -> None:
        """A request was not allowed."""
        right = missing(resource, error, subresource=subresource)
        if (right.resource, namespace) in self.missing:
            return
        self.missing[(right.resource, namespace)] = right
        if resource is PODS and not subresource:
            self._on_blind(error)
            return
        self._on_note(right.sentence)

    async def start_around(self, around: AroundPods, slices: Slices, news: News) -> None:
        """Watch all but Pods, and wait until it is known or OWNERS_WAIT_SECONDS are over."""
        namespace = self._scope.namespace
        self._news = news
        for resource in WATCHED:
            on_event, on_list = around.handlers(resource)
            if resource.plural == "namespaces":
                only = f"metadata.name={namespace}" if namespace else ""
                self._watch(resource, "", on_event, on_list, field_selector=only)
            else:
                self._watch(resource, namespace if resource.namespaced else "", on_event, on_list)
        self._watch(ENDPOINTSLICES, namespace, slices.change, slices.listed)
        self._watch(EVENTS, namespace, news.event, None)
        waited = 0.0
        while waited < OWNERS_WAIT_SECONDS and not all(self._is_settled(each) for each in self.sources):
            await self._shelf.world.clock.sleep(0.05)
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
        source = Source(
            self._client,
            resource,
            namespace,
            self._shelf.world,
            on_event,
            on_list,
            on_gap=lambda gap: self._gap(resource, gap),
            on_refused=lambda error: self.refused(resource, namespace, error),
            on_synced=self._news.whole_from_now if resource is EVENTS else lambda: None,
            label_selector=label_selector,
            field_selector=field_selector,
        )
        self.sources.append(source)
        self._shelf.spawn(source.run(), name=f"trace {resource.plural}")

    def _is_settled(self, source: Source) -> bool:
        return source.synced or (source.resource.plural, source.namespace) in self.missing

    def _gap(self, resource: Resource, gap: Gap) -> None:
        self._on_note(gap.sentence)
        if resource is EVENTS and gap.lost:
            self._news.whole_from_now()
        for book in self._shelf.books.values():
            book.not_shown.setdefault(gap.sentence, "gap")
