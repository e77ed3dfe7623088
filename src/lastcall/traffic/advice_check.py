"""Advice is checked before it is shown: what the patch makes of the owner is valid, and keeps what the owner has. Pure.

What only a server knows (admission, other objects) a dry run asks it (`experiment/rollout/advice.py`).
"""

# check: pure

from collections.abc import Iterator, Mapping
from typing import Any

from lastcall.kube.api import (
    StatusError,
    copy_object,
    resource_for,
    set_defaults,
    strategic_merge_patch,
    validate_create,
)
from lastcall.records.said import joined, tell
from lastcall.traffic.hooks import keeps_hook

_PROBES = ("readinessProbe", "livenessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")


def why_not(owner: Mapping[str, Any], patch: Mapping[str, Any]) -> str:
    """Return why this strategic merge patch does not fit the owner (a Deployment …); "" when it does."""
    resource = resource_for(str(owner.get("apiVersion")), str(owner.get("kind")))
    if resource is None:
        return tell("$kind is not known", kind=owner.get("kind"))
    before = copy_object(dict(owner))
    before.pop("status", None)
    set_defaults(resource, before)
    try:
        after = strategic_merge_patch(resource, before, patch)
    except StatusError as error:
        return tell("$message", message=error.message)
    after = copy_object(after)
    set_defaults(resource, after)
    if after == before:
        return tell("it changes nothing")
    known = {str(each) for each in validate_create(resource, before)}
    if problems := [text for each in validate_create(resource, after) if (text := str(each)) not in known]:
        return tell("$message", message="; ".join(problems))
    return joined(_taken_away(before["spec"], after["spec"]), "; ")


def _taken_away(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """What the owner had and would have no more."""
    if _number(after.get("replicas")) < _number(before.get("replicas")):
        yield tell("it takes replicas away")
    was, becomes = before["template"]["spec"], after["template"]["spec"]
    if _number(becomes.get("terminationGracePeriodSeconds")) < _number(was.get("terminationGracePeriodSeconds")):
        yield tell("it shortens the grace period")
    others = {each["name"]: each for each in becomes["containers"]}
    for container in was["containers"]:
        name, other = container["name"], others.get(container["name"], {})
        if name not in others:
            yield tell("it takes container $container away", container=name)
        for probe in _PROBES:
            if _less(container.get(probe) or {}, other.get(probe) or {}):
                yield tell("it takes the handler of $container's $probe away", container=name, probe=probe)
        if not keeps_hook(container, other):
            yield tell("it takes away what $container's preStop hook does", container=name)


def _less(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a probe asks less than it did. HTTP over the port that was only connected to asks more."""
    gone = _handlers(before) - _handlers(after)
    same_port = (before.get("tcpSocket") or {}).get("port") == (after.get("httpGet") or {}).get("port")
    return bool(gone - {"tcpSocket"} if same_port else gone)


def _handlers(probe: Mapping[str, Any] | None) -> set[str]:
    return {each for each in _HANDLERS if each in (probe or {})}


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
