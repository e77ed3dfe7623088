"""The Pods of each owner, kept with every change, are what a look through all Pods finds."""

from hypothesis import given
from hypothesis import strategies as st

from lastcall.kube.api.pods.spec import is_pod_ready, is_pod_terminal
from lastcall.kube.api.resources import PODS
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.ownership import owner_value
from lastcall.kube.controllers.pods.owned import PodsByOwner

OWNERS = ("u1", "u2", "")
LABELS = ({"app": "web"}, {"app": "web", "hash": "1"}, {})


def pod(
    name: str, uid: str, version: int, owner: str, labels: dict, phase: str, ready: bool, terminating: bool
) -> dict:
    meta = {"name": name, "namespace": "default", "uid": uid, "labels": labels, "resourceVersion": str(version)}
    if owner:
        meta["ownerReferences"] = [{"uid": owner, "controller": True, "name": "x", "kind": "ReplicaSet"}]
    if terminating:
        meta["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"metadata": meta, "status": {"phase": phase, "conditions": conditions}}


STATES = st.tuples(
    st.sampled_from(("a", "b", "c", "d")),
    st.sampled_from(("1", "2")),
    st.sampled_from(OWNERS),
    st.sampled_from(LABELS),
    st.sampled_from(("Pending", "Running", "Succeeded", "Failed")),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(STATES, max_size=40))
def test_what_is_kept_is_what_a_look_at_every_pod_finds(changes: list[tuple]) -> None:
    cache = Informer(None, PODS)  # type: ignore[arg-type]
    kept = PodsByOwner(cache)
    for version, (name, life, owner, labels, phase, ready, terminating, gone) in enumerate(changes, 1):
        made = pod(name, f"{name}-{life}", version, owner, labels, phase, ready, terminating)
        if gone:
            cache._deleted(made)
        else:
            cache._put(made)
        for value in (*(each for each in OWNERS if each), "orphan/default"):
            mine = [each for each in cache.items() if owner_value(each) == value]
            living = [each for each in mine if not is_pod_terminal(each)]
            active = [each for each in living if "deletionTimestamp" not in each["metadata"]]
            found = kept.of(value)
            assert sorted(map(id, kept.active(found))) == sorted(map(id, active))
            assert len(found.terminating) == len(living) - len(active)
            assert found.ready == sum(map(is_pod_ready, active))
            assert all(each["metadata"]["labels"] in found.labels for each in active)
            for wanted in LABELS:
                assert found.labeled(wanted) == sum(
                    wanted.items() <= each["metadata"]["labels"].items() for each in active
                )
    for each in cache.items():
        cache._deleted(each)
    assert not kept._owners
    assert not kept._states
