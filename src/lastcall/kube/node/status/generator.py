"""The status of a Pod as the API shows it. Source: kubelet_pods.go:generateAPIPodStatus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from lastcall.kube.api.features.gates import CONTAINER_STOP_SIGNALS, RESTART_ALL_CONTAINERS, FeatureGates
from lastcall.kube.api.meta import copy_object, uid_of
from lastcall.kube.api.pods.restart_rules import all_containers_could_restart
from lastcall.kube.api.pods.spec import StatusField
from lastcall.kube.cri.api import ContainerStatus
from lastcall.kube.node.interfaces import PodStatus, ReasonCache
from lastcall.kube.node.pods.resources import pod_resources
from lastcall.kube.node.pods.restart_all import is_cleaned_up, should_restart_all
from lastcall.kube.node.pods.spec import (
    containers_of,
    find_container,
    get_pod_qos,
    init_containers_of,
    is_host_network_pod,
    is_terminal_phase,
)
from lastcall.kube.node.pods.termination_message import TerminationMessages
from lastcall.kube.node.runtime.resize import plan_resize
from lastcall.kube.node.status.conditions import (
    KUBELET_CONDITIONS,
    all_containers_restarting_condition,
    containers_ready_condition,
    find_condition,
    initialized_condition,
    make_condition,
    pod_ready_condition,
    ready_to_start_containers_condition,
)
from lastcall.kube.node.status.containers import OWN_RUNTIME, convert_to_api_container_statuses
from lastcall.kube.node.status.features import StatusFeatures
from lastcall.kube.node.status.phase import get_phase

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodCondition
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus

PodSyncHandler = Callable[["Pod"], tuple[str, str] | None]
"""Asked at every status: (reason, message) when the Pod must fail now, e.g. its deadline passed. Else None."""


class CachedStatuses(Protocol):
    def get_pod_status(self, uid: str) -> APIPodStatus | None: ...


class ProbeResults(Protocol):
    def update_pod_status(self, pod: Pod, status: APIPodStatus) -> None: ...


class PodStatusGenerator:
    """Implements `interfaces.StatusGenerator`. `host_ips` are the node's addresses, the primary one first."""

    def __init__(
        self,
        *,
        features: StatusFeatures,
        statuses: CachedStatuses,
        probes: ProbeResults,
        reasons: ReasonCache,
        host_ips: Sequence[str],
        pod_sync_handlers: Sequence[PodSyncHandler] = (),
        messages: TerminationMessages | None = None,
        gates: FeatureGates | None = None,
        resize_conditions: Callable[[str], list[PodCondition]] = lambda uid: [],
        runtime: str = OWN_RUNTIME,
    ) -> None:
        self._runtime = runtime
        self._resize_conditions = resize_conditions
        self._features = features
        self._statuses = statuses
        self._probes = probes
        self._reasons = reasons
        self._host_ips = tuple(host_ips)
        self._handlers = tuple(pod_sync_handlers)
        self._messages = messages or TerminationMessages()
        self._gates = gates or FeatureGates()

    def generate_api_pod_status(self, pod: Pod, pod_status: PodStatus, pod_is_terminal: bool) -> APIPodStatus:
        uid = uid_of(pod)
        api_status: APIPodStatus = pod.get("status") or {}
        old: APIPodStatus = self._statuses.get_pod_status(uid) or api_status
        may_restart_all = self._gates.enabled(RESTART_ALL_CONTAINERS) and all_containers_could_restart(pod)
        restarting = may_restart_all and should_restart_all(pod, pod_status, old)
        status = self._convert(pod, pod_status, old, restarting=restarting)
        statuses = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
        regular = {c["name"] for c in containers_of(pod)}
        phase = get_phase(
            pod,
            statuses,
            pod_is_terminal=pod_is_terminal,
            pod_has_initialized=any(c.metadata.name in regular for c in pod_status.container_statuses),
            force_terminal=self._features.terminal_phase_on_delete,
        )
        if not is_terminal_phase(phase):
            # A terminal phase once reported stays.
            phase = next((s["phase"] for s in (old, api_status) if is_terminal_phase(s.get("phase"))), phase)
        status["phase"] = phase
        if phase == old.get("phase"):
            field: Literal["reason", "message"]
            for field in ("reason", "message"):
                if text := old.get(field) or api_status.get(field):
                    status[field] = text
        for handler in self._handlers:
            if verdict := handler(pod):
                status["phase"], (status["reason"], status["message"]) = "Failed", verdict
                break
        if is_terminal_phase(api_status.get("phase")):
            status["phase"] = api_status["phase"]
        # Fills ready and started, which the conditions are made of.
        self._probes.update_pod_status(pod, status)
        status["conditions"] = self._conditions(pod, pod_status, old, status)
        if may_restart_all:
            generation = int(pod["metadata"].get("generation") or 0) if self._features.observed_generation else 0
            underway = restarting and not is_cleaned_up(pod, pod_status)
            condition = all_containers_restarting_condition(status["phase"], underway, generation)
            status["conditions"].append(condition)
        self._add_addresses(pod, status, old)
        return status

    def forget_except(self, pod_uids: set[str]) -> None:
        """Drop what is remembered about other Pods."""
        self._messages.forget_except(pod_uids)

    def _convert(self, pod: Pod, pod_status: PodStatus, old: APIPodStatus, *, restarting: bool) -> APIPodStatus:
        """Source: kubelet_pods.go:convertStatusToAPIStatus."""
        uid = uid_of(pod)
        status: APIPodStatus = {}
        if pod_status.ips:
            status["podIP"] = pod_status.ips[0]
            status["podIPs"] = [{"ip": ip} for ip in pod_status.ips]
        status["qosClass"] = (pod.get("status") or {}).get("qosClass") or get_pod_qos(pod)
        if self._features.pod_resources:
            status["resources"] = resources = pod_resources(pod)
            if requests := resources.get("requests"):
                status["allocatedResources"] = requests
            if self._resize_conditions(uid) and not plan_resize(pod, pod_status).empty:
                status["resources"] = old.get("resources") or resources  # not yet what it was given

        def message(instance: ContainerStatus) -> str:
            container = find_container(pod, instance.metadata.name) or {}
            return self._messages.get(uid, container, instance)

        groups: tuple[tuple[StatusField, Sequence[Container], bool], ...] = (
            ("initContainerStatuses", init_containers_of(pod), True),
            ("containerStatuses", containers_of(pod), False),
            ("ephemeralContainerStatuses", pod["spec"].get("ephemeralContainers") or [], False),
        )
        for field, containers, is_init in groups:
            if containers:
                status[field] = convert_to_api_container_statuses(
                    pod,
                    pod_status,
                    old.get(field) or [],
                    containers,
                    is_init=is_init,
                    features=self._features,
                    start_error=lambda name: self._reasons.get(uid, name),
                    termination_message=message,
                    restarting_all=restarting and field != "ephemeralContainerStatuses",
                    runtime=self._runtime,
                    show_stop_signal=self._gates.enabled(CONTAINER_STOP_SIGNALS),
                )
        return status

    def _conditions(
        self, pod: Pod, pod_status: PodStatus, old: APIPodStatus, status: APIPodStatus
    ) -> list[PodCondition]:
        features = self._features
        generation = int(pod["metadata"].get("generation") or 0) if features.observed_generation else 0
        own = set(KUBELET_CONDITIONS)
        conditions = [c for c in (pod.get("status") or {}).get("conditions") or [] if c["type"] not in own]
        if features.disruption_target and (target := find_condition(old.get("conditions"), "DisruptionTarget")):
            conditions = [c for c in conditions if c["type"] != "DisruptionTarget"] + [target]
        conditions += self._resize_conditions(uid_of(pod))
        conditions = [copy_object(condition) for condition in conditions]
        statuses = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
        phase = status["phase"]
        if features.sandbox_condition:
            says_why = features.sandbox_condition_says_why
            conditions.append(ready_to_start_containers_condition(pod, pod_status, generation, says_why=says_why))
        conditions.append(initialized_condition(pod, statuses, phase, generation))
        conditions.append(pod_ready_condition(pod, conditions, statuses, phase, generation))
        conditions.append(containers_ready_condition(pod, statuses, phase, generation))
        conditions.append(make_condition("PodScheduled", True, observed_generation=generation))
        return conditions

    def _add_addresses(self, pod: Pod, status: APIPodStatus, old: APIPodStatus) -> None:
        if not self._host_ips:
            return
        status["hostIP"] = self._host_ips[0]
        if self._features.host_ips:
            status["hostIPs"] = [{"ip": ip} for ip in self._host_ips]
        if is_host_network_pod(pod) and not status.get("podIP"):
            # Addresses of a hostNetwork Pod never change once set.
            status["podIP"] = old.get("podIP") or self._host_ips[0]
            status["podIPs"] = old.get("podIPs") or [{"ip": ip} for ip in self._host_ips]
