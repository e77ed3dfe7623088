"""What one user may hold open at once."""

import asyncio

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.apiserver import user_limits as shares
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.http import is_stream
from lastcall.kube.apiserver.requestinfo import request_info
from lastcall.kube.apiserver.user_limits import (
    CONNECTION_BYTES,
    MOST_CONNECTIONS,
    MOST_OF_ALL_BYTES,
    MOST_STREAMS,
    READ_AHEAD_BYTES,
    SMALL_BYTES,
    STREAM_BYTES,
    WAIT_SECONDS,
    Room,
    Share,
    Shares,
    flow_of,
)
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

ANN = UserInfo("ann", ("system:authenticated",))


@pytest.mark.parametrize(
    ("user", "flow"),
    [
        (ANN, "ann"),
        (UserInfo("system:serviceaccount:shop:a"), "system:serviceaccount:shop"),
        (UserInfo("system:serviceaccount:shop:b"), "system:serviceaccount:shop"),
        (UserInfo("system:node:n1", ("system:nodes",)), None),
        (UserInfo("system:node:n1"), "system:node:n1"),
        (UserInfo("kube-admin", ("system:masters",)), None),
        (UserInfo("system:kube-scheduler"), None),
    ],
)
def test_whose_requests_count_together(user: UserInfo, flow: str | None) -> None:
    assert flow_of(user) == flow


def test_one_watch_too_many_is_refused_with_words_until_another_one_ends() -> None:
    share = Share("ann")
    open_ = [share.stream() for _ in range(MOST_STREAMS)]
    for each in open_:
        each.__enter__()
    with pytest.raises(StatusError) as refused, share.stream():
        pass
    assert refused.value.code == 429 and refused.value.reason == "TooManyRequests"
    assert refused.value.headers["Retry-After"] == "1"
    assert "ann has 300 open watches" in refused.value.message
    open_[0].__exit__(None, None, None)
    with share.stream():
        pass


def test_one_connection_too_many_is_refused_until_another_one_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "MOST_CONNECTIONS", 2)
    every = Shares()
    ann, bob = every.of(ANN), every.of(UserInfo("bob"))
    assert ann is not None and bob is not None
    for connection in ("a", "b", "a"):
        every.own(connection, ann)
    with pytest.raises(StatusError, match="ann has 2 connections"):
        every.own("c", ann)
    every.own("c", bob)
    every.own("a", bob)  # a proxy may send requests of several users on one connection
    every.own("d", ann)
    every.lost("d")
    every.lost("unknown")
    every.own("e", ann)
    assert (ann.connections, bob.connections) == (2, 2)


def held(share: Share) -> int:
    return share.memory.total - share.memory.left


def test_connections_streams_and_bodies_of_a_user_take_from_one_budget() -> None:
    async def main(world: World) -> None:
        every = Shares()
        share = every.of(ANN)
        assert share is not None
        every.own("a", share)
        with share.stream():
            async with share.request(1 << 20):
                assert held(share) == CONNECTION_BYTES + STREAM_BYTES + READ_AHEAD_BYTES + (3 << 20)
            async with share.request(SMALL_BYTES):
                assert held(share) == CONNECTION_BYTES + STREAM_BYTES
        every.lost("a")
        assert held(share) == 0

    run_virtual(main)


def test_a_user_who_holds_the_whole_budget_gets_no_more_of_anything() -> None:
    async def main(world: World) -> None:
        every = Shares()
        share = every.of(ANN)
        assert share is not None
        share.memory.take(share.memory.left - CONNECTION_BYTES)
        every.own("a", share)
        with pytest.raises(StatusError, match="ann has 48 MiB of connections, streams") as refused:
            every.own("b", share)
        assert refused.value.headers["Connection"] == "close"
        with pytest.raises(StatusError, match="ann has 48 MiB"), share.stream():
            pass
        with pytest.raises(StatusError, match="ann has 48 MiB"):
            async with share.request(1 << 20):
                pass
        assert (share.connections, share.streams) == (1, 0)
        every.lost("a")
        every.own("b", share)

    run_virtual(main)


def test_large_bodies_wait_and_leave_room_for_connections() -> None:
    async def main(world: World) -> None:
        every = Shares()
        share = every.of(ANN)
        assert share is not None
        async with share.bytes.hold(share.bytes.total):
            for number in range(MOST_CONNECTIONS):
                every.own(number, share)
            began = world.clock.monotonic_ns()
            with pytest.raises(StatusError, match="MiB of bodies and answers"):
                async with share.request(1 << 20):
                    pass
            assert world.clock.monotonic_ns() - began >= WAIT_SECONDS * 1e9
        async with share.request(1 << 20):
            pass

    run_virtual(main)


def test_all_users_together_have_a_budget_too() -> None:
    async def main(world: World) -> None:
        every = Shares()
        users = [every.of(UserInfo(f"user-{number}")) for number in range(6)]
        for share in users[:5]:
            assert share is not None
            share.memory.take(MOST_OF_ALL_BYTES // 5)
        refused = users[-1]
        assert refused is not None
        with pytest.raises(StatusError, match="all users have 128 MiB"), refused.stream():
            pass
        assert held(refused) == 0
        with pytest.raises(StatusError, match="all users have"):
            async with refused.bytes.hold(32 << 20):
                pass
        assert held(refused) == 0 and refused.bytes.left == refused.bytes.total

    run_virtual(main)


def test_shares_that_nobody_uses_are_forgotten() -> None:
    every = Shares()
    for number in range(100):
        every.of(UserInfo(f"user-{number}"))
    assert len(every._shares) <= 1


async def test_who_finds_too_little_room_waits_in_order() -> None:
    room, log = Room(10), []

    async def use(name: str, size: int) -> None:
        async with room.hold(size):
            log.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(use("a", 6), use("b", 6), use("more than all", 50), use("c", 1), use("d", 1))
    assert log == ["a", "b", "more than all", "c", "d"]
    assert room.left == room.total


async def test_who_gives_up_waiting_does_not_keep_the_others_waiting() -> None:
    room = Room(10)
    async with room.hold(5):
        large = asyncio.ensure_future(room.hold(10).__aenter__())
        small = asyncio.ensure_future(room.hold(5).__aenter__())
        await asyncio.sleep(0)
        assert not small.done()
        large.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert small.done() and room.left == 0


async def test_who_is_cancelled_just_when_it_is_its_turn_gives_the_room_back() -> None:
    room = Room(10)
    held = room.hold(10)
    await held.__aenter__()
    waiting = asyncio.ensure_future(room.hold(10).__aenter__())
    await asyncio.sleep(0)
    await held.__aexit__(None, None, None)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert room.left == 10


def test_who_waits_too_long_gets_a_429_and_leaves_its_place() -> None:
    async def main(world: World) -> None:
        room = Share("ann").bytes
        async with room.hold(room.total):
            with pytest.raises(StatusError) as refused:
                async with room.hold(1):
                    pass
            assert refused.value.code == 429 and "ann has 32 MiB of bodies" in refused.value.message
            assert world.clock.monotonic_ns() >= WAIT_SECONDS * 1e9
        async with room.hold(room.total):
            pass

    run_virtual(main)


@pytest.mark.parametrize(
    ("method", "path", "query", "stream"),
    [
        ("GET", "/api/v1/pods", {"watch": "1"}, True),
        ("GET", "/api/v1/watch/pods", {}, True),
        ("GET", "/api/v1/namespaces/a/pods/b/log", {}, True),
        ("POST", "/api/v1/namespaces/a/pods/b/exec", {}, True),
        ("GET", "/api/v1/namespaces/a/services/b/proxy/x", {}, True),
        ("GET", "/api/v1/pods", {}, False),
        ("POST", "/api/v1/namespaces/a/pods", {}, False),
    ],
)
def test_which_requests_are_streams(method: str, path: str, query: dict[str, str], stream: bool) -> None:
    assert is_stream(request_info(method, path, query)) is stream
