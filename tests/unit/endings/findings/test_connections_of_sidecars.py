"""A container that waits for a native sidecar's connection waits for what ends only after it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from ending_stories import (
    Story,
    ends_with_its_sidecar,
    peer,
    waits_for_its_sidecar,
    waits_for_its_sidecar_that_leaves_first,
)

from lastcall.endings.story import ContainerFacts
from lastcall.records import kinds as k


def told(new_tape: Any, story: Story, *changes: Callable[[Any], None]) -> dict[str, Any]:
    tape = new_tape()
    for change in (story, *changes):
        change(tape)
    return {each.id: each for each in tape.ending().findings}


@pytest.mark.parametrize("story", [waits_for_its_sidecar, waits_for_its_sidecar_that_leaves_first])
def test_no_time_is_enough_for_a_container_that_waits_for_its_native_sidecar(new_tape: Any, story: Story) -> None:
    found = told(new_tape, story)
    cause = found["sidecarHoldsConnection"]
    assert cause.severity == "problem"
    assert "for connections of agent until it was killed" in cause.text
    assert "Or put agent under containers" in cause.advice
    assert found["killed"].advice == "" and found["killed"].severity == "info"
    assert "connectionsOpenAtKill" not in found


def test_a_container_that_ends_when_its_sidecar_is_stopped_is_told_so(new_tape: Any) -> None:
    found = told(new_tape, ends_with_its_sidecar)
    assert found["sidecarHoldsConnection"].severity == "warning"
    assert "for connections of agent until that was stopped" in found["sidecarHoldsConnection"].text


def test_that_it_closed_its_port_at_once_holds_beside_that(new_tape: Any) -> None:
    """Clients that have not heard of the change ask its port, directly or through the sidecar, which still listens."""
    found = told(new_tape, waits_for_its_sidecar, lambda tape: tape.endpoint())
    soon, held = found["listenerClosedSoon"], found["sidecarHoldsConnection"]
    assert soon.severity == "info" and held.severity == "problem"
    assert "preStop" in soon.advice and "preStop" not in held.advice


def sockets(**facts: Any) -> Callable[[Any], None]:
    def change(tape: Any) -> None:
        for record in tape.records:
            if record.kind == k.SOCKETS_AT_EXIT:
                record.facts.update(facts)

    return change


def another_container(tape: Any) -> None:
    tape.pod = replace(tape.pod, containers=(*tape.pod.containers, ContainerFacts("other")))
    tape.started("other", pid=27)
    tape.exit(10.01, 137, 9, container="other", pid=27)


def sidecar_as_a_container(tape: Any) -> None:
    tape.pod = replace(tape.pod, containers=(*tape.pod.containers[:1], ContainerFacts("agent")))


def another_sidecar(tape: Any) -> None:
    tape.pod = replace(tape.pod, containers=(*tape.pod.containers, ContainerFacts("proxy", "sidecar")))
    tape.started("proxy", pid=37)
    tape.exit(10.03, 0, container="proxy", pid=37)


OWN = [peer("127.0.0.1", 52000), {**peer("127.0.0.1", 8080), "ownPort": 52000}]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(sockets(peers=[peer("192.0.2.9", 51000)]), id="a client from outside holds it"),
        pytest.param(sockets(peers=[*OWN]), id="the program is its own client"),
        pytest.param(sockets(peers=[]), id="nobody knows who holds it"),
        pytest.param(sockets(listeners=[{"address": "", "port": 8080}]), id="it still listened"),
        pytest.param(another_container, id="another container may hold it"),
        pytest.param(another_sidecar, id="another sidecar may hold it"),
        pytest.param(sidecar_as_a_container, id="it is no native sidecar"),
    ],
)
def test_a_sidecar_is_named_only_if_nobody_else_may_hold_the_connection(
    new_tape: Any, change: Callable[[Any], None]
) -> None:
    assert "sidecarHoldsConnection" not in told(new_tape, waits_for_its_sidecar, change)
