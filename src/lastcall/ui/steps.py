"""The steps of a Pod's story as the page lists them: words, facts, the rule behind each. Pure."""

# check: pure

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lastcall.endings import Ending, Entry, Picture, is_about_the_end
from lastcall.endings.render import actor_label
from lastcall.records import kinds
from lastcall.records.explain import explain
from lastcall.records.record import Record
from lastcall.records.rules import HANDLE_CONTAINER_EXIT, STOP_CONTAINER, STOP_POD_SANDBOX
from lastcall.records.said import tell
from lastcall.records.text import printable
from lastcall.records.words import meaning, words_for

_FACT_LIMIT = 400
_KUBERNETES = ("pkg/", "staging/", "plugin/", "cmd/")
_CONTAINERD = "https://github.com/containerd/containerd/blob/v2.0.0"
_OF_SHIMS = {kinds.PROCESS_SIGNAL_STATE: STOP_CONTAINER, kinds.PROCESS_EXITED: HANDLE_CONTAINER_EXIT}
_ASKED_BY = {"StopContainer": STOP_CONTAINER, "grace over": STOP_CONTAINER, "StopPodSandbox": STOP_POD_SANDBOX}
"""Why a signal is sent → the rule of that call."""


def steps(entries: Iterable[Entry], numbers: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return what the page says of each. `numbers`: record → its number in the picture; others have none."""
    return [_step(entry, numbers) for entry in entries]


def _step(entry: Entry, numbers: Mapping[str, int]) -> dict[str, Any]:
    record = entry.record
    words = words_for(record)
    return {
        "n": numbers.get(record.id),
        "at": seconds_of(entry.at),
        "actor": actor_label(record),
        "container": record.container,
        "kind": record.kind,
        "text": words.text,
        "level": words.level,
        "style": words.style,
        "evidence": record.evidence,
        "rule": record.rule or _rule_of_a_shim(record),
        "facts": facts(record.facts),
        "cause": numbers.get(entry.cause_id or ""),
    }


def _rule_of_a_shim(record: Record) -> str:
    """Return the rule of what a shim does or sees; its records name none, because it loads none."""
    if record.kind == kinds.SIGNAL_SENT:
        return _ASKED_BY.get(record.facts_as(kinds.SIGNAL_SENT).get("why", ""), "")
    return _OF_SHIMS.get(record.kind, "")


def seconds_of(seconds: float) -> float:
    """Round all alike: the page hides what is after the moment it shows, and the last step is at the very end."""
    return round(seconds, 5)


def facts(facts_of: Mapping[str, object]) -> list[list[str]]:
    """Return name and value of each fact; those without a value are left out."""
    said = []
    for name, value in facts_of.items():
        if value is None or value == "" or value == []:
            continue
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        if isinstance(value, float):
            shown = f"{value:.6g}"
        said.append([printable(name, 80), printable(shown, _FACT_LIMIT)])
    return said


def rules(listed: Iterable[Mapping[str, Any]], kubernetes_version: str) -> dict[str, dict[str, str]]:
    """Return what each rule of these steps says, and where it is."""
    return {
        rule: {"explain": explain(rule), "source": source_link(rule, kubernetes_version)}
        for rule in dict.fromkeys(each["rule"] for each in listed)
        if rule
    }


def meanings(listed: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return what each kind of record of these steps is, in a sentence."""
    return {kind: meaning(kind) for kind in dict.fromkeys(each["kind"] for each in listed)}


def source_link(rule: str, kubernetes_version: str) -> str:
    """Return where the rule is in the source of Kubernetes or containerd; "" for another's. Opened by a click only."""
    path, _, _function = rule.partition(":")
    if path.startswith("containerd "):
        return f"{_CONTAINERD}/{path.removeprefix('containerd ')}"
    if not path.startswith(_KUBERNETES):
        return ""
    return f"https://github.com/kubernetes/kubernetes/blob/v{kubernetes_version or '1.37'}.0/{path}"


def other_steps(ending: Ending, picture: Picture, numbers: Mapping[str, int], most: int) -> list[dict[str, Any]]:
    """Return the records that are not in the picture in two groups, before and during the end, `most` of each."""
    rest = [e for e in ending.entries if e.record.id not in numbers and e.record.kind != kinds.OUTPUT]
    before = [e for e in rest if not is_about_the_end(e, ending)]
    more = [e for e in rest if is_about_the_end(e, ending)]
    groups = ((_before(len(before)), "", before), (_more(len(more)), _left_out(picture.left_out), more))
    return [_group(title, note, entries, numbers, most) for title, note, entries in groups if entries]


def _group(title: str, note: str, entries: Sequence[Entry], numbers: Mapping[str, int], most: int) -> dict[str, Any]:
    kept = entries[-most:]
    left_out = len(entries) - len(kept)
    cut = tell("The $count oldest of them are left out here; --output json has them.", count=left_out)
    notes = [note] if note else []
    return {"title": title, "notes": [*notes, cut] if left_out else notes, "steps": steps(kept, numbers)}


def _left_out(count: int) -> str:
    return tell("$count records are not in the picture: they were too many.", count=count) if count else ""


def _before(count: int) -> str:
    if count == 1:
        return tell("1 record from before the DELETE")
    return tell("$count records from before the DELETE", count=count)


def _more(count: int) -> str:
    if count == 1:
        return tell("1 more record of the end (probes, exec processes)")
    return tell("$count more records of the end (probes, exec processes)", count=count)
