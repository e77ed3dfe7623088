"""Whether an object may be stored. Pure; the rules of each kind are in `lastcall.kube.api.validators`.

Objects must be defaulted (`lastcall.kube.api.defaults.kinds`) and decodable
(`lastcall.kube.api.schema.checks.check_fields`).
"""

# check: pure

from functools import lru_cache
from typing import NamedTuple

from lastcall.kube.api.field import FieldError, each
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_path_segment_name
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.validators import metadata
from lastcall.kube.api.validators.expressions import ANY_EXPRESSIONS, Expressions
from lastcall.kube.api.validators.families import family_of
from lastcall.kube.api.validators.kind_rules import KindRules, no_change

LATE = frozenset(
    {
        *(("", plural) for plural in ("limitranges", "resourcequotas")),
        ("autoscaling", "horizontalpodautoscalers"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("apiregistration.k8s.io", "apiservices"),
        *(
            ("admissionregistration.k8s.io", plural)
            for plural in (
                "mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies",
                "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
            )
        ),
        ("certificates.k8s.io", "certificatesigningrequests"),
        *(("networking.k8s.io", plural) for plural in ("ipaddresses", "servicecidrs")),
        *(
            ("storage.k8s.io", plural)
            for plural in (
                "csidrivers", "csinodes", "csistoragecapacities", "volumeattachments", "volumeattributesclasses",
            )
        ),
        *(
            ("resource.k8s.io", plural)
            for plural in ("resourceclaims", "resourceclaimtemplates", "deviceclasses", "resourceslices")
        ),
        *(("flowcontrol.apiserver.k8s.io", plural) for plural in ("flowschemas", "prioritylevelconfigurations")),
    }
)  # fmt: skip
"""Kinds whose rules are imported with their first object, by `validators/rare.py`."""

_METADATA_ONLY = KindRules()
"""Of a kind that no table has."""

_GENERIC_GROUPS = frozenset({"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"})
_GENERIC = frozenset({
    ("coordination.k8s.io", "leases"), ("", "events"), ("policy", "poddisruptionbudgets"),
    ("node.k8s.io", "runtimeclasses"),
})  # fmt: skip


def _rules(group: str, plural: str) -> KindRules:
    key = (group, plural)
    found = family_of(*key).get(key)
    if found is None and key in LATE:
        # late: most clusters have none of these kinds
        from lastcall.kube.api.validators.rare import rules_of

        found = rules_of(*key)
    return _METADATA_ONLY if found is None else found


class _Ways(NamedTuple):
    """How objects of a kind are looked at."""

    rules: KindRules
    core: bool
    """Whether its validation is that of Kubernetes's core and not the generic one of any API server."""
    full: int
    update: int
    """See `_OWN_CHECKS`."""

    @property
    def meta_comes_last(self) -> bool:
        """Whether the kind's own validation leaves metadata to the API server."""
        return not (self.full or self.update)


@lru_cache(256)
def _ways(group: str, plural: str) -> _Ways:
    rules, key = _rules(group, plural), (group, plural)
    core = not (rules is _METADATA_ONLY or group in _GENERIC_GROUPS or key in _GENERIC)
    return _Ways(rules, core, *_OWN_CHECKS.get(key, (1, 1)))


def _meta(resource: Resource, obj: Object, ways: _Ways) -> list[FieldError]:
    rules = ways.rules
    name_check = rules.name if rules.name_of is None else rules.name_of(obj)
    return metadata.validate_object_meta(
        obj.get("metadata") or {}, namespaced=resource.namespaced, name_check=name_check, core=ways.core
    )


def _any_meta(resource: Resource, obj: Object) -> list[FieldError]:
    """What is asked of the metadata of whatever kind. (`genericvalidation.ValidateObjectMetaAccessor`)"""
    meta = obj.get("metadata") or {}
    return metadata.validate_object_meta(
        meta, namespaced=resource.namespaced, name_check=is_path_segment_name, core=False
    )  # fmt: skip


def validate_create(resource: Resource, obj: Object, expressions: Expressions = ANY_EXPRESSIONS) -> list[FieldError]:
    """Return problems in the order of Kubernetes; empty when the object may be created. (`rest.BeforeCreate`)"""
    ways = _ways(resource.group, resource.plural)
    rules = ways.rules
    errors = [] if ways.meta_comes_last else _meta(resource, obj, ways)
    if (new := rules.create or rules.fresh) is not None:
        errors += new(obj)
    else:
        errors += rules.check(obj, expressions)
    if rules.created is not None:
        errors += rules.created(obj, expressions)
    if not errors and ways.meta_comes_last:
        errors = _any_meta(resource, obj)
    if errors:
        return errors
    name = (obj.get("metadata") or {}).get("name") or ""
    return each("metadata.name", name, is_path_segment_name(name))


def validate_update(
    resource: Resource,
    new: Object,
    old: Object,
    subresource: str = "",
    expressions: Expressions = ANY_EXPRESSIONS,
) -> list[FieldError]:
    """Return problems in the order of Kubernetes; empty when the update may be stored. (`rest.BeforeUpdate`)

    The API server checks metadata, whose names may then be any that a path can have, and its change, before it asks the
    kind (the strategy's `ValidateUpdate`), and most kinds do so again: Kubernetes lists a problem of metadata up to
    four times in `details.causes`.
    """
    rules, core, full, update = ways = _ways(resource.group, resource.plural)
    errors: list[FieldError] = []
    own: list[FieldError] = []
    if changed := metadata.changed(new.get("metadata") or {}, old.get("metadata") or {}):
        found = metadata_update_errors(new, old)
        errors = [*_any_meta(resource, new), *found]
        own = [*found] if update else []
        if update and core:
            own += metadata.own_finalizers((new.get("metadata") or {}).get("finalizers") or [])
    # Kinds that look at the new object first tell its metadata's change after that.
    late = (rules.update is no_change and not rules.change_first) or resource.plural == "resourceclaims"
    if not (late and full) or subresource or rules.change is not None:
        errors, own = errors + own, []
    for name, rule in rules.subresources:
        if name == subresource:
            return errors + rule(new, old)
    if subresource == "status":
        return errors
    # A name that follows from the object may have to be another one now.
    meta = _meta(resource, new, ways) * full if full and (changed or rules.name_of is not None) else []
    if rules.change is not None:
        return errors + meta + rules.change(new, old)
    if rules.create is not None:
        return errors + meta + own + rules.update(new, old)
    errors += rules.update(new, old)
    errors += meta
    return errors + rules.check(new, expressions) + own + rules.then(new, old)


_OWN_CHECKS = dict.fromkeys(
    (
        ("", "podtemplates"), ("", "replicationcontrollers"), ("", "resourcequotas"), ("", "services"),
        *(("apps", plural) for plural in ("daemonsets", "deployments", "replicasets", "statefulsets")),
        ("batch", "cronjobs"), ("autoscaling", "horizontalpodautoscalers"), ("networking.k8s.io", "networkpolicies"),
        ("networking.k8s.io", "servicecidrs"), ("storage.k8s.io", "csidrivers"),
        ("scheduling.k8s.io", "priorityclasses"), ("coordination.k8s.io", "leases"),
        ("resource.k8s.io", "resourceslices"), ("apiextensions.k8s.io", "customresourcedefinitions"),
    ),
    (0, 1),
) | dict.fromkeys(
    (
        ("", "limitranges"), ("storage.k8s.io", "csinodes"), ("storage.k8s.io", "volumeattachments"),
        ("discovery.k8s.io", "endpointslices"), ("flowcontrol.apiserver.k8s.io", "flowschemas"),
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
        *(key for key in LATE if key[0] == "admissionregistration.k8s.io"),
    ),
    (1, 0),
) | {
    ("policy", "poddisruptionbudgets"): (0, 0), ("", "events"): (0, 0), ("events.k8s.io", "events"): (0, 1),
    ("", "persistentvolumes"): (2, 0),
}  # fmt: skip
"""How often a kind's own validation of an update looks at the new metadata alone, and at its change: each finds the
same problems once more. The others do both once. Asked of Kubernetes 1.36.2, kind by kind."""


def metadata_update_errors(new: Object, old: Object) -> list[FieldError]:
    """Check what may not change in metadata."""
    return metadata.validate_object_meta_update(new.get("metadata") or {}, old.get("metadata") or {})
