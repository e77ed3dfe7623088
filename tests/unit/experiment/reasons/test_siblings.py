"""A Pod that waits for another one of its owner: only where nothing else differs, and only who says so."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lastcall.experiment.reasons.siblings import fix_of_named_peers, fix_of_old_pod, fix_of_peers
from lastcall.world.clock import rfc3339

START = datetime(2026, 1, 1, tzinfo=UTC)


def pod(name: str, made: float, ready: float | None, **app: Any) -> dict[str, Any]:
    """`made` and `ready` are seconds; None for one that runs and is not Ready."""
    since = rfc3339(START + timedelta(seconds=made if ready is None else ready))
    token = f"kube-api-access-{name}"
    return {
        "metadata": {"name": name, "uid": name, "creationTimestamp": rfc3339(START + timedelta(seconds=made))},
        "spec": {
            "containers": [{"name": "app", "image": "app:1", "volumeMounts": [{"name": token}, {"name": "d"}], **app}],
            "volumes": [{"name": token}, {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}],
        },
        "status": {
            "conditions": [
                {"type": "Ready", "status": "False" if ready is None else "True", "lastTransitionTime": since}
            ],
            "containerStatuses": [{"name": "app", "state": {"running": {}}, "restartCount": 0}],
        },
    }


def told(old: dict[str, Any], new: dict[str, Any], at: float = 60) -> str:
    return fix_of_old_pod(new, [new, old], START + timedelta(seconds=at))


def test_a_new_pod_that_is_not_ready_beside_its_like_may_wait_for_what_that_holds() -> None:
    fix = told(pod("old", 0, 2), pod("new", 20, None))
    assert "old has the same containers and was Ready 2 s after it was made; new is not after 40 s" in fix
    assert "both have PersistentVolumeClaim data" in fix and "strategy: {type: Recreate}" in fix
    assert fix.endswith("[oldPodInTheWay]")


def crashed() -> dict[str, Any]:
    new = pod("new", 20, None)
    new["status"]["containerStatuses"][0]["restartCount"] = 1
    return new


NOT = [
    ("the old one took as long", pod("old", 0, 15), pod("new", 20, None)),
    ("another image", pod("old", 0, 2), pod("new", 20, None, image="app:2")),
    ("the new one has crashed", pod("old", 0, 2), crashed()),
    ("the other one is not ready either", pod("old", 0, None), pod("new", 20, None)),
    ("the other one is newer", pod("old", 30, 32), pod("new", 20, None)),
]


@pytest.mark.parametrize(("old", "new"), [row[1:] for row in NOT], ids=[row[0] for row in NOT])
def test_where_something_else_may_be_the_reason_nothing_is_said(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert told(old, new) == ""


PRINTED = "ring-1.ring: [Errno -3] Temporary failure in name resolution"


def member(ordinal: int, kind: str = "StatefulSet") -> dict[str, Any]:
    metadata = {"name": f"ring-{ordinal}", "ownerReferences": [{"kind": kind, "name": "ring"}]}
    return {"metadata": metadata, "spec": {"subdomain": "ring", "containers": []}}


def test_a_member_that_looks_for_one_that_comes_after_it_waits_for_ever() -> None:
    fix = fix_of_peers(member(0), ["waiting for peers", PRINTED])
    assert "it looks for ring-1, which a StatefulSet makes only when ring-0 is Ready" in fix
    assert "podManagementPolicy: Parallel" in fix and "publishNotReadyAddresses: true in its Service ring" in fix


def test_who_looks_for_one_before_it_or_is_no_member_does_not() -> None:
    assert fix_of_peers(member(1), [PRINTED]) == ""
    assert fix_of_peers(member(0, "ReplicaSet"), [PRINTED]) == ""
    assert fix_of_peers(member(0), ["ring-1.rings: unknown", "waiting"]) == ""


NAMES = "registry-0.peers,registry-1.peers,registry-2.peers"
UNREADY = "  Event Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 503"


def named(
    names: str = NAMES,
    why: str = UNREADY,
    others: tuple[str, ...] = (),
    policy: str = "OrderedReady",
    replicas: int = 3,
) -> str:
    owner = {
        "metadata": {"name": "registry", "uid": "s"},
        "spec": {"serviceName": "peers", "podManagementPolicy": policy, "replicas": replicas},
    }
    first = pod("registry-0", 0, None, env=[{"name": "POD_NAME"}, {"name": "INITIAL_CLUSTER", "value": names}])
    first["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "name": "registry", "uid": "s"}]
    return fix_of_named_peers(first, owner, [first, *(pod(each, 1, None) for each in others)], [why])


def test_a_member_that_is_given_names_of_later_ones_and_is_not_ready_may_wait_for_them() -> None:
    fix = named()
    assert "INITIAL_CLUSTER in env of app names registry-1, which the StatefulSet makes only when registry-0" in fix
    assert "If registry-0 is Ready only with its peers: podManagementPolicy: Parallel" in fix
    assert "its Service peers, unless it has that [peersNotPublished]" in fix
    assert named("registry-0,registry-1", why="Readiness probe failed: no quorum") != "", "a command that fails"


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": "Parallel"},
        {"replicas": 1},
        {"others": ("registry-1", "registry-2")},
        {"names": "registry-0.peers"},
        {"names": "my-registry-1.peers, registry-10-x"},
        {"why": UNREADY.replace("503", "404")},
        {"why": "Readiness probe failed: dial tcp 10.244.0.2:8300: connect: connection refused"},
        {"why": "Readiness probe failed: context deadline exceeded"},
    ],
    ids=str,
)
def test_where_no_member_is_missing_or_another_reason_is_seen_its_peers_are_not_named(changes: dict[str, Any]) -> None:
    assert named(**changes) == ""
