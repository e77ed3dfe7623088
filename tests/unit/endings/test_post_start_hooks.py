"""A postStart hook that fails or hangs is named, with what it got and what it holds."""

from dataclasses import replace
from typing import Any

import pytest

from lastcall.cli.exit_status import exit_status
from lastcall.endings.ending import build_endings
from lastcall.endings.search import find_ending
from lastcall.endings.story import ContainerFacts, DeclaredProbe, Ending, PodFacts
from lastcall.records import kinds as k

REFUSED = 'HTTP lifecycle hook (/) for Container "app" in Pod "web_default(u)" failed - error: Get ' + (
    '"http://10.244.0.2:8080/": dial tcp 10.244.0.2:8080: connect: connection refused'
)
EXITED = (
    'Exec lifecycle hook ([sh -c register]) for Container "app" in Pod "web_default(u)" failed - error: command '
    "'sh -c register' exited with {code}: no token\n, message: \"no token\\n\""
)
NOT_THERE = (
    'Exec lifecycle hook ([register]) for Container "app" in Pod "web_default(u)" failed - error: rpc error: '
    + (
        'code = Unknown desc = failed to exec in container: exec: "register": executable file not found in $PATH: '
        'unknown, message: ""'
    )
)


def started(tape: Any, at: float, detail: str = "GET http://POD:8080/", handler: str = "httpGet") -> None:
    tape.started(at=at)
    tape.add(at + 0.01, "kubelet", k.CONTAINER_STARTED, "app", containerId="c", attempt=0)
    tape.add(at + 0.02, "kubelet", k.POST_START_STARTED, "app", handler=handler, detail=detail)


def finished(tape: Any, at: float, message: str = "", **facts: Any) -> None:
    outcome = "failed" if message else "succeeded"
    more = {"handler": "httpGet", "outcome": outcome, "seconds": 0.01, "message": message, **facts}
    tape.add(at, "kubelet", k.POST_START_FINISHED, "app", **more)


def killed(tape: Any, at: float) -> None:
    tape.add(at, "kubelet", k.KILLING, "app", message="FailedPostStartHook", gracePeriodSeconds=30,
             reason="FailedPostStartHook")  # fmt: skip
    tape.add(at, "runtime", k.STOP_REQUESTED, "app", timeoutSeconds=30)
    tape.add(at + 0.01, "runtime", k.SIGNAL_SENT, "app", signal="SIGTERM", pid=7, why="StopContainer")


def exited(tape: Any, at: float, port: int | None = None) -> None:
    if port is not None:
        listeners = [{"address": "0.0.0.0", "port": port, "backlog": 0}]
        tape.add(at - 0.02, "runtime", k.SOCKETS_AT_EXIT, "app", listeners=listeners, connections=0, unread=0,
                 unreadBytes=0, backlog=0, resets=0, closedUnread=0, secondsBefore=0.1, scope="container")  # fmt: skip
    tape.add(at, "runtime", k.PROCESS_EXITED, "app", pid=7, exitCode=143, signal="SIGTERM", oomKilled=False)


def alive_pod(tape: Any) -> PodFacts:
    return replace(tape.pod, phase="Pending")


def alive(tape: Any) -> Ending:
    """The story of a Pod that nobody deletes."""
    return build_endings(tape.records, [alive_pod(tape)], kubernetes_version="1.36")[0]


def finding(ending: Ending, id_: str) -> Any:
    (found,) = [each for each in ending.findings if each.id == id_]
    return found


def test_a_hook_that_asks_its_own_application_too_early_is_named_with_what_it_got(new_tape: Any) -> None:
    tape = new_tape()
    started(tape, -40)
    finished(tape, -39.97, REFUSED)
    killed(tape, -39.96)
    exited(tape, -10, port=8080)
    found = finding(tape.ending(), "restartedPostStart")
    assert (
        "its postStart hook failed: connection refused on port 8080, 20 ms after its start (exit code 143" in found.text
    )
    assert found.text.endswith("app listened on port 8080 later.")
    assert found.advice.startswith("Let the postStart hook try again until port 8080 answers, with a time limit")
    assert "startupProbe or readinessProbe" in found.advice


def test_that_the_application_listened_later_is_said_only_if_it_was_seen(new_tape: Any) -> None:
    tape = new_tape()
    started(tape, -40)
    finished(tape, -39.97, REFUSED)
    killed(tape, -39.96)
    exited(tape, -10, port=9090)
    assert "later" not in finding(tape.ending(), "restartedPostStart").text


@pytest.mark.parametrize(
    ("message", "facts", "text", "fix"),
    [
        (EXITED.format(code=3), {"exitCode": 3, "stderr": "no token\n"},
         "failed: exit code 3 (exit code 143: SIGTERM). The hook's last line: no token", "let it end with 0"),
        (EXITED.format(code=127), {"exitCode": 127, "stderr": "sh: register: not found\n"},
         "failed: exit code 127 (", "Correct the command of the postStart hook, or use an image that has it."),
        (EXITED.format(code=126), {"exitCode": 126}, "failed: exit code 126 (", "executable"),
        (EXITED.format(code=126), {"exitCode": 126, "stderr": "sh: can't fork: Resource temporarily unavailable\n"},
         "failed: exit code 126 (", "let it end with 0"),
        (NOT_THERE, {}, 'failed: exec: "register": executable file not found in $PATH (', "an image that has it"),
        ("odd", {}, "failed: odd (", "its Event FailedPostStartHook says how it failed"),
    ],
)  # fmt: skip
def test_how_a_hook_failed_decides_what_to_do(
    new_tape: Any, message: str, facts: dict[str, Any], text: str, fix: str
) -> None:
    tape = new_tape()
    started(tape, -5, "sh -c register", "exec")
    finished(tape, -4.9, message, handler="exec", **facts)
    killed(tape, -4.8)
    exited(tape, -4)
    found = finding(tape.ending(), "restartedPostStart")
    assert text in found.text, found.text
    assert fix in found.advice, found.advice


def test_a_container_that_is_being_ended_for_its_hook_is_worth_a_story(new_tape: Any) -> None:
    tape = new_tape()
    started(tape, -5)
    finished(tape, -4.97, REFUSED)
    killed(tape, -4.96)
    ending = alive(tape)
    found = finding(ending, "postStartFailed")
    assert found.text == (
        "The kubelet is ending app because its postStart hook failed: connection refused on port 8080, 20 ms after its "
        "start."
    )
    assert found.severity == "problem" and "try again until port 8080" in found.advice
    assert find_ending([ending], "web", "default", None, "c") is ending


def test_a_hook_that_hangs_is_what_a_deletion_waits_for(new_tape: Any) -> None:
    tape = new_tape()
    started(tape, -4, "sh -c wait", "exec")
    tape.accepted(3)
    now_ns = tape.records[-1].at_ns + 15_000_000_000
    (ending,) = build_endings(tape.records, [tape.pod], kubernetes_version="1.36", now_ns=now_ns)
    found = finding(ending, "postStartRuns")
    assert found.text == (
        "The DELETE waits for the postStart hook of app, which has run for 19 s (sh -c wait): the kubelet stops the "
        "container only when the hook has ended."
    )
    assert "Give the postStart hook a time limit" in found.advice
    assert exit_status([ending]) in (0, 1)


def test_a_hook_that_hangs_in_a_pod_that_nobody_deletes_keeps_it_from_running(new_tape: Any) -> None:
    tape = new_tape()
    started(tape, -4, "sh -c wait", "exec")
    now_ns = tape.records[-1].at_ns + 7_000_000_000
    (ending,) = build_endings(tape.records, [alive_pod(tape)], kubernetes_version="1.36", now_ns=now_ns)
    assert (
        "has run for 7 s (sh -c wait): the container counts as Running only when"
        in finding(ending, "postStartRuns").text
    )
    assert find_ending([ending], "web", "default", None, "c") is ending


def pod_of_two(tape: Any, app: ContainerFacts, agent: ContainerFacts) -> Any:
    return replace(alive_pod(tape), containers=(app, agent))


@pytest.mark.parametrize(
    ("app", "agent", "found"),
    [
        ({}, {"ports": (9000,)}, True),
        ({}, {"probes": (DeclaredProbe("readinessProbe", "tcpSocket", 9000),)}, True),
        ({"ports": (9000,)}, {"ports": (9000,)}, False),
        ({}, {"ports": (900,)}, False),
        ({}, {}, False),
    ],
)
def test_a_hook_that_asks_a_container_that_is_started_after_it_is_told_the_order(
    new_tape: Any, app: Any, agent: Any, found: bool
) -> None:
    tape = new_tape()
    started(tape, -4, "sh -c until curl http://127.0.0.1:9000/; do sleep 1; done", "exec")
    now_ns = tape.records[-1].at_ns + 7_000_000_000
    pod = pod_of_two(tape, ContainerFacts("app", **app), ContainerFacts("agent", **agent))
    (ending,) = build_endings(tape.records, [pod], kubernetes_version="1.36", now_ns=now_ns)
    told = finding(ending, "postStartRuns")
    assert ("the kubelet starts agent only when this hook has ended" in told.text) is found
    assert ("Put agent before app" in told.advice) is found
    assert ("See what the hook waits for" in told.advice) is not found


def test_a_hook_that_has_just_begun_is_not_worth_a_word(new_tape: Any) -> None:
    tape = new_tape()
    started(tape, -4, "sh -c wait", "exec")
    (ending,) = build_endings(tape.records, [alive_pod(tape)], kubernetes_version="1.36")
    assert not ending.findings


def test_where_the_time_went_is_told_after_a_deletion_that_waited_for_a_hook(new_tape: Any) -> None:
    tape = new_tape()
    started(tape, -4, "sh -c wait", "exec")
    tape.accepted(3)
    finished(tape, 26.7, handler="exec", seconds=30.7)
    tape.observed(3, at=26.71)
    tape.killing(3, at=26.72)
    tape.stop(26.73, 3)
    tape.exit(26.8, 0)
    tape.over(27, endpoint=False)
    found = finding(tape.ending(), "postStartHeld")
    assert found.text.startswith(
        "The DELETE waited 26.7 s for the postStart hook of app, which had begun 4.0 s before it (sh -c wait)"
    )
    assert found.severity == "warning"


def test_a_hook_that_ended_before_the_deletion_held_nothing(new_tape: Any) -> None:
    tape = new_tape()
    started(tape, -4, "sh -c wait", "exec")
    finished(tape, -3, handler="exec")
    tape.accepted(3)
    tape.observed(3)
    tape.stop(0.1, 3)
    tape.exit(0.2, 0)
    tape.over(0.3, endpoint=False)
    assert not [each for each in tape.ending().findings if each.id.startswith("postStart")]
