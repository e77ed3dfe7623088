"""What a container's environment and security context are made of: kubelet_pods.go, envvars.go, security_context.go."""

import asyncio
import base64
from typing import Any

import pytest

from lastcall.kube.api.errors import status_failure
from lastcall.kube.client.api import ConnectionLost
from lastcall.kube.cri.api import (
    DEFAULT_MASKED_PATHS,
    DEFAULT_READONLY_PATHS,
    DNSConfig,
    Image,
    Mount,
    NamespaceOption,
    SecurityProfile,
)
from lastcall.kube.node.runtime.container_config import (
    container_annotations,
    generate_container_config,
    generate_pod_sandbox_config,
    linux_resources,
    namespace_options,
    security_context,
)
from lastcall.kube.node.runtime.environment import (
    APISources,
    ContainerConfigError,
    make_environment,
    pod_field_value,
    service_variables,
)


def pod(namespace: str = "default", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": namespace, "uid": "u"}, "spec": {"containers": [], **spec}}


class Objects:
    """ConfigMaps and Secrets by name; `services` are those of the cluster."""

    def __init__(self, config_maps: Any = None, secrets: Any = None, services: Any = ()) -> None:
        self.config_maps, self.secrets, self._services = config_maps or {}, secrets or {}, services

    async def config_map(self, namespace: str, name: str) -> Any:
        return self.config_maps.get(name)

    async def secret(self, namespace: str, name: str) -> Any:
        return self.secrets.get(name)

    def services(self) -> Any:
        return self._services


def environment(container: dict[str, Any], sources: Any = None, the_pod: Any = None) -> dict[str, str]:
    the_pod = the_pod or pod(containers=[{"name": "c", **container}])
    made = make_environment(
        the_pod,
        {"name": "c", **container},
        sources=sources or Objects(),
        pod_ips=("10.0.0.5", "fd00::5"),
        host_ip="172.18.0.2",
        node_allocatable={"cpu": "2"},
    )
    return dict(asyncio.run(made))


# -- variables ---------------------------------------------------------------------------------------------------------


def encoded(**texts: str) -> dict[str, str]:
    return {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}


SOURCES = Objects({"m": {"data": {"k": "v"}}, "empty": {}}, {"s": {"data": encoded(k="secret", l="more")}})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"configMapRef": {"name": "m"}}, {"k": "v"}),
        ({"secretRef": {"name": "s"}, "prefix": "P_"}, {"P_k": "secret", "P_l": "more"}),
        ({"configMapRef": {"name": "empty"}}, {}),
        ({"configMapRef": {"name": "no", "optional": True}}, {}),
        ({"secretRef": {"name": "no", "optional": True}}, {}),
        ({}, {}),
        ({"configMapRef": {"name": "no"}}, 'configmap "no" not found'),
        ({"secretRef": {"name": "no"}}, 'secret "no" not found'),
    ],
)
def test_all_keys_of_an_object_become_variables(source: dict[str, Any], expected: Any) -> None:
    if isinstance(expected, dict):
        assert environment({"envFrom": [source]}, SOURCES) == expected
    else:
        with pytest.raises(ContainerConfigError, match=f"^{expected}$"):
            environment({"envFrom": [source]}, SOURCES)


@pytest.mark.parametrize(
    ("value_from", "expected"),
    [
        ({"configMapKeyRef": {"name": "m", "key": "k"}}, "v"),
        ({"secretKeyRef": {"name": "s", "key": "l"}}, "more"),
        ({"configMapKeyRef": {"name": "m", "key": "no", "optional": True}}, None),
        ({"configMapKeyRef": {"name": "no", "key": "k", "optional": True}}, None),
        ({"secretKeyRef": {"name": "s", "key": "no", "optional": True}}, None),
        ({"resourceFieldRef": {"resource": "limits.cpu"}}, "2"),
        ({"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}}, "64"),
        ({"resourceFieldRef": {"resource": "requests.memory", "containerName": "other"}}, "1024"),
        ({"fieldRef": {"fieldPath": "status.podIPs"}}, "10.0.0.5,fd00::5"),
        ({"fieldRef": {"fieldPath": "status.podIP"}}, "10.0.0.5"),
        ({"fieldRef": {"fieldPath": "status.hostIPs"}}, "172.18.0.2"),
        ({}, ""),
        ({"somethingElse": {}}, None),
    ],
)
def test_a_value_comes_from_where_it_says_and_an_optional_one_may_be_missing(
    value_from: dict[str, Any], expected: str | None
) -> None:
    own = {"resources": {"requests": {"memory": "64Mi"}}, "env": [{"name": "A", "valueFrom": value_from}]}
    the_pod = pod(
        containers=[{"name": "c", **own}, {"name": "other", "resources": {"requests": {"memory": "1Ki"}}}],
    )
    assert environment(own, SOURCES, the_pod).get("A") == expected


@pytest.mark.parametrize(
    ("value_from", "why"),
    [
        ({"secretKeyRef": {"name": "s", "key": "no"}}, "couldn't find key no in Secret default/s"),
        ({"configMapKeyRef": {"name": "m", "key": "no"}}, "couldn't find key no in ConfigMap default/m"),
        ({"resourceFieldRef": {"resource": "x.cpu"}}, "unsupported container resource : x.cpu"),
        ({"resourceFieldRef": {"resource": "limits.cpu", "containerName": "no"}}, "container no not found"),
    ],
)
def test_a_value_that_is_missing_is_named(value_from: dict[str, Any], why: str) -> None:
    with pytest.raises(ContainerConfigError, match=f"^{why}$"):
        environment({"env": [{"name": "A", "valueFrom": value_from}]}, SOURCES)


def test_a_pod_without_an_address_has_none_yet() -> None:
    assert pod_field_value("status.podIP", pod(), (), "h") == ""
    assert pod_field_value("status.podIPs", pod(), (), "h") == ""


@pytest.mark.parametrize("kind", ["config_map", "secret"])
@pytest.mark.parametrize(
    ("error", "why"),
    [
        (status_failure(404, "NotFound", "gone"), None),
        (status_failure(403, "Forbidden", "no"), "failed to get (configmap|secret) n/x: .*no"),
        (ConnectionLost("away"), "failed to get (configmap|secret) n/x: away"),
    ],
)
async def test_an_object_that_is_not_there_is_none_and_all_else_an_error(
    kind: str, error: Exception, why: str | None
) -> None:
    class Client:
        async def get(self, resource: Any, name: str, namespace: str) -> Any:
            assert (name, namespace) == ("x", "n")
            raise error

    sources = APISources(Client(), lambda: [])  # type: ignore[arg-type]
    if why is None:
        assert await getattr(sources, kind)("n", "x") is None
        return
    with pytest.raises(ContainerConfigError, match=why):
        await getattr(sources, kind)("n", "x")


def service(name: str, namespace: str = "n", ip: str = "10.96.0.9", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterIP": ip, **spec}}


def test_variables_of_a_service_name_each_port_as_docker_links_did() -> None:
    """pkg/kubelet/envvars/envvars_test.go:TestFromServices."""
    ports = [{"port": 80, "protocol": "TCP"}, {"name": "p-q", "port": 53, "protocol": "UDP"}, {"name": "x", "port": 9}]
    assert service_variables(pod("n"), [service("a-b", ip="fd00::9", ports=ports)]) == {
        "A_B_SERVICE_HOST": "fd00::9",
        "A_B_SERVICE_PORT": "80",
        "A_B_SERVICE_PORT_P_Q": "53",
        "A_B_SERVICE_PORT_X": "9",
        "A_B_PORT": "tcp://[fd00::9]:80",
        "A_B_PORT_80_TCP": "tcp://[fd00::9]:80",
        "A_B_PORT_80_TCP_PROTO": "tcp",
        "A_B_PORT_80_TCP_PORT": "80",
        "A_B_PORT_80_TCP_ADDR": "fd00::9",
        "A_B_PORT_53_UDP": "udp://[fd00::9]:53",
        "A_B_PORT_53_UDP_PROTO": "udp",
        "A_B_PORT_53_UDP_PORT": "53",
        "A_B_PORT_53_UDP_ADDR": "fd00::9",
        "A_B_PORT_9_TCP": "tcp://[fd00::9]:9",
        "A_B_PORT_9_TCP_PROTO": "tcp",
        "A_B_PORT_9_TCP_PORT": "9",
        "A_B_PORT_9_TCP_ADDR": "fd00::9",
    }


@pytest.mark.parametrize(
    ("services", "the_pod", "hosts"),
    [
        ([service("a"), service("b", "other")], pod("n"), {"A": "10.96.0.9"}),
        ([service("a", ip=""), service("b", ip="None")], pod("n"), {}),
        ([service("kubernetes", "default", "10.96.0.1")], pod("n"), {"KUBERNETES": "10.96.0.1"}),
        ([service("kubernetes", "other", "10.96.0.1")], pod("n"), {}),
        (
            [service("kubernetes", "default", "10.96.0.1"), service("kubernetes", "n", "10.96.0.2")],
            pod("n"),
            {"KUBERNETES": "10.96.0.2"},
        ),
        (
            [service("kubernetes", "n", "10.96.0.2"), service("kubernetes", "default", "10.96.0.1")],
            pod("n"),
            {"KUBERNETES": "10.96.0.2"},
        ),
        ([service("a")], pod("n", enableServiceLinks=False), {}),
        ([service("a")], pod("n", enableServiceLinks=True), {"A": "10.96.0.9"}),
        ([service("a", "default"), service("b", "n")], pod("n"), {"B": "10.96.0.9"}),
    ],
)
def test_services_of_the_own_namespace_and_the_api_s_are_named(
    services: Any, the_pod: dict[str, Any], hosts: dict[str, str]
) -> None:
    found = service_variables(the_pod, services)
    assert {key.removesuffix("_SERVICE_HOST"): value for key, value in found.items()} == hosts


def test_own_variables_go_before_those_of_services_and_may_refer_to_them() -> None:
    env = [{"name": "A", "value": "$(B_SERVICE_HOST)"}, {"name": "B_SERVICE_HOST", "value": "own"}]
    sources = Objects(services=[service("b", "default")])
    assert environment({"env": env}, sources) == {"A": "10.96.0.9", "B_SERVICE_HOST": "own"}


# -- security ----------------------------------------------------------------------------------------------------------


def context(own: Any = None, of_pod: Any = None, **more: Any) -> Any:
    spec = {"securityContext": of_pod} if of_pod is not None else {}
    container = {"name": "c", "securityContext": own} if own is not None else {"name": "c"}
    return security_context(pod(**spec), container, **more)  # type: ignore[arg-type]


def test_a_container_that_asks_for_nothing() -> None:
    found = context()
    assert (found.privileged, found.run_as_user, found.run_as_group, found.supplemental_groups) == (
        False,
        None,
        None,
        (),
    )
    assert (found.readonly_rootfs, found.no_new_privs, found.supplemental_groups_policy) == (False, False, "Merge")
    assert (found.masked_paths, found.readonly_paths) == (DEFAULT_MASKED_PATHS, DEFAULT_READONLY_PATHS)
    assert found.seccomp == SecurityProfile("RuntimeDefault")
    assert context(seccomp_default=False).seccomp == SecurityProfile()


@pytest.mark.parametrize(
    ("own", "of_pod", "field", "expected"),
    [
        ({"runAsUser": 0}, {"runAsUser": 5}, "run_as_user", 0),
        ({}, {"runAsUser": 5}, "run_as_user", 5),
        ({"runAsGroup": 0}, {"runAsGroup": 5}, "run_as_group", 0),
        ({}, {"runAsGroup": 5}, "run_as_group", 5),
        ({}, {"supplementalGroups": [3, 4, 3], "fsGroup": 4}, "supplemental_groups", (3, 4)),
        ({}, {"fsGroup": 0}, "supplemental_groups", (0,)),
        ({}, {"supplementalGroupsPolicy": "Strict"}, "supplemental_groups_policy", "Strict"),
        ({}, {"supplementalGroupsPolicy": "Merge"}, "supplemental_groups_policy", "Merge"),
        ({"readOnlyRootFilesystem": True}, None, "readonly_rootfs", True),
        ({"allowPrivilegeEscalation": True}, None, "no_new_privs", False),
        ({"allowPrivilegeEscalation": False}, None, "no_new_privs", True),
        ({"procMount": "Unmasked"}, None, "masked_paths", ()),
        ({"procMount": "Unmasked"}, None, "readonly_paths", ()),
        ({"procMount": "Default"}, None, "masked_paths", DEFAULT_MASKED_PATHS),
    ],
)
def test_the_container_s_word_goes_before_the_pod_s(own: Any, of_pod: Any, field: str, expected: Any) -> None:
    """pkg/securitycontext/util.go:DetermineEffectiveSecurityContext."""
    assert getattr(context(own, of_pod), field) == expected


@pytest.mark.parametrize(
    ("own", "of_pod", "why"),
    [
        ({"runAsNonRoot": False}, {"runAsNonRoot": True, "runAsUser": 0}, None),
        ({}, {"runAsNonRoot": True, "runAsUser": 0}, "container's runAsUser breaks non-root policy"),
        ({"runAsUser": 1}, {"runAsNonRoot": True, "runAsUser": 0}, None),
        ({}, {"runAsNonRoot": True}, "image will run as root"),
    ],
)
def test_run_as_non_root_is_the_container_s_or_the_pod_s(own: Any, of_pod: Any, why: str | None) -> None:
    def make() -> None:
        container = {"name": "c", "image": "i", "securityContext": own}
        generate_container_config(pod(securityContext=of_pod), container, Image("i"), attempt=0, envs=(), mounts=())

    if why is None:
        make()
        return
    with pytest.raises(ContainerConfigError, match=f"{why}.*container: c"):
        make()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, NamespaceOption(network="POD", pid="CONTAINER", ipc="POD")),
        ({"hostNetwork": True}, NamespaceOption(network="NODE", pid="CONTAINER", ipc="POD")),
        ({"hostPID": True, "shareProcessNamespace": True}, NamespaceOption(network="POD", pid="NODE", ipc="POD")),
        ({"shareProcessNamespace": True}, NamespaceOption(network="POD", pid="POD", ipc="POD")),
        ({"hostIPC": True}, NamespaceOption(network="POD", pid="CONTAINER", ipc="NODE")),
    ],
)
def test_namespaces_are_the_node_s_the_pod_s_or_the_container_s(spec: Any, expected: NamespaceOption) -> None:
    assert namespace_options(pod(**spec)) == expected


def test_a_debug_container_joins_the_processes_of_its_target() -> None:
    options = context(target_id="t").namespace_options
    assert (options.pid, options.target_id, options.network) == ("TARGET", "t", "POD")


# -- configs -----------------------------------------------------------------------------------------------------------


def test_a_config_has_what_the_container_says() -> None:
    container = {
        "name": "c",
        "image": "i:1",
        "workingDir": "/w",
        "stdin": True,
        "stdinOnce": True,
        "tty": True,
        "lifecycle": {"stopSignal": "SIGUSR1"},
    }
    mounts = (Mount("/a", "/b"),)

    def made(**more: Any) -> Any:
        return generate_container_config(
            pod(), container, Image("sha"), attempt=3, envs=(("A", "1"),), mounts=mounts, **more
        )

    config = made()
    assert (config.image, config.working_dir, config.stdin, config.stdin_once, config.tty) == (
        "i:1",
        "/w",
        True,
        True,
        True,
    )
    assert (config.envs, config.mounts, config.log_path, config.stop_signal) == ((("A", "1"),), mounts, "c/3.log", "")
    assert made(stop_signal_is_honoured=True).stop_signal == "SIGUSR1"
    plain = generate_container_config(pod(), {"name": "c"}, Image("sha"), attempt=0, envs=(), mounts=())
    assert (plain.image, plain.working_dir, plain.stdin, plain.stdin_once, plain.tty) == ("", "", False, False, False)


def test_annotations_tell_a_later_kubelet_what_it_must_know() -> None:
    short = container_annotations(pod(), {"name": "c"}, 0)
    assert short["io.kubernetes.container.terminationMessagePath"] == "/dev/termination-log"
    assert short["io.kubernetes.container.terminationMessagePolicy"] == "File"
    assert "io.kubernetes.pod.deletionGracePeriod" not in short
    assert "io.kubernetes.container.preStopHandler" not in short
    ending = pod(terminationGracePeriodSeconds=0)
    ending["metadata"]["deletionGracePeriodSeconds"] = 0
    own = {"name": "c", "terminationMessagePath": "/m", "terminationMessagePolicy": "FallbackToLogsOnError"}
    told = container_annotations(ending, own, 4)  # type: ignore[arg-type]
    assert told["io.kubernetes.container.terminationMessagePath"] == "/m"
    assert told["io.kubernetes.container.terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert told["io.kubernetes.pod.deletionGracePeriod"] == told["io.kubernetes.pod.terminationGracePeriod"] == "0"
    assert told["io.kubernetes.container.restartCount"] == "4"


def test_a_sandbox_has_the_pod_s_sysctls_names_and_limit_of_processes() -> None:
    the_pod = pod(securityContext={"sysctls": [{"name": "net.a", "value": "1"}]})
    the_pod["metadata"] |= {"labels": {"app": "x"}, "annotations": {"a": "b"}}
    dns = DNSConfig(("1.1.1.1",))
    config = generate_pod_sandbox_config(
        the_pod, 2, hostname="h", dns_config=dns, pod_log_root="/logs", pod_pids_limit=9
    )
    assert (config.sysctls, config.hostname, config.dns_config) == ({"net.a": "1"}, "h", dns)
    assert (config.metadata.name, config.metadata.uid, config.metadata.namespace) == ("p", "u", "default")
    assert config.labels == {
        "app": "x",
        "io.kubernetes.pod.name": "p",
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": "u",
    }
    assert (config.annotations, config.resources.unified) == ({"a": "b"}, {"pids.max": "9"})
    assert config.cgroup_parent == "/kubepods/besteffort/podu"


@pytest.mark.parametrize("of_pod", [{"runAsGroup": 7}, {"runAsUser": 5}, {"runAsUser": 5, "runAsGroup": 7}, {}])
def test_a_sandbox_gets_the_user_and_the_group_of_the_pod_each_by_itself(of_pod: Any) -> None:
    """A runtime must refuse a group without a user, as containerd does: the Pod does not start in Kubernetes either."""
    given = pod(securityContext=of_pod)
    config = generate_pod_sandbox_config(given, 0, hostname="h", dns_config=DNSConfig(), pod_log_root="/logs")
    assert (config.run_as_user, config.run_as_group) == (of_pod.get("runAsUser"), of_pod.get("runAsGroup"))


@pytest.mark.parametrize(
    ("image", "context", "user", "name"),
    [
        ("1000:9", {"runAsGroup": 7}, 1000, ""),
        ("app:web", {"runAsGroup": 7}, None, "app"),
        ("", {"runAsGroup": 7}, 0, ""),
        ("app", {"runAsGroup": 7, "runAsUser": 5}, 5, ""),
        ("app", {"runAsUser": 5}, 5, ""),
        ("app", {}, None, ""),
    ],
)
def test_a_group_without_a_user_is_given_to_the_runtime_with_the_user_of_the_image(
    image: str, context: Any, user: int | None, name: str
) -> None:
    """kuberuntime/security_context.go:determineEffectiveSecurityContext, getImageUser."""
    for spec, container in (({"securityContext": context}, {}), ({}, {"securityContext": context})):
        found = security_context(pod(**spec), {"name": "c", **container}, image_user=image)  # type: ignore[arg-type]
        assert (found.run_as_user, found.run_as_username) == (user, name)


@pytest.mark.parametrize("kind", ["limits", "requests"])
def test_an_amount_that_is_none_is_named_with_its_container(kind: str) -> None:
    container = {"name": "c", "resources": {kind: {"cpu": "much"}}}
    with pytest.raises(ContainerConfigError, match=f'^{kind} of container "c": '):
        linux_resources(pod(containers=[container]), container)


def test_a_request_that_is_missing_is_the_limit_and_a_whole_group_ends_without_memory() -> None:
    container = {"name": "c", "resources": {"limits": {"cpu": "2", "memory": "5Mi"}, "requests": {"cpu": "1"}}}
    found = linux_resources(pod(containers=[container]), container, 10 << 20)
    assert (found.cpu_shares, found.cpu_quota, found.memory_limit_in_bytes) == (1024, 200_000, 5 << 20)
    assert (found.oom_score_adj, found.unified) == (500, {"memory.oom.group": "1"})
