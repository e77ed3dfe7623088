"""Advice to wait in a preStop hook, for whom and for how long, as patches of a manifest. Pure."""

# check: pure

import math
from collections.abc import Collection, Sequence
from typing import Any

from lastcall.endings import fix
from lastcall.records import kinds
from lastcall.records.hook_text import hook_failure
from lastcall.records.said import joined, tell
from lastcall.traffic.causes import CAUSE_IDS
from lastcall.traffic.hooks import WaitingHook, own_sleep, waiting_hook
from lastcall.traffic.lives import PodLife
from lastcall.traffic.proposal import (
    SPARE_SECONDS,
    Advice,
    Disruption,
    container_behind,
    declared_serving,
    grace_of,
    in_template,
)


def sleep_before_stop(count: int, run: Disruption) -> Advice:
    """Return the pause that keeps a Pod serving until every sender has learned of its DELETE."""
    lag, seconds = _lag(run.lives), _pause_seconds(run)
    spec = _pod_spec(run.owner)
    hooks = {
        each["name"]: waiting_hook(each, seconds, sleep_hooks=run.sleep_hooks) for each in _in_a_hurry(spec, seconds)
    }
    kept = _longest_hook(run.lives) if any(hook.keeps for hook in hooks.values()) else 0.0
    needed = math.ceil(seconds + kept + _longest_drain(run.lives) + SPARE_SECONDS)
    facts = _pause_facts(run, needed, lag)
    if why := next((hook.why_not for hook in hooks.values() if hook.why_not), ""):
        if failed := failed_hook(run.lives, hooks):
            sentence = fix("lateEndpoint", "hookFailed", seconds=seconds, **failed, **facts)
            return Advice("lateEndpoint", sentence, count, program="fixHook", pause=seconds)
        sentence = fix("lateEndpoint", "hookThere", seconds=seconds, why=why, **facts)
        return Advice("lateEndpoint", sentence, count, pause=seconds)
    facts |= {"hook": next(iter(hooks.values())).text, "them": tell("it") if count == 1 else tell("them"), "on": ""}
    misplaced, name = "", container_behind(spec, run.port)["name"]
    if name in hooks and (others := _hooks_of_others(spec, name)):
        misplaced = fix("lateEndpoint", "hookElsewhere", others=joined(others, " and "), name=name, port=run.port)
        facts |= {"hook": hooks[name].text, "on": tell(" on $container", container=name)}
    sentence = joined([misplaced, fix("lateEndpoint", **facts)], "")
    return Advice("lateEndpoint", sentence, count, _hooks_patch(run.owner, hooks, needed), pause=seconds)


def wait_before_quit(count: int, run: Disruption) -> Advice:
    """Advise to wait in the hooks before they make the program stop listening; the rest of a hook stays."""
    id_, seconds, spec = CAUSE_IDS["closed by its hook"], _pause_seconds(run), _pod_spec(run.owner)
    those = [each for each in declared_serving(spec) if own_sleep(each) is None] or [container_behind(spec, run.port)]
    hooks = {each["name"]: waiting_hook(each, seconds, sleep_hooks=run.sleep_hooks) for each in those}
    needed = math.ceil(seconds + _longest_hook(run.lives) + _longest_drain(run.lives) + SPARE_SECONDS)
    facts = {**_pause_facts(run, needed, _lag(run.lives)), "name": joined(hooks, " and ")}
    if any(hook.why_not for hook in hooks.values()):
        sentence = fix(id_, "notShell", seconds=seconds, **facts)
        return Advice(id_, sentence, count, program="fixHook", pause=seconds)
    facts |= {"hook": next(iter(hooks.values())).text, "them": tell("it") if count == 1 else tell("them")}
    return Advice(id_, fix(id_, "request", **facts), count, _hooks_patch(run.owner, hooks, needed), pause=seconds)


def let_the_proxy_end_first(count: int, run: Disruption, behind: Sequence[dict[str, Any]]) -> Advice:
    """Advise to keep the application behind the proxy serving until nobody sends to the Pod any more."""
    lag = max(max((life.routing_lag or 0.0 for life in run.lives), default=0.0), run.longest_lag)
    seconds = max(1, math.ceil(lag + SPARE_SECONDS))
    hooks = {each["name"]: waiting_hook(each, seconds, sleep_hooks=run.sleep_hooks) for each in behind}
    drain = _longest_drain(run.lives)
    grace = grace_of(run.owner)
    needed = max(grace, math.ceil(seconds + drain + SPARE_SECONDS))
    words = {
        "names": joined(hooks, " and "),
        "hook": next(iter(hooks.values())).text,
        "grace": _and_grace(needed) if needed > grace else "",
    }
    if any(hook.why_not for hook in hooks.values()):
        return Advice("serverError", fix("serverError"), count)
    return Advice("serverError", fix("serverError", "proxy", **words), count, _hooks_patch(run.owner, hooks, needed))


def sleep_patch(owner: dict[str, Any], seconds: int, grace: int, *, sleep_hooks: bool = True) -> dict[str, Any]:
    """Return a strategic merge patch: the containers that serve wait so long before they are asked to stop (0: not at
    all), each with what its hook does besides. The grace period is `grace` where the owner's is shorter."""
    spec = owner["spec"]["template"]["spec"]
    hooks = {each["name"]: waiting_hook(each, seconds, sleep_hooks=sleep_hooks) for each in declared_serving(spec)}
    return _hooks_patch(owner, hooks, grace)


def only_sleeps(owner: dict[str, Any]) -> bool:
    """Return whether the hooks of the containers that serve, if there are any, do nothing but wait."""
    return all(own_sleep(each) is not None for each in declared_serving(owner["spec"]["template"]["spec"]))


def own_wait(owner: dict[str, Any]) -> int | None:
    """Return the seconds that the longest of those hooks waits, 0 without one; None where one does something else."""
    sleeps = [own_sleep(each) for each in declared_serving(owner["spec"]["template"]["spec"])]
    return None if None in sleeps else max((each for each in sleeps if each is not None), default=0)


def _pod_spec(owner: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = owner["spec"]["template"]["spec"]
    return found


def _lag(lives: Sequence[PodLife]) -> float:
    """How late the last sender learned of a Pod's end, in seconds after its DELETE."""
    return max((life.routing_lag or 0.0 for life in replaced(lives) or lives), default=0.0)


def _pause_seconds(run: Disruption) -> int:
    return max(1, math.ceil(max(_lag(run.lives), run.longest_lag) + SPARE_SECONDS))


def _longest_hook(lives: Sequence[PodLife]) -> float:
    """From the begin of a Pod's hook to its stop signal, in seconds."""
    return max((life.term.since(life.hook) for life in lives if life.term and life.hook), default=0.0)


def _pause_facts(run: Disruption, needed: int, lag: float) -> dict[str, str]:
    """What a sentence says beside the hook: the grace period that it needs, and the lag."""
    later = tell(" (it may be $seconds s)", seconds=f"{run.longest_lag:.3g}") if run.longest_lag > lag else ""
    return {"grace": _and_grace(needed) if grace_of(run.owner) < needed else "", "lag": f"{lag:.2f}", "later": later}


def _and_grace(seconds: int) -> str:
    return tell(" and terminationGracePeriodSeconds: $seconds", seconds=seconds)


def failed_hook(lives: Sequence[PodLife], containers: Collection[str]) -> dict[str, str]:
    """Return the container of these whose preStop hook failed in every Pod that ended, and how; {} for none."""
    ends = [
        (each.container, each.facts_as(kinds.PRE_STOP_FINISHED))
        for life in lives
        for each in life.records
        if each.kind == kinds.PRE_STOP_FINISHED and each.container in containers
    ]
    if not ends or any(facts.get("outcome") != "failed" for _, facts in ends):
        return {}
    name, facts = ends[-1]
    code = facts.get("exitCode")
    message = tell("$message", message=hook_failure(str(facts.get("message") or "")))
    return {"name": name, "because": tell("exit code $code", code=code) if code else message}


def _longest_drain(lives: Sequence[PodLife]) -> float:
    """From a Pod's stop signal to its exit, in seconds."""
    return max((life.exited.since(life.term) for life in lives if life.exited and life.term), default=0.0)


def _hooks_of_others(pod_spec: dict[str, Any], serving: str) -> list[str]:
    """The containers that have a preStop hook, where the one that serves has none."""
    hooked = [each["name"] for each in pod_spec["containers"] if (each.get("lifecycle") or {}).get("preStop")]
    return [] if serving in hooked else hooked


def _hooks_patch(owner: dict[str, Any], hooks: dict[str, WaitingHook], grace: int) -> dict[str, Any]:
    changed = [(name, hook.patch) for name, hook in hooks.items() if not hook.why_not]
    patch: dict[str, Any] = {"containers": [{"name": n, "lifecycle": {"preStop": hook}} for n, hook in changed]}
    if grace_of(owner) < grace:
        patch["terminationGracePeriodSeconds"] = grace
    return in_template(patch)


def _in_a_hurry(pod_spec: dict[str, Any], seconds: int) -> list[dict[str, Any]]:
    """Those of them that do not sleep so long already; all where each does."""
    serving = declared_serving(pod_spec)
    return [each for each in serving if (own_sleep(each) or 0) < seconds] or serving


def replaced(lives: Sequence[PodLife]) -> list[PodLife]:
    """Return the Pods that another one could replace when they were asked to stop. With none the rules go on naming one
    that ends: how long they do is not a lag, and no hook changes it."""
    ended = [(life, life.signalled.latest) for life in lives if life.signalled is not None]
    return [
        life for life, at in ended if len(lives) < 2 or any(other.listens(at) for other in lives if other is not life)
    ]
