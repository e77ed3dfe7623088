"""Feature gates: which there are in which Kubernetes version, and how they are set.

Only gates that change something here are known. Source: pkg/features/kube_features.go of each release;
component-base/featuregate/feature_gate.go:SetFromMap. For 1.37: the release notes (kubernetes/sig-release e8dfc805,
releases/release-1.37/release-notes) and the pages of the gates (kubernetes/website, feature-gates: 0939bb8d
MaxUnavailableStatefulSet, 0758ad46 NodeLifecycleConditions), which was read and not compared with a server.
NodeLifecycleConditions, new in 1.37, changes nothing there (KEP-5683), so it is not listed.
"""

# check: pure

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cache

from lastcall.kube.api.features.releases import DEFAULT_VERSION, RELEASES
from lastcall.world.dataclass import dataclass

CONTAINER_RESTART_RULES = "ContainerRestartRules"
HPA_SCALE_TO_ZERO = "HPAScaleToZero"
MAX_UNAVAILABLE_STATEFUL_SET = "MaxUnavailableStatefulSet"
POD_DISRUPTION_CONDITIONS = "PodDisruptionConditions"
POD_LIFECYCLE_SLEEP_ACTION = "PodLifecycleSleepAction"
PROBE_TERMINATION_GRACE_PERIOD = "ProbeTerminationGracePeriod"
SIDECAR_CONTAINERS = "SidecarContainers"
CONTAINER_STOP_SIGNALS = "ContainerStopSignals"
EPHEMERAL_CONTAINERS = "EphemeralContainers"
GRPC_CONTAINER_PROBE = "GRPCContainerProbe"
IN_PLACE_POD_VERTICAL_SCALING = "InPlacePodVerticalScaling"
RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
STATEFUL_SET_RECREATE = "StatefulSetRecreateStrategy"
TCP_SOCKET_LIFECYCLE_HOOK = "TCPSocketLifecycleHook"
USER_NAMESPACES_SUPPORT = "UserNamespacesSupport"


@dataclass(frozen=True, slots=True)
class Gate:
    """Minor versions of 1.x: the gate is known `since`, its default is True from `on`, it cannot be set from `locked`.

    From `removed` on it does not exist, and what it had switched on stays on. None: not yet, up to 1.37. `requires` are
    gates that must be on with it.
    """

    since: int
    on: int | None = None
    locked: int | None = None
    requires: tuple[str, ...] = ()
    removed: int | None = None

    def exists(self, minor: int) -> bool:
        """Return True if Kubernetes 1.`minor` knows the gate."""
        return self.since <= minor and (self.removed is None or minor < self.removed)


GATES: dict[str, Gate] = {
    CONTAINER_RESTART_RULES: Gate(since=34, on=35),
    CONTAINER_STOP_SIGNALS: Gate(since=33),
    EPHEMERAL_CONTAINERS: Gate(since=16, on=23, locked=25),
    GRPC_CONTAINER_PROBE: Gate(since=23, on=24, locked=27),
    IN_PLACE_POD_VERTICAL_SCALING: Gate(since=33, on=33, locked=35),
    # On in the apiserver's validation and, since 1.36, in the controller (#135118); by default since 1.37 (#139648).
    HPA_SCALE_TO_ZERO: Gate(since=16, on=37),
    # 1.35.0 to 1.35.3 had it on, too (#137904 took it back, #139466 switched it on again for 1.37).
    MAX_UNAVAILABLE_STATEFUL_SET: Gate(since=24, on=37),
    POD_DISRUPTION_CONDITIONS: Gate(since=25, on=26, locked=31),
    POD_LIFECYCLE_SLEEP_ACTION: Gate(since=29, on=30, locked=34),
    PROBE_TERMINATION_GRACE_PERIOD: Gate(since=21, on=25, locked=28),
    SIDECAR_CONTAINERS: Gate(since=28, on=29, locked=33, removed=37),
    STATEFUL_SET_RECREATE: Gate(since=37),
    RESTART_ALL_CONTAINERS: Gate(since=35, on=36, requires=(CONTAINER_RESTART_RULES,)),
    # Kubernetes accepts tcpSocket hooks and fails them at run time; older documentation says that they connect.
    TCP_SOCKET_LIFECYCLE_HOOK: Gate(since=0),
    USER_NAMESPACES_SUPPORT: Gate(since=28, on=33, locked=36),
}


class FeatureGateError(ValueError):
    """A setting that cannot be; the text says which and what can."""


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """The gates of one version (`1.36`) with what was set for them. Use `feature_gates` to make one."""

    version: str = DEFAULT_VERSION
    settings: Mapping[str, bool] = field(default_factory=dict)

    @property
    def minor(self) -> int:
        """Return 36 for 1.36."""
        return _minor(self.version)

    def enabled(self, name: str) -> bool:
        """Return True if the gate is on. Raises KeyError for a name that is not in `GATES`."""
        gate = GATES[name]
        default = gate.on is not None and self.minor >= gate.on
        return self.settings.get(name, default)


def since_minor(name: str) -> int | None:
    """Return 33 for a gate that Kubernetes 1.33 has first; None for one that is not known here."""
    return GATES[name].since if name in GATES else None


def parse_feature_gates(texts: Iterable[str]) -> dict[str, bool]:
    """Parse `["A=true,B=false", …]` to a dictionary; a later setting wins. Raises FeatureGateError."""
    settings: dict[str, bool] = {}
    for pair in (pair.strip() for text in texts for pair in text.split(",")):
        if not pair:
            continue
        name, equals, value = pair.partition("=")
        if not equals:
            raise FeatureGateError(f"{pair!r} has no value: write {pair}=true or {pair}=false")
        name, value = name.strip(), value.strip().lower()
        if name not in GATES:
            raise FeatureGateError(f"unknown feature gate {name!r}: known are {', '.join(GATES)}")
        if value not in ("true", "false"):
            raise FeatureGateError(f"{pair!r}: the value of a feature gate is true or false")
        settings[name] = value == "true"
    return settings


def feature_gates(version: str, settings: Mapping[str, bool]) -> FeatureGates:
    """Return the gates of a Kubernetes version, checked against it. Raises FeatureGateError."""
    minor = _minor(version)
    for name, value in settings.items():
        gate = GATES.get(name)
        if gate is None or not gate.exists(minor):
            known = ", ".join(each for each, its in GATES.items() if its.exists(minor))
            raise FeatureGateError(f"Kubernetes {version} has no feature gate {name!r}: it has {known}")
        if gate.locked is not None and minor >= gate.locked and not value:
            raise FeatureGateError(f"feature gate {name} is locked to true since Kubernetes 1.{gate.locked}")
    gates = FeatureGates(version, dict(settings))
    for name, gate in GATES.items():
        for other in gate.requires:
            if gates.enabled(name) and not gates.enabled(other):
                way_out = f"set {name}=false too" if not settings.get(name) else f"set {other}=true"
                raise FeatureGateError(f"feature gate {name} needs {other}, which is off: {way_out}")
    return gates


def gates_of_server(version: str) -> FeatureGates:
    """Return the gates of what an API server says of itself (`v1.36.2`), of the default version for any other."""
    reproduced = ".".join(version.removeprefix("v").split(".")[:2])
    return FeatureGates(reproduced if reproduced in RELEASES else DEFAULT_VERSION)


@cache
def _minor(version: str) -> int:
    return int(version.removeprefix("v").split(".")[1])
