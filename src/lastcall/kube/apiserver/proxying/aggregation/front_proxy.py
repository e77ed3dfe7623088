"""With what this server proves to another one that it speaks for a user, and how it says which one. Pure.

Sources: client-go transport/round_trippers.go (SetAuthProxyHeaders),
pkg/controlplane/controller/clusterauthenticationtrust.
"""

from collections.abc import Iterator
from dataclasses import field
from urllib.parse import quote

import orjson

from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.world.dataclass import dataclass

FRONT_PROXY_CLIENT = "front-proxy-client"
"""The name in the certificate (kubeadm's)."""
AUTHENTICATION_CONFIG = "extension-apiserver-authentication"
_NOT_IN_A_KEY = "!#$&'*+-.^_`|~"
"""What a header's name may have besides letters and digits."""


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """PEM. `ca_certificate` signed `certificate`."""

    ca_certificate: bytes = b""
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)


def user_headers(user: UserInfo) -> Iterator[tuple[str, str]]:
    """Yield headers that say who asks, for a server that trusts the certificate."""
    yield "X-Remote-User", user.name
    if user.uid:
        yield "X-Remote-Uid", user.uid
    for group in user.groups:
        yield "X-Remote-Group", group
    for key, values in user.extra.items():
        for value in values:
            yield f"X-Remote-Extra-{quote(key.lower(), safe=_NOT_IN_A_KEY)}", value


def authentication_config(client_ca: bytes, front_proxy: FrontProxy) -> Object:
    """Return the ConfigMap of kube-system by which an aggregated server knows users and us."""
    data = {"client-ca-file": client_ca.decode()} if client_ca else {}
    if front_proxy.ca_certificate:
        data |= {
            "requestheader-allowed-names": _listed(FRONT_PROXY_CLIENT),
            "requestheader-client-ca-file": front_proxy.ca_certificate.decode(),
            "requestheader-extra-headers-prefix": _listed("X-Remote-Extra-"),
            "requestheader-group-headers": _listed("X-Remote-Group"),
            "requestheader-username-headers": _listed("X-Remote-User"),
        }
    return {"metadata": {"name": AUTHENTICATION_CONFIG}, "data": data}


def _listed(text: str) -> str:
    return orjson.dumps([text]).decode()
