"""Containers of a Pod together: who ended first, and who was needed."""

from dataclasses import replace
from typing import Any

import pytest

from lastcall.endings.story import ContainerFacts
from lastcall.records import kinds as k

REFUSED = "ConnectionRefusedError: [Errno 111] Connection refused"


def pod(tape: Any, *others: str, listens: int | None = None) -> None:
    """`app`, and others that end at once on their stop signal."""
    tape.pod = replace(tape.pod, containers=(ContainerFacts("app"), *map(ContainerFacts, others)))
    tape.started()
    for number, other in enumerate(others):
        tape.started(other, pid=20 + number)
    tape.accepted(30)
    tape.observed(30)
    tape.stop(0.01, 30)
    for number, other in enumerate(others):
        tape.signal(0.01, "SIGTERM", "StopContainer", other, 20 + number)
        if listens is not None:
            listener = {"address": "0.0.0.0", "port": listens, "backlog": 0}
            facts = {"signal": "SIGTERM", "listeners": [listener], "connections": 0, "scope": "container"}
            tape.add(0.011, "runtime", k.SOCKETS_AT_STOP, other, **facts)
        tape.exit(0.02, 0, container=other, pid=20 + number)


def ends(tape: Any, *lines: str, code: int = 1) -> list[str]:
    for number, line in enumerate(lines):
        tape.output(0.5 + number / 1000, line)
    tape.exit(0.6, code)
    tape.over(0.7)
    return [each.text for each in tape.ending().findings if each.id == "sidecarEndsFirst"]


@pytest.mark.parametrize(
    ("others", "listens", "lines", "code", "found"),
    [
        (("proxy",), 15001, (REFUSED,), 1, True),
        (("proxy",), None, ("connect('127.0.0.1', 15001)", REFUSED), 1, True),
        (("proxy",), None, ("connect('db.example', 5432)", REFUSED), 1, False),
        (("proxy", "agent"), None, ("connect to localhost:15001", REFUSED), 1, False),
        (("proxy", "agent"), 15001, ("dial tcp 10.0.0.7:5432: connection refused",), 1, False),
        (("proxy",), 15001, (REFUSED,), 0, False),
        (("proxy",), 15001, (f"502: {REFUSED}, upstream 127.0.0.1:15001",), 0, True),
        (("proxy",), 15001, ("bye",), 1, False),
        ((), None, ("connect('127.0.0.1', 15001)", REFUSED), 1, False),
    ],
    ids=[
        "it listened",
        "this Pod's own address",
        "another address",
        "two may have been meant",
        "a port that neither had",
        "it ended well",
        "it ended well, and names the port",
        "it complained of nothing",
        "nobody had ended",
    ],
)
def test_a_container_is_missed_only_where_the_complaint_fits_it(
    new_tape: Any, others: tuple[str, ...], listens: int | None, lines: tuple[str, ...], code: int, found: bool
) -> None:
    tape = new_tape()
    pod(tape, *others, listens=listens)
    assert bool(ends(tape, *lines, code=code)) is found


def test_one_that_went_on_with_its_hook_is_told_that_the_other_has_none(new_tape: Any) -> None:
    tape = new_tape()
    pod(tape, "php-fpm", listens=9000)
    tape.hook(0.006, 0.4, "succeeded", budget=30)
    for line in ("connect() failed (111: Connection refused), upstream: fastcgi://127.0.0.1:9000",):
        tape.output(0.2, line)
    tape.exit(0.6, 0)
    tape.over(0.7)
    (found,) = [each for each in tape.ending().findings if each.id == "sidecarEndsFirst"]
    assert "app went on for 580 ms after php-fpm had ended" in found.text
    assert found.advice.startswith("Give php-fpm the preStop hook of app, too")


def test_of_several_that_had_ended_the_one_with_the_port_is_named(new_tape: Any) -> None:
    tape = new_tape()
    pod(tape, "proxy", listens=15001)
    tape.pod = replace(tape.pod, containers=(*tape.pod.containers, ContainerFacts("agent")))
    tape.started("agent", pid=30)
    tape.exit(0.03, 0, container="agent", pid=30)
    (text,) = ends(tape, "dial tcp 127.0.0.1:15001: connection refused")
    assert "app ended with exit code 1, 580 ms after proxy had ended" in text
