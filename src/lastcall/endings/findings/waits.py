"""Rows about what a container that is being stopped still waits for. Pure."""

# check: pure

from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Fact, Row
from lastcall.endings.still_there import wait_of_run
from lastcall.endings.story import Finding
from lastcall.records import kinds

_WAITS: Fact[RunSubject] = Fact(
    "when it ended",
    lambda s: wait_of_run(s.run, s.ending) is not None,
    (kinds.PROCESS_STARTED, kinds.PRE_STOP_STARTED, kinds.SIGNAL_SENT),
)


def _waits(s: RunSubject) -> Finding:
    wait = wait_of_run(s.run, s.ending)
    assert wait is not None
    return Finding("waitsFor", "info", wait.what, s.run.name, wait.ends)


ROWS = (Row("waitsFor", (_WAITS,), _waits),)
