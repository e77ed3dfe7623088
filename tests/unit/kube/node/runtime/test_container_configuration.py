"""From a spec to CRI configs: environment, expansion, security context, resources, hooks' requests, admission."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.kube.cri.api import DEFAULT_MASKED_PATHS, DEFAULT_READONLY_PATHS, Image
from lastcall.kube.node.admission.decide import Rejection, enforces_app_armor, fits_node, matches_node, matches_os
from lastcall.kube.node.runtime.container_config import (
    generate_container_config,
    generate_pod_sandbox_config,
    linux_resources,
)
from lastcall.kube.node.runtime.environment import ContainerConfigError, make_environment, service_variables
from lastcall.kube.node.runtime.expansion import expand
from lastcall.kube.node.stopping.hooks import UnknownPort, http_request, resolve_port
from lastcall.kube.node.versions import behaviour_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("$(A)", "1"),
        ("x$(A)y$(B)z", "x1y2z"),
        ("$(MISSING)", "$(MISSING)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$(A", "$(A"),
        ("$A", "$A"),
        ("$", "$"),
        ("a$", "a$"),
        ("$()", "$()"),
        ("$(A)$(A)", "11"),
        ("$($(A))", "$($(A))"),
        ("echo $(B) $HOME", "echo 2 $HOME"),
    ],
)
def test_expansion(text, expected):
    assert expand(text, {"A": "1"}, {"B": "2", "A": "9"}) == expected


@given(st.text(alphabet="$()AB x", max_size=20))
def test_expansion_without_dollars_changes_nothing_and_never_fails(text):
    assert expand(text.replace("$", ""), {"A": "1"}) == text.replace("$", "")
    expand(text, {"A": "1"})


class Objects:
    def __init__(self, config_maps=None, secrets=None, services=()):
        self.config_maps, self.secrets, self._services = config_maps or {}, secrets or {}, services

    async def config_map(self, namespace, name):
        return self.config_maps.get(name)

    async def secret(self, namespace, name):
        return self.secrets.get(name)

    def services(self):
        return self._services


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default", "uid": "u", "labels": {"app": "web"}, "generation": 1},
    "spec": {"nodeName": "node-1", "terminationGracePeriodSeconds": 30, "containers": []},
}


def environment(container, sources=None, pod=POD):
    coroutine = make_environment(
        pod,
        {"name": "c", **container},
        sources=sources or Objects(),
        pod_ips=("10.0.0.5",),
        host_ip="172.18.0.2",
        node_allocatable={"cpu": "2", "memory": "1Gi"},
    )
    return asyncio.run(coroutine)


def test_variables_refer_to_earlier_ones_and_later_ones_win():
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)2 $(C)"}, {"name": "A", "value": "3"}]
    assert environment({"env": env}) == (("A", "3"), ("B", "12 $(C)"))


def test_values_from_the_pod_itself():
    fields = ["metadata.name", "status.podIP", "status.hostIP", "spec.nodeName", "metadata.labels['app']"]
    env = [{"name": f"V{i}", "valueFrom": {"fieldRef": {"fieldPath": f}}} for i, f in enumerate(fields)]
    assert [v for _, v in environment({"env": env})] == ["p", "10.0.0.5", "172.18.0.2", "node-1", "web"]


def test_values_from_config_maps_and_secrets():
    sources = Objects({"m": {"data": {"k": "v", "j": "w"}}}, {"s": {"data": {"p": "c2VjcmV0"}}})
    env = [
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "p"}}},
        {"name": "C", "valueFrom": {"secretKeyRef": {"name": "none", "key": "p", "optional": True}}},
    ]
    from_ = [{"prefix": "M_", "configMapRef": {"name": "m"}}, {"configMapRef": {"name": "none", "optional": True}}]
    answer = environment({"env": env, "envFrom": from_}, sources)
    assert answer == (("M_k", "v"), ("M_j", "w"), ("A", "v"), ("B", "secret"))


@pytest.mark.parametrize(
    ("container", "text"),
    [
        (
            {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "k"}}}]},
            'configmap "x" not found',
        ),
        ({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "x", "key": "k"}}}]}, 'secret "x" not found'),
        (
            {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}]},
            "couldn't find key k in ConfigMap default/m",
        ),
        ({"envFrom": [{"secretRef": {"name": "x"}}]}, 'secret "x" not found'),
        ({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]}, "unsupported fieldPath: spec.x"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said_in_kubernetes_s_words(container, text):
    with pytest.raises(ContainerConfigError) as error:
        environment(container, Objects({"m": {"data": {}}}))
    assert str(error.value) == text


def service(name, namespace="default", ip="10.96.0.9", port=80):
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterIP": ip, "ports": [{"name": "http", "port": port, "protocol": "TCP"}]},
    }


def test_variables_of_services():
    services = [
        service("my-db"),
        service("kubernetes", ip="10.96.0.1", port=443),
        service("x", "other"),
        service("h", ip="None"),
    ]
    variables = service_variables(POD, services)
    assert variables["MY_DB_SERVICE_HOST"] == "10.96.0.9"
    assert variables["MY_DB_SERVICE_PORT_HTTP"] == "80"
    assert variables["MY_DB_PORT"] == variables["MY_DB_PORT_80_TCP"] == "tcp://10.96.0.9:80"
    assert variables["MY_DB_PORT_80_TCP_ADDR"] == "10.96.0.9"
    assert variables["KUBERNETES_SERVICE_PORT"] == "443"
    assert not any(name.startswith(("X_", "H_")) for name in variables)
    without = {**POD, "spec": {**POD["spec"], "enableServiceLinks": False}}
    assert not any(name.startswith("MY_DB") for name in service_variables(without, services))
    assert "KUBERNETES_SERVICE_HOST" in service_variables(without, services)


@pytest.mark.rule("node-semantics 9.4/annotations")
def test_a_container_config_carries_what_the_runtime_needs():
    container = {
        "name": "c",
        "image": "busybox:1.36",
        "command": ["sh", "-c", "echo $(A)"],
        "args": ["$(NONE)"],
        "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
            "runAsUser": 7,
        },
    }
    config = generate_container_config(POD, container, Image("sha256:1"), attempt=2, envs=(("A", "1"),), mounts=())
    assert config.command == ("sh", "-c", "echo 1") and config.args == ("$(NONE)",)
    assert config.log_path == "c/2.log" and config.metadata.attempt == 2
    assert config.labels["io.kubernetes.pod.uid"] == "u" and config.labels["io.kubernetes.container.name"] == "c"
    assert config.annotations["io.kubernetes.container.restartCount"] == "2"
    assert config.annotations["io.kubernetes.pod.terminationGracePeriod"] == "30"
    assert config.annotations["io.kubernetes.container.preStopHandler"] == '{"exec":{"command":["true"]}}'
    context = config.security_context
    assert (context.run_as_user, context.no_new_privs, context.privileged) == (7, True, False)
    assert context.capabilities.add == ("NET_ADMIN",) and context.capabilities.drop == ("ALL",)
    assert context.masked_paths == DEFAULT_MASKED_PATHS and context.readonly_paths == DEFAULT_READONLY_PATHS


def test_privileged_containers_see_all_of_proc():
    container = {"name": "c", "image": "i", "securityContext": {"privileged": True}}
    config = generate_container_config(POD, container, Image("i"), attempt=0, envs=(), mounts=())
    assert config.security_context.masked_paths == config.security_context.readonly_paths == ()


@pytest.mark.parametrize(
    ("user", "image_user", "text"),
    [
        (0, "", "container's runAsUser breaks non-root policy"),
        (None, "", "container has runAsNonRoot and image will run as root"),
        (None, "0:0", "container has runAsNonRoot and image will run as root"),
        (None, "web", "image has non-numeric user (web)"),
        (5, "", None),
        (None, "5", None),
    ],
)
def test_run_as_non_root(user, image_user, text):
    container = {"name": "c", "image": "i", "securityContext": {"runAsNonRoot": True, "runAsUser": user}}
    image = Image("i", user=image_user)
    if text is None:
        generate_container_config(POD, container, image, attempt=0, envs=(), mounts=())
        return
    with pytest.raises(ContainerConfigError) as error:
        generate_container_config(POD, container, image, attempt=0, envs=(), mounts=())
    assert text in str(error.value)


SMALL = {"cpu": "500m", "memory": "64Mi"}


def with_resources(**resources):
    container = {"name": "c", "image": "i", "resources": resources}
    return {**POD, "spec": {**POD["spec"], "containers": [container]}}, container


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, (0, 0, 2, 0, 1000)),
        ({"limits": SMALL, "requests": SMALL}, (100_000, 50_000, 512, 64 << 20, -997)),
        ({"requests": {"cpu": "1", "memory": "256Mi"}}, (0, 0, 1024, 0, 750)),
        ({"limits": {"cpu": "1m"}}, (100_000, 1000, 2, 0, 999)),
    ],
)
def test_resources(resources, expected):
    pod, container = with_resources(**resources)
    r = linux_resources(pod, container, 1 << 30)
    assert (r.cpu_period, r.cpu_quota, r.cpu_shares, r.memory_limit_in_bytes, r.oom_score_adj) == expected


def test_a_sandbox_config_says_where_logs_go_and_which_namespaces_are_shared():
    pod = {**POD, "spec": {**POD["spec"], "hostNetwork": True, "shareProcessNamespace": True}}
    from lastcall.kube.cri.api import DNSConfig

    config = generate_pod_sandbox_config(pod, 3, hostname="p", dns_config=DNSConfig(), pod_log_root="/logs")
    assert config.log_directory == "/logs/default_p_u" and config.metadata.attempt == 3
    assert (config.namespace_options.network, config.namespace_options.pid) == ("NODE", "POD")
    assert config.labels["app"] == "web"


@pytest.mark.parametrize("group", ["initContainers", "containers", "ephemeralContainers"])
def test_a_sandbox_config_says_whether_a_container_is_privileged(group):
    from lastcall.kube.cri.api import DNSConfig

    for privileged in (True, False):
        container = {"name": "c", "securityContext": {"privileged": privileged}}
        pod = {**POD, "spec": {**POD["spec"], group: [container]}}
        config = generate_pod_sandbox_config(pod, 0, hostname="p", dns_config=DNSConfig(), pod_log_root="/logs")
        assert config.privileged is privileged


def test_a_sandbox_config_names_the_node_s_ports_that_containers_and_sidecars_want():
    from lastcall.kube.cri.api import DNSConfig, PortMapping

    web = {"name": "web", "ports": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}]}
    udp = {"containerPort": 53, "hostPort": 53, "protocol": "UDP", "hostIP": "127.0.0.1"}
    init = [
        {"name": "sidecar", "restartPolicy": "Always", "ports": [udp]},
        {"name": "init", "ports": [{"containerPort": 1, "hostPort": 1}]},
    ]
    pod = {**POD, "spec": {**POD["spec"], "containers": [web], "initContainers": init}}
    config = generate_pod_sandbox_config(pod, 0, hostname="p", dns_config=DNSConfig(), pod_log_root="/logs")
    assert config.port_mappings == (PortMapping(53, 53, "UDP", "127.0.0.1"), PortMapping(8080, 80))


# -- hooks' requests --------------------------------------------------------------------------------

V136, V123 = behaviour_of("1.36"), behaviour_of("1.23")
PORTS = {"name": "c", "ports": [{"name": "web", "containerPort": 8080}]}


@pytest.mark.rule("node-semantics 13/named-ports")
@pytest.mark.parametrize(("port", "number"), [(80, 80), ("81", 81), ("web", 8080)])
def test_ports_by_number_and_by_name(port, number):
    assert resolve_port(port, PORTS) == number


@pytest.mark.parametrize("port", ["none", 0, 70000])
def test_a_port_that_is_none_is_refused(port):
    with pytest.raises(UnknownPort):
        resolve_port(port, PORTS)


def headers_of(*given, behaviour=V136):
    action = {"port": "web", "httpHeaders": [{"name": n, "value": v} for n, v in given]}
    return http_request(action, PORTS, "10.0.0.5", behaviour)


@pytest.mark.rule("node-semantics 7/http-request")
def test_the_request_of_an_http_hook():
    url, headers = headers_of(("X-A", "1"))
    assert url == "http://10.0.0.5:8080/"
    assert headers == [
        ("User-Agent", "kube-lifecycle/1.36"), ("Accept", "*/*"), ("X-A", "1"), ("Accept-Encoding", "gzip")
    ]  # fmt: skip
    assert (
        http_request({"port": 1, "host": "h", "scheme": "HTTPS", "path": "x?y=1"}, PORTS, "", V136)[0]
        == "https://h:1/x?y=1"
    )
    assert http_request({"port": 1, "path": "/"}, PORTS, "fd00::5", V136)[0] == "http://[fd00::5]:1/"


@pytest.mark.rule("node-semantics 7/http-request")
def test_a_user_s_own_headers_replace_the_kubelet_s_and_an_empty_accept_removes_it():
    _, headers = headers_of(("user-agent", "me"), ("Accept", ""))
    assert headers == [("user-agent", "me"), ("Accept-Encoding", "gzip")]


@pytest.mark.rule("node-semantics 24/http-hooks")
def test_old_versions_ignored_scheme_and_headers():
    url, headers = http_request({"port": 1, "scheme": "HTTPS", "httpHeaders": [{"name": "A"}]}, PORTS, "10.0.0.5", V123)
    assert url == "http://10.0.0.5:1/" and all(name != "A" for name, _ in headers)


# -- admission --------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 18/8")
def test_a_pod_that_does_not_fit_is_rejected_in_kubernetes_s_words():
    pod, _ = with_resources(requests={"cpu": "64"})
    rejection = fits_node({"cpu": "2"})(pod, [])
    assert rejection.reason == "OutOfcpu"
    assert rejection.message == "Node didn't have enough resource: cpu, requested: 64000, used: 0, capacity: 2000"
    half, _ = with_resources(requests={"cpu": "1500m"})
    assert fits_node({"cpu": "2"})(half, []) is None
    assert fits_node({"cpu": "2"})(half, [half]).message.endswith("requested: 1500, used: 1500, capacity: 2000")
    assert fits_node({"pods": "1"})(POD, [POD]).reason == "OutOfpods"


def test_a_pod_for_another_kind_of_node_is_rejected():
    pod = {**POD, "spec": {**POD["spec"], "nodeSelector": {"disk": "ssd"}}}
    assert matches_node(lambda: {"metadata": {"labels": {"disk": "hdd"}}})(pod, []).reason == "NodeAffinity"
    assert matches_node(lambda: {"metadata": {"labels": {"disk": "ssd"}}})(pod, []) is None
    windows = {**POD, "spec": {**POD["spec"], "os": {"name": "windows"}}}
    assert matches_os(windows, []) == Rejection(
        "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
    )
    assert matches_os(POD, []) is None


@pytest.mark.parametrize("where", ["container", "pod", "annotation", "init container"])
@pytest.mark.parametrize("kind", ["RuntimeDefault", "Localhost", "Unconfined"])
def test_a_pod_that_demands_an_apparmor_profile_is_rejected_as_nothing_would_confine_it(where: str, kind: str) -> None:
    context = {"securityContext": {"appArmorProfile": {"type": kind, "localhostProfile": "x"}}}
    spec = {"containers": [{"name": "c"}]}
    annotations = {}
    if where == "pod":
        spec |= context
    elif where == "annotation":
        values = {"RuntimeDefault": "runtime/default", "Localhost": "localhost/x", "Unconfined": "unconfined"}
        annotations = {"container.apparmor.security.beta.kubernetes.io/c": values[kind]}
    elif where == "container":
        spec["containers"][0] |= context
    else:
        spec["initContainers"] = [{"name": "i", **context}]
    pod = {"metadata": {"name": "p", "annotations": annotations}, "spec": spec}
    rejection = enforces_app_armor(False)(pod, [])
    if kind == "Unconfined":
        assert rejection is None
        return
    assert rejection == Rejection("AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host")
    assert "AppArmor" in enforces_app_armor(True)(pod, []).message
    assert enforces_app_armor(False)({**pod, "status": {"phase": "Running"}}, []) is None, "a kubelet that came back"


def test_a_container_s_apparmor_profile_goes_before_the_pod_s() -> None:
    pod = {"metadata": {"name": "p"}, "spec": {
        "securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "c", "securityContext": {"appArmorProfile": {"type": "Unconfined"}}}],
    }}  # fmt: skip
    assert enforces_app_armor(False)(pod, []) is None
