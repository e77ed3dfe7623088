"""What a StatefulSet does next, as tables (statefulset/decide.py)."""

from datetime import UTC, datetime, timedelta

import pytest

from lastcall.kube.controllers.statefulset.decide import (
    POD_INDEX,
    POD_NAME,
    Decision,
    Revisions,
    claims_of,
    complete_rolling_update,
    decide,
    identity_matches,
    is_scaled_away,
    new_pod,
    parent_and_ordinal,
    pod_for,
    status_of,
)
from lastcall.world.clock import rfc3339

MOMENT = datetime(2030, 1, 1, tzinfo=UTC)
NOW = MOMENT.timestamp()


def at(seconds_ago: float) -> str:
    return rfc3339(MOMENT - timedelta(seconds=seconds_ago))


def owner(replicas: int = 3, *, kind: str = "RollingUpdate", start: int = 0, **spec: object) -> dict:
    ordinals = {"ordinals": {"start": start}} if start else {}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app"}]}}
    rules = {
        "replicas": replicas,
        "template": template,
        "updateStrategy": {"type": kind},
        "selector": {"matchLabels": {"app": "web"}},
    }
    meta = {"name": "web", "namespace": "default", "uid": "u", "generation": 4}
    return {"metadata": meta, "spec": {**rules, **ordinals, **spec}, "status": {}}


def pod(
    ordinal: int, *, ready: float | None = 100, phase: str = "Running", revision: str = "new", **meta: object
) -> dict:
    name = f"web-{ordinal}"
    labels = {POD_NAME: name, POD_INDEX: str(ordinal), "controller-revision-hash": revision}
    conditions = [] if ready is None else [{"type": "Ready", "status": "True", "lastTransitionTime": at(ready)}]
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels, **meta},
        "spec": {"containers": [{"name": "app"}]},
        "status": {"phase": phase, "conditions": conditions},
    }


ENDING = {"deletionTimestamp": at(1)}


def revisions(of: dict, current: str = "old", update: str = "new") -> Revisions:
    return Revisions(current, update, of, of)


def steps(of: dict, *pods: dict) -> list[tuple[str, str, str]]:
    made = decide(of, revisions(of), pods, NOW).steps
    return [(each.verb, each.pod["metadata"]["name"], each.reason) for each in made]


PARALLEL = {"podManagementPolicy": "Parallel"}


@pytest.mark.parametrize(
    ("of", "pods", "expected"),
    [
        (owner(2), [], [("create", "web-0", "")]),
        (owner(2, start=5), [], [("create", "web-5", "")]),
        (owner(2), [pod(0)], [("create", "web-1", "")]),
        (owner(2), [pod(0, ready=None)], []),
        (owner(2), [pod(0, **ENDING)], []),
        (owner(2), [pod(0, phase="Failed", ready=None)], [("delete", "web-0", "ended")]),
        (owner(2), [pod(0, phase="Succeeded", ready=None)], [("delete", "web-0", "ended")]),
        (owner(2), [pod(0, phase="Failed", ready=None, **ENDING)], []),
        (owner(2), [pod(0), pod(1)], []),
        (owner(3, **PARALLEL), [pod(1, ready=None)], [("create", "web-0", ""), ("create", "web-2", "")]),
        (
            owner(2, **PARALLEL), [pod(0, phase="Failed", ready=None), pod(2), pod(3)],
            [
                ("delete", "web-0", "ended"), ("create", "web-1", ""),
                ("delete", "web-3", "scaling"), ("delete", "web-2", "scaling"),
            ],
        ),
        (owner(0, **PARALLEL), [pod(0, **ENDING), pod(1)], [("delete", "web-1", "scaling")]),
        (owner(1), [pod(0), pod(1), pod(2)], [("delete", "web-2", "scaling")]),
        (owner(1), [pod(0), pod(1), pod(2, **ENDING)], []),
        (owner(1), [pod(0), pod(1), pod(2, ready=None)], [("delete", "web-2", "scaling")]),
        (owner(1), [pod(0), pod(1, ready=None), pod(2, ready=None)], []),
        (owner(1), [pod(0), pod(1, ready=None), pod(2)], [("delete", "web-2", "scaling")]),
        (owner(2, start=1), [pod(0), pod(1), pod(2)], [("delete", "web-0", "scaling")]),
    ],
)  # fmt: skip
def test_ordinals_are_filled_from_below_and_emptied_from_above(of: dict, pods: list, expected: list) -> None:
    assert steps(of, *pods) == expected
    assert steps(of, *reversed(pods)) == expected


@pytest.mark.parametrize(
    ("of", "pods", "expected"),
    [
        (owner(2), [pod(0, revision="old"), pod(1, revision="old")], ["web-1"]),
        (owner(2), [pod(0, revision="old"), pod(1)], ["web-0"]),
        (owner(2), [pod(0, revision="old"), pod(1, ready=5)], ["web-0"]),
        (owner(2), [pod(0, revision="old", ready=0), pod(1, ready=0)], ["web-0"]),
        (
            owner(2, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {}}),
            [pod(0, revision="old"), pod(1)], ["web-0"],
        ),
        (owner(2, minReadySeconds=10, **PARALLEL), [pod(0, revision="old"), pod(1, ready=5)], []),
        (owner(2, **PARALLEL), [pod(0, revision="old"), pod(1, ready=None)], []),
        (owner(2, **PARALLEL), [pod(0, revision="old"), pod(1, revision="old", **ENDING)], []),
        (owner(2, kind="OnDelete"), [pod(0, revision="old"), pod(1, revision="old")], []),
        (
            owner(2, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}),
            [pod(0, revision="old"), pod(1)], [],
        ),
        (
            owner(2, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}),
            [pod(0, revision="old"), pod(1, revision="old")], ["web-1"],
        ),
        (
            owner(2, start=3, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}),
            [pod(3, revision="old"), pod(4)], [],
        ),
        (owner(2, start=3), [pod(3, revision="old"), pod(4)], ["web-3"]),
    ],
)  # fmt: skip
def test_a_rollout_replaces_one_pod_at_a_time_from_the_highest_ordinal(of: dict, pods: list, expected: list) -> None:
    assert steps(of, *pods) == [("delete", name, "rollout") for name in expected]


def rolling(most: int | str, replicas: int = 4, **spec: object) -> dict:
    update = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": most, "partition": 0}}
    return owner(replicas, updateStrategy=update, **spec)


OLD = {"revision": "old"}


@pytest.mark.parametrize(
    ("of", "pods", "expected"),
    [
        (rolling(2), [pod(n, **OLD) for n in range(4)], [3, 2]),
        (rolling("50%"), [pod(n, **OLD) for n in range(4)], [3, 2]),
        (rolling("10%"), [pod(n, **OLD) for n in range(4)], [3]),  # rounded down, but never to none
        (rolling(9), [pod(n, **OLD) for n in range(4)], [3, 2, 1, 0]),
        (rolling(2), [pod(0, **OLD), pod(1, **OLD), pod(2), pod(3)], [1, 0]),
        (rolling(2, **PARALLEL), [pod(0, **OLD), pod(1, **OLD), pod(2), pod(3, ready=None)], [1]),
        (rolling(2, **PARALLEL), [pod(0, **OLD), pod(1, **OLD), pod(2, **OLD, **ENDING), pod(3, ready=None)], []),
        # What is broken and old is what the update is for, and takes no place.
        (rolling(1, **PARALLEL), [pod(n, **OLD, ready=None) for n in range(4)], [3]),
        (rolling(1, **PARALLEL), [pod(0, **OLD, ready=None), pod(1, **OLD), pod(2), pod(3)], [1]),
    ],
)
def test_with_max_unavailable_as_many_pods_go_as_are_not_unavailable_already(
    of: dict, pods: list, expected: list
) -> None:
    """(kubernetes#137666; the gate is on by default since 1.37)"""
    assert steps(of, *pods) == [("delete", f"web-{ordinal}", "rollout") for ordinal in expected]


def test_a_set_that_is_recreated_ends_all_old_pods_before_it_makes_one() -> None:
    """(KEP-3541, kubernetes#137187)"""
    of = owner(2, kind="Recreate")
    old = [pod(0, **OLD), pod(1, ready=None, **OLD), pod(2, **OLD)]
    assert steps(of, *old) == [("delete", f"web-{ordinal}", "rollout") for ordinal in range(3)]
    assert steps(of, pod(1, **OLD, **ENDING)) == [], "one that ends is waited for"
    assert steps(of) == [("create", "web-0", "")], "then they are made in order"
    assert [name for _, name, _ in steps(owner(2, kind="Recreate", **PARALLEL))] == ["web-0", "web-1"]
    assert steps(of, pod(0), pod(1)) == []


def test_a_set_that_is_deleted_does_nothing() -> None:
    of = owner(3)
    of["metadata"]["deletionTimestamp"] = at(1)
    assert decide(of, revisions(of), [], NOW) == Decision()


def test_an_ordered_set_waits_until_each_pod_is_available() -> None:
    of = owner(2, minReadySeconds=30)
    decision = decide(of, revisions(of), [pod(0, ready=10)], NOW)
    assert (decision.steps, decision.look_again) == ((), 20.0)
    parallel = owner(2, minReadySeconds=30, **PARALLEL)
    decision = decide(parallel, revisions(parallel), [pod(0, ready=10), pod(1, ready=25)], NOW)
    assert (decision.steps, decision.look_again) == ((), 5.0)


def test_a_set_creates_at_most_500_pods_at_once() -> None:
    assert len(steps(owner(2**31 - 1, **PARALLEL))) == 500


def test_labels_of_an_identity_are_brought_back() -> None:
    of, lost = owner(1), pod(0)
    del lost["metadata"]["labels"][POD_NAME]
    (step,) = decide(of, revisions(of), [lost], NOW).steps
    assert step.verb == "update" and step.pod["metadata"]["labels"] == pod(0)["metadata"]["labels"]
    assert POD_NAME not in lost["metadata"]["labels"], "the stored object stays as it is"
    lost["metadata"]["deletionTimestamp"] = at(1)
    assert steps(owner(1, **PARALLEL), lost) == []


def test_an_identity_is_name_and_both_labels() -> None:
    assert identity_matches(owner(), pod(0))
    other, without, wrong = pod(0), pod(0), pod(0)
    other["metadata"]["name"] = "db-0"
    del without["metadata"]["labels"][POD_INDEX]
    wrong["metadata"]["labels"][POD_INDEX] = "1"
    assert [identity_matches(owner(), each) for each in (other, without, wrong)] == [False, True, False]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("web-2", ("web", 2)),
        ("a-b-10", ("a-b", 10)),
        ("web", ("", -1)),
        ("web-x", ("", -1)),
        ("web-99999999999", ("", -1)),
    ],
)
def test_a_name_tells_the_set_and_the_ordinal(name: str, expected: tuple[str, int]) -> None:
    assert parent_and_ordinal({"metadata": {"name": name}}) == expected


def test_ordinals_outside_the_wanted_ones_are_scaled_away() -> None:
    assert [is_scaled_away(owner(2, start=1), pod(ordinal)) for ordinal in range(4)] == [True, False, False, True]


class TheirClaims:
    """Claims about which each question is answered with the names given."""

    def __init__(self, *, stale: tuple = (), missing: tuple = (), wrong_owner: tuple = ()) -> None:
        self.stale = lambda pod: pod["metadata"]["name"] in stale
        self.missing = lambda pod: pod["metadata"]["name"] in missing
        self.wrong_owner = lambda pod: pod["metadata"]["name"] in wrong_owner


def test_no_pod_is_made_while_the_claim_of_an_earlier_one_goes() -> None:
    of = owner(2)
    assert decide(of, revisions(of), [], NOW, TheirClaims(stale=("web-0",))) == Decision()
    parallel = owner(2, **PARALLEL)
    (step,) = decide(parallel, revisions(parallel), [], NOW, TheirClaims(stale=("web-0",))).steps
    assert step.pod["metadata"]["name"] == "web-1"


def test_pods_whose_claims_need_something_are_named() -> None:
    of, waiting = owner(1), pod(0, phase="Pending", ready=None)
    assert decide(of, revisions(of), [waiting], NOW, TheirClaims(missing=("web-0",))).claims == (waiting,)
    assert decide(of, revisions(of), [pod(0)], NOW, TheirClaims(missing=("web-0",))).claims == ()
    here, surplus = pod(0), pod(1)
    found = decide(of, revisions(of), [here, surplus], NOW, TheirClaims(wrong_owner=("web-0", "web-1")))
    assert found.claims == (here, surplus)


@pytest.mark.parametrize(
    ("update", "status", "current"),
    [
        ({"type": "RollingUpdate"}, {"currentReplicas": 2}, [True, True, False]),
        ({"type": "RollingUpdate"}, {}, [False, False, False]),
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}, {"currentReplicas": 3}, [True, False, False]),
        ({"type": "OnDelete"}, {"currentReplicas": 2}, [False, False, False]),
    ],
)
def test_ordinals_below_the_partition_get_the_current_revision(update: dict, status: dict, current: list) -> None:
    of = owner(3, start=4, updateStrategy=update)
    of["status"] = status
    made = [
        pod_for(of, revisions(of), ordinal)["metadata"]["labels"]["controller-revision-hash"] for ordinal in (4, 5, 6)
    ]
    assert [each == "old" for each in made] == current


def test_a_pod_gets_its_name_its_claims_and_the_governing_service() -> None:
    template = {"metadata": {"name": "data", "labels": {"own": "1"}}, "spec": {}, "status": {"phase": "Bound"}}
    of = owner(1, serviceName="web-svc", volumeClaimTemplates=[template])
    of["spec"]["template"]["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    made = new_pod(of, 2, "r")
    assert made["metadata"]["name"] == made["spec"]["hostname"] == "web-2" and made["spec"]["subdomain"] == "web-svc"
    assert made["metadata"]["labels"] == {
        "app": "web",
        POD_NAME: "web-2",
        POD_INDEX: "2",
        "controller-revision-hash": "r",
    }
    assert made["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-2"}}, {"name": "tmp", "emptyDir": {}},
    ]  # fmt: skip
    (claim,) = claims_of(of, 2)
    assert (claim["kind"], "status" in claim, "status" in template) == ("PersistentVolumeClaim", False, True)
    assert claim["metadata"] == {"name": "data-web-2", "namespace": "default", "labels": {"own": "1", "app": "web"}}
    plain = new_pod(owner(1), 0, "r")
    assert "subdomain" not in plain["spec"] and "volumes" not in plain["spec"]


def test_the_status_counts_terminating_pods_as_replicas_only() -> None:
    of = owner(3, minReadySeconds=10)
    pods = [pod(0, revision="old"), pod(1, ready=5), pod(2, ready=None), pod(3, revision="old", **ENDING)]
    assert status_of(of, revisions(of), None, pods, NOW) == {
        "observedGeneration": 4, "replicas": 4, "readyReplicas": 3, "currentReplicas": 1, "updatedReplicas": 2,
        "currentRevision": "old", "updateRevision": "new", "collisionCount": 0, "availableReplicas": 2,
    }  # fmt: skip
    just_ready = status_of(owner(1), revisions(of), None, [pod(0, ready=0)], NOW)
    assert just_ready["availableReplicas"] == 1, "without minReadySeconds a ready Pod is available"
    nothing = status_of(of, revisions(of), 2, [], NOW)
    assert "readyReplicas" not in nothing and nothing["collisionCount"] == 2 and nothing["availableReplicas"] == 0


@pytest.mark.parametrize(
    ("kind", "updated", "ready", "current"),
    [
        ("RollingUpdate", 2, 2, "new"),
        ("RollingUpdate", 1, 2, "old"),
        ("RollingUpdate", 2, 1, "old"),
        ("OnDelete", 2, 2, "old"),
    ],
)
def test_a_rollout_is_complete_when_every_pod_is_new_and_ready(
    kind: str, updated: int, ready: int, current: str
) -> None:
    counts = {"replicas": 2, "updatedReplicas": updated, "readyReplicas": ready}
    status = {**counts, "currentRevision": "old", "updateRevision": "new", "currentReplicas": 1}
    complete_rolling_update(owner(2, kind=kind), status)
    assert status["currentRevision"] == current
    assert status["currentReplicas"] == (2 if current == "new" else 1)


def test_since_1_37_a_rollout_by_deletions_is_complete_too() -> None:
    """(kubernetes#136833)"""
    status = {
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "currentRevision": "old",
        "updateRevision": "new",
    }
    complete_rolling_update(owner(2, kind="OnDelete"), status, any_strategy=True)
    assert status["currentRevision"] == "new"


def test_a_set_without_pods_completes_with_none() -> None:
    status = {"replicas": 0, "updateRevision": "new", "currentReplicas": 1}
    complete_rolling_update(owner(0), status)
    assert "currentReplicas" not in status and status["currentRevision"] == "new"


@pytest.mark.parametrize(("spec", "available"), [({}, 1), ({"minReadySeconds": 0}, 1), ({"minReadySeconds": 5}, 0)])
def test_without_a_minimum_a_ready_pod_is_available_whatever_the_node_s_clock_says(spec: dict, available: int) -> None:
    """podutil.IsPodAvailable: the time of the condition counts only if there is a minimum."""
    of, ahead = owner(2, **spec), pod(0, ready=-10)
    assert status_of(of, revisions(of), None, [ahead], NOW)["availableReplicas"] == available
    assert steps(of, ahead) == ([("create", "web-1", "")] if available else [])
