"""Report a rollout's experiment as text; `report_json` has the document."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import yaml
from rich.table import Table

from lastcall.endings import Finding
from lastcall.endings.render import BREAK, Text, print_endings
from lastcall.experiment.reasons.failures import group_alike
from lastcall.experiment.rollout.lost import alike, tell_lost
from lastcall.experiment.rollout.old_pods import HEAD, killed_sentence, old_pod_rows, worst_first
from lastcall.experiment.rollout.pool import pool, worst
from lastcall.experiment.rollout.result import Result
from lastcall.traffic import (
    LONG_LIVED,
    MOVED_MEANS,
    PHASES,
    WHY,
    Account,
    Kind,
    Latencies,
    Outcome,
    PodLife,
    Thresholds,
    When,
    check,
    format_seconds,
    grace_of,
    latencies,
    percentage,
    upper_bound,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


FROM = {
    "node": "from the node",
    "pod": "from a Pod",
    "published": "from the host, over a published port",
    "balancer": "from a load balancer",
    "client": "from this machine",
}
AT_MOST = "at most (95 %)"
NUMBERS = ("lost", AT_MOST, "of")
NO_DELAY = "0s"
"""`Result.propagation` where no delay was asked for; "" where the cluster is not one of lastcall."""
SHOWN = 12
"""Lost requests in the text that are not like others; the JSON has all."""
STORIES = 1
"""Stories of old Pods in the text: replicas end alike."""


def tell_results(console: "Console", results: Sequence[Result], before: Sequence[Result] = ()) -> None:
    """Print runs of one manifest: a line for each if there are several, and the story of the worst one. `before` are
    those without its changes."""
    if len(results) > 1:
        _tell_runs(console, results)
    tell_text(console, worst(results))
    if before and (remaining := tell_remaining(before, results)):
        _print_wrapped(console, Text(remaining))
    for hint in (stream_hint(results), delay_hint(results)):
        if hint:
            _print_wrapped(console, Text(hint, style="yellow"))
    if len(results) > 1:
        console.print(Text(_all_together(results), style="bold"))


def delay_hint(results: Sequence[Result]) -> str:
    """Return what experiments that lost nothing have not shown, because endpoint changes came at once; "" for nothing.

    On one machine a change of endpoints takes a millisecond: an application that closes its port on the stop signal
    loses no request there, and many in a cluster in which the change takes a second.
    """
    if any(
        each.unheard or each.propagation != NO_DELAY or each.judgement.verdict != "nothing lost" for each in results
    ):
        return ""
    return (
        "not tested: endpoint changes took no time here, and in a cluster of many nodes they take a second or more, in "
        "which an application that closes its port at once loses requests. Try --propagation 1s"
    )


def tell_remaining(before: Sequence[Result], after: Sequence[Result]) -> str:
    """Return what a change has done, and which losses are left; "" where either runs show nothing."""
    was, now = pool([each for each in before if not each.advised]), pool(after)
    if was.runs == was.inconclusive or now.runs == now.inconclusive:
        return ""
    without = f"{was.lost} of {was.total} without it"
    if not now.lost:
        return f"with the change: none of {now.total} requests was lost, {without}"
    useful = [each for each in after if each.judgement.verdict != "inconclusive"]
    causes = Counter(lost.cause for each in useful for lost in each.account.lost)
    left = "; ".join(f"{count} {WHY[cause]}" for cause, count in causes.most_common())
    return f"with the change: {now.lost} of {now.total} requests are still lost ({left}), {without}"


LONGER_SECONDS = 30
"""Than the grace period: so long a stream is to be held that is to outlive it, whenever it was begun."""


def stream_hint(results: Sequence[Result]) -> str:
    """Return what experiments that lost nothing have not shown, because the client itself ended the streams that a Pod
    held at its stop signal; "" for nothing."""
    if any(each.judgement.verdict != "nothing lost" for each in results):
        return ""
    held = [(outcome, _held_at_stop(outcome, each.lives)) for each in results for outcome in each.outcomes]
    if any(outcome.moved for outcome, is_held in held if is_held):  # how the application ends its streams was seen
        return ""
    left = sum(is_held for _, is_held in held)
    if not left:
        return ""
    grace = max(grace_of(each.owner) for each in results if each.owner)
    which = "1 stream that was" if left == 1 else f"{left} streams that were"
    return (
        f"not tested: {which} open at the stop signal ended because the client left "
        f"{'it' if left == 1 else 'them'}. Whether the application ends its streams itself, or waits for them until "
        f"SIGKILL, shows with longer ones. Try --stream-length {grace + LONGER_SECONDS}s"
    )


def _held_at_stop(outcome: Outcome, lives: Sequence[PodLife]) -> bool:
    """Return whether this is a stream that a Pod held when it was asked to stop, and that went on after that."""
    if outcome.kind not in LONG_LIVED or outcome.lost:
        return False
    terms = [each.term for each in lives if each.ip == outcome.served_by and each.term is not None]
    return any(outcome.sent < term.earliest and term.latest < outcome.finished for term in terms)


def tell_limits(console: "Console", results: Sequence[Result], thresholds: Thresholds) -> None:
    """Print what the limits say of the runs that decide."""
    checked = check(thresholds, pool(results))
    if checked:
        console.print()
    for each in checked:
        console.print(Text(each.sentence, style="red" if each.broken else "yellow" if each.unsure else "green"))


def _tell_runs(console: "Console", results: Sequence[Result]) -> None:
    advised = " · with the advice applied" if results[0].advised else ""
    console.print()
    console.print(Text(f"{results[0].what} · {len(results)} runs{advised}", style="bold"))
    table = Table(box=None, padding=(0, 2, 0, 2), header_style="dim")
    for name in ("run", "lost", "of", "p99 during", "verdict"):
        table.add_column(name, justify="left" if name == "verdict" else "right")
    for each in results:
        during = latencies([(each.outcomes, each.span)])["during"]
        p99 = ", ".join(f"{kind} {format_seconds(took.p99)}" for kind, took in during.items())
        table.add_row(str(each.run), str(len(each.account.lost)), str(each.account.total), p99, each.judgement.verdict)
    console.print(table)
    found = pool(results)
    if len(results) > found.inconclusive:
        most = ", which lost the most" if found.lost else ""
        console.print(Text(f"  the story of run {worst(results).run}{most}:", style="dim"))


def _all_together(results: Sequence[Result]) -> str:
    found = pool(results)
    most = percentage(found.upper_bound)
    left_out = f"; {found.inconclusive} inconclusive, not counted" if found.inconclusive else ""
    return f"all together: {found.lost} of {found.total} requests lost, at most {most} (95 %){left_out}"


def _tell_requests_beside(console: "Console", found: Account) -> None:
    """Print what became of the requests that do not count: those of the control period, and those that no Pod was
    ready for."""
    started = found.control_lost and found.control_lost == found.not_listening_yet + found.not_serving_yet
    while_ = " (while Pods started)" if started else ""
    console.print(f"  control period: {found.control_lost} of {found.control_total} lost{while_}")
    if found.when_nobody_left:
        line = f"{found.when_nobody_left} more were sent when no Pod was ready any more: they do not count"
        _print_wrapped(console, Text(f"  {line}", style="dim"))


def tell_text(console: "Console", result: Result) -> None:  # noqa: PLR0915 - it waits for the one JSON shape of all commands
    """Print one experiment for people."""
    found = result.account
    console.print()
    console.print(Text(f"{headline(result)}{' · with the advice applied' if result.advised else ''}", style="bold"))
    if not result.unheard:
        rates = ", ".join(f"{count} {kind}" for kind, count in found.totals.items())
        console.print(f"  {found.total} requests to Service {result.service} ({rates}); it took {result.seconds:.1f} s")
    _tell_requests_beside(console, found)
    for note in result.notes:
        _print_wrapped(console, Text(f"  {note.line}", style="yellow"))
    for line in tell_moves(found):
        _print_wrapped(console, Text(f"  {line}"))
    for line in _books(found):
        console.print(Text(f"  {line}", style="yellow"))
    if found.lost:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for name in ("lost", AT_MOST, "kind of request", "how", "why"):
            table.add_column(name, justify="right" if name in NUMBERS else "left", no_wrap=name != "why")
        counts = Counter((each.outcome.kind, each.outcome.lost, each.cause) for each in found.lost)
        for (kind, how, cause), count in counts.most_common():
            table.add_row(str(count), percentage(upper_bound(count, found.totals[kind])), kind, how, WHY[cause])
        console.print()
        console.print(table)
        console.print()
        pods = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for name in ("lost", AT_MOST, "of", "Pod"):
            pods.add_column(name, justify="right" if name in NUMBERS else "left")
        left = {life.name: tell_left(life) for life in result.lives}
        for share in found.pods if not found.not_followed else ():
            pod = Text(share.pod).append(left.get(share.pod, ""), style="dim")
            pods.add_row(str(share.lost), percentage(share.upper_bound), str(share.total), pod)
        if not found.not_followed:
            console.print(pods)
            console.print()
        groups = alike(found.lost)
        for each in groups[:SHOWN]:
            lines = Text(tell_lost(each.first), style="dim").wrap(console, max(console.width - 13, 20))
            lines.extend([Text(each.more, style="dim")] if each.more else [])
            at = Text(f"{each.first.at:9.3f} s  ", style="dim")
            console.print(at + (BREAK + " " * 13).join(lines))
        if hidden := sum(each.count for each in groups[SHOWN:]):
            console.print(Text(f"  … and {hidden} more (--output json has all)", style="dim"))
    _tell_latencies(console, result, Table)
    _tell_old_pods(console, result, Table)
    _tell_stories(console, result)
    console.print()
    _tell_verdict(console, result)
    if result.judgement.patch:
        console.print()
        tried = "" if found.not_followed or result.of_run else " (--apply-advice tries it)"
        console.print(Text(f"  the patch{tried}:", style="dim"))
        for line in yaml_lines(result.judgement.patch):
            console.print(Text(f"    {line}"))


def _tell_verdict(console: "Console", result: Result) -> None:
    style = {"nothing lost": "green", "requests lost": "red", "inconclusive": "yellow"}[result.judgement.verdict]
    console.print(Text(f"{result.judgement.verdict}: ", style=f"bold {style}") + Text(result.judgement.sentence))
    for advice in result.judgement.advice[1:] if not result.unheard else ():
        console.print(f"  also, for {advice.saves}: {advice.sentence}")
    if killed := killed_sentence(result.lives):
        above = " (→ in its story above)" if any(each.advice for each in _problems(result)) else ""
        console.print(Text("not well: ", style="bold red") + Text(f"{killed}{above}"))
    for names, ended in group_alike(each for each in result.not_well if each.failed):
        for finding in (each for each in ended.findings if each.severity == "problem"):
            console.print(Text("not well: ", style="bold red") + Text(f"{names}: {finding.text}"))


def _problems(result: Result) -> list[Finding]:
    """What is wrong in the stories that are shown."""
    shown = worst_first(result.endings)[:STORIES]
    return [finding for each in shown for finding in each.findings if finding.severity == "problem"]


def _print_wrapped(console: "Console", line: Text) -> None:
    """Print a line, indented where it goes on."""
    console.print((BREAK + "    ").join(line.wrap(console, max(console.width - 4, 20))))


def headline(result: Result) -> str:
    """Return what was done to what, and how it was asked for."""
    where = f" of {result.node} (of {result.nodes} nodes)" if result.node else ""
    nothing = "nothing measured" if result.of_run else "nothing disrupted"
    what = nothing if result.unheard else f"{result.disrupt}{where} under load"
    lag = f" · endpoint lag {result.propagation}" if result.propagation else ""
    return f"{result.what} · {what} · {FROM[result.source]}{lag}"


LATENCY_HEAD = ("good answers", "when", "how many", "p50", "p95", "p99", "max")


def latency_rows(result: Result) -> list[tuple[str, ...]]:
    """Return the latencies kind by kind, before, during and after the disruption."""
    found = latencies([(result.outcomes, result.span)])
    kinds = dict.fromkeys(kind for phase in PHASES for kind in found[phase])
    return [
        (kind if first else "", phase, str(took.count), *map(format_seconds, (took.p50, took.p95, took.p99, took.most)))
        for kind in kinds
        for first, phase in ((phase == _phases(found, kind)[0], phase) for phase in _phases(found, kind))
        for took in (found[phase][kind],)
    ]


def _phases(found: Latencies, kind: Kind) -> list[When]:
    return [phase for phase in PHASES if kind in found[phase]]


def _tell_old_pods(console: "Console", result: Result, new_table: "type[Table]") -> None:
    rows = old_pod_rows(result.lives)
    if not rows or result.unheard:
        return
    table = new_table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in HEAD:
        table.add_column(name, no_wrap=True)
    for row in rows[:SHOWN]:
        table.add_row(*row)
    console.print()
    console.print(table)
    if len(rows) > SHOWN:
        console.print(Text(f"  … and {len(rows) - SHOWN} more (--output json has all)", style="dim"))


def _tell_stories(console: "Console", result: Result) -> None:
    """The stories of the old Pods, those first that did not end gracefully."""
    shown = worst_first(result.endings)[:STORIES]
    if shown:
        print_endings(console, shown)
    if hidden := len(result.endings) - len(shown):
        console.print(Text(f"  … and the stories of {hidden} more (--output json and html have all)", style="dim"))


def _tell_latencies(console: "Console", result: Result, new_table: "type[Table]") -> None:
    rows = latency_rows(result)
    if not rows or result.unheard:
        return
    table = new_table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in LATENCY_HEAD:
        table.add_column(name, justify="left" if name in ("good answers", "when") else "right")
    for row in rows:
        table.add_row(*row)
    console.print()
    console.print(table)


def tell_left(life: PodLife) -> str:
    """Return what the kernel held for a container that exited, whatever the applications print. "" for nothing."""
    parts = []
    if life.never_accepted:
        parts.append(f"{life.never_accepted} never accepted")
    if life.unread:
        parts.append(f"{life.unread} with unread data")
    return f" (exited with {', '.join(parts)})" if parts else ""


def tell_moves(found: Account) -> list[str]:
    """Return what a client had to carry on with elsewhere; nothing of it is lost."""
    return [f"{count} {kind}: {MOVED_MEANS[moved]}; not lost" for (kind, moved), count in found.moves]


def _books(found: Account) -> Iterator[str]:
    """Where what the generator and the applications say does not agree, or cannot be compared."""
    for ids, what in (
        (found.without_outcome, "were begun and have no outcome"),
        (found.unaccounted, "were seen by an application and are not the generator's"),
        (found.answered_unseen, "were answered, and no application printed them"),
    ):
        if ids:
            yield f"{len(ids)} requests {what}: {', '.join(map(str, ids[:8]))}{' …' if len(ids) > 8 else ''}"
    if not (found.whole_output or found.not_followed):
        yield "the applications printed too much to keep all of it: whether they saw the lost requests is unknown"


def yaml_lines(patch: dict[str, Any]) -> list[str]:
    """Return a patch as people write it."""
    text: str = yaml.safe_dump(patch, sort_keys=False, default_flow_style=False)
    return text.rstrip().splitlines()
