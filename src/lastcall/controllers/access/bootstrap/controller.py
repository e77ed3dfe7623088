"""The controllers of bootstrap tokens: token-cleaner-controller and bootstrap-signer-controller.

Each begins with the first token. kube-controller-manager has them off unless they are named, as here; `lastcall up
--join-token` has them.

Source: pkg/controller/bootstrap/{tokencleaner,bootstrapsigner}.go.
"""

import asyncio

from lastcall.api.errors import StatusError, is_conflict, is_not_found
from lastcall.api.meta import Object, copy_object, name_of, uid_of
from lastcall.api.resources import CONFIGMAPS, SECRETS
from lastcall.api.text import bootstrap_tokens as tokens
from lastcall.client.api import Client
from lastcall.client.informer import Informer
from lastcall.controllers.informers import NAMESPACE, Informers
from lastcall.controllers.worker import Retry, Worker
from lastcall.world.clock import now
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

CLEANER = "token-cleaner-controller"
SIGNER = "bootstrap-signer-controller"
CLUSTER_INFO = ("kube-public", "cluster-info")


class TokenCleaner:
    """Deletes each token's Secret when its time is over."""

    def __init__(self, world: World, client: Client, informers: Informers) -> None:
        self._world, self._client = world, client
        self._secrets = informers.get(SECRETS)
        self._worker = Worker(world, CLEANER, self._sync, client=client)
        self._secrets.add_handler(self._changed, lambda _, secret: self._changed(secret))

    async def run(self) -> None:
        """Work until cancelled."""
        await self._worker.run([self._secrets])

    def _changed(self, secret: Object) -> None:
        if tokens.is_token_secret(secret):
            self._worker.queue.add(name_of(secret))

    async def _sync(self, name: str) -> None:
        secret = self._secrets.get(tokens.NAMESPACE, name)
        if secret is None or not tokens.is_token_secret(secret):
            return
        moment = now(self._world.clock)
        if tokens.is_expired(secret, moment):
            try:
                await self._client.delete(SECRETS, name, tokens.NAMESPACE, uid=uid_of(secret))
            except StatusError as error:
                if not is_not_found(error) and not is_conflict(error):
                    raise
        elif (at := tokens.expires_at(secret)) is not None:
            self._worker.queue.add_after(name, (at - moment).total_seconds())


class BootstrapSigner:
    """Keeps a signature of each token in the ConfigMap kube-public/cluster-info."""

    def __init__(self, world: World, client: Client, informers: Informers) -> None:
        self._world, self._client = world, client
        self._secrets = informers.get(SECRETS)
        self._worker = Worker(world, SIGNER, self._sync, client=client)
        self._needed = asyncio.Event()
        self._config_maps: Informer[Object] = Informer(
            client, CONFIGMAPS, CLUSTER_INFO[0], field_selector=f"metadata.name={CLUSTER_INFO[1]}", world=world
        )
        self._secrets.add_handler(self._secret, lambda _, secret: self._secret(secret), self._secret)
        self._config_maps.add_handler(self._config_map, lambda _, changed: self._config_map(changed))

    async def run(self) -> None:
        """Work until cancelled, from the first token on."""
        await self._needed.wait()
        async with Tasks() as tasks:
            tasks.spawn(self._config_maps.run(), name="informer cluster-info")
            await self._worker.run([self._secrets, self._config_maps])

    def _secret(self, secret: Object) -> None:
        if tokens.is_token_secret(secret):
            self._needed.set()
            self._worker.queue.add(CLUSTER_INFO[1])

    def _config_map(self, config_map: Object) -> None:
        self._worker.queue.add(name_of(config_map))

    async def _sync(self, key: str) -> None:
        """(`signConfigMap`)"""
        config_map = self._config_maps.get(*CLUSTER_INFO)
        if config_map is None:
            return
        moment = now(self._world.clock)
        every = [each for each in self._secrets.by_index(NAMESPACE, tokens.NAMESPACE) if tokens.is_token_secret(each)]
        signing = [token for each in every if (token := tokens.signing_token(each, moment)) is not None]
        data = config_map.get("data") or {}
        wanted = tokens.signed_data(data, signing)
        if wanted == data:
            return
        try:
            await self._client.update(CONFIGMAPS, {**copy_object(config_map), "data": wanted}, CLUSTER_INFO[0])
        except StatusError as error:
            if is_conflict(error):
                raise Retry(error.message) from error
            if not is_not_found(error):
                raise
