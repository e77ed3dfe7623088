"""CRI's messages hold what the internal CRI says, and say it again."""

import dataclasses

import pytest
from cri_server import (
    auth_of,
    container_config_of,
    container_item,
    container_status_message,
    sandbox_config_of,
    sandbox_item,
    sandbox_status_message,
)

from lastcall.kube.cri import api
from lastcall.kube.cri.v1.messages import new
from lastcall.kube.cri.v1.translate.container_config import container_config_message
from lastcall.kube.cri.v1.translate.container_status import container_item_of, container_stats_of, container_status_of
from lastcall.kube.cri.v1.translate.images import auth_message, image_of
from lastcall.kube.cri.v1.translate.runtime import runtime_status_of
from lastcall.kube.cri.v1.translate.sandboxes import sandbox_config_message, sandbox_item_of, sandbox_status_of
from lastcall.kube.cri.v1.translate.signals import signal_name_of, signal_number

USERS = api.UserNamespace("POD", (api.IDMapping(100000, 0, 65536),), (api.IDMapping(100000, 0, 65536),))
NAMESPACES = api.NamespaceOption("NODE", "TARGET", "POD", "c" * 64, USERS)
RESOURCES = api.LinuxContainerResources(100000, 50000, 512, 1 << 30, -997, {"pids.max": "100"})
SANDBOX = api.PodSandboxConfig(
    api.PodSandboxMetadata("web", "u-1", "default", 3),
    hostname="web",
    log_directory="/var/log/pods/web",
    dns_config=api.DNSConfig(("10.0.0.10",), ("svc.local",), ("ndots:5",)),
    port_mappings=(api.PortMapping(8080, 80, "UDP", "127.0.0.1"),),
    namespace_options=NAMESPACES,
    sysctls={"net.core.somaxconn": "1024"},
    cgroup_parent="/kubepods/podu-1",
    resources=RESOURCES,
    labels={"app": "web"},
    annotations={"note": "ä"},
    privileged=True,
)
CONTAINER = api.ContainerConfig(
    api.ContainerMetadata("app", 2),
    "busybox:1.36",
    command=("sh", "-c"),
    args=("true",),
    working_dir="/tmp",
    envs=(("A", "b"), ("UMLAUT", "ä")),
    mounts=(
        api.Mount("/data", "/host", readonly=True),
        api.Mount("/image", "", image="data:1", image_sub_path="x"),
    ),
    log_path="app/2.log",
    stdin=True,
    stdin_once=True,
    tty=True,
    stop_signal="SIGRTMIN+3",
    security_context=api.LinuxContainerSecurityContext(
        privileged=True,
        capabilities=api.Capability(("NET_ADMIN",), ("ALL",)),
        run_as_user=0,
        run_as_group=1000,
        run_as_username="app",
        supplemental_groups=(1, 2),
        supplemental_groups_policy="Strict",
        readonly_rootfs=True,
        no_new_privs=True,
        masked_paths=("/proc/kcore",),
        readonly_paths=("/proc/sys",),
        namespace_options=NAMESPACES,
        seccomp=api.SecurityProfile("Localhost", "/profile.json"),
    ),
    resources=RESOURCES,
    labels={"app": "web"},
    annotations={"note": "x"},
)


def over_the_wire(message):
    return type(message).FromString(message.SerializeToString())


def test_every_field_of_a_sandboxs_config_comes_back():
    assert sandbox_config_of(over_the_wire(sandbox_config_message(SANDBOX))) == SANDBOX


def test_every_field_of_a_containers_config_comes_back():
    assert container_config_of(over_the_wire(container_config_message(CONTAINER))) == CONTAINER
    for each in dataclasses.fields(CONTAINER):  # so that a new field cannot be forgotten here
        assert getattr(CONTAINER, each.name) != each.default, each.name


def test_every_field_of_a_containers_status_comes_back_but_the_runtimes_own():
    status = api.ContainerStatus(
        "c" * 64,
        api.ContainerMetadata("app", 1),
        "s" * 64,
        api.ContainerState.CONTAINER_EXITED,
        "busybox",
        "sha256:1",
        1,
        2,
        3,
        137,
        "OOMKilled",
        "why",
        "/var/log/x",
        (api.Mount("/a", "/b"),),
        {"l": "1"},
        {"a": "1"},
        stop_signal="SIGTERM",
        resources=RESOURCES,
    )
    message = over_the_wire(container_status_message(status))
    assert container_status_of(message, "s" * 64) == status


def test_a_sandboxs_status_comes_back_with_all_its_addresses():
    status = api.PodSandboxStatus(
        "s" * 64,
        SANDBOX.metadata,
        api.PodSandboxState.SANDBOX_NOTREADY,
        5,
        ("10.0.0.2", "fd00::2"),
        NAMESPACES,
        {"l": "1"},
        {"a": "1"},
    )
    assert sandbox_status_of(over_the_wire(sandbox_status_message(status))) == status


@pytest.mark.parametrize(("uid", "name", "user"), [(1000, "", "1000"), (None, "nobody", "nobody"), (None, "", "")])
def test_an_image_tells_its_user_as_number_or_name(uid, name, user):
    number = None if uid is None else new("Int64Value", value=uid)
    message = over_the_wire(
        new("Image", id="sha256:1", repo_tags=["a:1"], repo_digests=["a@sha256:2"], size=7, uid=number, username=name)
    )
    assert image_of(message) == api.Image("sha256:1", ("a:1",), ("a@sha256:2",), 7, user)


@pytest.mark.parametrize(("number", "name"), [(0, ""), (23, "SIGTERM"), (39, "SIGRTMIN+4"), (64, "SIGRTMAX-1")])
def test_signals_have_cris_numbers(number, name):
    assert signal_name_of(number) == name
    assert signal_number(name) == number


def test_numbers_of_a_later_cri_are_refused():
    with pytest.raises(api.RuntimeServiceError, match="stop signal 99"):
        signal_name_of(99)


def test_what_lists_show_comes_back():
    sandbox = api.PodSandboxStatus("s" * 64, SANDBOX.metadata, api.PodSandboxState.SANDBOX_READY, 5, labels={"l": "1"})
    assert sandbox_item_of(over_the_wire(sandbox_item(sandbox))) == sandbox
    container = api.ContainerStatus(
        "c" * 64, CONTAINER.metadata, "s" * 64, api.ContainerState.CONTAINER_RUNNING, "a:1", "sha256:1", 7
    )
    assert container_item_of(over_the_wire(container_item(container))) == container


def test_what_a_container_uses_is_read():
    cpu = new("CpuUsage", usage_core_nano_seconds=new("UInt64Value", value=5))
    sizes = {"usage_bytes": new("UInt64Value", value=6), "working_set_bytes": new("UInt64Value", value=7)}
    message = over_the_wire(new("ContainerStats", cpu=cpu, memory=new("MemoryUsage", **sizes)))
    assert container_stats_of(message) == api.ContainerStats(5, 6, 7)
    assert container_stats_of(new("ContainerStats")) is None


def test_conditions_and_credentials_come_back():
    status = api.RuntimeStatus((api.RuntimeCondition("NetworkReady", False, "Why", "so"),))
    condition = new("RuntimeCondition", type="NetworkReady", status=False, reason="Why", message="so")
    assert runtime_status_of(over_the_wire(new("RuntimeStatus", conditions=[condition]))) == status
    auth = api.AuthConfig("user", "password", "identity", "registry")
    assert auth_of(over_the_wire(auth_message(auth))) == auth
