"""The rules of the usual kinds, imported family by family: a manifest with a Pod needs those of Pods alone."""

from collections.abc import Callable, Mapping

from lastcall.kube.api.names import is_dns1123_label, is_path_segment_name
from lastcall.kube.api.validators.kind_rules import KindRules, no_change

Key = tuple[str, str]
"""Group and plural of a kind."""
Family = Mapping[Key, KindRules]


def _pods() -> Family:
    # late: with the first object of the family
    from lastcall.kube.api.validators import pod, pod_resize

    return {
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
        ("", "bindings"): KindRules(is_path_segment_name),
    }


def _services() -> Family:
    # late: with the first object of the family
    from lastcall.kube.api.validators import service, status

    return {
        ("", "services"): KindRules(
            is_dns1123_label,
            service.validate_service,
            update=service.validate_update,
            subresources=(("status", status.service_status),),
        ),
    }


def _data() -> Family:
    # late: with the first object of the family
    from lastcall.kube.api.validators import data

    return {
        ("", "configmaps"): KindRules(obj=data.validate_config_map, update=data.update_config_map),
        ("", "secrets"): KindRules(obj=data.validate_secret, update=data.update_secret),
    }


def _cluster() -> Family:
    # late: with the first object of the family
    from lastcall.kube.api.validators import others

    return {
        ("", "namespaces"): KindRules(
            is_dns1123_label,
            others.validate_namespace,
            subresources=(("status", others.update_namespace_status), ("finalize", others.finalize_namespace)),
        ),
        ("", "serviceaccounts"): KindRules(),
        ("", "nodes"): KindRules(
            obj=others.validate_node, then=others.update_node, subresources=(("status", others.node_status),)
        ),
        ("coordination.k8s.io", "leases"): KindRules(obj=others.validate_lease),
        ("discovery.k8s.io", "endpointslices"): KindRules(
            obj=others.validate_endpoint_slice, change=others.change_endpoint_slice
        ),
        ("", "endpoints"): KindRules(obj=others.validate_endpoints, change_first=True),
    }


def _events() -> Family:
    # late: with the first object of the family
    from lastcall.kube.api.validators import events

    return {
        ("", "events"): KindRules(is_path_segment_name, events.validate_event),
        ("events.k8s.io", "events"): KindRules(create=events.validate_new_event, update=events.update_event),
    }


def _workloads() -> Family:
    # late: with the first object of the family
    from lastcall.kube.api.validators import status, workloads

    return {
        ("apps", "deployments"): KindRules(
            obj=workloads.validate_deployment,
            then=workloads.update_selector_immutable,
            subresources=(("status", status.deployment_status),),
        ),
        ("apps", "replicasets"): KindRules(
            obj=workloads.validate_replica_set,
            then=workloads.update_selector_immutable,
            subresources=(("status", status.replica_set_status),),
        ),
        ("apps", "statefulsets"): KindRules(
            is_dns1123_label,
            workloads.validate_stateful_set,
            fresh=workloads.new_stateful_set,
            then=workloads.update_stateful_set,
            subresources=(("status", status.stateful_set_status),),
        ),
        ("apps", "daemonsets"): KindRules(
            obj=workloads.validate_daemon_set,
            update=workloads.update_selector_immutable,
            subresources=(("status", status.daemon_set_status),),
        ),
        ("apps", "controllerrevisions"): KindRules(
            obj=workloads.validate_controller_revision,
            fresh=workloads.new_controller_revision,
            then=workloads.update_controller_revision,
        ),
        ("", "replicationcontrollers"): KindRules(
            obj=workloads.validate_replication_controller,
            subresources=(("status", status.replication_controller_status),),
        ),
        ("", "podtemplates"): KindRules(obj=workloads.validate_pod_template),
    }


def _jobs() -> Family:
    # late: with the first object of the family
    from lastcall.kube.api.validators.jobs import specs, status

    return {
        ("batch", "jobs"): KindRules(
            obj=specs.validate_job, then=specs.update_job, subresources=(("status", status.update_job_status),)
        ),
        ("batch", "cronjobs"): KindRules(obj=specs.validate_cron_job),
    }


def _policies() -> Family:
    # late: with the first object of the family
    from lastcall.kube.api.validators import policy

    return {
        ("policy", "poddisruptionbudgets"): KindRules(
            obj=policy.validate_pod_disruption_budget, subresources=(("status", policy.update_budget_status),)
        ),
        ("scheduling.k8s.io", "priorityclasses"): KindRules(
            create=policy.validate_priority_class, update=policy.update_priority_class
        ),
    }


def _access() -> Family:
    # late: with the first object of the family
    from lastcall.kube.api.validators import access

    return {
        ("rbac.authorization.k8s.io", "roles"): KindRules(is_path_segment_name, access.validate_role),
        ("rbac.authorization.k8s.io", "clusterroles"): KindRules(is_path_segment_name, access.validate_cluster_role),
        ("rbac.authorization.k8s.io", "rolebindings"): KindRules(
            is_path_segment_name, access.validate_role_binding, then=access.update_role_binding
        ),
        ("rbac.authorization.k8s.io", "clusterrolebindings"): KindRules(
            is_path_segment_name, access.validate_cluster_role_binding, then=access.update_role_binding
        ),
    }


def _networking() -> Family:
    # late: with the first object of the family
    from lastcall.kube.api.validators import access, networking, status

    return {
        ("networking.k8s.io", "ingresses"): KindRules(
            obj=access.validate_ingress, subresources=(("status", status.ingress_status),)
        ),
        ("networking.k8s.io", "networkpolicies"): KindRules(obj=networking.validate_network_policy),
        ("networking.k8s.io", "ingressclasses"): KindRules(
            obj=networking.validate_ingress_class, update=networking.update_ingress_class
        ),
        ("node.k8s.io", "runtimeclasses"): KindRules(
            obj=networking.validate_runtime_class, then=networking.update_runtime_class
        ),
    }


def _storage() -> Family:
    # late: with the first object of the family
    from lastcall.kube.api.validators.storage import kinds

    return {
        ("storage.k8s.io", "storageclasses"): KindRules(
            obj=kinds.validate_storage_class, then=kinds.update_storage_class
        ),
        ("", "persistentvolumes"): KindRules(obj=kinds.validate_volume, then=kinds.update_volume),
        ("", "persistentvolumeclaims"): KindRules(
            obj=kinds.validate_claim,
            change=kinds.change_claim,
            subresources=(("status", kinds.update_claim_status),),
        ),
    }


def _none() -> Family:
    return {}


_CORE: Mapping[str, Callable[[], Family]] = {
    **dict.fromkeys(("pods", "bindings"), _pods),
    "services": _services,
    **dict.fromkeys(("configmaps", "secrets"), _data),
    **dict.fromkeys(("namespaces", "serviceaccounts", "nodes", "endpoints"), _cluster),
    "events": _events,
    **dict.fromkeys(("replicationcontrollers", "podtemplates"), _workloads),
    **dict.fromkeys(("persistentvolumes", "persistentvolumeclaims"), _storage),
}
"""By plural, of the core group."""

_GROUPS: Mapping[str, Callable[[], Family]] = {
    "apps": _workloads,
    "batch": _jobs,
    "coordination.k8s.io": _cluster,
    "discovery.k8s.io": _cluster,
    "events.k8s.io": _events,
    "networking.k8s.io": _networking,
    "node.k8s.io": _networking,
    "policy": _policies,
    "rbac.authorization.k8s.io": _access,
    "scheduling.k8s.io": _policies,
    "storage.k8s.io": _storage,
}


def family_of(group: str, plural: str) -> Family:
    """Return the rules of a kind's family, which need not have that kind: then it has those of metadata only."""
    return (_GROUPS.get(group, _none) if group else _CORE.get(plural, _none))()
