"""The whole process around a follower: serving, the lease, and its own polite end."""

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import pytest
from fake_api import FakeAPI
from story_samples import samples
from waiting import until

from lastcall.kube.api.resources import EVENTS, LEASES
from lastcall.kube.client.leaderelection import LeadershipLost
from lastcall.trace.exporting.addresses import parse_listen
from lastcall.trace.exporting.health import Health
from lastcall.trace.exporting.serving import Asked, Serving
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

pytestmark = pytest.mark.loopback


@pytest.fixture(autouse=True, scope="module")
def _stories():
    samples()


class Follower:
    """Tells what it is given, until it is stopped."""

    def __init__(self):
        self.queue = asyncio.Queue()
        self.running = False
        self._over = asyncio.Event()

    async def run(self):
        self.running = True
        try:
            await self._over.wait()
        finally:
            self.running = False
            self.queue.put_nowait(None)

    async def endings(self):
        while (ending := await self.queue.get()) is not None:
            yield ending

    def stop(self):
        self._over.set()


class Process:
    """One `trace --serve`, with what it said and its follower once it has one."""

    def __init__(self, api, **asked):
        self.notes = []
        self.follower = None
        self.health = Health(watches={"pods": True})
        asked.setdefault("listen", parse_listen("127.0.0.1:0"))
        self.serving = Serving(World(), api, Asked(**asked), self._follow, lambda: self.health, self.notes.append)

    def _follow(self):
        self.follower = Follower()
        return self.follower

    @property
    def url(self):
        return next((note.split()[1] for note in self.notes if note.startswith("serves ")), "")

    async def get(self, path):
        async with aiohttp.ClientSession() as session, session.get(self.url.replace("/metrics", path)) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def running(*processes):
    async with Tasks() as tasks:
        started = [tasks.spawn(each.serving.run(), name="serving") for each in processes]
        for each in processes:
            await until(lambda each=each: each.url, "it listens")
        yield started
        for each in processes:
            each.serving.end()


async def test_what_ended_stands_on_the_page_until_the_very_end():
    process = Process(FakeAPI(World()))
    async with running(process) as (task,):
        await until(lambda: process.follower and process.follower.running)
        process.follower.queue.put_nowait(samples()["sigkill"][0])
        await until(lambda: process.follower.queue.empty())
        status, page = await process.get("/metrics")
        assert status == 200 and "lastcall_container_sigkills_total{" in page
        assert "lastcall_leader 1.0" in page
        assert (await process.get("/readyz"))[0] == 200
        process.serving.end()
        await task
    assert not process.follower.running


async def test_stories_that_are_finished_when_the_end_comes_are_handed_over():
    api = FakeAPI(World())
    process = Process(api, events=True)
    async with running(process) as (task,):
        await until(lambda: process.follower and process.follower.running)
        process.follower.queue.put_nowait(samples()["sigkill"][0])
        process.serving.end()  # at once: the story is not even read yet
        await task
    events = [obj for obj in api.objects.values() if obj["kind"] == EVENTS.kind]
    assert [each["reason"] for each in events] == ["KilledAfterGracePeriod"]


async def test_one_bad_story_does_not_end_the_watching(monkeypatch):
    process = Process(FakeAPI(World()))
    monkeypatch.setattr(crash_guard, "caught", lambda *_: seen.append(_))
    seen = []
    async with running(process):
        await until(lambda: process.follower and process.follower.running)
        process.follower.queue.put_nowait(_Broken())
        process.follower.queue.put_nowait(samples()["graceful"][0])
        await until(lambda: process.follower.queue.empty())
        assert 'outcome="graceful"' in (await process.get("/metrics"))[1]
    assert [each[:2] for each in seen] == [("export metrics", "n/p")]


class _Broken:
    class pod:
        namespace, name = "n", "p"


async def test_of_two_with_one_lease_one_follows_and_the_other_takes_over_at_once():
    api = FakeAPI(World())
    lease = ("lastcall", "lastcall-trace")
    first, second = (Process(api, lease=lease, identity=name) for name in ("a", "b"))
    async with running(first, second) as tasks:
        await until(lambda: first.follower or second.follower, "one holds the lease")
        leads, waits = (first, second) if first.follower else (second, first)
        assert waits.follower is None
        assert (await waits.get("/readyz")) == (200, "ok: waiting for the lease\n")
        assert "lastcall_leader 0.0" in (await waits.get("/metrics"))[1]
        leads.serving.end()
        await tasks[(first, second).index(leads)]
        (given,) = (obj for obj in api.objects.values() if obj["kind"] == LEASES.kind)
        await until(lambda: waits.follower, "the other one follows")
        assert given["metadata"]["name"] == "lastcall-trace"


async def test_who_waits_for_the_lease_ends_at_once():
    api = FakeAPI(World())
    lease = ("lastcall", "lastcall-trace")
    first, second = (Process(api, lease=lease, identity=name) for name in ("a", "b"))
    async with running(first, second) as tasks:
        await until(lambda: first.follower or second.follower)
        waits = second if first.follower else first
        waits.serving.end()
        await tasks[(first, second).index(waits)]
        assert waits.follower is None


async def test_a_lost_lease_ends_the_process(monkeypatch):
    api = FakeAPI(World())
    process = Process(api, lease=("lastcall", "lastcall-trace"), identity="a")

    async def run():
        with pytest.raises(LeadershipLost):
            await process.serving.run()

    async with Tasks() as tasks:
        task = tasks.spawn(run(), name="serving")
        await until(lambda: process.follower and process.follower.running)
        process.serving._elector._renewed_at = -1e9
        (key,) = [key for key, obj in api.objects.items() if obj["kind"] == LEASES.kind]
        api.objects[key]["spec"]["holderIdentity"] = "b"
        await task
    assert not process.follower.running


async def test_an_address_that_is_taken_is_the_world_s_error():
    first = Process(FakeAPI(World()))
    async with running(first):
        taken = first.url.removeprefix("http://").removesuffix("/metrics")
        with pytest.raises(OSError, match="in use"):
            await Process(FakeAPI(World()), listen=parse_listen(taken)).serving.run()


async def test_an_address_that_others_reach_is_told():
    process = Process(FakeAPI(World()), listen=parse_listen("0.0.0.0:0"))
    async with running(process):
        await until(lambda: len(process.notes) == 2)
    assert "everybody who reaches it can read the metrics" in process.notes[1]
