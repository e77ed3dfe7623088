"""Where on which kubelet a streaming request goes.

Source: pkg/registry/core/pod/strategy.go:ExecLocation, AttachLocation, PortForwardLocation, streamParams.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from lastcall.kube.api.errors import bad_request, not_found
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import NODES, PODS, Resource
from lastcall.kube.apiserver.registry.generic import GenericStore
from lastcall.kube.apiserver.requestinfo import RequestInfo, is_true
from lastcall.kube.apiserver.subresources.actions import log_container

if TYPE_CHECKING:
    from multidict import MultiMapping

SUBRESOURCES = ("exec", "attach", "portforward")
_FLAGS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}


async def stream_location(
    kinds: Mapping[Resource, GenericStore], subresource: str, namespace: str, name: str, query: "MultiMapping[str]"
) -> tuple[Object, str]:
    """Return (the Pod's node, path and query for its kubelet). Raises StatusError."""
    pod = (await kinds[PODS].get(namespace, name)).object
    path, parameters = _stream_path(subresource, pod, query)
    node_name = pod.get("spec", {}).get("nodeName", "")
    if not node_name:
        raise bad_request(f"pod {name} does not have a host assigned")
    entry = await kinds[NODES].shared.store.get(kinds[NODES].key("", node_name))
    if entry is None:
        raise not_found(NODES, node_name)
    return kinds[NODES].decode(entry.value), f"{path}?{urlencode(parameters)}" if parameters else path


def _stream_path(subresource: str, pod: Object, query: "MultiMapping[str]") -> tuple[str, list[tuple[str, str]]]:
    meta = pod["metadata"]
    names = [meta["namespace"], meta["name"]]
    if subresource == "portforward":
        return _path("portForward", names), [("port", port) for port in query.getall("ports", [])]
    names.append(log_container(pod, query.get("container", "")))
    parameters = [(kubelet, "1") for api, kubelet in _FLAGS.items() if is_true(query, api)]
    if subresource == "exec":
        parameters += [("command", word) for word in query.getall("command", [])]
    return _path(subresource, names), parameters


def _path(verb: str, names: list[str]) -> str:
    return "/".join(["", verb, *(quote(name, safe="") for name in names)])


def connect_options(
    resource: Resource, info: RequestInfo, query: "MultiMapping[str]"
) -> tuple[tuple[str, str, str], Object]:
    """Return ((group, version, kind), object) that admission webhooks see of a connection (`PodExecOptions`, …)."""
    if info.subresource == "proxy":
        path = "/".join(info.parts[-1:]) if info.parts else ""
        return ("", "v1", f"{resource.kind}ProxyOptions"), {"path": path} if path else {}
    kind = {"exec": "PodExecOptions", "attach": "PodAttachOptions", "portforward": "PodPortForwardOptions"}
    options: Object = {}
    if info.subresource == "portforward":
        ports = [int(port) for each in query.getall("ports", []) for port in each.split(",") if port.isdigit()]
        options = {"ports": ports} if ports else {}
    else:
        options = {flag: True for flag in _FLAGS if is_true(query, flag)}
        if query.get("container"):
            options["container"] = query["container"]
        if info.subresource == "exec":
            options["command"] = query.getall("command", [])
    return ("", "v1", kind[info.subresource]), options
