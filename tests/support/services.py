"""Services and EndpointSlices as the API gives them, for tests of the service proxy."""

from typing import Any


def service(name: str = "web", cluster_ip: str = "10.96.0.10", **spec: Any) -> dict[str, Any]:
    """A ClusterIP Service with port `http` 80, unless `spec` says otherwise; `ingress` is its status."""
    ingress = spec.pop("ingress", None)
    found: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": "default", "name": name, "uid": f"uid-{name}", "labels": spec.pop("labels", {})},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": cluster_ip,
            "clusterIPs": [cluster_ip],
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080}],
            **spec,
        },
    }
    if ingress:
        found["status"] = {"loadBalancer": {"ingress": ingress}}
    return found


def endpoint(
    address: str, ready: bool | None = True, serving: bool | None = None, terminating: bool = False, **more: Any
) -> dict[str, Any]:
    """`serving` is `ready` unless given; `node` and `hints` as the API has them."""
    node = more.pop("node", "node-1")
    return {
        "addresses": [address],
        "conditions": {"ready": ready, "serving": ready if serving is None else serving, "terminating": terminating},
        "nodeName": node,
        "targetRef": {"kind": "Pod", "name": f"pod-{address}", "namespace": "default", "uid": f"pod-{address}"},
        **more,
    }


def endpoint_slice(
    *endpoints: dict[str, Any], name: str = "web-1", service: str = "web", ports: Any = None, **more: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": f"uid-{name}",
            "labels": {"kubernetes.io/service-name": service, **more.pop("labels", {})},
        },
        "addressType": "IPv4",
        "endpoints": list(endpoints),
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}] if ports is None else ports,
        **more,
    }
