"""How the grace period was used. Pure arithmetic on what the containers did."""

# check: pure

from collections.abc import Sequence

from lastcall.endings.story import Budget, ContainerEnding


def decide_budget(grace: float | None, containers: Sequence[ContainerEnding]) -> Budget | None:
    """Return the budget of the container that ended last, because it decides when the Pod is over.

    None when the grace period or every container's end is unknown, or when all ended before the DELETE.
    """
    ended = [c for c in containers if c.exit.at is not None and not c.exit.before_delete]
    if grace is None or not ended:
        return None
    last = max(ended, key=lambda c: (_end_of(c), c.drain_seconds))
    if last.exit.from_status and last.stop.signal_at is None and last.hook is None:
        return None  # nobody saw when it was asked to stop
    hook = last.hook.seconds if last.hook else 0.0
    waiting = _waiting(last)
    used = hook + waiting + last.drain_seconds
    return Budget(
        container=last.name,
        grace=grace,
        pre_stop=hook,
        waiting=waiting,
        drain=last.drain_seconds,
        unused=max(0.0, grace - used),
        overrun=max(0.0, used - grace),
    )


def _end_of(container: ContainerEnding) -> float:
    """A hook is awaited to its end even when its container has exited meanwhile."""
    hook_end = container.hook.finished_at if container.hook else None
    return max(container.exit.at or 0.0, hook_end or 0.0)


def _waiting(container: ContainerEnding) -> float:
    """A sidecar's wait for its turn: from the end of its hook to its StopContainer. Only sidecars wait."""
    if container.kind != "sidecar" or container.stop.requested_at is None:
        return 0.0
    hook_end = container.hook.finished_at if container.hook else None
    return max(0.0, container.stop.requested_at - (hook_end or 0.0))


def decide_overhead(gone: float | None, budget: Budget | None, containers: Sequence[ContainerEnding]) -> float | None:
    """Return what the system itself needed, in seconds.

    That is: gone - hook - waiting - time from the stop signal to the last exit. None when one of them is unknown, or
    when the object was gone before its containers (a forced deletion).
    """
    ends = [c.exit.at for c in containers if c.started]
    if gone is None or any(end is None for end in ends):
        return None
    if any(end is not None and end > gone for end in ends):
        return None
    if budget is None and any(c.exit.from_status and not c.exit.before_delete for c in containers):
        return None
    if budget is None:
        return gone
    return gone - budget.pre_stop - budget.waiting - budget.drain
