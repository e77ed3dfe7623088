"""What all owners of Pods share: claims, expectations, slow start, Pods from templates."""

import asyncio

import pytest

from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.api.resources import PODS, REPLICASETS
from lastcall.kube.api.selectors import selector_of_expressions
from lastcall.kube.controllers.expectations import EXPIRY_SECONDS, Expectations
from lastcall.kube.controllers.ownership import Claim, claim, controller_reference, decide_claim
from lastcall.kube.controllers.pods.control import pod_from_template, seconds_until_available, slow_start_batch
from lastcall.world.virtual import run_virtual

OWNER = {"metadata": {"name": "web", "namespace": "default", "uid": "u1"}}
SELECTOR = selector_of_expressions({"matchLabels": {"app": "web"}})


def pod(name, *, labels=None, owner="", terminating=False, namespace="default"):
    meta = {"name": name, "namespace": namespace, "uid": name, "labels": {"app": "web"} if labels is None else labels}
    if owner:
        meta["ownerReferences"] = [{"uid": owner, "controller": True, "name": "x", "kind": "ReplicaSet"}]
    if terminating:
        meta["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    return {"metadata": meta}


CLAIMS = [
    ("its own that match are owned", pod("a", owner="u1"), "owned"),
    ("its own that match no more are released", pod("a", owner="u1", labels={}), "release"),
    ("orphans that match are adopted", pod("a"), "adopt"),
    ("orphans that do not match are left alone", pod("a", labels={}), None),
    ("a terminating orphan is left alone", pod("a", terminating=True), None),
    ("somebody else's are left alone", pod("a", owner="u2"), None),
    ("an orphan of another namespace is left alone", pod("a", namespace="shop"), None),
]


@pytest.mark.parametrize(("found", "expected"), [case[1:] for case in CLAIMS], ids=[case[0] for case in CLAIMS])
def test_claims(found, expected):
    decision = decide_claim(OWNER, SELECTOR, [found])
    wanted = {name: (found,) if name == expected else () for name in ("owned", "adopt", "release")}
    assert decision == Claim(**wanted)


def test_a_terminating_owner_neither_adopts_nor_releases():
    owner = {"metadata": {**OWNER["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}}
    decision = decide_claim(owner, SELECTOR, [pod("a"), pod("b", owner="u1", labels={})])
    assert decision == Claim((), (), ())


class Client:
    def __init__(self, owner):
        self.owner = owner
        self.patches = []

    async def get(self, resource, name, namespace=""):
        assert (resource, name) == (REPLICASETS, "web")
        return self.owner

    async def patch(self, resource, name, patch, namespace="", *, content_type=""):
        self.patches.append((name, patch["metadata"], content_type))
        return {"metadata": {"name": name, "uid": name}}


def test_adoption_and_release_are_strategic_merge_patches_that_name_the_uid():
    client = Client(OWNER)
    decision = decide_claim(OWNER, SELECTOR, [pod("a"), pod("b", owner="u1", labels={}), pod("c", owner="u1")])
    claimed = asyncio.run(claim(client, OWNER, REPLICASETS, PODS, decision))
    assert [each["metadata"]["name"] for each in claimed] == ["c", "a"]
    strategic = "application/strategic-merge-patch+json"
    assert client.patches == [
        ("a", {"ownerReferences": [controller_reference(OWNER, REPLICASETS)], "uid": "a"}, strategic),
        ("b", {"ownerReferences": [{"$patch": "delete", "uid": "u1"}], "uid": "b"}, strategic),
    ]


def test_nothing_is_adopted_when_the_api_says_that_the_owner_is_being_deleted():
    client = Client({"metadata": {**OWNER["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}})
    decision = decide_claim(OWNER, SELECTOR, [pod("a")])
    with pytest.raises(Exception, match="default/web has just been deleted"):
        asyncio.run(claim(client, OWNER, REPLICASETS, PODS, decision))
    assert client.patches == []


@pytest.mark.parametrize(
    ("code", "reason", "raised"),
    [(404, "NotFound", False), (422, "Invalid", False), (409, "Conflict", True), (500, "InternalError", True)],
)
def test_what_is_gone_is_neither_adopted_nor_released_and_any_other_refusal_is_an_error(code, reason, raised):
    """controller_ref_manager.go:AdoptPod, ReleasePod: NotFound and Invalid mean that another one has the name."""

    class Refuses(Client):
        async def patch(self, *said, **more):
            raise status_failure(code, reason, "no")

    for decision in (Claim((), (pod("orphan"),), ()), Claim((), (), (pod("other"),))):
        run = claim(Refuses(OWNER), OWNER, REPLICASETS, PODS, decision)
        if raised:
            with pytest.raises(StatusError):
                run_virtual(lambda world, run=run: run)
        else:
            assert run_virtual(lambda world, run=run: run) == []


def test_expectations_hold_until_all_is_seen_or_five_minutes_are_over():
    async def scenario(world):
        expected = Expectations(world.clock)
        assert expected.satisfied("k")
        expected.expect_creations("k", 2)
        expected.creation_observed("k")
        assert not expected.satisfied("k")
        expected.creation_observed("k")
        assert expected.satisfied("k")
        expected.expect_deletions("k", ["a", "b"])
        expected.deletion_observed("k", "a")
        expected.deletion_observed("k", "a")
        assert not expected.satisfied("k")
        expected.deletion_observed("k", "b")
        assert expected.satisfied("k")
        expected.expect_deletions("k", ["never"])
        await world.clock.sleep(EXPIRY_SECONDS)
        assert not expected.satisfied("k")
        await world.clock.sleep(1)
        assert expected.satisfied("k")

    run_virtual(scenario)


@pytest.mark.parametrize(
    ("count", "fails_from", "batches"),
    [(0, 99, []), (1, 99, [1]), (10, 99, [1, 2, 4, 3]), (10, 3, [1, 2, 4]), (10, 0, [1])],
)
def test_a_slow_start_doubles_its_batches_and_stops_at_the_first_error(count, fails_from, batches):
    started = []
    running = 0

    async def act():
        nonlocal running
        running += 1
        started.append(running)
        await asyncio.sleep(0)
        running -= 1
        if len(started) > fails_from:
            raise ValueError("no")

    done, error = asyncio.run(slow_start_batch(count, act))
    assert len(started) == sum(batches)
    assert max(started, default=0) == max(batches, default=0)
    assert (error is None) == (fails_from == 99)
    assert done == (count if error is None else fails_from)


def test_a_pod_from_a_template_has_the_templates_metadata_and_one_owner():
    template = {
        "metadata": {"labels": {"app": "web"}, "annotations": {"k": "v"}, "finalizers": ["a/b"], "name": "ignored"},
        "spec": {"containers": []},
    }
    reference = controller_reference(OWNER, REPLICASETS)
    assert pod_from_template(template, "web", reference)["metadata"] == {
        "generateName": "web-", "labels": {"app": "web"}, "annotations": {"k": "v"}, "finalizers": ["a/b"],
        "ownerReferences": [reference],
    }  # fmt: skip


def test_availability_counts_from_the_moment_of_readiness():
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:10Z"}
    assert seconds_until_available({"status": {"conditions": [ready]}}, 0, 10.0) == 0.0
    assert seconds_until_available({"status": {"conditions": [ready]}}, 5, 12.0) == 3.0
    assert seconds_until_available({"status": {"conditions": [ready]}}, 5, 15.0) == 0.0
    assert seconds_until_available({"status": {"conditions": [{**ready, "status": "False"}]}}, 0, 99.0) is None
    assert seconds_until_available({"status": {}}, 0, 99.0) is None
