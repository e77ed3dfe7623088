"""Mounts of a container. Pure."""

from dataclasses import replace
from typing import Any

from lastcall.cri import api
from lastcall.cri.v1.messages import new
from lastcall.cri.v1.translate.images import image_spec
from lastcall.cri.v1.translate.parts import word

_PROPAGATIONS: tuple[api.MountPropagation, ...] = ("PRIVATE", "HOST_TO_CONTAINER", "BIDIRECTIONAL")


def mount_of(message: Any) -> api.Mount:
    return api.Mount(
        container_path=message.container_path,
        host_path=message.host_path,
        readonly=message.readonly,
        image=message.image.image,
        image_sub_path=message.image_sub_path,
        propagation=word(_PROPAGATIONS, message.propagation, "mount propagation"),
    )


def asked_mount_of(message: Any) -> api.Mount:
    """Of a caller who knows the difference: what is read-only is not so with all below it unless it says so."""
    return replace(mount_of(message), non_recursive=message.readonly and not message.recursive_read_only)


def mount_message(mount: api.Mount, *, recursive_read_only: bool = False) -> Any:
    return new(
        "Mount",
        container_path=mount.container_path,
        host_path=mount.host_path,
        readonly=mount.readonly,
        image=image_spec(mount.image) if mount.image else None,
        image_sub_path=mount.image_sub_path,
        propagation=_PROPAGATIONS.index(mount.propagation),
        recursive_read_only=recursive_read_only,
    )
