"""What one may set otherwise about a rollout: the delays of hops, preStop, grace, maxUnavailable. Pure."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from lastcall.kube.api import AnyObject, scaled
from lastcall.kube.cluster import HOPS
from lastcall.records.said import tell
from lastcall.traffic import grace_of, own_wait, sleep_patch
from lastcall.world.dataclass import dataclass

MOST_SECONDS = 120
"""Of a sleep, of a delay."""
MOST_GRACE_SECONDS = 3600
_STRATEGIES = {"Deployment": "strategy", "DaemonSet": "updateStrategy"}
"""Kind → the field with its rollingUpdate.maxUnavailable."""


@dataclass(frozen=True, slots=True)
class Values:
    """Seconds; `sleep` and `max_unavailable` are None when the workload has no such field to set."""

    sleep: int | None
    grace: int
    max_unavailable: int | None
    hops: Mapping[str, float] = field(default_factory=dict)

    @property
    def propagation(self) -> str:
        """Return the value of `--propagation`, "" for no delay."""
        return ",".join(f"{hop}={seconds:g}s" for hop, seconds in self.hops.items() if seconds)

    @classmethod
    def from_wire(cls, wired: Mapping[str, Any]) -> "Values":
        return cls(wired["sleep"], wired["grace"], wired["maxUnavailable"], wired["hops"])

    def to_wire(self) -> dict[str, Any]:
        return {
            "sleep": self.sleep,
            "grace": self.grace,
            "maxUnavailable": self.max_unavailable,
            "hops": dict(self.hops),
        }


def values_of(workload: dict[str, Any], hops: Mapping[str, float]) -> Values:
    """Return the values as the manifest has them."""
    every = {hop: hops.get(hop, 0.0) for hop in HOPS}
    return Values(own_wait(workload), grace_of(workload), _max_unavailable(workload), every)


def read_values(wired: Mapping[str, Any], own: Values) -> Values:
    """Read what the page sends; what it does not say is as in `own`. Raises ValueError, with the field."""
    hops = wired.get("hops") or {}
    if not isinstance(hops, dict):
        raise ValueError(tell("hops: write an object of seconds"))
    sleep = None if own.sleep is None else _number(wired.get("sleep"), "sleep", own.sleep, MOST_SECONDS)
    grace = _number(wired.get("grace"), "grace", own.grace, MOST_GRACE_SECONDS)
    unavailable = own.max_unavailable
    if unavailable is not None:
        unavailable = int(_number(wired.get("maxUnavailable"), "maxUnavailable", unavailable, 10_000))
    return Values(
        None if sleep is None else int(sleep),
        int(grace),
        unavailable,
        {hop: _number(hops.get(hop), hop, own.hops.get(hop, 0.0), MOST_SECONDS) for hop in HOPS},
    )


def patch_of(workload: dict[str, Any], values: Values, own: Values, *, sleep_hooks: bool = True) -> dict[str, Any]:
    """Return a strategic merge patch of what differs from the manifest; {} when nothing differs.

    `sleep_hooks`: the version of Kubernetes knows preStop sleeps.
    """
    patch: dict[str, Any] = {}
    if values.sleep is not None and values.sleep != own.sleep:
        patch = sleep_patch(workload, values.sleep, 0, sleep_hooks=sleep_hooks)
    if values.grace != own.grace:
        spec = patch.setdefault("spec", {}).setdefault("template", {}).setdefault("spec", {})
        spec["terminationGracePeriodSeconds"] = values.grace
    if values.max_unavailable is not None and values.max_unavailable != own.max_unavailable:
        strategy = {"rollingUpdate": {"maxUnavailable": values.max_unavailable}}
        patch.setdefault("spec", {})[_STRATEGIES[str(workload.get("kind"))]] = strategy
    return patch


def replicas_of(workload: AnyObject) -> int:
    """Return how many Pods it wants; of a DaemonSet one is counted."""
    wanted = (workload.get("spec") or {}).get("replicas")
    return 1 if wanted is None else int(wanted)


def least_unavailable(workload: AnyObject) -> int:
    """Return 1 when maxSurge is 0, as the two must not both be 0 (validation.go:validateRollingUpdateDeployment)."""
    update = _rolling_update(workload)
    default = "25%" if workload.get("kind") == "Deployment" else 0
    surge = update.get("maxSurge", default)
    return 0 if scaled(surge, replicas_of(workload), up=True) else 1


def _max_unavailable(workload: AnyObject) -> int | None:
    """Resolved to a number of Pods, rounded down as a Deployment's is (deployment_util.go:ResolveFenceposts)."""
    kind = str(workload.get("kind"))
    spec = workload.get("spec") or {}
    if kind not in _STRATEGIES or (spec.get(_STRATEGIES[kind]) or {}).get("type", "RollingUpdate") != "RollingUpdate":
        return None
    default: Any = "25%" if kind == "Deployment" else 1
    found = scaled(_rolling_update(workload).get("maxUnavailable", default), replicas_of(workload), up=False)
    return max(found, least_unavailable(workload))


def _rolling_update(workload: AnyObject) -> Mapping[str, Any]:
    strategy = (workload.get("spec") or {}).get(_STRATEGIES.get(str(workload.get("kind")), "strategy")) or {}
    found: Mapping[str, Any] = strategy.get("rollingUpdate") or {}
    return found


def _number(value: Any, name: str, own: float, most: float) -> float:
    if value is None:
        return own
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        shown = repr(str(value)[:40])
        raise ValueError(
            tell("$name: $value is not a number from 0 to $most", name=name, value=shown, most=f"{most:g}")
        )
    return value
