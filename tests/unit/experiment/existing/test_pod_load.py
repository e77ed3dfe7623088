"""A load generator on another machine, whose clock is another one: every request has an outcome, in times of ours."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from rollout_lives import pod_life

from lastcall.errors import WorldError
from lastcall.experiment.existing.pod_load import NAME, PodLoad, generator_pod, new_token
from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.client.api import ConnectionLost
from lastcall.traffic.account import Account, account
from lastcall.traffic.load import Load
from lastcall.traffic.moments import Moment
from lastcall.traffic.outcome import Outcome
from lastcall.traffic.served import ServedGenerator
from lastcall.traffic.through_api import Traced, with_causes
from lastcall.world.clock import RealClock, monotonic
from lastcall.world.tasks import Tasks

pytestmark = pytest.mark.loopback

Seconds = Callable[[], float]


async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n")
    await writer.drain()
    writer.close()


async def http(port: int, method: str, path: str) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    body = await reader.read()
    writer.close()
    return int(head.split(b" ")[1]), body


async def with_generator(
    test: Callable[[int, str], Awaitable[None]], *, now: Seconds | None = None, rate: float = 20.0
) -> None:
    """`test` gets the port and the token of a generator that asks a server which answers everything."""
    async with Tasks() as tasks:
        server = await asyncio.start_server(answering, "127.0.0.1", 0)
        load = Load(target=("127.0.0.1", server.sockets[0].getsockname()[1]), rates={"fresh": rate})
        port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        served = ServedGenerator(load, "secret", now=now)
        tasks.spawn(served.hold("127.0.0.1", 0, listening=port.set_result), name="generator")
        try:
            await test(await port, "secret")
        finally:
            server.close()
            tasks.cancel()


def asked_at(port: int, token: str, *, slow: float = 0.0, fails: int = 0) -> Callable[[str, str], Awaitable[bytes]]:
    """A way to the generator, which takes `slow` seconds back only, and whose first `fails` looks at anything fail."""
    left = fails

    async def ask(method: str, path: str) -> bytes:
        nonlocal left
        left -= 1
        if left >= 0:
            raise ConnectionLost("the API server is restarting")
        status, body = await http(port, method, f"/{token}/{path}")
        await asyncio.sleep(slow)  # a slow API server
        if status != 200:
            raise StatusError(status_failure(status, "NotFound", "no"))
        return body

    return ask


async def measured(load: PodLoad, seconds: float = 1.0) -> tuple[list[Outcome], float, float]:
    """The outcomes of so many seconds, and when by our clock that began and was over."""
    began = monotonic(load.clock)
    await load.start()
    found: list[Outcome] = []

    async def stop() -> None:
        await asyncio.sleep(seconds)  # how long the load lasts
        load.stop()

    async with Tasks() as tasks:
        tasks.spawn(stop(), name="stop")
        found.extend([each async for each in load.outcomes()])
    return found, began, monotonic(load.clock)


@pytest.mark.parametrize("shift", [0.0, 3600.0, -12.5])
def test_times_of_a_clock_that_is_shifted_are_told_by_ours_within_the_error_that_is_shown(shift: float) -> None:
    clock = RealClock()

    async def test(port: int, token: str) -> None:
        load = PodLoad(asked_at(port, token, slow=0.03), clock)
        outcomes, began, over = await measured(load)
        assert outcomes
        assert {each.id for each in outcomes} == set(range(1, (load.begun or 0) + 1))  # none is unaccounted
        assert abs(load.offset.seconds - shift) <= load.offset.error < 10.0
        error = load.offset.error
        for each in outcomes:
            assert began - error <= each.planned <= each.finished <= over + error
            assert not each.lost or not each.measured  # a client that is held up for seconds times out

    asyncio.run(with_generator(test, now=lambda: monotonic(clock) + shift))


def test_a_clock_that_is_set_meanwhile_means_nothing() -> None:
    clock = RealClock()
    ahead = iter([0.0] * 4 + [500.0] * 1000)

    async def test(port: int, token: str) -> None:
        load = PodLoad(asked_at(port, token), clock)
        await load.start()
        with pytest.raises(WorldError, match="the other clock was set during the measurement"):
            [each async for each in load.outcomes()]

    asyncio.run(with_generator(test, now=lambda: monotonic(clock) + next(ahead, 500.0)))


class Leaving:
    """A server that answers everything until it leaves, as a Pod does whose endpoint stays."""

    async def __aenter__(self) -> "Leaving":
        self.server = await asyncio.start_server(answering, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()


def joined_with_an_end(now: Seconds, clock: RealClock) -> tuple[Account, PodLoad, float]:
    """What becomes of requests to a Pod that leaves after half a second, by a generator with the clock `now`; and when
    it left."""

    async def experiment() -> tuple[Account, PodLoad, float]:
        async with Leaving() as pod, Tasks() as tasks:
            port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            load = Load(target=("127.0.0.1", pod.port), rates={"fresh": 100.0})
            served = ServedGenerator(load, "secret", now=now)
            tasks.spawn(served.hold("127.0.0.1", 0, listening=port.set_result), name="generator")
            generator = PodLoad(asked_at(await port, "secret"), clock)
            began = monotonic(clock)
            left: list[float] = []

            async def leave() -> None:
                await asyncio.sleep(0.5)  # load before the server leaves
                left.append(monotonic(clock))
                pod.server.close()
                left.append(monotonic(clock))

            tasks.spawn(leave(), name="end")
            outcomes, *_ = await measured(generator, 1.5)
            tasks.cancel()
        found = account(outcomes, [], (), began, begun=generator.begun, whole_output=False)
        end = Moment(left[0], left[1])
        pods = [pod_life("old", "old", ready=0.0, deleted=end, term=end, exited=end)]
        pods.append(pod_life("other", "other", ready=0.0))
        return with_causes(found, Traced(pods, began, generator.offset.error, probed=True)), generator, left[0]

    return asyncio.run(experiment())


def test_a_generator_whose_clock_is_3700_ms_ahead_has_its_lost_requests_joined_with_the_end_that_lost_them() -> None:
    clock = RealClock()
    found, generator, _ = joined_with_an_end(lambda: monotonic(clock) + 3.7, clock)
    assert abs(generator.offset.seconds - 3.7) <= generator.offset.error < 0.5
    causes = dict(found.causes)
    assert causes.pop("late endpoint") > 10 and found.without_outcome == ()
    assert set(causes) <= {"not seen"}  # those that were refused just when it left
    assert all(each.pod == "old" for each in found.lost if each.cause == "late endpoint")
    # Told by its own clock, they would all have been 3.7 s later: the correction is what joins them.
    assert max(each.outcome.finished for each in found.lost) < monotonic(clock)


def test_with_a_clock_that_jitters_causes_are_not_known_but_those_outside_of_its_error() -> None:
    clock, looks = RealClock(), iter(range(10**9))
    found, generator, end = joined_with_an_end(lambda: monotonic(clock) + (1.4 if next(looks) % 2 else -1.4), clock)
    assert 1.3 < generator.offset.error < 2.0
    known = [each for each in found.lost if each.cause != "not seen"]
    unknown = [each for each in found.lost if each.cause == "not seen"]
    assert unknown and all("clocks are aligned to ±" in each.not_known for each in unknown)
    assert all(each.outcome.finished - generator.offset.error >= end for each in known)


def test_an_api_server_that_restarts_is_waited_for_and_no_outcome_is_missed() -> None:
    async def test(port: int, token: str) -> None:
        load = PodLoad(asked_at(port, token, fails=12), RealClock())
        outcomes, *_ = await measured(load, 2.0)
        assert {each.id for each in outcomes} == set(range(1, (load.begun or 0) + 1)) != set()

    asyncio.run(with_generator(test))


def test_who_has_not_the_token_gets_nothing_and_a_garbled_request_harms_nobody() -> None:
    async def test(port: int, token: str) -> None:
        for path in ("/clock", "/wrong/clock", "/wrong/start", f"/{token}/outcomes/x", f"/{token}/nothing", "//", "/"):
            assert (await http(port, "POST" if "start" in path else "GET", path))[0] == 404
        for raw in (b"\r\n\r\n", b"GET\r\n\r\n", b"\xff\xfe\r\n\r\n", b"x" * 70000):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(raw)
            try:
                await writer.drain()
                await asyncio.wait_for(reader.read(), 30)
            except ConnectionError:
                pass
            writer.close()
        assert (await http(port, "GET", "/healthz"))[0] == 200
        status, body = await http(port, "GET", f"/{token}/outcomes/0")
        assert (status, json.loads(body)) == (200, {"outcomes": [], "begun": 0, "done": False})

    asyncio.run(with_generator(test))


def test_the_pod_has_no_rights_and_its_token_is_not_guessed() -> None:
    pod = generator_pod("image", Load(target=("10.0.0.1", 80), rates={"fresh": 1.0}), "t")
    spec = pod["spec"]
    assert spec["automountServiceAccountToken"] is False and spec["securityContext"]["runAsNonRoot"] is True
    (container,) = spec["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]} and pod["metadata"]["name"] == NAME
    given = json.loads(container["env"][0]["value"])
    assert Load(**{**given, "target": tuple(given["target"])}).rates == {"fresh": 1.0}
    assert len({new_token() for _ in range(20)}) == 20 and min(len(new_token()) for _ in range(20)) >= 32
