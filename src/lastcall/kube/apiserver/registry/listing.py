"""list: pages, continue tokens, and which moment a list shows.

Sources: apiserver pkg/storage/etcd3/store.go:GetList, pkg/storage/cacher/delegator.go.
"""

from collections.abc import AsyncIterator

from lastcall.kube.api.errors import bad_request, expired, list_too_old, too_large_resource_version
from lastcall.kube.apiserver.registry.generic import GenericStore
from lastcall.kube.apiserver.registry.selection import Selection
from lastcall.kube.apiserver.wire.options import ListOptions, decode_continue, encode_continue, parse_resource_version
from lastcall.kube.store.api import Compacted, Entry, Store
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass

CATCH_UP_SECONDS = 3.0
"""How long a list waits for a version that this server has not seen yet (blockTimeout)."""
CATCH_UP_STEP = 0.05

SLICE = 100
"""Objects that are decoded before others on the event loop get their turn; some milliseconds."""

INCONSISTENT_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class Page:
    """`continue_` is "" on the last page; `remaining` is None where it is not known (selectors)."""

    entries: list[Entry]
    revision: int
    continue_: str = ""
    remaining: int | None = None


async def list_page(kind: GenericStore, namespace: str, options: ListOptions, selection: Selection) -> Page:
    """List a page. Raises StatusError: 400 for options, 410 for a compacted revision, 504 for one that has not come."""
    store, clock = kind.shared.store, kind.shared.world.clock
    prefix, scope = kind.collection(namespace), kind.scope(namespace, selection)
    limit, start, revision = options.limit, "", 0
    if options.continue_:
        if options.resource_version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        revision, after = decode_continue(options.continue_)
        start = prefix + after
        revision = max(revision, 0)
        if options.resource_version == "0":
            limit = 0
    elif options.resource_version:
        asked = parse_resource_version(options.resource_version, for_list=True)
        if asked == 0:
            limit = 0
        else:
            await wait_for_revision(store, clock, asked)
            if options.resource_version_match == "Exact" or (limit and not options.resource_version_match):
                revision = asked
    try:
        return await _read(kind, prefix, scope, start, limit, revision, selection)
    except Compacted:
        if options.continue_:
            error = expired(INCONSISTENT_CONTINUE)
            error.status["metadata"] = {"continue": encode_continue(-1, start.removeprefix(prefix))}
            raise error from None
        raise list_too_old() from None


async def _read(
    kind: GenericStore, prefix: str, scope: str, start: str, limit: int, revision: int, selection: Selection
) -> Page:
    """`scope` is where under `prefix` there can be something that is selected."""
    store = kind.shared.store
    if selection.everything:
        entries, at, more = await store.list(prefix, start=start, limit=limit, revision=revision)
        if not more:
            return Page(entries, at)
        return Page(entries, at, encode_continue(at, entries[-1].key.removeprefix(prefix)), more)
    entries, at, _ = await store.list(scope, start=start, revision=revision)
    selected = [entry async for entry in select(kind, selection, entries)]
    if not limit or len(selected) <= limit:
        return Page(selected, at)
    page = selected[:limit]
    return Page(page, at, encode_continue(at, page[-1].key.removeprefix(prefix)))


async def select(kind: GenericStore, selection: Selection, entries: list[Entry]) -> AsyncIterator[Entry]:
    """Yield the entries that are selected. Others get their turn between slices of what may have to be decoded."""
    for number, entry in enumerate(entries, 1):
        if selects(kind, selection, entry):
            yield entry
        if number % SLICE == 0:
            await kind.shared.world.clock.sleep(0)


def selects(kind: GenericStore, selection: Selection, entry: Entry) -> bool:
    """Return whether an entry is selected, decoding it only when its name does not decide."""
    if selection.name and entry.key.rpartition("/")[2] != selection.name:
        return False
    return selection.only_name or selection.matches(kind.decode(entry.value))


async def wait_for_revision(store: Store, clock: Clock, revision: int) -> None:
    """Return when the store has reached `revision`. Raises the 504 StatusError after `CATCH_UP_SECONDS`."""
    waited = 0.0
    while (current := await store.revision()) < revision:
        if waited >= CATCH_UP_SECONDS:
            raise too_large_resource_version(revision, current)
        await clock.sleep(CATCH_UP_STEP)
        waited += CATCH_UP_STEP
