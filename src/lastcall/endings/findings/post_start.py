"""Rows about postStart hooks: one that fails, and ends its container; one that runs, and holds the Pod's end. Pure."""

# check: pure

import re
from collections.abc import Callable, Iterable, Sequence

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.findings.not_executed import is_not_executable
from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Fact, Row
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.story import Change, ContainerEnding, ContainerFacts, Entry, Finding
from lastcall.endings.verdict import is_ongoing
from lastcall.records import kinds
from lastcall.records.hook_text import hook_failure
from lastcall.records.said import joined, tell
from lastcall.world.dataclass import dataclass

KINDS = (kinds.POST_START_STARTED, kinds.POST_START_FINISHED)
LONG_SECONDS = 1.0
"""A hook of a Pod that nobody ends is worth a word if it runs for so long."""
HELD_SECONDS = 0.1
"""A deletion that waited for less did not wait."""
_NOT_FOUND = 127
_REFUSED = re.compile(r":(?P<port>\d+): connect: connection refused")


@dataclass(frozen=True, slots=True)
class PostStart:
    """One run of a hook. `finished_at` is None while it runs; `delay` is from the container's start to the hook's."""

    started_at: float
    detail: str
    delay: float | None = None
    finished_at: float | None = None
    failed: bool = False
    exit_code: int | None = None
    message: str = ""
    output: str = ""

    @property
    def refused(self) -> str:
        """Return the port that refused its connection; "" if it failed otherwise."""
        match = _REFUSED.search(self.message)
        return match["port"] if match else ""


def hook_of(run: ContainerEnding, entries: Iterable[Entry]) -> PostStart | None:
    """Return the hook of one run of a container; None if it has none, or nobody recorded it."""
    those = [each for each in entries if run.exit.at is None or each.at <= run.exit.at]
    started = next((each for each in reversed(those) if each.record.kind == kinds.POST_START_STARTED), None)
    if started is None:
        return None
    begun = started.facts_as(kinds.POST_START_STARTED)
    detail = str(begun.get("detail") or begun.get("handler") or "")
    delay = None if run.started_at is None else max(0.0, started.at - run.started_at)
    ended = next(
        (each for each in those if each.record.kind == kinds.POST_START_FINISHED and each.at >= started.at), None
    )
    if ended is None:
        return PostStart(started.at, detail, delay)
    facts = ended.facts_as(kinds.POST_START_FINISHED)
    return PostStart(
        started.at,
        detail,
        delay,
        finished_at=ended.at,
        failed=facts.get("outcome") == "failed",
        exit_code=facts.get("exitCode"),
        message=str(facts.get("message") or ""),
        output=f"{facts.get('stdout') or ''}{facts.get('stderr') or ''}",
    )


def because(hook: PostStart | None) -> str:
    """Return how a hook failed, to follow "failed"; "" if nobody recorded it."""
    if hook is None:
        return ""
    if hook.refused and hook.delay is not None:
        delay = _s(hook.delay)
        return tell(": connection refused on port $port, $delay after its start", port=hook.refused, delay=delay)
    if hook.exit_code:
        return tell(": exit code $code", code=hook.exit_code)
    return tell(": $message", message=failure) if (failure := hook_failure(hook.message)) else ""


def more(run: ContainerEnding, hook: PostStart | None) -> Sequence[str]:
    """Return sentences that say more about a hook that failed: its last line, and that its port opened later."""
    sentences = []
    if hook is not None and (lines := hook.output.strip().splitlines()):
        sentences.append(said("restartedPostStart", "said", line=lines[-1].strip()[:300]))
    at_exit = run.seen.sockets.at_exit if run.seen.sockets else None
    if hook is not None and at_exit and hook.refused in {str(each.port) for each in at_exit.listeners}:
        sentences.append(said("restartedPostStart", "listened", container=run.name, port=hook.refused))
    return sentences


def remedy(hook: PostStart | None) -> str:
    """Return what to do about a hook that failed."""
    if hook is None:
        return fix("restartedPostStart")
    if hook.refused:
        return fix("restartedPostStart", "tooEarly", port=hook.refused)
    if hook.exit_code == _NOT_FOUND or "executable file not found" in hook.message:
        return fix("restartedPostStart", "notFound")
    if is_not_executable(hook.exit_code, hook.output):
        return fix("restartedPostStart", "notExecutable")
    return fix("restartedPostStart", "code" if hook.exit_code else "")


# -- the rows --------------------------------------------------------------------------------------------------------


def _hook(s: RunSubject) -> PostStart | None:
    return hook_of(s.run, s.entries(KINDS))


def _fact(name: str, test: Callable[[RunSubject, PostStart], bool]) -> Fact[RunSubject]:
    def holds(s: RunSubject) -> bool:
        hook = _hook(s)
        return hook is not None and test(s, hook)

    return Fact(name, holds, (kinds.PROCESS_STARTED, *KINDS))


def _ends_for_it(s: RunSubject, hook: PostStart) -> bool:
    return hook.failed and s.run.exit.at is None and s.run.exit.code is None and is_ongoing(s.ending)


def _still_runs(s: RunSubject, hook: PostStart) -> bool:
    if hook.finished_at is not None or s.run.exit.at is not None or not is_ongoing(s.ending):
        return False
    return bool(s.ending.zero_kind) or s.ending.until - hook.started_at >= LONG_SECONDS


def _has_held(s: RunSubject, hook: PostStart) -> bool:
    deleted = bool(s.ending.zero_kind) and hook.started_at < 0
    return deleted and hook.finished_at is not None and hook.finished_at >= HELD_SECONDS


def _post_start_failed(s: RunSubject) -> Finding:
    hook = _hook(s)
    text = said("postStartFailed", container=s.run.name, because=because(hook))
    text = joined([text, *more(s.run, hook)])
    change = Change(program="fixPostStart")
    return Finding("postStartFailed", "problem", text, s.run.name, remedy(hook), change=change)


def _post_start_runs(s: RunSubject) -> Finding:
    hook = _hook(s)
    assert hook is not None
    facts = {"container": s.run.name, "detail": hook.detail, "seconds": f"{s.ending.until - hook.started_at:.0f}"}
    text = said("postStartRuns", "delete" if s.ending.zero_kind else "", **facts)
    later = _starts_later(s, hook)
    if later is not None:
        text = joined([text, said("postStartRuns", "later", other=later[0], port=later[1])])
    change = Change(program="fixPostStart")
    if s.ending.zero_kind:
        advice = fix("postStartRuns", "delete")
    elif later is not None:
        advice = fix("postStartRuns", "later", other=later[0], container=s.run.name)
    else:
        advice = fix("postStartRuns", container=s.run.name)
    return Finding("postStartRuns", "warning", text, s.run.name, advice, change=change)


def _starts_later(s: RunSubject, hook: PostStart) -> tuple[str, int] | None:
    """Return the container below in the list whose port the hook's command names, and the port; None for none.

    The kubelet starts containers in their order, and waits for each postStart hook
    (kuberuntime_manager.go:SyncPod, kuberuntime_container.go:startContainer).
    """
    names = [each.name for each in s.ending.pod.containers]
    if s.run.name not in names:
        return None
    own = names.index(s.run.name)
    theirs = set(_ports_of(s.ending.pod.containers[own]))
    for each in s.ending.pod.containers[own + 1 :]:
        for port in sorted(set(_ports_of(each)) - theirs):
            if each.kind == s.run.kind and re.search(rf"[: ]{port}\b", hook.detail):
                return each.name, port
    return None


def _ports_of(container: ContainerFacts) -> list[int]:
    return [*container.ports, *(each.port for each in container.probes if isinstance(each.port, int))]


def _post_start_held(s: RunSubject) -> Finding:
    hook = _hook(s)
    assert hook is not None
    assert hook.finished_at is not None
    text = said(
        "postStartHeld",
        container=s.run.name,
        detail=hook.detail,
        waited=_s(hook.finished_at),
        before=_s(-hook.started_at),
    )
    change = Change(program="fixPostStart")
    return Finding("postStartHeld", "warning", text, s.run.name, fix("postStartHeld"), change=change)


ROWS = (
    Row("postStartFailed", (_fact("how its postStart hook ended", _ends_for_it),), _post_start_failed),
    Row("postStartRuns", (_fact("whether its postStart hook runs", _still_runs),), _post_start_runs),
    Row("postStartHeld", (_fact("when its postStart hook ended", _has_held),), _post_start_held),
)
