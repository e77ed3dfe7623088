"""The audited requests that are kept, and which of them a deletion or a write goes back to. No I/O, no clock.

The API server stamps its audit events and the deletionTimestamp with the same clock: a DELETE is found by its object
and its second. Of an owner's write the watch shows only when it came here.
"""

# check: pure

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

from lastcall.kube.api import StatusError, parse_label_selector
from lastcall.trace.auditing.requests import AuditedWrite
from lastcall.trace.stamps import SECOND

MOST_OBJECTS = 8192
"""Objects whose requests are kept; those that were longest without one go."""
MOST_OF_EACH = 32
SERVERS_APART_NS = SECOND
"""How far the clocks of two API servers of one cluster may be apart."""
WATCH_LATE_NS = 2 * SECOND + SECOND // 2
"""How late a watch brings a write at most, with the error of the API server's clock: its stamps are whole seconds."""

_CONTROLLER_MANAGER = "kube-controller-manager"


class AuditIndex:
    """Requests by the object that they are about."""

    def __init__(self) -> None:
        self._writes: OrderedDict[tuple[str, str, str], list[AuditedWrite]] = OrderedDict()
        self.count = 0
        """Requests that were taken."""

    def add(self, write: AuditedWrite) -> None:
        """Keep a request, and of too many forget the oldest. One of two stages is kept once."""
        key = (write.resource, write.namespace, write.name)
        kept = self._writes.setdefault(key, [])
        self._writes.move_to_end(key)
        if any(each.audit_id == write.audit_id for each in kept):
            return
        self.count += 1
        kept.append(write)
        del kept[:-MOST_OF_EACH]
        while len(self._writes) > MOST_OBJECTS:
            self._writes.popitem(last=False)

    def deletion_of(
        self,
        resource: str,
        namespace: str,
        name: str,
        uid: str,
        between: tuple[int, int],
        labels: Mapping[str, str] | None = None,
    ) -> AuditedWrite | None:
        """Return the first request that deleted the object, accepted `between` two times of the API server.

        A request for a collection counts only where no request names the object.
        """
        named = self._of(resource, namespace, name, between, lambda each: _deletes(each) and each.uid in ("", uid))
        if named or not namespace:
            return _first(named)
        return _first(
            self._of(
                resource,
                namespace,
                "",
                between,
                lambda each: each.verb == "deletecollection" and _selects(each.label_selector, labels or {}),
            )
        )

    def writers_of(
        self, resource: str, namespace: str, name: str, between: tuple[int, int], manager: str
    ) -> list[AuditedWrite]:
        """Return the requests that may have written an owner's spec then, the latest of each user, the latest first.

        `manager` is the field manager of the spec, a name that its client chose: `kubectl-scale` is of `kubectl`.
        """
        found = self._of(resource, namespace, name, between, lambda each: each.verb in ("update", "patch"))
        client = manager.partition("-")[0]
        by_client = [each for each in found if client and each.user_agent.startswith((manager, client))]
        others = [each for each in found if not each.user_agent.startswith(_CONTROLLER_MANAGER)]
        by_user = {each.user: each for each in sorted(by_client or others or found, key=lambda each: each.done_ns)}
        return sorted(by_user.values(), key=lambda each: -each.done_ns)

    def _of(
        self,
        resource: str,
        namespace: str,
        name: str,
        between: tuple[int, int],
        fits: Callable[[AuditedWrite], bool],
    ) -> list[AuditedWrite]:
        """Return the requests about an object whose time has some of `between` in it."""
        first, last = between
        return [
            each
            for each in self._writes.get((resource, namespace, name), ())
            if each.received_ns <= last and each.done_ns >= first and fits(each)
        ]


def _deletes(write: AuditedWrite) -> bool:
    return write.verb == "delete" or write.subresource == "eviction"


def _first(found: Iterable[AuditedWrite]) -> AuditedWrite | None:
    return min(found, key=lambda each: each.received_ns, default=None)


def _selects(selector: str, labels: Mapping[str, str]) -> bool:
    if not selector:
        return True
    try:
        return parse_label_selector(selector).matches(labels)
    except StatusError:
        return False
