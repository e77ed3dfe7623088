"""What every namespace gets: the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`.

Source: pkg/controller/serviceaccount/serviceaccounts_controller.go and
pkg/controller/certificates/rootcacertpublisher/publisher.go. Both come back when a user deletes them, as long as the
namespace is not terminating.
"""

from lastcall.kube.api.errors import StatusError, is_already_exists, is_not_found
from lastcall.kube.api.meta import Object, is_terminating, name_of, namespace_of
from lastcall.kube.api.resources import CONFIGMAPS, SERVICEACCOUNTS, Resource
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.client.informer import Informer
from lastcall.kube.client.workqueue import WorkQueue
from lastcall.kube.controllers.errors import namespace_is_terminating
from lastcall.world import crash_guard
from lastcall.world.world import World

COMPONENT = "serviceaccount-controller"
SERVICE_ACCOUNT = "default"
ROOT_CA = "kube-root-ca.crt"
DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class ServiceAccountController:
    """Reads `namespaces`, `service_accounts` and `config_maps` (caches that need hold no more than the two names).

    `publisher` writes the ConfigMaps: Kubernetes has two controllers here, each with rights of its own.
    """

    def __init__(
        self,
        *,
        world: World,
        client: Client,
        publisher: Client,
        namespaces: Informer,
        service_accounts: Informer,
        config_maps: Informer,
        root_ca_pem: bytes,
    ) -> None:
        self._client, self._publisher = client, publisher
        self._namespaces = namespaces
        self._service_accounts = service_accounts
        self._config_maps = config_maps
        self._data = {"ca.crt": root_ca_pem.decode("ascii")}
        self._queue: WorkQueue[str] = WorkQueue(world, name="serviceaccount")
        namespaces.add_handler(
            lambda namespace: self._queue.add(name_of(namespace)),
            lambda _, namespace: self._queue.add(name_of(namespace)),
        )
        service_accounts.add_handler(None, None, self._changed)
        config_maps.add_handler(None, lambda _, new: self._changed(new), self._changed)

    def _changed(self, obj: Object) -> None:
        if name_of(obj) in (SERVICE_ACCOUNT, ROOT_CA):
            self._queue.add(namespace_of(obj))

    async def run(self) -> None:
        """Work until cancelled; starts when the caches are filled."""
        for informer in (self._namespaces, self._service_accounts, self._config_maps):
            await informer.synced()
        while True:
            namespace = await self._queue.get()
            if crash_guard.on_turn is not None:
                crash_guard.on_turn(COMPONENT, namespace)
            try:
                await self._sync(namespace)
            except (StatusError, ConnectionLost):
                self._queue.add_rate_limited(namespace)
            except Exception as error:
                crash_guard.caught(COMPONENT, namespace, error)
                self._queue.add_rate_limited(namespace)
            else:
                self._queue.forget(namespace)
            finally:
                self._queue.done(namespace)

    async def _sync(self, name: str) -> None:
        namespace = self._namespaces.get("", name)
        if namespace is None or is_terminating(namespace):
            return
        try:
            if self._service_accounts.get(name, SERVICE_ACCOUNT) is None:
                account = {
                    "kind": SERVICEACCOUNTS.kind,
                    "apiVersion": SERVICEACCOUNTS.api_version,
                    "metadata": {"name": SERVICE_ACCOUNT, "namespace": name},
                }
                await self._ensure(self._client, SERVICEACCOUNTS, account, name)
            config_map = self._config_maps.get(name, ROOT_CA)
            if config_map is None:
                await self._ensure(self._publisher, CONFIGMAPS, self._root_ca(name), name)
            elif config_map.get("data") != self._data:
                await self._publisher.update(CONFIGMAPS, {**config_map, "data": self._data}, name)
        except StatusError as error:
            # The namespace went away or began to while we wrote; its next event reports it, nothing is to be retried.
            if is_not_found(error) or namespace_is_terminating(error):
                return
            raise

    @staticmethod
    async def _ensure(client: Client, resource: Resource, obj: Object, namespace: str) -> None:
        try:
            await client.create(resource, obj, namespace)
        except StatusError as error:
            if not is_already_exists(error):
                raise

    def _root_ca(self, namespace: str) -> Object:
        return {
            "kind": CONFIGMAPS.kind,
            "apiVersion": CONFIGMAPS.api_version,
            "metadata": {
                "name": ROOT_CA,
                "namespace": namespace,
                "annotations": {"kubernetes.io/description": DESCRIPTION},
            },
            "data": self._data,
        }
