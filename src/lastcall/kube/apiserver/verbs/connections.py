"""Logs, exec, attach and port-forward: what a kubelet answers."""

import ssl
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from lastcall.kube.api.errors import service_unavailable
from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.streaming.location import stream_location
from lastcall.kube.apiserver.subresources.actions import open_log
from lastcall.kube.apiserver.subresources.kubelet_client import KubeletLogs
from lastcall.kube.apiserver.verbs.kinds import ServedKinds

if TYPE_CHECKING:
    from multidict import MultiMapping

    from lastcall.kube.apiserver.streaming.proxy import KubeletStreams


class Connections:
    """All methods raise StatusError."""

    def __init__(self, kinds: ServedKinds, logs: KubeletLogs | None, streams: "KubeletStreams | None") -> None:
        self._kinds, self._logs, self._streams = kinds, logs, streams

    async def log(self, namespace: str, name: str, query: Mapping[str, str]) -> AsyncIterator[bytes] | None:
        return await open_log(self._kinds.stores, self._logs, namespace, name, query)

    async def stream(
        self, subresource: str, namespace: str, name: str, query: "MultiMapping[str]"
    ) -> "tuple[KubeletStreams, Object, str]":
        """Return how to reach a kubelet, the node, path and query there, for pods/exec, attach and portforward."""
        node, location = await stream_location(self._kinds.stores, subresource, namespace, name, query)
        if self._streams is None:
            raise service_unavailable("this API server has no connection to kubelets")
        return self._streams, node, location

    @property
    def kubelet_tls(self) -> ssl.SSLContext | None:
        """Return the context by which a kubelet knows this server, and this server a kubelet."""
        return None if self._streams is None else self._streams.tls
