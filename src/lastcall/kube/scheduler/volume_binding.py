"""Which node can have a Pod's volumes, and which volume goes to which claim there. Pure.

Source: pkg/scheduler/framework/plugins/volumebinding/{volume_binding,binder}.go, plugins/volumerestrictions.
"""

# check: pure

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field

from lastcall.kube.api.claims import (
    NO_PROVISIONER,
    SELECTED_NODE,
    ClaimUse,
    asked_size,
    claims_used_by,
    class_of,
    find_matching_volume,
    is_delayed,
    is_fully_bound,
    not_made_for,
    reaches_node,
)
from lastcall.kube.api.meta import AnyObject, Object, annotations_of, is_terminating, name_of, namespace_of
from lastcall.world.dataclass import dataclass

UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

Key = tuple[str, str]
"""(namespace, name) of a claim."""


@dataclass(frozen=True, slots=True)
class Bindings:
    """What has to be done on one node: claims that get a volume that is there, and claims that get a new one."""

    static: tuple[tuple[Object, Object], ...] = ()
    provisions: tuple[Object, ...] = ()


@dataclass(slots=True, eq=False)
class PodVolumes:
    """One look at a Pod's claims. `conflict`: why no node will do, whatever it is like.

    `bound` are the volumes of its claims (None: gone), `waiting` the claims that the choice of a node decides about;
    `selected` has the node of a claim that waits for its volume already. `alone` are claims for one Pod only.
    """

    pod: AnyObject
    conflict: str = ""
    bound: Sequence[Object | None] = ()
    waiting: Sequence[Object] = ()
    alone: Sequence[str] = ()
    volumes: Sequence[Object] = ()
    classes: Mapping[str, Object] = field(default_factory=dict)
    selected: Mapping[Key, str] = field(default_factory=dict)

    def taken(self, others: Iterable[AnyObject]) -> bool:
        """Return True if one of the others, which have a node, has a claim of this Pod that is for one Pod only."""
        if not self.alone:
            return False
        namespace, name = namespace_of(self.pod), name_of(self.pod)
        return any(
            namespace_of(other) == namespace
            and name_of(other) != name
            and any(use.claim in self.alone for use in claims_used_by(other))
            for other in others
        )

    def reasons_against(self, node: str, labels: Mapping[str, str]) -> tuple[str, ...]:
        """Return the sorted reasons; none when the node can have the volumes. (`FindPodVolumes`)"""
        reasons: dict[str, None] = {}
        for volume in self.bound:
            if volume is None:
                reasons[NO_VOLUME] = None
            elif not reaches_node(volume, labels):
                reasons[NODE_CONFLICT] = None
        if self.waiting and self.bindings(node, labels) is None:
            reasons[BIND_CONFLICT] = None
        return tuple(sorted(reasons))

    def bindings(self, node: str, labels: Mapping[str, str]) -> Bindings | None:
        """Return how the waiting claims get volumes on a node, or None. The smallest claim chooses first."""
        static: list[tuple[Object, Object]] = []
        provisions: list[Object] = []
        chosen: list[str] = []
        for claim in sorted(self.waiting, key=asked_size):
            selected = self.selected.get((namespace_of(claim), name_of(claim)), "")
            if selected:
                if selected != node:
                    return None
                provisions.append(claim)
                continue
            volume = find_matching_volume(claim, self.volumes, node_labels=labels, excluded=chosen)
            if volume is not None:
                chosen.append(name_of(volume))
                static.append((claim, volume))
            elif not can_provision(self.classes.get(class_of(claim)), labels):
                return None
            else:
                provisions.append(claim)
        return Bindings(tuple(static), tuple(provisions))


def can_provision(storage_class: Object | None, labels: Mapping[str, str]) -> bool:
    """Return whether volumes of a class can be made for a node with these labels. (`checkVolumeProvisions`)"""
    if storage_class is None or storage_class.get("provisioner") in (None, "", NO_PROVISIONER):
        return False
    topologies = storage_class.get("allowedTopologies")
    return not topologies or any(
        all(labels.get(each["key"]) in (each.get("values") or ()) for each in term.get("matchLabelExpressions") or ())
        for term in topologies
    )


def pod_volumes(
    pod: AnyObject,
    claim_of: Callable[[Key], Object | None],
    volumes: Iterable[Object],
    classes: Mapping[str, Object],
    selected: Mapping[Key, str],
) -> PodVolumes:
    """Sort a Pod's claims. `selected`: nodes that were chosen for claims a moment ago. (`PreFilter`)"""
    namespace = namespace_of(pod)
    known = list(volumes)
    by_name = {name_of(each): each for each in known}
    bound: list[Object | None] = []
    waiting: list[Object] = []
    alone: list[str] = []
    immediate = False
    for use in claims_used_by(pod):
        claim = claim_of((namespace, use.claim))
        if why := _unusable(pod, use, claim):
            return PodVolumes(pod, why)
        assert claim is not None
        if "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ()):
            alone.append(use.claim)
        if is_fully_bound(claim):
            bound.append(by_name.get(claim["spec"]["volumeName"]))
        elif is_delayed(claim, classes.get(class_of(claim))) and not claim["spec"].get("volumeName"):
            waiting.append(claim)
        else:
            immediate = True
    if immediate:
        return PodVolumes(pod, UNBOUND_IMMEDIATE)
    nodes = {(namespace, name_of(each)): annotations_of(each).get(SELECTED_NODE, "") for each in waiting}
    nodes |= {key: node for key, node in selected.items() if key in nodes}
    return PodVolumes(pod, "", bound, waiting, alone, known, classes, nodes)


def _unusable(pod: AnyObject, use: ClaimUse, claim: Object | None) -> str:
    """Why the Pod has to wait for this claim, "" when it need not. (`podHasPVCs`)"""
    if claim is None:
        if use.ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.claim}"'
        return f'persistentvolumeclaim "{use.claim}" not found'
    if (claim.get("status") or {}).get("phase") == "Lost":
        volume = claim["spec"].get("volumeName") or ""
        return f'persistentvolumeclaim "{use.claim}" bound to non-existent persistentvolume "{volume}"'
    if is_terminating(claim):
        return f'persistentvolumeclaim "{use.claim}" is being deleted'
    return not_made_for(pod, claim) if use.ephemeral else ""


def not_bound_because(claims: Iterable[tuple[Object, Object | None]], provisions: Iterable[Object], node: str) -> str:
    """Return why waiting for claims cannot succeed, "" while it can. `claims`: as decided about and as they are now.

    (`checkBindings`)
    """
    provisioned = {name_of(each) for each in provisions}
    for before, now in claims:
        if now is None:
            return f'persistentvolumeclaim "{name_of(before)}" not found'
        if is_terminating(now):
            return f'persistentvolumeclaim "{name_of(before)}" is being deleted'
        if name_of(before) in provisioned and not is_fully_bound(now):
            selected = annotations_of(now).get(SELECTED_NODE)
            if selected is None:
                return f'provisioning failed for PVC "{name_of(before)}"'
            if selected != node:
                return f'selectedNode annotation value "{selected}" not set to scheduled node "{node}"'
    return ""
