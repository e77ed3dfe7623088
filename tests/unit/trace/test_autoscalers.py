"""Which HorizontalPodAutoscaler has resized an owner of Pods."""

from typing import Any

import pytest

from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.trace.autoscalers import Autoscalers
from lastcall.trace.owners import AUTOSCALER
from lastcall.trace.pod_timeline import Moment

SECOND = 1_000_000_000


def at(seconds: float) -> Moment:
    return Moment(int(seconds * SECOND), int(seconds * SECOND))


def autoscaler(name: str, target: str = "web", kind: str = "Deployment", namespace: str = "n") -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    return {"metadata": meta, "spec": {"scaleTargetRef": {"kind": kind, "name": target}}}


def written(by: str = AUTOSCALER, seconds: float = 100) -> Record:
    facts = {
        "ofKind": "Deployment", "namespace": "n", "name": "web", "uid": "d", "resourceVersion": "7", "userAgent": by,
        "changed": ["replicas"], "from": 3, "to": 1,
    }  # fmt: skip
    moment = at(seconds)
    return Record("r", moment.at_ns, moment.wall_ns, "apiserver", kinds.OWNER_WRITTEN, facts=facts)


def named(known: Autoscalers, record: Record) -> tuple[str, str] | None:
    """(name, reason)."""
    found = known.decision(record)
    return None if found is None else (str(found.facts["owner"]), str(found.facts.get("why", "")))


def test_the_one_with_this_target_is_named_and_what_it_said_of_that_size() -> None:
    known = Autoscalers()
    others = (autoscaler("a", "other"), autoscaler("b", kind="StatefulSet"), autoscaler("c", namespace="m"))
    known.listed([*others, autoscaler("mine")], at(1))
    assert named(known, written()) == ("mine", "")
    known.said("uid-mine", 2, "of another size", at(99))
    known.said("uid-mine", 1, "long before", at(50))
    assert named(known, written()) == ("mine", "")
    known.said("uid-mine", 1, "All metrics below target", at(100.1))
    assert named(known, written()) == ("mine", "All metrics below target")


@pytest.mark.parametrize("by", ["kubectl", ""])
def test_what_somebody_else_wrote_is_no_decision_of_an_autoscaler(by: str) -> None:
    known = Autoscalers()
    known.seen(autoscaler("mine"), at(1))
    known.said("uid-mine", 1, "All metrics below target", at(100))
    assert named(known, written(by)) is None


def test_of_two_with_the_same_target_only_one_that_says_so_is_named() -> None:
    known = Autoscalers()
    known.seen(autoscaler("one"), at(1))
    known.seen(autoscaler("two"), at(1))
    assert named(known, written()) is None
    known.said("uid-two", 1, "memory", at(100))
    assert named(known, written()) == ("two", "memory")
    known.said("uid-one", 1, "cpu", at(100))
    assert named(known, written()) is None


@pytest.mark.parametrize("how", ["its watch", "a list"])
def test_one_that_had_been_deleted_before_did_not_do_it(how: str) -> None:
    known = Autoscalers()
    known.seen(autoscaler("old"), at(1))
    if how == "its watch":
        known.seen(autoscaler("old"), at(50), gone=True)
    else:
        known.listed([], at(50))
    assert named(known, written(seconds=100)) is None
    assert named(known, written(seconds=49)) == ("old", "")
