"""Signals of preStop hooks that the kernel refused (kill(2): EPERM): the other user, and who may send them."""

from typing import Any

import pytest

from lastcall.endings.story import Finding
from lastcall.records import kinds as k

BUSYBOX = "sh: can't kill pid 1: Operation not permitted\n"


def hooked(
    tape: Any,
    stderr: str = BUSYBOX,
    *,
    command: str = "sh -c kill -TERM 1",
    outcome: str = "failed",
    user: int | None = 101,
    own: int | None = None,
    number: int = 1,
    message: str = "",
    code: int = 1,
) -> None:
    tape.started()
    if own is not None:
        tape.records[-1].facts["uid"] = own
    tape.accepted(10)
    tape.observed(10)
    told = {"message": message} if message else {"stdout": "", "stderr": stderr}
    tape.hook(0.01, 0.05, outcome, command=command, exitCode=code if outcome == "failed" else 0, **told)
    tape.stop(0.1, 10)
    for record in tape.records:
        if record.kind == k.PROCESS_SIGNAL_STATE:
            record.facts.update({"containerPid": number} | ({} if user is None else {"uid": user}))


def found(tape: Any, id_: str = "hookSignalRefused") -> Finding | None:
    return next((each for each in tape.ending().findings if each.id == id_), None)


def refused(tape: Any, *args: Any, **facts: Any) -> Finding:
    hooked(tape, *args, **facts)
    tape.exit(0.2, 0)
    finding = found(tape)
    assert finding is not None
    return finding


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (BUSYBOX, "sh -c kill -TERM 1"),
        ("sh: 1: kill: Operation not permitted\n\n", "sh -c kill -TERM 1"),
        ("bash: line 1: kill: (1) - Operation not permitted\n", "bash -c kill 1"),
        ("kill: sending signal to 1 failed: Operation not permitted\n", "/usr/bin/kill 1"),
        ("kill: (1): Operation not permitted\n", "/bin/kill 1"),
        ("pkill: killing pid 1 failed: Operation not permitted\n", "pkill nginx"),
        ("nginx(1): Operation not permitted\nnginx: no process found\n", "killall nginx"),
        ("nginx: [alert] kill(1, 3) failed (1: Operation not permitted)\n", "nginx -s quit"),
        ("PermissionError: [Errno 1] Operation not permitted\n", "python3 -c import os; os.kill(1, 15)"),
        ("Error: kill EPERM\n    at process.kill\n", "node -e process.kill(1)"),
    ],
)
def test_a_refused_signal_is_known_by_what_each_program_prints(new_tape: Any, line: str, command: str) -> None:
    finding = refused(new_tape(), line, command=command)
    assert finding.severity == "problem" and finding.container == "app"
    assert f"`{line.splitlines()[0]}`" in finding.text
    assert "PID 1 runs as user 101, and the hook as another" in finding.text


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("rm: can't remove '/run/x': Operation not permitted\n", "sh -c rm /run/x; kill 1"),
        ("sh: can't kill pid 7: No such process\n", "sh -c kill 7"),
        ("chown: /data: Operation not permitted\n", "chown app /data"),
        ("mount: Operation not permitted\n", "killall nginx"),
        ("", "kill -TERM 1"),
        (BUSYBOX, "sh -c while kill -0 1; do sleep 1; done"),
    ],
)
def test_another_failure_of_a_hook_is_no_refused_signal(new_tape: Any, line: str, command: str) -> None:
    tape = new_tape()
    hooked(tape, line, command=command)
    tape.exit(0.2, 0)
    assert found(tape) is None and found(tape, "hookFailed") is not None


def test_a_refused_signal_takes_the_place_of_the_failed_hook_unless_something_else_failed_after_it(
    new_tape: Any,
) -> None:
    tape = new_tape()
    assert "The stop goes on without the hook" in refused(tape).text
    assert found(tape, "hookFailed") is None
    tape = new_tape()
    refused(tape, f"{BUSYBOX}sh: curl: not found\n", command="sh -c kill 1; curl localhost", code=127)
    assert found(tape, "hookFailed") is not None


@pytest.mark.parametrize("outcome", ["succeeded", "outlived"])
def test_a_refused_signal_is_named_where_the_hook_itself_did_not_fail(new_tape: Any, outcome: str) -> None:
    finding = refused(new_tape(), command="sh -c kill -TERM 1; sleep 1", outcome=outcome)
    assert "PID 1 runs as user 101" in finding.text and "The stop goes on" not in finding.text


def test_the_message_of_an_older_kubelet_is_enough(new_tape: Any) -> None:
    message = (
        'Exec lifecycle hook ([kill 1]) for Container "app" in Pod "web" failed - error: command \'kill 1\' exited '
        'with 1: kill: (1): Operation not permitted\n, message: "kill: (1): Operation not permitted\\n"'
    )
    finding = refused(new_tape(), command="kill 1", message=message, user=None)
    assert "a process may signal those of its own user only" in finding.text


@pytest.mark.parametrize(
    ("user", "own", "says", "keeps"),
    [
        (101, None, "PID 1 runs as user 101, and the hook as another", "runAsUser: 101"),
        (101, 1000, "PID 1 runs as user 101, and the hook as user 1000, with which", "runAsUser: 101"),
        (
            101,
            0,
            "and the hook as user 0, with which the container started, without the capability KILL",
            "capabilities: {add: [KILL]}",
        ),
        (0, 1000, "PID 1 runs as user 0, and the hook as user 1000", ""),
        (None, 1000, "a process may signal those of its own user only", ""),
        (1000, 1000, "a process may signal those of its own user only", ""),  # something else refuses it
    ],
)
def test_users_are_named_as_far_as_they_are_known(
    new_tape: Any, user: int | None, own: int | None, says: str, keeps: str
) -> None:
    finding = refused(new_tape(), user=user, own=own)
    assert says in finding.text
    assert ("To keep it in the hook" in finding.advice) is bool(keeps) and keeps in finding.advice


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("sh -c kill 1", "the runtime sends SIGTERM when the hook has ended"),
        ("kill -s TERM 1", "the runtime sends SIGTERM when the hook has ended"),
        ("kill -15 1", "the runtime sends SIGTERM when the hook has ended"),
        ("kill -QUIT 1", "STOPSIGNAL SIGQUIT in the image"),
        ("kill -s SIGUSR1 1", "STOPSIGNAL SIGUSR1 in the image"),
        ("kill -3 1", "STOPSIGNAL SIGQUIT in the image"),
    ],
)
def test_the_runtime_may_send_the_signal_in_place_of_the_hook(new_tape: Any, command: str, advice: str) -> None:
    finding = refused(new_tape(), command=command)
    assert "Leave the signal out of the hook" in finding.advice and advice in finding.advice
    assert finding.change is not None and finding.change.program == "fixHook"


def test_where_pid_1_is_the_pause_process_its_user_is_not_taken_for_that_of_the_program(new_tape: Any) -> None:
    finding = refused(new_tape(), number=14, own=1000)
    assert "PID 1 is the Pod's pause process (shareProcessNamespace)" in finding.text
    assert "user 101" not in finding.text and "To keep it" not in finding.advice


def test_no_longer_time_is_advised_to_a_program_that_never_got_the_other_signal_of_its_hook(new_tape: Any) -> None:
    for command, repaired in (("kill -QUIT 1", True), ("kill -TERM 1", False)):
        tape = new_tape()
        hooked(tape, command=f"sh -c {command}; sleep 1", outcome="succeeded")
        tape.signal(10.1, "SIGKILL", "grace over")
        tape.exit(10.11, 137, "SIGKILL")
        killed = found(tape, "killed")
        assert killed is not None
        assert ("its signal was refused" in killed.advice) is repaired
