"""Leader election in virtual time: two candidates never act at once, whatever fails, pauses or skews."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from fake_api import FakeAPI

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.resources import CONFIGMAPS, LEASES
from lastcall.kube.client.api import ConnectionLost
from lastcall.kube.client.leaderelection import FencedClient, LeaderElector, LeadershipLost, LeaseTimes
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

NAME = "kube-controller-manager"


class SkewedClock:
    """Wall time differs by `hours`; the machine's monotonic clock begins somewhere else."""

    def __init__(self, clock, hours: float) -> None:
        self._clock, self._ns = clock, int(hours * 3600e9)

    def monotonic_ns(self) -> int:
        return self._clock.monotonic_ns() + abs(self._ns)

    def wall_ns(self) -> int:
        return self._clock.wall_ns() + self._ns

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


class Way:
    """The way of one candidate to the API: it may be cut, slow, or fail by chance."""

    def __init__(self, api: FakeAPI, world: World, faults: float = 0.0) -> None:
        self._api, self._world, self.faults, self.cut = api, world, faults, False

    def __getattr__(self, name: str) -> Any:
        if name == "watch":
            return self._api.watch

        async def call(*args: Any, **options: Any) -> Any:
            dice = self._world.random.random()
            if self.cut or dice < self.faults / 3:
                raise ConnectionLost("cut off")
            if dice < self.faults * 2 / 3:
                await self._world.clock.sleep(self._world.random.random() * 8)
            answer = await getattr(self._api, name)(*args, **options)
            if self.faults * 2 / 3 < dice < self.faults:
                raise ConnectionLost("the answer is lost")  # the write is done all the same
            return answer

        return call


@dataclass
class Candidate:
    """Acts (creates a ConfigMap) every half second while it leads."""

    name: str
    world: World
    way: Way
    acts: list[tuple[float, str]]
    others: "list[Candidate]" = field(default_factory=list)
    seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.elector = LeaderElector(self.world, self.way, name=NAME, identity=self.name, on_leader=self.seen.append)
        self.client = FencedClient(self.way, lambda: self.elector.is_leader)

    async def lead(self) -> None:
        for number in range(10_000):
            try:
                await self.client.create(CONFIGMAPS, {"metadata": {"name": f"{self.name}-{number}-{len(self.acts)}"}})
            except ConnectionLost:
                pass
            else:
                self.acts.append((self.others[0].now, self.name))
                leading = [each.name for each in self.others if each.elector.is_leader]
                assert set(leading) <= {self.name}, f"{self.name} acts while {leading} lead"
            await self.world.clock.sleep(0.5)

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def run(self) -> None:
        while True:
            try:
                await self.elector.run(self.lead)
            except LeadershipLost:
                continue


def candidates(world: World, count: int, faults: float = 0.0, hours: float = 0.0) -> tuple[FakeAPI, list[Candidate]]:
    api = FakeAPI(world)
    acts: list[tuple[float, str]] = []
    made = []
    for number in range(count):
        own = World(SkewedClock(world.clock, hours * number * (-1) ** number), world.random)
        made.append(Candidate(f"c{number}", own, Way(api, own, faults), acts))
    for each in made:
        each.others = made
    return api, made


def terms(acts: list[tuple[float, str]]) -> list[tuple[str, float, float]]:
    """(who, from, until) of what was done in a row."""
    found: list[tuple[str, float, float]] = []
    for at, name in acts:
        if found and found[-1][0] == name:
            found[-1] = (name, found[-1][1], at)
        else:
            found.append((name, at, at))
    return found


def run(scenario, seed: int = 0) -> Any:
    return run_virtual(scenario, seed=seed)


def test_one_of_three_leads_and_the_lease_says_who():
    async def scenario(world):
        api, made = candidates(world, 3)
        async with Tasks() as tasks:
            for each in made:
                tasks.spawn(each.run(), name=each.name)
            await world.clock.sleep(60)
            assert len(terms(made[0].acts)) == 1
            (lease,) = api.of(LEASES)
            spec = lease["spec"]
            assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == (made[0].acts[0][1], 15)
            assert spec["leaseTransitions"] == 0
            assert spec["acquireTime"] < spec["renewTime"]
            assert all(each.seen == [spec["holderIdentity"]] for each in made)
            tasks.cancel()

    run(scenario)


def test_a_leader_that_is_killed_is_followed_after_its_lease_and_not_before():
    async def scenario(world):
        _, made = candidates(world, 2, hours=5)
        async with Tasks() as tasks:
            first = tasks.spawn(made[0].run(), name="first")
            await world.clock.sleep(5)
            tasks.spawn(made[1].run(), name="second")
            await world.clock.sleep(25)
            made[0].way.cut = True  # kill -9: not even the release arrives
            first.cancel()
            await world.clock.sleep(40)
            (one, _, ended), (two, began, _) = terms(made[0].acts)
            assert (one, two) == ("c0", "c1")
            assert 15 - 2 <= began - ended <= 15 + 2 * 2.2 + 1
            tasks.cancel()

    run(scenario)


def test_a_leader_that_ends_while_it_renews_gives_the_lease_back():
    """The renewal arrives, and its answer is not waited for: the version that the leader knows is old."""

    async def scenario(world):
        api, made = candidates(world, 1)
        way = made[0].way
        renewals: list[str] = []

        async def update(*args: Any, **options: Any) -> Any:
            answer = await api.update(*args, **options)
            if not renewals:
                renewals.append("arrived")
                await world.clock.sleep(60)
            return answer

        async with Tasks() as tasks:
            leader = tasks.spawn(made[0].run(), name="leader")
            await world.clock.sleep(1)
            way.update = update
            await world.clock.sleep(2)
            assert renewals
            leader.cancel()
            await world.clock.sleep(1)
            (lease,) = api.of(LEASES)
            assert lease["spec"]["holderIdentity"] == ""

    run(scenario)


def test_a_leader_that_ends_in_order_gives_the_lease_back():
    async def scenario(world):
        api, made = candidates(world, 2)
        async with Tasks() as tasks:
            first = tasks.spawn(made[0].run(), name="first")
            await world.clock.sleep(5)
            tasks.spawn(made[1].run(), name="second")
            await world.clock.sleep(20)
            first.cancel()
            await world.clock.sleep(6)
            (_, _, ended), (two, began, _) = terms(made[0].acts)
            assert two == "c1"
            assert began - ended < 5.5
            assert api.of(LEASES)[0]["spec"]["leaseTransitions"] == 1
            tasks.cancel()

    run(scenario)


def test_a_leader_that_is_cut_off_stops_before_another_may_begin():
    async def scenario(world):
        _, made = candidates(world, 2)
        async with Tasks() as tasks:
            for each in made:
                tasks.spawn(each.run(), name=each.name)
            await world.clock.sleep(20)
            leader = next(each for each in made if each.elector.is_leader)
            cut_at = leader.now
            leader.way.cut = True
            lost = 0.0
            while leader.elector.is_leader:
                await world.clock.sleep(0.1)
                lost = leader.now
            assert 7.5 <= lost - cut_at <= 10.1
            await world.clock.sleep(30)
            leader.way.cut = False
            await world.clock.sleep(30)
            first, second = terms(made[0].acts)
            assert first[0] != second[0]
            assert second[1] - lost > 2
            tasks.cancel()

    run(scenario)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_fails_two_never_act_at_once(seed):
    """`Candidate.lead` looks at all others whenever it has acted."""

    async def scenario(world):
        _, made = candidates(world, 3, faults=0.35, hours=3)
        async with Tasks() as tasks:
            for each in made:
                tasks.spawn(each.run(), name=each.name)
            for _ in range(12):
                await world.clock.sleep(25)
                for each in made:
                    each.way.cut = world.random.random() < 0.3
            for each in made:
                each.way.cut = False
                each.way.faults = 0.0
            before = len(made[0].acts)
            await world.clock.sleep(60)
            assert len(made[0].acts) > before, "in the end somebody leads"
            tasks.cancel()

    run(scenario, seed)


def test_a_process_that_was_stopped_for_a_while_may_write_nothing():
    async def scenario(world):
        api, (only,) = candidates(world, 1)
        paused = 0

        class Jumping(SkewedClock):
            def monotonic_ns(self) -> int:
                return super().monotonic_ns() + paused

        only.world.clock = Jumping(world.clock, 0)
        outcome: list[Exception] = []

        async def led() -> None:
            try:
                await only.elector.run(only.lead)
            except LeadershipLost as error:
                outcome.append(error)

        async with Tasks() as tasks:
            running = tasks.spawn(led(), name="only")
            await world.clock.sleep(5)
            paused = int(30e9)  # SIGSTOP: between two steps half a minute passes
            with pytest.raises(ConnectionLost, match="not the leader"):
                await only.client.create(CONFIGMAPS, {"metadata": {"name": "late"}})
            assert not any(each["metadata"]["name"] == "late" for each in api.of(CONFIGMAPS))
            await running
            assert len(outcome) == 1

    run(scenario)


def test_a_lease_that_somebody_else_took_is_lost_at_once():
    async def scenario(world):
        api, (only,) = candidates(world, 1)

        async def led() -> None:
            with pytest.raises(LeadershipLost):
                await only.elector.run(only.lead)

        async with Tasks() as tasks:
            running = tasks.spawn(led(), name="only")
            await world.clock.sleep(5)
            (lease,) = api.of(LEASES)
            api.put(LEASES, lease | {"spec": lease["spec"] | {"holderIdentity": "thief"}})
            at = only.now
            await running
            assert only.now - at <= 2.1
            assert api.of(LEASES)[0]["spec"]["holderIdentity"] == "thief"

    run(scenario)


def test_what_the_server_refuses_is_tried_again():
    async def scenario(world):
        api, (only,) = candidates(world, 1)
        api.fail_next("create", "leases", status_failure(403, "Forbidden", "no"), times=3)
        async with Tasks() as tasks:
            running = tasks.spawn(only.run(), name="only")
            await world.clock.sleep(30)
            assert only.acts
            running.cancel()

    run(scenario)


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ((10, 10, 2), "lease_duration must be greater"),
        ((15, 2.4, 2), "renew_deadline must be greater"),
        ((0.5, 0.4, 0.1), "at least 1 s"),
    ],
)
def test_times_that_cannot_keep_two_apart_are_refused(times, words):
    with pytest.raises(ValueError, match=words):
        LeaseTimes(*times)
