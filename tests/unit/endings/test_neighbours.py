"""A container that starts before another one of its Pod that it needs."""

from dataclasses import replace
from typing import Any

import pytest

from lastcall.endings.story import ContainerFacts
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
