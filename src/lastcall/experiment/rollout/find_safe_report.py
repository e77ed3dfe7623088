"""Report `rollout --find-safe`: sentences, text and JSON (`findSafe` in `lastcall/rollout/v1`)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.padding import Padding

from lastcall.endings.render import Text
from lastcall.experiment.rollout.find_safe import Edge, Found, exit_is_good, tell_prediction
from lastcall.experiment.rollout.report import FROM
from lastcall.kube.api import Object
from lastcall.records.said import joined, tell
from lastcall.traffic import LONG_LIVED, REUSED, WHY, KindEnd, Trial, upper_bound

if TYPE_CHECKING:
    from rich.console import Console


def sentence(found: Found) -> str:
    """Return the largest endpoint lag, as found on the kernel."""
    if found.lag is None:
        if found.measured.judgement.verdict == "inconclusive":
            return found.measured.judgement.sentence
        return tell("no Pod was seen to end: there is nothing to find out")
    lag = found.lag
    if lag.safe is None:
        without = [run.account for run in (found.measured, *lag.runs) if run.propagation == found.measured.propagation]
        total, lost = sum(each.total for each in without), sum(len(each.lost) for each in without)
        causes = Counter(request.cause for each in without for request in each.lost)
        why = joined([tell("$count $why", count=count, why=WHY[cause]) for cause, count in causes.most_common()], "; ")
        return tell(
            "not safe at any endpoint lag: without any, $lost of $total requests were lost ($why)",
            lost=lost,
            total=total,
            why=why,
        )
    if lag.safe == 0 and lag.unsafe is not None:
        return tell("safe only without any endpoint lag: $seconds s are too many", seconds=f"{lag.unsafe:g}")
    if lag.unsafe is None and lag.search.safe == lag.search.count - 1:
        return tell("safe up to $seconds s of endpoint lag, the largest that is tried", seconds=f"{lag.safe:g}")
    if lag.unsafe is None:
        return tell(
            "safe up to $seconds s of endpoint lag, and no larger one was found that loses requests",
            seconds=f"{lag.safe:g}",
        )
    return tell(
        "safe up to $safe s of endpoint lag; at $lossy s requests are lost",
        safe=f"{lag.safe:g}",
        lossy=f"{lag.unsafe:g}",
    )


def sleep_sentence(found: Found) -> str:
    """Return the smallest sleep for the lag given; "" when it was not looked for."""
    edge = found.sleep
    if edge is None:
        return ""
    if edge.safe is None:
        return tell(
            "at $seconds s of endpoint lag no preStop sleep was found that loses nothing", seconds=f"{found.given:g}"
        )
    needed, own = found.grace(edge.safe), found.own_grace
    hook = tell("no preStop sleep")
    if edge.safe:
        hook = tell("a preStop `sleep: {seconds: $seconds}`", seconds=f"{edge.safe:g}")
    grace = (
        tell("raise terminationGracePeriodSeconds from $own to $needed", own=own, needed=needed)
        if needed > own
        else tell(
            "the manifest's terminationGracePeriodSeconds: $own is enough for it (predicted use: $needed s)",
            own=own,
            needed=needed,
        )
    )
    return tell(
        "at $seconds s of endpoint lag the smallest sleep that loses nothing: $hook; $grace",
        seconds=f"{found.given:g}",
        hook=hook,
        grace=grace,
    )


def tell_kind(kind: KindEnd, edge: float | None) -> str:
    """Return what is predicted of one kind of load, and why. `edge` is seconds of lag, None for none that is safe."""
    upto = "not safe at any lag" if edge is None else f"safe up to {edge:g} s"
    if kind.pinned:
        if kind.at_stop == "lost":
            return "lost whatever the lag, on connections that the ending Pod closes without a goodbye"
        seen = "" if kind.seen else " (a rule: none was on one when a Pod stopped)"
        return f"no lag loses a request on a connection that is open{seen}; one that has to be opened anew is {upto}"
    if kind.quick:
        return f"{upto}: each opens a connection, which needs a Pod that listens"
    takes = f"{'one is held' if kind.kind in LONG_LIVED else 'an answer takes'} {kind.took:.1f} s"
    what = {
        "answered": f"the application ended well the {kind.seen} that were under way at a stop signal",
        "lost": f"the application left without ending well all of the {kind.seen} under way at its stop signal",
        "unknown": "none was under way at a stop signal, so those are taken to be lost",
    }[kind.at_stop]
    return f"{upto}: {takes}, and {what}"


def tell_surprises(edge: Edge) -> list[str]:
    """Return where the kernel found otherwise than was predicted, value by value."""
    lines: list[str] = []
    for index in edge.surprises:
        trials = edge.search.at(index)
        lossy = sum(1 for each in trials if each.lost)
        if lossy:
            lost = ", ".join(f"{count} {what}" for what, count in edge.losses_at(index))
            facts = {"lossy": lossy, "runs": _runs(trials), "how": lost}
            found = tell("was predicted to be safe, and $lossy of $runs lost requests ($how)", **facts)
        else:
            facts = {"runs": _runs(trials), "why": _why_none(edge)}
            found = tell("was predicted to lose requests, and $runs lost none$why", **facts)
        value = f"{edge.value(index):g}"
        lines.append(tell("prediction and kernel disagree: $seconds s $found", seconds=value, found=found))
    return lines


def _runs(trials: Sequence[Trial]) -> str:
    return tell("1 run") if len(trials) == 1 else tell("$count runs", count=len(trials))


def _why_none(edge: Edge) -> str:
    first = edge.prediction.first_to_lose
    if all(kind in REUSED for kind in first):
        return tell(
            ": only a connection that $kinds had to open anew just then would be, and there are few",
            kinds=joined(first, " and "),
        )
    return ""


def _confirmation(edge: Edge) -> Iterator[str]:
    for seconds, index in ((edge.safe, edge.search.safe), (edge.unsafe, edge.search.unsafe)):
        trials = edge.search.at(index)
        if seconds is None or index is None or not trials:
            continue
        total, lost = sum(each.total for each in trials), sum(each.lost for each in trials)
        lossy = sum(1 for each in trials if each.lost)
        if lost:
            causes = ", ".join(f"{count} {what}" for what, count in edge.losses_at(index))
            yield f"at {seconds:g} s {lossy} of {_runs(trials)} lost requests ({lost} of {total}: {causes})"
        else:
            bound = upper_bound(0, total) * 100
            yield (
                f"at {seconds:g} s {len(trials)} of {_runs(trials)} lost nothing (of {total} requests; "
                f"at most {bound:.2g} % with 95 % confidence)"
            )
    if not edge.search.settled and edge.search.trials:
        if edge.unsafe is None and edge.safe is not None:
            yield "not confirmed: no run lost anything, so the edge is higher, or this load does not meet it"
        else:
            yield "not confirmed: the runs do not agree, or there were too few"


def tell_text(console: "Console", found: Found) -> None:
    """Print the search for people."""

    def line(text: str, indent: int = 2) -> None:
        console.print(Padding(Text(text), (0, 0, 0, indent)))

    def edge_lines(edge: Edge, prediction: str) -> None:
        line(f"predicted {edge.prediction.how}: {prediction}")
        for kind in found.kinds:
            if edge is found.lag:
                line(f"{kind.kind}: {tell_kind(kind, edge.predicted_of(edge.prediction.kinds[kind.kind]))}", 4)
        for each in _confirmation(edge):
            line(f"on the kernel: {each}")
        for each in tell_surprises(edge):
            console.print(Padding(Text(each, style="yellow"), (0, 0, 0, 2)))

    first = found.measured
    head = f"{first.what} · {first.disrupt} under load · {FROM[first.source]} · the largest endpoint lag ({found.hop})"
    console.print()
    console.print(Text(head, style="bold"))
    if found.lag is not None and found.end is not None:
        edge_lines(found.lag, tell_prediction(found.lag.predicted, found.end))
    if found.sleep is not None and found.end is not None:
        console.print(Text(f"the smallest preStop sleep at {found.given:g} s", style="bold"))
        best = found.sleep.predicted
        edge_lines(found.sleep, "no sleep is long enough" if best is None else f"{best:g} s")
        drained = "no longer than it drained before it was killed" if found.end.killed else "as long as it was seen to"
        line(f"the grace period is predicted: the sleep, and a drain {drained}, or until its last answer")
    console.print()
    console.print(Text(sentence(found), style="bold green" if exit_is_good(found) else "bold red"))
    if more := sleep_sentence(found):
        console.print(Text(more))


def as_json(found: Found) -> Object:
    """Return `findSafe` in `lastcall/rollout/v1`; the runs themselves are its `experiments`."""
    end = found.end
    return {
        "sentence": sentence(found),
        "hop": found.hop,
        "predictedHow": found.lag.prediction.how if found.lag is not None else None,
        "measuredEnd": None
        if end is None
        else {
            "toHook": round(end.to_hook, 6),
            "toTerm": round(end.to_term, 6),
            "accepts": round(end.accepts, 6),
            "drains": round(end.drains, 6),
            "ownLag": round(end.own_lag, 6),
            "killed": end.killed,
            "evidence": "observed",
        },
        "kinds": [
            {"kind": each.kind, "took": round(each.took, 6), "atStop": each.at_stop, "seen": each.seen}
            for each in found.kinds
        ],
        "lag": _edge_json(found.lag),
        "preStopSleep": None
        if found.sleep is None
        else {
            "sentence": sleep_sentence(found),
            "propagation": found.propagation,
            "lag": found.given,
            **(_edge_json(found.sleep) or {}),
            "grace": None
            if found.sleep.safe is None
            else {
                "seconds": found.grace(found.sleep.safe),
                "evidence": "predicted",
                "manifest": found.own_grace,
                "advised": max(found.grace(found.sleep.safe), found.own_grace),
            },
        },
    }


def _edge_json(edge: Edge | None) -> Any:
    if edge is None:
        return None
    return {
        "predicted": {
            "seconds": edge.predicted,
            "byKind": {kind: edge.predicted_of(index) for kind, index in edge.prediction.kinds.items()},
            "how": edge.prediction.how,
            "evidence": "predicted",
        },
        "safe": edge.safe,
        "unsafe": edge.unsafe,
        "confirmed": edge.search.settled,
        "disagreements": tell_surprises(edge),
        "trials": [
            {"seconds": edge.value(each.index), "lost": each.lost, "total": each.total, "evidence": "observed"}
            for each in (*edge.search.known, *edge.search.trials)
        ],
    }
