"""Fields that were one and became several: both say the same, as a Kubernetes 1.36.2 stores them."""

import pytest

from lastcall.kube.api.defaults.kinds import set_defaults
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import NODES, PODS


@pytest.mark.parametrize(
    ("spec", "one", "several"),
    [
        ({"podCIDR": "10.1.0.0/24"}, "10.1.0.0/24", ["10.1.0.0/24"]),
        ({"podCIDR": "10.1.0.0/24", "podCIDRs": []}, "10.1.0.0/24", ["10.1.0.0/24"]),
        ({"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.2.0.0/24"]}, "10.1.0.0/24", ["10.1.0.0/24"]),
        ({"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24", "fd00::/64"]}, "10.1.0.0/24",
         ["10.1.0.0/24", "fd00::/64"]),
        ({"podCIDRs": ["10.2.0.0/24"]}, "10.2.0.0/24", ["10.2.0.0/24"]),
        ({}, None, None),
    ],
)  # fmt: skip
def test_the_ranges_of_a_node(spec: Object, one: str | None, several: list[str] | None) -> None:
    node = {"metadata": {"name": "n"}, "spec": spec}
    set_defaults(NODES, node)
    assert (node["spec"].get("podCIDR"), node["spec"].get("podCIDRs")) == (one, several)


@pytest.mark.parametrize(
    ("status", "one", "several"),
    [
        ({"podIP": "10.1.0.2"}, "10.1.0.2", [{"ip": "10.1.0.2"}]),
        ({"podIP": "10.1.0.2", "podIPs": [{"ip": "10.1.0.3"}]}, "10.1.0.2", [{"ip": "10.1.0.2"}]),
        ({"podIPs": [{"ip": "10.1.0.3"}]}, "10.1.0.3", [{"ip": "10.1.0.3"}]),
        ({}, None, None),
    ],
)
def test_the_addresses_of_a_pod(status: Object, one: str | None, several: list[Object] | None) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": []}, "status": status}
    set_defaults(PODS, pod)
    assert (pod["status"].get("podIP"), pod["status"].get("podIPs")) == (one, several)
