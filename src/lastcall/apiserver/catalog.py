"""What a server serves: Kubernetes's own kinds, which never change, and the declared ones, which come and go."""

from collections.abc import Callable, Sequence

from lastcall.api.apiservices.routes import Routes
from lastcall.api.custom.kinds import CustomResource
from lastcall.api.resources import METRICS, Resource
from lastcall.apiserver.discovery import VERSIONS, Discovery
from lastcall.apiserver.openapi.documents import OpenAPI
from lastcall.world.clock import Clock


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
        self._made: tuple[Discovery, OpenAPI] | None = None
        self._custom: dict[tuple[str, str, str], CustomResource] = {}

    def changed(self) -> None:
        """The documents are made anew when somebody asks for them."""
        self._made = None
        self._custom = {(each.group, each.version, each.plural): each for each in self._declared()}

    def resource(self, group: str, version: str, plural: str) -> Resource | None:
        return self._by_path.get((group, version, plural)) or self._custom.get((group, version, plural))

    @property
    def discovery(self) -> Discovery:
        return self._documents()[0]

    @property
    def openapi(self) -> OpenAPI:
        return self._documents()[1]

    def _documents(self) -> tuple[Discovery, OpenAPI]:
        if self._made is None:
            remote = self._routes.remote
            everything = [
                each
                for each in (*self._resources, *self._custom.values())
                if not remote or (each.group, each.version) not in remote
            ]
            openapi = OpenAPI(
                self._clock, [each for each in everything if each not in METRICS], f"v{VERSIONS[self.version]}"
            )
            self._made = Discovery(everything, self.version, self._address, tuple(remote.values())), openapi
        return self._made
