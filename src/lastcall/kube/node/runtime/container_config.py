"""From a Pod's spec to CRI's configs (kubelet kuberuntime_container.go:generateContainerConfig,
kuberuntime_sandbox.go).

All of it is pure; the environment, which needs other objects, is made in `environment`.
"""

# check: pure

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import orjson

from lastcall.kube.api.meta import annotations_of, labels_of, name_of, namespace_of, uid_of
from lastcall.kube.api.pods.spec import pod_ref_text
from lastcall.kube.api.quantity import Quantity, QuantityError, parse_quantity
from lastcall.kube.api.text.go_notation import go_quote
from lastcall.kube.api.text.numbers import int_of
from lastcall.kube.cri.api import (
    DEFAULT_MASKED_PATHS,
    DEFAULT_READONLY_PATHS,
    Capability,
    ContainerConfig,
    ContainerMetadata,
    DNSConfig,
    Image,
    LinuxContainerResources,
    LinuxContainerSecurityContext,
    Mount,
    NamespaceMode,
    NamespaceOption,
    PodSandboxConfig,
    PodSandboxMetadata,
    PortMapping,
    SecurityProfile,
    UserNamespace,
)
from lastcall.kube.cri.cpu_shares import cpu_shares
from lastcall.kube.node.pods import runtime_pod
from lastcall.kube.node.pods.cgroups import CPU_PERIOD, cgroup_parent, cpu_quota, resource_config_for_pod
from lastcall.kube.node.pods.spec import (
    all_containers_of,
    containers_of,
    get_pod_qos,
    init_containers_of,
    is_restartable_init_container,
)
from lastcall.kube.node.runtime.decide import hash_container
from lastcall.kube.node.runtime.environment import ContainerConfigError
from lastcall.kube.node.runtime.expansion import expand

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container
    from lastcall.kube.api.types.pod import Pod

DEFAULT_TERMINATION_MESSAGE_PATH = "/dev/termination-log"
OOM_SCORE_GUARANTEED = -997
OOM_SCORE_BEST_EFFORT = 1000
SECCOMP_PROFILE_ROOT = "/var/lib/kubelet/seccomp"
"""Where a node's Localhost profiles are (kubelet --root-dir)."""
SYSTEM_CRITICAL_PRIORITY = 2_000_000_000


def pod_log_directory(root: str, pod: Pod) -> str:
    """Return `<root>/<namespace>_<name>_<uid>` (kuberuntime/helpers.go:BuildPodLogsDirectory)."""
    return f"{root}/{namespace_of(pod)}_{name_of(pod)}_{uid_of(pod)}"


def namespace_options(pod: Pod, users: UserNamespace | None = None) -> NamespaceOption:
    """Return which namespaces are the node's, the Pod's or each container's own (util.go:namespacesForPod)."""
    spec = pod["spec"]
    pid: NamespaceMode = "CONTAINER"
    if spec.get("hostPID"):
        pid = "NODE"
    elif spec.get("shareProcessNamespace"):
        pid = "POD"
    return NamespaceOption(
        network="NODE" if spec.get("hostNetwork") else "POD",
        pid=pid,
        ipc="NODE" if spec.get("hostIPC") else "POD",
        userns_options=users or UserNamespace(),
    )


def pod_labels(pod: Pod) -> dict[str, str]:
    return {
        runtime_pod.POD_NAME_LABEL: name_of(pod),
        runtime_pod.POD_NAMESPACE_LABEL: namespace_of(pod),
        runtime_pod.POD_UID_LABEL: uid_of(pod),
    }


def host_ports(pod: Pod) -> tuple[PortMapping, ...]:
    """Return the node's ports that the Pod wants, sidecars' too (kubecontainer/helpers.go:MakePortMappings)."""
    sidecars = [each for each in init_containers_of(pod) if is_restartable_init_container(each)]
    return tuple(
        PortMapping(port["hostPort"], port["containerPort"], port.get("protocol") or "TCP", port.get("hostIP") or "")
        for container in (*sidecars, *containers_of(pod))
        for port in container.get("ports") or ()
        if port.get("hostPort")
    )


def generate_pod_sandbox_config(
    pod: Pod,
    attempt: int,
    *,
    hostname: str,
    dns_config: DNSConfig,
    pod_log_root: str,
    pod_pids_limit: int = 0,
    users: UserNamespace | None = None,
) -> PodSandboxConfig:
    """Generate the configuration of a sandbox (kuberuntime_sandbox.go:generatePodSandboxConfig)."""
    context = pod["spec"].get("securityContext") or {}
    return PodSandboxConfig(
        metadata=PodSandboxMetadata(name_of(pod), uid_of(pod), namespace_of(pod), attempt),
        hostname=hostname,
        log_directory=pod_log_directory(pod_log_root, pod),
        dns_config=dns_config,
        port_mappings=host_ports(pod),
        namespace_options=namespace_options(pod, users),
        sysctls={sysctl["name"]: sysctl["value"] for sysctl in context.get("sysctls") or ()},
        cgroup_parent=cgroup_parent(pod),
        resources=resource_config_for_pod(pod, pod_pids_limit),
        labels={**labels_of(pod), **pod_labels(pod)},
        annotations=dict(annotations_of(pod)),
        privileged=_has_privileged_container(pod),
        # kuberuntime_sandbox.go:generatePodSandboxLinuxConfig
        run_as_user=context.get("runAsUser"),
        run_as_group=context.get("runAsGroup"),
    )


def _has_privileged_container(pod: Pod) -> bool:
    """Return whether a container of the Pod is privileged (kubecontainer/helpers.go:HasPrivilegedContainer)."""
    return any((each.get("securityContext") or {}).get("privileged") for each in all_containers_of(pod))


def generate_container_config(
    pod: Pod,
    container: Container,
    image: Image,
    *,
    attempt: int,
    envs: tuple[tuple[str, str], ...],
    mounts: tuple[Mount, ...],
    stop_signal_is_honoured: bool = False,
    memory_capacity: int = 0,
    target_id: str = "",
    seccomp_default: bool = True,
) -> ContainerConfig:
    """Generate a container's config (kuberuntime_container.go:generateContainerConfig). Raises ContainerConfigError.

    `memory_capacity` is the node's, in bytes, for the OOM score of a Burstable Pod. `target_id` is the container whose
    pid namespace an ephemeral container joins. `seccomp_default` is the kubelet's seccompDefault.
    """
    name = container["name"]
    verify_run_as_non_root(pod, container, image)
    environment = dict(envs)
    return ContainerConfig(
        metadata=ContainerMetadata(name, attempt),
        image=container.get("image", ""),
        command=tuple(expand(word, environment) for word in container.get("command") or ()),
        args=tuple(expand(word, environment) for word in container.get("args") or ()),
        working_dir=container.get("workingDir") or "",
        envs=envs,
        mounts=mounts,
        log_path=f"{name}/{attempt}.log",
        stdin=bool(container.get("stdin")),
        stdin_once=bool(container.get("stdinOnce")),
        tty=bool(container.get("tty")),
        stop_signal=(container.get("lifecycle") or {}).get("stopSignal", "") if stop_signal_is_honoured else "",
        security_context=security_context(
            pod, container, target_id, image_user=image.user, seccomp_default=seccomp_default
        ),
        resources=linux_resources(pod, container, memory_capacity),
        labels={**pod_labels(pod), runtime_pod.CONTAINER_NAME_LABEL: name},
        annotations=container_annotations(pod, container, attempt),
    )


def container_annotations(pod: Pod, container: Container, attempt: int) -> dict[str, str]:
    """Return what a later kubelet must know without the Pod (kuberuntime/labels.go:newContainerAnnotations)."""
    annotations = {
        runtime_pod.CONTAINER_HASH_ANNOTATION: hash_container(container),
        runtime_pod.RESTART_COUNT_ANNOTATION: str(attempt),
        runtime_pod.TERMINATION_MESSAGE_PATH_ANNOTATION: container.get("terminationMessagePath")
        or DEFAULT_TERMINATION_MESSAGE_PATH,
        runtime_pod.TERMINATION_MESSAGE_POLICY_ANNOTATION: container.get("terminationMessagePolicy") or "File",
    }
    for key, period in (
        (
            runtime_pod.POD_DELETION_GRACE_PERIOD_ANNOTATION,
            pod["metadata"].get("deletionGracePeriodSeconds"),
        ),
        (
            runtime_pod.POD_TERMINATION_GRACE_PERIOD_ANNOTATION,
            pod["spec"].get("terminationGracePeriodSeconds"),
        ),
    ):
        if period is not None:
            annotations[key] = str(period)
    pre_stop = (container.get("lifecycle") or {}).get("preStop")
    if pre_stop:
        annotations[runtime_pod.PRE_STOP_HANDLER_ANNOTATION] = orjson.dumps(pre_stop).decode()
    if container.get("ports"):
        annotations[runtime_pod.CONTAINER_PORTS_ANNOTATION] = orjson.dumps(container["ports"]).decode()
    return annotations


def _effective(pod: Pod, container: Container, field: Literal["runAsUser", "runAsGroup", "runAsNonRoot"]) -> int | None:
    """A field of the container's security context, else of the Pod's."""
    value = (container.get("securityContext") or {}).get(field)
    return value if value is not None else (pod["spec"].get("securityContext") or {}).get(field)


def security_context(
    pod: Pod, container: Container, target_id: str = "", *, image_user: str = "", seccomp_default: bool = True
) -> LinuxContainerSecurityContext:
    """Return the security context (kuberuntime/security_context.go:determineEffectiveSecurityContext).

    A runtime refuses a group without a user. The user of the image is named only beside such a group: alone the runtime
    takes it from the image, with the group that the image names.
    """
    own = container.get("securityContext") or {}
    of_pod = pod["spec"].get("securityContext") or {}
    privileged = bool(own.get("privileged"))
    capabilities = own.get("capabilities") or {}
    unmasked = privileged or own.get("procMount") == "Unmasked"
    user, group = _effective(pod, container, "runAsUser"), _effective(pod, container, "runAsGroup")
    name = ""
    if user is None and group is not None:
        image_id, name = _user_of_image(image_user)
        user = image_id
    groups = [*(of_pod.get("supplementalGroups") or ())]
    if of_pod.get("fsGroup") is not None:
        groups.append(of_pod["fsGroup"])
    options = namespace_options(pod)
    if target_id:
        options = NamespaceOption(options.network, "TARGET", options.ipc, target_id)
    return LinuxContainerSecurityContext(
        privileged=privileged,
        capabilities=Capability(tuple(capabilities.get("add") or ()), tuple(capabilities.get("drop") or ())),
        run_as_user=user if isinstance(user, int) else None,
        run_as_username=name,
        run_as_group=group if isinstance(group, int) else None,
        supplemental_groups=tuple(dict.fromkeys(groups)),
        supplemental_groups_policy="Strict" if of_pod.get("supplementalGroupsPolicy") == "Strict" else "Merge",
        readonly_rootfs=bool(own.get("readOnlyRootFilesystem")),
        no_new_privs=own.get("allowPrivilegeEscalation") is False,
        masked_paths=() if unmasked else DEFAULT_MASKED_PATHS,
        readonly_paths=() if unmasked else DEFAULT_READONLY_PATHS,
        namespace_options=options,
        seccomp=seccomp_profile(pod, container, seccomp_default=seccomp_default),
    )


def _user_of_image(user: str) -> tuple[int | None, str]:
    """Return the id, or else the name, of an image's USER (kuberuntime_image.go:getImageUser); root for none."""
    name = user.partition(":")[0]
    return (int(name or 0), "") if name.isdecimal() or not name else (None, name)


def seccomp_profile(pod: Pod, container: Container, *, seccomp_default: bool = True) -> SecurityProfile:
    """Return the container's profile, else the Pod's, else RuntimeDefault or Unconfined. Raises ContainerConfigError.

    Source: kuberuntime/helpers.go:getSeccompProfile.
    """
    profile = (container.get("securityContext") or {}).get("seccompProfile")
    if profile is None:
        profile = (pod["spec"].get("securityContext") or {}).get("seccompProfile")
    if profile is None:
        return SecurityProfile("RuntimeDefault") if seccomp_default else SecurityProfile()
    kind = profile.get("type")
    if kind == "RuntimeDefault":
        return SecurityProfile("RuntimeDefault")
    if kind != "Localhost":
        return SecurityProfile()
    name = profile.get("localhostProfile")
    if not name:
        raise ContainerConfigError("localhostProfile must be set if seccompProfile type is Localhost.")
    return SecurityProfile("Localhost", f"{SECCOMP_PROFILE_ROOT}/{name}")


def verify_run_as_non_root(pod: Pod, container: Container, image: Image) -> None:
    """Raise ContainerConfigError if runAsNonRoot forbids the user (security_context_others.go)."""
    if not _effective(pod, container, "runAsNonRoot"):
        return
    where = f'(pod: "{pod_ref_text(pod)}", container: {container["name"]})'
    user = _effective(pod, container, "runAsUser")
    if user is not None:
        if user == 0:
            raise ContainerConfigError(f"container's runAsUser breaks non-root policy {where}")
        return
    image_user = image.user.partition(":")[0]
    if image_user and int_of(image_user) is None:
        raise ContainerConfigError(
            f"container has runAsNonRoot and image has non-numeric user ({image_user}), "
            f"cannot verify user is non-root {where}"
        )
    if not int_of(image_user):
        raise ContainerConfigError(f"container has runAsNonRoot and image will run as root {where}")


def linux_resources(pod: Pod, container: Container, memory_capacity: int = 0) -> LinuxContainerResources:
    """Return CFS shares and quota, memory limit, OOM score (kuberuntime_container_linux.go:calculateLinuxResources)."""

    limits = _amounts(container, "limits")
    requests = limits | _amounts(container, "requests")
    limit_cpu, memory_limit = _milli(limits, "cpu"), _whole(limits, "memory")
    request_cpu, memory_request = _milli(requests, "cpu"), _whole(requests, "memory")
    quota = cpu_quota(limit_cpu)
    return LinuxContainerResources(
        cpu_period=CPU_PERIOD if quota else 0,
        cpu_quota=quota,
        cpu_shares=cpu_shares(request_cpu),
        memory_limit_in_bytes=memory_limit,
        oom_score_adj=oom_score_adjust(pod, memory_request, memory_capacity, container),
        # All of a container ends when one process of it is out of memory (singleProcessOOMKill false, 1.28).
        unified={"memory.oom.group": "1"},
    )


def _is_node_critical(pod: Pod) -> bool:
    """kubelet types/pod_update.go:IsNodeCriticalPod."""
    spec = pod["spec"]
    critical = (spec.get("priority") or 0) >= SYSTEM_CRITICAL_PRIORITY
    return critical and spec.get("priorityClassName") == "system-node-critical"


def _amounts(container: Container, kind: Literal["limits", "requests"]) -> dict[str, Quantity]:
    resources = (container.get("resources") or {}).get(kind) or {}
    try:
        return {name: parse_quantity(value) for name, value in resources.items()}
    except QuantityError as error:
        raise ContainerConfigError(f"{kind} of container {go_quote(container['name'])}: {error}") from error


def _milli(amounts: dict[str, Quantity], resource: str) -> int:
    return amounts[resource].milli if resource in amounts else 0


def _whole(amounts: dict[str, Quantity], resource: str) -> int:
    return amounts[resource].whole if resource in amounts else 0


def oom_score_adjust(pod: Pod, memory_request: int, memory_capacity: int, container: Container | None = None) -> int:
    """Return the OOM score (qos/policy.go:GetContainerOOMScoreAdjust). A sidecar outlives the containers it serves."""
    qos = get_pod_qos(pod)
    if qos == "Guaranteed" or _is_node_critical(pod):
        return OOM_SCORE_GUARANTEED
    if container is not None and container in init_containers_of(pod) and is_restartable_init_container(container):
        served = [_whole(_amounts(c, "limits") | _amounts(c, "requests"), "memory") for c in containers_of(pod)]
        memory_request = max(memory_request, min(served, default=0))
    if qos == "BestEffort" or memory_capacity <= 0:
        return OOM_SCORE_BEST_EFFORT if qos == "BestEffort" else OOM_SCORE_BEST_EFFORT - 1
    score = 1000 - 1000 * memory_request // memory_capacity
    return min(max(score, 1000 + OOM_SCORE_GUARANTEED), OOM_SCORE_BEST_EFFORT - 1)
