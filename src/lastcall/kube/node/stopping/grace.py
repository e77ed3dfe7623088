"""Grace periods: how many seconds a Pod and each of its containers get. Pure arithmetic, no clock.

Two levels decide. The pod worker keeps one effective period per Pod, which only ever shrinks. Each stop of a container
starts from a period of its own, pays for its preStop hook and for the wait for its turn, and hands the rest to CRI
StopContainer. All periods are whole seconds; elapsed times are cut to whole seconds, as the kubelet does.
"""

# check: pure

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING

from lastcall.kube.node.versions import Behaviour
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container
    from lastcall.kube.api.types.pod import Pod

MINIMUM_GRACE_PERIOD_SECONDS = 2
"""Least timeout given to StopContainer (kuberuntime_manager.go:minimumGracePeriodInSeconds)."""

RUNTIME_POD_GRACE_PERIOD_SECONDS = 1
"""Override for Pods that only the runtime knows (kubelet.go:SyncTerminatingRuntimePod)."""


class KillReason(StrEnum):
    """Why a container is killed (kuberuntime_manager.go:containerKillReason)."""

    STARTUP_PROBE = "StartupProbe"
    LIVENESS_PROBE = "LivenessProbe"
    FAILED_POST_START_HOOK = "FailedPostStartHook"
    UNKNOWN = "Unknown"


def calculate_effective_grace_period(
    current: int,
    *,
    deletion_grace_period_seconds: int | None,
    override: int | None,
    termination_grace_period_seconds: int | None,
) -> tuple[int, bool]:
    """Return the Pod's grace period and whether it became shorter.

    `current` is what was decided before, 0 for nothing yet. The answer is at least 1 and never above a `current` that
    was set, with one exception: a deletion period of 0 reads as "unset" where an override is compared with it. Source:
    kubelet pod_workers.go:calculateEffectiveGracePeriod.
    """
    period, touched = current, False
    for wanted in (deletion_grace_period_seconds, override):
        if wanted is not None and (period == 0 or wanted < period):
            period, touched = wanted, True
    if not touched and period == 0 and termination_grace_period_seconds is not None:
        period = termination_grace_period_seconds
    period = max(period, 1)
    return period, current != 0 and current != period


def effective_grace_period_of(pod: Pod, current: int, override: int | None) -> tuple[int, bool]:
    """Run `calculate_effective_grace_period` for a Pod object."""
    return calculate_effective_grace_period(
        current,
        deletion_grace_period_seconds=pod.get("metadata", {}).get("deletionGracePeriodSeconds"),
        override=override,
        termination_grace_period_seconds=pod.get("spec", {}).get("terminationGracePeriodSeconds"),
    )


def set_termination_grace_period(
    behaviour: Behaviour,
    *,
    deletion_grace_period_seconds: int | None,
    termination_grace_period_seconds: int | None,
    probe_grace_period_seconds: int | None,
) -> int:
    """Return the period a stop of a container starts from, before any override.

    `probe_grace_period_seconds` is that of the probe whose failure is the reason, None for other reasons.
    Source: kuberuntime_container.go:setTerminationGracePeriod.
    """
    if deletion_grace_period_seconds is not None:
        return deletion_grace_period_seconds
    if termination_grace_period_seconds is not None:
        if behaviour.probe_grace_period and probe_grace_period_seconds is not None:
            return probe_grace_period_seconds
        return termination_grace_period_seconds
    return MINIMUM_GRACE_PERIOD_SECONDS


def probe_grace_period_seconds(container: Container, reason: KillReason | None) -> int | None:
    """Return terminationGracePeriodSeconds of the probe that `reason` names."""
    if reason == KillReason.STARTUP_PROBE:
        probe = container.get("startupProbe")
    elif reason == KillReason.LIVENESS_PROBE:
        probe = container.get("livenessProbe")
    else:
        return None
    return (probe or {}).get("terminationGracePeriodSeconds")


def budget_before_hook(behaviour: Behaviour, period: int, override: int | None) -> int:
    """Return the seconds that hook, wait for a turn and stop share. Up to 1.27 the override does not count here."""
    if override is None or behaviour.override_after_hook:
        return period
    return override


def spend(budget: int, elapsed_seconds: float) -> int:
    """Return what is left after a step. Elapsed time is cut to whole seconds; the result may be zero or less."""
    return budget - math.floor(elapsed_seconds)


@dataclass(frozen=True, slots=True)
class StopTimeout:
    """`timeout` goes to CRI StopContainer; `floor` is True when it was raised to two seconds."""

    timeout: int
    floor: bool


def stop_timeout(behaviour: Behaviour, budget: int, override: int | None) -> StopTimeout:
    """Return the timeout of StopContainer from what hook and wait have left.

    Source: kuberuntime_container.go:killContainer; up to 1.27 an override replaces the rest and may undercut the floor.
    """
    if override is not None and behaviour.override_after_hook:
        return StopTimeout(override, False)
    if budget < MINIMUM_GRACE_PERIOD_SECONDS:
        return StopTimeout(MINIMUM_GRACE_PERIOD_SECONDS, True)
    return StopTimeout(budget, False)
