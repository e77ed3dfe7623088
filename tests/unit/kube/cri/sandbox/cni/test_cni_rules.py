"""What plugins are told, and what is made of their answers."""

import json

import pytest

from lastcall.kube.cri.api import DNSConfig, PodSandboxConfig, PodSandboxMetadata, PortMapping
from lastcall.kube.cri.sandbox.cni import rules
from lastcall.kube.cri.sandbox.cni.conf import NetworkConfiguration
from lastcall.kube.cri.sandbox.cni.rules import Attachment, CNIError, addresses, failure, of_plugin

NETWORK = NetworkConfiguration("net", ("1.0.0",), ({"type": "bridge"},), file="/etc/cni/net.d/10.conflist")
POD = PodSandboxConfig(
    PodSandboxMetadata("web-0", "uid-1", "shop"),
    dns_config=DNSConfig(("10.96.0.10",), ("svc.cluster.local",), ("ndots:5",)),
    port_mappings=(PortMapping(8080, 80), PortMapping(0, 81), PortMapping(53, 5353, "UDP", "127.0.0.1")),
    cgroup_parent="/kubepods/poduid-1",
    annotations={"kubernetes.io/ingress-bandwidth": "1M", "a": "b"},
)


def attachment(version: str = "1.0.0", **more: object) -> Attachment:
    return Attachment("c1", "/run/netns/c1", NETWORK, version, rules.pod_args("c1", POD), {}, **more)


def test_the_environment_of_an_add_names_the_pod():
    found = rules.environment("ADD", attachment(), ("/opt/cni/bin", "/usr/lib/cni"), netns="/run/netns/c1")
    assert found == {
        "CNI_COMMAND": "ADD",
        "CNI_CONTAINERID": "c1",
        "CNI_NETNS": "/run/netns/c1",
        "CNI_IFNAME": "eth0",
        "CNI_PATH": "/opt/cni/bin:/usr/lib/cni",
        "CNI_ARGS": "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;K8S_POD_INFRA_CONTAINER_ID=c1;"
        "K8S_POD_UID=uid-1",
    }


def test_a_plugin_gets_only_the_capabilities_that_it_asks_for():
    args = rules.pod_capability_args(POD, "10.244.3.0/24")
    plugin = {"type": "portmap", "snat": True, "capabilities": {"portMappings": True, "dns": False, "mac": True}}
    request = json.loads(rules.request(NETWORK, plugin, "1.0.0", args, {"ips": []}))
    assert request == {
        **plugin,
        "name": "net",
        "cniVersion": "1.0.0",
        "prevResult": {"ips": []},
        "runtimeConfig": {
            "portMappings": [
                {"hostPort": 8080, "containerPort": 80, "protocol": "tcp", "hostIP": ""},
                {"hostPort": 53, "containerPort": 5353, "protocol": "udp", "hostIP": "127.0.0.1"},
            ]
        },
    }
    assert args["bandwidth"] == {"ingressRate": 1_000_000, "ingressBurst": 0xFFFFFFFF}
    assert args["ipRanges"] == [[{"subnet": "10.244.3.0/24"}]]
    assert args["dns"] == {"servers": ["10.96.0.10"], "searches": ["svc.cluster.local"], "options": ["ndots:5"]}
    assert args["cgroupPath"] == "/kubepods/poduid-1"
    assert args["io.kubernetes.cri.pod-annotations"] == dict(POD.annotations)


def test_the_first_plugin_has_no_previous_result_and_none_can_bring_one():
    plugin = {"type": "bridge", "prevResult": {"ips": ["mine"]}, "runtimeConfig": {"mac": "mine"}}
    assert json.loads(rules.request(NETWORK, plugin, "1.0.0", {})) == {
        "type": "bridge", "name": "net", "cniVersion": "1.0.0"}  # fmt: skip


@pytest.mark.parametrize(("version", "told"), [("0.3.1", None), ("0.4.0", {"ips": []}), ("1.1.0", {"ips": []})])
def test_a_delete_is_told_the_result_since_0_4_0(version: str, told: object):
    assert rules.previous_for_delete(attachment(version, result={"ips": []})) == told


@pytest.mark.parametrize("text", ["fast", "999", "2P"])
def test_a_bandwidth_that_is_none_is_an_error_that_names_the_annotation(text: str):
    config = PodSandboxConfig(POD.metadata, annotations={"kubernetes.io/egress-bandwidth": text})
    with pytest.raises(CNIError, match=r"annotation kubernetes\.io/egress-bandwidth"):
        rules.pod_capability_args(config, "")


@pytest.mark.parametrize(
    ("stdout", "stderr", "said", "code"),
    [
        (b'{"code":100,"msg":"no bridge","details":"cni0"}', b"", "no bridge; cni0", 100),
        (b'{"code":11,"msg":"later"}', b"noise", "later", 11),
        (b"", b"panic: x\n", 'netplugin failed: "panic: x\\n"', 0),
        (b"", b"", "netplugin failed with no error message: exit status 1", 0),
        (b"oops", b"", 'netplugin failed but error parsing its diagnostic message "oops": ', 0),
        (b"[]", b"", 'netplugin failed but error parsing its diagnostic message "[]": ', 0),
    ],
)
def test_a_failed_plugin_is_told_of_as_libcni_does(stdout: bytes, stderr: bytes, said: str, code: int):
    error = failure("exit status 1", stdout, stderr)
    assert str(error).startswith(said)
    assert error.code == code


def test_an_error_names_the_plugin_and_its_own_name_where_it_has_one():
    error = CNIError("boom", 7)
    assert str(of_plugin({"type": "bridge"}, "ADD", error)) == 'plugin type="bridge" failed (add): boom'
    named = of_plugin({"type": "aws-cni", "name": "aws"}, "DEL", error)
    assert (str(named), named.code) == ('plugin type="aws-cni" name="aws" failed (delete): boom', 7)


def test_the_pod_has_the_addresses_of_its_own_interface_ipv4_first():
    result = {
        "interfaces": [{"name": "cni0"}, {"name": "eth0", "sandbox": "/run/netns/c1"}],
        "ips": [
            {"address": "10.0.0.1/24", "interface": 0},
            {"address": "fd00::2/64", "interface": 1},
            {"address": "10.0.0.2/24", "interface": 1},
        ],
    }
    assert addresses(result) == ("10.0.0.2", "fd00::2")
    assert addresses({"ips": [{"address": "10.0.0.9/16"}]}) == ("10.0.0.9",), "no interface is the Pod's"
    assert addresses({"ip4": {"ip": "10.0.0.7/16"}}) == ("10.0.0.7",), "0.2.0"
    assert addresses({}) == ()


@pytest.mark.parametrize(
    "result",
    [
        {"ips": [{"address": "nowhere"}]},
        {"ips": ["10.0.0.1/8"]},
        {"interfaces": [], "ips": [{"address": "10.0.0.1/8", "interface": 3}]},
    ],
)
def test_a_result_that_cannot_be_is_an_error(result: dict):
    with pytest.raises(CNIError, match="its result"):
        addresses(result)
