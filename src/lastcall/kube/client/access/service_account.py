"""What a component proves itself with that acts by a ServiceAccount of its own: tokens that the API server makes.

The account is made when it is missing. A token is asked for again when four fifths of its life are over, and at once
after a 401: the account may have been deleted and made again meanwhile.

Source: k8s.io/controller-manager pkg/clientbuilder/client_builder_dynamic.go:tokenSourceImpl,
getOrCreateServiceAccount.
"""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from lastcall.kube.api.errors import StatusError, is_already_exists, is_not_found
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import NAMESPACES, SERVICEACCOUNTS, Resource
from lastcall.kube.client.access.config import ClientConfig
from lastcall.kube.client.access.credentials import CredentialsFailed, Proof
from lastcall.kube.client.access.tls import make_ssl_context
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.world import blocking

TOKEN_SECONDS = 3600
"""Asked for; the server may give another time. (`defaultExpirationSeconds`)"""
LEEWAY = 0.2
"""The part of a token's life in which it is no longer used. (`leewayPercent`)"""


def renew_at(now: float, expires: float) -> float:
    """Return when to ask for the next token, in seconds since 1970 by our own clock. Pure."""
    return now + max(0.0, expires - now) * (1 - LEEWAY)


class AccountCredentials:
    """Of the ServiceAccount `name`, at the cluster of `config`; `asking` is a client that may make account and token.

    No client certificate of `config` is shown: a server that knows its user would not look at the token.
    """

    def __init__(
        self,
        asking: Client,
        config: ClientConfig,
        name: str,
        namespace: str = "kube-system",
        wall: Callable[[], float] = blocking.wall,
    ) -> None:
        self._asking, self._config, self._name, self._namespace, self._wall = asking, config, name, namespace, wall
        self._tls: ssl.SSLContext | None = None
        if config.server.startswith("https://"):
            self._tls = make_ssl_context(ca_pem=config.ca_pem, insecure_skip_tls_verify=config.insecure_skip_tls_verify)
        self._proof: Proof | None = None
        self._renew_at = 0.0
        self._lock = asyncio.Lock()

    async def proof(self) -> Proof:
        """Return the proof for the next request. Raises CredentialsFailed."""
        async with self._lock:
            if self._proof is None or self._wall() >= self._renew_at:
                self._proof = await self._made()
            return self._proof

    async def refused(self, proof: Proof) -> bool:
        """Note that the server answered 401 to `proof`: the next request gets another one."""
        if proof is self._proof:
            self._proof = None
        return True

    async def _made(self) -> Proof:
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS},
        }
        try:
            await self._account()
            answer = await self._asking.create(
                SERVICEACCOUNTS, request, self._namespace, name=self._name, subresource="token"
            )
            status = answer["status"]
            expires = datetime.fromisoformat(status["expirationTimestamp"]).timestamp()
            token = str(status["token"])
        except (StatusError, ConnectionLost) as error:
            raise CredentialsFailed(f"a token of the ServiceAccount {self._namespace}/{self._name}: {error}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise CredentialsFailed(
                f"the answer to the TokenRequest of {self._namespace}/{self._name} has no token: {error!r}"
            ) from error
        self._renew_at = renew_at(self._wall(), expires)
        return Proof(f"Bearer {token}", self._tls)

    async def _account(self) -> None:
        """Try to make the namespace: a user who may make the account need not be allowed to make its namespace."""
        if await self._is_there(SERVICEACCOUNTS, self._name, self._namespace):
            return
        with suppress(StatusError):
            if not await self._is_there(NAMESPACES, self._namespace):
                await self._make(NAMESPACES, {"name": self._namespace})
        await self._make(SERVICEACCOUNTS, {"name": self._name, "namespace": self._namespace})

    async def _is_there(self, resource: Resource, name: str, namespace: str = "") -> bool:
        try:
            await self._asking.get(resource, name, namespace)
        except StatusError as error:
            if not is_not_found(error):
                raise
            return False
        return True

    async def _make(self, resource: Resource, meta: Object) -> None:
        obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta}
        try:
            await self._asking.create(resource, obj, str(meta.get("namespace", "")))
        except StatusError as error:
            if not is_already_exists(error):
                raise
