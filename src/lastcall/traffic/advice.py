"""The smallest change of a manifest, or of a program, that would have saved the lost requests. Pure."""

# check: pure

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lastcall.endings import CATALOGUE, ProgramChange, fix, is_shell_program
from lastcall.records import kinds
from lastcall.records.said import joined
from lastcall.traffic.account import Account
from lastcall.traffic.causes import CAUSE_IDS, Cause
from lastcall.traffic.lives import PodLife
from lastcall.traffic.lost_request import LostRequest
from lastcall.traffic.moments import SKEW_SECONDS, is_over
from lastcall.traffic.outcome import LONG_LIVED, Kind
from lastcall.traffic.pauses import failed_hook, let_the_proxy_end_first, replaced, sleep_before_stop, wait_before_quit
from lastcall.traffic.probe_advice import probe_the_application, probe_the_port
from lastcall.traffic.proposal import Advice, Disruption, declared_serving
from lastcall.traffic.time_advice import more_time


def advise(run: Disruption) -> list[Advice]:
    """Return the changes that would have saved the lost requests, what saves most first."""
    account, lives, owner = run.account, run.lives, run.owner
    found: list[Advice] = []
    # What lasts for long outlives any hook: it is cut off whenever the application leaves. So do kept connections.
    goodbyes = Counter((each.cause, each.outcome.kind) for each in account.lost if _wants_a_goodbye(each))
    counts = Counter(each.cause for each in account.lost if not _wants_a_goodbye(each))
    cut = counts["cut off"] + counts["never read"]
    if counts["not ready yet"]:
        pass  # its Service names a Pod until its exit: senders never learn of the DELETE, however long a hook waits
    elif counts["late endpoint"]:
        found.append(sleep_before_stop(counts["late endpoint"] + cut, run))
    elif cut:
        found.append(_drain(cut, run))
    if found and found[0].id == "lateEndpoint" and counts["never read"] > counts["late endpoint"] + counts["cut off"]:
        found[0] = replace(found[0], id=CAUSE_IDS["never read"])  # named after what it saves most of
    if quits := counts["closed by its hook"]:
        found.append(wait_before_quit(quits, run))
    found += [_goodbye(cause, kind, count) for (cause, kind), count in goodbyes.most_common()]
    for cause, count in counts.most_common():
        if cause == "killed":
            found.append(more_time(account, count, lives, owner))
        elif cause == "not listening yet":
            found.append(probe_the_port(count, owner, run.port))
        elif cause == "not serving yet":
            found.append(probe_the_application(count, owner, run.port, run.path))
        elif cause == "no endpoint":
            unready = any(life.unready for life in lives)
            found.append(_never_unready(count) if unready else _never_fewer(count, owner, run.disrupt))
        elif cause == "server error":
            found.append(_errors(count, run))
        elif cause == "cut at a limit":
            found.append(announce(account, count))
        elif cause in ("crashed", "restarted", "not ready yet"):
            program: ProgramChange | None = "fixCrash" if cause == "crashed" else None
            found.append(Advice(CAUSE_IDS[cause], fix(CAUSE_IDS[cause]), count, program=program))
    return sorted(found, key=lambda each: -each.saves)


def too_early(run: Disruption) -> Advice | None:
    """Advise on what was lost before the disruption: Pods were Ready too early, or connections have a limit.

    A probe of the application waits for the port, too.
    """
    account, owner = run.account, run.owner
    if account.not_serving_yet:
        return probe_the_application(account.not_listening_yet + account.not_serving_yet, owner, run.port, run.path)
    if account.not_listening_yet:
        return probe_the_port(account.not_listening_yet, owner, run.port)
    return announce(account, account.cut_at_limit) if account.cut_at_limit else None


def _goodbye(cause: Cause, kind: Kind, count: int) -> Advice:
    """What the application has to say to its clients, by kind of request."""
    if kind in CATALOGUE["cutOff"].fixes:
        return Advice(CAUSE_IDS[cause], fix("cutOff", kind), count, program="endStreams")
    return Advice(CAUSE_IDS[cause], fix("staleConnection"), count, program="closeIdleConnections")


def announce(account: Account, count: int) -> Advice:
    """Advise what a server has to say before it closes a connection at its limit."""
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
_ENDING = [phase for phase, ending in _ENDS.items() if ending]
MOST_NAMED = 4
"""Causes in a verdict, and Pods in an advice."""


def _behind_a_proxy(run: Disruption) -> list[dict[str, Any]]:
    """The containers that a proxy in their own Pod passes requests on to, and that end before it. Of that speak errors
    of a gateway, each from a Pod in which a container that requests do not go to had stopped listening by then."""
    behind: set[str] = set()
    for each in run.account.lost:
        if each.cause != "server error":
            continue
        those = (life.behind for life in run.lives if life.name == each.pod and each.phase in _ENDING)
        moments = next(those, {})
        gone = {name for name, at in moments.items() if is_over(at, each.outcome.finished + SKEW_SECONDS)}
        if not gone or each.outcome.status not in PROXY_ERRORS:
            return []
        behind |= gone
    return [each for each in run.owner["spec"]["template"]["spec"]["containers"] if each["name"] in behind]


def _errors(count: int, run: Disruption) -> Advice:
    """What to do about answers that are errors, by whose they are and when they came."""
    if behind := _behind_a_proxy(run):
        return let_the_proxy_end_first(count, run, behind)
    if statuses := _refuses_while_it_ends(run.account, run.lives):
        pause = sleep_before_stop(count, run)
        words = joined([fix("serverError", "draining", status=statuses), pause.sentence], " ")
        return replace(pause, id="serverError", sentence=words)
    return _see_the_log(run.account, count)


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
    if not all(pods) or None in ended or len(ended) > 1 or len(pods) > MOST_NAMED:
        return Advice("serverError", fix("serverError"), count, program="fixServer")
    sentence = fix("serverError", "ending" if ended == {True} else "serving", pods=joined(pods, " and "))
    return Advice("serverError", sentence, count, program="fixServer")


def _drain(count: int, run: Disruption) -> Advice:
    """What was cut off came while the rules still named the Pod, or is the application's own to finish."""
    old = replaced(run.lives)
    if any(life.term and life.unrouted and life.unrouted.since(life.term) > 0 for life in old):
        return sleep_before_stop(count, run)
    left = _left_behind(old)
    if left:
        return Advice("cutOff", fix("cutOff", "left", **left), count, program="passSignalOn")
    if container := _ended_by_its_shell(old):
        return Advice("cutOff", fix("cutOff", "shell", container=container), count, program="passSignalOn")
    serving = {each["name"] for each in declared_serving(run.owner["spec"]["template"]["spec"])}
    if failed := failed_hook(old, serving):
        return Advice("cutOff", fix("cutOff", "hookFailed", **failed), count, program="fixHook")
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
