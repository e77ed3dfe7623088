"""The resources that a container's status shows: what it has, which a resize that is under way has yet to change.

Source: kubelet_pods.go:convertContainerStatusResources (in convertToAPIContainerStatuses). The runtime knows limits and
CPU shares; it does not know memory requests, so the old one is shown until the rest is as it should be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.cri.api import ContainerState, ContainerStatus
from lastcall.kube.cri.cpu_shares import cpu_shares
from lastcall.kube.node.pods.cgroups import CPU_PERIOD, cpu_quota

if TYPE_CHECKING:
    from collections.abc import Callable

    from lastcall.kube.api.types.container import Container, ResourceRequirements


def container_resources(
    container: Container, instance: ContainerStatus, shown: ResourceRequirements | None
) -> ResourceRequirements:
    """Return a container's resources. `container` has what it was given; `shown` is what the status had until now."""
    given = container.get("resources") or {}
    resources: ResourceRequirements = {}
    if "limits" in given:
        resources["limits"] = {**given["limits"]}
    if "requests" in given:
        resources["requests"] = {**given["requests"]}
    has = instance.resources
    if instance.state != ContainerState.CONTAINER_RUNNING or not has.cpu_shares:
        return resources
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    old_limits, old_requests = (shown or {}).get("limits") or {}, (shown or {}).get("requests") or {}
    if has.cpu_quota and "cpu" in limits:
        milli = has.cpu_quota * 1000 // (has.cpu_period or CPU_PERIOD)
        limits["cpu"] = _first(_quota_is(has.cpu_quota), limits["cpu"], old_limits.get("cpu"), f"{milli}m")
    if has.memory_limit_in_bytes and "memory" in limits:
        size = has.memory_limit_in_bytes
        limits["memory"] = _first(_memory_is(size), limits["memory"], old_limits.get("memory"), str(size))
    if "cpu" in requests:
        milli = -(-has.cpu_shares * 1000 // 1024)
        requests["cpu"] = _first(_shares_are(has.cpu_shares), requests["cpu"], old_requests.get("cpu"), f"{milli}m")
    if resources != _plain(given) and "memory" in requests and "memory" in old_requests:
        requests["memory"] = old_requests["memory"]
    return resources


def _plain(given: ResourceRequirements) -> ResourceRequirements:
    plain: ResourceRequirements = {}
    if "limits" in given:
        plain["limits"] = given["limits"]
    if "requests" in given:
        plain["requests"] = given["requests"]
    return plain


def _first(fits: Callable[[str], bool], given: str, shown: str | None, otherwise: str) -> str:
    """Of several ways to write an amount that which a person wrote."""
    if fits(given):
        return given
    return shown if shown is not None and fits(shown) else otherwise


def _quota_is(quota: int) -> Callable[[str], bool]:
    return lambda text: cpu_quota(parse_quantity(text).milli) == quota


def _shares_are(shares: int) -> Callable[[str], bool]:
    return lambda text: cpu_shares(parse_quantity(text).milli) == shares


def _memory_is(size: int) -> Callable[[str], bool]:
    return lambda text: parse_quantity(text).whole == size
