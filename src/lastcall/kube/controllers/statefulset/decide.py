"""What a StatefulSet does next. Pure.

Source: pkg/controller/statefulset/stateful_set_control.go:updateStatefulSet, stateful_set_utils.go. An identity is
never held by two Pods: a name is made again only when the old object is gone. In order (OrderedReady) one thing is done
at a time, and nothing while the one before it is not done.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Literal, Protocol, cast

from lastcall.kube.api.meta import copy_object, is_terminating, labels_of, name_of
from lastcall.kube.api.pods.spec import is_pod_ready
from lastcall.kube.api.resources import STATEFULSETS
from lastcall.kube.api.text.numbers import int_of, scaled
from lastcall.kube.controllers.history import REVISION_LABEL, revision_of_pod, with_revision
from lastcall.kube.controllers.ownership import controller_reference
from lastcall.kube.controllers.pods.control import pod_from_template, seconds_until_available
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.storage import PersistentVolumeClaim
    from lastcall.kube.api.types.volumes import Volume
    from lastcall.kube.api.types.workloads import ControllerRevision, StatefulSet, StatefulSetStatus

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
_NAME = re.compile(r"(.*)-([0-9]+)$")
AT_ONCE = 500
"""Steps of one sync at most, as other owners have it: a set may want 2**31 Pods. The next sync follows its Pods."""

Verb = Literal["create", "delete", "update"]


@dataclass(frozen=True, slots=True)
class Step:
    """One write: a Pod to create, to delete (`why`, in a sentence), or to bring back to its identity."""

    verb: Verb
    pod: Pod
    why: str = ""
    reason: Literal["", "ended", "scaling", "rollout"] = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The steps to do now, at once when there are several, and the seconds until time alone changes something.

    `claims`: Pods whose claims have to be made or to change hands before.
    """

    steps: tuple[Step, ...] = ()
    look_again: float | None = None
    claims: tuple[Pod, ...] = ()


class Claims(Protocol):
    """What is known of the claims of a set's Pods."""

    def stale(self, pod: Pod) -> bool:
        """Return whether a new Pod would get the claim of an earlier one, which is going away. (`PodClaimIsStale`)"""

    def missing(self, pod: Pod) -> bool:
        """Return whether one of the claims does not exist."""

    def wrong_owner(self, pod: Pod) -> bool:
        """Return whether the claims are not owned as the policy says. (`ClaimsMatchRetentionPolicy`)"""


class NoClaims:
    """A set without volumeClaimTemplates."""

    def stale(self, pod: Pod) -> bool:
        return False

    missing = wrong_owner = stale


NO_CLAIMS = NoClaims()


@dataclass(slots=True)
class Revisions:
    """The names of the two revisions and the StatefulSet as each has it."""

    current: str
    update: str
    current_set: StatefulSet = field(repr=False)
    update_set: StatefulSet = field(repr=False)

    @staticmethod
    def of(owner: StatefulSet, current: ControllerRevision, update: ControllerRevision) -> Revisions:
        return Revisions(name_of(current), name_of(update), with_revision(owner, current), with_revision(owner, update))


def parent_and_ordinal(pod: Pod) -> tuple[str, int]:
    """Return `("web", 2)` for Pod web-2, and `("", -1)` for a name without an ordinal."""
    match = _NAME.fullmatch(name_of(pod))
    ordinal = int_of(match.group(2), 32) if match else None
    return (match.group(1), ordinal) if match and ordinal is not None else ("", -1)


def is_member(owner: StatefulSet, pod: Pod) -> bool:
    return parent_and_ordinal(pod)[0] == name_of(owner)


def first_ordinal(owner: StatefulSet) -> int:
    return int((owner["spec"].get("ordinals") or {}).get("start") or 0)


def wanted(owner: StatefulSet) -> int:
    return int(owner["spec"].get("replicas") or 0)


def is_scaled_away(owner: StatefulSet, pod: Pod) -> bool:
    """Return True if the Pod's ordinal is not among the wanted ones. (`!podInOrdinalRange`)"""
    return not 0 <= parent_and_ordinal(pod)[1] - first_ordinal(owner) < wanted(owner)


def in_order(owner: StatefulSet) -> bool:
    return bool(owner["spec"].get("podManagementPolicy") != "Parallel")


def most_unavailable(owner: StatefulSet) -> int | None:
    """Return how many Pods an update may take away at once, at least 1; None for a set without `maxUnavailable`.

    The API server keeps the field, and fills it in, only while the gate MaxUnavailableStatefulSet is on, which is on by
    default since 1.37. A percentage is rounded down. (`getStatefulSetMaxUnavailable`)
    """
    most = ((owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}).get("maxUnavailable")
    return None if most is None else max(1, scaled(most, wanted(owner), up=False))


def is_recreated(owner: StatefulSet) -> bool:
    """Return True if an update ends all Pods before it makes one. (`Recreate`, gate of 1.37)"""
    return str((owner["spec"].get("updateStrategy") or {}).get("type")) == "Recreate"


def partition(owner: StatefulSet) -> int | None:
    """Return the least ordinal that an update touches; None when no rollingUpdate is given."""
    rolling = (owner["spec"].get("updateStrategy") or {}).get("rollingUpdate")
    return None if rolling is None else int(rolling.get("partition") or 0)


def _phase(pod: Pod) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def is_running_and_ready(pod: Pod) -> bool:
    return _phase(pod) == "Running" and is_pod_ready(pod)


def is_healthy(pod: Pod) -> bool:
    return is_running_and_ready(pod) and not is_terminating(pod)


def identity_matches(owner: StatefulSet, pod: Pod) -> bool:
    """Return True if a Pod's name and labels are those of its identity. (`identityMatches`)"""
    parent, ordinal = parent_and_ordinal(pod)
    labels = labels_of(pod)
    if ordinal < 0 or parent != name_of(owner):
        return False
    index = labels.get(POD_INDEX, str(ordinal))
    return bool(labels.get(POD_NAME) == name_of(pod) and index == str(ordinal))


def with_identity(owner: StatefulSet, pod: Pod) -> Pod:
    """Return `pod` with the labels of its identity. (`updateIdentity`)"""
    fixed = copy_object(pod)
    _, ordinal = parent_and_ordinal(pod)
    fixed["metadata"]["labels"] = {**labels_of(pod), POD_NAME: name_of(pod), POD_INDEX: str(ordinal)}
    return fixed


def template_name(template: PersistentVolumeClaim) -> str:
    """Return the name, "" for a claim without one: its Pods are refused, and the set says why."""
    return str((template.get("metadata") or {}).get("name") or "")


def claim_name(template: PersistentVolumeClaim, owner: StatefulSet, ordinal: int) -> str:
    return f"{template_name(template)}-{name_of(owner)}-{ordinal}"


def claims_of(owner: StatefulSet, ordinal: int) -> list[PersistentVolumeClaim]:
    """Return the PersistentVolumeClaims of one identity. (`getPersistentVolumeClaims`)"""
    made: list[PersistentVolumeClaim] = []
    for template in owner["spec"].get("volumeClaimTemplates") or ():
        claim = copy_object(template)
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        labels = {
            **(claim.setdefault("metadata", {}).get("labels") or {}),
            **((owner["spec"]["selector"] or {}).get("matchLabels") or {}),
        }
        claim["metadata"] |= {
            "name": claim_name(template, owner, ordinal),
            "namespace": owner["metadata"]["namespace"],
            "labels": labels,
        }
        claim.pop("status", None)
        made.append(claim)
    return made


def new_pod(owner: StatefulSet, ordinal: int, revision: str) -> Pod:
    """Return a new Pod for an ordinal. (`newStatefulSetPod`)"""
    pod = pod_from_template(owner["spec"]["template"], name_of(owner), controller_reference(owner, STATEFULSETS))
    name = f"{name_of(owner)}-{ordinal}"
    meta, spec = pod["metadata"], pod["spec"]
    meta["name"], meta["namespace"] = name, owner["metadata"]["namespace"]
    identity = {POD_NAME: name, POD_INDEX: str(ordinal), REVISION_LABEL: revision}
    meta["labels"] = {**(meta.get("labels") or {}), **identity}
    spec["hostname"] = name
    if owner["spec"].get("serviceName"):
        spec["subdomain"] = owner["spec"]["serviceName"]
    claims: dict[str, Volume] = {
        template_name(template): {
            "name": template_name(template),
            "persistentVolumeClaim": {"claimName": claim_name(template, owner, ordinal)},
        }
        for template in owner["spec"].get("volumeClaimTemplates") or ()
    }
    if claims:
        spec["volumes"] = [*claims.values(), *(v for v in spec.get("volumes") or () if v["name"] not in claims)]
    return pod


def pod_for(owner: StatefulSet, revisions: Revisions, ordinal: int) -> Pod:
    """Return a new Pod of the revision that this ordinal has now. (`newVersionedStatefulSetPod`)"""
    update = owner["spec"].get("updateStrategy") or {}
    least = partition(owner)
    current = update.get("type") == "RollingUpdate" and (
        ordinal < first_ordinal(owner) + int((owner.get("status") or {}).get("currentReplicas") or 0)
        if least is None
        else ordinal < first_ordinal(owner) + least
    )
    if current:
        return new_pod(revisions.current_set, ordinal, revisions.current)
    return new_pod(revisions.update_set, ordinal, revisions.update)


def status_of(
    owner: StatefulSet, revisions: Revisions, collisions: int | None, pods: Sequence[Pod], now: float
) -> StatefulSetStatus:
    """Return the status. Terminating Pods are replicas and, while they are Ready, ready ones. (`updateStatus`)"""
    min_ready = owner["spec"].get("minReadySeconds") or 0
    alive = [pod for pod in pods if not is_terminating(pod)]
    ready = [pod for pod in pods if is_running_and_ready(pod)]
    counts: StatefulSetStatus = {
        "readyReplicas": len(ready),
        "currentReplicas": sum(revision_of_pod(pod) == revisions.current for pod in alive),
        "updatedReplicas": sum(revision_of_pod(pod) == revisions.update for pod in alive),
    }
    status: StatefulSetStatus = {"observedGeneration": owner["metadata"].get("generation") or 0, "replicas": len(pods)}
    status |= cast("StatefulSetStatus", {key: value for key, value in counts.items() if value})
    status |= {"currentRevision": revisions.current, "updateRevision": revisions.update}
    status["collisionCount"] = collisions or 0
    status["availableReplicas"] = sum(seconds_until_available(pod, min_ready, now) == 0.0 for pod in ready)
    return status


def complete_rolling_update(owner: StatefulSet, status: StatefulSetStatus, *, any_strategy: bool = False) -> None:
    """Make the new revision the current one, in place, when all Pods are of it. (`completeRollingUpdate`)

    Since 1.37 with every strategy, before with RollingUpdate only (kubernetes#136833).
    """
    update = owner["spec"].get("updateStrategy") or {}
    counts = [status.get("updatedReplicas", 0), status.get("readyReplicas", 0)]
    if (any_strategy or update.get("type") == "RollingUpdate") and counts == [status["replicas"]] * 2:
        status["currentRevision"] = status["updateRevision"]
        status.pop("currentReplicas", None)
        if status.get("updatedReplicas"):
            status["currentReplicas"] = status["updatedReplicas"]


@dataclass(frozen=True, slots=True)
class Slots:
    """The wanted ordinals, of which there may be 2**31, and the Pods that there are by ordinal."""

    ordinals: range
    pods: Mapping[int, Pod]

    def filled(self) -> list[Pod]:
        """Return the Pods that have a wanted ordinal, the lowest first."""
        return [self.pods[ordinal] for ordinal in sorted(self.pods) if ordinal in self.ordinals]


def decide(
    owner: StatefulSet, revisions: Revisions, pods: Sequence[Pod], now: float, claims: Claims = NO_CLAIMS
) -> Decision:
    """Decide what to do for `pods`, the members the set owns, in any order. `now` in seconds since the epoch."""
    if is_terminating(owner):
        return Decision()
    by_ordinal = {parent_and_ordinal(pod)[1]: pod for pod in pods}
    first, count = first_ordinal(owner), wanted(owner)
    slots = Slots(range(first, first + count), by_ordinal)
    condemned = [by_ordinal[ordinal] for ordinal in sorted(by_ordinal, reverse=True) if ordinal not in slots.ordinals]
    monotonic = in_order(owner)
    min_ready = owner["spec"].get("minReadySeconds") or 0
    if is_recreated(owner) and (old := [pod for pod in pods if revision_of_pod(pod) != revisions.update]):
        return Decision(tuple(_recreate(owner, revisions, old)))
    fix: list[Pod] = []
    steps, waits = _fill(owner, revisions, slots, monotonic, min_ready, now, claims, fix)
    if steps is None:
        return Decision((), waits, tuple(fix))
    if not steps or not monotonic:
        fix += [pod for pod in condemned if claims.wrong_owner(pod)]
        more = _scale_in(owner, condemned, slots, monotonic, min_ready, now)
        if more is None:
            return Decision(tuple(steps), waits, tuple(fix))
        steps = [*steps, *more]
    if not steps:
        steps = _update(owner, revisions, slots, min_ready, now)
    return Decision(tuple(steps), waits, tuple(fix))


def _fill(
    owner: StatefulSet,
    revisions: Revisions,
    slots: Slots,
    monotonic: bool,
    min_ready: int,
    now: float,
    claims: Claims,
    fix: list[Pod],
) -> tuple[list[Step] | None, float | None]:
    """The steps that give every ordinal its Pod; None when one has to be waited for first. (`processReplica`)

    Pods whose claims need something are added to `fix`.
    """
    steps: list[Step] = []
    waits: float | None = None
    for ordinal in slots.ordinals:
        if len(steps) >= AT_ONCE:
            break
        pod = slots.pods.get(ordinal)
        if pod is None:
            made = pod_for(owner, revisions, ordinal)
            if not claims.stale(made):
                steps.append(Step("create", made))
            if monotonic:
                return steps or None, None
            continue
        if _phase(pod) in ("Failed", "Succeeded"):
            if not is_terminating(pod):
                why = f"it has ended ({_phase(pod)}), and StatefulSet {name_of(owner)} creates it again"
                steps.append(Step("delete", pod, why, "ended"))
            if monotonic:
                return steps or None, None
            continue
        if _phase(pod) == "Pending" and claims.missing(pod):
            fix.append(pod)
        if monotonic and (is_terminating(pod) or not is_running_and_ready(pod)):
            return None, None
        left = seconds_until_available(pod, min_ready, now)
        if left:
            waits = left if waits is None else min(waits, left)
            if monotonic:
                return None, waits
        if not is_terminating(pod) and not identity_matches(owner, pod):
            steps.append(Step("update", with_identity(owner, pod)))
        if claims.wrong_owner(pod):
            fix.append(pod)
    return steps, waits


def _scale_in(
    owner: StatefulSet,
    condemned: Sequence[Pod],
    slots: Slots,
    monotonic: bool,
    min_ready: int,
    now: float,
) -> list[Step] | None:
    """The Pods beyond the wanted number, highest ordinal first; None when one has to be waited for.

    (`processCondemned`)
    """
    unhealthy = [pod for pod in [*slots.filled(), *condemned[::-1]] if not is_healthy(pod)]
    first_unhealthy = min(unhealthy, key=lambda pod: parent_and_ordinal(pod)[1], default=None)
    steps: list[Step] = []
    for pod in condemned:
        if is_terminating(pod):
            if monotonic:
                return None
            continue
        available = is_running_and_ready(pod) and seconds_until_available(pod, min_ready, now) == 0.0
        if monotonic and not available and pod is not first_unhealthy:
            return None
        why = f"StatefulSet {name_of(owner)} scales to {wanted(owner)}, the highest ordinal goes first"
        steps.append(Step("delete", pod, why, "scaling"))
        if monotonic:
            return steps
    return steps


def _recreate(owner: StatefulSet, revisions: Revisions, old: Sequence[Pod]) -> list[Step]:
    """All Pods of another revision at once, scaled away or not; nothing while one of them is still there.

    Source: KEP-3541, kubernetes#137187.
    """
    why = f"StatefulSet {name_of(owner)} recreates all Pods for revision {revisions.update}"
    return [Step("delete", pod, why, "rollout") for pod in old if not is_terminating(pod)][:AT_ONCE]


def _update(owner: StatefulSet, revisions: Revisions, slots: Slots, min_ready: int, now: float) -> list[Step]:
    """One Pod of another revision, from the highest ordinal down, when all above it are available."""
    update = owner["spec"].get("updateStrategy") or {}
    if update.get("type") == "OnDelete" or is_recreated(owner):
        return []
    least = first_ordinal(owner) + (partition(owner) or 0)
    if (most := most_unavailable(owner)) is not None:
        return _update_several(owner, revisions, slots, least, most, now)
    for ordinal in reversed(slots.ordinals):
        pod = slots.pods.get(ordinal)
        if ordinal < least or pod is None:
            break
        if revision_of_pod(pod) != revisions.update and not is_terminating(pod):
            why = f"StatefulSet {name_of(owner)} rolls out revision {revisions.update}, from the highest ordinal down"
            return [Step("delete", pod, why, "rollout")]
        if not is_healthy(pod) or seconds_until_available(pod, min_ready, now) != 0.0:
            break
    return []


def _update_several(
    owner: StatefulSet, revisions: Revisions, slots: Slots, least: int, most: int, now: float
) -> list[Step]:
    """As many Pods of another revision as may be unavailable beside those that are, from the highest ordinal down.

    Pods that are made in parallel and are broken do not count while they have the old revision: they are what the
    update is for. (`updateStatefulSetAfterInvariantEstablished`, kubernetes#137666)
    """
    min_ready = owner["spec"].get("minReadySeconds") or 0

    def takes_a_place(pod: Pod) -> bool:
        if is_terminating(pod):
            return True
        available = is_healthy(pod) and seconds_until_available(pod, min_ready, now) == 0.0
        return not available and (in_order(owner) or revision_of_pod(pod) == revisions.update)

    free = min(most - sum(takes_a_place(pod) for pod in slots.filled()), AT_ONCE)
    why = f"StatefulSet {name_of(owner)} rolls out revision {revisions.update}, {most} Pods at once at most"
    old = [
        pod
        for pod in reversed(slots.filled())
        if parent_and_ordinal(pod)[1] >= least and revision_of_pod(pod) != revisions.update and not is_terminating(pod)
    ]
    return [Step("delete", pod, why, "rollout") for pod in old[: max(0, free)]]
