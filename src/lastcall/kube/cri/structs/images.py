"""Images, and the credentials for registries."""

from dataclasses import field

from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Image:
    """`id` is the config digest; `size` in bytes. `annotations` carry lastcall's own facts (see `SUBSTITUTE_FOR`).

    A `pinned` image is not to be garbage collected."""

    id: str
    repo_tags: tuple[str, ...] = ()
    repo_digests: tuple[str, ...] = ()
    size: int = 0
    user: str = ""
    annotations: dict[str, str] = field(default_factory=dict)
    pinned: bool = False


SUBSTITUTE_FOR = "lastcall.dev/substitute-for"
"""Image annotation: this image was made from the host's own files because the named one is not available."""


@dataclass(frozen=True, slots=True)
class AuthConfig:
    """Credentials for a registry: user and password, or an identity token, or a token for the registry itself."""

    username: str = ""
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)
    registry_token: str = field(default="", repr=False)
