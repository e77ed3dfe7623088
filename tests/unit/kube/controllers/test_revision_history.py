"""The revisions of StatefulSets and DaemonSets, and what a controller remembers of its own writes.

Source: pkg/controller/history/controller_history.go, pkg/controller/controller_utils.go:ControllerExpectations.
"""

from collections.abc import Awaitable, Callable

import pytest
from fake_api import FakeAPI

from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.api.resources import CONTROLLERREVISIONS, PODS, STATEFULSETS
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.errors import namespace_is_terminating
from lastcall.kube.controllers.expectations import EXPIRY_SECONDS, Expectations
from lastcall.kube.controllers.history import (
    HASH_LABEL,
    RevisionWriter,
    by_revision,
    equal,
    new_revision,
    next_number,
    revision_data,
    revision_of_pod,
    with_revision,
)
from lastcall.kube.controllers.written import Written
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

LABELS = {"app": "web"}


def owner(image: str = "app:1") -> dict:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "app", "image": image}]}}
    meta = {"name": "web", "namespace": "default", "uid": "u"}
    return {"metadata": meta, "spec": {"template": template, "replicas": 2}}


def revision(number: int, image: str = "app:1", **more: object) -> dict:
    return {**new_revision(owner(image), STATEFULSETS, number, None, LABELS), **more}


def names(revisions: list) -> list[str]:
    return [each["metadata"]["name"] for each in revisions]


def test_a_revision_is_a_patch_with_its_keys_in_order_and_brings_the_template_back() -> None:
    of = owner()
    data = revision_data(of)
    assert list(data["spec"]["template"]) == ["$patch", "metadata", "spec"]
    assert list(data["spec"]["template"]["spec"]["containers"][0]) == ["image", "name"]
    assert data["spec"]["template"]["$patch"] == "replace"
    assert with_revision(owner("app:2"), {"data": data}) == of
    with_revision(of, {"data": data})["spec"]["template"]["spec"]["containers"][0]["image"] = "changed"
    assert data == revision_data(owner())


def test_a_new_revision_is_named_by_its_hash_and_owned() -> None:
    made = revision(3)
    value = made["metadata"]["labels"][HASH_LABEL]
    assert (made["metadata"]["name"], made["metadata"]["namespace"], made["revision"]) == (f"web-{value}", "default", 3)
    assert made["metadata"]["labels"] == {"app": "web", HASH_LABEL: value}
    (reference,) = made["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["uid"], reference["controller"]) == ("StatefulSet", "u", True)
    assert made["data"] == revision_data(owner())
    assert new_revision(owner(), STATEFULSETS, 3, 1, LABELS)["metadata"]["name"] != made["metadata"]["name"]
    assert "other" in new_revision(owner(), STATEFULSETS, 3, None, {}, "other")["metadata"]["labels"]


def test_revisions_are_ordered_by_number_then_time_then_name() -> None:
    rows = [(2, "t1", "a"), (1, "t2", "b"), (1, "t1", "d"), (1, "t1", "c")]
    made = [{"revision": n, "metadata": {"creationTimestamp": t, "name": name}} for n, t, name in rows]
    assert names(by_revision(made)) == ["c", "d", "b", "a"]
    assert (next_number(made), next_number([])) == (2, 1)


def test_revisions_are_equal_by_what_they_hold() -> None:
    assert equal(revision(1), revision(2)) and not equal(revision(1), revision(1, "app:2"))
    assert revision_of_pod({"metadata": {"labels": {"controller-revision-hash": "x"}}}) == "x"
    assert revision_of_pod({"metadata": {}}) == ""


def run(test: Callable[[FakeAPI, RevisionWriter], Awaitable[None]]) -> FakeAPI:
    found: list[FakeAPI] = []

    async def main(world: World) -> None:
        api = FakeAPI(world)
        found.append(api)
        await test(api, RevisionWriter(api, STATEFULSETS))

    run_virtual(main)
    return found[0]


def writes(api: FakeAPI) -> list[str]:
    return [call[0] for call in api.calls]


def test_the_first_template_and_each_new_one_get_the_next_number() -> None:
    async def test(api: FakeAPI, writer: RevisionWriter) -> None:
        first, collisions = await writer.current(owner(), [], None, LABELS)
        assert (first["revision"], collisions) == (1, None)
        second, collisions = await writer.current(owner("app:2"), [first], 5, LABELS)
        assert (second["revision"], collisions) == (2, 5)
        assert await writer.current(owner("app:2"), [first, second], 5, LABELS) == (second, 5)

    assert writes(run(test)) == ["create", "create"]


def test_an_earlier_template_gets_a_new_number() -> None:
    async def test(api: FakeAPI, writer: RevisionWriter) -> None:
        first, _ = await writer.current(owner(), [], None, LABELS)
        second, _ = await writer.current(owner("app:2"), [first], None, LABELS)
        again, collisions = await writer.current(owner(), [first, second], 7, LABELS)
        assert (names([again]), again["revision"], collisions) == (names([first]), 3, 7)
        assert first["revision"] == 1, "the cache's object stays as it is"
        assert len(api.of(CONTROLLERREVISIONS)) == 2

    assert writes(run(test)) == ["create", "create", "update"]


def test_of_several_revisions_of_one_template_the_newest_gets_the_new_number() -> None:
    """stateful_set.go:getStatefulSetRevisions: equalRevisions[equalCount-1]."""

    async def test(api: FakeAPI, writer: RevisionWriter) -> None:
        old = [
            api.put(CONTROLLERREVISIONS, revision(number, image, metadata={"name": name, "namespace": "default"}))
            for number, image, name in ((1, "app:1", "a"), (2, "app:1", "b"), (3, "app:2", "c"))
        ]
        again, _ = await writer.current(owner(), old, None, LABELS)
        assert (names([again]), again["revision"]) == (["b"], 4)

    assert writes(run(test)) == ["update"]


def test_a_revision_that_exists_already_is_taken_and_another_of_its_name_counts_as_a_collision() -> None:
    async def test(api: FakeAPI, writer: RevisionWriter) -> None:
        there = api.put(CONTROLLERREVISIONS, revision(1))
        assert await writer.current(owner(), [], None, LABELS) == (there, None)
        api.put(CONTROLLERREVISIONS, {**revision(1), "data": {"other": 1}})
        made, collisions = await writer.current(owner(), [], None, LABELS)
        assert collisions == 1 and made["data"] == revision_data(owner()) and made["revision"] == 1
        api.put(CONTROLLERREVISIONS, {**made, "data": {"other": 1}})
        _, collisions = await writer.current(owner(), [], 1, LABELS)
        assert collisions == 2

    run(test)


def test_what_else_the_api_refuses_is_an_error() -> None:
    async def test(api: FakeAPI, writer: RevisionWriter) -> None:
        api.fail_next("create", "controllerrevisions", status_failure(403, "Forbidden", "no"))
        with pytest.raises(StatusError, match="no"):
            await writer.current(owner(), [], None, LABELS)
        api.fail_next("delete", "controllerrevisions", status_failure(403, "Forbidden", "no"))
        with pytest.raises(StatusError, match="no"):
            await writer.truncate([api.put(CONTROLLERREVISIONS, revision(1))], [], 0)

    run(test)


@pytest.mark.parametrize(
    ("live", "limit", "kept"),
    [
        ([], 9, ["r1", "r2", "r3", "r4"]), ([], 4, ["r1", "r2", "r3", "r4"]), ([], 3, ["r2", "r3", "r4"]),
        ([], 0, []), (["r1"], 2, ["r1", "r3", "r4"]), (["r1", "r4"], 0, ["r1", "r4"]),
    ],
)  # fmt: skip
def test_the_oldest_revisions_that_no_pod_has_go_beyond_the_limit(live: list, limit: int, kept: list) -> None:
    async def test(api: FakeAPI, writer: RevisionWriter) -> None:
        made = []
        for number in range(1, 5):
            each = revision(number)
            each["metadata"]["name"] = f"r{number}"
            made.append(api.put(CONTROLLERREVISIONS, each))
        await writer.truncate(made, live, limit)
        assert sorted(names(api.of(CONTROLLERREVISIONS))) == kept
        await writer.truncate(made, live, limit)  # they are gone already

    run(test)


# -- what a controller remembers -----------------------------------------------------------------------------------


def test_expectations_may_be_added_to_and_forgotten() -> None:
    async def main(world: World) -> None:
        expected = Expectations(world.clock)
        expected.creation_observed("k")
        expected.deletion_observed("k", "a")
        expected.expect_more("k", 1, ["a"])
        await world.clock.sleep(EXPIRY_SECONDS / 2)
        expected.expect_more("k", 1, ["b"])
        for observe in (
            lambda: expected.creation_observed("k"),
            lambda: expected.deletion_observed("k", "a"),
            lambda: expected.deletion_observed("k", "b"),
        ):
            observe()
            assert not expected.satisfied("k")
        expected.creation_observed("k")
        assert expected.satisfied("k")
        expected.creation_observed("k")
        expected.expect_more("k", 1, [])
        assert not expected.satisfied("k"), "what was seen too often counts for nothing"
        assert expected.satisfied("other")
        expected.forget("k")
        expected.forget("k")
        assert expected.satisfied("k")

    run_virtual(main)


def test_more_is_expected_for_as_long_as_the_first() -> None:
    async def main(world: World) -> None:
        expected = Expectations(world.clock)
        await world.clock.sleep(10)
        expected.expect_more("k", 1, [])
        await world.clock.sleep(EXPIRY_SECONDS - 1)
        expected.expect_more("k", 1, [])
        await world.clock.sleep(1)
        assert not expected.satisfied("k")
        await world.clock.sleep(1)
        assert expected.satisfied("k")
        assert EXPIRY_SECONDS == 300.0

    run_virtual(main)


def pod(version: str, uid: str = "u", name: str = "p") -> dict:
    return {"metadata": {"name": name, "namespace": "default", "uid": uid, "resourceVersion": version}}


@pytest.mark.parametrize(
    ("cached", "mine", "newest"),
    [
        (pod("5"), pod("6"), "6"), (pod("6"), pod("6"), "6"), (pod("10"), pod("9"), "10"),
        (pod("5", "other"), pod("6"), "5"), (pod("5"), pod("x"), "5"), (None, pod("6"), None),
    ],
)  # fmt: skip
def test_a_controllers_own_write_counts_until_the_cache_shows_it(
    cached: dict | None, mine: dict, newest: str | None
) -> None:
    cache = Informer(None, PODS)  # type: ignore[arg-type]
    known: Written = Written(cache)
    if cached is not None:
        cache._put(cached)
    assert known.remember(mine) is mine
    for _ in range(2):
        found = known.get("default", "p")
        assert (found["metadata"]["resourceVersion"] if found else None) == newest
    assert known.items() == ([] if cached is None else [found])
    if newest == "6" and cached["metadata"]["resourceVersion"] == "5":
        known.forget(mine)
        known.forget(mine)
        assert known.get("default", "p") is cached


def test_a_write_that_the_cache_has_overtaken_is_not_kept() -> None:
    cache = Informer(None, PODS)  # type: ignore[arg-type]
    known: Written = Written(cache)
    cache._put(pod("7"))
    known.remember(pod("6"))
    assert known.get("default", "p")["metadata"]["resourceVersion"] == "7"
    assert known._newer == {}
    assert known.get("default", "other") is None


@pytest.mark.parametrize(
    ("causes", "expected"),
    [
        ([{"reason": "NamespaceTerminating"}], True),
        ([{"reason": "Other"}, {"reason": "NamespaceTerminating"}], True),
        ([{"reason": "Other"}], False),
        ([], False),
        (None, False),
    ],
)
def test_a_namespace_that_goes_is_a_cause_of_its_own(causes: list | None, expected: bool) -> None:
    error = status_failure(403, "Forbidden", "no")
    assert not namespace_is_terminating(error)
    error.status["details"] = {"causes": causes}
    assert namespace_is_terminating(error) is expected
