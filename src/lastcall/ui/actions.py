"""What the page does to a Pod, and asks about it, each by the request that kubectl makes for the same."""

import asyncio
from typing import Any
from urllib.parse import quote

import orjson

from lastcall.kube.api import EVENTS, PODS, AnyObject, eviction, name_of, namespace_of, uid_of
from lastcall.records.quoting import one_line
from lastcall.ui.source import PageClient

LOG_LINES = 500
LOG_BYTES = 1 << 20
LOG_SECONDS = 10.0


async def delete(client: PageClient, pod: AnyObject, grace: int | None) -> None:
    """Delete a Pod as `kubectl delete pod`; grace 0 is `--force --grace-period=0`.

    Only this very Pod. Raises StatusError.
    """
    where = (name_of(pod), namespace_of(pod))
    await client.delete(PODS, *where, grace_period_seconds=grace, uid=uid_of(pod))


async def evict(client: PageClient, pod: AnyObject, grace: int | None) -> None:
    """Evict a Pod as `kubectl drain` does it: a PodDisruptionBudget may refuse. Raises StatusError."""
    name, namespace = name_of(pod), namespace_of(pod)
    options: dict[str, Any] = {"preconditions": {"uid": uid_of(pod)}}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    await client.create(PODS, eviction(name, namespace, options), namespace, name=name, subresource="eviction")


async def events(client: PageClient, pod: AnyObject) -> list[dict[str, Any]]:
    """Return the Pod's Events, the latest last, without control characters. Raises StatusError."""
    selector = f"involvedObject.uid={uid_of(pod)}"
    found = await client.list(EVENTS, namespace_of(pod), field_selector=selector)
    rows = [
        {
            "type": one_line(str(each.get("type") or "Normal")),
            "reason": one_line(str(each.get("reason") or "")),
            "message": lines(str(each.get("message") or "")),
            "count": int(each.get("count") or 1),
            "from": one_line((each.get("source") or {}).get("component") or each.get("reportingComponent") or ""),
            "at": each.get("lastTimestamp") or each.get("eventTime") or "",
        }
        for each in found.items
    ]
    return sorted(rows, key=lambda row: str(row["at"]))


async def logs(client: PageClient, pod: AnyObject, container: str, previous: bool) -> str:
    """Return the last lines, without control characters. Raises StatusError, ConnectionLost, TimeoutError."""
    path = PODS.path(quote(namespace_of(pod), safe=""), quote(name_of(pod), safe=""), "log")
    query = [("tailLines", str(LOG_LINES)), ("limitBytes", str(LOG_BYTES))]
    query += [("container", container)] if container else []
    query += [("previous", "true")] if previous else []
    async with asyncio.timeout(LOG_SECONDS):
        return lines((await client.request("GET", path, query=query, accept="*/*")).decode("utf-8", "replace"))


def lines(text: str) -> str:
    """Return the text without control characters but for line ends: one may turn the text beside it."""
    return "\n".join(one_line(each.removesuffix("\r")) for each in text.split("\n"))


def plain(pod: AnyObject) -> dict[str, Any]:
    """Return the object without managedFields, as kubectl shows it."""
    copy: dict[str, Any] = orjson.loads(orjson.dumps(pod))
    copy.get("metadata", {}).pop("managedFields", None)
    return {"apiVersion": "v1", "kind": "Pod", **copy}
