"""A container that starts before another one of its Pod that it needs."""

from dataclasses import replace
from typing import Any

import pytest

from lastcall.endings.story import ContainerFacts, DeclaredProbe
from lastcall.records import kinds as k

REFUSED = "ConnectionRefusedError: [Errno 111] Connection refused"
PROXY = ContainerFacts("proxy", ports=(15001,))


@pytest.mark.parametrize(
    ("others", "lines", "advice", "patched"),
    [
        ((PROXY,), ("dial tcp 127.0.0.1:15001: connect: connection refused",), "native sidecar", True),
        ((PROXY,), ("create_connection(('127.0.0.1', 15001), 2)", REFUSED), "native sidecar", True),
        ((PROXY, ContainerFacts("db", ports=(5432,))), ("localhost:5432: connection refused",), "Make db", True),
        ((PROXY,), (REFUSED,), "If that is proxy in the same Pod (port 15001)", False),
        ((PROXY,), ("dial tcp 127.0.0.1:6379: connect: connection refused",), "see whether that is in the", False),
        ((PROXY, ContainerFacts("db", ports=(5432,))), (REFUSED,), "see whether that is in the manifests", False),
        ((ContainerFacts("proxy"),), (REFUSED,), "see whether that is in the manifests", False),
        ((replace(PROXY, kind="sidecar"),), (REFUSED,), "see whether that is in the manifests", False),
        ((PROXY,), ("no such table: users",), "", False),
    ],
)
def test_a_crash_for_want_of_a_neighbour(
    new_tape: Any, others: tuple[ContainerFacts, ...], lines: tuple[str, ...], advice: str, patched: bool
) -> None:
    tape = new_tape()
    tape.pod = replace(tape.pod, containers=(ContainerFacts("app"), *others))
    tape.started(at=-5)
    for line in lines:
        tape.output(-4.9, line)
    tape.add(-4.8, "runtime", k.PROCESS_EXITED, "app", pid=7, exitCode=1, signal=None, oomKilled=False, oomKills=0)
    tape.started(at=-3)
    tape.accepted()
    (crash,) = [each for each in tape.ending().findings if each.id == "crashed"]
    assert advice in crash.advice
    assert bool(crash.change.patch) is patched
    if patched:
        (native,) = crash.change.patch["initContainers"]
        assert native["restartPolicy"] == "Always" and native["startupProbe"]["tcpSocket"]


@pytest.mark.parametrize(
    ("others", "listeners", "advice", "patched"),
    [
        ((), [], "nothing listened in it on port 6379, nor on any other", ""),
        (("proxy",), [(15001, "proxy")], "what listened: proxy: 15001", ""),
        (("proxy", "db"), [(15001, "proxy")], "see whether that is in the manifests", ""),
        (("proxy",), [], "see whether that is in the manifests", ""),
        (("proxy", "db"), [(6379, "db")], "Make db a native sidecar", "db"),
        (("proxy",), [(6379, "")], "see whether that is in the manifests", ""),
        (("proxy",), None, "see whether that is in the manifests", ""),
    ],
)
def test_a_refusal_inside_the_pod_goes_by_who_listened_right_after_the_crash(
    new_tape: Any, others: tuple[str, ...], listeners: list[tuple[int, str]] | None, advice: str, patched: str
) -> None:
    tape = new_tape()
    tape.pod = replace(tape.pod, containers=(ContainerFacts("app"), *map(ContainerFacts, others)))
    tape.started(at=-5)
    tape.output(-4.9, "dial tcp 127.0.0.1:6379: connect: connection refused")
    seen = [{"address": "0.0.0.0", "port": port, "container": name} for port, name in listeners or ()]
    more = {} if listeners is None else {"podListeners": seen}
    tape.add(-4.8, "runtime", k.PROCESS_EXITED, "app", pid=7, exitCode=1, signal=None, oomKills=0, **more)
    tape.started(at=-3)
    tape.accepted()
    (crash,) = [each for each in tape.ending().findings if each.id == "crashed"]
    assert advice in crash.advice
    assert [each["name"] for each in (crash.change.patch or {}).get("initContainers", [])] == [patched][: bool(patched)]


@pytest.mark.parametrize(
    ("listeners", "advice"),
    [
        ([], "proxy in the same Pod did not listen on its port 15001 at that moment"),
        ([(9090, "proxy")], "proxy in the same Pod did not listen on its port 15001 at that moment"),
        ([(15001, "proxy")], "see whether that is in the manifests"),
        ([(15001, "")], "see whether that is in the manifests"),
        (None, "If that is proxy in the same Pod (port 15001)"),
    ],
)
def test_a_neighbour_that_listened_at_the_crash_did_not_refuse(
    new_tape: Any, listeners: list[tuple[int, str]] | None, advice: str
) -> None:
    tape = new_tape()
    tape.pod = replace(tape.pod, containers=(ContainerFacts("app"), PROXY))
    tape.started(at=-5)
    tape.output(-4.9, REFUSED)
    seen = [{"address": "0.0.0.0", "port": port, "container": name} for port, name in listeners or ()]
    more = {} if listeners is None else {"podListeners": seen}
    tape.add(-4.8, "runtime", k.PROCESS_EXITED, "app", pid=7, exitCode=1, signal=None, oomKills=0, **more)
    tape.started(at=-3)
    tape.accepted()
    (crash,) = [each for each in tape.ending().findings if each.id == "crashed"]
    assert advice in crash.advice


PROBED = replace(PROXY, probes=(DeclaredProbe("readinessProbe", "tcpSocket", 15001),))
REFUSED_IN_POD = {"sent": 1, "aborted": 0, "attemptsFailed": 1, "loopbackPackets": 2}
AS_BEFORE = "What it connects to refuses, and proxy in the same Pod did not listen"
ELSEWHERE = "What it connects to refuses: see whether that is in the manifests"


@pytest.mark.parametrize(
    ("others", "counts", "advice", "patched"),
    [
        ((PROXY,), {}, "The Pod itself refused the connection", True),
        ((PROXY,), {"sent": 4, "attemptsFailed": 3, "loopbackPackets": 40}, "The Pod itself refused", True),
        ((PROXY,), {"sent": 0}, ELSEWHERE, False),
        ((PROXY,), {"loopbackPackets": 0}, ELSEWHERE, False),  # a client of the Pod was refused, over its network
        ((PROXY,), {"aborted": 1}, AS_BEFORE, False),  # the reset may be that of a connection it closed
        ((PROXY,), {"attemptsFailed": 2, "loopbackPackets": 4}, AS_BEFORE, False),  # one was refused elsewhere
        ((PROXY,), {"attemptsFailed": 0}, AS_BEFORE, False),
        ((PROXY,), {"loopbackPackets": 1}, AS_BEFORE, False),
        ((PROXY,), None, AS_BEFORE, False),
        ((PROBED,), {}, AS_BEFORE, False),
        ((PROXY, ContainerFacts("db", tcp_probes=(5432,))), {}, AS_BEFORE, False),
        ((PROBED,), {"sent": 0}, ELSEWHERE, False),
        ((PROXY, ContainerFacts("db", ports=(5432,))), {}, ELSEWHERE, False),
    ],
)
def test_resets_tell_whether_the_pod_itself_refused_the_connection(
    new_tape: Any, others: tuple[ContainerFacts, ...], counts: dict[str, int] | None, advice: str, patched: bool
) -> None:
    tape = new_tape()
    tape.pod = replace(tape.pod, containers=(ContainerFacts("app"), *others))
    tape.started(at=-5)
    tape.output(-4.9, REFUSED)
    more = {} if counts is None else {"podResets": REFUSED_IN_POD | counts}
    more |= {"podListeners": []}
    tape.add(-4.8, "runtime", k.PROCESS_EXITED, "app", pid=7, exitCode=1, signal=None, oomKills=0, **more)
    tape.started(at=-3)
    tape.accepted()
    (crash,) = [each for each in tape.ending().findings if each.id == "crashed"]
    assert crash.advice.startswith(advice)
    if patched:
        assert "(inferred)" in crash.advice
        (native,) = crash.change.patch["initContainers"]
        assert (native["name"], native["startupProbe"]["tcpSocket"]) == ("proxy", {"port": 15001})
    else:
        assert not crash.change.patch


@pytest.mark.parametrize(
    ("resets", "advice"), [(REFUSED_IN_POD, ELSEWHERE), (None, ELSEWHERE), (REFUSED_IN_POD | {"sent": 0}, ELSEWHERE)]
)
def test_a_neighbour_that_listened_is_not_named_for_the_pods_resets(
    new_tape: Any, resets: dict[str, int] | None, advice: str
) -> None:
    tape = new_tape()
    tape.pod = replace(tape.pod, containers=(ContainerFacts("app"), PROXY))
    tape.started(at=-5)
    tape.output(-4.9, REFUSED)
    seen = [{"address": "0.0.0.0", "port": 15001, "container": "proxy"}]
    more = {"podListeners": seen} | ({} if resets is None else {"podResets": resets})
    tape.add(-4.8, "runtime", k.PROCESS_EXITED, "app", pid=7, exitCode=1, signal=None, oomKills=0, **more)
    tape.started(at=-3)
    tape.accepted()
    (crash,) = [each for each in tape.ending().findings if each.id == "crashed"]
    assert crash.advice.startswith(advice)


@pytest.mark.parametrize(
    ("line", "more", "advice"),
    [
        (REFUSED, {"podResets": REFUSED_IN_POD}, "If that is proxy in the same Pod (port 15001)"),  # who listened?
        ("dial tcp 127.0.0.1:15001: connect: connection refused", {"podResets": {"sent": 0}}, "Nothing listened on"),
    ],
)
def test_a_printed_address_counts_more_than_resets_and_who_listened_must_be_known(
    new_tape: Any, line: str, more: dict[str, Any], advice: str
) -> None:
    tape = new_tape()
    tape.pod = replace(tape.pod, containers=(ContainerFacts("app"), PROXY))
    tape.started(at=-5)
    tape.output(-4.9, line)
    tape.add(-4.8, "runtime", k.PROCESS_EXITED, "app", pid=7, exitCode=1, signal=None, oomKills=0, **more)
    tape.started(at=-3)
    tape.accepted()
    (crash,) = [each for each in tape.ending().findings if each.id == "crashed"]
    assert advice in crash.advice


@pytest.mark.parametrize(("port", "later"), [(15001, True), (9090, False)])
def test_a_neighbour_that_listened_when_it_was_stopped_began_to_do_so_later(
    new_tape: Any, port: int, later: bool
) -> None:
    tape = new_tape()
    tape.pod = replace(tape.pod, containers=(ContainerFacts("app"), PROXY))
    tape.started(at=-5)
    tape.started(at=-5, container="proxy")
    tape.output(-4.9, REFUSED)
    more = {"podListeners": [], "podResets": REFUSED_IN_POD}
    tape.add(-4.8, "runtime", k.PROCESS_EXITED, "app", pid=7, exitCode=1, signal=None, oomKills=0, **more)
    tape.started(at=-3)
    tape.accepted()
    seen = {"listeners": [{"address": "0.0.0.0", "port": port, "backlog": 0}], "connections": 0}
    tape.add(0.1, "runtime", k.SOCKETS_AT_STOP, "proxy", **seen)
    tape.add(0.1, "runtime", k.SIGNAL_SENT, "proxy", signal="SIGTERM", pid=7, why="StopContainer")
    (crash,) = [each for each in tape.ending().findings if each.id == "crashed"]
    assert ("did not listen at that moment, but did later" in crash.advice) is later
    assert "The Pod itself refused" in crash.advice
