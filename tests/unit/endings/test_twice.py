"""Two Pods for the same work at the same time are told, and those that follow each other are not."""

from typing import Any

import pytest

from lastcall.endings.ending import build_endings
from lastcall.records import kinds as k

NEXT = "99999999-2222-4333-8444-555555555555"


def two(new_tape: Any, kind: str, *, began: float, names: tuple[str, str], owner: str = "o") -> tuple[str, ...]:
    """The ids of the findings of the first Pod, which was deleted at 0 and exited at 5; the next one began then."""
    first, second = new_tape(names[0]), new_tape(names[1], uid=NEXT)
    by = {"kind": kind, "name": "report", "uid": "o"}
    first.add(-9.0, "apiserver", k.POD_CREATED, namespace="default", name=names[0], user="u", owner=by, containers=[])
    first.started(at=-8.0)
    first.accepted(10)
    first.observed(10)
    first.stop(0.01, 10)
    first.exit(5.0, 0)
    second.add(
        began - 0.5, "apiserver", k.POD_CREATED, namespace="default", name=names[1], user="u",
        owner=by | {"uid": owner}, containers=[],
    )  # fmt: skip
    second.started(at=began)
    (ending,) = build_endings([*first.records, *second.records], [first.pod], kubernetes_version="1.36")
    return tuple(each.id for each in ending.findings if each.id == "ranTwice")


@pytest.mark.parametrize(
    ("kind", "began", "names", "owner", "told"),
    [
        ("Job", 1.0, ("report-a", "report-b"), "o", True),
        ("Job", 5.5, ("report-a", "report-b"), "o", False),
        ("Job", 1.0, ("report-a", "other-b"), "another", False),
        ("StatefulSet", 1.0, ("db-0", "db-0"), "o", True),
        ("StatefulSet", 1.0, ("db-0", "db-1"), "o", False),
        ("StatefulSet", 5.5, ("db-0", "db-0"), "o", False),
        ("ReplicaSet", 1.0, ("web-a", "web-b"), "o", False),
    ],
)
def test_a_successor_that_begins_before_the_end_is_told(
    new_tape: Any, kind: str, began: float, names: tuple[str, str], owner: str, told: bool
) -> None:
    assert bool(two(new_tape, kind, began=began, names=names, owner=owner)) is told


def test_pods_of_a_job_with_parallelism_that_began_before_the_deletion_are_not_its_successors(new_tape: Any) -> None:
    assert not two(new_tape, "Job", began=-4.0, names=("report-a", "report-b"))
