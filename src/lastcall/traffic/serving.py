"""Which containers of a Pod requests go to, by its manifest. Pure."""

# check: pure

from collections.abc import Mapping
from typing import Any


def serving_containers(pod_spec: Mapping[str, Any], port: int | str) -> tuple[int | None, set[str]]:
    """Return the number of a Service's target port, and the names of the containers that declare it.

    The number is None for a named port that no container declares.
    """
    declared = [
        (each["name"], its["containerPort"])
        for each in [*(pod_spec.get("initContainers") or ()), *pod_spec["containers"]]
        for its in each.get("ports") or ()
        if port in (its["containerPort"], its.get("name"))
    ]
    number = port if isinstance(port, int) else next((number for _, number in declared), None)
    return number, {name for name, _ in declared}
