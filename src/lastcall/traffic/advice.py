"""The smallest change of a manifest that would have saved the lost requests, and the verdict in a sentence. Pure."""

# check: pure

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from lastcall.endings import CATALOGUE, ProgramChange, fix, is_shell_program, said
from lastcall.records import kinds
from lastcall.records.said import Said, fact_of, joined, tell
from lastcall.traffic.account import Account
from lastcall.traffic.advice_check import why_not
from lastcall.traffic.bounds import percentage
from lastcall.traffic.causes import CAUSE_IDS, WHY, Cause
from lastcall.traffic.hooks import WaitingHook, own_sleep, waiting_hook
from lastcall.traffic.lives import PodLife
from lastcall.traffic.lost_request import LostRequest
from lastcall.traffic.moments import SKEW_SECONDS, is_over
from lastcall.traffic.outcome import LONG_LIVED, Kind
from lastcall.traffic.patches import merged
from lastcall.traffic.probe_advice import probe_the_application, probe_the_port
from lastcall.traffic.proposal import (
    SPARE_SECONDS,
    Advice,
    container_behind,
    declared_serving,
    grace_of,
    in_template,
)
from lastcall.traffic.shares import NeverAnswered
from lastcall.traffic.time_advice import more_time

Verdict = Literal["nothing lost", "requests lost", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    sentence: str
    advice: tuple[Advice, ...]

    @property
    def patch(self) -> dict[str, Any]:
        """Return all that a manifest can do, as one; {} when it can do nothing."""
        return merged(each.patch for each in self.advice)

    @property
    def pause(self) -> int:
        """Return the seconds that a preStop hook is to wait, 0 where none has to."""
        return max((each.pause for each in self.advice), default=0)


def judge(
    account: Account,
    lives: Sequence[PodLife],
    owner: dict[str, Any],
    port: int | str,
    *,
    sleep_hooks: bool = True,
    longest_lag: float = 0.0,
    disrupt: str = "rollout",
    path: str = "/",
) -> Judgement:
    """Judge a run. `owner` is the Deployment (or other owner of Pods) as it was; `port` the container's port of the
    Service; `sleep_hooks` whether this Kubernetes has preStop hooks that sleep (1.30 on); `longest_lag` how late, in
    seconds, a
    change of endpoints may usually be, which may be more than what was seen; `disrupt` what was done; `path`
    what requests ask for. Advice whose patch does not hold is given without it."""
    never = joined(map(_never_answered, account.never_answered), "; ")
    if never and not account.control_lost:
        return Judgement("inconclusive", never, ())
    if (account.lost or account.control_lost) and (busy := _too_busy(account)):
        return Judgement("inconclusive", busy, ())
    early = _too_early(account, owner, port, path)
    explained = early is not None and early.saves == account.control_lost
    by_limit = early is not None and early.id == "connectionLimitCuts"
    if account.control_lost and (by_limit or not (explained and account.lost)):
        before = tell(
            "$count of $total requests were lost before anything was disrupted ($how)",
            count=account.control_lost,
            total=account.control_total,
            how=_control_losses(account),
        )
        if early is None:
            first = tell("$before: fix that first", before=before)
            return Judgement("inconclusive", joined([first, never], "; "), ())
        early = checked(early, owner)
        which = _of_them(said(early.id), early.saves, account.control_lost if explained else 0)
        return Judgement("inconclusive", with_advice(joined([before, which], ", "), early.sentence), (early,))
    unmeasured = _unmeasured(account)
    if unmeasured and not account.lost:
        return Judgement("inconclusive", tell("$what: try again on a machine that is less busy", what=unmeasured), ())
    share = tell("at most $most with 95 % confidence", most=percentage(account.upper_bound))
    if not account.lost:
        none = tell("none of $total requests was lost ($share)", total=account.total, share=share)
        return Judgement("nothing lost", none, ())
    causes = account.causes
    most, _ = causes[0]
    advice = tuple(
        checked(each, owner) for each in _advice(account, lives, owner, port, sleep_hooks, longest_lag, disrupt, path)
    )
    if early is not None and not any(each.id == early.id for each in advice):
        advice = (*advice, checked(early, owner))
    lost = len(account.lost)
    facts = {"lost": lost, "total": account.total, "share": share}
    parts: list[str] = [
        tell("$lost of $total requests was lost ($share)", **facts)
        if lost == 1
        else tell("$lost of $total requests were lost ($share)", **facts),
        tell("it was $cause", cause=WHY[most])
        if lost == 1
        else joined([_of_them(WHY[cause], count, lost) for cause, count in causes[:_MOST_NAMED]], ", "),
    ]
    if early is not None:
        parts.append(tell("$count more were before the disruption, when the Pods were started", count=early.saves))
    sentence = joined([*parts, unmeasured], "; ")
    return Judgement("requests lost", with_advice(sentence, advice[0].sentence) if advice else sentence, advice)


def _too_busy(account: Account) -> str:
    """Say that most requests came so late, or were measured so badly, that the others show nothing; "" for enough."""
    missed = account.held_up + len(account.unmeasured) + len(account.without_outcome)
    planned = account.total + account.control_total + len(account.unmeasured) + len(account.without_outcome)
    if missed * 2 <= planned:
        return ""
    return tell(
        "this machine was too busy: $missed of $planned requests could not be sent when they were due, or not be "
        "measured, so that the others show nothing: try a lower --load, or a machine that is less busy",
        missed=missed,
        planned=planned,
    )


def _of_them(why: str, count: int, lost: int) -> str:
    """Which of those that were lost had this cause."""
    return tell("all of them $why", why=why) if count == lost else tell("$count of them $why", count=count, why=why)


def with_advice(sentence: str, advice: str) -> str:
    """Return a verdict that ends with the first advice; in place of another one that it ended with."""
    if isinstance(sentence, Said) and sentence.template == "$sentence. $advice":
        sentence = fact_of(sentence, "sentence")
    return tell("$sentence. $advice", sentence=sentence, advice=advice)


def checked(advice: Advice, owner: dict[str, Any]) -> Advice:
    """The advice, without its patch where that does not hold for the owner."""
    return refused(advice, why_not(owner, advice.patch)) if advice.patch else advice


def refused(advice: Advice, why: str) -> Advice:
    """Return the advice without its patch; "" for why leaves it as it is."""
    if not why:
        return advice
    sentence = tell("$advice It cannot be tried here: $why.", advice=advice.sentence, why=why)
    return replace(advice, sentence=sentence, patch={}, refused=why)


ASKS: dict[Kind, str] = {
    "fresh": tell("set the path with --path, the port with --port"),
    "keep-alive": tell("set the path with --path, the port with --port"),
    "slow": tell("set the path with --slow-path"),
    "tcp": tell("each sends a line and expects the same line back, without HTTP"),
    "stream": tell("set the path with --stream-path"),
    "websocket": tell("set the path with --websocket-path"),
    "http2": tell("they are HTTP/2 with prior knowledge (h2c)"),
}


def _never_answered(never: NeverAnswered) -> str:
    facts = {"kind": never.kind, "how": never.lost, "ask": ASKS[never.kind]}
    if never.count == 1:
        return tell(
            "the only $kind request was not answered ($how), not even by Pods that nothing ended: check that the "
            "application speaks that kind ($ask)",
            **facts,
        )
    return tell(
        "none of $count $kind ones was answered ($how), not even by Pods that nothing ended: check that the "
        "application speaks that kind ($ask)",
        count=never.count,
        **facts,
    )


def _control_losses(account: Account) -> str:
    return ", ".join(f"{count} {kind}: {how}" for (kind, how), count in account.control_losses[:3])


def _unmeasured(account: Account) -> str:
    """What is not known because the client was held up; "" for all is known."""
    if account.without_outcome:
        count = len(account.without_outcome)
        return tell("1 request has no outcome") if count == 1 else tell("$count requests have no outcome", count=count)
    if not account.unmeasured:
        return ""
    longest = max(max(each.held_up, each.sent - each.planned) for each in account.unmeasured)
    count = len(account.unmeasured)
    if count == 1:
        return tell(
            "1 request was not measured, because the load generator itself was held up for $seconds s",
            seconds=f"{longest:.1f}",
        )
    return tell(
        "$count requests were not measured, because the load generator itself was held up for $seconds s",
        count=count,
        seconds=f"{longest:.1f}",
    )


def _advice(
    account: Account,
    lives: Sequence[PodLife],
    owner: dict[str, Any],
    port: int | str,
    sleep_hooks: bool,
    longest_lag: float,
    disrupt: str,
    path: str,
) -> list[Advice]:
    found: list[Advice] = []
    # What lasts for long outlives any hook: it is cut off whenever the application leaves. So do kept connections.
    goodbyes = Counter((each.cause, each.outcome.kind) for each in account.lost if _wants_a_goodbye(each))
    counts = Counter(each.cause for each in account.lost if not _wants_a_goodbye(each))
    cut = counts["cut off"] + counts["never read"]
    if counts["not ready yet"]:
        pass  # its Service names a Pod until its exit: senders never learn of the DELETE, however long a hook waits
    elif counts["late endpoint"]:
        found.append(_sleep_before_stop(counts["late endpoint"] + cut, lives, owner, port, sleep_hooks, longest_lag))
    elif cut:
        found.append(_drain(cut, lives, owner, port, sleep_hooks, longest_lag))
    if found and found[0].id == "lateEndpoint" and counts["never read"] > counts["late endpoint"] + counts["cut off"]:
        found[0] = replace(found[0], id=CAUSE_IDS["never read"])  # named after what it saves most of
    if quits := counts["closed by its hook"]:
        found.append(_wait_before_quit(quits, lives, owner, port, sleep_hooks, longest_lag))
    found += [_goodbye(cause, kind, count) for (cause, kind), count in goodbyes.most_common()]
    for cause, count in counts.most_common():
        if cause == "killed":
            found.append(more_time(account, count, lives, owner))
        elif cause == "not listening yet":
            found.append(probe_the_port(count, owner, port))
        elif cause == "not serving yet":
            found.append(probe_the_application(count, owner, port, path))
        elif cause == "no endpoint":
            unready = any(life.unready for life in lives)
            found.append(_never_unready(count) if unready else _never_fewer(count, owner, disrupt))
        elif cause == "server error":
            found.append(_errors(account, count, lives, owner, port, sleep_hooks, longest_lag))
        elif cause == "cut at a limit":
            found.append(_announce(account, count))
        elif cause in ("crashed", "restarted", "not ready yet"):
            program: ProgramChange | None = "fixCrash" if cause == "crashed" else None
            found.append(Advice(CAUSE_IDS[cause], fix(CAUSE_IDS[cause]), count, program=program))
    return sorted(found, key=lambda each: -each.saves)


def _goodbye(cause: Cause, kind: Kind, count: int) -> Advice:
    """What the application has to say to its clients, by kind of request."""
    if kind in CATALOGUE["cutOff"].fixes:
        return Advice(CAUSE_IDS[cause], fix("cutOff", kind), count, program="endStreams")
    return Advice(CAUSE_IDS[cause], fix("staleConnection"), count, program="closeIdleConnections")


def _announce(account: Account, count: int) -> Advice:
    """What a server has to say before it closes a connection at its limit."""
    limit = account.limit
    assert limit is not None
    sentence = fix("connectionLimitCuts", limit.of, value=f"{limit.value:.3g}")
    return Advice("connectionLimitCuts", sentence, count, program="finishRequests")


def _wants_a_goodbye(lost: LostRequest) -> bool:
    """Whether only what the application says to its client would have saved it.

    A program that waits for streams until it is killed waits for what may have no end: that more time would do is not
    shown by a stream that the client itself ended.
    """
    if lost.cause in ("stale connection", "held open"):
        return True
    if lost.cause == "killed":
        return lost.outcome.kind in LONG_LIVED
    return lost.cause == "cut off" and lost.outcome.kind in (*LONG_LIVED, "http2")


PROXY_ERRORS = (502, 503, 504)
_ENDS = {"preStop hook": True, "draining": True, "ready": False, "before it was ready": False}
"""Phase of a Pod → whether it was ending; of others it is not known what an answer had to do with it."""
_MOST_NAMED = 4


def _behind_a_proxy(account: Account, lives: Sequence[PodLife], owner: dict[str, Any]) -> list[dict[str, Any]]:
    """The containers that a proxy in their own Pod passes requests on to, and that end before it. Of that speak errors
    of a gateway, each from a Pod in which a container that requests do not go to had stopped listening by then."""
    behind: set[str] = set()
    for each in account.lost:
        if each.cause != "server error":
            continue
        moments = next((life.behind for life in lives if life.name == each.pod and each.phase == "draining"), {})
        gone = {name for name, at in moments.items() if is_over(at, each.outcome.finished + SKEW_SECONDS)}
        if not gone or each.outcome.status not in PROXY_ERRORS:
            return []
        behind |= gone
    return [each for each in owner["spec"]["template"]["spec"]["containers"] if each["name"] in behind]


def _errors(
    account: Account,
    count: int,
    lives: Sequence[PodLife],
    owner: dict[str, Any],
    port: int | str,
    sleep_hooks: bool,
    longest_lag: float,
) -> Advice:
    """What to do about answers that are errors, by whose they are and when they came."""
    if behind := _behind_a_proxy(account, lives, owner):
        return _let_the_proxy_end_first(count, lives, owner, behind, sleep_hooks, longest_lag)
    if statuses := _refuses_while_it_ends(account, lives):
        pause = _sleep_before_stop(count, lives, owner, port, sleep_hooks, longest_lag)
        words = joined([fix("serverError", "draining", status=statuses), pause.sentence], " ")
        return replace(pause, id="serverError", sentence=words)
    return _see_the_log(account, count)


def _refuses_while_it_ends(account: Account, lives: Sequence[PodLife]) -> str:
    """Return the statuses of errors that all came after a stop signal and while the rules still named the Pod; "" for
    others: a pause before the signal would not have saved them."""
    errors = [each for each in account.lost if each.cause == "server error"]
    by_name = {life.name: life for life in lives}
    for each in errors:
        life = by_name.get(each.pod)
        unrouted = life.unrouted if life is not None else None
        if life is None or unrouted is None or each.outcome.sent > unrouted.latest + SKEW_SECONDS:
            return ""
        if each.phase != "draining" or not is_over(life.signalled, each.outcome.finished + SKEW_SECONDS):
            return ""
    return ", ".join(sorted({str(each.outcome.status) for each in errors}))


def _see_the_log(account: Account, count: int) -> Advice:
    """Advise to read the log; name whose, and whether those Pods were ending, if all these requests have that."""
    errors = [each for each in account.lost if each.cause == "server error"]
    pods = sorted({each.pod for each in errors})
    ended = {_ENDS.get(each.phase) for each in errors}
    if not all(pods) or None in ended or len(ended) > 1 or len(pods) > _MOST_NAMED:
        return Advice("serverError", fix("serverError"), count, program="fixServer")
    sentence = fix("serverError", "ending" if ended == {True} else "serving", pods=joined(pods, " and "))
    return Advice("serverError", sentence, count, program="fixServer")


def _let_the_proxy_end_first(
    count: int,
    lives: Sequence[PodLife],
    owner: dict[str, Any],
    behind: Sequence[dict[str, Any]],
    sleep_hooks: bool,
    longest_lag: float,
) -> Advice:
    """The application behind the proxy goes on serving until nobody sends to the Pod any more."""
    lag = max(max((life.routing_lag or 0.0 for life in lives), default=0.0), longest_lag)
    seconds = max(1, math.ceil(lag + SPARE_SECONDS))
    hooks = {each["name"]: waiting_hook(each, seconds, sleep_hooks=sleep_hooks) for each in behind}
    drain = _longest_drain(lives)
    grace = grace_of(owner)
    needed = max(grace, math.ceil(seconds + drain + SPARE_SECONDS))
    words = {
        "names": joined(hooks, " and "),
        "hook": next(iter(hooks.values())).text,
        "grace": _and_grace(needed) if needed > grace else "",
    }
    if any(hook.why_not for hook in hooks.values()):
        return Advice("serverError", fix("serverError"), count)
    return Advice("serverError", fix("serverError", "proxy", **words), count, _hooks_patch(owner, hooks, needed))


def _drain(
    count: int,
    lives: Sequence[PodLife],
    owner: dict[str, Any],
    port: int | str,
    sleep_hooks: bool,
    longest_lag: float,
) -> Advice:
    """What was cut off came while the rules still named the Pod, or is the application's own to finish."""
    replaced = _replaced(lives)
    if any(life.term and life.unrouted and life.unrouted.since(life.term) > 0 for life in replaced):
        return _sleep_before_stop(count, lives, owner, port, sleep_hooks, longest_lag)
    left = _left_behind(replaced)
    if left:
        return Advice("cutOff", fix("cutOff", "left", **left), count, program="passSignalOn")
    if container := _ended_by_its_shell(replaced):
        return Advice("cutOff", fix("cutOff", "shell", container=container), count, program="passSignalOn")
    return Advice("cutOff", fix("cutOff"), count, program="finishRequests")


def _ended_by_its_shell(lives: Sequence[PodLife]) -> str:
    """Return the container whose PID 1 is a shell that handles the stop signal: its end is the shell's, not that of the
    program that serves; "" for none."""
    for record in (each for life in lives for each in life.records if each.kind == kinds.PROCESS_SIGNAL_STATE):
        facts = record.facts_as(kinds.PROCESS_SIGNAL_STATE)
        if facts.get("disposition") == "handled" and is_shell_program(facts.get("exe") or ""):
            return record.container
    return ""


def _left_behind(lives: Sequence[PodLife]) -> dict[str, str]:
    """Programs that had run since before the stop signal, and that the kernel killed when their PID 1 exited on it; {}
    for none."""
    for record in (each for life in lives for each in life.records if each.kind == kinds.PROCESSES_LEFT):
        facts = record.facts_as(kinds.PROCESSES_LEFT)
        those = [each for each in facts.get("processes") or () if not each.get("afterSignal")]
        names = dict.fromkeys(str(each.get("name")) for each in those if each.get("state") != "Z")
        if facts.get("when") == "exit" and names:
            return {"container": record.container, "names": joined(names, " and ")}
    return {}


def _sleep_before_stop(
    count: int,
    lives: Sequence[PodLife],
    owner: dict[str, Any],
    port: int | str,
    sleep_hooks: bool,
    longest_lag: float,
) -> Advice:
    lag, seconds = _lag(lives), _pause_seconds(lives, longest_lag)
    spec = _pod_spec(owner)
    hooks = {each["name"]: waiting_hook(each, seconds, sleep_hooks=sleep_hooks) for each in _in_a_hurry(spec, seconds)}
    kept = _longest_hook(lives) if any(hook.keeps for hook in hooks.values()) else 0.0
    needed = math.ceil(seconds + kept + _longest_drain(lives) + SPARE_SECONDS)
    facts = _pause_facts(owner, needed, lag, longest_lag)
    if why := next((hook.why_not for hook in hooks.values() if hook.why_not), ""):
        sentence = fix("lateEndpoint", "hookThere", seconds=seconds, why=why, **facts)
        return Advice("lateEndpoint", sentence, count, pause=seconds)
    facts |= {"hook": next(iter(hooks.values())).text, "them": tell("it") if count == 1 else tell("them"), "on": ""}
    misplaced, name = "", container_behind(spec, port)["name"]
    if name in hooks and (others := _hooks_of_others(spec, name)):
        misplaced = fix("lateEndpoint", "hookElsewhere", others=joined(others, " and "), name=name, port=port)
        facts |= {"hook": hooks[name].text, "on": tell(" on $container", container=name)}
    sentence = joined([misplaced, fix("lateEndpoint", **facts)], "")
    return Advice("lateEndpoint", sentence, count, _hooks_patch(owner, hooks, needed), pause=seconds)


def _wait_before_quit(
    count: int,
    lives: Sequence[PodLife],
    owner: dict[str, Any],
    port: int | str,
    sleep_hooks: bool,
    longest_lag: float,
) -> Advice:
    """The hooks that made a program stop listening do so later: what else they do, and how long, stays."""
    id_, seconds, spec = CAUSE_IDS["closed by its hook"], _pause_seconds(lives, longest_lag), _pod_spec(owner)
    those = [each for each in declared_serving(spec) if own_sleep(each) is None] or [container_behind(spec, port)]
    hooks = {each["name"]: waiting_hook(each, seconds, sleep_hooks=sleep_hooks) for each in those}
    needed = math.ceil(seconds + _longest_hook(lives) + _longest_drain(lives) + SPARE_SECONDS)
    facts = {**_pause_facts(owner, needed, _lag(lives), longest_lag), "name": joined(hooks, " and ")}
    if any(hook.why_not for hook in hooks.values()):
        sentence = fix(id_, "notShell", seconds=seconds, **facts)
        return Advice(id_, sentence, count, program="fixHook", pause=seconds)
    facts |= {"hook": next(iter(hooks.values())).text, "them": tell("it") if count == 1 else tell("them")}
    return Advice(id_, fix(id_, "request", **facts), count, _hooks_patch(owner, hooks, needed), pause=seconds)


def _pod_spec(owner: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = owner["spec"]["template"]["spec"]
    return found


def _lag(lives: Sequence[PodLife]) -> float:
    """How late the last sender learned of a Pod's end, in seconds after its DELETE."""
    return max((life.routing_lag or 0.0 for life in _replaced(lives) or lives), default=0.0)


def _pause_seconds(lives: Sequence[PodLife], longest_lag: float) -> int:
    return max(1, math.ceil(max(_lag(lives), longest_lag) + SPARE_SECONDS))


def _longest_hook(lives: Sequence[PodLife]) -> float:
    """From the begin of a Pod's hook to its stop signal, in seconds."""
    return max((life.term.since(life.hook) for life in lives if life.term and life.hook), default=0.0)


def _pause_facts(owner: dict[str, Any], needed: int, lag: float, longest_lag: float) -> dict[str, str]:
    """What a sentence says beside the hook: the grace period that it needs, and the lag."""
    later = tell(" (it may be $seconds s)", seconds=f"{longest_lag:.3g}") if longest_lag > lag else ""
    return {"grace": _and_grace(needed) if grace_of(owner) < needed else "", "lag": f"{lag:.2f}", "later": later}


def _and_grace(seconds: int) -> str:
    return tell(" and terminationGracePeriodSeconds: $seconds", seconds=seconds)


def _replaced(lives: Sequence[PodLife]) -> list[PodLife]:
    """Return the Pods that another one could replace when they were asked to stop. With none the rules go on naming one
    that ends: how long they do is not a lag, and no hook changes it."""
    ended = [(life, life.signalled.latest) for life in lives if life.signalled is not None]
    return [
        life for life, at in ended if len(lives) < 2 or any(other.listens(at) for other in lives if other is not life)
    ]


def _longest_drain(lives: Sequence[PodLife]) -> float:
    """From a Pod's stop signal to its exit, in seconds."""
    return max((life.exited.since(life.term) for life in lives if life.exited and life.term), default=0.0)


def _hooks_of_others(pod_spec: dict[str, Any], serving: str) -> list[str]:
    """The containers that have a preStop hook, where the one that serves has none."""
    hooked = [each["name"] for each in pod_spec["containers"] if (each.get("lifecycle") or {}).get("preStop")]
    return [] if serving in hooked else hooked


def sleep_patch(owner: dict[str, Any], seconds: int, grace: int, *, sleep_hooks: bool = True) -> dict[str, Any]:
    """Return a strategic merge patch: the containers that serve wait so long before they are asked to stop (0: not at
    all), each with what its hook does besides. The grace period is `grace` where the owner's is shorter."""
    spec = owner["spec"]["template"]["spec"]
    hooks = {each["name"]: waiting_hook(each, seconds, sleep_hooks=sleep_hooks) for each in declared_serving(spec)}
    return _hooks_patch(owner, hooks, grace)


def _hooks_patch(owner: dict[str, Any], hooks: dict[str, WaitingHook], grace: int) -> dict[str, Any]:
    changed = [(name, hook.patch) for name, hook in hooks.items() if not hook.why_not]
    patch: dict[str, Any] = {"containers": [{"name": n, "lifecycle": {"preStop": hook}} for n, hook in changed]}
    if grace_of(owner) < grace:
        patch["terminationGracePeriodSeconds"] = grace
    return in_template(patch)


def only_sleeps(owner: dict[str, Any]) -> bool:
    """Return whether the hooks of the containers that serve, if there are any, do nothing but wait."""
    return all(own_sleep(each) is not None for each in declared_serving(owner["spec"]["template"]["spec"]))


def own_wait(owner: dict[str, Any]) -> int | None:
    """Return the seconds that the longest of those hooks waits, 0 without one; None where one does something else."""
    sleeps = [own_sleep(each) for each in declared_serving(owner["spec"]["template"]["spec"])]
    return None if None in sleeps else max((each for each in sleeps if each is not None), default=0)


def _in_a_hurry(pod_spec: dict[str, Any], seconds: int) -> list[dict[str, Any]]:
    """Those of them that do not sleep so long already; all where each does."""
    serving = declared_serving(pod_spec)
    return [each for each in serving if (own_sleep(each) or 0) < seconds] or serving


def _too_early(account: Account, owner: dict[str, Any], port: int | str, path: str) -> Advice | None:
    """For what was lost before the disruption, since Pods were Ready too early, or since connections have a limit. A
    probe of the application waits for the port, too."""
    if account.not_serving_yet:
        return probe_the_application(account.not_listening_yet + account.not_serving_yet, owner, port, path)
    if account.not_listening_yet:
        return probe_the_port(account.not_listening_yet, owner, port)
    return _announce(account, account.cut_at_limit) if account.cut_at_limit else None


def _never_unready(count: int) -> Advice:
    return Advice("noEndpoint", fix("noEndpoint", "unready"), count)


def _never_fewer(count: int, owner: dict[str, Any], disrupt: str) -> Advice:
    """Only an update goes by the owner's strategy; whatever else takes a Pod away leaves the others."""
    spec, kind = owner["spec"], owner.get("kind")
    field = {"Deployment": "strategy", "DaemonSet": "updateStrategy"}.get(str(kind))
    if disrupt == "rollout" and field:
        rolling = (spec.get(field) or {}).get("rollingUpdate") or {}
        surge = rolling.get("maxSurge") or 0
        if not surge and (what := _for_one_pod(spec)):
            return Advice("noEndpoint", fix("noEndpoint", "oneAtATime", what=what), count)
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": surge or 1}}
        return Advice("noEndpoint", fix("noEndpoint"), count, {"spec": {field: strategy}})
    if kind == "DaemonSet":
        return Advice("noEndpoint", fix("noEndpoint", "daemonSet"), count)
    replicas = {"spec": {"replicas": spec.get("replicas", 1) + 1}}
    return Advice("noEndpoint", fix("noEndpoint", "replicas"), count, replicas)


def _for_one_pod(spec: dict[str, Any]) -> str:
    """What two Pods may not have at the same time, "" for nothing: a port of the node; and a claim, where the update
    ends the old Pod first (Recreate), because that is mostly why it does."""
    pod = spec["template"]["spec"]
    ports = [port["hostPort"] for each in pod["containers"] for port in each.get("ports") or () if port.get("hostPort")]
    if ports:
        return f"hostPort {ports[0]}"
    claims = [(each.get("persistentVolumeClaim") or {}).get("claimName") for each in pod.get("volumes") or ()]
    recreated = (spec.get("strategy") or {}).get("type") == "Recreate"
    return next((f"PersistentVolumeClaim {claim}" for claim in claims if claim and recreated), "")
