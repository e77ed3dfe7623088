"""Recordings of a real Kubernetes 1.36.2 played step by step on a virtual cluster.

`data/*.json` holds what two recorded runs had in common: what every write of a Pod changed, the last object, Events,
EndpointSlices, output lines, process starts and ends, seconds after the Killing event (compared to 0.5 s). The shell
scripts of the manifests become `Program`s (tests/support/scenario/programs.py).

`KNOWN` is the one table of what differs, with the reason. A difference that is not in it fails, and so does an entry
that no longer differs.
"""

import pytest
from scenario.replay import Replay, recording_names

FASTER_EXIT = (
    "the container ends 0.3 s after its start: here that is reported at once, a real kubelet relists each second"
)
SYNCS_IN_BACK_OFF = "chance: how many syncs fall into the back-off; each after the first writes CrashLoopBackOff"
SAME_INSTANT = "chance: two ends at the same instant, told in either order"
NO_FILES = "simulated containers have no files to read"
NO_SERVER_LOG = "simulated listeners do not print requests (test_hooks_of_a_stopping_pod looks at the request)"
BOTH_AT_ONCE = "both Pods are running within one pass of the controller; which of two equal drains ends first is chance"
PROBE_COUNT = "chance: how many probe periods fit between ready and gone"
POST_START_ORDER = "the recorder saw the end of the postStart exec before its start"
LOOKS = "chance: how often the scheduler looks again before the victim is gone"
EARLIER = "counted on from earlier attempts under this name: the Events of the taint controller name no uid"
LOST_BEFORE = "the controller took it for a lost node of that name from an earlier attempt, and tainted it unreachable"

KNOWN: dict[str, dict[str, str]] = {
    "crashloop-three": {"milestones p": FASTER_EXIT, "events p": FASTER_EXIT},
    "endpointslice-variants": {
        "events u": PROBE_COUNT,
        "endpoints plain": BOTH_AT_ONCE,
        "endpoints headless": BOTH_AT_ONCE,
        "endpoints pub": BOTH_AT_ONCE,
        "endpoints headpub": BOTH_AT_ONCE,
    },
    "init-fails-always-delete": {"milestones p": SYNCS_IN_BACK_OFF, "events p": SYNCS_IN_BACK_OFF},
    "kubelet-down-force-delete": {"runtime p": SAME_INSTANT},
    "missing-volume": {"events p": "the simulated volume manager stops retrying at the DELETE"},
    "poststart-fails-never": {"runtime p": POST_START_ORDER},
    "poststart-fails-restart": {
        "milestones p": SYNCS_IN_BACK_OFF,
        "events p": SYNCS_IN_BACK_OFF,
        "runtime p": POST_START_ORDER,
    },
    "preemption": {"events high": LOOKS},
    "prestop-http-404": {
        "logs p/app#0": NO_SERVER_LOG,
        **{
            f"seconds p/app: log '{line}'": NO_SERVER_LOG
            for line in (
                "GET /drain?x=1 HTTP/1.1",
                "Host: <ip>:8080",
                "User-Agent: kube-lifecycle/1.36",
                "Accept: */*",
                "X-Hook: yes",
                "Accept-Encoding: gzip",
                "",
            )
        },
    },
    "readiness-fails-in-termination": {"events p": PROBE_COUNT},
    "sidecar-app-ignores-term": {"runtime p": SAME_INSTANT},
    "start-error": {"milestones p": SYNCS_IN_BACK_OFF, "events p": SYNCS_IN_BACK_OFF},
    "taint-noexecute": {"events none": EARLIER},
    "taint-noexecute-nokubelet": {"events none": LOST_BEFORE, "events forever": LOST_BEFORE},
    "volume-through-termination": {
        "logs p/app#0": NO_FILES,
        "seconds p/app: log 'TERM v'": NO_FILES,
        "seconds p/app: log 'after vx'": NO_FILES,
    },
}


@pytest.mark.parametrize("name", recording_names())
def test_the_recording_happens_again(name: str) -> None:
    found = Replay(name).run().disagreements()
    known = KNOWN.get(name, {})
    unknown = "\n".join(text for aspect, text in found.items() if aspect not in known)
    assert not unknown, f"{name} differs from the recording:\n{unknown}"
    assert set(known) <= set(found), f"{name}: agrees now, take it out of KNOWN: {set(known) - set(found)}"


def test_every_entry_of_the_table_belongs_to_a_recording() -> None:
    assert set(KNOWN) <= set(recording_names())
