"""Images, and the credentials for registries. Pure."""

from typing import Any

from lastcall.cri import api
from lastcall.cri.v1.messages import new


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


def image_message(image: api.Image) -> Any:
    """Only the user of `user:group`. Source: containerd internal/cri/server/images/image_status.go:getUserFromImage."""
    user = image.user.partition(":")[0]
    number = int(user) if user.isascii() and user.isdigit() and len(user) < 11 else None
    return new(
        "Image",
        id=image.id,
        repo_tags=image.repo_tags,
        repo_digests=image.repo_digests,
        size=image.size,
        uid=None if number is None else new("Int64Value", value=number),
        username=user if number is None else "",
        spec=new("ImageSpec", annotations=image.annotations) if image.annotations else None,
        pinned=image.pinned,
    )


def auth_of(message: Any) -> api.AuthConfig:
    return api.AuthConfig(message.username, message.password, message.identity_token, message.registry_token)


def auth_message(auth: api.AuthConfig) -> Any:
    return new(
        "AuthConfig",
        username=auth.username,
        password=auth.password,
        identity_token=auth.identity_token,
        registry_token=auth.registry_token,
    )
