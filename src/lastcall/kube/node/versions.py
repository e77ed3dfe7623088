"""What changed between Kubernetes versions in the life of a Pod: one table, feature → since when, until when.

Rules take a `Behaviour` and never look at a version number themselves. What the API server takes or drops, and what can
be switched on by name, are feature gates (`kube/api/features/gates.py`); here are the differences that nobody can
choose. The node always runs the three-phase worker of 1.22 and later; a version decides arithmetic, texts and what is
written. Source: the release trees of 1.23, 1.27 and 1.36 and the change logs between them; for 1.37 the release notes
(kubernetes/sig-release e8dfc805) and the pull requests named there.
"""

# check: pure

from dataclasses import fields, replace

from lastcall.kube.api.features.gates import (
    POD_DISRUPTION_CONDITIONS,
    POD_LIFECYCLE_SLEEP_ACTION,
    PROBE_TERMINATION_GRACE_PERIOD,
    SIDECAR_CONTAINERS,
    FeatureGates,
)
from lastcall.kube.api.features.releases import DEFAULT_VERSION
from lastcall.world.dataclass import dataclass

VERSIONS: tuple[str, ...] = ("1.23", "1.27", "1.36", "1.37")
"""Those that a cluster can be asked for."""


@dataclass(frozen=True, slots=True)
class Span:
    """Minor versions of 1.x, both ends included; None is open."""

    since: int | None = None
    until: int | None = None

    def has(self, minor: int) -> bool:
        return (self.since is None or self.since <= minor) and (self.until is None or minor <= self.until)


FEATURES: dict[str, Span] = {
    # -- the kill path ------------------------------------------------------------------------------------------------
    # The pod worker hands its effective grace period to every kill as an override (pod_workers.go, #102344), and that
    # replaces what the preStop hook left of it: the hook's time is not taken off, a stop takes up to 2 G, and the
    # floor of two seconds may be undercut (kuberuntime_container.go:killContainer; fixed by #115835).
    "override_after_hook": Span(until=27),
    # A hard eviction asks for 1 s (immediateEvictionGracePeriodSeconds), before for 0, of which the worker made 1. The
    # release was not checked.
    "eviction_asks_for_a_second": Span(since=31),
    # Sidecars stop after the regular containers, in reverse order.
    "sidecar_ordering": Span(since=29),
    # terminationGracePeriodSeconds of a liveness or startup probe (gate ProbeTerminationGracePeriod).
    "probe_grace_period": Span(since=25),
    # -- hooks and probes ---------------------------------------------------------------------------------------------
    "http_hook_scheme_and_headers": Span(since=26),  # and falls back from HTTPS to HTTP
    "sleep_hook": Span(since=30),  # gate PodLifecycleSleepAction
    # -- texts --------------------------------------------------------------------------------------------------------
    # FailedPreStopHook and FailedPostStartHook carry a fixed text instead of the handler's message.
    "hook_failure_text_is_fixed": Span(since=26),
    "container_names_in_start_events": Span(until=27),  # `Created container NAME`; the release was not checked
    "image_present_access_text": Span(since=35),  # `… and can be accessed by the pod`
    "image_pull_waiting_text": Span(since=27),  # `(… including waiting)`
    "image_pull_size_text": Span(since=30),  # `Image size: … bytes.`
    "image_gc_says_attempted": Span(since=28),  # FreeDiskSpaceFailed; the release was not checked
    "pull_secret_event_after_failure": Span(since=37),  # FailedToRetrieveImagePullSecret, no longer before (#138432)
    # -- ends that the node decides -----------------------------------------------------------------------------------
    "node_shutdown_by_priority": Span(since=24),
    "sidecar_storage_limit": Span(since=37),  # a sidecar over its ephemeral-storage limit evicts its Pod (#138462)
    # -- status -------------------------------------------------------------------------------------------------------
    "terminal_phase_on_delete": Span(since=27),  # a deleted Pod always ends Succeeded or Failed (#115331)
    # The final DELETE waits for a terminal phase in the API instead of for removed containers and volumes.
    "final_delete_needs_terminal_phase": Span(since=27),
    "disruption_target": Span(since=26),  # gate PodDisruptionConditions
    "sandbox_condition": Span(since=29),  # PodReadyToStartContainers
    "sandbox_condition_at_once": Span(since=36),  # right after the sandbox was made
    "sandbox_condition_says_why": Span(since=37),  # reason and message while it is False (#135300)
    "observed_generation": Span(since=34),  # in status and conditions
    "host_ips": Span(since=29),
    "container_resources": Span(since=33),  # resources and allocatedResources of container statuses
    "volume_mounts": Span(since=31),  # of container statuses
    "pod_resources": Span(since=36),  # status.resources
    "preserve_on_restart": Span(since=35),  # readiness survives a restart of the kubelet
}
"""The fields of `Behaviour`, which are explained here."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What one Kubernetes version does: the column of `FEATURES`. True means "this version does it"."""

    version: str
    override_after_hook: bool
    eviction_asks_for_a_second: bool
    sidecar_ordering: bool
    probe_grace_period: bool
    http_hook_scheme_and_headers: bool
    sleep_hook: bool
    hook_failure_text_is_fixed: bool
    container_names_in_start_events: bool
    image_present_access_text: bool
    image_pull_waiting_text: bool
    image_pull_size_text: bool
    image_gc_says_attempted: bool
    pull_secret_event_after_failure: bool
    node_shutdown_by_priority: bool
    sidecar_storage_limit: bool
    terminal_phase_on_delete: bool
    final_delete_needs_terminal_phase: bool
    disruption_target: bool
    sandbox_condition: bool
    sandbox_condition_at_once: bool
    sandbox_condition_says_why: bool
    observed_generation: bool
    host_ips: bool
    container_resources: bool
    volume_mounts: bool
    pod_resources: bool
    preserve_on_restart: bool

    @property
    def minor(self) -> int:
        """Return 36 for "1.36"."""
        return int(self.version.partition(".")[2])

    @property
    def short_version(self) -> str:
        """Return `1.36`, as in the User-Agent `kube-probe/1.36`."""
        return self.version

    @property
    def why_hook_time_does_not_count(self) -> str:
        """Return one sentence for the story; "" if the hook's time does count."""
        if self.override_after_hook:
            return (
                f"Kubernetes {self.version} does not take the preStop hook's time off the grace period: "
                "the container gets the full period again after the hook (1.22 to 1.27, fixed in 1.28)."
            )
        return ""


def behaviour_at(version: str) -> Behaviour:
    """Return the behaviour of any `1.N`, `v1.N.P`, …, also one that clusters cannot be asked for. Raises ValueError."""
    parts = version.removeprefix("v").split(".")
    if len(parts) < 2 or parts[0] != "1" or not parts[1].isdigit():
        raise ValueError(f"Kubernetes version {version!r} is not of the form 1.N; use for example {DEFAULT_VERSION}")
    minor = int(parts[1])
    return Behaviour(version=f"1.{minor}", **{name: span.has(minor) for name, span in FEATURES.items()})


def behaviour_of(version: str) -> Behaviour:
    """Return the behaviour of `1.36` or `v1.36.2`. Raises ValueError for one that is not of `VERSIONS`."""
    wanted = ".".join(version.removeprefix("v").split(".")[:2])
    if wanted not in VERSIONS:
        raise ValueError(f"kubernetes version {version!r} is not one of {', '.join(VERSIONS)}")
    return behaviour_at(wanted)


def gated(behaviour: Behaviour, gates: FeatureGates) -> Behaviour:
    """Return the behaviour with the feature gates that the user has switched on or off."""
    return replace(
        behaviour,
        disruption_target=gates.enabled(POD_DISRUPTION_CONDITIONS),
        probe_grace_period=gates.enabled(PROBE_TERMINATION_GRACE_PERIOD),
        sidecar_ordering=gates.enabled(SIDECAR_CONTAINERS),
        sleep_hook=gates.enabled(POD_LIFECYCLE_SLEEP_ACTION),
    )


assert [field.name for field in fields(Behaviour)][1:] == list(FEATURES)
