"""Bootstrap tokens: what a kubelet that joins proves itself with, and the Secrets that hold them. Pure.

A token is `ID.SECRET`; it is good as long as the Secret `bootstrap-token-ID` in kube-system says so.

Sources: k8s.io/cluster-bootstrap/token/{api/types.go,util/helpers.go,jws/jws.go},
plugin/pkg/auth/authenticator/token/bootstrap/bootstrap.go, pkg/controller/bootstrap/util.go.
"""

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from lastcall.api.meta import Object
from lastcall.api.text.times import parse_rfc3339

NAMESPACE = "kube-system"
SECRET_TYPE = "bootstrap.kubernetes.io/token"  # noqa: S105 - a type
SECRET_NAME = "bootstrap-token-"  # noqa: S105 - begins a name
USER = "system:bootstrap:"
GROUP = "system:bootstrappers"
USAGE_AUTHENTICATION, USAGE_SIGNING = "usage-bootstrap-authentication", "usage-bootstrap-signing"
SIGNATURE = "jws-kubeconfig-"
"""Begins the key of a token's signature in the ConfigMap kube-public/cluster-info."""

_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_EXTRA_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")


class Token(NamedTuple):
    """`secret` is the part that nobody else is to know."""

    id: str
    secret: str

    def __str__(self) -> str:
        return f"{self.id}.{self.secret}"


def parse(text: str) -> Token | None:
    """None for what is not a bootstrap token."""
    found = _TOKEN.fullmatch(text)
    return Token(found[1], found[2]) if found else None


def secret_of(token: Token, expires: str, groups: str) -> Object:
    """The Secret that makes the token good until `expires` (RFC 3339), as kubeadm writes it."""
    data = {
        "token-id": token.id,
        "token-secret": token.secret,
        "expiration": expires,
        USAGE_AUTHENTICATION: "true",
        USAGE_SIGNING: "true",
        "auth-extra-groups": groups,
    }
    return {
        "metadata": {"name": SECRET_NAME + token.id, "namespace": NAMESPACE},
        "type": SECRET_TYPE,
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


def is_token_secret(secret: Object) -> bool:
    return bool(secret.get("type") == SECRET_TYPE and secret["metadata"].get("namespace") == NAMESPACE)


def expires_at(secret: Object) -> datetime | None:
    """When the token ends; None for never. Raises ValueError for a time that cannot be read, which is as good as past
    (helpers.go:GetExpiration)."""
    text = _data(secret).get("expiration", "")
    return parse_rfc3339(text) if text else None


def is_expired(secret: Object, moment: datetime) -> bool:
    try:
        at = expires_at(secret)
    except ValueError:
        return True
    return at is not None and at <= moment


def groups_of(token: Token, secret: Object, moment: datetime) -> list[str] | None:
    """The groups of who shows `token`, by its Secret; None when it is not good (`AuthenticateToken`)."""
    data = _data(secret)
    if secret.get("type") != SECRET_TYPE or secret["metadata"].get("deletionTimestamp"):
        return None
    if not hmac.compare_digest(data.get("token-secret", "").encode(), token.secret.encode()):
        return None
    if data.get("token-id") != token.id or is_expired(secret, moment) or data.get(USAGE_AUTHENTICATION) != "true":
        return None
    extra = {word for word in data.get("auth-extra-groups", "").split(",") if word}
    if any(not _EXTRA_GROUP.fullmatch(each) for each in extra):
        return None
    return [GROUP, *sorted(extra)]


def signing_token(secret: Object, moment: datetime) -> Token | None:
    """The token that signs cluster-info, None for a Secret that may not (util.go:validateSecretForSigning)."""
    data = _data(secret)
    token = parse(f"{data.get('token-id', '')}.{data.get('token-secret', '')}")
    if token is None or secret["metadata"]["name"] != SECRET_NAME + token.id or is_expired(secret, moment):
        return None
    return token if data.get(USAGE_SIGNING) == "true" else None


def detached_signature(content: str, token: Token) -> str:
    """A JWS (HS256) of `content` without it: who knows the token knows that it is whole."""
    header = _base64url(json.dumps({"alg": "HS256", "kid": token.id}, separators=(",", ":")).encode())
    signed = f"{header}.{_base64url(content.encode())}".encode()
    return f"{header}..{_base64url(hmac.digest(token.secret.encode(), signed, hashlib.sha256))}"


def signed_data(data: Mapping[str, str], tokens: list[Token]) -> dict[str, str]:
    """What cluster-info's data is to be: a signature of each token, and of no other (bootstrapsigner.go)."""
    if "kubeconfig" not in data:
        return dict(data)
    kept = {key: value for key, value in data.items() if not key.startswith(SIGNATURE)}
    return kept | {SIGNATURE + each.id: detached_signature(data["kubeconfig"], each) for each in tokens}


def _data(secret: Object) -> dict[str, str]:
    """Decoded; what is not text counts as absent."""
    found = {}
    for key, value in (secret.get("data") or {}).items():
        try:
            found[key] = base64.b64decode(value).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
    return found


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
