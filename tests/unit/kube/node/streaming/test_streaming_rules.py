"""The rules of exec, attach and port-forward without a connection: options, messages, sizes, idleness, ports."""

import asyncio
import base64
from typing import Any

import pytest

from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.node.streaming import port_forward
from lastcall.kube.node.streaming.port_forward import forward, parse_port
from lastcall.kube.node.streaming.remote_command import (
    StreamOptions,
    encode_status,
    exit_status,
    first_common,
    internal_error_status,
    parse_size,
    parse_stream_options,
    watch_idleness,
)
from lastcall.kube.node.streaming.websocket_client import Inbox, Sizes, pack, unpack
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

# -- exec and attach ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ({"input": "1"}, StreamOptions(stdin=True)),
        ({"output": "1"}, StreamOptions(stdout=True)),
        ({"error": "1"}, StreamOptions(stderr=True)),
        ({"output": "1", "error": "1", "tty": "1"}, StreamOptions(stdout=True, tty=True)),
        ({"input": "1", "output": "true", "error": "0"}, StreamOptions(stdin=True)),
        ({}, None),
        ({"tty": "1"}, None),
        ({"error": "1", "tty": "1"}, None),
    ],
)
def test_a_client_wants_at_least_one_stream_and_a_terminal_has_one_output(
    query: dict[str, str], options: StreamOptions | None
) -> None:
    """remotecommand/httpstream.go:NewOptions."""
    if options is not None:
        assert parse_stream_options(query) == options
        return
    with pytest.raises(ValueError, match=r"^you must specify at least 1 of stdin, stdout, stderr$"):
        parse_stream_options(query)


def test_outputs_are_named_in_order() -> None:
    assert StreamOptions(stdin=True).outputs == ()
    assert StreamOptions(stdout=True, stderr=True).outputs == ("stdout", "stderr")


def test_the_status_of_an_exit_code() -> None:
    assert exit_status(0) == {"metadata": {}, "status": "Success"}
    failed = exit_status(3)
    assert (failed["status"], failed["reason"]) == ("Failure", "NonZeroExitCode")
    assert failed["details"] == {"causes": [{"reason": "ExitCode", "message": "3"}]}
    text = "command terminated with non-zero exit code: command terminated with exit code 3"
    assert failed["message"] == text
    assert encode_status(failed, as_json=False) == text.encode()
    assert encode_status(exit_status(0), as_json=False) == b""
    assert encode_status(exit_status(0), as_json=True) == b'{"metadata":{},"status":"Success"}'


def test_the_status_of_a_runtime_s_error() -> None:
    status = internal_error_status("no")
    assert (status["code"], status["reason"], status["message"]) == (
        500,
        "InternalError",
        "Internal error occurred: no",
    )
    assert status["details"] == {"causes": [{"message": "no"}]}


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (b'{"Width": 80, "Height": 24}', (80, 24)),
        (b'{"Width": 0, "Height": 0}', (0, 0)),
        (b'{"Width": 65535, "Height": 65535}', (65535, 65535)),
        (b'{"Width": 65536, "Height": 1}', None),
        (b'{"Width": 1, "Height": 65536}', None),
        (b'{"Width": -1, "Height": 1}', None),
        (b'{"Width": 1, "Height": -1}', None),
        (b'{"Width": 1}', None),
        (b'{"Width": "x", "Height": 1}', None),
        (b"[]", None),
        (b"no", None),
    ],
)
def test_a_size_is_what_a_terminal_can_have(data: bytes, size: tuple[int, int] | None) -> None:
    assert parse_size(data) == size


@pytest.mark.parametrize(
    ("asked", "served", "common"),
    [(["a", "b"], ["b", "a"], "a"), (["x", "b"], ["a", "b"], "b"), (["x"], ["a"], None), ([], ["a"], None)],
)
def test_the_client_s_first_choice_that_is_served(asked: list[str], served: list[str], common: str | None) -> None:
    assert first_common(asked, served) == common


@pytest.mark.parametrize(
    ("message", "as_base64", "frame"),
    [
        (b"", False, None),
        (b"", True, None),
        (b"\x00", False, (0, b"")),
        (b"\xff\x00", False, (255, b"\x00")),
        (b"1" + base64.b64encode(b"x\xff"), True, (1, b"x\xff")),
        (b"3", True, (3, b"")),
        (b"1no!", True, None),
    ],
)
def test_a_message_begins_with_its_channel(message: bytes, as_base64: bool, frame: tuple[int, bytes] | None) -> None:
    assert unpack(message, as_base64=as_base64) == frame
    if frame is not None:
        assert pack(*frame, as_base64=as_base64) == message


def test_input_that_nobody_reads_any_more_is_thrown_away() -> None:
    async def main(world: World) -> list[bytes]:
        inbox = Inbox()
        await inbox.put(b"a")
        await inbox.put(b"")
        await inbox.put(b"after the end")
        seen = [await inbox.get(), await inbox.get()]
        other = Inbox()
        async with Tasks() as tasks:
            await other.put(b"a")
            await other.put(b"b")
            waiting = tasks.spawn(other.put(b"c"), name="put")
            await world.clock.sleep(1)
            assert not waiting.done(), "whoever delivers waits"
            other.discard()
            await waiting
        await other.put(b"d")
        return seen

    assert run_virtual(main) == [b"a", b""]


def test_of_several_sizes_the_newest_counts_once() -> None:
    async def main(world: World) -> None:
        sizes = Sizes()
        sizes.put(b"no size")
        assert not sizes.changed
        sizes.put(b'{"Width": 1, "Height": 2}')
        sizes.put(b'{"Width": 3, "Height": 4}')
        assert sizes.changed
        assert await sizes.get() == (3, 4)
        assert not sizes.changed

    run_virtual(main)


@pytest.mark.parametrize(("changes", "least", "most"), [([], 80, 80), ([15], 90, 100), ([15, 70, 140], 210, 220)])
def test_a_session_is_over_when_nothing_was_said_for_so_long(changes: list[float], least: float, most: float) -> None:
    async def main(world: World) -> float:
        began, said = world.clock.monotonic_ns(), [0]

        async def speak() -> None:
            for at in changes:
                await world.clock.sleep(at - (world.clock.monotonic_ns() - began) / 1e9)
                said[0] += 1

        async with Tasks() as tasks:
            tasks.spawn(speak(), name="speak")
            with pytest.raises(ConnectionResetError, match=r"^nothing was said for 80s$"):
                await watch_idleness(lambda: said[0], world.clock, 80.0)
        return (world.clock.monotonic_ns() - began) / 1e9

    assert least <= run_virtual(main) <= most


# -- port-forward ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("port", [1, 80, 65535])
def test_ports_are_numbers_of_five_digits_at_most(port: int) -> None:
    assert parse_port(str(port)) == port


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0", 'port "0" must be > 0'),
        ("65536", 'unable to parse "65536" as a port: strconv.ParseUint: parsing "65536": value out of range'),
        ("100000", 'unable to parse "100000" as a port: strconv.ParseUint: parsing "100000": value out of range'),
        ("-1", 'unable to parse "-1" as a port: strconv.ParseUint: parsing "-1": invalid syntax'),
        ("http", 'unable to parse "http" as a port: strconv.ParseUint: parsing "http": invalid syntax'),
        ("٣", 'unable to parse "٣" as a port: strconv.ParseUint: parsing "٣": invalid syntax'),
        ("", 'unable to parse "" as a port: strconv.ParseUint: parsing "": invalid syntax'),
    ],
)
def test_a_port_that_is_none_is_refused_in_go_s_words(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="port") as refused:
        parse_port(text)
    assert str(refused.value) == why


class Client:
    """What the client sends, each piece at its time (seconds), and what it gets."""

    def __init__(self, world: World, *pieces: tuple[float, bytes], reset: bool = False, deaf: bool = False) -> None:
        self._world, self._pieces = world, list(pieces)
        self.was_reset = False
        self._resets, self._deaf = reset, deaf
        self.got = b""
        self.ended = False

    async def read(self) -> bytes:
        if not self._pieces:
            if not self._resets:
                await asyncio.Event().wait()  # it says nothing more
            self.was_reset = True
            return b""
        pause, data = self._pieces.pop(0)
        await self._world.clock.sleep(pause)
        return data

    async def write(self, data: bytes) -> None:
        if self._deaf:
            raise ConnectionResetError
        self.got += data

    async def close_write(self) -> None:
        self.ended = True


class Port:
    """The Pod's end: `answers` (seconds, bytes), b"" ends it; `full` takes nothing any more."""

    def __init__(self, world: World, *answers: tuple[float, bytes], full: bool = False) -> None:
        self._world, self._answers, self._full = world, list(answers), full
        self.got = b""
        self.ended = self.closed = False

    async def read(self) -> bytes:
        if not self._answers:
            await asyncio.Event().wait()
        pause, data = self._answers.pop(0)
        await self._world.clock.sleep(pause)
        return data

    async def write(self, data: bytes) -> None:
        if self._full:
            raise BrokenPipeError
        self.got += data

    async def close_write(self) -> None:
        self.ended = True

    async def close(self) -> None:
        self.closed = True


def forwarded(client: Any, port: Any) -> tuple[Client, Port, str, float]:
    """Join the two, which are made by functions of the world; answer both, the error, and the seconds that it took."""

    async def main(world: World) -> tuple[Client, Port, str, float]:
        one, other, began = client(world), port(world), world.clock.monotonic_ns()

        async def connect(number: int) -> Port:
            assert number == 80
            return other

        error = await forward(one, connect, 80)  # type: ignore[arg-type]
        assert other.closed
        return one, other, error, round((world.clock.monotonic_ns() - began) / 1e9, 3)

    return run_virtual(main)


def test_both_directions_are_carried_and_the_client_s_last_words_too() -> None:
    client, port, error, seconds = forwarded(
        lambda world: Client(world, (0, b"ask"), (2.5, b"late"), (0, b"")),
        lambda world: Port(world, (1, b"answer"), (1, b"")),
    )
    assert (client.got, client.ended, port.got, port.ended, error) == (b"answer", True, b"asklate", True, "")
    assert seconds == 2.5


def test_a_client_that_says_nothing_more_is_left_a_second_after_the_pod() -> None:
    client, port, error, seconds = forwarded(
        lambda world: Client(world, (0, b"ask")), lambda world: Port(world, (1, b"answer"), (1, b""))
    )
    assert (client.got, client.ended, port.ended, error) == (b"answer", True, False, "")
    assert seconds == 2 + port_forward.LAST_WORDS


def test_what_the_pod_still_says_arrives_although_it_takes_no_more() -> None:
    client, _, error, _ = forwarded(
        lambda world: Client(world, (0, b"ask"), (0, b"")),
        lambda world: Port(world, (1, b"answer"), (0, b""), full=True),
    )
    assert (client.got, client.ended, error) == (b"answer", True, "")


@pytest.mark.parametrize("how", [{"reset": True}, {"deaf": True}])
def test_a_client_that_is_gone_ends_both_directions_without_a_word(how: dict[str, bool]) -> None:
    client, port, error, seconds = forwarded(
        lambda world: Client(world, (0, b"ask"), **how),
        lambda world: Port(world, (1, b"answer"), (5, b"more"), (9, b"")),
    )
    assert (client.ended, port.ended, error) == (False, False, "")
    assert seconds <= 1


def test_a_port_that_cannot_be_reached_is_the_runtime_s_error() -> None:
    async def main(world: World) -> str:
        async def connect(number: int) -> Any:
            raise RuntimeServiceError("refused")

        return await forward(Client(world), connect, 80)  # type: ignore[arg-type]

    assert run_virtual(main) == "refused"
