"""Mounts of a container. Pure."""

from typing import Any

from lastcall.kube.cri import api
from lastcall.kube.cri.v1.messages import new
from lastcall.kube.cri.v1.translate.images import image_spec


def mount_of(message: Any) -> api.Mount:
    return api.Mount(
        container_path=message.container_path,
        host_path=message.host_path,
        readonly=message.readonly,
        image=message.image.image,
        image_sub_path=message.image_sub_path,
    )


def mount_message(mount: api.Mount) -> Any:
    return new(
        "Mount",
        container_path=mount.container_path,
        host_path=mount.host_path,
        readonly=mount.readonly,
        image=image_spec(mount.image) if mount.image else None,
        image_sub_path=mount.image_sub_path,
    )
