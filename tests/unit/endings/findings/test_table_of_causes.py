"""Every row of the table of causes speaks in one story, and each of its facts alone silences it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from cause_examples import EXAMPLES, Example, killed_by_another, removed, restarted_after
from ending_stories import (
    begin,
    deleted,
    exited,
    memory_limit,
    no_handler,
    run,
    takes_too_long,
    waits_for_connections,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from tape_changes import Along, Change, met, processes, seen_through_the_api, unsent, without

from lastcall.endings.findings.rules import CONTAINER_ROWS, EARLIER_ROWS, POD_ROWS, RECORD_ROWS, RUN_ROWS
from lastcall.endings.findings.subjects import ContainerSubject, PodSubject, RecordSubject, RunSubject
from lastcall.endings.findings.table import Fact, Question, Row, ask, every, judge
from lastcall.endings.story import Ending, Entry, Finding
from lastcall.records import kinds as k
from lastcall.records.record import Record

ROWS: dict[str, Any] = {row.name: row for row in (*RECORD_ROWS, *POD_ROWS, *CONTAINER_ROWS, *RUN_ROWS)}


def subject_of(row: Any, tape: Any, container: str) -> Any:
    """What a row is asked about in a story; None for a record that is not there."""
    ending = tape.ending()
    if row in RECORD_ROWS:
        found = [entry for entry in ending.entries if entry.record.kind in row.kinds]
        return RecordSubject(ending, found[0]) if found else None
    if row in POD_ROWS:
        return PodSubject(ending)
    earlier = [run for run in ending.earlier if run.name == container]
    last = [run for run in ending.containers if run.name == container]
    if row in CONTAINER_ROWS:
        return ContainerSubject(ending, earlier, [run for run in last if run.exit.before_delete])
    return RunSubject(ending, last[0], tape.version)


def told(example: Example, new_tape: Any, *changes: Change) -> Any:
    tape = new_tape()
    for change in (example.story, *changes):
        change(tape)
    return tape


def silencers() -> Iterator[Any]:
    for name, example in EXAMPLES.items():
        for role in ("needs", "refuted_by"):
            for index, change in enumerate(getattr(example, role)):
                yield pytest.param(name, role, index, change, id=f"{name} {role} {index}")


def test_every_row_has_a_name_of_its_own_and_every_fact_an_example() -> None:
    assert len(ROWS) == len([*RECORD_ROWS, *POD_ROWS, *CONTAINER_ROWS, *RUN_ROWS])
    assert set(EARLIER_ROWS) <= set(RUN_ROWS)
    assert set(EXAMPLES) == set(ROWS)
    facts = {name: (len(row.needs), len(row.refuted_by)) for name, row in ROWS.items()}
    assert {name: (len(each.needs), len(each.refuted_by)) for name, each in EXAMPLES.items()} == facts


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_row_speaks_in_its_story(new_tape: Any, name: str) -> None:
    row, tape = ROWS[name], told(EXAMPLES[name], new_tape)
    assert judge(row, subject_of(row, tape, EXAMPLES[name].container)) == (True, ())
    assert row.id in [each.id for each in tape.ending().findings]


@pytest.mark.parametrize(("name", "role", "index", "change"), list(silencers()))
def test_each_fact_alone_silences_the_row(new_tape: Any, name: str, role: str, index: int, change: Change) -> None:
    row, example = ROWS[name], EXAMPLES[name]
    subject = subject_of(row, told(example, new_tape, change), example.container)
    if subject is None:
        return  # what the row is about is gone
    needs = [fact.holds(subject) is True for fact in row.needs]
    refuted = [fact.holds(subject) is True for fact in row.refuted_by]
    (needs if role == "needs" else refuted)[index] ^= True
    assert judge(row, subject)[0] is not True
    if isinstance(change, Along):
        assert (needs if role == "needs" else refuted)[index] is (role == "needs")
        assert not all(needs) or any(refuted), "other facts do not follow it: no need for `along`"
    else:
        assert (needs, refuted) == ([True] * len(needs), [False] * len(refuted))


# -- evidence --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_evidence_has_a_record_of_each_kind_that_the_row_rests_on(new_tape: Any, name: str) -> None:
    row, example = ROWS[name], EXAMPLES[name]
    tape = told(example, new_tape)
    subject = subject_of(row, tape, example.container)
    (finding,) = ask([row], subject).findings
    by_id = {entry.record.id: entry.record for entry in subject.ending.entries}
    assert finding.evidence
    shown = [by_id[each] for each in finding.evidence]
    theirs = [record for record in by_id.values() if row in POD_ROWS or record.container == example.container]
    rests_on = {record.kind for record in theirs if not still_speaks(name, new_tape, record.kind)}
    assert rests_on <= {record.kind for record in shown}
    if row not in (*POD_ROWS, *RECORD_ROWS):
        assert {record.container for record in shown} <= {example.container, ""}


def still_speaks(name: str, new_tape: Any, kind: str) -> bool:
    row, example = ROWS[name], EXAMPLES[name]
    tape = told(example, new_tape, without(kind))
    found = [c for c in [*tape.ending().containers, *tape.ending().earlier] if c.name == example.container]
    subject = subject_of(row, tape, example.container) if found or row in POD_ROWS else None
    return subject is not None and judge(row, subject)[0] is True


def evidence(ending: Ending, id_: str) -> list[tuple[str, float]]:
    """(kind, seconds) of the records that a finding rests on."""
    (finding,) = [each for each in ending.findings if each.id == id_]
    by_id = {entry.record.id: entry for entry in ending.entries}
    return [(by_id[each].record.kind, round(by_id[each].at, 3)) for each in finding.evidence]


def test_what_a_run_that_crashed_rests_on_ends_before_the_next_run(new_tape: Any) -> None:
    tape = new_tape()
    restarted_after(3)(tape)
    found = evidence(tape.ending(), "crashed")
    assert found == [("ProcessStarted", -10.0), ("Output", -9.99), ("ProcessExited", -9.0)]


def test_a_crash_rests_on_the_newest_run_that_crashed_and_not_on_one_that_ended_well(new_tape: Any) -> None:
    tape = new_tape()
    run(tape, -20, -19, code=3)
    run(tape, -15, -14, code=4)
    run(tape, -10, -9, code=0)
    tape.started(at=-8)
    deleted(tape)
    assert evidence(tape.ending(), "crashed") == [("ProcessStarted", -15.0), ("ProcessExited", -14.0)]
    assert evidence(tape.ending(), "endsAndIsRestarted") == [("ProcessStarted", -10.0), ("ProcessExited", -9.0)]


@pytest.mark.parametrize("begun", [0.0, 1.0])
def test_an_earlier_run_that_was_killed_rests_on_its_own_records_wherever_zero_is(new_tape: Any, begun: float) -> None:
    """The times of a Pod that lives count from its first record: its first run may begin at zero."""
    tape = new_tape()
    if begun:
        tape.add(0.0, "scheduler", k.POD_BOUND, node="node-1")
    run(tape, begun, 3.0, code=137, signal=9)
    run(tape, 5.0, 6.0, code=0)
    tape.started(at=8.0)
    assert evidence(tape.ending(), "killedByOther") == [("ProcessExited", 3.0)]


def test_of_runs_that_were_killed_for_memory_the_newest_is_the_evidence(new_tape: Any) -> None:
    tape = new_tape()
    for start in (-20.0, -10.0):
        run(
            tape,
            start,
            start + 1,
            code=137,
            signal=9,
            oomKilled=True,
            oomKills=1,
            memoryLimit=64 << 20,
            limitReached=True,
        )
    tape.started(at=-5)
    deleted(tape)
    assert evidence(tape.ending(), "outOfMemory") == [("ProcessExited", -9.0)]


# -- questions -------------------------------------------------------------------------------------------------------

ASKING = {name: row for name, row in ROWS.items() if row.answers is not None}
THROUGH_THE_API = ("when its stop signal was sent", "how it ended")
"""Facts that a cluster shows through its API."""
MISSING = [(name, fact) for name, row in ASKING.items() for fact in row.needs if fact.name not in THROUGH_THE_API]
QUESTION = "Why app did not end on SIGTERM is not known. Not observed: "


@pytest.mark.parametrize(("name", "fact"), MISSING, ids=[f"{name} {fact.name}" for name, fact in MISSING])
def test_what_a_row_lacks_through_the_api_is_named_as_not_observed(new_tape: Any, name: str, fact: Any) -> None:
    row, tape = ROWS[name], told(EXAMPLES[name], new_tape, seen_through_the_api)
    subject, ending = subject_of(row, tape, "app"), tape.ending()
    assert fact.holds(subject) is None
    assert judge(row, subject)[0] is None and row.id not in [each.id for each in ending.findings]
    (sentence,) = [each for each in ending.not_known if each.startswith(QUESTION)]
    assert fact.name in sentence


def test_a_question_names_what_is_missing_once(new_tape: Any) -> None:
    tape = new_tape()
    takes_too_long(tape)
    seen_through_the_api(tape)
    missing = (
        "what PID 1 does with its stop signal, which program PID 1 is, the processes beside PID 1, what it waited for "
        "and its sockets"
    )
    assert [each for each in tape.ending().not_known if "Not observed" in each] == [f"{QUESTION}{missing}."]


def test_an_agent_on_the_node_of_another_cluster_does_not_look_at_sockets(new_tape: Any) -> None:
    tape = new_tape()
    for change in (waits_for_connections, seen_through_the_api, met("handled")):
        change(tape)
    assert [each for each in tape.ending().not_known if "Not observed" in each] == [f"{QUESTION}its sockets."]


@pytest.mark.parametrize("name", ASKING)
def test_a_question_that_a_row_answers_is_not_open(new_tape: Any, name: str) -> None:
    assert not [each for each in told(EXAMPLES[name], new_tape).ending().not_known if "Not observed" in each]


@pytest.mark.parametrize(
    ("changes", "id_"),
    [
        ((no_handler, seen_through_the_api, met("default")), "stopSignalNotHandled"),
        ((memory_limit, seen_through_the_api), "outOfMemory"),
        ((killed_by_another, seen_through_the_api), "killedByOther"),
        ((removed, seen_through_the_api), "killed"),
    ],
)
def test_a_kill_with_another_reason_than_a_signal_in_vain_leaves_no_question(
    new_tape: Any, changes: Sequence[Change], id_: str
) -> None:
    tape = new_tape()
    for change in changes:
        change(tape)
    ending = tape.ending()
    assert id_ in [each.id for each in ending.findings]
    assert not [each for each in ending.not_known if "Not observed" in each]


def ends_well(tape: Any) -> None:
    begin(tape)
    exited(tape)


@pytest.mark.parametrize("more", [(), (seen_through_the_api,), (without(k.PROCESS_EXITED),), (unsent("SIGTERM"),)])
def test_a_container_that_was_not_killed_raises_no_question(new_tape: Any, more: Sequence[Change]) -> None:
    tape = new_tape()
    for change in (ends_well, *more):
        change(tape)
    assert not [each for each in tape.ending().not_known if "Not observed" in each]


@pytest.mark.parametrize("name", ["graceful", "sigkill-1.36"])
def test_a_story_of_a_cluster_of_ours_leaves_no_question(tapes: Any, name: str) -> None:
    assert not [each for each in tapes[name]().ending().not_known if "Not observed" in each]


# -- facts that nobody observed are not false ------------------------------------------------------------------------


def test_only_what_the_api_shows_is_known_of_a_run_that_it_alone_shows(new_tape: Any) -> None:
    """What only a node sees is unknown, and never false, for all rows and their refutations."""
    tape = told(EXAMPLES["exitCodeNotZero"], new_tape, seen_through_the_api)
    subject = subject_of(RUN_ROWS[0], tape, "app")
    facts = {fact: None for row in RUN_ROWS for fact in (*row.needs, *row.refuted_by)}
    node_only = ("PID 1", "sockets", "processes", "port was closed")
    assert {fact.holds(subject) for fact in facts if any(word in fact.name for word in node_only)} == {None}


def test_how_a_run_ended_is_unknown_until_its_end_was_seen(new_tape: Any) -> None:
    tape = new_tape()
    takes_too_long(tape)
    without(k.PROCESS_EXITED)(tape)
    subject = subject_of(RUN_ROWS[0], tape, "app")
    facts = {fact: None for row in RUN_ROWS for fact in (*row.needs, *row.refuted_by)}
    ends = ("how it ended", "its exit code", "whether memory ran out", "who sent the signal")
    assert {fact.holds(subject) for fact in facts if fact.name in ends} == {None}


def test_a_hook_whose_end_nobody_saw_has_neither_failed_nor_succeeded(new_tape: Any) -> None:
    tape = told(EXAMPLES["hookFailed"], new_tape, without(k.PRE_STOP_FINISHED))
    subject = subject_of(ROWS["hookFailed"], tape, "app")
    assert judge(ROWS["hookFailed"], subject) == (None, ("how its hook ended",))
    assert judge(ROWS["hookOutlived"], subject) == (None, ("how its hook ended",))


@pytest.mark.parametrize("name", ["childIgnoresSignal", "childrenNotSignalled:init"])
def test_whose_child_a_process_is_decides_only_where_it_was_seen(new_tape: Any, name: str) -> None:
    subject = subject_of(ROWS[name], told(EXAMPLES[name], new_tape, processes(child=None)), "app")
    assert judge(ROWS[name], subject) == (None, ("the processes beside PID 1",))


# -- the table itself ------------------------------------------------------------------------------------------------

Values = tuple[bool | None, ...]
THREE = st.sampled_from((True, False, None))


@dataclass(frozen=True)
class Known:
    """A subject of which facts are true, false or unknown."""

    needs: Values = ()
    refuted_by: Values = ()
    records: tuple[Entry, ...] = ()

    def entries(self, kinds: Sequence[str]) -> list[Entry]:
        return [entry for entry in self.records if entry.record.kind in kinds]


def row_of(needs: int, refuted_by: int = 0) -> Row[Known]:
    return Row(
        "it",
        tuple(Fact(f"n{i}", lambda s, i=i: s.needs[i]) for i in range(needs)),
        lambda s: Finding("it", "info", "It."),
        refuted_by=tuple(Fact(f"r{i}", lambda s, i=i: s.refuted_by[i]) for i in range(refuted_by)),
    )


def verdict(needs: Values, refuted_by: Values = ()) -> bool | None:
    return judge(row_of(len(needs), len(refuted_by)), Known(needs, refuted_by))[0]


@pytest.mark.parametrize(
    ("needs", "refuted_by", "state", "missing"),
    [
        ((), (), True, ()),
        ((True, True), (False, None), True, ()),
        ((True, False), (), False, ()),
        ((None, False), (), False, ()),
        ((True, True), (None, True), False, ()),
        ((None, True, None), (), None, ("n0", "n2")),
        ((None,), (True,), False, ()),
        ((None,), (None,), None, ("n0",)),
    ],
)
def test_a_row_speaks_if_all_that_it_needs_holds_and_nothing_refutes_it(
    needs: Values, refuted_by: Values, state: bool | None, missing: tuple[str, ...]
) -> None:
    row = row_of(len(needs), len(refuted_by))
    assert judge(row, Known(needs, refuted_by)) == (state, missing)
    assert bool(ask([row], Known(needs, refuted_by)).findings) is (state is True)


@settings(deadline=None)
@given(st.lists(THREE, min_size=1, max_size=5), st.lists(THREE, max_size=3), st.data())
def test_a_needed_fact_that_becomes_unknown_never_makes_a_silent_row_speak(
    needs: list[bool | None], refuted_by: list[bool | None], data: st.DataObject
) -> None:
    before = verdict(tuple(needs), tuple(refuted_by))
    needs[data.draw(st.integers(0, len(needs) - 1))] = None
    after = verdict(tuple(needs), tuple(refuted_by))
    assert after is not True
    assert before is not False or after is not True


@settings(deadline=None)
@given(st.lists(THREE, max_size=4), st.lists(THREE, max_size=3), THREE)
def test_another_refutation_never_makes_a_row_speak_and_an_unknown_one_changes_nothing(
    needs: list[bool | None], refuted_by: list[bool | None], more: bool | None
) -> None:
    before = verdict(tuple(needs), tuple(refuted_by))
    after = verdict(tuple(needs), (*refuted_by, more))
    assert after is not True or before is True
    assert after == before or more is True


@settings(deadline=None)
@given(st.lists(THREE, max_size=5))
def test_several_facts_hold_together_only_if_all_of_them_were_observed(values: list[bool | None]) -> None:
    holds = every(*(Fact(str(i), lambda s, i=i: s.needs[i]) for i in range(len(values))))(Known(tuple(values)))
    assert holds is (False if False in values else None if None in values else True)


def asking(raised: bool | None, *names: str) -> list[Row[Known]]:
    """Rows that answer one question, each by one fact."""
    question: Question[Known] = Question((Fact("raised", lambda s: raised),), lambda s: "Why")
    return [
        Row(
            "it",
            (Fact(name, lambda s, i=i: s.needs[i]),),
            lambda s: Finding("it", "info", "It."),
            answers=question,
        )
        for i, name in enumerate(names)
    ]


@pytest.mark.parametrize(
    ("raised", "values", "not_known"),
    [
        (True, (None, None, False), ("Why is not known. Not observed: its sockets and which program PID 1 is.",)),
        (True, (None, True, None), ()),
        (True, (False, False, False), ()),
        (None, (None, None, None), ()),
        (False, (None, None, None), ()),
    ],
)
def test_a_question_stays_open_if_it_was_raised_and_no_row_answers(
    raised: bool | None, values: Values, not_known: tuple[str, ...]
) -> None:
    rows = asking(raised, "its sockets", "which program PID 1 is", "its sockets")
    assert ask(rows, Known(values)).not_known == not_known


def test_evidence_is_of_what_the_row_is_about_each_record_once() -> None:
    records = tuple(Entry(Record(str(at), at, at, "x", k.OUTPUT), float(at)) for at in (1, 2, 3))
    fact: Fact[Known] = Fact("what it printed", lambda s: True, (k.OUTPUT,))
    finding = Finding("it", "info", "It.", evidence=("3",))
    whole = Row("it", (fact, fact), lambda s: finding)
    part = Row("it", (fact,), lambda s: finding, about=lambda s: Known(records=s.records[:1]))
    answer = ask([whole, part], Known(records=records))
    assert [each.evidence for each in answer.findings] == [("3", "1", "2"), ("3", "1")]
