"""Kinds that are stored nowhere: what nodes and Pods use now, how the parts of the control plane are."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from lastcall.kube.api.errors import resource_not_found
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.verbs.kinds import ServedKinds
from lastcall.kube.apiserver.wire.options import ListOptions

if TYPE_CHECKING:
    from lastcall.kube.apiserver.subresources.component_statuses import ComponentStatuses
    from lastcall.kube.apiserver.subresources.metrics_server import MetricsServer

AskRemote = Callable[[str], Awaitable[Object | None]]
"""A GET of a path that another server answers; None where this one does."""


class Computed:
    """`open_metrics` makes what answers metrics.k8s.io when it is asked first, `others` what answers for the rest."""

    def __init__(
        self,
        kinds: ServedKinds,
        open_metrics: "Callable[[], MetricsServer] | None",
        others: "Mapping[Resource, Callable[[], ComponentStatuses]]",
        ask_remote: AskRemote,
    ) -> None:
        self._kinds, self._ask_remote = kinds, ask_remote
        self._open_metrics, self._others = open_metrics, others
        self._metrics: MetricsServer | None = None

    @property
    def metrics(self) -> "MetricsServer":
        """Return the source of metrics. Raises the 404 StatusError where there is none."""
        if self._metrics is None:
            if self._open_metrics is None:
                raise resource_not_found()
            self._metrics = self._open_metrics()
        return self._metrics

    def computed(self, resource: Resource) -> "MetricsServer | ComponentStatuses":
        """Return what answers for a kind that is stored nowhere. Raises the 404 StatusError."""
        opened = self._others.get(resource)
        return self.metrics if opened is None else opened()

    async def list_metrics(self, resource: Resource, namespace: str, options: ListOptions) -> list[Object]:
        """List NodeMetrics or PodMetrics, of whatever server has them. Raises StatusError."""
        path = f"{resource.path(namespace)}?{urlencode({'labelSelector': options.label_selector})}"
        answer = await self._ask_remote(path)
        if answer is None:
            answer = await self.metrics.all_of(resource, namespace, self._kinds.selection(resource, options).matches)
        return [each for each in answer.get("items") or () if isinstance(each, dict)]
