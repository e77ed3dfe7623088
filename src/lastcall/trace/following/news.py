"""Events: what nodes and controllers say of Pods that are ending, and what they had said before."""

from collections.abc import Callable
from dataclasses import replace

from lastcall.kube.api import EVENTS, Object, StatusError, name_of, namespace_of, uid_of
from lastcall.kube.client import Client, ConnectionLost
from lastcall.trace import pods
from lastcall.trace.book import Book, Moment
from lastcall.trace.events import Told, names_pod, steps_of, told_of
from lastcall.trace.following.shelf import Remembered, Shelf


class News:
    """`on_refused` hears of a request that is not allowed."""

    def __init__(self, shelf: Shelf, client: Client, on_refused: Callable[[StatusError], None]) -> None:
        self._shelf = shelf
        self._client = client
        self._on_refused = on_refused
        self._before: Remembered[tuple[Told, Moment]] = Remembered()
        self._since: int | None = None

    def whole_from_now(self) -> None:
        """Every Event from now on is known: the watch has begun, or has begun again after a gap."""
        self._since = self._shelf.now().at_ns

    def event(self, type_: str, obj: Object) -> None:
        """An event of the watch."""
        told = told_of(obj) if type_ != "DELETED" else None
        if told is None:
            return
        now = self._shelf.now()
        if told.node:
            self._shelf.clocks.saw(told.node, told.stamp, now.wall_ns)
        if named := names_pod(told):
            self._before.remember(f"{told.of_uid}/{named}", (told, now))
            return
        book = self._shelf.books.get(told.of_uid)
        if book is None:
            self._before.remember(told.of_uid, (told, now))
        else:
            self._tell(book, told, now)

    def begin(self, book: Book) -> None:
        """Its end has begun: what was said of it until now is told. Before anything else is written."""
        for told, at in self._before.pop(book.uid, ()):
            self._tell(book, told, at)

    def explain(self, book: Book) -> None:
        book.explained_from_ns = self._since

    def ask(self, book: Book) -> None:
        """Ask for the Events of before: of a Pod that was followed late, or had been restarted."""
        self._shelf.spawn(self._ask(book), f"events of {name_of(book.pod)}")

    def of_owner(self, pod: Object) -> list[Told]:
        """What was said of it and, by its owner, about it."""
        key = f"{pods.controller_of(pod).get('uid')}/{name_of(pod)}"
        mine = [told for told, _ in self._before.get(uid_of(pod), ())]
        return [*mine, *(told for told, _ in self._before.get(key, ()))]

    async def _ask(self, book: Book) -> None:
        try:
            found = await self._client.list(
                EVENTS, namespace_of(book.pod), field_selector=f"involvedObject.uid={book.uid}"
            )
        except StatusError as error:
            if error.code in (401, 403):
                self._on_refused(error)
            return
        except ConnectionLost:
            return
        book.explained_from_ns = 0
        now = self._shelf.now()
        known = sorted(filter(None, map(told_of, found.items)), key=lambda each: each.stamp)
        for told in known:
            if told.of_kind == "Pod":
                self._tell(book, told, now)

    def _tell(self, book: Book, told: Told, at: Moment) -> None:
        if book.is_past(told, at):
            book.history.append((told, at))
            return
        book.event(told, at)
        for each in steps_of(told):
            if book.is_news(each):
                book.write(replace(each, at_ns=at.at_ns), at)
