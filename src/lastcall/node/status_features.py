"""What a Kubernetes version puts into Pod status and how it decides the end of a Pod (node-semantics 24).

One frozen table row per version; rules take it as a parameter and never look at a version number themselves.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StatusFeatures:
    """
    terminal_phase_on_delete: a deleted Pod always ends Succeeded or Failed (#115331, 1.27).
    final_delete_needs_terminal_phase: the final DELETE waits for a terminal phase in the API instead of for removed
      containers and volumes (1.27).
    withhold_terminal_phase: no terminal phase while containers may run (#108366, 1.23.13).
    disruption_target: the DisruptionTarget condition is the kubelet's too (1.26).
    sandbox_condition: PodReadyToStartContainers is written (1.29).
    observed_generation: `observedGeneration` in status and conditions (1.34).
    host_ips: `status.hostIPs` (1.29). started: `started` in container statuses (1.16; always here).
    container_resources: `resources` and `allocatedResources` of container statuses (1.33).
    volume_mounts: `volumeMounts` of container statuses (1.31).
    pod_resources: `status.resources` (1.36).
    preserve_on_restart: readiness survives a kubelet restart (1.35).
    exec_probe_timeout: exec probes obey `timeoutSeconds` (1.20).
    image_present_access_text: `… and can be accessed by the pod` (1.35).
    """

    minor: int
    terminal_phase_on_delete: bool
    final_delete_needs_terminal_phase: bool
    withhold_terminal_phase: bool
    disruption_target: bool
    sandbox_condition: bool
    observed_generation: bool
    host_ips: bool
    container_resources: bool
    volume_mounts: bool
    pod_resources: bool
    preserve_on_restart: bool
    exec_probe_timeout: bool
    image_present_access_text: bool

    @property
    def short_version(self) -> str:
        """`1.36`, as in the User-Agent `kube-probe/1.36`."""
        return f"1.{self.minor}"


def status_features(kubernetes_version: str) -> StatusFeatures:
    """The row of a version given as `1.36`, `v1.36.2`, …. Raises ValueError for anything else."""
    parts = kubernetes_version.removeprefix("v").split(".")
    if len(parts) < 2 or parts[0] != "1" or not parts[1].isdigit():
        raise ValueError(f"Kubernetes version {kubernetes_version!r} is not of the form 1.N; use for example 1.36")
    minor = int(parts[1])
    return StatusFeatures(
        minor=minor,
        terminal_phase_on_delete=minor >= 27,
        final_delete_needs_terminal_phase=minor >= 27,
        withhold_terminal_phase=minor >= 23,
        disruption_target=minor >= 26,
        sandbox_condition=minor >= 29,
        observed_generation=minor >= 34,
        host_ips=minor >= 29,
        container_resources=minor >= 33,
        volume_mounts=minor >= 31,
        pod_resources=minor >= 36,
        preserve_on_restart=minor >= 35,
        exec_probe_timeout=minor >= 20,
        image_present_access_text=minor >= 35,
    )
