"""What changed between Kubernetes versions in the life of a Pod: one table, feature by version.

What a version writes into the status stands in `status_features`. The node always runs the three-phase worker of
1.22 and later; a version decides arithmetic, texts and gates only.
Source: the release trees of 1.18, 1.23, 1.27 and 1.36 and the change logs between them.
"""

from dataclasses import dataclass

DEFAULT_VERSION = "1.36"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What one Kubernetes version does. True means "this version does it"."""

    version: str
    worker_override: bool
    """The pod worker hands its effective grace period to every kill as an override (pod_workers.go, since 1.22)."""
    override_after_hook: bool
    """The override replaces what the preStop hook left of the grace period, so the hook's time is not taken off
    (kuberuntime_container.go:killContainer up to 1.27; fixed in 1.28 by #115835)."""
    probe_grace_period: bool
    """terminationGracePeriodSeconds of a liveness or startup probe is honoured."""
    sidecar_ordering: bool
    """Sidecars (init containers with restartPolicy Always) exist and stop after the regular containers (1.29)."""
    orphan_runs_pre_stop: bool
    """A Pod known only to the runtime gets its preStop hooks from container annotations (1.18)."""
    orphan_cgroup_is_killed_at_once: bool
    """The housekeeping that finds a runtime-only Pod also removes its cgroup: SIGKILL at once, no SIGTERM (recorded
    on 1.36.2; the reference's two seconds were never seen)."""
    hook_failure_text_is_fixed: bool
    """FailedPreStopHook/FailedPostStartHook carry a fixed text instead of the handler's message (1.26)."""
    http_hook_scheme_and_headers: bool
    """httpGet hooks honour scheme and httpHeaders and fall back from HTTPS to HTTP (1.26)."""
    sleep_hook: bool
    """The sleep hook exists (on by default since 1.30)."""
    container_names_in_start_events: bool
    """`Created container NAME` instead of `Container created`."""
    stop_container_not_found_is_success: bool
    """An unknown container is a stopped container (1.23)."""

    @property
    def minor(self) -> int:
        """36 for "1.36"."""
        return int(self.version.partition(".")[2])

    @property
    def why_hook_time_does_not_count(self) -> str:
        """One sentence for the story; "" where the hook's time does count."""
        if self.worker_override and self.override_after_hook:
            return (
                f"Kubernetes {self.version} does not take the preStop hook's time off the grace period: "
                "the container gets the full period again after the hook (1.22 to 1.27, fixed in 1.28)."
            )
        return ""


#  column order                    1.18   1.23   1.27   1.36
_TABLE: dict[str, tuple[bool, bool, bool, bool]] = {
    "worker_override":                     (False, True, True, True),
    "override_after_hook":                 (True, True, True, False),
    "probe_grace_period":                  (False, True, True, True),
    "sidecar_ordering":                    (False, False, False, True),
    "orphan_runs_pre_stop":                (True, False, False, False),
    "orphan_cgroup_is_killed_at_once": (False, True, True, True),
    "hook_failure_text_is_fixed":          (False, False, True, True),
    "http_hook_scheme_and_headers":        (False, False, True, True),
    "sleep_hook":                          (False, False, False, True),
    "container_names_in_start_events":     (True, True, True, False),
    "stop_container_not_found_is_success": (False, True, True, True),
}  # fmt: skip

VERSIONS: tuple[str, ...] = ("1.18", "1.23", "1.27", "1.36")

_BEHAVIOURS = {
    version: Behaviour(version=version, **{feature: row[column] for feature, row in _TABLE.items()})
    for column, version in enumerate(VERSIONS)
}


def behaviour_of(version: str) -> Behaviour:
    """The behaviour of `1.36` or `v1.36.2`. Raises ValueError for a version that is not in the table."""
    wanted = ".".join(version.removeprefix("v").split(".")[:2])
    try:
        return _BEHAVIOURS[wanted]
    except KeyError:
        raise ValueError(f"kubernetes version {version!r} is not one of {', '.join(VERSIONS)}") from None
