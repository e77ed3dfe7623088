"""A Pod's end as a kubelet writes it, on an API server that has no kubelet: status by status, Event by Event."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import ENDPOINTSLICES, EVENTS, PODS, SERVICEACCOUNTS
from lastcall.kube.client.api import Client

NODE = "by-hand"


def manifest(name: str = "web", **spec: Any) -> Object:
    container: dict[str, Any] = {"name": "app", "image": "x", **spec.pop("container", {})}
    return {
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"nodeName": NODE, "terminationGracePeriodSeconds": 10, "containers": [container], **spec},
    }


class PodByHand:
    """`begin` makes it Running, `delete` deletes it as a user does, `killing` and `end` are the kubelet's."""

    def __init__(self, client: Client, pod: Object, namespace: str = "default") -> None:
        self._client, self._pod, self._namespace = client, pod, namespace
        self.name = str(pod["metadata"]["name"])
        self._started = ""
        self._uid = ""

    async def begin(self) -> None:
        with suppress(StatusError):  # it is there
            await self._client.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, self._namespace)
        made = await self._client.create(PODS, self._pod, self._namespace)
        self._uid, self._started = str(made["metadata"]["uid"]), _now()
        await self._status("Running", {"running": {"startedAt": self._started}}, ready=True)

    async def endpoint(self, **conditions: bool) -> None:
        """Write its only EndpointSlice; without conditions the endpoint is gone."""
        name = f"{self.name}-slice"
        target = {"kind": "Pod", "name": self.name, "namespace": self._namespace, "uid": self._uid}
        endpoints = [{"addresses": ["10.9.8.7"], "conditions": conditions, "targetRef": target}] if conditions else []
        labels = {"kubernetes.io/service-name": self.name}
        body = {"metadata": {"name": name, "labels": labels}, "addressType": "IPv4", "endpoints": endpoints}
        if conditions == {"ready": True, "serving": True, "terminating": False}:
            await self._client.create(ENDPOINTSLICES, body, self._namespace)
        else:
            await self._client.patch(ENDPOINTSLICES, name, {"endpoints": endpoints}, self._namespace)

    async def delete(self) -> None:
        await self._client.delete(PODS, self.name, self._namespace)

    async def event(self, reason: str, message: str, type_: str = "Normal") -> None:
        about = {"kind": "Pod", "name": self.name, "namespace": self._namespace, "uid": self._uid, "apiVersion": "v1"}
        event = {
            "metadata": {"generateName": f"{self.name}."},
            "involvedObject": {**about, "fieldPath": "spec.containers{app}"},
            "reason": reason,
            "message": message,
            "type": type_,
            "firstTimestamp": _now(),
            "lastTimestamp": _now(),
            "count": 1,
            "source": {"component": "kubelet", "host": NODE},
        }
        await self._client.create(EVENTS, event, self._namespace)

    async def killing(self) -> None:
        await self.event("Killing", "Stopping container app")

    async def end(self, code: int = 0) -> None:
        """Its container has ended, and its object goes."""
        ended = {"exitCode": code, "reason": "Completed" if code == 0 else "Error", "containerID": "x://1"}
        times = {"startedAt": self._started, "finishedAt": _now()}
        await self._status("Failed" if code else "Succeeded", {"terminated": {**ended, **times}}, ready=False)
        await self._client.delete(PODS, self.name, self._namespace, grace_period_seconds=0)

    async def _status(self, phase: str, state: Object, *, ready: bool) -> None:
        container = {
            "name": "app",
            "image": "x",
            "imageID": "x",
            "containerID": "x://1",
            "ready": ready,
            "restartCount": 0,
            "state": state,
        }
        conditions = [{"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": _now()}]
        status = {"phase": phase, "podIP": "10.9.8.7", "podIPs": [{"ip": "10.9.8.7"}], "conditions": conditions}
        await self._client.patch(
            PODS, self.name, {"status": {**status, "containerStatuses": [container]}}, self._namespace,
            subresource="status",
        )  # fmt: skip


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
