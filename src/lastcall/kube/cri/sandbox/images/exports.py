"""Images of the sandbox runtime: the names other packages use.

`reference` reads names, `layout` keeps images on disk, `catalogue` reads them, `unpacking` unpacks them, `build` and
`from_host` make them, `store` puts it together. `pull` and `from_files` are imported where they are used:
a cluster that pulls nothing does not pay for them.
"""

from lastcall.kube.cri.sandbox.images.build import MADE_FROM, Files, ImageContent
from lastcall.kube.cri.sandbox.images.from_host import host_image
from lastcall.kube.cri.sandbox.images.layout import ImageError
from lastcall.kube.cri.sandbox.images.reference import Reference, parse_reference
from lastcall.kube.cri.sandbox.images.store import (
    HOST_SUBSTITUTES,
    ImageEntry,
    ImageStore,
    Pulls,
    Substitutes,
    build_image,
    default_root,
)

__all__ = [
    "HOST_SUBSTITUTES",
    "MADE_FROM",
    "Files",
    "ImageContent",
    "ImageEntry",
    "ImageError",
    "ImageStore",
    "Pulls",
    "Reference",
    "Substitutes",
    "build_image",
    "default_root",
    "host_image",
    "parse_reference",
]
