"""What will be done is said before it is done, and nothing is done unless somebody names the context."""

import click
import pytest
from click.testing import CliRunner

from lastcall.cli.confirmation import confirm
from lastcall.errors import UserError
from lastcall.experiment.existing.entrance import Entrance, is_even, is_own, of_service, of_url
from lastcall.experiment.existing.plan import Plan, check_copy, check_namespace, check_yes, is_allowed, of_rollout
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import DAEMONSETS, DEPLOYMENTS

WEB: Object = {"metadata": {"name": "web"}}


@pytest.mark.parametrize(
    ("disrupt", "ends", "step", "restored"),
    [
        ("rollout", "evict", "roll out Deployment web: replace its 3 Pods, with an annotation in its Pod template", 2),
        ("scale-in", "evict", "scale Deployment web from 3 to 1 replicas, which ends 2 Pods", 1),
        ("evict", "evict", "evict 1 of the 3 Pods of Deployment web", 0),
        ("delete", "delete", "delete 1 of the 3 Pods of Deployment web", 0),
    ],
)
def test_each_disruption_is_said_in_words_with_how_many_pods(disrupt: str, ends: str, step: str, restored: int) -> None:
    steps, back = of_rollout(DEPLOYMENTS, WEB, 3, disrupt, ends)
    assert steps == (step,) and len(back) == restored


def test_a_daemon_set_has_no_replicas_to_take_away() -> None:
    with pytest.raises(UserError, match="a DaemonSet has no replicas"):
        of_rollout(DAEMONSETS, WEB, 3, "scale-in", "evict")


def test_the_plan_names_context_server_and_namespace() -> None:
    text = "\n".join(Plan("prod", "https://10.0.0.1:6443", "shop", ("end it",), ("mend it",)).lines)
    assert text.startswith("In context prod (https://10.0.0.1:6443), namespace shop, lastcall will\n  - end it\n")
    assert "  - mend it" in text and "lastcall cleanup --context prod" in text


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "kube-node-lease", "kube-x"])
def test_namespaces_of_kubernetes_are_refused(namespace: str) -> None:
    with pytest.raises(UserError, match="runs no experiments in kube-"):
        check_namespace(namespace)
    check_namespace("shop")


def test_a_copy_goes_to_another_namespace_of_applications() -> None:
    check_copy("shop", "scratch")
    for copy_to, why in (("shop", "the workload itself is in"), ("kube-public", "runs no experiments in")):
        with pytest.raises(UserError, match=why):
            check_copy("shop", copy_to)


@pytest.mark.parametrize(
    ("answer", "allowed"),
    [("prod", True), ("prod\n", True), ("pro", False), ("y", False), ("yes", False), ("", False), ("PROD", False)],
)
def test_only_the_whole_name_of_the_context_allows_it(answer: str, allowed: bool) -> None:
    assert is_allowed("prod", answer) is allowed
    assert not is_allowed("", answer)


def test_a_yes_for_another_context_is_refused() -> None:
    check_yes("prod", "")
    check_yes("prod", "prod")
    with pytest.raises(UserError, match="--yes=staging confirms context staging, and this is prod"):
        check_yes("prod", "staging")


def test_who_cannot_be_asked_allows_nothing() -> None:
    @click.command()
    def command() -> None:
        confirm("prod", ["will end Pods"], "")

    result = CliRunner().invoke(command)
    assert isinstance(result.exception, UserError) and "fix: --yes=prod" in str(result.exception)
    assert "will end Pods" in result.output


@pytest.mark.parametrize(
    ("url", "address", "port", "host"),
    [
        ("http://shop.example.com", "shop.example.com", 80, "shop.example.com"),
        ("http://10.0.0.1:8080/", "10.0.0.1", 8080, "10.0.0.1:8080"),
        ("https://shop.example.com", "shop.example.com", 443, "shop.example.com"),
        ("https://10.0.0.1:8443/", "10.0.0.1", 8443, "10.0.0.1:8443"),
    ],
)
def test_a_url_says_where_to_send_and_which_host_requests_name(url: str, address: str, port: int, host: str) -> None:
    found = of_url(url)
    assert (found.address, found.port, found.host, found.description) == (address, port, host, url)
    assert found.tls_name == (address if url.startswith("https:") else "")


@pytest.mark.parametrize(
    "url", ["shop", "ftp://a", "https://", "http://", "http://a/path", "http://a:b", "http://u:p@a", "http://a?q=1"]
)
def test_what_is_no_such_url_is_refused_with_what_to_write(url: str) -> None:
    with pytest.raises(UserError, match="--url"):
        of_url(url)


def service(kind: str, status: Object | None = None) -> Object:
    return {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"type": kind}, "status": status or {}}


def node(**addresses: str) -> Object:
    return {"status": {"addresses": [{"type": kind, "address": address} for kind, address in addresses.items()]}}


def test_a_service_is_entered_by_its_load_balancer_else_by_a_port_of_a_node() -> None:
    port = {"port": 80, "nodePort": 30080}
    balanced = of_service(service("LoadBalancer", {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}), port, [])
    assert (balanced.address, balanced.port, balanced.host) == ("192.0.2.7", 80, "web.shop.svc.cluster.local")
    nodes = [node(Hostname="n"), node(InternalIP="10.0.0.1", ExternalIP="192.0.2.1")]
    assert (of_service(service("NodePort"), port, nodes).address, port["nodePort"]) == ("192.0.2.1", 30080)
    with pytest.raises(UserError, match=r"has no address outside its cluster: its type is ClusterIP"):
        of_service(service("ClusterIP"), {"port": 80}, nodes)
    with pytest.raises(UserError, match="has no address outside"):
        of_service(service("NodePort"), port, [])


@pytest.mark.parametrize(
    ("address", "port", "own"),
    [
        ("10.0.0.9", 30443, True),  # a node's port
        ("10.0.0.9", 443, False),
        ("203.0.113.7", 443, True),  # the load balancer
        ("203.0.113.7", 30443, False),
        ("198.51.100.1", 443, True),  # an external address
        ("192.0.2.1", 443, False),  # an Ingress controller, perhaps
    ],
)
def test_a_url_is_the_services_own_where_nodes_or_its_load_balancer_answer(address: str, port: int, own: bool) -> None:
    node = {"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]}}
    service = {
        "spec": {"ports": [{"port": 443, "nodePort": 30443}, {"port": 80}], "externalIPs": ["198.51.100.1"]},
        "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}},
    }
    assert is_own(Entrance(address, port, "", ""), service, [node]) is own


@pytest.mark.parametrize(
    ("spec", "inside", "even"),
    [
        ({}, False, True),
        ({"sessionAffinity": "ClientIP"}, True, False),
        ({"externalTrafficPolicy": "Local"}, False, False),
        ({"type": "LoadBalancer"}, False, False),
        ({"type": "LoadBalancer"}, True, True),
        ({"trafficDistribution": "PreferClose"}, True, False),
    ],
)
def test_pods_get_as_many_connections_as_each_other_where_one_node_chooses_freely(
    spec: dict[str, str], inside: bool, even: bool
) -> None:
    assert is_even({"spec": spec}, inside) is even
