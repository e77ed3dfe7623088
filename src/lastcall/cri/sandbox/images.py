"""Images of the sandbox runtime: the names other packages use.

`image_reference` reads names, `image_layout` keeps images on disk, `image_layers` unpacks them, `image_build` and
`from_host` make them, `image_store` puts it together.
"""

from lastcall.cri.sandbox.from_host import host_image
from lastcall.cri.sandbox.image_build import MADE_FROM, Files, ImageContent
from lastcall.cri.sandbox.image_layout import ImageError
from lastcall.cri.sandbox.image_reference import Reference, parse_reference
from lastcall.cri.sandbox.image_store import HOST_SUBSTITUTES, ImageStore, Substitutes, build_image, default_root

__all__ = [
    "HOST_SUBSTITUTES",
    "MADE_FROM",
    "Files",
    "ImageContent",
    "ImageError",
    "ImageStore",
    "Reference",
    "Substitutes",
    "build_image",
    "default_root",
    "host_image",
    "parse_reference",
]
