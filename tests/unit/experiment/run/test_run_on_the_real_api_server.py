"""`lastcall run` against the real API server over HTTPS, with a kubelet that only writes statuses."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from api_server import CONTROLLER, NODE, running_server, stand_in_controllers

from lastcall.cli.run.experiment import run_manifests
from lastcall.errors import UserError, WorldError
from lastcall.experiment.run.options import RunOptions
from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import BINDINGS, NODES, PODS
from lastcall.manifests.read import load_manifests
from lastcall.records import kinds as k
from lastcall.records.memory import MemoryRecorder
from lastcall.world.clock import RealClock

pytestmark = pytest.mark.loopback

OPTIONS = RunOptions(after=0, timeout=60)


class APICluster:
    """The Cluster that a run needs, on a real API server. The server's own records are not in its story."""

    client: Any = None

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._recorder = MemoryRecorder("front", RealClock())
        self._tasks: list[asyncio.Task] = []

    async def connect(self) -> None:
        self.running = await self._stack.enter_async_context(running_server())
        self.client = self.running.http()
        controllers = stand_in_controllers(self.running.server.client(CONTROLLER), b"")
        self._tasks = [asyncio.ensure_future(each) for each in (controllers, self._kubelet())]

    async def wait_node_ready(self) -> None:
        await self.running.server.client(NODE).create(NODES, {"metadata": {"name": "node-1"}})

    def on_record(self, callback) -> None:
        self._callback = callback

    def on_process_died(self, callback) -> None: ...

    def recorder(self, actor: str) -> "APICluster":
        return self

    def record(self, kind: str, **rest: Any) -> str:
        identity = self._recorder.record(kind, **rest)
        self._callback(self._recorder.records[-1])
        return identity

    def kubeconfig_path(self) -> str:
        return ""

    def why_it_hung(self, role: str) -> str:
        return ""

    def last_words(self, role: str, lines: int = 20) -> str:
        return ""

    async def drain_records(self, seconds: float = 0.05) -> None:
        await asyncio.sleep(0)

    def stop(self) -> None:
        """The loop has ended everything; the stack's server with it."""

    async def _kubelet(self) -> None:
        node = self.running.server.client(NODE)
        async with node.watch(PODS) as events:
            async for event in events:
                if event.type == "DELETED":
                    continue
                try:
                    await self._sync(node, event.object)
                except StatusError as error:
                    if error.reason not in ("Conflict", "NotFound"):
                        raise

    async def _sync(self, node: Any, pod: dict) -> None:
        name, namespace, uid = (pod["metadata"][field] for field in ("name", "namespace", "uid"))
        if not pod["spec"].get("nodeName"):
            target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "node-1"}}
            await node.create(BINDINGS, target, namespace)
        elif pod["metadata"].get("deletionTimestamp"):
            if pod["status"]["phase"] == "Running":
                self.record(
                    k.PROCESS_EXITED, pod_uid=uid, container="app", facts={"pid": 7, "exitCode": 0, "signal": None}
                )
                await node.patch(PODS, name, {"status": {"phase": "Succeeded"}}, namespace, subresource="status")
                await node.delete(PODS, name, namespace, grace_period_seconds=0, uid=uid)
        elif pod["status"]["phase"] == "Pending":
            self.record(k.PROCESS_STARTED, pod_uid=uid, container="app", facts={"pid": 7, "exe": "/app"})
            ready = {"type": "Ready", "status": "True"}
            status = {"status": {"phase": "Running", "conditions": [ready]}}
            await node.patch(PODS, name, status, namespace, subresource="status")


@pytest.fixture
def run(tmp_path):
    def run(text, options=OPTIONS):
        file = tmp_path / "pod.yaml"
        file.write_text(text)
        return run_manifests(load_manifests([str(file)]), options, lambda _: APICluster())

    return run


POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: {namespace}
spec:
  containers:
    - name: app
      image: busybox:1.36
"""


def test_a_pod_in_a_namespace_of_its_own_is_created_ended_and_followed_to_its_end(run, capsys):
    assert run(POD.format(namespace="shop")) == 0
    out, err = capsys.readouterr()
    assert "namespace shop created" in err
    assert "shop/web ended gracefully" in out
    assert "phase Succeeded; gone after" in out


def test_a_finalizer_that_nobody_removes_is_named(run, monkeypatch):
    monkeypatch.setattr("lastcall.experiment.run.embedded.longest_grace", lambda pods, asked: 0.0)
    text = POD.format(namespace="default").replace("name: web", "name: web\n  finalizers: [example.com/hold]", 1)
    with pytest.raises(WorldError) as error:
        run(text, replace(OPTIONS, timeout=0.5))
    assert "default/web is still there 0.5 s after the DELETE" in str(error.value)
    assert "example.com/hold: the controller of example.com that added it" in str(error.value)


POLICY = """
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: policy}
webhooks:
- name: pods.policy.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: policy-webhook, namespace: default}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [pods]}]
"""


def test_a_delete_that_a_webhook_refuses_is_answered_with_its_configuration_service_and_policy(run):
    with pytest.raises(WorldError) as error:
        run(POD.format(namespace="default") + POLICY)
    assert 'failed calling webhook "pods.policy.example.com"' in str(error.value)
    assert (
        "fix: webhook pods.policy.example.com of ValidatingWebhookConfiguration policy (failurePolicy: Fail) does not "
        "answer: its Service default/policy-webhook does not exist"
    ) in str(error.value)


def test_a_pod_whose_owner_is_deleted_and_whose_own_delete_is_refused_is_not_waited_for(run, monkeypatch):
    """As the garbage collector sees it: the first DELETE is answered, and each one after it is refused."""
    monkeypatch.setattr("lastcall.experiment.run.embedded.longest_grace", lambda pods, asked: 0.0)
    monkeypatch.setattr("lastcall.experiment.run.embedded.ASK_SECONDS", 0.2)

    async def nobody_deletes(*_args, **_more):
        return True

    monkeypatch.setattr("lastcall.experiment.run.embedded.delete_if_exists", nobody_deletes)
    with pytest.raises(WorldError) as error:
        run(POD.format(namespace="default") + POLICY)
    first, why, fix = str(error.value).splitlines()
    assert first == "default/web is still there 0.2 s after the DELETE"
    assert "the API server refuses its DELETE" in why
    assert "of ValidatingWebhookConfiguration policy" in fix


def test_a_pod_that_nobody_deletes_is_asked_about_and_stays(run, monkeypatch):
    monkeypatch.setattr("lastcall.experiment.run.embedded.longest_grace", lambda pods, asked: 0.0)
    monkeypatch.setattr("lastcall.experiment.run.embedded.ASK_SECONDS", 0.2)

    async def nobody_deletes(*_args, **_more):
        return True

    monkeypatch.setattr("lastcall.experiment.run.embedded.delete_if_exists", nobody_deletes)
    with pytest.raises(WorldError) as error:
        run(POD.format(namespace="default"), replace(OPTIONS, timeout=0.5))
    assert str(error.value) == "default/web is still there 0.5 s after the DELETE"


def test_what_only_the_api_server_knows_is_told_with_its_place(run):
    text = POD.format(namespace="default").replace("spec:", "spec:\n  priorityClassName: vip")
    with pytest.raises((UserError, WorldError)) as error:
        run(text, replace(OPTIONS, timeout=0.3))
    assert "web" in str(error.value)
