"""APIServices: those without a Service are this server's own, and always available.

Source: kube-aggregator pkg/registry/apiservice/strategy.go.
"""

from lastcall.kube.api.apiservices.local import local_condition
from lastcall.kube.api.apiservices.routes import Routes
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import APISERVICES
from lastcall.kube.apiserver.strategies.base import Strategy, Undo
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.world.clock import Clock, rfc3339_now


class APIServiceStrategy(Strategy):
    """Requests go where an APIService says from the moment it is written."""

    allow_unconditional_update = False

    def __init__(self, routes: Routes, clock: Clock) -> None:
        super().__init__(APISERVICES)
        self._routes, self._clock = routes, clock

    def prepare_for_create(self, obj: Object) -> None:
        local = (obj.get("spec") or {}).get("service") is None
        obj["status"] = {"conditions": [local_condition(obj["metadata"]["creationTimestamp"])]} if local else {}

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_for_update(new, old, subresource)
        if not subresource and new["spec"].get("service") is None and old["spec"].get("service") is not None:
            new["status"] = {"conditions": [local_condition(rfc3339_now(self._clock))]}

    def begin_create(self, obj: Object, context: RequestContext) -> Undo:
        return self._routes.put(obj)

    def after_update(self, new: Object, old: Object) -> None:
        self._routes.put(new)

    def after_delete(self, obj: Object) -> None:
        self._routes.remove(obj)
