"""The timeline while it happens: rich in a terminal, plain lines when piped.

Records come from several processes and may arrive a little out of order, so a line waits `HOLD_NS` for earlier ones.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from lastcall.endings.render.lines import live_body, live_head
from lastcall.endings.story import PodFacts
from lastcall.records import kinds
from lastcall.records.order import by_time
from lastcall.records.record import Record
from lastcall.records.sentences import DETAIL, STEP
from lastcall.records.text import printable
from lastcall.records.words import words_for
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from lastcall.endings.render.console import Text
    from lastcall.endings.render.status_line import StatusLine

HOLD_NS = 40_000_000
TICK_SECONDS = 0.05

_PHASES = {
    kinds.DELETE_ACCEPTED: "deleted",
    kinds.KILLING: "stopping",
    kinds.PRE_STOP_STARTED: "preStop hook runs",
    kinds.PRE_STOP_FINISHED: "hook done",
    kinds.SIGNAL_SENT: "signal sent",
    kinds.PROCESS_EXITED: "container ended",
    kinds.SANDBOX_STOPPED: "network gone",
    kinds.VOLUMES_UNMOUNTED: "volumes gone",
    kinds.FINAL_DELETE_SENT: "final DELETE",
    kinds.POD_GONE_SEEN: "gone",
}


@dataclass(slots=True)
class _Shown:
    """One Pod on the screen."""

    pod: PodFacts
    grace: float = 0.0
    zero_ns: int | None = None
    phase: str = "running"
    gone: bool = False


@dataclass(slots=True)
class LiveTimeline:
    """`begin` with the Pods, `record` what comes, `tick` about every `TICK_SECONDS`, `end`.

    `progress` gets the notes (stderr), `timeline` the lines of the Pods' ends (stdout, or stderr under JSON).
    """

    timeline: "Console"
    progress: "Console"
    details: bool = False
    _named: bool = False
    _pods: dict[str, _Shown] = field(default_factory=dict)
    _together: frozenset[str] = frozenset()
    _first_ns: int | None = None
    _pending: list[Record] = field(default_factory=list)
    _live: "Live | None" = None
    _status: "StatusLine | None" = None

    def waiting(self, now: float, waited: float, text: str) -> None:
        """Show what the command waits for: in place on a terminal, else once in a line (`StatusLine`)."""
        if self._status is None:
            # late: 0.9 ms of `demo`
            from lastcall.endings.render.status_line import StatusLine

            terminal = self.progress.file if self.progress.is_terminal and not self.progress.is_dumb_terminal else None
            self._status = StatusLine(self._line, terminal)
        self._status.show(now, waited, printable(text, 2000))

    def note(self, text: str) -> None:
        """Print a line on how far we are."""
        self._line(text)

    def _line(self, text: str) -> None:
        if self._status is not None:
            self._status.clear()
        self.progress.print(printable(text, 2000), style="dim", soft_wrap=True)

    def begin(self, pods: Sequence[PodFacts], *, named: bool = False) -> None:
        """Show the records of these Pods from here on, each with its Pod where there are several, or `named`.

        Times count from the first DELETE of these Pods; those of a Pod that is added later count from its own.
        """
        self._named = named
        self._pods = {pod.uid: _Shown(pod) for pod in pods}
        self._together, self._first_ns = frozenset(self._pods), None
        if self.timeline.is_terminal and not self.timeline.is_dumb_terminal:
            # late: 39 ms of `demo`
            from rich.live import Live

            self._live = Live(console=self.timeline, auto_refresh=False, transient=True)
            self._live.start()

    def add(self, pod: PodFacts) -> None:
        """Show the records of this Pod, too."""
        self._pods[pod.uid] = _Shown(pod)

    def forget(self, uid: str) -> None:
        """Show what has come of a Pod, and nothing of it any more."""
        mine = [record for record in self._pending if record.pod_uid == uid]
        if mine and self._zero_of(mine[0]) is not None:
            self._pending = [record for record in self._pending if record.pod_uid != uid]
            for record in sorted(mine, key=by_time):
                self._show(record)
        self._pods.pop(uid, None)
        self._pending = [record for record in self._pending if record.pod_uid != uid]

    def record(self, record: Record) -> None:
        """Take a record from any process, in any order."""
        if self._pods and (record.pod_uid in self._pods or record.kind == kinds.PROCESS_DIED):
            self._pending.append(record)

    def tick(self, now_ns: int) -> None:
        """Show what has waited long enough and move the bars."""
        self._flush(now_ns - HOLD_NS)
        if self._live is not None:
            self._live.update(self._footer(now_ns), refresh=True)

    def end(self) -> None:
        """Show what is left; the screen is a plain one again."""
        if self._status is not None:
            self._status.clear()
        self._flush(None)
        if self._live is not None:
            self._live.stop()
            self._live = None
        self._pods = {}

    def _flush(self, until_ns: int | None) -> None:
        for record in self._pending:
            shown = self._pods.get(record.pod_uid)
            if shown is not None and record.kind == kinds.DELETE_ACCEPTED and shown.zero_ns is None:
                shown.zero_ns = record.at_ns
                shown.grace = float(record.facts_as(kinds.DELETE_ACCEPTED).get("gracePeriodSeconds") or 0)
        due = [r for r in self._pending if until_ns is None or (r.at_ns <= until_ns and self._zero_of(r) is not None)]
        if not due:
            return
        if self._first_ns is None:
            zeros = [shown.zero_ns for uid, shown in self._pods.items() if uid in self._together]
            self._first_ns = min((each for each in zeros if each is not None), default=None)
        taken = {id(record) for record in due}
        self._pending = [record for record in self._pending if id(record) not in taken]
        for record in sorted(due, key=by_time):
            self._show(record)

    def _zero_of(self, record: Record) -> int | None:
        shown = self._pods.get(record.pod_uid)
        if shown is not None:
            return shown.zero_ns
        return min((each.zero_ns for each in self._pods.values() if each.zero_ns is not None), default=None)

    def _show(self, record: Record) -> None:
        zero, shown = self._zero_of(record), self._pods.get(record.pod_uid)
        if zero is None or (record.at_ns < zero and record.kind != kinds.DELETE_SENT):
            return
        if shown is not None:
            shown.phase = _PHASES.get(record.kind, shown.phase)
            shown.gone = shown.gone or record.kind == kinds.POD_GONE_SEEN
        if words_for(record).level > (DETAIL if self.details else STEP):
            return
        several = self._named or len(self._pods) > 1
        name = shown.pod.name if shown is not None and several else ""
        first = self._first_ns if record.pod_uid in self._together and self._first_ns is not None else zero
        head, body = live_head(record, (record.at_ns - first) / 1e9), live_body(record, name)
        if not self.timeline.is_terminal:
            self.timeline.print(f"{head}  {body}", soft_wrap=True)
            return
        # late: 44 ms of `demo`
        from rich.table import Table

        from lastcall.endings.render.console import Text
        from lastcall.endings.render.text import STYLES

        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(no_wrap=True, style="dim")
        line.add_column(overflow="fold")
        line.add_row(head, Text(body, style=STYLES[words_for(record).style]))
        self.timeline.print(line)

    def _footer(self, now_ns: int) -> "Text":
        # late: 21 ms of `demo`
        from lastcall.endings.render.console import BREAK, Text

        footer = Text()
        width = max((len(shown.pod.name) for shown in self._pods.values()), default=0)
        for shown in self._pods.values():
            elapsed = (now_ns - shown.zero_ns) / 1e9 if shown.zero_ns is not None else 0.0
            cells = max(10, min(40, self.timeline.width - width - 36))
            filled = min(cells, int(elapsed / shown.grace * cells)) if shown.grace else cells
            if len(footer):
                footer.append(BREAK)
            footer.append(f"{shown.pod.name:{width}}  ", style="bold")
            if shown.gone:
                footer.append("gone", style="green")
                continue
            over = elapsed > shown.grace
            footer.append("█" * filled, style="red" if over else "green").append("░" * (cells - filled), style="dim")
            footer.append(f"  {elapsed:5.1f} / {shown.grace:g} s  {shown.phase}")
        return footer
