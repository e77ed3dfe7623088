"""Whether an object may be stored. Pure; the rules of each kind are in `lastcall.api.validators`.

Objects must be defaulted (`lastcall.api.defaults.kinds`) and decodable (`lastcall.api.schema.checks.check_fields`).
"""

from lastcall.api.field import FieldError, each
from lastcall.api.meta import Object
from lastcall.api.names import is_dns1123_label, is_path_segment_name
from lastcall.api.resources import Resource
from lastcall.api.validators import (
    access,
    batch,
    data,
    events,
    metadata,
    networking,
    others,
    pod,
    pod_resize,
    policy,
    service,
    storage,
    workloads,
)
from lastcall.api.validators.expressions import ANY_EXPRESSIONS, Expressions
from lastcall.api.validators.kind_rules import KindRules, no_change

# Most clusters have neither quotas nor limit ranges: their rules are imported with the first.


def _resource_quota(obj: Object) -> list[FieldError]:
    # late: 4.0 ms of `demo`
    from lastcall.api.validators import limits

    return limits.validate_resource_quota(obj)


def _resource_quota_update(new: Object, old: Object) -> list[FieldError]:
    # late: 4.0 ms of `demo`
    from lastcall.api.validators import limits

    return limits.update_resource_quota(new, old)


def _resource_quota_status(new: Object, old: Object) -> list[FieldError]:
    # late: 4.0 ms of `demo`
    from lastcall.api.validators import limits

    return limits.update_resource_quota_status(new, old)


def _limit_range(obj: Object) -> list[FieldError]:
    # late: 4.0 ms of `demo`
    from lastcall.api.validators import limits

    return limits.validate_limit_range(obj)


def _api_service(obj: Object) -> list[FieldError]:
    # late: with the first, as above
    from lastcall.api.validators import apiservices

    return apiservices.validate_api_service(obj)


def _api_service_status(new: Object, old: Object) -> list[FieldError]:
    # late: most clusters have none
    from lastcall.api.validators import apiservices

    return apiservices.validate_api_service_status(new)


def _definition(obj: Object) -> list[FieldError]:
    # late: most clusters have none
    from lastcall.api.validators.definitions import spec

    return spec.validate_definition(obj)


def _definition_update(new: Object, old: Object) -> list[FieldError]:
    # late: most clusters have none
    from lastcall.api.validators.definitions import spec

    return spec.validate_definition_update(new, old)


def _definition_status(new: Object, old: Object) -> list[FieldError]:
    # late: most clusters have none
    from lastcall.api.validators.definitions import spec

    return spec.validate_definition_status(new)


RULES: dict[tuple[str, str], KindRules] = {
    ("", "pods"): KindRules(
        create=pod.validate_create,
        update=pod.validate_update,
        subresources=(
            ("status", pod.validate_status_update),
            ("ephemeralcontainers", pod.validate_ephemeral_containers_update),
            ("resize", pod_resize.validate_resize),
            ("binding", no_change),
        ),
    ),
    ("", "services"): KindRules(is_dns1123_label, service.validate_service, update=service.validate_update, meta=False),
    ("", "configmaps"): KindRules(obj=data.validate_config_map, update=data.update_config_map),
    ("", "secrets"): KindRules(obj=data.validate_secret, update=data.update_secret),
    ("", "namespaces"): KindRules(
        is_dns1123_label,
        others.validate_namespace,
        subresources=(("status", others.update_namespace_status), ("finalize", others.finalize_namespace)),
    ),
    ("", "serviceaccounts"): KindRules(),
    ("", "nodes"): KindRules(obj=others.validate_node, update=others.update_node),
    ("", "events"): KindRules(is_path_segment_name, events.validate_event),
    ("events.k8s.io", "events"): KindRules(is_path_segment_name),
    ("", "bindings"): KindRules(is_path_segment_name),
    ("coordination.k8s.io", "leases"): KindRules(obj=others.validate_lease),
    ("discovery.k8s.io", "endpointslices"): KindRules(
        obj=others.validate_endpoint_slice, then=others.update_endpoint_slice
    ),
    ("", "endpoints"): KindRules(obj=others.validate_endpoints),
    ("apps", "deployments"): KindRules(
        obj=workloads.validate_deployment, then=workloads.update_selector_immutable, meta=False
    ),
    ("apps", "replicasets"): KindRules(
        obj=workloads.validate_replica_set, then=workloads.update_selector_immutable, repeated=True
    ),
    ("apps", "statefulsets"): KindRules(
        obj=workloads.validate_stateful_set, then=workloads.update_stateful_set, meta=False
    ),
    ("apps", "daemonsets"): KindRules(
        obj=workloads.validate_daemon_set, then=workloads.update_selector_immutable, repeated=True
    ),
    ("apps", "controllerrevisions"): KindRules(
        obj=workloads.validate_controller_revision, then=workloads.update_controller_revision
    ),
    ("", "replicationcontrollers"): KindRules(obj=workloads.validate_replication_controller),
    ("", "podtemplates"): KindRules(obj=workloads.validate_pod_template),
    ("", "limitranges"): KindRules(obj=_limit_range),
    ("", "resourcequotas"): KindRules(
        obj=_resource_quota, update=_resource_quota_update, subresources=(("status", _resource_quota_status),)
    ),
    ("batch", "jobs"): KindRules(
        obj=batch.validate_job, then=batch.update_job, subresources=(("status", batch.update_job_status),)
    ),
    ("batch", "cronjobs"): KindRules(obj=batch.validate_cron_job, meta=False),
    ("policy", "poddisruptionbudgets"): KindRules(obj=policy.validate_pod_disruption_budget),
    ("autoscaling", "horizontalpodautoscalers"): KindRules(obj=policy.validate_horizontal_pod_autoscaler),
    ("scheduling.k8s.io", "priorityclasses"): KindRules(
        obj=policy.validate_priority_class, update=policy.update_priority_class
    ),
    ("networking.k8s.io", "ingresses"): KindRules(obj=access.validate_ingress),
    ("networking.k8s.io", "networkpolicies"): KindRules(obj=networking.validate_network_policy),
    ("networking.k8s.io", "ingressclasses"): KindRules(
        obj=networking.validate_ingress_class, update=networking.update_ingress_class
    ),
    ("node.k8s.io", "runtimeclasses"): KindRules(
        obj=networking.validate_runtime_class, then=networking.update_runtime_class
    ),
    ("storage.k8s.io", "storageclasses"): KindRules(
        obj=storage.validate_storage_class, update=storage.update_storage_class
    ),
    ("", "persistentvolumes"): KindRules(obj=storage.validate_volume, update=storage.update_volume),
    ("", "persistentvolumeclaims"): KindRules(obj=storage.validate_claim, update=storage.update_claim),
    ("apiextensions.k8s.io", "customresourcedefinitions"): KindRules(
        create=_definition, update=_definition_update, subresources=(("status", _definition_status),)
    ),
    ("apiregistration.k8s.io", "apiservices"): KindRules(
        is_path_segment_name, _api_service, subresources=(("status", _api_service_status),)
    ),
    ("rbac.authorization.k8s.io", "roles"): KindRules(is_path_segment_name, access.validate_role),
    ("rbac.authorization.k8s.io", "clusterroles"): KindRules(is_path_segment_name, access.validate_cluster_role),
    ("rbac.authorization.k8s.io", "rolebindings"): KindRules(
        is_path_segment_name, access.validate_role_binding, then=access.update_role_binding, repeated=True
    ),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): KindRules(
        is_path_segment_name, access.validate_cluster_role_binding, then=access.update_role_binding, repeated=True
    ),
}
"""By group and plural; a kind that is not listed has the rules of metadata only."""

LATE = frozenset(
    {
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
"""Kinds whose rules are in `validators/cluster/` and imported with their first object."""

_METADATA_ONLY = KindRules()


def rules_for(resource: Resource) -> KindRules:
    key = (resource.group, resource.plural)
    found = RULES.get(key)
    if found is None and key in LATE:
        # late: most clusters have none of these kinds
        from lastcall.api.validators.cluster.rules import rules_of

        found = rules_of(*key)
    return _METADATA_ONLY if found is None else found


def _meta(resource: Resource, obj: Object, rules: KindRules) -> list[FieldError]:
    return metadata.validate_object_meta(
        obj.get("metadata") or {}, namespaced=resource.namespaced, name_check=rules.name
    )


def validate_create(resource: Resource, obj: Object, expressions: Expressions = ANY_EXPRESSIONS) -> list[FieldError]:
    """Problems in the order of Kubernetes; empty when the object may be created. (`rest.BeforeCreate`)"""
    rules = rules_for(resource)
    errors = _meta(resource, obj, rules)
    errors += rules.check(obj, expressions) if rules.create is None else rules.create(obj)
    if errors:
        return errors
    name = (obj.get("metadata") or {}).get("name") or ""
    return each("metadata.name", name, is_path_segment_name(name))


def validate_update(
    resource: Resource,
    new: Object,
    old: Object,
    subresource: str = "",
    found: list[FieldError] | None = None,
    expressions: Expressions = ANY_EXPRESSIONS,
) -> list[FieldError]:
    """What the kind's own update rules find. (the strategy's `ValidateUpdate`)

    The API server checks metadata once more before it asks the kind (`rest.BeforeUpdate`), which is why Kubernetes
    lists a problem of metadata twice in `details.causes`; `metadata_update_errors` is that first check, and `found`
    what it found.
    """
    rules = rules_for(resource)
    errors = list(metadata_update_errors(new, old) if found is None else found)
    for name, rule in rules.subresources:
        if name == subresource:
            return errors + rule(new, old)
    if subresource == "status":
        return errors
    if rules.create is not None:
        return errors + _meta(resource, new, rules) + rules.update(new, old)
    errors += rules.update(new, old)
    if rules.meta:
        errors += _meta(resource, new, rules)
    problems = rules.check(new, expressions)
    return errors + (problems * 2 if rules.repeated else problems) + rules.then(new, old)


def metadata_update_errors(new: Object, old: Object) -> list[FieldError]:
    """The check of `rest.BeforeUpdate`, to be put before the answer of `validate_update`."""
    return metadata.validate_object_meta_update(new.get("metadata") or {}, old.get("metadata") or {})
