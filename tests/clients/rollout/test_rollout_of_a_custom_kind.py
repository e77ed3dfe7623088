"""`lastcall rollout --context` of a kind with a controller of its own: that is followed, and all of it is put back."""

import asyncio
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from api_snapshot import difference, everything
from published_schema import documented
from staying import Place
from waiting import eventually

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import PODS, Resource
from lastcall.kube.client.http import HTTPClient
from lastcall.kube.client.kubeconfig import client_for, load_kubeconfig

pytestmark = pytest.mark.real_kernel

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "rollout" / "polite.yaml"
BOATS = Resource("example.com", "v1", "boats", "Boat", True)
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(group: str, kind: str, **subresources: Any) -> dict[str, Any]:
    plural, schema = f"{kind.lower()}s", {"type": "object", "properties": {"spec": FREE, "status": FREE}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{**version, "subresources": {"status": {}, **subresources}}],
        },
    }


SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
DEFINITIONS = [
    definition("example.com", "Boat", scale=SCALE),
    definition("example.com", "Raft"),
    definition("example.org", "Raft"),
]


class BoatController:
    """A small controller: it creates one Pod more than a Boat wants, and deletes one of an older template when all are
    Ready. A Pod's name has a number that is never used again."""

    def __init__(self, client: HTTPClient) -> None:
        self._client = client
        self._made = 0

    async def run(self) -> None:
        while True:
            with suppress(StatusError):
                for boat in (await self._client.list(BOATS, "shop")).items:
                    await self._reconcile(boat)
            await asyncio.sleep(0.1)  # a controller that looks again and again, beside the test

    async def _reconcile(self, boat: dict[str, Any]) -> None:
        meta, spec = boat["metadata"], boat["spec"]
        template, wanted = json.dumps(spec["template"], sort_keys=True), spec["replicas"]
        labels = spec["template"]["metadata"]["labels"]
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        pods = [
            each
            for each in (await self._client.list(PODS, "shop", label_selector=selector)).items
            if "deletionTimestamp" not in each["metadata"]
        ]
        new = [each for each in pods if each["metadata"]["annotations"]["template"] == template]
        old = [each for each in pods if each not in new]
        ready = [each for each in pods if _is_ready(each)]
        if len(new) < wanted and len(pods) <= wanted:
            await self._create(boat, template)
        elif len(pods) > wanted and len(ready) == len(pods):
            await self._client.delete(PODS, (old or new)[0]["metadata"]["name"], "shop")
        counts = {"replicas": len(pods), "updatedReplicas": len(new)}
        status = {**counts, "observedGeneration": meta["generation"], "selector": selector}
        if status != boat.get("status"):
            await self._client.update(BOATS, {**boat, "status": status}, "shop", subresource="status")

    async def _create(self, boat: dict[str, Any], template: str) -> None:
        self._made += 1
        meta, made = boat["metadata"], boat["spec"]["template"]
        owner = {"apiVersion": "example.com/v1", "kind": "Boat", "name": meta["name"], "uid": meta["uid"]}
        pod_meta = {
            "name": f"{meta['name']}-{self._made}",
            "labels": made["metadata"]["labels"],
            "annotations": {**(made["metadata"].get("annotations") or {}), "template": template},
            "ownerReferences": [{**owner, "controller": True}],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": pod_meta, "spec": made["spec"]}
        await self._client.create(PODS, pod, "shop")


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


@contextmanager
def controller(kubeconfig: str) -> Iterator[None]:
    loop = asyncio.new_event_loop()

    async def work() -> None:
        client = client_for(load_kubeconfig(kubeconfig))
        try:
            await BoatController(client).run()
        finally:
            await client.close()

    task = loop.create_task(work())

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()


def manifests(place: Place, kubeconfig: str) -> str:
    """The example with a Boat in the place of its Deployment; two Rafts that are no workloads."""
    text = place.kubectl(kubeconfig, "create", "--dry-run=client", "-f", str(EXAMPLE), "-o", "json")
    decoder = json.JSONDecoder()
    items: list[dict[str, Any]] = []
    while text := text.strip():
        item, end = decoder.raw_decode(text)
        items, text = [*items, *item.get("items", [item])], text[end:]
    (web,) = [each for each in items if each["kind"] == "Deployment"]
    items.remove(web)
    pod = web["spec"]["template"]["spec"]
    pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"] = 2
    template = {**web["spec"]["template"], "spec": pod}
    boat = {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "polite"}}
    raft = {"kind": "Raft", "metadata": {"name": "r"}, "spec": {"template": template}}
    rafts = [{**raft, "apiVersion": f"example.{each}/v1"} for each in ("com", "org")]
    made = [*items, {**boat, "spec": {"replicas": 2, "template": template}}, *rafts]
    for each in made:
        each["metadata"] = {"name": each["metadata"]["name"], "namespace": "shop"}
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": made})


def pods_of(place: Place, kubeconfig: str) -> set[str]:
    return set(place.kubectl(kubeconfig, "-n", "shop", "get", "pods", "-o", "name").split())


def boat_of(place: Place, kubeconfig: str) -> dict[str, Any]:
    boat = json.loads(place.kubectl(kubeconfig, "-n", "shop", "get", "boat", "polite", "-o", "json"))
    spec: dict[str, Any] = boat["spec"]
    return spec


@pytest.mark.timeout(500)
def test_a_kind_with_a_controller_of_its_own_is_rolled_out_scaled_in_and_put_back_also_when_it_is_killed() -> None:
    with Place() as place:
        facts = place.up("--name", "theirs", "--publish", "0:svc/shop/polite:80")
        kubeconfig, entrance = facts["kubeconfig"], f"http://{facts['published'][0]['address']}"
        (context,) = (
            each["name"] for each in json.loads(place.kubectl(kubeconfig, "config", "view", "-o", "json"))["contexts"]
        )
        place.kubectl(kubeconfig, "create", "namespace", "shop")
        place.kubectl(
            kubeconfig,
            "create",
            "-f",
            "-",
            stdin=json.dumps({"kind": "List", "apiVersion": "v1", "items": DEFINITIONS}),
        )
        place.kubectl(kubeconfig, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        place.kubectl(kubeconfig, "create", "-f", "-", stdin=manifests(place, kubeconfig))
        there = ("--kubeconfig", kubeconfig, "--context", context, "-n", "shop")
        options = ("--url", entrance, "--load", "fresh=30", f"--yes={context}", "-o", "json")

        with controller(kubeconfig):
            wait = ("wait", "pods", "-n", "shop", "--all", "--for=condition=Ready", "--timeout=60s")
            eventually(lambda: len(pods_of(place, kubeconfig)) == 2, "its controller has created its Pods")
            place.kubectl(kubeconfig, *wait)
            before, boat = everything(kubeconfig), boat_of(place, kubeconfig)
            for asked, more, why in (
                ("raft/r", (), "rafts.example.com and rafts.example.org\nlastcall: fix: name its group"),
                ("raft.example.com/r", (), "Raft r has no scale subresource"),
                ("boot.example.com/polite", (), "did you mean boat.example.com/polite?"),
                ("job/polite", (), "a job is not a workload that can be disrupted"),
                ("boat.example.com/absent", (), "has no Boat absent"),
                (
                    "boat/polite",
                    ("--copy-to", "default", "--url", ""),
                    "--copy-to copies only kinds that Kubernetes has",
                ),
            ):
                refused = place.run("rollout", asked, *there, *options, *more)
                assert (refused.status, why in refused.err) == (2, True), refused.err
            assert difference(before, everything(kubeconfig)) == []

            for words, ended in (
                (("boat/polite",), 2),
                (("--workload", "boats.example.com/polite", "--disrupt", "scale-in"), 1),
                (("boat.example.com/polite", "--disrupt", "evict"), 1),
            ):
                old = pods_of(place, kubeconfig)
                result = place.run("rollout", *words, *there, *options, timeout=200)
                assert result.status == 0, (result.out, result.err)
                document = documented(json.loads(result.out))
                assert document["cluster"]["context"] == context and document["cluster"]["kubernetesVersion"]
                (found,) = document["experiments"]
                assert (found["workload"], found["lost"]) == ("Boat polite", 0) and found["total"] > 30
                stories = {f"pod/{each['name']}" for each in found["stories"]}
                assert len(stories) >= ended and stories & old, found["stories"]
                assert (difference(before, everything(kubeconfig)), boat_of(place, kubeconfig)) == ([], boat)
                eventually(lambda: len(pods_of(place, kubeconfig)) == 2, "its Pods are back")

            process = place.start("rollout", "boat/polite", *there, *options)
            eventually(
                lambda: "restartedAt" in place.kubectl(kubeconfig, "-n", "shop", "get", "boats", "-o", "json"), "it"
            )
            process.send_signal(signal.SIGKILL)
            process.wait()
            left = place.run("doctor", *there[:4])
            assert (left.status, "restore spec.template" in left.out, "of Boat polite" in left.out) == (1, True, True)
            assert "nothing is left" in place.ok("cleanup", *there[:4], f"--yes={context}")
            assert (difference(before, everything(kubeconfig)), boat_of(place, kubeconfig)) == ([], boat)
        place.ok("down", "--name", "theirs")
