"""What a terminating namespace says of itself: five conditions, from what a pass over its contents found. Pure.

Source: pkg/controller/namespace/deletion/status_condition_utils.go.
"""

# check: pure

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from lastcall.kube.api.resources import Resource
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.cluster import NamespaceCondition
    from lastcall.kube.api.types.pod import Pod

FINALIZER_ESTIMATE_SECONDS = 15
"""How long what finalizers hold is expected to stay."""


@dataclass(slots=True)
class Findings:
    """What a pass found. `remaining` is None when it ended with the Pods: then nothing is said of the rest."""

    errors: list[str] = field(default_factory=list)
    undiscovered: str = ""
    """What is not known about which kinds there are."""
    remaining: dict[Resource, int] | None = None
    finalizers: dict[str, int] = field(default_factory=dict)
    estimate: int = 0
    """Seconds until what is left should be gone."""


@dataclass(frozen=True, slots=True)
class _Condition:
    """`ok` and `bad` are reasons, `ok_message` is the message while nothing is wrong."""

    type: str
    ok: str
    ok_message: str
    bad: str


CONDITIONS = (
    _Condition(
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
        "DiscoveryFailed",
    ),
    _Condition(
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
        "GroupVersionParsingFailed",
    ),
    _Condition(
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
        "ContentDeletionFailed",
    ),
    _Condition(
        "NamespaceContentRemaining", "ContentRemoved", "All content successfully removed", "SomeResourcesRemain"
    ),
    _Condition(
        "NamespaceFinalizersRemaining",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
        "SomeFinalizersRemain",
    ),
)


def still_there(namespace: str, resource: Resource) -> str:
    """Return the error about objects that should be gone and have no finalizer that would explain them."""
    group_version = f"{resource.group}/{resource.version}"
    return (
        f"unexpected items still remain in namespace: {namespace} for gvr: {group_version}, Resource={resource.plural}"
    )


def problems(findings: Findings) -> dict[str, str]:
    """Return condition type → message, for what is wrong."""
    found: dict[str, str] = {}
    if findings.undiscovered:
        found["NamespaceDeletionDiscoveryFailure"] = findings.undiscovered
    if findings.errors:
        listed = ", ".join(sorted(findings.errors))
        found["NamespaceDeletionContentFailure"] = (
            f"Failed to delete all resource types, {len(findings.errors)} remaining: {listed}"
        )
    remaining = [
        f"{resource.plural}.{resource.group} has {count} resource instances"
        for resource, count in (findings.remaining or {}).items()
        if count
    ]
    if remaining:
        found["NamespaceContentRemaining"] = f"Some resources are remaining: {', '.join(sorted(remaining))}"
    if findings.remaining is not None and findings.finalizers:
        held = (f"{name} in {count} resource instances" for name, count in findings.finalizers.items())
        found["NamespaceFinalizersRemaining"] = (
            f"Some content in the namespace has finalizers remaining: {', '.join(sorted(held))}"
        )
    return found


def updated_conditions(
    old: Sequence[NamespaceCondition], wrong: Mapping[str, str], now: str
) -> list[NamespaceCondition]:
    """Update the five conditions of `old`; `now` (RFC 3339) is for changed ones. (`updateConditions`)"""
    conditions = [each.copy() for each in old]
    for known in CONDITIONS:
        message = wrong.get(known.type)
        new: NamespaceCondition = {
            "type": known.type,
            "status": "False" if message is None else "True",
            "reason": known.ok if message is None else known.bad,
            "message": known.ok_message if message is None else message,
        }
        before = next((each for each in conditions if each.get("type") == known.type), None)
        if before is None:
            conditions.append({**new, "lastTransitionTime": now})
        else:
            if before.get("status") != new["status"]:
                before["lastTransitionTime"] = now
            before.update(new)
    return conditions


def graceful_estimate(pods: Iterable[Pod], age: float) -> int:
    """Return the seconds of the longest grace period among Pods that have not ended. (`estimateGracefulTermination`)

    It is 0 when the namespace has been terminating for that long (`age`, seconds) already.
    """
    periods = [
        (pod.get("spec") or {}).get("terminationGracePeriodSeconds") or 0
        for pod in pods
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    ]
    longest = max(periods, default=0)
    return 0 if age >= longest else longest


def requeue_seconds(estimate: int) -> float:
    """Return in how many seconds a namespace with something left is examined again, if nothing is seen before."""
    return estimate // 2 + 1
