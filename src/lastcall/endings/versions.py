"""The same Pods under several versions of Kubernetes: which belongs to which, and what differs. Pure."""

# check: pure

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from lastcall.endings.story import ContainerEnding, Ending
from lastcall.endings.verdict import outcome_words
from lastcall.records.sentences import STEP
from lastcall.records.words import words_for
from lastcall.world.dataclass import dataclass

SAME_SECONDS = 0.5
"""Times that lie closer together do not differ: that is how much the same end varies."""


@dataclass(frozen=True, slots=True)
class VersionStory:
    """How the Pods ended under one version, in the order of the manifests. `error`: what cut it short, "" for nothing.

    `exit_status` is that of a run of this version alone.
    """

    version: str
    endings: tuple[Ending, ...] = ()
    exit_status: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """`values` has a text for each version, "-" where there is nothing. `container` is "" when it is about the Pod."""

    what: str
    values: tuple[str, ...]
    container: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One Pod. `endings` has one entry for each version, None where it did not end; `differences` compares those."""

    namespace: str
    name: str
    endings: tuple[Ending | None, ...]
    differences: tuple[Difference, ...]


def compare(stories: Sequence[VersionStory]) -> list[Comparison]:
    """Compare Pods of the same name; those that an owner named at random go by their order."""
    columns = [_keyed(story.endings) for story in stories]
    keys = list(dict.fromkeys(key for column in columns for key in column))
    compared = []
    for key in keys:
        endings = tuple(column.get(key) for column in columns)
        first = next(ending for ending in endings if ending is not None)
        compared.append(Comparison(first.pod.namespace, first.pod.name, endings, tuple(differences(endings))))
    return compared


def labelled(stories: Sequence[VersionStory]) -> list[Ending]:
    """Return all endings in one list, Pod by Pod, each named after its version, and as if all had been deleted
    together."""
    found = []
    for comparison in compare(stories):
        zero = next(ending.zero_ns for ending in comparison.endings if ending is not None)
        for story, ending in zip(stories, comparison.endings, strict=True):
            if ending is not None:
                pod = replace(ending.pod, name=f"{ending.pod.name} ({story.version})")
                found.append(replace(ending, pod=pod, zero_ns=zero))
    return found


_RANDOM = re.compile(r"(-[bcdfghjklmnpqrstvwxz2456789]{9,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}$")


def _keyed(endings: Sequence[Ending]) -> dict[tuple[str, str, int], Ending]:
    keyed: dict[tuple[str, str, int], Ending] = {}
    for ending in endings:
        owned = ending.decided_by is not None and bool(ending.decided_by.owner)
        name = _RANDOM.sub("", ending.pod.name) if owned else ending.pod.name
        number = 0
        while (ending.pod.namespace, name, number) in keyed:
            number += 1
        keyed[ending.pod.namespace, name, number] = ending
    return keyed


def differences(endings: Sequence[Ending | None]) -> Iterator[Difference]:
    """Yield what differs between one Pod's ends, the most important first."""
    yield from _differing("the Pod", [_word(e, outcome_words) for e in endings])
    if None in endings:
        return  # there is nothing to compare with
    yield from _differing("phase", [_word(e, lambda e: e.pod.phase) for e in endings])
    yield from _differing_times("gone after", [e.gone if e else None for e in endings])
    for name in dict.fromkeys(c.name for e in endings if e is not None for c in e.containers):
        containers = [next((c for c in e.containers if c.name == name), None) if e else None for e in endings]
        yield from _of_container(name, containers)
    budgets = [e.budget if e is not None else None for e in endings]
    for what, part in _PARTS:
        yield from _differing_times(f"budget: {what}", [getattr(b, part) if b else None for b in budgets])
    yield from _steps(endings)


_PARTS = (
    ("grace", "grace"),
    ("hook", "pre_stop"),
    ("waiting", "waiting"),
    ("drain", "drain"),
    ("unused", "unused"),
    ("overrun", "overrun"),
)


def _of_container(name: str, found: Sequence[ContainerEnding | None]) -> Iterator[Difference]:
    yield from _differing("ended with", [_end(c) for c in found], name)
    yield from _differing("preStop hook", [_hook(c) for c in found], name)
    yield from _differing("StopContainer timeout", [_timeout(c) for c in found], name)
    yield from _differing_times("stop signal at", [c.stop.signal_at if c else None for c in found], name)
    yield from _differing_times("SIGKILL at", [c.stop.kill_at if c else None for c in found], name)


def _steps(endings: Sequence[Ending | None]) -> Iterator[Difference]:
    """Steps that not every version takes, whatever their numbers: one difference for each kind of record."""
    taken = [_step_texts(ending) if ending is not None else {} for ending in endings]
    by_kind: dict[tuple[str, str], list[_Step]] = {}
    for key in dict.fromkeys(key for steps in taken for key in steps):
        if not all(key in steps for steps in taken):
            by_kind.setdefault((key.kind, key.container), []).append(key)
    for (kind, container), keys in by_kind.items():
        values = ("; ".join(steps[key] for key in keys if key in steps) or "-" for steps in taken)
        yield Difference(f"step {kind}", tuple(values), container)


_VARIES = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=kube-api-access-)[a-z0-9]{5}|\d[\d.]*")
_ASIDE = re.compile(r" \(.*\)$")
"""Of a step's text what is another one each time, and what is said beside it."""


class _Step(NamedTuple):
    """What a step is known by: its text without what varies."""

    kind: str
    container: str
    text: str


def _step_texts(ending: Ending) -> dict[_Step, str]:
    """Return the steps of an ending, each with its text."""
    steps: dict[_Step, str] = {}
    for entry in ending.entries:
        words = words_for(entry.record)
        if entry.at >= 0 and words.level <= STEP:
            text = _VARIES.sub("#", _ASIDE.sub("", words.text))
            steps.setdefault(_Step(entry.record.kind, entry.record.container, text), words.text)
    return steps


def _word(ending: Ending | None, text: Callable[[Ending], str]) -> str:
    return (text(ending) if ending is not None else "") or "-"


def _end(c: ContainerEnding | None) -> str:
    if c is None or c.exit.code is None:
        return "-"
    by = f", by {c.exit.signal}" if c.exit.signal else ""
    return f"exit code {c.exit.code}{by}"


def _hook(c: ContainerEnding | None) -> str:
    return c.hook.outcome if c is not None and c.hook is not None else "-"


def _timeout(c: ContainerEnding | None) -> str:
    return f"{c.stop.timeout:g} s" if c is not None and c.stop.timeout is not None else "-"


def _differing(what: str, values: Sequence[str], container: str = "") -> Iterator[Difference]:
    if len(set(values)) > 1:
        yield Difference(what, tuple(values), container)


def _differing_times(what: str, seconds: Sequence[float | None], container: str = "") -> Iterator[Difference]:
    known = [each for each in seconds if each is not None]
    if known and (len(known) < len(seconds) or max(known) - min(known) > SAME_SECONDS):
        yield Difference(what, tuple("-" if each is None else f"{each:.1f} s" for each in seconds), container)
