"""The table of causes: a row speaks if all that it needs was observed and nothing that refutes it was. Pure.

A fact is true, false, or was not observed (None). A question that was raised and that no row answers, because what a
row needs was not observed, is answered with "not known" and with what was missing.
"""

# check: pure

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Generic, Protocol, TypeVar

from lastcall.endings.findings.words import listed
from lastcall.endings.story import Entry, Finding
from lastcall.records.said import tell
from lastcall.world.dataclass import dataclass


class Subject(Protocol):
    """What rows are about: a Pod, a container, one of its runs, or one record."""

    def entries(self, kinds: Sequence[str]) -> Iterable[Entry]:
        """Return the records of these kinds that belong to it, sorted by time."""
        ...


S = TypeVar("S", bound=Subject)


@dataclass(frozen=True, slots=True)
class Fact(Generic[S]):
    """Something that holds of a subject, does not hold, or was not observed (None).

    `name` completes "it was not observed …". `kinds` are the records that show it.
    """

    name: str
    holds: Callable[[S], bool | None]
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question(Generic[S]):
    """What a reader asks once `raised_by` holds. `text` completes "… is not known"."""

    raised_by: tuple[Fact[S], ...]
    text: Callable[[S], str]


@dataclass(frozen=True, slots=True)
class Row(Generic[S]):
    """One cause. `says` is called only when the row speaks; the finding's id is the row's."""

    id: str
    needs: tuple[Fact[S], ...]
    says: Callable[[S], Finding]
    refuted_by: tuple[Fact[S], ...] = ()
    answers: Question[S] | None = None
    variant: str = ""
    """Which of several rows with one id."""
    about: Callable[[S], S] | None = None
    """Narrows a subject to the part that the finding is about: only its records are evidence."""

    @property
    def name(self) -> str:
        """Return the id, with the variant after a colon if there is one."""
        return f"{self.id}:{self.variant}" if self.variant else self.id

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds of records that it rests on."""
        return tuple(dict.fromkeys(kind for fact in self.needs for kind in fact.kinds))


def every(*facts: Fact[S]) -> Callable[[S], bool | None]:
    """Return a test for whether all facts hold: False if one does not, None if none fails and one was not observed."""

    def holds(subject: S) -> bool | None:
        found = [fact.holds(subject) for fact in facts]
        if any(each is False for each in found):
            return False
        return None if any(each is None for each in found) else True

    return holds


@dataclass(frozen=True, slots=True)
class Answer:
    """What a table says of one subject."""

    findings: tuple[Finding, ...] = ()
    not_known: tuple[str, ...] = ()


@dataclass(slots=True)
class _Open(Generic[S]):
    """A question that was raised: the names of the facts that were missing for an answer."""

    missing: dict[str, None] = field(default_factory=dict)
    answered: bool = False


def ask(rows: Sequence[Row[S]], subject: S) -> Answer:
    """Return what the rows say of a subject, in their order, and the questions that stay open."""
    findings: list[Finding] = []
    questions: dict[int, tuple[Question[S], _Open[S]]] = {}
    for row in rows:
        state, missing = judge(row, subject)
        if state:
            findings.append(_with_evidence(row, subject))
        if row.answers is not None and (state or missing):
            _, open_ = questions.setdefault(id(row.answers), (row.answers, _Open()))
            open_.answered = open_.answered or bool(state)
            open_.missing.update(dict.fromkeys(missing))
    return Answer(tuple(findings), tuple(_not_known(questions.values(), subject)))


def judge(row: Row[S], subject: S) -> tuple[bool | None, tuple[str, ...]]:
    """Return whether a row speaks, and which facts it lacks: None if they alone keep it from speaking."""
    missing: list[str] = []
    for fact in row.needs:
        holds = fact.holds(subject)
        if holds is False:
            return False, ()
        if holds is None:
            missing.append(fact.name)
    if any(fact.holds(subject) for fact in row.refuted_by):
        return False, ()
    return (None, tuple(missing)) if missing else (True, ())


def _not_known(questions: Iterable[tuple[Question[S], _Open[S]]], subject: S) -> Iterator[str]:
    for question, open_ in questions:
        if not open_.answered and all(fact.holds(subject) for fact in question.raised_by):
            missing = listed(list(open_.missing))
            yield tell(
                "$question is not known. Not observed: $missing.", question=question.text(subject), missing=missing
            )


def _with_evidence(row: Row[S], subject: S) -> Finding:
    finding = row.says(subject)
    assert finding.id == row.id
    about = row.about(subject) if row.about else subject
    records = [*finding.evidence, *(entry.record.id for entry in about.entries(row.kinds))]
    return replace(finding, evidence=tuple(dict.fromkeys(records)))
