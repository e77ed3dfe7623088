"""Image names, read as Docker and containerd read them. Pure.

Source: github.com/distribution/reference `ParseDockerRef`; the error texts are what a kubelet shows behind "Failed to
apply default image tag" (kubelet util/parsers/parsers.go:ParseImageName).
"""

# check: pure

import json
import re

from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.world.dataclass import dataclass

DEFAULT_DOMAIN, DEFAULT_TAG = "docker.io", "latest"

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE = re.compile(
    rf"(?P<domain>{_DOMAIN})/(?P<path>{_COMPONENT}(?:/{_COMPONENT})*)"
    rf"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?"
)
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")
_HEX_LENGTH = {"sha256": 64, "sha384": 96, "sha512": 128}


@dataclass(frozen=True, slots=True)
class Reference:
    """A whole image name. With a digest the tag says nothing and is dropped, as in containerd."""

    domain: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def repository(self) -> str:
        """Return `docker.io/library/busybox`."""
        return f"{self.domain}/{self.path}"

    @property
    def familiar(self) -> str:
        """Return the repository as people write it: `busybox`, `grafana/grafana`, `ghcr.io/a/b`."""
        if self.domain != DEFAULT_DOMAIN:
            return self.repository
        return self.path.removeprefix("library/")

    def __str__(self) -> str:
        """The normalised name: `docker.io/library/busybox:1.36`."""
        return f"{self.repository}@{self.digest}" if self.digest else f"{self.repository}:{self.tag}"


def parse_reference(image: str) -> Reference:
    """Parse a name: `busybox` is docker.io/library/busybox:latest. Raises RuntimeServiceError, reason
    InvalidImageName."""
    domain, remainder = _split_domain(image)
    try:
        if _IDENTIFIER.fullmatch(image):
            raise ValueError(f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings")
        path = re.split("[:@]", remainder, maxsplit=1)[0]
        if path.lower() != path:
            raise ValueError(f"invalid reference format: repository name ({path}) must be lowercase")
        match = _REFERENCE.fullmatch(f"{domain}/{remainder}")
        if match is None:
            raise ValueError("invalid reference format")
        if len(match["path"]) > 255:
            raise ValueError("repository name must not be more than 255 characters")
        digest = match["digest"] or ""
        _check_digest(digest)
    except ValueError as error:
        quoted = json.dumps(image, ensure_ascii=False)
        raise RuntimeServiceError(f"couldn't parse image name {quoted}: {error}", "InvalidImageName") from None
    tag = "" if digest else (match["tag"] or DEFAULT_TAG)
    return Reference(match["domain"], match["path"], tag, digest)


def _split_domain(image: str) -> tuple[str, str]:
    """The registry host, and the rest; a first part without dot, colon or capital is not a host."""
    first, slash, rest = image.partition("/")
    is_host = slash and (any(c in first for c in ".:") or first == "localhost" or first.lower() != first)
    domain, remainder = (first, rest) if is_host else (DEFAULT_DOMAIN, image)
    if domain == "index.docker.io":
        domain = DEFAULT_DOMAIN
    if domain == DEFAULT_DOMAIN and "/" not in remainder:
        remainder = f"library/{remainder}"
    return domain, remainder


def _check_digest(digest: str) -> None:
    if not digest:
        return
    algorithm, _, encoded = digest.partition(":")
    if algorithm not in _HEX_LENGTH:
        raise ValueError("unsupported digest algorithm")
    if len(encoded) != _HEX_LENGTH[algorithm]:
        raise ValueError("invalid checksum digest length")
    if encoded != encoded.lower():
        raise ValueError("invalid checksum digest format")
