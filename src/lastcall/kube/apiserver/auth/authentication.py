"""Who is asking, and how they are refused. What they may is decided in `authorizer`.

Authentication tries, in this order: the verified client certificate (CN = user, O = groups), a static bearer token,
a ServiceAccount token. A bearer token that nobody accepts is 401; no credentials at all is `system:anonymous`.

Source: apiserver pkg/authentication/request/{union,x509,bearertoken,anonymous}.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any

from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.api.field import go_quote
from lastcall.kube.apiserver.requestinfo import RequestInfo
from lastcall.world.dataclass import dataclass

ALL_AUTHENTICATED = "system:authenticated"
ALL_UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
NODES_GROUP = "system:nodes"
NODE_USER = "system:node:"
"""Begins the user name of a node."""


@dataclass(frozen=True, slots=True)
class UserInfo:
    """A user as authentication saw it (authentication/user.Info)."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


def node_of(user: UserInfo) -> str | None:
    """Return the name of the node that `user` is, "" when it has none, None for a user that is not a node.

    (nodeidentifier/default.go)
    """
    if not user.name.startswith(NODE_USER) or NODES_GROUP not in user.groups:
        return None
    return user.name[len(NODE_USER) :]


ANONYMOUS = UserInfo("system:anonymous", (ALL_UNAUTHENTICATED,))

VerifyToken = Callable[[str], Awaitable[UserInfo | None]]
"""The ServiceAccount user of a token, None when the token is not acceptable."""


class Authenticator:
    """Finds the user of a request. `tokens` are static bearer tokens, `verify_token` checks ServiceAccount tokens."""

    def __init__(self, tokens: Mapping[str, UserInfo], verify_token: VerifyToken) -> None:
        # By digest, so that how long a lookup takes says nothing about a token.
        self._tokens = {_digest(token): _authenticated(user) for token, user in tokens.items()}
        self._headers = {_digest(f"Bearer {token}"): _authenticated(user) for token, user in tokens.items()}
        self._verify_token = verify_token

    def known(self, authorization: str, peer_certificate: Mapping[str, Any] | None) -> UserInfo | None:
        """Return the user of a certificate or static token without waiting; None: `authenticate` has to decide."""
        if peer_certificate:
            return certificate_user(peer_certificate)
        return self._headers.get(_digest(authorization)) if authorization.isascii() else None

    async def authenticate(self, authorization: str, peer_certificate: Mapping[str, Any] | None) -> UserInfo:
        """Return the user of a request. Raises the 401 StatusError for a bearer token that is not accepted.

        `authorization` is the header's value, `peer_certificate` what `ssl` says of a verified client certificate.
        """
        if peer_certificate:
            user = certificate_user(peer_certificate)
            if user is not None:
                return user
        token = bearer_token(authorization)
        return await self.user_of(token) if token else ANONYMOUS

    async def user_of(self, token: str) -> UserInfo:
        """Return the user of a bearer token. Raises the 401 StatusError for one that is not accepted."""
        # What is not ASCII is not a token that anybody gave.
        user = (self._tokens.get(_digest(token)) or await self._verify_token(token)) if token.isascii() else None
        if user is None:
            raise status_failure(401, "Unauthorized", "Unauthorized")
        return _authenticated(user)


def _authenticated(user: UserInfo) -> UserInfo:
    if ALL_AUTHENTICATED in user.groups:
        return user
    return UserInfo(user.name, (*user.groups, ALL_AUTHENTICATED), user.uid, user.extra)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def bearer_token(authorization: str) -> str:
    """Return the token of an `Authorization: Bearer …` header, "" for any other header."""
    scheme, _, token = authorization.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def certificate_user(peer_certificate: Mapping[str, Any]) -> UserInfo | None:
    """Read CN and O of the subject, in the form of `ssl.SSLSocket.getpeercert()`; None without a CN."""
    return _subject_user(peer_certificate.get("subject", ()))


@lru_cache(256)
def _subject_user(subject: tuple[tuple[tuple[str, str], ...], ...]) -> UserInfo | None:
    name = ""
    groups = []
    for relative_name in subject:
        for key, value in relative_name:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    return UserInfo(name, (*groups, ALL_AUTHENTICATED)) if name else None


# Controllers and scheduler have roles of their own in Kubernetes, which are not distinguished here: they run in the API
# server's process.
_PRIVILEGED_USERS = frozenset({"system:kube-controller-manager", "system:kube-scheduler", "system:apiserver"})


def is_superuser(user: UserInfo) -> bool:
    """Return whether `user` is allowed everything, without roles (authorizerfactory.NewPrivilegedGroups)."""
    return user.name in _PRIVILEGED_USERS or MASTERS in user.groups


def forbidden_request(user: UserInfo, request: RequestInfo, reason: str = "") -> StatusError:
    """Return the 403 of a refused request, in the words of responsewriters/errors.go:forbiddenMessage.

    `reason` is what the authorizer has to say besides.
    """
    because = f": {reason}" if reason else ""
    if not request.is_resource_request:
        message = f'forbidden: User {go_quote(user.name)} cannot {request.verb} path "{request.path}"{because}'
        return status_failure(403, "Forbidden", message, {})
    resource = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    where = f'in the namespace "{request.namespace}"' if request.namespace else "at the cluster scope"
    qualified = f"{request.resource}.{request.group}" if request.group else request.resource
    subject = f"{qualified} {go_quote(request.name)}" if request.name else qualified
    details = {"name": request.name, "group": request.group, "kind": request.resource}
    return status_failure(
        403,
        "Forbidden",
        f'{subject} is forbidden: User {go_quote(user.name)} cannot {request.verb} resource "{resource}" '
        f'in API group "{request.group}" {where}{because}',
        {key: value for key, value in details.items() if value},
    )
