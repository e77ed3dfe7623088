"""Stories by hand: what the fields say, and nothing around it."""

from collections.abc import Callable
from typing import Any

import pytest

from lastcall.endings.node_facts import Sockets
from lastcall.endings.story import (
    Budget,
    ContainerEnding,
    DecidedBy,
    Ending,
    Entry,
    Exit,
    PodFacts,
    PreStop,
    Seen,
    Stop,
)
from lastcall.records import kinds as k
from lastcall.records.record import Record

UID = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def ending_of() -> Callable[..., Ending]:
    """`ending_of(container(…), owner=("ReplicaSet", "web-7d9f8b6c5d"), grace=30, …)`."""

    def make(
        *containers: ContainerEnding,
        owner: tuple[str, str] | None = None,
        uid: str = UID,
        name: str = "web-7d9f8b6c5d-x2x4q",
        namespace: str = "shop",
        outcome: Any = "graceful",
        used: tuple[float, float, float] | None = None,
        grace: int = 30,
        **more: Any,
    ) -> Ending:
        facts: dict[str, Any] = {"namespace": namespace, "name": name, "user": "me", "containers": []}
        if owner is not None:
            facts["owner"] = {"kind": owner[0], "name": owner[1], "uid": "o-1"}
        created = Record("apiserver-b-1", 1, 10**18, "apiserver", k.POD_CREATED, uid, "", "", facts)
        deleted = Record(
            "apiserver-b-2", 2, 10**18 + 10**9, "apiserver", k.DELETE_ACCEPTED, uid, "", "", {"user": "me"}
        )
        budget = None
        if used is not None:
            hook, waiting, drain = used
            rest = grace - hook - waiting - drain
            budget = Budget("app", grace, hook, waiting, drain, max(rest, 0.0), max(-rest, 0.0))
        more.setdefault("decided_by", DecidedBy("user", "deleted", "it was deleted", user="me", chain=(deleted.id,)))
        more.setdefault("entries", (Entry(created, -1.0), Entry(deleted, 0.0)))
        return Ending(
            pod=PodFacts(uid, namespace, name, "node-1"),
            zero_ns=2,
            zero_kind=k.DELETE_ACCEPTED,
            deleted_at_ns=deleted.wall_ns,
            grace_seconds=grace,
            outcome=outcome,
            containers=containers,
            budget=budget,
            **more,
        )

    return make


@pytest.fixture
def container() -> Callable[..., ContainerEnding]:
    """A container that got its signal after 2 s and ended 3 s later, or as the fields of its exit say."""

    def make(
        name: str = "app",
        *,
        signal_at: float | None = 2.0,
        hook: PreStop | None = None,
        sockets: Sockets | None = None,
        **fields: Any,
    ) -> ContainerEnding:
        ended = Exit(**{"at": 5.0, "code": 0, "ended_by": "node", **fields})
        stop, seen = Stop(signal_at=signal_at), Seen(sockets=sockets)
        return ContainerEnding(name, "container", started=True, stop=stop, exit=ended, hook=hook, seen=seen)

    return make
