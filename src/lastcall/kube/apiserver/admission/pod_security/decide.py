"""The PodSecurity admission plugin: what a namespace's labels ask of its Pods. Pure.

`enforce` refuses Pods, `warn` warns the client, also about the templates of workloads; `audit` annotates the event in
the audit log, where there is one. Nobody is exempt.

Sources: pod-security-admission admission/admission.go, api/helpers.go.
"""

# check: asks for kinds because it is about Pods, and about what makes Pods

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lastcall.kube.api.errors import StatusError, forbidden
from lastcall.kube.api.errors import invalid as invalid_object
from lastcall.kube.api.field import FieldError, invalid
from lastcall.kube.api.meta import Object, labels_of, name_of
from lastcall.kube.api.resources import (
    CRONJOBS,
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PODS,
    PODTEMPLATES,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    STATEFULSETS,
    Resource,
)
from lastcall.kube.api.text.numbers import int_of
from lastcall.kube.apiserver.admission.pod_security import PREFIX
from lastcall.kube.apiserver.admission.pod_security.checks import details, evaluate, reasons

PRIVILEGED, _, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")
"""From the least to the most strict."""
LATEST = -1
MAX_PODS = 3000
"""How many Pods of a namespace are looked at when its label changes (defaultNamespaceMaxPodsToCheck)."""

_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"


class Level(NamedTuple):
    """`minor` is that of the version 1.x whose rules hold, LATEST for the newest."""

    level: str = PRIVILEGED
    minor: int = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor == LATEST else f'v1.{self.minor}'}"


class Policy(NamedTuple):
    enforce: Level = Level()
    audit: Level = Level()
    warn: Level = Level()


def policy_of(labels: Mapping[str, str]) -> tuple[Policy, list[FieldError]]:
    """Return what the labels of a namespace say; one that cannot be read is as strict as can be where it refuses, and
    as lax where it only warns. (`PolicyToEvaluate`)"""
    found: dict[str, Level] = {}
    errors: list[FieldError] = []
    for mode in Policy._fields:
        level, minor = PRIVILEGED, LATEST
        if (text := labels.get(f"{PREFIX}{mode}")) is not None:
            level = text
            if text not in LEVELS:
                level = RESTRICTED if mode == "enforce" else PRIVILEGED
                errors.append(_wrong(mode, text, f"must be one of {', '.join(LEVELS)}"))
        if (text := labels.get(f"{PREFIX}{mode}-version")) is not None:
            version = parse_version(text)
            if version is None:
                errors.append(_wrong(f"{mode}-version", text, 'must be "latest" or "v1.x"'))
            minor = LATEST if version is None else version
        found[mode] = Level(level, minor)
    return Policy(**found), errors


def _wrong(label: str, value: str, why: str) -> FieldError:
    return invalid(f"metadata.labels[{PREFIX}{label}]", value, why)


def parse_version(text: str) -> int | None:
    """Return the minor of `v1.x`, LATEST, or None. (`ParseVersion`)"""
    if text == "latest":
        return LATEST
    digits = text.removeprefix("v1.")
    readable = digits != text and digits[:1].isdigit() and (digits == "0" or digits[0] != "0")
    return int_of(digits) if readable else None


# -- Pods and what makes them ----------------------------------------------------------------------------------------

_TEMPLATES: dict[Resource, tuple[str, ...]] = {
    PODTEMPLATES: ("template",),
    CRONJOBS: ("spec", "jobTemplate", "spec", "template"),
    **dict.fromkeys(
        (REPLICATIONCONTROLLERS, REPLICASETS, DEPLOYMENTS, STATEFULSETS, DAEMONSETS, JOBS), ("spec", "template")
    ),
}
"""Where the kinds that make Pods have their template. (`DefaultPodSpecExtractor`)"""


def is_looked_at(resource: Resource, new: Object, old: Object | None) -> bool:
    """Return whether an object is checked: Pods whose changes matter, and all that makes Pods."""
    if resource == PODS:
        return old is None or changes_matter(new, old)
    return resource in _TEMPLATES


def admit(resource: Resource, obj: Object, policy: Policy, minor: int) -> list[str]:
    """Return the warnings for a Pod or a workload, by the rules of Kubernetes 1.`minor`. (`EvaluatePod`)

    Raises the 403 StatusError of a Pod that is not allowed.
    """
    pod = obj if resource == PODS else _template(resource, obj)
    if pod is None:
        return []
    meta, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    if resource == PODS and (found := evaluate(*policy.enforce, minor, meta, spec)):
        raise forbidden(resource, name_of(obj), f'violates PodSecurity "{policy.enforce}": {details(found)}')
    if found := evaluate(*policy.warn, minor, meta, spec):
        return [f'would violate PodSecurity "{policy.warn}": {details(found)}']
    return []


def notes(resource: Resource, obj: Object, old: Object | None, policy: Policy, minor: int) -> dict[str, str]:
    """Return the annotations of an audit event about a Pod or a workload. (`EvaluatePod`, `ValidatePod`)"""
    free = all(each.level == PRIVILEGED for each in policy)
    if not free and not is_looked_at(resource, obj, old):
        return {}
    found = {f"{PREFIX}enforce-policy": str(policy.enforce)} if resource == PODS else {}
    pod = None if free else obj if resource == PODS else _template(resource, obj)
    if pod is not None and (wrong := evaluate(*policy.audit, minor, pod.get("metadata") or {}, pod.get("spec") or {})):
        found[f"{PREFIX}audit-violations"] = f'would violate PodSecurity "{policy.audit}": {details(wrong)}'
    return found


def _template(resource: Resource, obj: Object) -> Object | None:
    found: Any = obj
    for key in _TEMPLATES[resource]:
        found = (found or {}).get(key)
    return found or None


def changes_matter(new: Object, old: Object) -> bool:
    """Return whether an update of a Pod is checked: other images, seccomp annotations or containers.

    (`isSignificantPodUpdate`)
    """
    notes, before = (obj["metadata"].get("annotations") or {} for obj in (new, old))
    if notes.get(_SECCOMP_POD) != before.get(_SECCOMP_POD):
        return True

    def differs(container: Object, other: Object) -> bool:
        key = f"{_SECCOMP_CONTAINER}{container['name']}"
        return container.get("image") != other.get("image") or notes.get(key) != before.get(key)

    for group in ("containers", "initContainers"):
        now, then = new["spec"].get(group) or (), old["spec"].get(group) or ()
        if len(now) != len(then) or any(differs(*pair) for pair in zip(now, then, strict=True)):
            return True
    known = {each["name"]: each for each in old["spec"].get("ephemeralContainers") or ()}
    return any(
        each["name"] not in known or differs(each, known[each["name"]])
        for each in new["spec"].get("ephemeralContainers") or ()
    )


# -- namespaces ------------------------------------------------------------------------------------------------------


def check_labels(new: Object, old: Object | None) -> None:
    """Raise the 422 StatusError for labels that cannot be read and were not there before. (`ValidateNamespace`)"""
    _, errors = policy_of(labels_of(new))
    if errors and (old is None or errors != policy_of(labels_of(old))[1]):
        raise _invalid(name_of(new), errors)


def _invalid(name: str, errors: Sequence[FieldError]) -> StatusError:
    return invalid_object(NAMESPACES, name, errors)


def level_to_look_for(new: Object, old: Object) -> Level | None:
    """Return the level to check existing Pods against, None when an update makes nothing stricter."""
    now, before = (policy_of(labels_of(each))[0].enforce for each in (new, old))
    relaxed = now.minor == before.minor and LEVELS.index(now.level) <= LEVELS.index(before.level)
    return None if now == before or now.level == PRIVILEGED or relaxed else now


def warnings_about(namespace: str, pods: Iterable[Object], level: Level, minor: int) -> list[str]:
    """Return which existing Pods would no longer be allowed, equal ones together. (`EvaluatePodsInNamespace`)"""
    everything = one_of_each_owner_first(pods)
    named: dict[str, list[str]] = {}
    for pod in everything[:MAX_PODS]:
        if found := evaluate(*level, minor, pod["metadata"], pod["spec"]):
            named.setdefault(reasons(found), []).append(name_of(pod))
    warnings = []
    if len(everything) > MAX_PODS:
        checked = f"the first {MAX_PODS} of {len(everything)} existing pods"
        warnings.append(f"new PodSecurity enforce level only checked against {checked}")
    if named:
        warnings.append(f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{level}"')
    others = {1: "", 2: " (and 1 other pod)"}
    lines = [
        f"{min(pods_)}{others.get(len(pods_), f' (and {len(pods_) - 1} other pods)')}: {why}"
        for why, pods_ in named.items()
    ]
    return warnings + sorted(lines)


def one_of_each_owner_first(pods: Iterable[Object]) -> list[Object]:
    """Return the Pods, one of each owner first. (`prioritizePods`)"""
    first: list[Object] = []
    more: list[Object] = []
    seen = set[str]()
    for pod in pods:
        owner = next((each for each in pod["metadata"].get("ownerReferences") or () if each.get("controller")), None)
        if owner is not None and owner["uid"] in seen:
            more.append(pod)
            continue
        if owner is not None:
            seen.add(owner["uid"])
        first.append(pod)
    return first + more
