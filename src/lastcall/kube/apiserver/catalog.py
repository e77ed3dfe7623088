"""What a server serves: Kubernetes's own kinds, which never change, and the declared ones, which come and go."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lastcall.kube.api.apiservices.routes import Routes
from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.features.releases import RELEASES
from lastcall.kube.api.resources import METRICS, Resource
from lastcall.kube.apiserver.discovery import Discovery
from lastcall.world.clock import Clock

if TYPE_CHECKING:
    from lastcall.kube.apiserver.openapi.documents import OpenAPI


class Catalog:
    """`declared` answers the kinds that are declared and served now; tell `changed` when that is something else.

    `address` is `host:port` as clients should see it in /api. `routes`: what other servers answer.
    """

    def __init__(
        self,
        clock: Clock,
        resources: Sequence[Resource],
        kubernetes_version: str,
        address: str,
        declared: Callable[[], Sequence[CustomResource]] = tuple,
        routes: Routes | None = None,
    ) -> None:
        self._routes = routes or Routes()
        self._clock, self._resources = clock, tuple(resources)
        self.version, self._address, self._declared = kubernetes_version, address, declared
        self._by_path = {(each.group, each.version, each.plural): each for each in resources}
        self._discovery: Discovery | None = None
        self._openapi: OpenAPI | None = None
        self._custom: dict[tuple[str, str, str], CustomResource] = {}

    def changed(self) -> None:
        """Drop the documents: the next request makes them anew."""
        self._discovery = self._openapi = None
        self._custom = {(each.group, each.version, each.plural): each for each in self._declared()}

    def resource(self, group: str, version: str, plural: str) -> Resource | None:
        return self._by_path.get((group, version, plural)) or self._custom.get((group, version, plural))

    @property
    def discovery(self) -> Discovery:
        if self._discovery is None:
            remote = tuple(self._routes.remote.values())
            self._discovery = Discovery(self._served(), self.version, self._address, remote)
        return self._discovery

    @property
    def openapi(self) -> "OpenAPI":
        if self._openapi is None:
            # late: with the first client that asks for a schema
            from lastcall.kube.apiserver.openapi.documents import OpenAPI

            described = [each for each in self._served() if each not in METRICS]
            self._openapi = OpenAPI(self._clock, described, f"v{RELEASES[self.version]}")
        return self._openapi

    def _served(self) -> list[Resource]:
        """Without what other servers answer."""
        remote = self._routes.remote
        return [
            each
            for each in (*self._resources, *self._custom.values())
            if not remote or (each.group, each.version) not in remote
        ]
