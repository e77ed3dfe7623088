"""Platforms of images, and which of an index's images a machine takes. Pure.

Source: github.com/containerd/platforms (normalisation, `Only`: the machine's own, then what it also runs).
"""

import os
from collections.abc import Sequence
from typing import Any

from lastcall.world.dataclass import dataclass

_ARCHITECTURES = {
    "x86_64": ("amd64", ""),
    "x86-64": ("amd64", ""),
    "aarch64": ("arm64", ""),
    "armv8l": ("arm", "v7"),
    "armv7l": ("arm", "v7"),
    "armhf": ("arm", "v7"),
    "armv6l": ("arm", "v6"),
    "armel": ("arm", "v6"),
    "i386": ("386", ""),
    "i686": ("386", ""),
    "loongarch64": ("loong64", ""),
}
_ALSO = {"amd64": ("386",)}
"""Architecture → others whose programs its kernel runs too."""


class PlatformError(ValueError):
    """Not a platform; the text says what one looks like."""


@dataclass(frozen=True, slots=True)
class Platform:
    """`os/architecture[/variant]` in Go's words. An empty variant is the architecture's usual one."""

    os: str
    architecture: str
    variant: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.os, self.architecture, self.variant) if part)


def this_machine() -> Platform:
    """Return the platform of the kernel that runs us."""
    machine = os.uname().machine
    return _normalised("linux", *_ARCHITECTURES.get(machine, (machine, "")))


def parse_platform(text: str) -> Platform:
    """Parse `linux/arm64`, `linux/arm/v7`, `arm64`, `x86_64`. Raises PlatformError."""
    parts = text.strip().lower().split("/")
    if len(parts) == 1:
        parts = ["linux", *parts]
    if not 2 <= len(parts) <= 3 or not all(part.replace("-", "").replace("_", "").isalnum() for part in parts):
        raise PlatformError(f"{text!r} is not a platform; use for example linux/amd64, linux/arm64 or linux/arm/v7")
    if parts[0] != "linux":
        raise PlatformError(f"{text!r}: only images for linux can be used")
    architecture, variant = _ARCHITECTURES.get(parts[1], (parts[1], ""))
    return _normalised(parts[0], architecture, parts[2] if len(parts) == 3 else variant)


def platform_of(value: Any) -> Platform | None:
    """Return the platform of an index entry or an image configuration; None if it says none."""
    if not isinstance(value, dict) or not value.get("architecture"):
        return None
    texts = [str(value.get(key) or "").lower() for key in ("os", "architecture", "variant")]
    architecture, variant = _ARCHITECTURES.get(texts[1], (texts[1], ""))
    return _normalised(texts[0] or "linux", architecture, texts[2] or variant)


def rank(offered: Platform | None, wanted: Platform) -> int | None:
    """Rank how well an image fits: 0 is best, None does not run. No platform fits anything, as a last resort."""
    if offered is None:
        return 1000
    if offered.os != wanted.os:
        return None
    architectures = (wanted.architecture, *_ALSO.get(wanted.architecture, ()))
    if offered.architecture not in architectures:
        return None
    distance = 100 * architectures.index(offered.architecture)
    if offered.architecture != wanted.architecture:
        return distance
    have, want = _level(offered), _level(wanted)
    # A later variant has instructions that this machine lacks.
    return None if have > want else distance + want - have


def choose(entries: Sequence[Any], wanted: Platform) -> Any | None:
    """Choose the entry of an image index that fits best, the first of equals; None if none does."""
    best: tuple[int, Any] | None = None
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        fit = rank(platform_of(entry.get("platform")), wanted)
        if fit is not None and (best is None or fit < best[0]):
            best = (fit, entry)
    return None if best is None else best[1]


def _normalised(system: str, architecture: str, variant: str) -> Platform:
    if (architecture, variant) in (("arm64", "v8"), ("arm64", "8"), ("arm", "v7"), ("arm", "7"), ("amd64", "v1")):
        variant = ""
    if variant.isdigit():
        variant = f"v{variant}"
    return Platform(system, architecture, variant)


def _level(platform: Platform) -> int:
    digits = platform.variant.removeprefix("v").split(".")[0]
    if digits.isdigit():
        return int(digits)
    return {"arm64": 8, "arm": 7, "amd64": 1}.get(platform.architecture, 0)
