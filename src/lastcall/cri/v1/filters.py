"""What the filters of CRI's lists let pass."""

from typing import Any

from lastcall.cri.api import ContainerState, ContainerStatus, PodSandboxStatus


def _labels_match(labels: dict[str, str], selector: Any) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())


def sandboxes_that_match(statuses: list[PodSandboxStatus], wanted: Any) -> list[PodSandboxStatus]:
    """Those of a PodSandboxFilter or PodSandboxStatsFilter; what it does not say is everything."""
    state = wanted.state.state if "state" in wanted.DESCRIPTOR.fields_by_name and wanted.HasField("state") else None
    return [
        each
        for each in statuses
        if each.id.startswith(wanted.id)
        and (state is None or each.state == state)
        and _labels_match(each.labels, wanted.label_selector)
    ]


def containers_that_match(statuses: list[ContainerStatus], wanted: Any) -> list[ContainerStatus]:
    """Those of a ContainerFilter or ContainerStatsFilter."""
    state = wanted.state.state if "state" in wanted.DESCRIPTOR.fields_by_name and wanted.HasField("state") else None
    return [
        each
        for each in statuses
        if each.id.startswith(wanted.id)
        and each.pod_sandbox_id.startswith(wanted.pod_sandbox_id)
        and (state is None or each.state == state)
        and _labels_match(each.labels, wanted.label_selector)
    ]


def running(statuses: list[ContainerStatus]) -> list[ContainerStatus]:
    return [each for each in statuses if each.state == ContainerState.CONTAINER_RUNNING]
