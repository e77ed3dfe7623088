"""Jobs, DaemonSets and StatefulSets recorded on a real Kubernetes 1.36.2 and played on a virtual cluster.

As test_recordings_replayed.py, for Pods that an owner makes: `KNOWN` is the one table of what differs, with the reason.
"""

import pytest
from owner_replay import OwnerReplay, recording_names

ENDS_AT_ONCE = (
    "the end of the container and that of the Pod are written at one instant here and a second apart there, and a Job "
    "is looked at once in a second"
)
CHANCE = "the garbage collector's DELETE and the Job controller's PATCH of the finalizer: either comes first"
ALL_AT_ONCE = "equal Pods become ready and end at the same instant here; the owner tells each state that it sees"

KNOWN: dict[str, dict[str, str]] = {
    "job-backoff-limit": {"status Job/j": ENDS_AT_ONCE},
    "job-replacement-terminatingorfailed": {"milestones j-#2": CHANCE},
    "job-ttl": {"status Job/j": ENDS_AT_ONCE},
    "sts-scale-in-parallel": {"status StatefulSet/web": ALL_AT_ONCE},
}


@pytest.mark.parametrize("name", recording_names())
def test_what_an_owner_and_its_pods_did_happens_again(name: str) -> None:
    found = OwnerReplay(name).run().disagreements()
    known = KNOWN.get(name, {})
    unknown = "\n".join(text for aspect, text in found.items() if aspect not in known)
    assert not unknown, f"{name} differs from the recording:\n{unknown}"
    assert set(known) <= set(found), f"{name}: agrees now, take it out of KNOWN: {set(known) - set(found)}"


def test_every_entry_of_the_table_belongs_to_a_recording() -> None:
    assert set(KNOWN) <= set(recording_names())
