"""The rules of kinds that most clusters have no or few objects of, imported group by group."""

from collections.abc import Callable, Mapping

from lastcall.kube.api.validators.kind_rules import KindRules


def _certificates() -> Mapping[str, KindRules]:
    # late: with the first object of the group
    from lastcall.kube.api.validators.cluster import certificates

    return certificates.RULES


def _addresses() -> Mapping[str, KindRules]:
    # late: with the first object of the group
    from lastcall.kube.api.validators.cluster import addresses

    return addresses.RULES


def _csi() -> Mapping[str, KindRules]:
    # late: with the first object of the group
    from lastcall.kube.api.validators.cluster import csi

    return csi.RULES


def _devices() -> Mapping[str, KindRules]:
    # late: with the first object of the group
    from lastcall.kube.api.validators.cluster import claim_status, slices

    return {**claim_status.RULES, **slices.RULES}


def _flow_control() -> Mapping[str, KindRules]:
    # late: with the first object of the group
    from lastcall.kube.api.validators.cluster import flow_control

    return flow_control.RULES


def _admission() -> Mapping[str, KindRules]:
    # late: with the first object of the group
    from lastcall.kube.api.validators.cluster import policies

    return policies.RULES


def _limits() -> Mapping[str, KindRules]:
    # late: with the first object of the group
    from lastcall.kube.api.validators import limits

    return limits.RULES


def _autoscaling() -> Mapping[str, KindRules]:
    # late: with the first object of the group
    from lastcall.kube.api.validators import autoscaling

    return autoscaling.RULES


def _api_services() -> Mapping[str, KindRules]:
    # late: with the first object of the group
    from lastcall.kube.api.validators import apiservices

    return apiservices.RULES


def _definitions() -> Mapping[str, KindRules]:
    # late: with the first object of the group
    from lastcall.kube.api.validators.definitions import spec

    return spec.RULES


_GROUPS: Mapping[str, Callable[[], Mapping[str, KindRules]]] = {
    "": _limits,
    "admissionregistration.k8s.io": _admission,
    "apiextensions.k8s.io": _definitions,
    "apiregistration.k8s.io": _api_services,
    "autoscaling": _autoscaling,
    "certificates.k8s.io": _certificates,
    "networking.k8s.io": _addresses,
    "storage.k8s.io": _csi,
    "resource.k8s.io": _devices,
    "flowcontrol.apiserver.k8s.io": _flow_control,
}


def rules_of(group: str, plural: str) -> KindRules:
    """Return the rules of a kind. Raises KeyError for a kind that is not among them."""
    return _GROUPS[group]()[plural]
