"""What keeps one difference from making others, and what the real server does not answer the same way twice."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from differential.comparing import differences
from differential.request import JSON, Request
from differential.servers import Answer, Server

MOST_REPEATS = 40
"""Go begins a small map at each of eight places alike: an order that one of them gives is then nearly always seen."""
PATIENT_SECONDS = 2.0
OWN_MANAGER = '"manager": "kube-apiserver"'
"""In what the real server writes by itself."""
REPAIRS = "-repair-controller"
"""How those are called that look after addresses and ports. (pkg/registry/core/service/{ipallocator,portallocator})"""
DEFINITIONS = "customresourcedefinitions"
OF_BOTH = ("apiservices", "flowschemas")
"""Of their objects both servers write a condition, each at a moment of its own."""
MOST_LOOKS, SECONDS_BETWEEN_LOOKS = 100, 0.02
_OF_NO_OBJECT = ("list", "watch", "deletecollection", "odd", "discovery")
_STAY = ("namespaces", "nodes/proxy")
"""A Namespace does not go without its controller."""


def both(request: Request, real: Server, ours: Server) -> tuple[Answer, Answer]:
    """Ask both. Watches that say different things are asked once more, with patience: nothing is written in between,
    and on a busy machine an event comes late."""
    of_events = request.about.endswith(" events") and request.verb in ("list", "watch")
    if of_events:
        forget_own_events(real)
    pair = real.ask(request), ours.ask(request)
    if request.verb == "watch" and any(differences(request, *pair)):
        pair = real.ask(request, PATIENT_SECONDS), ours.ask(request, PATIENT_SECONDS)
        if of_events and isinstance(told := pair[0].document, list):
            told = [each for each in told if OWN_MANAGER not in json.dumps(each)]
            pair = replace(pair[0], body=json.dumps(told).encode()), pair[1]
    return pair


def again(request: Request, real: Server, answer: Answer) -> Iterator[Answer]:
    """Yield what the real server says when it is asked again for what it refused.

    Go goes through a map in no order, so that several errors come in several orders, or to a review: the first of
    several bindings is the reason. Nothing changes by asking: each answer is one to a review, or a refusal, or the
    asking ends.
    """
    if not (400 <= answer.status <= 500 or request.about.endswith("reviews")) or request.is_read:
        return
    for _ in range(MOST_REPEATS):
        found = real.ask(request)
        if found.status != answer.status:
            return
        if found.body != answer.body:
            yield found


def forget_own_events(real: Server) -> None:
    """Delete the Events that the real server writes by itself, of Services whose addresses another Service has."""
    for event in real.get("/api/v1/events")["items"]:
        if str((event.get("source") or {}).get("component", event.get("reportingComponent", ""))).endswith(REPAIRS):
            meta = event["metadata"]
            real.ask(Request("DELETE", f"/api/v1/namespaces/{meta['namespace']}/events/{meta['name']}", "", "delete"))


def object_of(request: Request, pair: tuple[Answer, Answer]) -> str:
    """Return the path of the object that a request was about; "" where there is none, or none that can be removed."""
    resource, _, subresource = request.about.rpartition(" ")[2].partition("/")
    if request.verb.startswith(_OF_NO_OBJECT) or resource in _STAY:
        return ""
    if subresource:
        return request.path.removesuffix(f"/{subresource}")
    if request.verb != "create":
        return request.path
    for answer in pair:
        document = answer.document
        meta = document.get("metadata") if isinstance(document, dict) else None
        if answer.status < 300 and isinstance(meta, dict) and meta.get("name"):
            return f"{request.path}/{meta['name']}"
    return ""


def removal(path: str) -> Iterator[Request]:
    """Yield what removes an object, whatever holds it."""
    options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    yield Request("DELETE", path, "", "delete", headers={"Content-Type": JSON}, body=options)
    headers = {"Content-Type": "application/merge-patch+json"}
    yield Request("PATCH", path, "", "patch", headers=headers, body={"metadata": {"finalizers": None}})


def settle(server: Server, request: Request, answer: Answer) -> str:
    """Wait until a definition has gone on by itself after its write, on both servers at their own pace.

    Return the path of one that is gone, otherwise "".
    """
    if request.is_read or answer.status >= 300 or f"/{DEFINITIONS}/" not in f"{request.path}/":
        return ""
    name = ((answer.document or {}).get("metadata") or {}).get("name") or request.path.rsplit("/", 1)[-1]
    path = f"{request.path.partition(DEFINITIONS)[0]}{DEFINITIONS}/{name}"
    for _ in range(MOST_LOOKS):
        try:
            found = server.get(path)
        except LookupError:
            return path
        if path in server.held:
            server.held[path] = found
        conditions = {each["type"]: each["status"] for each in found["status"].get("conditions") or ()}
        leaving = "deletionTimestamp" in found["metadata"]
        if conditions.get("Terminating") == "False" if leaving else _is_decided(conditions):
            return ""
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return ""


def _is_decided(conditions: dict[str, str]) -> bool:
    return conditions.get("Established") == "True" or conditions.get("NamesAccepted") == "False"


def agree(request: Request, real: Server, ours: Server) -> None:
    """Wait until both servers have written the same conditions of an object after its write."""
    resource = request.about.rpartition(" ")[2].partition("/")[0]
    if request.is_read or resource not in OF_BOTH:
        return
    for path in [each for each in real.held if f"/{resource}/" in each]:
        for _ in range(MOST_LOOKS):
            try:
                pair = [server.get(path) for server in (real, ours)]
            except LookupError:
                break
            for server, found in zip((real, ours), pair, strict=True):
                server.held[path] = found
            told = [_told(each) for each in pair]
            if told[0] and told[0] == told[1]:
                break
            time.sleep(SECONDS_BETWEEN_LOOKS)


def _told(obj: dict[str, Any]) -> list[list[str]]:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return sorted([str(each.get(key)) for key in ("type", "status", "reason", "message")] for each in conditions)
