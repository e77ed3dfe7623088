"""What a node's agent saw goes before what is concluded from statuses and Events."""

import re
from pathlib import Path
from typing import Any

import pytest

from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.trace import agent
from lastcall.trace.drafts import draft
from lastcall.trace.events import PodEvent
from lastcall.trace.node_agent.translate import SEEN
from lastcall.trace.pod_timeline import Moment, PodTimeline
from lastcall.trace.stamps import SECOND, Clocks
from lastcall.trace.stops import is_hook

HOOK = ["sh", "-c", "nginx -s quit; sleep 2"]


def at(seconds: float) -> Moment:
    ns = int((1000 + seconds) * SECOND)
    return Moment(ns, ns)


def timeline(spec: dict[str, Any]) -> PodTimeline:
    meta = {"name": "web", "namespace": "shop", "uid": "u1", "deletionTimestamp": "2026-01-01T00:00:10Z"}
    running = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    status = {"containerStatuses": [{"name": each["name"], "state": running} for each in spec["containers"]]}
    pod = {"metadata": {**meta, "deletionGracePeriodSeconds": 10}, "spec": {"nodeName": "n1", **spec}, "status": status}
    made = PodTimeline(pod, Clocks(), lambda actor: actor, lambda record: None, at(0), first=pod)
    facts: Any = {"gracePeriodSeconds": 10}
    made.write(draft(kinds.DELETE_ACCEPTED, facts, "apiserver"), at(0))
    return made


def killing(name: str) -> PodEvent:
    return PodEvent(
        name, "1", "Killing", f"Stopping container {name}", "Pod", "shop", "web", "u1", name, "kubelet", "n1", ""
    )


def seen(kind: str, container: str, seconds: float, **facts: Any) -> Record:
    now = at(seconds)
    return Record(
        "agent", now.at_ns, now.wall_ns, "node-agent", kind, pod_uid="u1", container=container, facts=facts,
        evidence="observed",
    )  # fmt: skip


def exited(container: str, seconds: float, code: int = 0) -> Record:
    return seen(kinds.PROCESS_EXITED, container, seconds, containerId="c", exitCode=code, signal=None, oomKilled=False)


def told(made: PodTimeline) -> list[tuple[str, str, float, str]]:
    """(kind, container, seconds, evidence) of the steps of stops."""
    wanted = (kinds.PRE_STOP_FINISHED, kinds.SIGNAL_SENT)
    return [
        (r.kind, r.container, round((r.at_ns - at(0).at_ns) / SECOND, 3), r.evidence)
        for r in made.records
        if r.kind in wanted
    ]


def one_with_hook() -> dict[str, Any]:
    return {"containers": [{"name": "app", "lifecycle": {"preStop": {"exec": {"command": HOOK}}}}]}


@pytest.mark.parametrize("event_first", [True, False])
@pytest.mark.parametrize("argv", [HOOK, ["sleep", "2"]])
def test_the_end_of_a_hook_s_process_is_that_of_the_hook(event_first: bool, argv: list[str]) -> None:
    made = timeline(one_with_hook())
    if event_first:
        made.event(killing("app"), at(0.01))
    made.add(seen(kinds.EXEC_STARTED, "app", 0.05, execId="e1", pid=7, argv=argv))
    if not event_first:
        made.event(killing("app"), at(0.2))
    made.add(seen(kinds.EXEC_EXITED, "app", 2.1, execId="e1", pid=7, exitCode=0, signal=None, killedBecause=""))
    assert told(made) == [
        ("PreStopFinished", "app", 2.1, "observed"),
        ("SignalSent", "app", 2.1, "inferred"),
    ]
    finished = next(r for r in made.records if r.kind == kinds.PRE_STOP_FINISHED)
    assert (finished.facts["outcome"], finished.facts["exitCode"]) == ("succeeded", 0)


def test_another_exec_is_not_the_hook() -> None:
    made = timeline(one_with_hook())
    made.event(killing("app"), at(0.01))
    made.add(seen(kinds.EXEC_STARTED, "app", 0.05, execId="e1", pid=7, argv=["cat", "/ready"]))
    made.add(seen(kinds.EXEC_EXITED, "app", 0.1, execId="e1", pid=7, exitCode=0, signal=None, killedBecause=""))
    assert told(made) == []


def test_a_hook_that_is_killed_with_its_container_has_no_end_of_its_own() -> None:
    made = timeline(one_with_hook())
    made.event(killing("app"), at(0.01))
    made.add(seen(kinds.EXEC_STARTED, "app", 0.05, execId="e1", pid=7, argv=HOOK))
    made.add(exited("app", 1.0))
    made.add(
        seen(kinds.EXEC_EXITED, "app", 1.001, execId="e1", pid=7, exitCode=137, signal="SIGKILL", killedBecause="")
    )
    assert told(made) == []


def test_a_sidecar_s_turn_comes_with_the_end_that_was_seen() -> None:
    made = timeline({"initContainers": [{"name": "side", "restartPolicy": "Always"}], "containers": [{"name": "app"}]})
    made.event(killing("side"), at(0.01))
    made.event(killing("app"), at(0.01))
    made.add(exited("app", 1.2))
    made.add(exited("side", 1.4))
    assert told(made)[1:] == [("SignalSent", "side", 1.2, "inferred")]


def test_an_event_that_comes_after_the_exit_does_not_put_the_signal_behind_it() -> None:
    made = timeline({"containers": [{"name": "app"}]})
    made.add(exited("app", 0.02))
    made.event(killing("app"), at(0.06))
    assert told(made) == [("SignalSent", "app", 0.02, "inferred")]


def test_a_status_does_not_move_an_exit_that_was_seen() -> None:
    made = timeline({"containers": [{"name": "app"}]})
    made.event(killing("app"), at(0.01))
    made.add(exited("app", 0.5, 3))
    facts: Any = {"containerId": "c", "exitCode": 3, "finishedAt": "2026-01-01T00:00:01Z"}
    made.write(draft(kinds.PROCESS_EXITED, facts, "runtime", container="app", evidence="inferred"), at(1.7))
    assert made.stops["app"].exited == at(0.5).at_ns
    assert made.records[-1].at_ns == at(0.5).at_ns


@pytest.mark.parametrize(
    ("command", "argv", "same"),
    [
        (["/stop"], ["/stop"], True),
        (["/stop"], ["/stop", "x"], False),
        (["sh", "-c", "a; sleep 2"], ["sleep", "2"], True),
        (["bash", "-ec", "sleep 2\n"], ["sleep", "2"], True),
        (["sh", "-c", "sleep 20"], ["sleep", "2"], False),
        ([], [], False),
    ],
)
def test_a_hook_is_known_by_its_arguments(command: list[str], argv: list[str], same: bool) -> None:
    assert is_hook(command, argv) is same


def test_every_kind_that_an_agent_writes_is_taken_from_it() -> None:
    """A line of another kind ends the agent."""
    sources = "".join(path.read_text() for path in Path(agent.__file__).parent.glob("*.py"))
    names = set(re.findall(r"kinds\.([A-Z_]+)", sources))
    assert names
    assert {getattr(kinds, name) for name in names} <= set(SEEN)
