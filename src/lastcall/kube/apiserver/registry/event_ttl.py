"""Events live an hour after their last write, also in a store that has no sense of time."""

from datetime import datetime, timedelta

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.apiserver.deletion import DeleteOptions
from lastcall.kube.apiserver.registry.generic import GenericStore
from lastcall.kube.apiserver.registry.listing import SLICE
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.store.api import Store
from lastcall.world import crash_guard
from lastcall.world.clock import now
from lastcall.world.world import World

EVENT_TTL = timedelta(hours=1)
EVENT_SWEEP_SECONDS = 60.0


async def sweep_events(world: World, store: Store, kind: GenericStore, context: RequestContext) -> None:
    """Remove expired Events until cancelled. `kind` is that of Events."""
    while True:
        await world.clock.sleep(EVENT_SWEEP_SECONDS)
        at = now(world.clock)
        entries, _, _ = await store.list(kind.prefix)
        for number, entry in enumerate(entries, 1):
            if number % SLICE == 0:
                await world.clock.sleep(0)
            with crash_guard.Turn("API server event TTL", entry.key):
                event = kind.decode(entry.value)
                if last_written(event, at) < at - EVENT_TTL:
                    meta = event["metadata"]
                    await _delete_quietly(kind, context, meta["namespace"], meta["name"], meta["resourceVersion"])


def last_written(event: Object, at: datetime) -> datetime:
    """Return when an Event was written last, by its own times.

    Its writer chooses two of the three: those after `at` do not count, or the Event would stay forever.
    """
    created = parse_rfc3339(event["metadata"]["creationTimestamp"])
    stamps = (event.get("lastTimestamp"), (event.get("series") or {}).get("lastObservedTime"))
    times = (parse_rfc3339(text) for text in stamps if text)
    return max((created, *(each for each in times if each <= at)))


async def _delete_quietly(kind: GenericStore, context: RequestContext, namespace: str, name: str, version: str) -> None:
    try:
        await kind.delete(context, namespace, name, DeleteOptions(resource_version=version))
    except StatusError as error:
        # Written or deleted meanwhile: the next sweep sees it as it is then.
        if error.code not in (404, 409):
            raise
