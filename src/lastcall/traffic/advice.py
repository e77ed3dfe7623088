"""The smallest change of a manifest that would have saved the lost requests, and the verdict in a sentence. Pure."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from lastcall.timeline.catalogue.lookup import CATALOGUE, fix
from lastcall.traffic.account import CAUSE_IDS, WHY, Account, LostRequest, NeverAnswered
from lastcall.traffic.bounds import percentage
from lastcall.traffic.lives import PodLife
from lastcall.traffic.outcome import LONG_LIVED, Kind
from lastcall.traffic.patches import merged

SPARE_SECONDS = 1.0
"""Beyond the longest lag that was seen: what is left over is what saves requests on a slower day."""

Verdict = Literal["nothing lost", "requests lost", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Advice:
    """`patch` is a strategic merge patch for the owner of the Pods, {} when no manifest can help. `saves` is how many
    of the lost requests it is for; `id` is their cause in the catalogue."""

    id: str
    sentence: str
    saves: int
    patch: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    sentence: str
    advice: tuple[Advice, ...]

    @property
    def patch(self) -> dict[str, Any]:
        """All that a manifest can do, as one; {} when it can do nothing."""
        return merged(each.patch for each in self.advice)


def judge(
    account: Account,
    lives: Sequence[PodLife],
    owner: dict[str, Any],
    port: int | str,
    *,
    sleep_hooks: bool = True,
    longest_lag: float = 0.0,
) -> Judgement:
    """`owner` is the Deployment (or other owner of Pods) as it was; `port` the container's port of the Service;
    `sleep_hooks` whether this Kubernetes has preStop hooks that sleep (1.30 on); `longest_lag` how late, in seconds, a
    change of endpoints may usually be, which may be more than what was seen."""
    never = "; ".join(map(_never_answered, account.never_answered))
    if never and not account.control_lost:
        return Judgement("inconclusive", never, ())
    if account.control_lost:
        return Judgement(
            "inconclusive",
            f"{account.control_lost} of {account.control_total} requests were lost before anything was disrupted "
            f"({_control_losses(account)}): mend that first{f'; {never}' if never else ''}",
            (),
        )
    unmeasured = _unmeasured(account)
    if unmeasured and not account.lost:
        return Judgement("inconclusive", f"{unmeasured}: try again on a machine that is less busy", ())
    share = f"at most {percentage(account.upper_bound)} with 95 % confidence"
    if not account.lost:
        return Judgement("nothing lost", f"none of {account.total} requests was lost ({share})", ())
    causes = account.causes
    most, count = causes[0]
    advice = tuple(_advice(account, lives, owner, port, sleep_hooks, longest_lag))
    lost = len(account.lost)
    whose = "it was" if lost == 1 else "all of them" if count == lost else f"{count} of them"
    sentence = f"{lost} of {account.total} requests {'was' if lost == 1 else 'were'} lost ({share}); "
    sentence += f"{whose} {WHY[most]}"
    sentence += f"; {unmeasured}" if unmeasured else ""
    return Judgement("requests lost", f"{sentence}. {advice[0].sentence}" if advice else sentence, advice)


_ASKS: dict[Kind, str] = {
    "fresh": "--path says what they ask for, --port where",
    "keep-alive": "--path says what they ask for, --port where",
    "slow": "--slow-path says what they ask for",
    "tcp": "each sends a line and wants the same line back, without HTTP",
    "stream": "--stream-path says what they ask for",
    "websocket": "--websocket-path says where they are opened",
    "http2": "they are HTTP/2 with prior knowledge (h2c)",
}


def _never_answered(never: NeverAnswered) -> str:
    all_ = (
        f"the only {never.kind} request was not" if never.count == 1 else f"none of {never.count} {never.kind} ones was"
    )
    return (
        f"{all_} answered ({never.lost}), not even by Pods that nothing ended: does the application speak that kind? "
        f"({_ASKS[never.kind]})"
    )


def _control_losses(account: Account) -> str:
    return ", ".join(f"{count} {kind}: {how}" for (kind, how), count in account.control_losses[:3])


def _unmeasured(account: Account) -> str:
    """What is not known because the client was held up; "" for all is known."""
    if account.without_outcome:
        count = len(account.without_outcome)
        return "1 request has no outcome" if count == 1 else f"{count} requests have no outcome"
    if not account.unmeasured:
        return ""
    longest = max(max(each.held_up, each.sent - each.planned) for each in account.unmeasured)
    count = len(account.unmeasured)
    what = "1 request was" if count == 1 else f"{count} requests were"
    return f"{what} not measured, for the load generator itself was held up for {longest:.1f} s"


def _advice(
    account: Account,
    lives: Sequence[PodLife],
    owner: dict[str, Any],
    port: int | str,
    sleep_hooks: bool,
    longest_lag: float,
) -> list[Advice]:
    found: list[Advice] = []
    # What lasts for long outlives any hook: it is cut off whenever the application leaves. So do kept connections.
    goodbyes = Counter(each.outcome.kind for each in account.lost if _wants_a_goodbye(each))
    counts = Counter(each.cause for each in account.lost if not _wants_a_goodbye(each))
    cut = counts["cut off"] + counts["never read"]
    if counts["late endpoint"]:
        found.append(_sleep_before_stop(counts["late endpoint"] + cut, lives, owner, sleep_hooks, longest_lag))
    elif cut:
        found.append(_drain(cut, lives, owner, sleep_hooks, longest_lag))
    found += [_goodbye(kind, count) for kind, count in goodbyes.most_common()]
    for cause, count in counts.most_common():
        if cause == "killed":
            found.append(_more_grace(account, count, lives, owner))
        elif cause == "not listening yet":
            found.append(_readiness_probe(count, owner, port))
        elif cause == "no endpoint":
            unready = any(life.unready for life in lives)
            found.append(_never_unready(count) if unready else _never_fewer(count, owner))
        elif cause in ("server error", "crashed", "restarted"):
            found.append(Advice(CAUSE_IDS[cause], fix(CAUSE_IDS[cause]), count))
    return sorted(found, key=lambda each: -each.saves)


def _goodbye(kind: Kind, count: int) -> Advice:
    """What the application has to say to its clients, by kind of request."""
    if kind in CATALOGUE["cutOff"].fixes:
        return Advice("cutOff", fix("cutOff", kind), count)
    return Advice("staleConnection", fix("staleConnection"), count)


def _wants_a_goodbye(lost: LostRequest) -> bool:
    """Whether only what the application says to its client would have saved it."""
    if lost.cause == "stale connection":
        return True
    return lost.cause == "cut off" and lost.outcome.kind in (*LONG_LIVED, "http2")


def _drain(
    count: int, lives: Sequence[PodLife], owner: dict[str, Any], sleep_hooks: bool, longest_lag: float
) -> Advice:
    """What was cut off came while the rules still named the Pod, or is the application's own to finish."""
    if any(life.term is not None and life.unrouted is not None and life.unrouted > life.term for life in lives):
        return _sleep_before_stop(count, lives, owner, sleep_hooks, longest_lag)
    return Advice("cutOff", fix("cutOff"), count)


def _sleep_before_stop(
    count: int, lives: Sequence[PodLife], owner: dict[str, Any], sleep_hooks: bool, longest_lag: float
) -> Advice:
    lag = max((life.routing_lag or 0.0 for life in lives), default=0.0)
    seconds = max(1, math.ceil(max(lag, longest_lag) + SPARE_SECONDS))
    spec = owner["spec"]["template"]["spec"]
    grace = int(spec.get("terminationGracePeriodSeconds", 30))
    drain = max((life.exited - life.term for life in lives if life.exited and life.term), default=0.0)
    needed = math.ceil(seconds + drain + SPARE_SECONDS)
    patch = sleep_patch(owner, seconds, needed if grace < needed else None, sleep_hooks=sleep_hooks)
    more = f" and terminationGracePeriodSeconds: {needed}" if grace < needed else ""
    hook = f"sleep: {{seconds: {seconds}}}" if sleep_hooks else f'exec: {{command: [sleep, "{seconds}"]}}'
    later = f" (it may be {longest_lag:.3g} s)" if longest_lag > lag else ""
    them = "it" if count == 1 else "them"
    sentence = fix("lateEndpoint", hook=hook, grace=more, them=them, lag=f"{lag:.2f}", later=later)
    return Advice("lateEndpoint", sentence, count, patch)


def sleep_patch(owner: dict[str, Any], seconds: int, grace: int | None, *, sleep_hooks: bool = True) -> dict[str, Any]:
    """A strategic merge patch: the containers that serve sleep so long before they are told to stop, or (0) have no
    preStop hook; `grace` is the grace period, None leaves it as it is."""
    serving = _serving(owner["spec"]["template"]["spec"])
    patch: dict[str, Any] = {"containers": [_with_sleep(each["name"], seconds, sleep_hooks) for each in serving]}
    if grace is not None:
        patch["terminationGracePeriodSeconds"] = grace
    return _in_template(patch)


def _serving(pod_spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The containers that say which ports they listen on; the first one where none does."""
    containers: list[dict[str, Any]] = pod_spec["containers"]
    return [each for each in containers if each.get("ports")] or containers[:1]


def _with_sleep(container: str, seconds: int, sleep_hooks: bool) -> dict[str, Any]:
    """`$retainKeys`: takes the place of a hook of another kind. Where hooks cannot sleep, the image's `sleep` does."""
    hook: dict[str, Any] | None = {"$retainKeys": ["sleep"], "sleep": {"seconds": seconds}}
    if not sleep_hooks:
        hook = {"$retainKeys": ["exec"], "exec": {"command": ["sleep", str(seconds)]}}
    if not seconds:
        hook = None
    return {"name": container, "lifecycle": {"preStop": hook}}


def _more_grace(account: Account, count: int, lives: Sequence[PodLife], owner: dict[str, Any]) -> Advice:
    """As long as the hook and the longest good answer of such requests took; twice what it was where that is not more,
    for then it is not known how long they take."""
    grace = int(owner["spec"]["template"]["spec"].get("terminationGracePeriodSeconds", 30))
    killed = [each.outcome for each in account.lost if each.cause == "killed"]
    took = max((account.longest.get(each.kind, 0.0) for each in killed), default=0.0)
    hook = max((life.term - life.deleted for life in lives if life.term and life.deleted), default=0.0)
    wanted = math.ceil(hook + took + SPARE_SECONDS)
    wanted = wanted if took and wanted > grace else grace * 2
    return Advice(
        "requestKilled",
        fix("requestKilled", wanted=wanted, grace=grace),
        count,
        _in_template({"terminationGracePeriodSeconds": wanted}),
    )


def _readiness_probe(count: int, owner: dict[str, Any], port: int | str) -> Advice:
    first = _serving(owner["spec"]["template"]["spec"])[0]["name"]
    probe = {"tcpSocket": {"port": port}, "periodSeconds": 1}
    return Advice(
        "notListeningYet",
        fix("notListeningYet"),
        count,
        _in_template({"containers": [{"name": first, "readinessProbe": probe}]}),
    )


def _never_unready(count: int) -> Advice:
    return Advice("noEndpoint", fix("noEndpoint", "unready"), count)


def _never_fewer(count: int, owner: dict[str, Any]) -> Advice:
    replicas = owner["spec"].get("replicas", 1)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    if owner.get("kind") != "Deployment":
        return Advice("noEndpoint", fix("noEndpoint", "replicas"), count, {"spec": {"replicas": replicas + 1}})
    return Advice(
        "noEndpoint",
        fix("noEndpoint"),
        count,
        {"spec": {"strategy": strategy}},
    )


def _in_template(pod_spec: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"template": {"spec": pod_spec}}}
