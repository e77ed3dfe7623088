"""The verdict quotes a Pod that reported the end of a worker when requests were lost."""

import pytest

from lastcall.experiment.rollout.worker_ends import with_worker_ends
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.traffic.lives import PodLife
from lastcall.traffic.outcome import Outcome
from lastcall.traffic.verdict import Judgement

GUNICORN = "[2026-11-30 21:00:00 +0000] [1] [CRITICAL] WORKER TIMEOUT (pid:9)"


def printed(at: float, text: str, uid: str = "u") -> Record:
    return Record(f"r{at}", round(at * 1e9), 0, "shim-1", kinds.OUTPUT, uid, "web", facts={"text": text})


def lost(at: float, how: str = "closed before bytes") -> Outcome:
    return Outcome(1, "slow", at - 2, at - 2, at, 1, 0.0, 0, "10.244.0.2", how)  # type: ignore[arg-type]


LIVES = [PodLife("u", "web-1", "10.244.0.2"), PodLife("v", "web-2", "10.244.0.3")]


@pytest.mark.parametrize(
    ("line", "at", "uid", "quoted"),
    [
        (GUNICORN, 10.0, "u", True),
        ("*** HARAKIRI ON WORKER 2 (pid: 9, try: 1) ***", 10.0, "u", True),
        ("[pool www] child 9 exited on signal 9 (SIGKILL) after 3.1 seconds from start", 10.0, "u", True),
        (GUNICORN, 5.0, "u", False),  # long before it
        (GUNICORN, 11.0, "u", False),  # after it
        (GUNICORN, 10.0, "v", False),  # another Pod
        ("worker started", 10.0, "u", False),
    ],
)
@pytest.mark.parametrize("verdict", ["requests lost", "inconclusive"])
def test_a_line_is_quoted_for_a_loss_at_its_pod_and_moment(
    line: str, at: float, uid: str, quoted: bool, verdict: str
) -> None:
    judgement = Judgement(verdict, "1 of 2 requests was lost", ())  # type: ignore[arg-type]
    found = with_worker_ends(judgement, [lost(10.2), lost(10.2, "")], LIVES, [printed(at, line, uid)])
    said = f". When they were lost, the Pods of 1 of the requests reported the end of a worker: {line}"
    assert found.sentence == judgement.sentence + (said if quoted else "")
    assert (found is judgement) is not quoted
