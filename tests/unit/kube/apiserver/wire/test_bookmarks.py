"""The object of a bookmark is an empty one of its kind, as a real Kubernetes 1.36.2 sends it."""

from typing import Any

import pytest

from lastcall.kube.api.resources import (
    CONFIGMAPS,
    DEPLOYMENTS,
    ENDPOINTSLICES,
    EVENTS,
    LEASES,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    Resource,
)
from lastcall.kube.apiserver.registry.bookmarks import bookmark

TEMPLATE = {"metadata": {}, "spec": {"containers": None}}
REAL: dict[Resource, dict[str, Any]] = {
    CONFIGMAPS: {},
    LEASES: {"spec": {}},
    PODS: {"spec": {"containers": None}, "status": {}},
    PERSISTENTVOLUMECLAIMS: {"spec": {"resources": {}}, "status": {}},
    ENDPOINTSLICES: {"addressType": "", "endpoints": None, "ports": None},
    EVENTS: {
        "involvedObject": {}, "source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None,
        "reportingComponent": "", "reportingInstance": "",
    },
    DEPLOYMENTS: {"spec": {"replicas": 0, "selector": None, "template": TEMPLATE, "strategy": {}}, "status": {}},
    Resource("example.com", "v1", "widgets", "Widget", namespaced=True): {},
}  # fmt: skip


@pytest.mark.parametrize("resource", REAL, ids=lambda each: each.plural)
def test_it_has_what_go_writes_of_a_new_object(resource: Resource) -> None:
    found = bookmark(resource, 7)
    top = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {"resourceVersion": "7"}}
    assert found == {**top, **REAL[resource]}


def test_the_end_of_what_was_there_is_marked() -> None:
    found = bookmark(PODS, 7, initial_events_end=True)
    annotations = {"k8s.io/initial-events-end": "true"}
    assert found["metadata"] == {"resourceVersion": "7", "annotations": annotations}
