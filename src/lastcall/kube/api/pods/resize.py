"""What a resize of a Pod in place may say. Pure.

Source: pkg/registry/core/pod/strategy.go:dropNonResizeUpdates.
"""

from typing import Any

from lastcall.kube.api.meta import Object

RESIZABLE = ("resources", "resizePolicy")
"""The fields of a container that the subresource hears; validation refuses a change of the second one."""
_GROUPS = ("containers", "initContainers")


def resized(stored: Object, wanted: Object) -> Object:
    """Return the stored spec with the resources that a request wants.

    Containers stay as the request has them in number, order and name: validation sees what is wrong with that.
    """
    spec = {key: value for key, value in stored.items() if key != "resources"}
    if wanted.get("resources") is not None:
        spec["resources"] = wanted["resources"]
    for group in _GROUPS:
        known = {container["name"]: container for container in stored.get(group) or ()}
        containers = [_resized(known.get(container.get("name")), container) for container in wanted.get(group) or ()]
        if containers:
            spec[group] = containers
        else:
            spec.pop(group, None)
    return spec


def _resized(stored: Object | None, wanted: Object) -> Object:
    if stored is None:
        return wanted
    kept: dict[str, Any] = {key: value for key, value in stored.items() if key not in RESIZABLE}
    return {**kept, **{key: wanted[key] for key in RESIZABLE if key in wanted}}
