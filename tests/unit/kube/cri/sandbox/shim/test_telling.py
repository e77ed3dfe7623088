"""What the shim reports of a container that ended, and in which order."""

import os
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lastcall.kube.cri.sandbox.shim import messages
from lastcall.kube.cri.sandbox.shim.namespaces import Sandbox
from lastcall.kube.cri.sandbox.shim.process import Exit
from lastcall.kube.cri.sandbox.shim.telling import Announcer
from lastcall.world.messages import Message


def reports_of_an_end(sandbox: Sandbox) -> list[type[Message]]:
    reported: list[Message] = []
    process = SimpleNamespace(exit=Exit(137, "SIGKILL"), pid=7, start_time=1)
    container: Any = SimpleNamespace(
        id="app", sandbox=sandbox, process=process, started_at=1, finished_at=2, failure="", stop_signal_sent=False,
        out_of_memory=False, info={}, running=False,
    )  # fmt: skip
    Announcer(reported.append, lambda of: [], cast(Any, None)).exited(container)
    return [type(each) for each in reported]


@pytest.mark.loopback
def test_a_sandbox_whose_first_process_ends_is_reported_before_the_containers_that_it_takes_along() -> None:
    sandbox = Sandbox("pod", {})
    assert reports_of_an_end(sandbox) == [messages.Exited]
    begin, waits = os.pipe()
    sandbox.pause_pid = os.fork()
    if sandbox.pause_pid == 0:
        os.close(waits)
        os.read(begin, 1)
        os._exit(0)
    sandbox.pause_pidfd = os.pidfd_open(sandbox.pause_pid)
    assert reports_of_an_end(sandbox) == [messages.Exited]
    os.close(waits)
    os.waitid(os.P_PID, sandbox.pause_pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has waited for it
    assert reports_of_an_end(sandbox) == [messages.SandboxEnded, messages.Exited]
    os.waitpid(sandbox.pause_pid, 0)
    os.close(sandbox.pause_pidfd)
    os.close(begin)
