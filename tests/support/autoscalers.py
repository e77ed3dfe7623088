"""An API with one scale and metrics of Pods, for tests of the autoscaler."""

from collections.abc import Mapping
from typing import Any

from fake_api import FakeAPI

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.resources import EVENTS, HORIZONTALPODAUTOSCALERS, POD_METRICS, Resource
from lastcall.kube.client.api import ListResult
from lastcall.world.clock import rfc3339_now
from lastcall.world.world import World


class API(FakeAPI):
    """With one scale and metrics of Pods."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.scale: Object = {"spec": {"replicas": 2}, "status": {"replicas": 2, "selector": "app=web"}}
        self.used: dict[str, str] = {}
        self.asked: list[tuple[str, str, str]] = []
        self.refuse_scale: StatusError | None = None
        self.refuse_metrics: StatusError | None = None

    async def get(self, resource: Resource, name: str, namespace: str = "", *, subresource: str = "") -> Object:
        if subresource != "scale":
            return await super().get(resource, name, namespace)
        self.asked.append((resource.group, resource.plural, name))
        return copy_object(self.scale)

    async def update(
        self, resource: Resource, obj: Mapping[str, Any], namespace: str = "", *, subresource: str = ""
    ) -> Object:
        if subresource != "scale":
            return await super().update(resource, obj, namespace, subresource=subresource)
        if self.refuse_scale is not None:
            raise self.refuse_scale
        self.scale = copy_object(dict(obj))
        return self.scale

    async def list(self, resource: Resource, namespace: str = "", **selectors: str) -> ListResult:
        if resource != POD_METRICS:
            return await super().list(resource, namespace, **selectors)
        if self.refuse_metrics is not None:
            raise self.refuse_metrics
        assert selectors == {"label_selector": "app=web"} and namespace == "default"
        moment = rfc3339_now(self.world.clock)
        return ListResult([
            {"metadata": {"name": name, "namespace": "default"}, "timestamp": moment, "window": "15s",
             "containers": [{"name": "c", "usage": {"cpu": cpu, "memory": "64Mi"}}]}
            for name, cpu in self.used.items()
        ], "1")  # fmt: skip


def autoscaler(*metrics: Object, kind: str = "Deployment", group: str = "apps/v1", **spec: object) -> Object:
    target = {"apiVersion": group, "kind": kind, "name": "web"}
    known = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 10, "metrics": list(metrics)}
    return {"metadata": {"name": "hpa", "namespace": "default"}, "spec": {**known, **spec}}


def status(api: API) -> Object:
    return api.of(HORIZONTALPODAUTOSCALERS)[0].get("status") or {}


def conditions(api: API) -> dict[str, tuple[str, str, str]]:
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in status(api)["conditions"]}


def events(api: API) -> list[tuple[str, str, str]]:
    return [(each["type"], each["reason"], each["message"]) for each in api.of(EVENTS)]
