"""A list in pages is a whole or nothing: also when it breaks off, and when its history is compacted meanwhile."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from fake_api import FakeAPI

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import name_of
from lastcall.kube.api.resources import PODS, REPLICASETS, Resource
from lastcall.kube.client.api import ConnectionLost
from lastcall.trace import sources
from lastcall.trace.follower import Follower
from lastcall.trace.scope import Scope
from lastcall.trace.sources import Source
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

EXPIRED = status_failure(410, "Expired", "the provided continue parameter is too old")
BREAKS = {"the connection is lost": ConnectionLost("reset"), "the history is compacted": EXPIRED}


class Paged(FakeAPI):
    """Also answers lists in pages; `between` is what happens before a second page, which then fails."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.between: dict[str, tuple[Callable[[], object], Exception]] = {}

    async def request(self, method: str, path: str, *, query: Any = ()) -> bytes:
        plural, wanted = path.rpartition("/")[2], dict(query)
        self.asked.append((plural, wanted))
        first = int(wanted.get("continue", 0))
        if first and plural in self.between:
            happens, error = self.between.pop(plural)
            happens()
            raise error
        there = [obj for key, obj in self.objects.items() if key[0] == plural]
        limit = int(wanted.get("limit", 0)) or len(there)
        rest = str(first + limit) if first + limit < len(there) else ""
        meta = {"resourceVersion": str(self.version), "continue": rest}
        return orjson.dumps({"metadata": meta, "items": there[first : first + limit]})


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PAGE", 1)


def put(api: FakeAPI, resource: Resource, *names: str) -> None:
    for name in names:
        api.put(resource, {"metadata": {"name": name, "namespace": "n"}, "spec": {}})


@pytest.mark.parametrize("broken", BREAKS)
def test_a_list_that_breaks_off_in_the_middle_is_not_told(broken: str) -> None:
    told: list[list[str]] = []

    async def scenario(world: World) -> None:
        api = Paged(world)
        put(api, PODS, "a", "b", "c")
        api.between["pods"] = (lambda: api.remove(PODS, "a", "n"), BREAKS[broken])
        source = Source(
            api,
            PODS,
            "n",
            world,
            on_event=lambda type_, obj: None,
            on_list=lambda items: told.append([name_of(each) for each in items]),
            on_gap=lambda gap: None,
            on_refused=lambda error: None,
            on_synced=lambda: None,
        )
        async with Tasks() as tasks:
            tasks.spawn(source.run(), name="source")
            await world.clock.sleep(10)
            tasks.cancel()
        if broken == "the history is compacted":
            assert [asked for _, asked in api.asked] == [{"limit": "1"}, {"limit": "1", "continue": "1"}, {}], (
                "all of it is asked for at once then"
            )

    run_virtual(scenario)
    assert told == [["b", "c"]]


@pytest.mark.parametrize("broken", BREAKS)
@pytest.mark.parametrize("resource", [PODS, REPLICASETS], ids=lambda resource: resource.plural)
def test_what_goes_while_a_list_breaks_off_is_told_as_gone(resource: Resource, broken: str) -> None:
    notes: list[str] = []
    seen: list[tuple[str, str]] = []

    def heard(of: Resource, type_: str, obj: Any) -> None:
        if of is resource:
            seen.append((type_, name_of(obj)))

    async def scenario(world: World) -> None:
        api = Paged(world)
        put(api, resource, "a", "b", "c")
        follower = Follower(api, Scope("n"), world=world, on_note=notes.append, on_object=heard)
        async with Tasks() as tasks:
            tasks.spawn(follower.run(), name="trace")
            await follower.synced()
            await world.clock.sleep(5)
            api.between[resource.plural] = (lambda: api.remove(resource, "a", "n"), BREAKS[broken])
            api.compact()
            api.version += 1
            api.compact()
            api.break_watches(EXPIRED)
            await world.clock.sleep(30)
            tasks.cancel()

    run_virtual(scenario)
    assert ("DELETED", "a") in seen and ("DELETED", "b") not in seen
    if resource is PODS:
        assert [each for each in notes if each.startswith("Pod ")] == [
            "Pod n/a disappeared while the watch was interrupted: its end was not seen."
        ]


@pytest.mark.parametrize("trouble", ["pages without end", "too large", "not JSON", "the connection is lost"])
def test_why_a_list_is_not_there_yet_is_said_once(monkeypatch: pytest.MonkeyPatch, trouble: str) -> None:
    monkeypatch.setattr(sources, "MOST_PAGES", 3)
    monkeypatch.setattr(sources, "MOST_ANSWER_BYTES", 1000)
    said: list[str] = []

    class Hostile(FakeAPI):
        async def request(self, method: str, path: str, *, query: Any = ()) -> bytes:
            if trouble == "the connection is lost":
                raise ConnectionLost("reset")
            if trouble == "not JSON":
                return b"<html>"
            page = {"metadata": {"continue": "x"}, "items": []}
            return orjson.dumps(page | {"pad": "x" * (2000 if trouble == "too large" else 1)})

    async def scenario(world: World) -> None:
        source = Source(
            Hostile(world),
            PODS,
            "n",
            world,
            on_event=lambda type_, obj: None,
            on_list=lambda items: None,
            on_gap=lambda gap: None,
            on_refused=lambda error: None,
            on_synced=lambda: None,
            on_trouble=said.append,
        )
        async with Tasks() as tasks:
            tasks.spawn(source.run(), name="source")
            await world.clock.sleep(300)
            tasks.cancel()
        if trouble != "the connection is lost":
            assert source.requests <= 4 * 6, "what does not get better is asked for once a minute"

    run_virtual(scenario)
    why = {
        "pages without end": "the list has more than 0 MiB or 3 pages",
        "too large": "the list has more than 0 MiB or 3 pages",
        "not JSON": "the answer is not a JSON object, but '<html>'",
        "the connection is lost": "reset",
    }
    (line,) = said
    assert line.startswith(f"pods cannot be listed yet: {why[trouble]}")
