"""The Eviction of a Pod, as it is posted."""

# check: pure

from collections.abc import Mapping
from typing import Any


def eviction(name: str, namespace: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object; `options` are DeleteOptions."""
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": dict(options),
    }
