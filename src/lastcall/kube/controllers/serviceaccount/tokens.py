"""Fills Secrets of the type `kubernetes.io/service-account-token`, and deletes those whose ServiceAccount is gone.

Source: pkg/controller/serviceaccount/tokens_controller.go. There the controller signs tokens that never expire with a
key of its own; here it asks the API server for one that is bound to the Secret, for as long as a request may say
(2^32 s). It is good while Secret and ServiceAccount live, as theirs is.

`FirstTokenSecret` starts the controller with the first such Secret: before, it costs nothing.
"""

import asyncio
import base64

from lastcall.kube.api.errors import StatusError, is_conflict, is_not_found
from lastcall.kube.api.meta import Object, annotations_of, copy_object, is_terminating, name_of, namespace_of, uid_of
from lastcall.kube.api.resources import SECRETS, SERVICEACCOUNTS
from lastcall.kube.client.api import Client
from lastcall.kube.controllers.informers import NAMESPACE, Informers
from lastcall.kube.controllers.worker import Retry, Worker, split_key
from lastcall.world import crash_guard
from lastcall.world.world import World

COMPONENT = "serviceaccount-token-controller"
FILLED_TYPE = "kubernetes.io/service-account-token"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
LIFETIME_SECONDS = 2**32


def is_token_secret(secret: Object) -> bool:
    return bool(secret.get("type") == FILLED_TYPE and annotations_of(secret).get(ACCOUNT_NAME))


class FirstTokenSecret:
    def __init__(self, world: World, client: Client, informers: Informers, root_ca_pem: bytes) -> None:
        self._world, self._client, self._informers, self._root_ca_pem = world, client, informers, root_ca_pem
        self._needed = asyncio.Event()
        informers.get(SECRETS).add_handler(lambda secret: self._needed.set() if is_token_secret(secret) else None)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._needed.wait()
        controller = TokenSecretController(self._world, self._client, self._informers, self._root_ca_pem)
        await crash_guard.keep_running(COMPONENT, controller.run, self._world.clock)


class TokenSecretController:
    def __init__(self, world: World, client: Client, informers: Informers, root_ca_pem: bytes) -> None:
        self._client = client
        self._root_ca = base64.b64encode(root_ca_pem).decode("ascii")
        self._secrets, self._accounts = informers.get(SECRETS), informers.get(SERVICEACCOUNTS)
        self._worker = Worker(world, COMPONENT, self._sync, client=client)
        self._secrets.add_handler(self._secret, lambda _, secret: self._secret(secret))
        self._accounts.add_handler(self._account, None, self._account)

    async def run(self) -> None:
        """Work until cancelled; starts when the caches are filled."""
        await self._worker.run([self._secrets, self._accounts])

    def _secret(self, secret: Object) -> None:
        if is_token_secret(secret):
            self._worker.queue.add(f"{namespace_of(secret)}/{name_of(secret)}")

    def _account(self, account: Object) -> None:
        for secret in self._secrets.by_index(NAMESPACE, namespace_of(account)):
            if annotations_of(secret).get(ACCOUNT_NAME) == name_of(account):
                self._secret(secret)

    async def _sync(self, key: str) -> None:
        """(`syncSecret`)"""
        secret = self._secrets.get(*split_key(key))
        if secret is None or is_terminating(secret) or not is_token_secret(secret):
            return
        account = await self._account_of(secret)
        try:
            if account is None:
                await self._client.delete(SECRETS, name_of(secret), namespace_of(secret), uid=uid_of(secret))
            elif not self._is_filled(secret, account):
                await self._fill(secret, account)
        except StatusError as error:
            if is_conflict(error):
                raise Retry(error.message) from error
            if not is_not_found(error):
                raise

    async def _account_of(self, secret: Object) -> Object | None:
        """The ServiceAccount of that name, and of that uid if the Secret says one. The cache may be behind."""
        name, uid = annotations_of(secret)[ACCOUNT_NAME], annotations_of(secret).get(ACCOUNT_UID)
        account = self._accounts.get(namespace_of(secret), name)
        if account is None or uid not in (None, "", uid_of(account)):
            try:
                account = await self._client.get(SERVICEACCOUNTS, name, namespace_of(secret))
            except StatusError as error:
                if is_not_found(error):
                    return None
                raise
        return account if uid in (None, "", uid_of(account)) else None

    def _is_filled(self, secret: Object, account: Object) -> bool:
        """(`secretUpdateNeeded`)"""
        data = secret.get("data") or {}
        return bool(
            data.get("ca.crt") == self._root_ca
            and data.get("namespace")
            and data.get("token")
            and annotations_of(secret).get(ACCOUNT_UID) == uid_of(account)
        )

    async def _fill(self, secret: Object, account: Object) -> None:
        """(`generateTokenIfNeeded`)"""
        new = copy_object(secret)
        data = new["data"] = dict(new.get("data") or {})
        data["ca.crt"] = self._root_ca
        data.setdefault("namespace", _encoded(namespace_of(secret)))
        if not data.get("token"):
            data["token"] = _encoded(await self._token(secret, account))
        new["metadata"]["annotations"] = {**annotations_of(secret), ACCOUNT_UID: uid_of(account)}
        await self._client.update(SECRETS, new, namespace_of(secret))

    async def _token(self, secret: Object, account: Object) -> str:
        bound = {"kind": "Secret", "apiVersion": "v1", "name": name_of(secret), "uid": uid_of(secret)}
        request: Object = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": [], "expirationSeconds": LIFETIME_SECONDS, "boundObjectRef": bound},
        }
        answer = await self._client.create(
            SERVICEACCOUNTS, request, namespace_of(secret), name=name_of(account), subresource="token"
        )
        return str(answer["status"]["token"])


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")
