"""What was read, in one line. Pure."""

# check: pure

from collections.abc import Sequence
from itertools import takewhile

from lastcall.kube.api import Resource, name_of
from lastcall.manifests.read import Manifest

_FILES, _NAMES = 3, 3
"""So many are named; of more only the number."""


def summary(manifests: Sequence[Manifest]) -> str:
    """Return `pod.yaml: 1 Pod, web`: the files, and of each kind how many objects and their names."""
    files = sorted({each.place.file for each in manifests})
    where = ", ".join(files) if len(files) <= _FILES else f"{len(files)} files"
    names: dict[Resource, list[str]] = {}
    for each in manifests:
        names.setdefault(each.resource, []).append(name_of(each.obj))
    return f"{where}: {'; '.join(_kind(*each) for each in names.items())}"


def _kind(resource: Resource, names: Sequence[str]) -> str:
    counted = f"1 {resource.kind}" if len(names) == 1 else f"{len(names)} {_plural(resource)}"
    return f"{counted}, {', '.join(names)}" if len(names) <= _NAMES else counted


def _plural(resource: Resource) -> str:
    """Return `NetworkPolicies`: the kind with its capitals, ending as the resource's plural does."""
    same = takewhile(
        lambda letters: letters[0] == letters[1], zip(resource.kind.lower(), resource.plural, strict=False)
    )
    count = len(list(same))
    return resource.kind[:count] + resource.plural[count:]
