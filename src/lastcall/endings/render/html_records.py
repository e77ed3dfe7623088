"""A Pod's records as tables and its output as a list: what the picture shows, to be read, searched and heard."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lastcall.endings.picture.lanes import Picture, is_about_the_end
from lastcall.endings.render.html_picture import at_words
from lastcall.endings.render.lines import actor_label
from lastcall.endings.render.markup import Markup, tag
from lastcall.endings.story import Ending, Entry, OutputLine
from lastcall.records import kinds
from lastcall.records.explain import explain
from lastcall.records.said import tell
from lastcall.records.sentences import NOISE
from lastcall.records.text import printable
from lastcall.records.words import words_for

MOST_OTHERS = 300
"""Rows of records that are not in the picture."""

_FACT_LIMIT = 400
_HEAD = ("#", tell("when"), tell("who"), tell("what"), tell("rule and evidence"))
EVIDENCE = {"inferred": tell("inferred"), "predicted": tell("predicted")}


@dataclass(slots=True)
class Rules:
    """Every rule of the page once, in the order in which they are met."""

    numbers: dict[str, int] = field(default_factory=dict)

    def link(self, rule: str) -> Markup | None:
        """`pod_workers.go:UpdatePod`, leading to its explanation."""
        if not rule:
            return None
        number = self.numbers.setdefault(rule, len(self.numbers) + 1)
        return tag("a", rule.rpartition("/")[2], href=f"#rule{number}", class_="rule")

    def section(self) -> Markup | None:
        """The glossary."""
        if not self.numbers:
            return None
        rows = [
            tag(
                "div",
                tag("dt", tag("code", rule)),
                tag("dd", explain(rule) or tell("No explanation yet.")),
                id=f"rule{number}",
            )
            for rule, number in self.numbers.items()
        ]
        return tag(
            "section",
            tag("h2", tell("The rules"), id="rules"),
            tag("dl", rows, class_="rules"),
            aria_labelledby="rules",
        )


def steps_table(ending: Ending, picture: Picture, page_id: str, rules: Rules) -> Markup:
    """All records but output: those of the picture first, the others below, folded away."""
    numbers = {mark.entry.record.id: mark.number for mark in picture.marks}
    shown = [mark.entry for mark in picture.marks]
    rest = [e for e in ending.entries if e.record.id not in numbers and e.record.kind != kinds.OUTPUT]
    parts = [_table(tell("Steps of the end"), shown, numbers, page_id, rules)]
    before = [e for e in rest if not is_about_the_end(e, ending)]
    others = [e for e in rest if is_about_the_end(e, ending)]
    if picture.left_out:
        parts.append(tag("p", _left_out(picture.left_out), class_="note"))
    parts += _folded(_before(len(before)), before, numbers, page_id, rules)
    parts += _folded(_more(len(others)), others, numbers, page_id, rules)
    return tag("div", parts, class_="steps")


def _left_out(count: int) -> str:
    return tell("$count records are not in the picture: they were too many.", count=count)


def _before(count: int) -> str:
    if count == 1:
        return tell("1 record from before the DELETE")
    return tell("$count records from before the DELETE", count=count)


def _more(count: int) -> str:
    if count == 1:
        return tell("1 more record of the end (probes, exec processes)")
    return tell("$count more records of the end (probes, exec processes)", count=count)


def _folded(
    title: str, entries: Sequence[Entry], numbers: Mapping[str, int], page_id: str, rules: Rules
) -> list[Markup]:
    if not entries:
        return []
    kept = entries[-MOST_OTHERS:]
    note = None
    if len(kept) < len(entries):
        note = tag(
            "p",
            tell(
                "The $count oldest of them are left out here; --output json has them.", count=len(entries) - len(kept)
            ),
            class_="note",
        )
    return [tag("details", tag("summary", title), note, _table(title, kept, numbers, page_id, rules))]


def _table(caption: str, entries: Sequence[Entry], numbers: Mapping[str, int], page_id: str, rules: Rules) -> Markup:
    head = tag("tr", [tag("th", name, scope="col") for name in _HEAD])
    rows = [_row(entry, numbers, page_id, rules) for entry in entries]
    return tag(
        "div",
        tag("table", tag("caption", caption), tag("thead", head), tag("tbody", rows)),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def _row(entry: Entry, numbers: Mapping[str, int], page_id: str, rules: Rules) -> Markup:
    record = entry.record
    words = words_for(record)
    number = numbers.get(record.id)
    cause = numbers.get(entry.cause_id or "")
    because = None
    if cause is not None:
        because = tag("span", tell("because of "), tag("a", cause, href=f"#{page_id}r{cause}"), class_="why")
    facts = _facts(record.facts)
    return tag(
        "tr",
        tag("td", number),
        tag("td", at_words(entry.at)),
        tag("td", actor_label(record), tag("b", record.container) if record.container else None),
        tag(
            "td",
            tag("span", words.text, class_=f"w s-{words.style}" if words.style else "w"),
            tag("span", facts, class_="facts") if facts else None,
        ),
        tag(
            "td",
            rules.link(record.rule),
            because,
            None if record.evidence == "observed" else tag("em", EVIDENCE.get(record.evidence, record.evidence)),
        ),
        id=f"{page_id}r{number}" if number is not None else None,
        class_="noise" if words.level >= NOISE else None,
    )


def _facts(facts: Mapping[str, object]) -> str:
    """`gracePeriodSeconds 30 · user kubernetes-admin`; what is empty is left out."""
    said = []
    for name, value in facts.items():
        if value is None or value == "" or value == []:
            continue
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        if isinstance(value, float):
            shown = f"{value:.6g}"
        said.append(f"{printable(name, 80)} {printable(shown, _FACT_LIMIT)}")
    return " · ".join(said)


# -- output ---------------------------------------------------------------------------------------------------------


def output_list(ending: Ending, most_bytes: int) -> Markup | None:
    """The lines that the containers printed since the DELETE, within about `most_bytes` of page."""
    lines = ending.output
    dropped = sum(
        int(e.told(kinds.OUTPUT).get("dropped") or 0)
        for e in ending.entries
        if e.record.kind == kinds.OUTPUT and e.at >= 0
    )
    if not lines and not dropped:
        return None
    several = len({line.container for line in lines}) > 1
    head, tail = _within(lines, most_bytes)
    items = [_line(line, several) for line in head]
    left_out = len(lines) - len(head) - len(tail)
    if left_out:
        items.append(tag("li", _lines_left_out(left_out), class_="note"))
    items += [_line(line, several) for line in tail]
    note = None
    if dropped:
        note = tag(
            "p",
            tell("$count more lines came too fast to be recorded; the container's log has all of them.", count=dropped),
            class_="note",
        )
    return tag(
        "div", note, tag("ol", items, class_="log", tabindex="0", aria_label=tell("Lines that the containers printed"))
    )


def _lines_left_out(count: int) -> str:
    return tell("… $count lines are left out of this page; --output json has them …", count=count)


def _within(lines: Sequence[OutputLine], most_bytes: int) -> tuple[Sequence[OutputLine], Sequence[OutputLine]]:
    """The first and the last lines that fit: a third for the beginning, the rest for the end."""
    sizes = [len(line.text[:_FACT_LIMIT]) + len(line.container) + 70 for line in lines]
    if sum(sizes) <= most_bytes:
        return lines, ()
    first = _fitting(sizes, most_bytes / 3)
    last = _fitting(sizes[::-1], most_bytes * 2 / 3)
    last = min(last, len(lines) - first)
    return lines[:first], lines[len(lines) - last :]


def _fitting(sizes: Sequence[int], room: float) -> int:
    count = 0
    for size in sizes:
        room -= size
        if room < 0:
            break
        count += 1
    return count


def _line(line: OutputLine, several: bool) -> Markup:
    return tag(
        "li",
        tag("time", at_words(line.at)),
        tag("b", line.container) if several else None,
        tag("code", printable(line.text, _FACT_LIMIT)),
        data_t=round(line.at, 6),
        class_="err" if line.stream == "stderr" else None,
    )
