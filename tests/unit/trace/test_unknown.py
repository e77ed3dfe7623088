"""What a story says it does not know."""

from typing import Any

import pytest

from lastcall.records import kinds
from lastcall.records.record import Evidence, Record
from lastcall.trace.unknown import unknown


def record(kind: str, container: str = "app", at: int = 0, evidence: Evidence = "inferred", **facts: Any) -> Record:
    return Record(f"{kind}-{at}", at, at, "x", kind, "u", container, "", facts, evidence=evidence)


def pod(restarts: int = 0, last: bool = False, **more: Any) -> dict[str, Any]:
    state = {"lastState": {"terminated": {"exitCode": 1}}} if last else {}
    status = {"name": "app", "restartCount": restarts, **state, **more.pop("status", {})}
    owners = [{"kind": "ReplicaSet", "name": "rs", "uid": "o", "controller": True}] if more.pop("owned", False) else []
    spec = {"containers": [{"name": "app", **more}]}
    return {"metadata": {"ownerReferences": owners}, "spec": spec, "status": {"containerStatuses": [status]}}


STARTED = record(kinds.CONTAINER_STARTED)
EXITED = record(kinds.PROCESS_EXITED, at=9, exitCode=0, finishedAt="2026-01-01T00:00:00Z")
TERM = record(kinds.SIGNAL_SENT, signal="SIGTERM")


def said(obj: dict[str, Any], *records: Record) -> str:
    return "\n".join(unknown(obj, records))


@pytest.mark.parametrize(
    ("records", "owned", "sentence"),
    [
        (
            [record(kinds.DELETE_ACCEPTED, "")],
            False,
            "Who deleted it is not known: the API does not expose it; an audit",
        ),
        (
            [record(kinds.DELETE_ACCEPTED, "")],
            True,
            "the API does not expose it, and its owner does not say that it was",
        ),
        ([record(kinds.DELETE_ACCEPTED, "", user="jane")], False, ""),
        ([record(kinds.DELETE_ACCEPTED, ""), record(kinds.DELETION_DECIDED, "")], False, ""),
        ([], False, ""),
    ],
)
def test_who_deleted_it(records: list[Record], owned: bool, sentence: str) -> None:
    found = said(pod(owned=owned), *records)
    assert sentence in found
    assert bool(found) == bool(sentence)


def test_of_a_pod_that_never_ran_nothing_of_its_processes_is_missed() -> None:
    assert said(pod()) == ""
    assert "Only the node sees what PID 1 does" in said(pod(), STARTED)


def test_what_a_record_tells_is_not_missed() -> None:
    told = said(pod(), STARTED, record(kinds.SOCKETS_AT_EXIT), record(kinds.PROCESS_SIGNAL_STATE))
    assert "open connections" not in told
    assert "PID 1" not in told
    assert "processes that were left" in told
    seen = said(pod(), STARTED, record(kinds.PROCESS_EXITED, evidence="observed"))
    assert "processes that were left" not in seen
    assert "known to a second" not in seen
    assert "known to a second" in said(pod(), STARTED, EXITED)


@pytest.mark.parametrize(
    ("obj", "known"),
    [
        (pod(), False),
        (pod(status={"stopSignal": "SIGINT"}), True),
        (pod(lifecycle={"stopSignal": "SIGINT"}), True),
    ],
)
def test_the_name_of_the_stop_signal(obj: dict[str, Any], known: bool) -> None:
    assert ("is taken to be SIGTERM" in said(obj, STARTED, TERM)) is not known
    seen = record(kinds.SIGNAL_SENT, evidence="observed", signal="SIGTERM")
    assert "is taken to be SIGTERM" not in said(obj, STARTED, TERM, seen)


@pytest.mark.parametrize(
    ("restarts", "last", "missing"), [(0, False, False), (1, True, False), (2, True, True), (1, False, True)]
)
def test_runs_that_no_status_names(restarts: int, last: bool, missing: bool) -> None:
    assert ("Earlier runs of app are not in this report" in said(pod(restarts, last), STARTED)) is missing


@pytest.mark.parametrize(
    ("hook_at", "outcome", "unclear"), [(10, "failed", True), (5, "failed", False), (10, "succeeded", False)]
)
def test_a_hook_that_failed_when_its_container_ended(hook_at: int, outcome: str, unclear: bool) -> None:
    hook = record(kinds.PRE_STOP_FINISHED, at=hook_at, outcome=outcome)
    assert ("or because it ended, is not known" in said(pod(), STARTED, EXITED, hook)) is unclear
