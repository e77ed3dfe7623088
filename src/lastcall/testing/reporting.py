"""What a failed test's report says of the namespace that it used."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from lastcall.endings import is_ongoing
from lastcall.errors import LastcallError
from lastcall.kube.api import StatusError
from lastcall.kube.client import ConnectionLost
from lastcall.records.quoting import log_line

if TYPE_CHECKING:
    from lastcall.endings import Ending as Story
    from lastcall.testing.blocking import Namespace
    from lastcall.testing.ending import Ending

_OTHERS = 5
"""At most so many Pods that the test did not delete itself."""


def sections(namespace: "Namespace", said: str, *, alone: bool) -> list[tuple[str, str]]:
    """Return (heading, text): how Pods ended, without what the test's error has `said`, then what there is now.

    `alone`: the namespace is the test's own, so every Pod of it is, too.
    """
    where = f"lastcall: namespace {namespace.namespace}"
    found = []
    try:
        found += [
            (log_line(f"lastcall: {e}"), e.text) for e in _endings(namespace, alone=alone) if not _is_in(e.text, said)
        ]
        found.append((where, namespace.dump()))
    except (LastcallError, StatusError, ConnectionLost) as error:
        found.append((where, log_line(f"not available: {error}")))
    return found


def _endings(namespace: "Namespace", *, alone: bool) -> Iterator["Ending"]:
    """What the test deleted, then the latest of its Pods that something else ended, and badly."""
    deleted = [each for each in namespace.endings if each.pods]
    yield from deleted
    if alone:
        known = {pod.pod.uid for each in deleted for pod in each.pods}
        all_of_it = namespace.story()
        others = [pod for pod in all_of_it.pods if pod.pod.uid not in known and _ended_badly(pod)]
        if others:
            yield replace(all_of_it, pods=tuple(others[-_OTHERS:]))


def _ended_badly(pod: "Story") -> bool:
    return pod.outcome != "graceful" and not (pod.outcome == "unknown" and is_ongoing(pod))


def _is_in(text: str, said: str) -> bool:
    return " ".join(text.split()) in " ".join(said.split())
