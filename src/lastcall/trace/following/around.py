"""What is around Pods: owners, namespaces, nodes and budgets go into the ledger, a lost node into its Pods' books."""

from collections.abc import Callable, Iterable

from lastcall.kube.api import (
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODDISRUPTIONBUDGETS,
    REPLICASETS,
    STATEFULSETS,
    Object,
    Resource,
    name_of,
)
from lastcall.records import kinds
from lastcall.trace.book import Book, Moment
from lastcall.trace.following.shelf import Shelf

OnEvent = Callable[[str, Object], None]
OnList = Callable[[Iterable[Object]], None]

OWNERS = (REPLICASETS, DEPLOYMENTS, STATEFULSETS, DAEMONSETS, JOBS)
WATCHED = (*OWNERS, NAMESPACES, NODES, PODDISRUPTIONBUDGETS)


class AroundPods:
    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._ledger = shelf.ledger

    def handlers(self, resource: Resource) -> tuple[OnEvent, OnList]:
        """Who hears of the events of a watch, and of a list."""
        if resource in OWNERS:
            return self._owner(resource.kind)
        one = {NAMESPACES: self._namespace, NODES: self._node, PODDISRUPTIONBUDGETS: self._budget}[resource]

        def each(items: Iterable[Object]) -> None:
            for obj in items:
                one("MODIFIED", obj)

        return one, each

    def begin(self, book: Book, now: Moment) -> None:
        """Its end has begun: its node's state is told, if that is worth a word."""
        state = self._ledger.node_state(book.node)
        if state is None:
            return
        seen = state.told(kinds.NODE_STATE_SEEN)
        if seen["ready"] is not True or seen["gone"]:
            book.write(state, now)

    def _owner(self, kind: str) -> tuple[OnEvent, OnList]:
        return (
            lambda type_, obj: self._ledger.owner(kind, type_, obj, self._shelf.now()),
            lambda items: self._ledger.owners_listed(kind, items, self._shelf.now()),
        )

    def _namespace(self, type_: str, obj: Object) -> None:
        self._ledger.namespace(obj, self._shelf.now(), gone=type_ == "DELETED")

    def _budget(self, type_: str, obj: Object) -> None:
        self._ledger.budget(obj)

    def _node(self, type_: str, obj: Object) -> None:
        if self._ledger.node(obj, gone=type_ == "DELETED"):
            now, name = self._shelf.now(), name_of(obj)
            for book in self._shelf.books.values():
                if book.node == name:
                    self.begin(book, now)
