"""Images of the sandbox runtime: the names other packages use.

`image_reference` reads names, `image_layout` keeps images on disk, `image_layers` unpacks them, `image_build` and
`from_host` make them, `image_store` puts it together. `image_pull` and `image_import` are imported where they are used:
a cluster that pulls nothing does not pay for them.
"""

from lastcall.cri.sandbox.from_host import host_image
from lastcall.cri.sandbox.image_build import MADE_FROM, Files, ImageContent
from lastcall.cri.sandbox.image_layout import ImageError
from lastcall.cri.sandbox.image_reference import Reference, parse_reference
from lastcall.cri.sandbox.image_store import (
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
