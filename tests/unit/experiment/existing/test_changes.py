"""Whatever an experiment changes on somebody's cluster is put back, at whatever moment its process was killed."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from api_server import running_server
from api_snapshot import difference, whole_api
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.errors import WorldError
from lastcall.experiment.existing import changes as changing
from lastcall.experiment.existing.changes import Changes, is_running, this_process
from lastcall.experiment.existing.ledger import (
    KINDS,
    LABEL,
    REPLICAS,
    RESTARTED_AT,
    Changed,
    Created,
    Holder,
    Ledger,
    NotALedger,
    Target,
    as_config_map,
    from_config_map,
    leftover_revisions,
    restoration,
    was,
)
from lastcall.experiment.existing.leftovers import find_leftovers, put_back
from lastcall.experiment.ready.readiness import unsettled
from lastcall.experiment.rollout.fields import nested
from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, copy_object, uid_of
from lastcall.kube.api.patch.apply import apply_json_patch, merge_patch
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    DEPLOYMENTS,
    NAMESPACES,
    PERSISTENTVOLUMECLAIMS,
    REPLICASETS,
    SECRETS,
    SERVICES,
    STATEFULSETS,
    Resource,
)
from lastcall.kube.client import retries as patient
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.world.clock import RealClock

LABELS = {"app": "web"}
WORKLOAD: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 4,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "a", "image": "a"}]}},
    },
}
SERVICE: Object = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
SECRET: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}
WEB = Target.of(DEPLOYMENTS, "web", "shop")
PATH = "/spec/replicas"
GONE_HOLDER = Holder("another-machine", 1, 1)


class Killed(Exception):
    """The process is not there any more."""


class Dying:
    """A client whose process is killed at its `last` write: before it, or `after` the server has done it."""

    def __init__(self, client: Client, last: int, *, after: bool) -> None:
        self._client, self._left, self._after = client, last, after

    def __getattr__(self, verb: str) -> Any:
        ask = getattr(self._client, verb)
        if verb not in ("create", "patch", "update", "delete"):
            return ask

        async def write(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left < 0 or (self._left == 0 and not self._after):
                raise Killed
            answer = await ask(*arguments, **named)
            if self._left == 0:
                raise Killed
            return answer

        return write


class Losing(Dying):
    """A client that loses the connection at its `last` write, before it or `after` the server has done it, and has it
    again at the next."""

    def __getattr__(self, verb: str) -> Any:
        ask = super().__getattr__(verb)
        if verb not in ("create", "patch", "update", "delete"):
            return ask

        async def write(*arguments: Any, **named: Any) -> Any:
            try:
                return await ask(*arguments, **named)
            except Killed:
                self._left = 1_000
                raise ConnectionLost("the server went away") from None

        return write


async def experiment(client: Any) -> None:
    """Five writes to the cluster and as many to the ledger, and then all that puts them back."""
    changes = Changes(client, "shop")
    await changes.create(SERVICES, SERVICE)
    await changes.create(SECRETS, SECRET)
    await changes.change(DEPLOYMENTS, "web", RESTARTED_AT, "2026-01-01T00:00:00Z")
    await changes.change(DEPLOYMENTS, "web", REPLICAS, 2)
    await changes.restore(lambda line: None)


def on_a_cluster(test: Callable[[Client], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changing, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(changing, "GONE_SECONDS", 0.05)  # no controller gives the Deployment its Pods here
    monkeypatch.setattr(changing, "this_process", lambda: GONE_HOLDER)

    async def run() -> None:
        async with running_server() as running:
            await running.admin.create(NAMESPACES, {"metadata": {"name": "shop"}})
            await running.admin.create(DEPLOYMENTS, WORKLOAD, "shop")
            await test(running.admin)

    asyncio.run(run())


@pytest.mark.loopback
def test_an_experiment_puts_back_what_it_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(client: Client) -> None:
        before = await whole_api(client)
        await experiment(client)
        assert difference(before, await whole_api(client)) == []

    on_a_cluster(test, monkeypatch)


@pytest.mark.loopback
def test_cleanup_puts_back_what_a_killed_experiment_has_left_wherever_it_was_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(client: Client) -> None:
        before = await whole_api(client)
        stages = 0
        for last in range(1, 30):
            for after in (False, True):
                try:
                    await experiment(Dying(client, last, after=after))
                except Killed:
                    stages += 1
                for _ in range(2):  # any number of times
                    found = await find_leftovers(client, "", "shop")
                    await put_back(client, RealClock(), found, lambda line: None)
                assert difference(before, await whole_api(client)) == [], f"killed at write {last}, after it: {after}"
        assert stages >= 24  # eight writes, their ledger's, and those that put back

    on_a_cluster(test, monkeypatch)


@pytest.mark.loopback
def test_an_answer_that_is_lost_is_asked_for_again_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient, "_AGAIN_SECONDS", 0.0)

    async def test(client: Client) -> None:
        before = await whole_api(client)
        lost = 0
        for last in range(1, 16):
            for after in (False, True):
                losing = Losing(client, last, after=after)
                await experiment(losing)
                lost += losing._left > 500
                assert difference(before, await whole_api(client)) == [], f"lost at write {last}, after it: {after}"
        assert lost >= 24

    on_a_cluster(test, monkeypatch)


@pytest.mark.loopback
def test_an_object_of_somebody_else_is_not_taken_for_the_lost_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(client: Client) -> None:
        theirs = await client.create(SERVICES, SERVICE, "shop")
        changes = Changes(client, "shop")
        with pytest.raises(StatusError, match="already exists"):
            await changes.create(SERVICES, SERVICE)
        await changes.restore(lambda line: None)
        assert uid_of(await client.get(SERVICES, "s", "shop")) == uid_of(theirs)
        assert (await find_leftovers(client, "", "shop")).lines == []

    on_a_cluster(test, monkeypatch)


@pytest.mark.loopback
def test_a_server_that_stays_away_ends_the_experiment_with_all_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient, "_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(patient, "PATIENCE_SECONDS", 0.0)

    async def test(client: Client) -> None:
        before = await whole_api(client)
        for last in (1, 2, 3, 4):
            changes = Changes(Losing(client, last, after=True), "shop")

            async def both(changes: Changes = changes) -> None:
                await changes.create(SERVICES, SERVICE)
                await changes.create(SECRETS, SECRET)

            with pytest.raises(ConnectionLost):
                await both()
            await changes.restore(lambda line: None)
            assert difference(before, await whole_api(client)) == [], last

    on_a_cluster(test, monkeypatch)


@pytest.mark.loopback
def test_cleanup_that_is_killed_itself_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(client: Client) -> None:
        before = await whole_api(client)
        for last in range(1, 8):
            with pytest.raises(Killed):
                await experiment(Dying(client, 8, after=True))
            found = await find_leftovers(client, "", "shop")
            assert len(found.lines) == 4
            try:
                await put_back(Dying(client, last, after=True), RealClock(), found, lambda line: None)
            except Killed:
                again = await find_leftovers(client, "", "shop")
                await put_back(client, RealClock(), again, lambda line: None)
            assert difference(before, await whole_api(client)) == [], last

    on_a_cluster(test, monkeypatch)


@pytest.mark.loopback
def test_what_somebody_has_changed_since_stays_and_what_is_not_ours_is_not_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(client: Client) -> None:
        with pytest.raises(Killed):
            await experiment(Dying(client, 8, after=True))
        await client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 7}}, "shop")
        await client.delete(SERVICES, "s", "shop")
        mine = await client.create(SERVICES, SERVICE, "shop")
        said: list[str] = []
        await put_back(client, RealClock(), await find_leftovers(client, "", "shop"), said.append)
        workload = await client.get(DEPLOYMENTS, "web", "shop")
        assert workload["spec"]["replicas"] == 7 and not workload["spec"]["template"]["metadata"].get("annotations")
        assert uid_of(await client.get(SERVICES, "s", "shop")) == uid_of(mine)
        assert "spec.replicas of Deployment web was changed since by another client, and is left as it is" in said
        assert (await find_leftovers(client, "", "shop")).lines == []

    on_a_cluster(test, monkeypatch)


@pytest.mark.loopback
def test_a_copy_that_was_changed_is_deleted_and_not_mended_first(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(client: Client) -> None:
        await client.create(NAMESPACES, {"metadata": {"name": "scratch"}})
        before = await whole_api(client)
        changes = Changes(client, "scratch")
        await changes.create(DEPLOYMENTS, WORKLOAD)
        await changes.change(DEPLOYMENTS, "web", REPLICAS, 1)
        said: list[str] = []
        with pytest.raises(WorldError, match="is still there"):  # no controller ends its Pods here
            await changes.restore(said.append)
        assert said == ["deleted Deployment web"]
        await client.patch(DEPLOYMENTS, "web", {"metadata": {"finalizers": None}}, "scratch")
        await put_back(client, RealClock(), await find_leftovers(client, "", "scratch"), said.append)
        assert difference(before, await whole_api(client)) == []

    on_a_cluster(test, monkeypatch)


@pytest.mark.loopback
@pytest.mark.parametrize("killed", [False, True])
def test_the_claims_that_a_stateful_set_of_ours_has_made_go_with_it_and_no_others(
    monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    made = copy_object(WORKLOAD)
    made["kind"] = STATEFULSETS.kind
    made["metadata"]["name"] = "db"
    made["spec"] |= {"serviceName": "db", "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": spec}]}

    async def test(client: Client) -> None:
        await client.create(PERSISTENTVOLUMECLAIMS, {"metadata": {"name": "data-other-0"}, "spec": spec}, "shop")
        before = await whole_api(client)
        changes = Changes(client, "shop")
        there = await changes.create(STATEFULSETS, made)
        (template,) = there["spec"]["volumeClaimTemplates"]
        labels = template["metadata"]["labels"]  # what the controller does
        claim = {"metadata": {"name": "data-db-0", "labels": labels}, "spec": spec}
        await client.create(PERSISTENTVOLUMECLAIMS, claim, "shop")
        await client.patch(PERSISTENTVOLUMECLAIMS, "data-db-0", {"metadata": {"finalizers": None}}, "shop")
        await client.delete(STATEFULSETS, "db", "shop")  # no controller ends its Pods here
        said: list[str] = []
        if killed:
            await put_back(client, RealClock(), await find_leftovers(client, "", "shop"), said.append)
        else:
            await changes.restore(said.append)
        assert said == ["deleted PersistentVolumeClaim data-db-0"]
        assert difference(before, await whole_api(client)) == []

    on_a_cluster(test, monkeypatch)


@pytest.mark.loopback
def test_an_object_with_the_label_and_no_ledger_is_found() -> None:
    async def run() -> None:
        async with running_server() as running:
            await running.admin.create(NAMESPACES, {"metadata": {"name": "shop"}})
            labelled = copy_object(SERVICE)
            labelled["metadata"]["labels"] = {LABEL: "a1"}
            await running.admin.create(SERVICES, labelled, "shop")
            found = await find_leftovers(running.admin, "", "shop")
            assert found.lines == ["namespace shop: delete Service s, which no ledger names"]
            await put_back(running.admin, RealClock(), found, lambda line: None)
            assert (await find_leftovers(running.admin, "", "shop")).lines == []

    asyncio.run(run())


def test_a_ledger_of_a_running_process_is_told_apart() -> None:
    assert is_running(this_process())
    assert not is_running(replace(this_process(), started=this_process().started + 1))  # the pid of another one now
    assert not is_running(replace(this_process(), pid=2**22 + 1, started=5))
    assert not is_running(GONE_HOLDER)


@pytest.mark.parametrize(
    ("there", "deletes", "patches"),
    [
        (None, False, 0),
        ({"metadata": {"uid": "u"}}, False, 0),
        ({"metadata": {"uid": "u", "labels": {LABEL: "other"}}}, False, 0),
        ({"metadata": {"uid": "u", "labels": {LABEL: "id"}}}, True, 0),
        ({"metadata": {"uid": "u", "labels": {LABEL: "id"}, "deletionTimestamp": "x"}}, False, 0),
    ],
)
def test_only_what_has_the_experiment_s_label_is_deleted(there: Object | None, deletes: bool, patches: int) -> None:
    found = restoration("id", Created(WEB), there)
    assert (bool(found.delete), len(found.patch)) == (deletes, patches)


@pytest.mark.parametrize(
    ("before", "now", "patch"),
    [
        (3, 1, [{"op": "test", "path": PATH, "value": 1}, {"op": "replace", "path": PATH, "value": 3}]),
        (3, 3, []),
        (3, 2, []),
    ],
)  # fmt: skip
def test_a_field_is_put_back_if_it_is_still_as_we_set_it(before: int, now: int, patch: list[Object]) -> None:
    found = restoration("id", Changed(WEB, REPLICAS, before, 1), {"metadata": {}, "spec": {"replicas": now}})
    assert [*found.patch] == patch


@pytest.mark.parametrize(
    ("template", "left"),
    [
        ({"spec": {}}, {"spec": {}}),
        ({"spec": {}, "metadata": {"labels": LABELS}}, {"spec": {}, "metadata": {"labels": LABELS}}),
        ({"metadata": {"annotations": {"a": "b"}}}, {"metadata": {"annotations": {"a": "b"}}}),
    ],
)
def test_a_field_that_was_not_there_goes_with_the_maps_that_were_made_for_it(template: Object, left: Object) -> None:
    before: Object = {"metadata": {}, "spec": {"replicas": 1, "template": template}}
    there = merge_patch(before, nested(RESTARTED_AT, "now"))
    found = restoration("id", Changed(WEB, RESTARTED_AT, was(before, RESTARTED_AT), "now"), there)
    assert apply_json_patch(there, [*found.patch]) == {**before, "spec": {"replicas": 1, "template": left}}


def entries(
    group: str, plural: str, *, namespace: str = "shop", does: str = "created", kind: str = "", **more: Any
) -> str:
    kind = kind or {"secrets": "Secret", "deployments": "Deployment"}.get(plural, "X")
    target = {"group": group, "version": "v1", "plural": plural, "kind": kind, "name": "s", "namespace": namespace}
    return json.dumps([{"does": does, "target": target, **more}])


def scaled(group: str, plural: str, kind: str, *, path: Any = REPLICAS, namespace: str = "shop") -> str:
    return entries(group, plural, kind=kind, does="changed", path=path, before=1, after=2, namespace=namespace)


def ledger_with(**changed: Any) -> Object:
    written = as_config_map(Ledger("a1", GONE_HOLDER, (Changed(WEB, REPLICAS, 3, 1),)), "shop")
    for name, value in changed.items():
        written["data"][name] = value
    return written


def test_a_ledger_is_read_as_it_was_written() -> None:
    boat = Target.of(Resource("example.com", "v1alpha1", "boats", "Boat", True), "web", "shop")
    changed = (Changed(WEB, RESTARTED_AT, "a", "b"), Changed(boat, REPLICAS, 2, 1))
    whole = Ledger("a1", GONE_HOLDER, (Created(Target.of(SECRETS, "s", "shop")), *changed))
    assert from_config_map(as_config_map(whole, "shop")) == whole


@pytest.mark.parametrize(
    "changed",
    [
        {"entries": "["},
        {"entries": "[1]"},
        {"entries": "{}x"},
        {"holder": "{}"},
        {"entries": entries("", "secrets", namespace="kube-system")},
        {"entries": entries("", "../../apis")},
        {"entries": entries("rbac.authorization.k8s.io", "roles", does="changed", path=["rules"], before=1, after=2)},
        {"entries": entries("apps", "deployments", does="changed", path=["spec", "template"], before=1, after=2)},
        {"entries": entries("apps", "deployments", does="erased")},
        {"entries": entries("apps", "deployments", does="changed", path=REPLICAS, before=[], after=2)},
        {"entries": entries("apps", "deployments", does="changed", path=REPLICAS, before=1, after={"a": 1})},
        {"entries": entries("", "secrets").replace('"Secret"', '"ConfigMap of yours\\n- nothing"')},
        {"entries": entries("", "secrets").replace('"Secret"', '["Secret"]')},
        {"entries": entries("", "configmaps", kind="Secret")},
        {"entries": entries("", "nodes", kind="Node")},
        {"entries": entries("argoproj.io", "rollouts", kind="Rollout")},
        {"entries": scaled("argoproj.io", "rollouts", "Rollout", namespace="kube-system")},
        {"entries": scaled("argoproj.io", "rollouts", "Rollout", path=["spec", "workloadRef"])},
        {"entries": scaled("argoproj.io", "../../../api/v1/nodes", "Rollout")},
        {"entries": scaled("argoproj.io", "rollouts", "Rollout\n- nothing")},
        {"entries": scaled("argoproj.io/v1/..", "rollouts", "Rollout")},
        {"entries": scaled("snapshot.storage.k8s.io", "volumesnapshots", "VolumeSnapshot")},
        {"entries": scaled("batch", "jobs", "Job")},
        {"entries": scaled("", "replicationcontrollers", "ReplicationController")},
        {"entries": entries("", "secrets").replace('"v1"', "0")},
        {"entries": entries("", "secrets").replace('"group": ""', '"group": []')},
        {"entries": "[" * 100_000 + "]" * 100_000},
        {"entries": '[{"a":' * 100_000},
        {"entries": "9" * 100_000},
        {"entries": None},
        {"entries": 5},
        {"entries": f"[{entries('', 'secrets')[1:-1]}{' ' * (1 << 20)}]"},
        {"entries": "[]", "more": "x" * (1 << 20)},
        {"holder": "[]"},
        {"holder": "[" * 100_000},
        {"holder": json.dumps({"host": 5, "pid": 1, "started": 1})},
        {"holder": json.dumps({"host": "h", "pid": "../1", "started": 1})},
        {"holder": json.dumps({"host": "h", "pid": 1, "started": True})},
    ],
)
def test_a_ledger_that_somebody_else_wrote_changes_nothing_but_what_experiments_change(changed: Object) -> None:
    with pytest.raises(NotALedger) as raised:
        from_config_map(ledger_with(**changed))
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("data", [None, [], "x", {}, {"entries": "[]"}])
def test_a_config_map_without_the_data_of_a_ledger_is_none(data: Any) -> None:
    with pytest.raises(NotALedger):
        from_config_map({**ledger_with(), "data": data})


def test_the_entries_of_these_tests_are_those_of_a_ledger_but_for_one_thing() -> None:
    assert len(from_config_map(ledger_with(entries=entries("", "secrets"))).entries) == 1
    changed = entries("apps", "deployments", does="changed", path=REPLICAS, before=1, after="lastcall/absent")
    assert len(from_config_map(ledger_with(entries=changed)).entries) == 1


ODD = st.sampled_from([None, True, 0, -1, 1.5, "", "..", "a/b", "x", [], {}, ["spec"], {"name": "s"}])


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_whatever_a_ledger_says_it_is_one_or_is_named_as_none(data: st.DataObject) -> None:
    written = json.loads(entries("apps", "deployments", does="changed", path=REPLICAS, before=1, after=2))[0]
    holder = {"host": "h", "pid": 1, "started": 1}
    for fields in data.draw(st.lists(st.sampled_from([written, written["target"], holder]), max_size=3)):
        fields[data.draw(st.sampled_from([*fields, "more"]))] = data.draw(ODD)
    try:
        found = from_config_map(ledger_with(entries=json.dumps([written]), holder=json.dumps(holder)))
    except NotALedger:
        return
    assert isinstance(is_running(found.holder), bool) and found.entries[0].target.kind in {each.kind for each in KINDS}
    assert from_config_map(as_config_map(found, "shop")) == found


FORGED = {
    "deep": {"entries": "[" * 100_000 + "]" * 100_000},
    "list": {"entries": "[]", "holder": "[]"},
    "none": {},
}


@pytest.mark.loopback
def test_forged_ledgers_are_named_and_everything_else_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(client: Client) -> None:
        before = await whole_api(client)
        for name, data in FORGED.items():
            forged = {"metadata": {"name": f"lastcall-ledger-{name}", "labels": {LABEL: name}}, "data": data}
            await client.create(CONFIGMAPS, forged, "default")
        with pytest.raises(Killed):
            await experiment(Dying(client, 9, after=True))
        found = await find_leftovers(client, "", "shop")
        assert sorted(found.unreadable) == [
            "namespace default: ConfigMap lastcall-ledger-deep is not a ledger: it is nested too deeply",
            "namespace default: ConfigMap lastcall-ledger-list is not a ledger: its holder is not a process",
            "namespace default: ConfigMap lastcall-ledger-none is not a ledger: it has no entries",
        ]
        with pytest.raises(WorldError) as raised:
            await put_back(client, RealClock(), found, lambda line: None)
        assert all(line in str(raised.value) for line in found.unreadable)
        assert "kubectl delete configmap" in str(raised.value)
        for name in FORGED:
            await client.delete(CONFIGMAPS, f"lastcall-ledger-{name}", "default")
        assert difference(before, await whole_api(client)) == []

    on_a_cluster(test, monkeypatch)


@pytest.mark.loopback
def test_a_ledger_hides_nothing_of_another_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(client: Client) -> None:
        forged = as_config_map(Ledger("a1", GONE_HOLDER), "default")
        await client.create(CONFIGMAPS, forged, "default")
        labelled = copy_object(SERVICE)
        labelled["metadata"]["labels"] = {LABEL: "a1"}
        await client.create(SERVICES, labelled, "shop")
        found = await find_leftovers(client, "", "shop")
        assert found.lines == [
            "namespace default: delete ConfigMap lastcall-ledger-a1, a ledger without entries",
            "namespace shop: delete Service s, which no ledger names",
        ]

    on_a_cluster(test, monkeypatch)


def test_the_revision_that_a_rollout_of_ours_left_is_told_from_those_of_others() -> None:
    change = Changed(WEB, RESTARTED_AT, "lastcall/absent", "now")
    ours: Object = {
        "kind": REPLICASETS.kind,
        "metadata": {"name": "ours", "ownerReferences": [{"uid": "u"}]},
        "spec": {
            "replicas": 0,
            "template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}},
        },
        "status": {"replicas": 0},
    }
    others = [copy_object(ours) for _ in range(3)]
    others[0]["metadata"]["ownerReferences"][0]["uid"] = "x"
    others[1]["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] = "before"
    others[2]["status"]["replicas"] = 1
    assert leftover_revisions([*others, ours], "u", change) == [ours]


def test_a_workload_has_its_pods_when_its_controller_has_seen_it_and_all_are_new() -> None:
    status = {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
    workload: Object = {
        "kind": "Deployment",
        "metadata": {"generation": 2},
        "spec": {"replicas": 3, "strategy": {}},
        "status": status,
    }
    assert unsettled(DEPLOYMENTS, workload) == ""
    for name, value in (("observedGeneration", 1), ("replicas", 4), ("updatedReplicas", 2), ("availableReplicas", 2)):
        assert unsettled(DEPLOYMENTS, {**workload, "status": {**status, name: value}}), name
