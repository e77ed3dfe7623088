"""Who may use the kubelet's endpoint, where the cluster decides: webhook authentication and authorization.

Client certificates are the cluster's authority's, tokens are asked about (TokenReview), and so is every right
(SubjectAccessReview). Sources: server/auth.go:NodeRequestAttributes, apis/config/v1beta1/defaults.go (cache times).
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lastcall.api.errors import StatusError
from lastcall.api.resources import SUBJECTACCESSREVIEWS, TOKENREVIEWS
from lastcall.client.api import Client, ConnectionLost
from lastcall.world.clock import Clock, monotonic

if TYPE_CHECKING:
    from aiohttp import web

TOKEN_SECONDS, ALLOWED_SECONDS, DENIED_SECONDS = 120.0, 300.0, 30.0
MOST_KEPT = 1024

_VERBS = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SUBRESOURCES = {
    "stats": "stats",
    "metrics": "metrics",
    "logs": "log",
    "checkpoint": "checkpoint",
    "statusz": "statusz",
}
_FINE = {"pods": "pods", "runningpods": "pods", "healthz": "healthz", "configz": "configz"}
"""Asked for first; whoever may `proxy` may these, too (KubeletFineGrainedAuthz)."""

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


def subresources(path: str) -> tuple[str, ...]:
    """Of the Node, any of which is enough."""
    first = path.lstrip("/").partition("/")[0]
    if first in _FINE:
        return _FINE[first], "proxy"
    return (_SUBRESOURCES.get(first, "proxy"),)


def user_of_certificate(certificate: dict[str, Any] | None) -> User | None:
    """Of `SSLObject.getpeercert`, which has been verified."""
    subject = [pair for group in (certificate or {}).get("subject", ()) for pair in group]
    names = [value for key, value in subject if key == "commonName"]
    groups = tuple(value for key, value in subject if key == "organizationName")
    return User(names[0], groups) if names and names[0] else None


class WebhookAccess:
    """`refusal` of a request. `client` is the node's own, which may ask for reviews."""

    def __init__(self, client: Client, clock: Clock, node_name: str) -> None:
        self._client, self._node_name = client, node_name
        self._users: _Kept[bytes, User | None] = _Kept(clock)
        self._rights: _Kept[tuple[User, str, str], bool] = _Kept(clock)

    async def refusal(self, request: web.Request) -> web.Response | None:
        """What it is answered; None: it may."""
        # late: most nodes are never asked
        from aiohttp import web

        try:
            user = await self._user(request)
            if user is None:
                return web.Response(status=401, text="Unauthorized")
            verb, wanted = _VERBS.get(request.method, ""), subresources(request.path)
            for subresource in wanted:
                if await self._may(user, verb, subresource):
                    return None
        except (StatusError, ConnectionLost) as error:
            return web.Response(status=500, text=f"Authorization error: the API server cannot be asked: {error}")
        return web.Response(
            status=403,
            text=f"Forbidden (user={user.name}, verb={verb}, resource=nodes, subresource(s)=[{' '.join(wanted)}])\n",
        )

    async def _user(self, request: web.Request) -> User | None:
        certificate = request.transport.get_extra_info("peercert") if request.transport else None
        if certificate and (user := user_of_certificate(certificate)) is not None:
            return user
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return None
        key = hashlib.sha256(token.strip().encode()).digest()
        if key not in self._users:
            review = {
                "apiVersion": TOKENREVIEWS.api_version,
                "kind": TOKENREVIEWS.kind,
                "spec": {"token": token.strip()},
            }
            status = (await self._client.create(TOKENREVIEWS, review)).get("status") or {}
            self._users.keep(key, _user_of(status), TOKEN_SECONDS)
        return self._users[key]

    async def _may(self, user: User, verb: str, subresource: str) -> bool:
        key = user, verb, subresource
        if key not in self._rights:
            attributes = {
                "verb": verb,
                "version": "v1",
                "resource": "nodes",
                "subresource": subresource,
                "name": self._node_name,
            }
            spec = {
                "user": user.name,
                "groups": list(user.groups),
                "uid": user.uid,
                "extra": {name: list(values) for name, values in user.extra},
                "resourceAttributes": attributes,
            }
            review = {
                "apiVersion": SUBJECTACCESSREVIEWS.api_version,
                "kind": SUBJECTACCESSREVIEWS.kind,
                "spec": spec,
            }
            status = (await self._client.create(SUBJECTACCESSREVIEWS, review)).get("status") or {}
            allowed = bool(status.get("allowed"))
            self._rights.keep(key, allowed, ALLOWED_SECONDS if allowed else DENIED_SECONDS)
        return self._rights[key]


def _user_of(status: dict[str, Any]) -> User | None:
    """Of a TokenReview's status."""
    found = status.get("user") or {}
    if not status.get("authenticated") or not found.get("username"):
        return None
    extra = tuple((name, tuple(values)) for name, values in sorted((found.get("extra") or {}).items()))
    return User(str(found["username"]), tuple(found.get("groups") or ()), str(found.get("uid") or ""), extra)


class _Kept(Generic[K, V]):
    """What was answered, for a time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._found: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def __contains__(self, key: K) -> bool:
        return key in self._found and self._found[key][0] > monotonic(self._clock)

    def __getitem__(self, key: K) -> V:
        return self._found[key][1]

    def keep(self, key: K, value: V, seconds: float) -> None:
        self._found.pop(key, None)
        while len(self._found) >= MOST_KEPT:
            self._found.popitem(last=False)
        self._found[key] = (monotonic(self._clock) + seconds, value)
