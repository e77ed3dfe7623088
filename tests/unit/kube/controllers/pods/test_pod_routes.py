"""Who hears of which Pod's events."""

from typing import Any

import pytest

from lastcall.kube.api.resources import PODS
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.pods.routes import PodRoutes

Heard = list[tuple[str, str]]


def pod(owner: str = "", version: int = 1, finalizers: tuple[str, ...] = ()) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": "a", "namespace": "default", "uid": "1", "resourceVersion": str(version)}
    if owner:
        meta["ownerReferences"] = [{"kind": owner, "name": "x", "uid": f"uid of {owner}", "controller": True}]
    if finalizers:
        meta["finalizers"] = list(finalizers)
    return {"metadata": meta}


@pytest.fixture
def cache() -> Informer:
    return Informer(None, PODS)  # type: ignore[arg-type]


def followed(cache: Informer) -> Heard:
    """ReplicaSet and Job listen."""
    heard: Heard = []
    routes = PodRoutes(cache)

    def listen(kind: str) -> None:
        routes.add_handler(
            kind,
            lambda _: heard.append((kind, "added")),
            lambda old, new: heard.append((kind, "updated")),
            lambda _: heard.append((kind, "deleted")),
        )

    listen("ReplicaSet")
    listen("Job")
    return heard


def test_a_pod_that_stays_with_its_owner_is_told_to_the_owner_s_kind_alone(cache: Informer) -> None:
    heard = followed(cache)
    cache._put(pod("Job"))
    cache._put(pod("Job", 2))
    cache._deleted(pod("Job", 3))
    assert heard == [("Job", "added"), ("Job", "updated"), ("Job", "deleted")]


@pytest.mark.parametrize(
    ("before", "after"), [("Job", ""), ("", "ReplicaSet"), ("ReplicaSet", "Job"), ("", "")], ids=repr
)
def test_a_pod_that_is_nobody_s_or_changes_hands_is_told_to_all(cache: Informer, before: str, after: str) -> None:
    heard = followed(cache)
    cache._put(pod(before))
    heard.clear()
    cache._put(pod(after, 2))
    assert heard == [("ReplicaSet", "updated"), ("Job", "updated")]


def test_a_pod_that_a_finalizer_holds_is_told_to_all(cache: Informer) -> None:
    heard = followed(cache)
    cache._put(pod("ReplicaSet", 1, ("batch.kubernetes.io/job-tracking",)))
    cache._deleted(pod("ReplicaSet", 2, ("batch.kubernetes.io/job-tracking",)))
    assert heard == [(kind, what) for what in ("added", "deleted") for kind in ("ReplicaSet", "Job")]


def test_a_kind_that_nobody_listens_for_is_told_to_nobody(cache: Informer) -> None:
    heard = followed(cache)
    cache._put(pod("Widget"))
    cache._put(pod("Widget", 2))
    cache._deleted(pod("Widget", 3))
    assert heard == []


def test_who_listens_late_is_told_what_is_there(cache: Informer) -> None:
    routes = PodRoutes(cache)
    cache._put(pod("Job"))
    seen: list[str] = []
    routes.add_handler("Job", lambda each: seen.append(each["metadata"]["name"]))
    assert seen == ["a"]
