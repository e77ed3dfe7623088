"""All manifests as one application: who selects whom, who owns how many Pods."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

from lastcall.kube.api import (
    CRONJOBS,
    DAEMONSETS,
    DEPLOYMENTS,
    HORIZONTALPODAUTOSCALERS,
    HORIZONTALPODAUTOSCALERS_V1,
    JOBS,
    PODS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    SERVICES,
    STATEFULSETS,
    LabelSelector,
    Object,
    Resource,
    scaled,
    selector_of_expressions,
    selector_of_labels,
)
from lastcall.lint.subject import NotChecked, NotHere, Subject
from lastcall.manifests import Path, hook_events

TEMPLATES: dict[Resource, Path] = {
    PODS: (),
    DEPLOYMENTS: ("spec", "template"),
    REPLICASETS: ("spec", "template"),
    REPLICATIONCONTROLLERS: ("spec", "template"),
    STATEFULSETS: ("spec", "template"),
    DAEMONSETS: ("spec", "template"),
    JOBS: ("spec", "template"),
    CRONJOBS: ("spec", "jobTemplate", "spec", "template"),
}
"""Where the Pod template of a kind is."""

REPLICATED = (DEPLOYMENTS, REPLICASETS, REPLICATIONCONTROLLERS, STATEFULSETS)

Role = Literal["init", "sidecar", "container"]


class Container(NamedTuple):
    """`spec` has the API server's defaults."""

    spec: Object
    path: Path
    role: Role

    @property
    def name(self) -> str:
        return str(self.spec.get("name") or "")

    @property
    def ports(self) -> list[Object]:
        return self.spec.get("ports") or []


class Workload:
    """An object with a Pod template, or a Pod."""

    def __init__(self, subject: Subject, application: "Application") -> None:
        assert subject.resource is not None
        self.subject = subject
        self.application = application
        self.resource = subject.resource
        self.template_path = TEMPLATES[subject.resource]
        self.spec_path: Path = (*self.template_path, "spec")
        template: Any = subject.obj
        for step in self.template_path:
            template = template.get(step) or {}
        self.template: Object = template
        self.pod_spec: Object = template.get("spec") or {}
        self.labels: dict[str, str] = (template.get("metadata") or {}).get("labels") or {}

    @cached_property
    def containers(self) -> list[Container]:
        """Return the containers that run while the Pod does: sidecars, then application containers."""
        return [each for each in self.all_containers if each.role != "init"]

    @cached_property
    def all_containers(self) -> list[Container]:
        """Return all containers, init containers, too."""
        made = []
        for index, each in enumerate(self.pod_spec.get("initContainers") or ()):
            role: Role = "sidecar" if each.get("restartPolicy") == "Always" else "init"
            made.append(Container(each, (*self.spec_path, "initContainers", index), role))
        for index, each in enumerate(self.pod_spec.get("containers") or ()):
            made.append(Container(each, (*self.spec_path, "containers", index), "container"))
        return made

    @property
    def is_job(self) -> bool:
        return self.resource in (JOBS, CRONJOBS)

    @property
    def ends_by_itself(self) -> bool:
        """Return whether its containers are meant to end."""
        return self.is_job or self.pod_spec.get("restartPolicy") != "Always"

    @property
    def grace(self) -> int:
        """Return terminationGracePeriodSeconds."""
        return int(self.pod_spec.get("terminationGracePeriodSeconds", 30))

    @cached_property
    def scalers(self) -> list[Subject]:
        """Return the HorizontalPodAutoscalers that set its replicas."""
        return [
            each
            for each in self.application.of(HORIZONTALPODAUTOSCALERS, HORIZONTALPODAUTOSCALERS_V1)
            if each.namespace == self.subject.namespace
            and (target := each.spec.get("scaleTargetRef") or {}).get("name") == self.subject.name
            and target.get("kind") == self.subject.kind
        ]

    @property
    def replicas(self) -> int | None:
        """Return the least number of Pods that it means to have; None where nodes or a Job decide."""
        if self.resource == PODS:
            return 1
        if self.resource not in REPLICATED:
            return None
        if self.scalers:
            return int(self.scalers[0].spec.get("minReplicas") or 1)
        replicas = self.subject.spec.get("replicas")
        return 1 if replicas is None else int(replicas)

    @property
    def idle(self) -> bool:
        """Return whether it has no Pod at all (or no container, which is another rule's)."""
        return self.replicas == 0 or not self.containers

    @property
    def unavailable_and_surge(self) -> tuple[int, int] | None:
        """Return maxUnavailable and maxSurge of a Deployment's rolling update as numbers; None for anything else."""
        if self.resource != DEPLOYMENTS or not (replicas := self.replicas):
            return None
        strategy = self.subject.spec.get("strategy") or {}
        if strategy.get("type") != "RollingUpdate":
            return None
        rolling = strategy.get("rollingUpdate") or {}
        surge = scaled(rolling.get("maxSurge"), replicas, up=True)
        unavailable = scaled(rolling.get("maxUnavailable"), replicas, up=False)
        return (unavailable, surge) if unavailable or surge else (1, 0)

    @cached_property
    def services(self) -> list[Subject]:
        """Return the Services that select its Pods."""
        return [each for each in self.application.of(SERVICES) if self in self.application.selected(each)]

    @property
    def serving(self) -> list[Subject]:
        """Return its Services with an address of their own, without those that it is a stranger to (`strangers`)."""
        return [
            each
            for each in self.services
            if each.spec.get("clusterIP") != "None" and self not in self.application.strangers(each)
        ]

    def declares(self, port: Object) -> bool:
        """Return whether a container declares the target of a Service's port."""
        target, protocol = port.get("targetPort") or port.get("port"), port.get("protocol") or "TCP"
        return any(
            target in (each.get("name"), each.get("containerPort")) and (each.get("protocol") or "TCP") == protocol
            for container in self.containers
            for each in container.ports
        )

    @cached_property
    def served(self) -> list[Container]:
        """Return the containers that its Services' ports lead to, where they declare their ports; never none."""
        targets = {
            port.get("targetPort") or port.get("port")
            for service in self.serving
            for port in service.spec.get("ports") or ()
        }
        found = [
            each
            for each in self.containers
            if any(port.get("name") in targets or port.get("containerPort") in targets for port in each.ports)
        ]
        with_ports = [each for each in self.containers if each.ports]
        plain = [each for each in self.containers if each.role == "container"]
        return found or with_ports or plain[:1] or self.containers[:1]

    def __str__(self) -> str:
        return str(self.subject)


class Application:
    """`fresh`: what is not in these manifests is not in the cluster either."""

    def __init__(self, subjects: Sequence[Subject], *, fresh: bool = False) -> None:
        self.subjects = subjects
        self.fresh = fresh
        hooks = {each for each in subjects if hook_events(each.raw)}
        if not any(each.resource in TEMPLATES and each not in hooks for each in subjects):
            hooks = set()  # they are all there is
        self.not_checked = tuple(
            NotChecked(each, "hook" if each in hooks else "kind")
            for each in subjects
            if each in hooks or each.resource is None
        )
        self.sound = [each for each in subjects if each.resource is not None and each.sound and each not in hooks]
        self._not_here: dict[tuple[str, str, str], NotHere] = {}
        self._selected: dict[Subject, list[Workload]] = {}
        self._by_name = {(each.kind, each.namespace, each.name): each for each in self.sound}

    @cached_property
    def workloads(self) -> list[Workload]:
        return [Workload(each, self) for each in self.sound if each.resource in TEMPLATES]

    @cached_property
    def has_other_kinds(self) -> bool:
        """Return whether there are objects whose controllers may make Pods and Services that nobody sees here."""
        return any(each.resource is None for each in self.subjects)

    def of(self, *resources: Resource) -> list[Subject]:
        return [each for each in self.sound if each.resource in resources]

    def get(self, kind: str, namespace: str, name: str) -> Subject | None:
        return self._by_name.get((kind, namespace, name))

    def note_absent(self, kind: str, namespace: str, name: str, subject: Subject, path: Path) -> None:
        """Note that `subject` refers to what these manifests do not hold."""
        self._not_here.setdefault((kind, namespace, name), NotHere(kind, namespace, name, subject, path))

    @property
    def not_here(self) -> tuple[NotHere, ...]:
        return tuple(self._not_here.values())

    def in_namespace(self, namespace: str) -> Iterator[Workload]:
        return (each for each in self.workloads if each.subject.namespace == namespace)

    def selected(self, service: Subject) -> list[Workload]:
        """Return the workloads whose Pods a Service selects."""
        known = self._selected.get(service)
        if known is None:
            selector = selector_of_labels(service.spec.get("selector"))
            known = self._selected[service] = self.matching(service.namespace, selector)
        return known

    def strangers(self, service: Subject) -> list[Workload]:
        """Return the workloads that a Service selects and that declare none of its ports, where others do."""
        selected, ports = self.selected(service), service.spec.get("ports") or ()
        if len(selected) < 2:
            return []
        declaring = [each for each in selected if any(each.declares(port) for port in ports)]
        return [each for each in selected if each not in declaring] if declaring else []

    def matching(self, namespace: str, selector: LabelSelector) -> list[Workload]:
        return [each for each in self.in_namespace(namespace) if selector.matches(each.labels)]

    def protected(self, budget: Subject) -> list[Workload]:
        """Return the workloads whose Pods a PodDisruptionBudget is about."""
        try:
            selector = selector_of_expressions(budget.spec.get("selector"))
        except ValueError:
            return []  # reported as an invalid value
        return self.matching(budget.namespace, selector)
