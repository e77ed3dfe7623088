"""The timeline while it happens: one zero for Pods that are deleted together, one for each Pod that is followed."""

import io
import re

from lastcall.endings.render.console import SafeConsole
from lastcall.endings.render.live import LiveTimeline
from lastcall.endings.story import PodFacts
from lastcall.records import kinds as k
from lastcall.records.record import Record

ZERO_NS = 10**12


def lines(*pods: tuple[str, float], named: bool = False) -> list[tuple[float, str]]:
    """Return the (seconds, Pod) of each line, for Pods with the seconds at which their DELETE is accepted."""
    out = io.StringIO()
    console = SafeConsole(file=out, width=100)
    live = LiveTimeline(console, console)
    live.begin([] if named else [PodFacts(name, "default", name) for name, _ in pods], named=named)
    for name, at in pods:
        if named:
            live.add(PodFacts(name, "default", name))
        for number, (after, kind) in enumerate(((0, k.DELETE_ACCEPTED), (0.5, k.OBJECT_REMOVED))):
            at_ns = ZERO_NS + round((at + after) * 1e9)
            live.record(
                Record(f"apiserver-{name}-{number}", at_ns, at_ns, "apiserver", kind, name, facts={"user": "me"})
            )
    live.end()
    found = (re.fullmatch(r" *\+([0-9.]+)s +apiserver +(\w+): .*", line) for line in out.getvalue().splitlines())
    return [(float(each[1]), each[2]) for each in found if each]


def test_pods_that_are_deleted_together_have_one_zero() -> None:
    assert lines(("a", 0.003), ("b", 0.0)) == [(0.0, "b"), (0.003, "a"), (0.5, "b"), (0.503, "a")]


def test_each_pod_that_is_followed_has_its_own_zero() -> None:
    assert lines(("a", 0.0), ("b", 60.0), named=True) == [(0.0, "a"), (0.5, "a"), (0.0, "b"), (0.5, "b")]
