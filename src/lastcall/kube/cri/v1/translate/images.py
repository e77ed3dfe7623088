"""Images, and the credentials for registries. Pure."""

from typing import Any

from lastcall.kube.cri import api
from lastcall.kube.cri.v1.messages import new


def image_spec(name: str) -> Any:
    return new("ImageSpec", image=name)


def image_of(message: Any) -> api.Image:
    return api.Image(
        id=message.id,
        repo_tags=tuple(message.repo_tags),
        repo_digests=tuple(message.repo_digests),
        size=message.size,
        user=str(message.uid.value) if message.HasField("uid") else message.username,
        annotations=dict(message.spec.annotations),
        pinned=message.pinned,
    )


def auth_message(auth: api.AuthConfig) -> Any:
    return new(
        "AuthConfig",
        username=auth.username,
        password=auth.password,
        identity_token=auth.identity_token,
        registry_token=auth.registry_token,
    )
