"""A port of the node belongs to one Pod. As Kubernetes 1.36.2 answers."""

import pytest

from lastcall.kube.node.admission.decide import has_free_ports

WHY = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"


def pod(number=0, group="containers", **more):
    port = {"containerPort": 80, **({"hostPort": number} if number else {})} | more
    return {"metadata": {"name": "p"}, "spec": {group: [{"name": "a", "ports": [port]}]}}


@pytest.mark.parametrize("more", [{}, {"hostIP": "127.0.0.1"}, {"hostIP": "0.0.0.0", "protocol": "TCP"}])
def test_a_pod_whose_port_another_one_has_is_refused(more):
    rejection = has_free_ports(pod(8080, **more), [pod(8080)])
    assert rejection is not None and (rejection.reason, rejection.message) == ("NodePorts", WHY)
    assert has_free_ports(pod(8080), [pod(8080, **more)]) is not None


@pytest.mark.parametrize("other", [pod(8081), pod(8080, protocol="UDP"), pod(), pod(8080, group="initContainers")])
def test_another_port_or_protocol_is_free(other):
    assert has_free_ports(pod(8080), [other]) is None


def test_two_addresses_of_the_node_have_ports_of_their_own():
    assert has_free_ports(pod(8080, hostIP="127.0.0.1"), [pod(8080, hostIP="127.0.0.2")]) is None
