"""Make the input of CNI plugins and read their answers. Pure.

Sources: CNI specification 1.1 sections 2 to 5; libcni api.go and pkg/invoke (texts of errors); containerd
internal/cri/server/sandbox_run.go:cniNamespaceOpts and toCNILabels (arguments, capabilities).
"""

# check: pure

import json
from ipaddress import ip_interface
from typing import Any

from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.api.text.go_json import loads
from lastcall.kube.cri.api import PodSandboxConfig
from lastcall.kube.cri.sandbox.cni.conf import Configuration, NetworkConfiguration
from lastcall.kube.cri.sandbox.cni.versions import at_least
from lastcall.world.dataclass import dataclass

IFNAME = "eth0"
BAD_CONTENT = 6
"""The specification's error code for content that cannot be decoded."""
_MOST_BURST = 0xFFFFFFFF
_PAST = {"ADD": "add", "DEL": "delete", "GC": "gc", "STATUS": "status", "CHECK": "check", "VERSION": "version"}

Result = dict[str, Any]


class CNIError(Exception):
    """A plugin failed. `code` is the specification's or the plugin's own, 0 when it said none."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Attachment:
    """One sandbox in one network, with all that an ADD got, so that its DEL gets the same.

    `netns` is the path of the network namespace. `result` is the last plugin's, None until all have answered.
    """

    container_id: str
    netns: str
    network: NetworkConfiguration
    version: str
    args: tuple[tuple[str, str], ...]
    capability_args: dict[str, Any]
    result: Result | None = None
    ifname: str = IFNAME


def environment(verb: str, attachment: Attachment | None, bin_dirs: tuple[str, ...], *, netns: str) -> dict[str, str]:
    """Return the CNI_* variables of one call. `netns` "" is a namespace that is gone, which only a DEL may have."""
    variables = {"CNI_COMMAND": verb, "CNI_PATH": ":".join(bin_dirs)}
    if attachment is None:
        return variables
    return {
        **variables,
        "CNI_CONTAINERID": attachment.container_id,
        "CNI_NETNS": netns,
        "CNI_IFNAME": attachment.ifname,
        "CNI_ARGS": ";".join(f"{name}={value}" for name, value in attachment.args),
    }


def request(
    network: NetworkConfiguration,
    plugin: Configuration,
    version: str,
    capability_args: dict[str, Any],
    previous: Result | None = None,
    more: dict[str, Any] | None = None,
) -> bytes:
    """Return what a plugin reads on its standard input (specification, "Deriving execution configuration")."""
    value = {**plugin, "cniVersion": version, "name": network.name}
    wanted = plugin.get("capabilities") or {}
    runtime = {name: capability_args[name] for name in sorted(wanted) if wanted[name] and name in capability_args}
    value.pop("runtimeConfig", None)
    value.pop("prevResult", None)
    if runtime:
        value["runtimeConfig"] = runtime
    if previous is not None:
        value["prevResult"] = previous
    return json.dumps({**value, **(more or {})}).encode()


def previous_for_delete(attachment: Attachment) -> Result | None:
    """Return the result of the ADD, which DEL gets since 0.4.0 (libcni api.go:DelNetworkList)."""
    return attachment.result if at_least(attachment.version, "0.4.0") else None


def pod_args(sandbox_id: str, config: PodSandboxConfig) -> tuple[tuple[str, str], ...]:
    """Return CNI_ARGS as containerd's toCNILabels has them. A value cannot have `;`: names of Kubernetes have none."""
    return (
        ("IgnoreUnknown", "1"),
        ("K8S_POD_NAMESPACE", config.metadata.namespace),
        ("K8S_POD_NAME", config.metadata.name),
        ("K8S_POD_INFRA_CONTAINER_ID", sandbox_id),
        ("K8S_POD_UID", config.metadata.uid),
    )


def pod_capability_args(config: PodSandboxConfig, pod_cidr: str) -> dict[str, Any]:
    """Return what plugins may ask for with `capabilities`.

    portMappings, bandwidth (bits a second), dns, cgroupPath and the annotations are containerd's; ipRanges, the node's
    podCIDR, were dockershim's (network/cni/cni.go:buildCNIRuntimeConf).
    """
    args: dict[str, Any] = {}
    ports = [
        {
            "hostPort": each.host_port,
            "containerPort": each.container_port,
            "protocol": each.protocol.lower(),
            "hostIP": each.host_ip,
        }
        for each in config.port_mappings
        if each.host_port > 0
    ]
    if ports:
        args["portMappings"] = ports
    if rates := _bandwidth(config.annotations):
        args["bandwidth"] = rates
    dns = config.dns_config
    if dns.servers or dns.searches or dns.options:
        args["dns"] = {"servers": list(dns.servers), "searches": list(dns.searches), "options": list(dns.options)}
    if config.cgroup_parent:
        args["cgroupPath"] = config.cgroup_parent
    if pod_cidr:
        args["ipRanges"] = [[{"subnet": pod_cidr}]]
    args["io.kubernetes.cri.pod-annotations"] = dict(sorted(config.annotations.items()))
    return args


def _bandwidth(annotations: dict[str, str]) -> dict[str, int]:
    """Source: containerd internal/cri/bandwidth/utils.go:ExtractPodBandwidthResources (from 1k to 1P)."""
    rates: dict[str, int] = {}
    for name in ("ingress", "egress"):
        text = annotations.get(f"kubernetes.io/{name}-bandwidth")
        if not text:
            continue
        try:
            rate = parse_quantity(text).whole
        except ValueError as error:
            raise CNIError(f"annotation kubernetes.io/{name}-bandwidth: {error}") from error
        if not 1_000 <= rate <= 10**15:
            raise CNIError(f"annotation kubernetes.io/{name}-bandwidth: {text} is not between 1k and 1P")
        rates |= {f"{name}Rate": rate, f"{name}Burst": _MOST_BURST}
    return rates


def parse_result(stdout: bytes) -> Result:
    """Parse the answer to ADD. Raises CNIError."""
    try:
        value = loads(stdout)
    except ValueError as error:
        raise CNIError(f"its result is not JSON: {error}", BAD_CONTENT) from error
    if not isinstance(value, dict):
        raise CNIError("its result is not a JSON object", BAD_CONTENT)
    return value


def parse_versions(stdout: bytes) -> tuple[str, ...]:
    """Parse the answer to VERSION. Raises CNIError."""
    found = parse_result(stdout).get("supportedVersions")
    if not isinstance(found, list):
        raise CNIError("its answer has no supportedVersions", BAD_CONTENT)
    return tuple(str(each) for each in found)


def failure(ended: str, stdout: bytes, stderr: bytes) -> CNIError:
    """Return why a plugin failed that ended with a status other than 0 (libcni pkg/invoke/raw_exec.go:pluginErr).

    `ended` is `exit status 1`, `signal: killed`.
    """
    if not stdout:
        said = stderr.decode(errors="replace")
        if said:
            return CNIError(f"netplugin failed: {json.dumps(said, ensure_ascii=False)}")
        return CNIError(f"netplugin failed with no error message: {ended}")
    try:
        value = loads(stdout)
        if not isinstance(value, dict):
            raise ValueError("it is not a JSON object")
    except ValueError as error:
        said = json.dumps(stdout.decode(errors="replace"), ensure_ascii=False)
        return CNIError(f"netplugin failed but error parsing its diagnostic message {said}: {error}")
    details = value.get("details")
    code = value.get("code")
    message = f"{value.get('msg', '')}" + (f"; {details}" if details else "")
    return CNIError(message, code if isinstance(code, int) else 0)


def of_plugin(plugin: Configuration, verb: str, error: CNIError) -> CNIError:
    """Name the plugin in the error (libcni api.go:pluginDescription)."""
    name = f" name={json.dumps(plugin['name'])}" if plugin.get("name") else ""
    return CNIError(f"plugin type={json.dumps(plugin['type'])}{name} failed ({_PAST[verb]}): {error}", error.code)


def addresses(result: Result, ifname: str = IFNAME) -> tuple[str, ...]:
    """Return the addresses of the Pod's own interface, IPv4 first (containerd sandbox_run.go:selectPodIPs).

    Raises CNIError for an invalid address. Results before 0.3.0 have one of each family.
    """
    found: list[str] = []
    ips = result.get("ips") or []
    if not isinstance(ips, list):
        raise CNIError("the addresses of its result are not a list", BAD_CONTENT)
    for each in ips:
        if _interface(result, each) in ("", ifname):
            found.append(str(each.get("address", "")))
    for family in ("ip4", "ip6"):
        if isinstance(old := result.get(family), dict):
            found.append(str(old.get("ip", "")))
    try:
        parsed = [ip_interface(each).ip for each in found]
    except ValueError as error:
        raise CNIError(f"an address of its result is invalid: {error}", BAD_CONTENT) from error
    return tuple(str(each) for each in sorted(parsed, key=lambda ip: ip.version))


def _interface(result: Result, address: Any) -> str:
    """The name of the interface inside the Pod that has the address, "" when the result does not say."""
    if not isinstance(address, dict):
        raise CNIError("an address of its result is not a JSON object", BAD_CONTENT)
    index = address.get("interface")
    interfaces = result.get("interfaces")
    if index is None or not isinstance(interfaces, list):
        return ""
    if not isinstance(index, int) or not 0 <= index < len(interfaces) or not isinstance(interfaces[index], dict):
        raise CNIError(f"its result has no interface {index}", BAD_CONTENT)
    return str(interfaces[index].get("name", ""))


def is_gone(error: CNIError) -> bool:
    """Return whether a failed DEL says that there is nothing to delete (containerd's go-cni cni.go:Remove)."""
    return "not found" in str(error)
