"""A command and its page's process: what each says is heard, and neither waits for the other."""

import asyncio
import signal
import socket

import pytest
from fake_api import FakeAPI
from live_page import renew
from waiting import until

from lastcall.cli.trace.page import TracePage
from lastcall.errors import WorldError
from lastcall.records.record import Record
from lastcall.ui.asked import AskedPage
from lastcall.ui.command_page import process
from lastcall.ui.command_page import server as serving
from lastcall.ui.command_page.link import PageLink
from lastcall.ui.command_page.messages import Begin, Failed
from lastcall.world import wire
from lastcall.world.clock import RealClock
from lastcall.world.world import World

pytestmark = pytest.mark.loopback


def page(said: list[str], port: int = 0) -> PageLink:
    return PageLink(AskedPage(port), "lastcall run", said.append)


async def test_a_link_is_told_and_one_for_another_browser_when_it_was_used() -> None:
    said: list[str] = []
    link = page(said)
    try:
        with link.turning():
            first = await link.linked(RealClock(), 60)
            assert said == [f"page, for one browser: {first}"]
            await asyncio.to_thread(renew, first)
            await until(lambda: len(said) == 2)
            assert said[1].startswith("for another browser: ") and said[1] != said[0]
    finally:
        link.close()


async def test_a_port_that_is_taken_is_told_and_nobody_waits_for_a_browser() -> None:
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        link = page(said, port)
        try:
            with link.turning():
                async with asyncio.timeout(60):
                    await link.somebody_looks(RealClock(), "the Pods end")
            assert said[0].startswith(f"there is no page: port {port} of 127.0.0.1")
        finally:
            link.close()


async def test_a_page_that_is_killed_or_stopped_keeps_nobody_waiting() -> None:
    said: list[str] = []
    link = page(said)
    try:
        with link.turning():
            await link.linked(RealClock(), 60)
            link.process.send_signal(signal.SIGSTOP)
            line = "x" * 100_000
            for number in range(1000):  # 100 MB: more than is kept
                link.record(Record(f"a{number}", 1, 1, "runtime", "Output", "u", facts={"text": line}))
                link.turn()
            assert said[-1] == "the page is gone: its process takes nothing"
            link.process.kill()
            async with asyncio.timeout(10):
                await link.somebody_looks(RealClock(), "the Pods end")
    finally:
        link.close()
    assert link.process.poll() is not None


async def test_a_page_ends_with_its_command() -> None:
    said: list[str] = []
    link = page(said)
    with link.turning():
        assert await link.linked(RealClock(), 60)
    link.close()
    assert link.process.returncode == 0


async def test_why_there_is_no_page_is_heard_when_its_process_ended_before_it_was_listened_to() -> None:
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        link = page(said, port)
        try:
            await asyncio.to_thread(link.process.wait, 60)
            link.record(Record("a", 1, 1, "runtime", "Output", "u", facts={"text": "late"}))
            link.turn()
            (line,) = said
            assert line.startswith(f"there is no page: port {port} of 127.0.0.1")
        finally:
            link.close()


def _full(link: str, folder: object) -> bool:
    raise OSError(28, "No space left on device")


async def test_a_page_that_fails_of_something_else_does_not_blame_its_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_open", _full)
    ours, theirs = socket.socketpair()
    with ours:
        ours.sendall(wire.encode(Begin(title="t", port=0, opens=True).to_wire()) + b"\n")
        await process._serve(theirs)
        said = [wire.decode(line) for line in ours.recv(1 << 16).splitlines()]
    (failed,) = [each for each in said if each["verb"] == Failed.verb]
    assert failed["why"] == "[Errno 28] No space left on device"


async def test_neither_does_the_page_of_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_open", _full)
    world, facts = World(), {"name": "c", "server": "", "kubernetesVersion": "1.36"}

    def trace(asked: AskedPage) -> TracePage:
        return TracePage(asked, facts, FakeAPI(world), world, lambda uid: None, lambda text: None)

    with pytest.raises(WorldError, match=r"^--ui: \[Errno 28\] No space left on device$"):
        await trace(AskedPage(opens=True)).run()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(WorldError, match=f"^--ui: port {port} of 127.0.0.1: "):
            await trace(AskedPage(port)).run()
