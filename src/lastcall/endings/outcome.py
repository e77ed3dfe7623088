"""Decide the outcome of a Pod's end: the first rule of a table that holds. Pure."""

# check: pure

from collections.abc import Callable, Sequence

from lastcall.endings.story import ContainerEnding, Outcome
from lastcall.records.said import tell
from lastcall.world.dataclass import dataclass

SOON_SECONDS = 1.0
"""What ends so soon after its stop signal may well have ended on it, whatever its masks had shown."""
PROBES = ("livenessProbe", "startupProbe")


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of a Pod's containers. `last` has one of each container, `earlier` those before it. `ends`: the Pod's
    end has begun."""

    last: Sequence[ContainerEnding]
    earlier: Sequence[ContainerEnding]
    ends: bool

    @property
    def ended_before(self) -> list[ContainerEnding]:
        """Return the last runs that were over before the Pod's end began."""
        return [c for c in self.last if c.exit.before_delete or (not self.ends and c.exit.at is not None)]

    @property
    def earlier_own(self) -> list[ContainerEnding]:
        """Return the earlier runs without init containers: one that is retried until it succeeds only waits."""
        return [c for c in self.earlier if c.kind != "init"]


@dataclass(frozen=True, slots=True)
class Rule:
    """`sentence` goes on from the Pod's name. `undeleted` is the same of a Pod whose end nobody began, "" where
    `sentence` fits it, too."""

    holds: Callable[[Runs], bool]
    outcome: Outcome
    sentence: str
    undeleted: str = ""


def killed(runs: Runs) -> bool:
    """Return True if SIGKILL ended a last run, other than one that a probe had ended before the Pod's end began."""
    over = runs.ended_before
    return any(c.exit.sigkilled and not (c in over and c.exit.ended_by in PROBES) for c in runs.last)


def unseen_end(runs: Runs) -> bool:
    """Return True if the Pod's end has begun, and nobody saw how a container ended."""
    return runs.ends and unseen_exit(runs)


def crashed(runs: Runs) -> bool:
    """Return True if a container failed, or was killed, before anything was to end."""
    if any(c.exit.ended_by == "itself" and c.exit.sigkilled for c in runs.earlier_own):
        return True
    return any(c.exit.failed_by_itself for c in [*runs.ended_before, *runs.earlier_own])


def restarted(runs: Runs) -> bool:
    """Return True if a probe ended a run before the Pod's end began."""
    return any(c.exit.ended_by in PROBES for c in [*runs.earlier, *runs.ended_before])


def failed_unheard(runs: Runs) -> bool:
    """Return True if a container failed after its stop signal, which had no effect: the kernel had dropped it."""
    return any(
        c.kind == "container"
        and c.process.disposition in ("default", "ignored")
        and bool(c.exit.code)
        and c.exit.signal is None
        and c.drain_seconds >= SOON_SECONDS
        for c in runs.last
    )


def unseen_exit(runs: Runs) -> bool:
    """Return True if a container started, and its exit was not seen."""
    return any(c.started and c.exit.code is None for c in runs.last)


def hook_failed(runs: Runs) -> bool:
    """Return True if a preStop hook failed, or outlived its time."""
    return any(c.hook is not None and c.hook.outcome in ("failed", "outlived") for c in runs.last)


def otherwise(runs: Runs) -> bool:
    """Return True: every container ended by itself or on its stop signal."""
    return True


_UNKNOWN = tell("how it ended is not known")

RULES = (
    Rule(killed, "killed", tell("was killed")),
    Rule(unseen_end, "unknown", _UNKNOWN),
    Rule(crashed, "crashed", tell("had crashed before its end began"), tell("crashed")),
    Rule(
        restarted,
        "restarted",
        tell("had been restarted by a probe before its end began"),
        tell("was restarted by a probe"),
    ),
    Rule(unseen_exit, "unknown", _UNKNOWN),
    Rule(failed_unheard, "crashed", tell("crashed while it was ending")),
    Rule(hook_failed, "hookFailed", tell("ended, but its preStop hook failed")),
    Rule(otherwise, "graceful", tell("ended gracefully")),
)
"""In order: the first one that holds decides. Crashes and restarts come after what hides the end itself."""


def decide_outcome(runs: Runs) -> Outcome:
    """Return the outcome of the first rule that holds."""
    return next(rule.outcome for rule in RULES if rule.holds(runs))


def sentence_of(outcome: Outcome, runs: Runs, *, deleted: bool) -> str:
    """Return the sentence of an outcome, as it goes on from the Pod's name: that of its rule that holds."""
    those = [rule for rule in RULES if rule.outcome == outcome]
    rule = next((rule for rule in those if rule.holds(runs)), those[0])
    return rule.sentence if deleted or not rule.undeleted else rule.undeleted
