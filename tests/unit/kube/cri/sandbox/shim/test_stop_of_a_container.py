"""A look at a container's end that fails: its programs decide what it meets, and the signal is sent all the same."""

import signal
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fake_api import ListRecorder

from lastcall.kube.cri.sandbox.cgroups.others import NoCgroups, OtherHierarchies
from lastcall.kube.cri.sandbox.shim import dispositions, procfs
from lastcall.kube.cri.sandbox.shim.containers import Container
from lastcall.kube.cri.sandbox.shim.process import Exit
from lastcall.kube.cri.sandbox.shim.witness import Witness
from lastcall.records import kinds
from lastcall.world import crash_guard, linux
from lastcall.world.world import World


class _Process:
    """A program that runs, and notes which signals it gets."""

    pid, executed, exit = 7, True, None

    def __init__(self) -> None:
        self.got: list[int] = []

    def signal(self, number: int) -> bool:
        self.got.append(number)
        return True


@pytest.mark.parametrize("fails", ["before_signal", "after_signal", "before_kill", "stop_signal_pending"])
def test_no_look_that_fails_keeps_a_signal_from_the_container(monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    def look(*_: Any) -> None:
        raise RuntimeError("what nobody expected")

    for name in ("before_signal", "after_signal", "before_kill", "stop_signal_pending"):
        monkeypatch.setattr(Witness, name, look if name == fails else lambda *_: None)
    monkeypatch.setattr(procfs, "exiting", lambda pid: False)
    monkeypatch.setattr(dispositions, "signal_state", lambda pid, number: None)
    recorder, process = ListRecorder(World()), _Process()
    cgroups = NoCgroups("none here", OtherHierarchies({}))
    context: Any = SimpleNamespace(recorder=recorder, cgroups=cgroups, loop=None, maps=([], []))
    sandbox: Any = SimpleNamespace(id="s", users=None, namespaces={})
    container = Container(
        context, {"id": "c1", "podUid": "u", "name": "app", "pid": "CONTAINER"}, sandbox, listener=cast(Any, None)
    )
    container.process = cast(Any, process)
    with crash_guard.installed():
        assert container.send_signal(signal.SIGTERM, "StopContainer")
        assert container.send_signal(signal.SIGKILL, "grace over")
    assert process.got == [signal.SIGTERM, signal.SIGKILL]
    assert [each["facts"]["signal"] for each in recorder.records if each["kind"] == kinds.SIGNAL_SENT] == [
        "SIGTERM",
        "SIGKILL",
    ]


RESETS = {"sent": 1, "aborted": 0, "attemptsFailed": 1, "loopbackPackets": 2}


@pytest.mark.parametrize(
    ("code", "network", "counts", "asked_to_stop", "recorded"),
    [
        (1, True, RESETS, False, True),
        (1, True, None, False, False),  # nobody can read them
        (0, True, RESETS, False, False),
        (1, True, RESETS, True, False),
        (1, False, RESETS, False, False),  # in the node's network
    ],
)
def test_a_crash_has_the_resets_of_its_pods_network(
    code: int, network: bool, counts: dict[str, int] | None, asked_to_stop: bool, recorded: bool
) -> None:
    recorder, counter = ListRecorder(World()), SimpleNamespace(since_last=lambda _: counts)
    own = SimpleNamespace(fds={linux.CLONE_NEWNET: -1})
    cgroups = NoCgroups("none here", OtherHierarchies({}))
    context: Any = SimpleNamespace(recorder=recorder, cgroups=cgroups, loop=None, maps=([], []), own=own)
    namespaces = {linux.CLONE_NEWNET: -1} if network else {}
    sandbox: Any = SimpleNamespace(id="s", users=None, namespaces=namespaces, resets=counter)
    listener: Any = SimpleNamespace(beside=lambda _: [])
    container = Container(context, {"id": "c1", "podUid": "u", "name": "app", "pid": "CONTAINER"}, sandbox, listener)
    container.stop_signal_sent = asked_to_stop
    process: Any = SimpleNamespace(pid=7, not_executed=None)
    container._note_exit(process, Exit(code, "", 0))
    (facts,) = [each["facts"] for each in recorder.records if each["kind"] == kinds.PROCESS_EXITED]
    assert ("podResets" in facts) is recorded
