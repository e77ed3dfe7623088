"""lastcall's API server and a real kube-apiserver on one etcd at the same time: each sees what the other does."""

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest
from engines.etcd import Etcd, missing_etcd
from engines.servers import Keys, Server, etcd_arguments
from waiting import eventually

from engines import servers
from lastcall.kube.api.protobuf.decoding import decode_envelope
from lastcall.kube.store.etcd.values import decode

WHY = missing_etcd() or servers.missing_kubernetes()
pytestmark = pytest.mark.skipif(bool(WHY), reason=WHY)

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
SERVICES = "/api/v1/namespaces/default/services"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Both(NamedTuple):
    etcd: Etcd
    keys: Keys
    ours: Server
    real: Server

    @property
    def ways(self) -> list[tuple[str, Server, Server]]:
        return [("ours", self.ours, self.real), ("real", self.real, self.ours)]

    def stored(self, key: str) -> bytes:
        """What etcd has, as etcdctl shows it."""
        if not shutil.which("etcdctl"):
            pytest.skip("no etcdctl (etcd-client)")
        done = subprocess.run(
            ["etcdctl", f"--endpoints={self.etcd.servers}", "get", key, "-w", "json"],
            env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True, check=True, timeout=60,
        )  # fmt: skip
        return base64.b64decode(json.loads(done.stdout)["kvs"][0]["value"])


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    directory = tmp_path_factory.mktemp("both")
    with Etcd(directory / "etcd", more=("--unsafe-no-fsync",)) as etcd:
        keys = Keys(directory / "keys")
        arguments = etcd_arguments(etcd.servers)
        ours, real = servers.ours(directory, keys, arguments), servers.real(directory, keys, arguments)
        try:
            ours.start()
            real.start()
            yield Both(etcd, keys, ours, real)
            assert "Traceback" not in ours.log()
        finally:
            ours.stop()
            real.stop()


def test_what_a_cluster_has_from_the_start_is_the_same_for_both_object_by_object(both: Both) -> None:
    lists = [f"/api/v1/{each['name']}" for each in both.real.got("/api/v1")["resources"] if "list" in each["verbs"]]
    for group in both.real.got("/apis")["groups"]:
        version = group["preferredVersion"]["groupVersion"]
        kinds = both.real.got(f"/apis/{version}")["resources"]
        lists += [f"/apis/{version}/{each['name']}" for each in kinds if "list" in each["verbs"]]
    lists.remove("/api/v1/componentstatuses")  # computed by each
    compared = 0
    for path in lists:
        # What runs meanwhile (Leases, status) may write between the two questions.
        for attempt in range(5):
            mine, theirs = both.ours.ask("GET", path), both.real.ask("GET", path)
            if mine.status == 404:
                break  # not served by lastcall
            objects, others = ({_name(each): each for each in answer.body["items"]} for answer in (mine, theirs))
            if objects == others or attempt == 4:
                assert objects == others, path
                break
        compared += len(others) if mine.status == 200 else 0
    assert compared > 150


def _name(obj: Any) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def test_what_one_writes_the_other_reads_watches_changes_and_deletes(both: Both) -> None:
    for name, one, other in both.ways:
        path = f"{CONFIGMAPS}/shared-{name}"
        revision = one.got(CONFIGMAPS)["metadata"]["resourceVersion"]
        with one.watch(f"{CONFIGMAPS}?watch=1&timeoutSeconds=60&resourceVersion={revision}") as events:
            made = other.made(CONFIGMAPS, {"metadata": {"name": f"shared-{name}"}, "data": {"a": "1"}})
            assert one.got(path) == other.got(path) == {**made, "kind": "ConfigMap", "apiVersion": "v1"}
            changed = one.ask("PATCH", path, {"data": {"a": "2"}}, kind="application/merge-patch+json").body
            assert other.got(path) == changed
            stale = other.ask("PUT", path, made)
            assert (stale.status, stale.body["reason"]) == (409, "Conflict")
            assert other.ask("DELETE", path).status == 200
            assert one.ask("GET", path).status == other.ask("GET", path).status == 404
            told = [next(events) for _ in range(3)]
        assert [event["type"] for event in told] == ["ADDED", "MODIFIED", "DELETED"]
        assert [event["object"]["data"]["a"] for event in told] == ["1", "2", "2"]
        versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in told]
        assert versions == sorted(versions) and versions[:2] == [
            int(each["metadata"]["resourceVersion"]) for each in (made, changed)
        ]


def test_a_page_of_one_is_continued_by_the_other(both: Both) -> None:
    for number in range(5):
        both.real.made(CONFIGMAPS, {"metadata": {"name": f"page-{number}", "labels": {"page": "1"}}})
    for _, one, other in both.ways:
        first = one.got(f"{CONFIGMAPS}?limit=2")
        both.ours.ask("POST", CONFIGMAPS, {"metadata": {"generateName": "zz-"}})
        token = first["metadata"]["continue"]
        rest = other.got(f"{CONFIGMAPS}?limit=500&continue={token}")
        assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        everything = one.got(
            f"{CONFIGMAPS}?resourceVersionMatch=Exact&resourceVersion={first['metadata']['resourceVersion']}"
        )
        assert [*map(_name, first["items"]), *map(_name, rest["items"])] == [*map(_name, everything["items"])]


def test_finalizers_hold_whoever_deletes_and_whoever_lets_go(both: Both) -> None:
    for name, one, other in both.ways:
        path = f"{CONFIGMAPS}/held-{name}"
        one.made(CONFIGMAPS, {"metadata": {"name": f"held-{name}", "finalizers": ["example.com/hold"]}})
        assert other.ask("DELETE", path).body["metadata"]["deletionTimestamp"]
        assert one.got(path)["metadata"]["deletionTimestamp"]
        released = one.ask("PATCH", path, {"metadata": {"finalizers": None}}, kind="application/merge-patch+json")
        assert released.status == 200
        assert one.ask("GET", path).status == other.ask("GET", path).status == 404


def test_addresses_and_node_ports_never_collide(both: Both) -> None:
    def make(number: int) -> Any:
        server = both.ours if number % 2 else both.real
        spec = {"type": "NodePort", "ports": [{"port": 80}]}
        return server.made(SERVICES, {"metadata": {"name": f"many-{number}"}, "spec": spec})["spec"]

    with ThreadPoolExecutor(8) as pool:
        specs = list(pool.map(make, range(60)))
    addresses = [spec["clusterIP"] for spec in specs]
    ports = [spec["ports"][0]["nodePort"] for spec in specs]
    assert len(set(addresses)) == len(set(ports)) == 60

    for server in (both.ours, both.real):
        for taken in ({"clusterIP": addresses[7]}, {"type": "NodePort", "ports": [{"port": 80, "nodePort": ports[7]}]}):
            spec = {"ports": [{"port": 80}], **taken}
            refused = server.ask("POST", SERVICES, {"metadata": {"name": "refused"}, "spec": spec})
            assert refused.status == 422 and "already allocated" in refused.body["message"], refused
    # What one gives back the other gives out.
    for number, one, other in ((0, both.ours, both.real), (1, both.real, both.ours)):
        assert one.ask("DELETE", f"{SERVICES}/many-{number}").status == 200
        spec = {"type": "NodePort", "clusterIP": addresses[number], "ports": [{"port": 80, "nodePort": ports[number]}]}
        other.made(SERVICES, {"metadata": {"name": f"again-{number}"}, "spec": spec})
    bits = decode_envelope(both.stored("/registry/ranges/servicenodeports"))
    mask = int.from_bytes(base64.b64decode(bits["data"]), "big")
    assert {number + 30000 for number in range(2768) if mask >> number & 1} == set(ports)


def definition(group: str) -> Any:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    meta = {"name": f"widgets.{group}"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": meta, "spec": spec}


def test_kinds_that_one_declares_are_served_by_the_other_and_end_everywhere(both: Both) -> None:
    for name, one, other in both.ways:
        group = f"{name}.example.com"
        widgets = f"/apis/{group}/v1/namespaces/default/widgets"
        one.made(DEFINITIONS, definition(group))
        for server in (one, other):
            _until(server, widgets, 200)
        for server in (one, other):
            body = {"apiVersion": f"{group}/v1", "kind": "Widget", "spec": {"a": {"b": [1, 2.5, "x"]}, "empty": {}}}
            server.made(widgets, {**body, "metadata": {"generateName": "w-"}})
        mine, theirs = one.got(widgets), other.got(widgets)
        assert len(mine["items"]) == 2 and mine["items"] == theirs["items"]
        stored = json.loads(both.stored(f"/registry/{group}/widgets/default/{mine['items'][0]['metadata']['name']}"))
        assert "resourceVersion" not in stored["metadata"]
        assert other.ask("DELETE", f"{DEFINITIONS}/widgets.{group}").status == 200
        for server in (one, other):
            _until(server, widgets, 404)
            _until(server, f"{DEFINITIONS}/widgets.{group}", 404)


def _until(server: Server, path: str, status: int) -> None:
    eventually(lambda: server.ask("GET", path).status == status, f"{path} answers {status}")


@pytest.mark.parametrize(
    ("path", "key", "body"),
    [
        ("/api/v1/nodes", "minions/n-{}", {}),
        ("/api/v1/namespaces/default/secrets", "secrets/default/n-{}", {"stringData": {"a": "b"}}),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            "deployments/default/n-{}",
            {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
                "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}},
        ),
        ("/apis/networking.k8s.io/v1/namespaces/default/ingresses", "ingress/default/n-{}",
         {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}),
        ("/apis/coordination.k8s.io/v1/namespaces/default/leases", "leases/default/n-{}",
         {"spec": {"holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.123456Z"}}),
        ("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", "horizontalpodautoscalers/default/n-{}",
         {"spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}}),
        ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", "poddisruptionbudgets/default/n-{}",
         {"spec": {"minAvailable": "50%", "selector": {}}}),
        ("/apis/batch/v1/namespaces/default/cronjobs", "cronjobs/default/n-{}",
         {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {
             "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}}}),
        ("/apis/storage.k8s.io/v1/storageclasses", "storageclasses/n-{}", {"provisioner": "example.com/p"}),
        ("/apis/resource.k8s.io/v1/deviceclasses", "deviceclasses/n-{}", {"spec": {}}),
    ],
)  # fmt: skip
def test_key_group_version_and_form_in_etcd_are_kubernetes_own(both: Both, path: str, key: str, body: Any) -> None:
    forms = []
    for name, one, other in both.ways:
        made = one.made(path, {**body, "metadata": {"name": f"n-{name}"}})
        assert other.got(f"{path}/n-{name}") == one.got(f"{path}/n-{name}")
        raw = both.stored("/registry/" + key.format(name))
        assert raw.startswith(b"k8s\0")
        assert not decode_envelope(raw)["metadata"].get("resourceVersion") and made["metadata"]["resourceVersion"]
        stored = decode(raw, 1, key)  # Go writes zeros, too, which say nothing
        forms.append((stored["apiVersion"], stored["kind"], sorted(stored), sorted(stored.get("spec") or {})))
    assert forms[0] == forms[1]


def test_events_of_both_end_with_a_lease_of_etcd(both: Both) -> None:
    if not shutil.which("etcdctl"):
        pytest.skip("no etcdctl (etcd-client)")
    for name, one, _ in both.ways:
        involved = {"kind": "Node", "name": "n", "namespace": "default"}
        meta = {"name": f"e-{name}", "namespace": "default"}
        one.made("/api/v1/namespaces/default/events", {"metadata": meta, "involvedObject": involved, "reason": "R"})
        done = subprocess.run(
            ["etcdctl", f"--endpoints={both.etcd.servers}", "get", f"/registry/events/default/e-{name}", "-w", "json"],
            env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True, check=True, timeout=60,
        )  # fmt: skip
        lease = json.loads(done.stdout)["kvs"][0]["lease"]
        shown = subprocess.run(
            ["etcdctl", f"--endpoints={both.etcd.servers}", "lease", "timetolive", f"{lease:x}"],
            env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True, check=True, timeout=60, text=True,
        ).stdout  # fmt: skip
        assert "granted with TTL(3660s)" in shown, shown


def test_a_service_account_token_of_one_is_good_at_the_other(both: Both) -> None:
    account = "/api/v1/namespaces/default/serviceaccounts"
    both.real.made(account, {"metadata": {"name": "someone"}})
    for _, one, other in both.ways:
        token = one.made(
            f"{account}/someone/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        )
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token["status"]["token"]},
        }
        status = other.made("/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]
        assert status["authenticated"] and status["user"]["username"] == "system:serviceaccount:default:someone"


def test_killed_and_started_again_it_goes_on_and_etcd_may_be_restarted_under_it(both: Both) -> None:
    acknowledged = []
    for turn in range(3):
        for number in range(10):
            name = f"kill-{turn}-{number}"
            both.ours.made(CONFIGMAPS, {"metadata": {"name": name}})
            acknowledged.append(name)
        if turn == 1:
            both.etcd.members[0].kill()
            time.sleep(1)  # how long etcd is gone
            both.etcd.members[0].start()
            both.etcd.wait_ready(0)
            eventually(lambda: both.ours.ask("GET", CONFIGMAPS).status == 200, "etcd is back")
        else:
            both.ours.kill()
            both.ours.start()
    there = {each["metadata"]["name"] for each in both.ours.got(CONFIGMAPS)["items"]}
    assert there.issuperset(acknowledged)
    eventually(lambda: both.real.ask("GET", CONFIGMAPS).status == 200, "the real one is back too")
    assert {each["metadata"]["name"] for each in both.real.got(CONFIGMAPS)["items"]} == there
