"""Large answers go out in pieces, and who takes nothing of them is disconnected."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from lastcall.kube.apiserver.answers.sending import LOOK_SECONDS, PIECE_BYTES, STALL_SECONDS, Sending, Sendings
from lastcall.world.aiohttp_inside import server as web
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


class Transport:
    def __init__(self, waiting: int = 0) -> None:
        self.waiting = waiting
        self.aborted = False

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def get_extra_info(self, name: str) -> None:
        return None

    def abort(self) -> None:
        self.aborted = True


class Request:
    method = "GET"

    def __init__(self, transport: Transport) -> None:
        self.transport = transport


class Written:
    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    async def prepare(self, request: object) -> None:
        pass

    async def write(self, data: bytes) -> None:
        self.pieces.append(data)


@pytest.mark.parametrize("size", [1, PIECE_BYTES, PIECE_BYTES + 1, 10 * PIECE_BYTES])
async def test_nothing_larger_than_a_piece_is_written_at_once(size: int) -> None:
    response, data = Written(), bytes(range(256)) * (size // 256 + 1)
    sending = Sending(Transport())
    await sending.write(response, data[:size])  # type: ignore[arg-type]
    assert b"".join(response.pieces) == data[:size]
    assert max(map(len, response.pieces)) <= PIECE_BYTES
    assert sending.pieces == len(response.pieces)


async def test_a_writer_waits_while_more_than_a_little_waits_for_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    transport, waits = Transport(waiting=1 << 20), []

    async def drain(response: object) -> None:
        waits.append(response)

    monkeypatch.setattr(web, "drain", drain)
    response = Written()
    await Sending(transport).write(response, bytes(3 * PIECE_BYTES))  # type: ignore[arg-type]
    assert waits == [response] * 3


def test_a_client_is_stalled_when_it_takes_nothing_for_half_a_minute() -> None:
    sending = Sending(Transport())
    assert not sending.is_stalled(100, 0.0)
    assert not sending.is_stalled(100, STALL_SECONDS - 1)
    assert sending.is_stalled(100, STALL_SECONDS)


@pytest.mark.parametrize(("waiting", "pieces"), [(99, 0), (100, 1), (0, 0)])
def test_a_client_that_takes_a_little_or_has_nothing_to_take_is_not_stalled(waiting: int, pieces: int) -> None:
    sending = Sending(Transport())
    sending.is_stalled(100, 0.0)
    sending.pieces += pieces
    assert not sending.is_stalled(waiting, STALL_SECONDS)
    assert not sending.is_stalled(waiting, 2 * STALL_SECONDS - 1)


def test_a_stalled_client_is_disconnected_and_no_other() -> None:
    stalled, idle, ended = Transport(100), Transport(0), Transport(100)

    async def main(world: World) -> None:
        sendings = Sendings(world.clock)
        with sendings.begun(Request(ended)):  # type: ignore[arg-type]
            pass
        with sendings.begun(Request(stalled)), sendings.begun(Request(idle)):  # type: ignore[arg-type]
            task = asyncio.ensure_future(sendings.disconnect_stalled())
            await world.clock.sleep(STALL_SECONDS)
            assert not stalled.aborted
            await world.clock.sleep(2 * LOOK_SECONDS)
            task.cancel()

    run_virtual(main)
    assert (stalled.aborted, idle.aborted, ended.aborted) == (True, False, False)


async def test_a_small_answer_is_left_to_the_server() -> None:
    answer = web.Response(body=b"x" * PIECE_BYTES)
    assert await Sendings(World().clock).in_pieces(Request(Transport()), answer) is answer  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["made at once", "made as they are sent"])
async def test_an_answer_whose_later_pieces_cannot_be_made_ends_with_its_connection(kind: str) -> None:
    def at_once() -> Iterator[bytes]:
        yield b"begun"
        raise ValueError("no more")

    async def in_time() -> AsyncIterator[bytes]:
        yield b"begun"
        raise ValueError("no more")

    transport, response = Transport(), Written()
    pieces = at_once() if kind == "made at once" else in_time()
    with pytest.raises(ValueError, match="no more"):
        await Sendings(World().clock).send(Request(transport), response, pieces)  # type: ignore[arg-type]
    assert response.pieces == [b"begun"] and transport.aborted
