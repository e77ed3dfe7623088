"""The whole API of a cluster, in a form in which two moments can be compared: what an experiment leaves differs.

What a cluster writes by itself is left out: versions, statuses, leases, events, what a server makes some time after its
start, and names of Pods, of which new ones are made in the place of others.
"""

import asyncio
import json
from collections import Counter
from typing import Any

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, copy_object, name_of, namespace_of
from lastcall.kube.api.resources import SERVED
from lastcall.kube.client.api import Client
from lastcall.kube.client.kubeconfig import client_for, load_kubeconfig

LEFT_OUT = {
    "ComponentStatus",
    "CSINode",
    "Endpoints",
    "EndpointSlice",
    "Event",
    "FlowSchema",
    "IPAddress",
    "Lease",
    "Node",
    "PriorityLevelConfiguration",
    "ServiceCIDR",
}
_COUNTED = ("deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history")
"""Annotations in which a Deployment's controller counts its rollouts: no rollout is ever taken back there."""


async def whole_api(client: Client) -> Counter[str]:
    """Every object of every kind that the cluster serves and the user may list, as text, and how often it is there."""
    found: Counter[str] = Counter()
    for resource in SERVED:
        if resource.kind in LEFT_OUT:
            continue
        try:
            items = (await client.list(resource)).items
        except StatusError as error:
            if error.code not in (403, 404, 405):
                raise
            continue
        found.update(f"{resource.kind} {namespace_of(each)}/{_told(resource.kind, each)}" for each in items)
    return found


def everything(kubeconfig: str) -> Counter[str]:
    """`whole_api` as the user of a kubeconfig sees it; opens and closes its own client."""

    async def look() -> Counter[str]:
        client = client_for(load_kubeconfig(kubeconfig))
        try:
            return await whole_api(client)
        finally:
            await client.close()

    return asyncio.run(look())


def difference(before: Counter[str], after: Counter[str]) -> list[str]:
    """Empty where both are equal; else what came (`+`) and what went (`-`)."""
    came = [f"+ {each}" for each in sorted((after - before).elements())]
    return came + [f"- {each}" for each in sorted((before - after).elements())]


def _told(kind: str, obj: Object) -> str:
    plain = copy_object(obj)
    meta = plain["metadata"]
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key not in _COUNTED}
    kept: dict[str, Any] = {"labels": meta.get("labels"), "annotations": annotations or None}
    if kind == "Pod":
        owners = [owner["name"] for owner in meta.get("ownerReferences") or ()]
        images = [each["image"] for each in plain["spec"]["containers"]]
        return json.dumps([owners or name_of(obj), images, "deletionTimestamp" in meta], sort_keys=True)
    rest = {key: value for key, value in plain.items() if key not in ("metadata", "status", "kind", "apiVersion")}
    if kind == "ControllerRevision":
        rest.pop("revision", None)  # counted up by each update, also by one back
    return f"{name_of(obj)} {json.dumps([kept, rest], sort_keys=True)}"
