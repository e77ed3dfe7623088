"""Pod affinity terms and topology spread constraints, read from a Pod once. Pure values that can be keys.

Sources: pkg/scheduler/framework/types.go:AffinityTerm, plugins/podtopologyspread/common.go.
"""

# check: pure

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import AnyObject
from lastcall.kube.api.selectors import LabelSelector, Requirement, selector_of_expressions
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import PodSpec
    from lastcall.kube.api.types.scheduling import PodAffinityTerm

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

NamespaceLabels = Callable[[str], Mapping[str, str]]
"""The labels of a namespace, {} for one that is not known."""


@dataclass(frozen=True, slots=True)
class PodSelection:
    """Some Pods: of these namespaces, or of those that `namespace_selector` matches, with labels that match."""

    namespaces: tuple[str, ...]
    namespace_selector: LabelSelector | None
    selector: LabelSelector

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: NamespaceLabels) -> bool:
        if namespace not in self.namespaces and (
            self.namespace_selector is None or not self.namespace_selector.matches(namespace_labels(namespace))
        ):
            return False
        return self.selector.matches(labels)

    @property
    def pair(self) -> tuple[str, str] | None:
        """Return one label that every such Pod has, None when there is none to name."""
        for requirement in self.selector.requirements:
            if requirement.operator in ("=", "in") and len(requirement.values) == 1:
                return requirement.key, requirement.values[0]
        return None


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """`weight` is 0 for a required term."""

    pods: PodSelection
    topology_key: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    pods: PodSelection
    topology_key: str
    max_skew: int
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False


def _with_keys(selector: LabelSelector, term: AnyObject, labels: Mapping[str, str]) -> LabelSelector:
    """matchLabelKeys and mismatchLabelKeys: the Pod's own values become part of the selector."""
    added = [Requirement(key, "in", (labels[key],)) for key in term.get("matchLabelKeys") or () if key in labels]
    added += [Requirement(key, "notin", (labels[key],)) for key in term.get("mismatchLabelKeys") or () if key in labels]
    return LabelSelector((*selector.requirements, *added), selector.nothing) if added else selector


def _term(term: PodAffinityTerm, namespace: str, labels: Mapping[str, str], weight: int) -> AffinityTerm:
    namespaces = tuple(term.get("namespaces") or ())
    by_labels = term.get("namespaceSelector")
    if not namespaces and by_labels is None:
        namespaces = (namespace,)
    selector = _with_keys(selector_of_expressions(term.get("labelSelector")), term, labels)
    chosen = None if by_labels is None else selector_of_expressions(by_labels)
    return AffinityTerm(PodSelection(namespaces, chosen, selector), term["topologyKey"], weight)


@dataclass(frozen=True, slots=True)
class PodTerms:
    """The four lists of Pod (anti-)affinity terms."""

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[AffinityTerm, ...] = ()
    preferred_anti: tuple[AffinityTerm, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.affinity or self.anti_affinity or self.preferred or self.preferred_anti)


NO_TERMS = PodTerms()


def pod_terms(spec: PodSpec, namespace: str, labels: Mapping[str, str]) -> PodTerms:
    affinity = spec.get("affinity") or {}
    lists: list[tuple[AffinityTerm, ...]] = []
    for wanted in (affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}):
        required = wanted.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        preferred = wanted.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        lists.append(tuple(_term(term, namespace, labels, 0) for term in required))
        lists.append(tuple(_term(each["podAffinityTerm"], namespace, labels, each["weight"]) for each in preferred))
    if not any(lists):
        return NO_TERMS
    return PodTerms(lists[0], lists[2], lists[1], lists[3])


def spread_constraints(
    spec: PodSpec, namespace: str, labels: Mapping[str, str], when: str
) -> tuple[SpreadConstraint, ...]:
    """Return the constraints whose `whenUnsatisfiable` is `when`."""
    return tuple(
        SpreadConstraint(
            PodSelection(
                (namespace,), None, _with_keys(selector_of_expressions(each.get("labelSelector")), each, labels)
            ),
            each["topologyKey"],
            each["maxSkew"],
            each.get("minDomains") or 1,
            (each.get("nodeAffinityPolicy") or "Honor") == "Honor",
            (each.get("nodeTaintsPolicy") or "Ignore") == "Honor",
        )
        for each in spec.get("topologySpreadConstraints") or ()
        if each.get("whenUnsatisfiable") == when
    )


def selections_of(terms: Iterable[AffinityTerm]) -> tuple[PodSelection, ...]:
    return tuple(term.pods for term in terms)
