"""A look at a container's end that fails: its programs decide what it meets, and the signal is sent all the same."""

import signal
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fake_api import ListRecorder

from lastcall.kube.cri.sandbox.cgroups.others import NoCgroups, OtherHierarchies
from lastcall.kube.cri.sandbox.shim import dispositions, procfs
from lastcall.kube.cri.sandbox.shim.containers import Container
from lastcall.kube.cri.sandbox.shim.witness import Witness
from lastcall.records import kinds
from lastcall.world import crash_guard
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
