"""The versions of CNI, and what differs between them. Pure."""

# check: pure

from collections.abc import Iterable

VERSIONS = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
"""Those that this runtime speaks, oldest first."""
OLDEST = VERSIONS[0]
"""What a configuration without `cniVersion` has."""


def newest(offered: Iterable[str]) -> tuple[str, ...]:
    """Return the known ones of `offered`, newest first, each once."""
    wanted = frozenset(offered)
    return tuple(version for version in reversed(VERSIONS) if version in wanted)


def at_least(version: str, least: str) -> bool:
    """Return whether a known version is `least` or newer."""
    return VERSIONS.index(version) >= VERSIONS.index(least)


def choose(offered: Iterable[str], supported: Iterable[Iterable[str]]) -> str:
    """Choose the newest of `offered` that every plugin supports; without one the newest: the plugin says why not.

    `supported` are the plugins' own lists (CNI specification, VERSION).
    """
    ours = newest(offered)
    theirs = [frozenset(each) for each in supported]
    return next((version for version in ours if all(version in each for each in theirs)), ours[0])
