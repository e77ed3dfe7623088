"""APIServices of what this server answers itself: made at its start for Kubernetes's kinds, always for declared ones.

Source: kube-aggregator pkg/controllers/autoregister/autoregister_controller.go:checkAPIService,
pkg/controlplane/controller/crdregistration/crdregistration_controller.go.
"""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from lastcall.kube.api.apiservices.local import ALWAYS, AUTOMANAGED, ON_START, local_service, service_name
from lastcall.kube.api.apiservices.routes import GroupVersion
from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, name_of, uid_of
from lastcall.kube.api.resources import APISERVICES
from lastcall.kube.apiserver.postponed import Postponed
from lastcall.kube.client.api import Client
from lastcall.world.tasks import Tasks


class Registration:
    """`own` are the group versions of Kubernetes's kinds, `declared` answers those of definitions now."""

    def __init__(
        self,
        client: Client,
        stored: Callable[[], Awaitable[list[Object]]],
        own: Iterable[GroupVersion],
        declared: Callable[[], Iterable[GroupVersion]],
        postponed: Postponed,
    ) -> None:
        self._client, self._stored, self._own, self._declared = client, stored, frozenset(own), declared
        self._postponed = postponed

    async def on_start(self) -> None:
        """Register Kubernetes's own kinds, side by side: a durable store keeps many writes in one go."""
        there = {name_of(each): each for each in await self._stored()}
        wanted = [local_service(*each, ON_START) for each in sorted(self._own)]
        async with Tasks() as tasks:
            for service in wanted:
                tasks.spawn(self._keep(service, there.get(name_of(service))), name="local APIServices")
        await self.of_definitions()

    async def of_definitions(self) -> None:
        """Register declared kinds: a group version that nobody declares any more loses its own APIService."""
        wanted = {
            service_name(*each): local_service(*each, ALWAYS) for each in self._declared() if each not in self._own
        }
        there = {name_of(each): each for each in await self._stored()}
        for name, service in wanted.items():
            await self._keep(service, there.get(name))
        for name, service in there.items():
            if name not in wanted and (service["metadata"].get("labels") or {}).get(AUTOMANAGED) == ALWAYS:
                await self._postponed.attempt(_named(service), partial(self._delete, service))

    async def _keep(self, service: Object, there: Object | None) -> None:
        await self._postponed.attempt(_named(service), partial(self._write, service, there))

    async def _write(self, service: Object, there: Object | None) -> None:
        try:
            if there is None:
                await self._client.create(APISERVICES, service)
            elif _is_managed(there) and there["spec"] != service["spec"]:
                await self._client.update(APISERVICES, {**there, "spec": service["spec"]})
        except StatusError as error:
            if error.code not in (404, 409):  # made, changed or deleted meanwhile
                raise

    async def _delete(self, service: Object) -> None:
        try:
            await self._client.delete(APISERVICES, name_of(service), uid=uid_of(service))
        except StatusError as error:
            if error.code not in (404, 409):
                raise


def _named(service: Object) -> str:
    """Return the words for an APIService in the log."""
    return f"{APISERVICES.kind} {name_of(service)}"


def _is_managed(service: Object) -> bool:
    return (service["metadata"].get("labels") or {}).get(AUTOMANAGED) in (ON_START, ALWAYS)
