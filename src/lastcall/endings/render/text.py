"""The story as text, with rich: a table of steps, lanes side by side, the grace budget as a bar, what to know.

Works in 80 columns. Colours are the console's business: none when piped or with NO_COLOR.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table

from lastcall.endings.causes.owners import OWNER_KINDS
from lastcall.endings.facts.never_started import why_never_started
from lastcall.endings.findings.restarts import last_words
from lastcall.endings.render import bars
from lastcall.endings.render.console import BREAK, Text
from lastcall.endings.render.lines import actor_label
from lastcall.endings.story import ContainerEnding, Ending, EndpointTransition, Entry, Finding
from lastcall.endings.verdict import had_ended, is_deleted, is_ongoing, lives_on, lost_processes, outcome_words, why
from lastcall.records import kinds
from lastcall.records.explain import explain_record
from lastcall.records.sentences import DETAIL, STEP, Style
from lastcall.records.text import printable, seconds, without_repeats
from lastcall.records.words import words_for

if TYPE_CHECKING:
    from rich.console import Console

STYLES: dict[Style, str] = {
    "": "",
    "dim": "dim",
    "good": "green",
    "bad": "bold red",
    "signal": "yellow",
    "api": "cyan",
    "endpoint": "magenta",
    "output": "italic",
}
_BAR_STYLES = {"preStop": "blue", "waiting": "cyan", "drain": "green", "unused": "dim", "overrun": "bold red"}
_LANE_STYLES = {
    "preStop": "blue",
    "waiting": "cyan",
    "drain": "green",
    "endpoint": "magenta",
    "node": "yellow",
    "object": "cyan",
}
_OUTCOMES = {
    "graceful": "bold green",
    "killed": "bold red",
    "hookFailed": "bold yellow",
    "crashed": "bold red",
    "restarted": "bold yellow",
    "unknown": "bold yellow",
}
_MARKS = {"info": ("i", "blue"), "warning": ("!", "yellow"), "problem": ("✗", "red")}

_LABEL_WIDTH = 32
_RULE_INDENT = 6
_MOST_EVIDENCE = 6
"""Records of one finding that `--explain` lists."""


def print_endings(
    console: "Console", endings: Sequence[Ending], *, explain: bool = False, with_steps: bool = True
) -> None:
    """Print every story and, for more than one Pod, a line on each at the end. `with_steps` False: the reader has
    just seen the steps happen; of Pods that ended alike it prints the first one then, and their number."""
    groups = [[ending] for ending in endings] if with_steps else _alike(endings)
    for first, *others in groups:
        console.print()
        console.print(story(first, console.width, with_rules=explain, with_steps=with_steps))
        if others:
            names = f"{others[0].pod.name}" if len(others) == 1 else f"{len(others)} other Pods"
            console.print(Text(f"{names} ended alike", style="bold"))
    if len(endings) > 1:
        console.print()
        console.print(Group(*(_headline(ending) for ending in endings)))


_MEASURED = re.compile(r"\d[\d.:]*(?: m?s\b)?")
"""Times, addresses and sizes: what replicas differ in."""


def _alike(endings: Sequence[Ending]) -> list[list[Ending]]:
    """Group the replicas that ended in the same way: the same words, but for names and measured values."""
    found: dict[str, list[Ending]] = {}
    for ending in endings:
        ongoing, deleted = is_ongoing(ending), is_deleted(ending)
        parts = [f"{each.name}: {_container_words(each, ongoing, deleted)}" for each in ending.containers]
        parts += [f"{each.severity} {each.text} {each.advice}" for each in ending.findings]
        parts += [*ending.not_known, why(ending), *(line for _, lines in last_words(ending) for line in lines)]
        key = "\n".join(parts).replace(ending.pod.name, "Pod")
        exact = [ending.outcome, ending.pod.namespace, ending.pod.name.rpartition("-")[0] or ending.pod.uid]
        exact += [f"{each.name}: {each.exit.code}" for each in (*ending.earlier, *ending.containers)]
        found.setdefault("\n".join([*exact, _MEASURED.sub("#", key)]), []).append(ending)
    return list(found.values())


def story(ending: Ending, width: int, *, with_rules: bool = False, with_steps: bool = True) -> RenderableType:
    """Return one Pod's story for a console of `width` columns."""
    parts: list[RenderableType] = [_headline(ending), Text("─" * width, style="dim")]
    if because := why(ending):
        parts.append(Text(printable(because, 1000), style="bold"))
    if with_steps:
        parts.append(_steps(ending, with_rules))
    lanes = [] if had_ended(ending) else _lanes(ending, width)
    parts += [Text(), *lanes] if lanes and len(parts) > 2 else lanes
    if ending.budget is not None:
        parts += [Text(), *_budget(ending, width)]
    parts += [Text(), _facts(ending)]
    notes = _notes(ending, with_rules)
    if notes is not None:
        parts += [Text(), notes]
    for heading, lines in last_words(ending):
        parts += [Text(), Text(f"{printable(heading)}:", style="bold")]
        shown = without_repeats(printable(line, 1000) for line in lines)
        parts += [Text(f"  {line}", style="italic") for line in shown]
    return Group(*parts)


def _headline(ending: Ending) -> Text:
    words, style = outcome_words(ending), "bold yellow" if lost_processes(ending) else _OUTCOMES[ending.outcome]
    pod = ending.pod
    line = Text(f"{pod.namespace}/{pod.name}", style="bold")
    line.append(" ").append(words, style=style)
    facts = [f"on {pod.node}"] if pod.node else []
    if ending.grace_seconds is not None:
        facts.append(f"grace {ending.grace_seconds} s")
    if ending.gone is not None:
        facts.append(f"gone after {ending.gone:.2f} s")
    return line.append("".join(f" · {fact}" for fact in facts))


# -- steps ----------------------------------------------------------------------------------------------------------


def _steps(ending: Ending, with_rules: bool) -> RenderableType:
    shown = [(e, words_for(e.record)) for e in ending.entries]
    shown = [(e, words) for e, words in shown if _is_shown(e, ending, with_rules, words.level)]
    several = len(ending.containers) > 1
    heads = [[f"{e.at:+.3f}s", actor_label(e.record), *([e.record.container] if several else [])] for e, _ in shown]
    widths = [max((len(head[i]) for head in heads), default=0) for i in range(3 if several else 2)]
    by_id = {entry.record.id: entry for entry in ending.entries}
    explained: set[str] = set()
    rows: list[RenderableType] = []
    for (entry, words), head in zip(shown, heads, strict=True):
        what = Text(words.text, style=STYLES[words.style])
        if entry.record.evidence != "observed":
            what.append(f" ({entry.record.evidence})", style="dim")
        rows.append(_row(head, widths, what))
        if with_rules:
            rows += _rule_lines(entry, by_id, explained)
    return Group(*rows)


def _row(head: Sequence[str], widths: Sequence[int], what: Text) -> RenderableType:
    row = Table.grid(padding=(0, 2, 0, 0))
    for index, width in enumerate(widths):
        row.add_column(width=width, no_wrap=True, justify="right" if index == 0 else "left")
    row.add_column(overflow="fold")
    row.add_row(*(Text(cell, style="dim") for cell in head), what)
    return row


def _is_shown(entry: Entry, ending: Ending, with_rules: bool, level: int) -> bool:
    if level > (DETAIL if with_rules else STEP):
        return False
    if entry.at >= 0:
        return True
    # Before the DELETE only what belongs to the end: its sending, and containers that ended by themselves.
    if entry.record.kind == kinds.PROCESS_EXITED:
        return any(c.name == entry.record.container and c.exit.at == entry.at for c in ending.containers)
    return entry.record.kind in (kinds.DELETE_SENT, kinds.IMAGE_SUBSTITUTED, kinds.DELETION_DECIDED, *OWNER_KINDS)


def _rule_lines(entry: Entry, by_id: dict[str, Entry], explained: set[str]) -> list[RenderableType]:
    """Why it came to this step, the rule it follows, and what the rule says, or without one what the record means (the
    first time it is met)."""
    lines: list[RenderableType] = []
    cause = by_id.get(entry.cause_id or "")
    if cause is not None:
        because = Text(f"because of {cause.at:+.3f}s {words_for(cause.record).text}", style="dim", overflow="ellipsis")
        because.no_wrap = True
        lines.append(Padding(because, (0, 0, 0, _RULE_INDENT)))
    rule = entry.record.rule
    if rule:
        lines.append(Padding(Text(f"rule: {rule}", style="dim cyan", overflow="fold"), (0, 0, 0, _RULE_INDENT)))
    sentence, about = explain_record(entry.record), rule or entry.record.kind
    if sentence and about not in explained:
        explained.add(about)
        lines.append(Padding(Text(sentence, style="dim"), (0, 0, 0, _RULE_INDENT + (2 if rule else 0))))
    return lines


# -- pictures -------------------------------------------------------------------------------------------------------


def _lanes(ending: Ending, width: int) -> list[RenderableType]:
    ends = [span.end for span in ending.spans if span.end is not None] + [e.at for e in ending.entries[-1:]]
    end = max(ends, default=0.0)
    spans = [span for span in ending.spans if span.end is None or span.end >= 0]
    if end <= 0 or not spans:
        return []
    label_width = min(_LABEL_WIDTH, max(len(span.label) for span in spans))
    cells = max(10, width - label_width - 2)
    lines: list[RenderableType] = [
        Text(f"{'side by side (seconds)':{label_width}}  {bars.axis(end, cells)}", style="dim")
    ]
    for span in spans:
        label = printable(span.label)
        label = label if len(label) <= label_width else label[: label_width - 1] + "…"
        line = Text(f"{label:{label_width}}  ")
        lines.append(line.append(bars.lane(span, end, cells), style=_LANE_STYLES[span.kind]))
    return [_no_wrap(line) for line in lines]


def _budget(ending: Ending, width: int) -> list[RenderableType]:
    budget = ending.budget
    assert budget is not None
    head = f"grace {budget.grace:g} s  "
    bar = Text(head, style="bold")
    for part in bars.budget_bar(budget, max(10, width - len(head))):
        bar.append(part.text, style=_BAR_STYLES.get(part.kind, ""))
    legend = Text(" " * len(head))
    for part in bars.budget_legend(budget):
        legend.append(part.text, style=_BAR_STYLES.get(part.kind, ""))
    if len(ending.containers) > 1:
        legend.append(f"  ({budget.container}, which ended last)", style="dim")
    return [_no_wrap(bar), legend]


def _no_wrap(line: RenderableType) -> RenderableType:
    if isinstance(line, Text):
        line.no_wrap = True
        line.overflow = "crop"
    return line


# -- facts and findings ---------------------------------------------------------------------------------------------


def _facts(ending: Ending) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold", ratio=1)
    ongoing = is_ongoing(ending)
    for container in ending.containers:
        words = _container_words(container, ongoing, is_deleted(ending))
        if not container.started and container.exit.code is None and lives_on(ending):
            words = "not started yet"
        if not container.started and container.exit.code is None and (kept := why_never_started(container, ending)):
            words += f": {printable(kept)}"
        table.add_row(Text(container.name), Text(words))
    for group in _by_endpoint(ending.endpoints):
        table.add_row(Text("endpoint"), Text(_endpoint_words(group)))
    if ending.gone is not None:
        words = f"phase {ending.pod.phase}; " if ending.pod.phase else ""
        words += f"gone after {ending.gone:.3f} s"
        if ending.overhead is not None:
            words += f"; overhead {seconds(ending.overhead)} (all but hook and drain)"
        table.add_row(Text("object"), Text(words))
    return table


_REACTIONS = {"listenerClosed": "closed a port", "connectionsClosed": "closed its last connection"}


def _container_words(c: ContainerEnding, ongoing: bool, deleted: bool = True) -> str:
    if not c.started and c.exit.code is None:
        return "never started"
    if c.exit.elsewhere:
        return "how it ended is not known: its node records nothing here"
    if c.exit.code is None and ongoing:
        words = (
            "still runs"
            if c.stop.signal_at is None
            else f"still runs, {c.stop.signal} was sent at {c.stop.signal_at:+.3f}s"
        )
    elif c.exit.code is None:
        words = "how it ended is not known"
    else:
        words = f"exit code {c.exit.code} ({c.exit.reason or 'no reason'})"
        if c.exit.signal:
            words += f", by {c.exit.signal}" + (f": {c.exit.killed_by}" if c.exit.killed_by else "")
    if c.stop.signal_at is not None and c.exit.at is not None and c.exit.at >= c.stop.signal_at:
        words += f", {c.drain_seconds:.1f} s after {c.stop.signal}"
    elif c.exit.at is not None and c.exit.at < 0 and deleted:
        words += f", {-c.exit.at:.1f} s before the DELETE"
    reaction = c.seen.first_reaction
    if reaction is not None and reaction.what in _REACTIONS:
        words += f", first reaction after {seconds(reaction.seconds)} ({_REACTIONS[reaction.what]})"
    hook = c.hook
    if hook is None:
        return words
    if hook.outcome == "skipped":
        return f"{words}; preStop not run"
    if hook.outcome == "unknown" and ongoing:
        return f"{words}; preStop {hook.handler} still runs"
    if hook.outcome == "unknown":
        return f"{words}; how preStop {hook.handler} ended is not known"
    if hook.outcome == "outlived":
        return f"{words}; preStop {hook.handler} still ran when its time was over, after {seconds(hook.seconds)}"
    return f"{words}; preStop {hook.handler} {hook.outcome} after {seconds(hook.seconds)}"


def _by_endpoint(endpoints: Sequence[EndpointTransition]) -> list[list[EndpointTransition]]:
    groups: dict[tuple[str, str], list[EndpointTransition]] = {}
    for each in endpoints:
        groups.setdefault((each.service, each.address), []).append(each)
    return list(groups.values())


def _endpoint_words(group: Sequence[EndpointTransition]) -> str:
    words = []
    for each in group:
        if each.removed:
            words.append(f"removed at {each.at:+.3f}s")
        else:
            conditions = (("ready", each.ready), ("serving", each.serving), ("terminating", each.terminating))
            said = " ".join(f"{name}={'true' if value else 'false'}" for name, value in conditions)
            words.append(f"{said} at {each.at:+.3f}s")
    return f"{group[0].service} {group[0].address}: " + ", ".join(words)


def _notes(ending: Ending, with_evidence: bool) -> RenderableType | None:
    if not ending.findings and not ending.not_known:
        return None
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", ratio=1)
    by_id = {entry.record.id: entry for entry in ending.entries}
    # What is true of several containers is said once.
    for finding in {(f.severity, f.text, f.advice): f for f in ending.findings}.values():
        mark, style = _MARKS[finding.severity]
        words = Text(printable(finding.text, 1000))
        if finding.advice:
            words.append(BREAK).append("→ ", style="bold").append(printable(finding.advice, 1000))
        if with_evidence:
            for line in _evidence(finding, by_id):
                words.append(BREAK).append(line, style="dim")
        table.add_row(Text(mark, style=f"bold {style}"), words)
    for sentence in ending.not_known:
        table.add_row(Text("?", style="bold yellow"), Text(printable(sentence)))
    return Padding(table, 0)


def _evidence(finding: Finding, by_id: Mapping[str, Entry]) -> Iterator[str]:
    """Yield a line for each of the first records that a finding rests on."""
    known = [by_id[each] for each in finding.evidence if each in by_id]
    for entry in known[:_MOST_EVIDENCE]:
        yield f"evidence: {entry.at:+.3f}s {printable(words_for(entry.record).text, 200)}"
    if len(known) > _MOST_EVIDENCE:
        yield f"evidence: {len(known) - _MOST_EVIDENCE} more records"
