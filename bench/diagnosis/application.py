"""Holds one application while it is drawn and broken: its objects, its Pod, its programs, and the command for it."""

import copy
from dataclasses import dataclass, field
from typing import Any, Literal

from bench.diagnosis.programs import Program, command, render

Command = Literal["run", "rollout"]
Object = dict[str, Any]
DIRECTORY = "/app"


@dataclass
class Application:
    """Describe an application. Faults change it in place; `objects` writes its manifests.

    `main` is the name of the container that faults break, `programs` are the texts by container; the ConfigMap of a
    container is mounted at /app. `neighbour` is a container beside it, "" for none. `peers` are objects that come
    after the workload, such as a client's Pod.
    """

    shape: str
    name: str
    image: str
    kind: Literal["Pod", "Deployment", "StatefulSet", "Job"]
    labels: dict[str, str]
    main: str
    spec: Object
    programs: dict[str, Program]
    neighbour: str = ""
    command: Command = "run"
    args: list[str] = field(default_factory=list)
    before: list[Object] = field(default_factory=list)
    peers: list[Object] = field(default_factory=list)
    metadata: Object = field(default_factory=dict)
    """More of the Pod's metadata: annotations, finalizers."""
    workload: Object = field(default_factory=dict)
    """More of the workload's spec."""
    annotations: dict[str, str] = field(default_factory=dict)
    mode: int | None = None
    """defaultMode of the programs' ConfigMaps."""

    @property
    def program(self) -> Program:
        return self.programs[self.main]

    @property
    def container(self) -> Object:
        return container_of(self.spec, self.main)

    @property
    def service(self) -> Object:
        """Return the Service, which shapes with a port have."""
        return next(each for each in self.before if each["kind"] == "Service")

    def objects(self) -> list[Object]:
        """Return the manifests, in the order in which they are applied."""
        spec = copy.deepcopy(self.spec)
        maps = [self._mounted(spec, name, program) for name, program in self.programs.items()]
        pod = {"metadata": {"labels": dict(self.labels), **copy.deepcopy(self.metadata)}, "spec": spec}
        if self.annotations:
            pod["metadata"]["annotations"] = dict(self.annotations)
        return [*maps, *copy.deepcopy(self.before), self._workload(pod), *copy.deepcopy(self.peers)]

    def _mounted(self, spec: Object, name: str, program: Program) -> Object:
        """Mount a program into its container; return its ConfigMap."""
        container, map_name = container_of(spec, name), f"{self.name}-{name}"
        container.setdefault("command", command(program, DIRECTORY))
        volume = f"{name}-files"
        source: Object = {"name": map_name}
        if self.mode is not None:
            source["defaultMode"] = self.mode
        spec.setdefault("volumes", []).append({"name": volume, "configMap": source})
        container.setdefault("volumeMounts", []).append({"name": volume, "mountPath": DIRECTORY})
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": map_name}, "data": render(program)}

    def _workload(self, pod: Object) -> Object:
        if self.kind == "Pod":
            metadata = {"name": self.name, **pod["metadata"]}
            return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod["spec"]}
        head: Object = {"apiVersion": "apps/v1", "kind": self.kind, "metadata": {"name": self.name}}
        selector = {"app": self.labels["app"]}
        match self.kind:
            case "Job":
                head["apiVersion"] = "batch/v1"
                spec: Object = {"template": pod, "backoffLimit": 1}
            case "StatefulSet":
                spec = {"serviceName": self.name, "selector": {"matchLabels": selector}, "template": pod}
            case _:
                spec = {"selector": {"matchLabels": selector}, "template": pod}
        head["metadata"]["labels"] = dict(self.labels)
        head["spec"] = {**spec, **copy.deepcopy(self.workload)}
        return head


def container_of(spec: Object, name: str) -> Object:
    """Return a container or an init container by its name. KeyError without one."""
    for each in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        if each["name"] == name:
            found: Object = each
            return found
    raise KeyError(name)


def template_of(obj: Object) -> Object | None:
    """Return the Pod's spec in an object; None in one that has no Pods."""
    if obj["kind"] == "Pod":
        spec: Object = obj["spec"]
        return spec
    template = (obj.get("spec") or {}).get("template")
    return template["spec"] if isinstance(template, dict) and "spec" in template else None
