"""What will happen to a Pod next, and by when, by the kubelet's own rules. Pure.

Sources: kuberuntime_container.go:killContainer (the hook's time is taken off the grace period, and at least 2 s stay),
pod_workers.go:calculateEffectiveGracePeriod (at least 1 s), kuberuntime_termination_order.go (sidecars end last, in
the reverse of their order), store.go (finalizers).
"""

# check: pure

from collections.abc import Iterator
from dataclasses import replace

from lastcall.endings import ContainerEnding, Ending
from lastcall.kube.api import AnyObject, is_restartable_init
from lastcall.records.rules import CAN_BE_DELETED, KILL_CONTAINER, WAIT_FOR_TURN, Rule
from lastcall.world.dataclass import dataclass

LEAST_AFTER_HOOK = 2.0
"""Seconds that are left to a container whose hook took the whole grace period."""
DEFAULT_GRACE = 30


@dataclass(frozen=True, slots=True)
class Next:
    """One thing to come. `what` is `hook`, `term`, `kill`, `gone` or `held`; the page has the words for each.

    `detail` is the handler of a hook, the finalizers that hold, or the name of the stop signal: "" where the Pod does
    not say it, as the image may have one. Seconds on the story's axis: not before `earliest`, and at `latest` at the
    latest, None where nothing limits it.
    """

    what: str
    container: str
    earliest: float
    latest: float | None
    rule: Rule
    detail: str = ""


def what_if_deleted(pod: AnyObject, grace: int | None = None) -> list[Next]:
    """Predict what would come if it were deleted now, with `grace` seconds or its own. Times count from the DELETE."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    given = spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE) if grace is None else grace
    asked = DEFAULT_GRACE if given is None else int(given)
    period = float(max(1, asked))
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return _removal(pod, [], 0.0, at_once=True)
    found: list[Next] = []
    inits = [each for each in spec.get("initContainers") or () if _runs(each, status)]
    for container in (*(each for each in inits if not is_restartable_init(each)), *(spec.get("containers") or ())):
        if _runs(container, status):
            found += _stop(str(container.get("name")), container, period, 0.0)
    for sidecar in reversed([each for each in inits if is_restartable_init(each)]):
        found += _sidecar(str(sidecar.get("name")), sidecar, period, found, 0.0)
    return _named(found, pod) + _removal(pod, found, 0.0, at_once=asked == 0)


def what_comes_next(ending: Ending, pod: AnyObject | None, now: float) -> list[Next]:
    """Predict the rest of a Pod's end, `now` seconds after its zero. Nothing for one that lives, or is gone."""
    if not ending.zero_kind or ending.gone is not None:
        return []
    grace = ending.budget.grace if ending.budget else ending.grace_seconds
    period = float(max(1, DEFAULT_GRACE if grace is None else grace))
    found = [each for c in ending.containers if c.kind != "sidecar" for each in _rest(c, pod, period, [], now)]
    for sidecar in reversed([c for c in ending.containers if c.kind == "sidecar"]):
        found += _rest(sidecar, pod, period, found, now)
    return _named(found, pod or {}) + _removal(pod or {}, found, now)


def _named(steps: list[Next], pod: AnyObject) -> list[Next]:
    """With the names of stop signals."""
    return [replace(each, detail=_stop_signal(each.container, pod)) if each.what == "term" else each for each in steps]


def _stop_signal(name: str, pod: AnyObject) -> str:
    """Return what the runtime says that it sends, or what the Pod asks for; "" if neither is known."""
    status = pod.get("status") or {}
    statuses = (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
    says = next((each.get("stopSignal") for each in statuses if each.get("name") == name), None)
    return str(says or (_spec_of(name, pod).get("lifecycle") or {}).get("stopSignal") or "")


def _runs(container: AnyObject, status: AnyObject) -> bool:
    """Of a container whose status nobody has written: whether the Pod's phase is Running."""
    for each in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())):
        if each.get("name") == container.get("name"):
            return bool((each.get("state") or {}).get("running") is not None)
    return bool(status.get("phase") == "Running")


def _rest(c: ContainerEnding, pod: AnyObject | None, period: float, before: list[Next], now: float) -> Iterator[Next]:
    """What is to come for a container that still runs. A sidecar waits for those that `before` is about."""
    if not c.started or c.exit.at is not None or c.exit.code is not None:
        return
    if c.stop.signal_at is not None:
        if c.stop.kill_at is None and c.stop.timeout is not None:
            at = c.stop.signal_at + c.stop.timeout
            yield Next("kill", c.name, at, at, KILL_CONTAINER)
        return
    begun = c.hook.started_at if c.hook else None
    if c.kind == "sidecar" and before:
        steps = _sidecar(c.name, _spec_of(c.name, pod), period, before, now)
    elif begun is not None and c.hook is not None and c.hook.finished_at is not None:
        # The kubelet takes whole seconds off.
        left = max(LEAST_AFTER_HOOK, period - int(c.hook.finished_at - begun))
        yield Next("term", c.name, c.hook.finished_at, None, KILL_CONTAINER)
        yield Next("kill", c.name, c.hook.finished_at + left, c.hook.finished_at + left, KILL_CONTAINER)
        return
    else:
        steps = _stop(c.name, _spec_of(c.name, pod), period, begun or 0.0)
    yield from (each for each in steps if each.what != "hook" or begun is None)


def _sidecar(name: str, container: AnyObject, period: float, before: list[Next], now: float) -> list[Next]:
    """A sidecar's hook runs at once, its stop signal waits until those of `before` have ended, in the grace period.

    Source: kuberuntime_termination_order.go:waitForTurn.
    """
    own = _stop(name, container, period, 0.0)
    if not before:
        return own
    turn = max([now, *(each.earliest for each in (*before, *own) if each.what == "term")])
    earliest = min(turn, period)
    return [
        *(each for each in own if each.what == "hook"),
        Next("term", name, earliest, period, WAIT_FOR_TURN),
        Next("kill", name, max(period, earliest + LEAST_AFTER_HOOK), period + LEAST_AFTER_HOOK, KILL_CONTAINER),
    ]


def _stop(name: str, container: AnyObject, period: float, begun: float) -> list[Next]:
    """Hook, stop signal and SIGKILL of one container whose stop begins at `begun`."""
    hook = (container.get("lifecycle") or {}).get("preStop") or {}
    if not hook:
        end = begun + period
        return [Next("term", name, begun, begun, KILL_CONTAINER), Next("kill", name, end, end, KILL_CONTAINER)]
    handler = next(iter(hook))
    if "sleep" in hook:
        shortest = longest = min(period, float((hook["sleep"] or {}).get("seconds") or 0))
    else:
        shortest, longest = 0.0, period
    return [
        Next("hook", name, begun, begun, KILL_CONTAINER, handler),
        Next("term", name, begun + shortest, begun + longest, KILL_CONTAINER),
        Next("kill", name, begun + max(period, shortest + LEAST_AFTER_HOOK),
             begun + max(period, longest + LEAST_AFTER_HOOK), KILL_CONTAINER),
    ]  # fmt: skip


def _removal(pod: AnyObject, before: list[Next], now: float, *, at_once: bool = False) -> list[Next]:
    """When the object goes: as soon as the containers have ended, or when the last finalizer is taken away.

    `at_once`: the API server does not wait for the node.
    """
    finalizers = (pod.get("metadata") or {}).get("finalizers") or ()
    if finalizers:
        return [Next("held", "", now, None, CAN_BE_DELETED, ", ".join(map(str, finalizers)))]
    if at_once:
        return [Next("gone", "", now, now, CAN_BE_DELETED)]
    kills = [each.latest for each in before if each.what == "kill" and each.latest is not None]
    first = max([now, *(each.earliest for each in before if each.what == "term")])
    return [Next("gone", "", first, max(kills, default=None), CAN_BE_DELETED)]


def _spec_of(name: str, pod: AnyObject | None) -> AnyObject:
    spec = (pod or {}).get("spec") or {}
    every = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    return next((each for each in every if each.get("name") == name), {})
