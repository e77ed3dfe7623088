"""Run the agent's loop: read requests on stdin, decide when to look, and end."""

# check: reaches inside because the node agent turns the loop of the shim

# check: observes because it sees rules of the node as its kernel shows them
# check: many attributes NodeAgent because it is the whole program, whose one loop reads, looks and reports

from __future__ import annotations

import os

from lastcall.records import kinds
from lastcall.trace.agent.container import Container
from lastcall.trace.agent.lines import Lines, Recorder
from lastcall.trace.agent.requests import MOST_BYTES, MOST_PODS, BadRequest, parse_request
from lastcall.trace.agent.rule_watch import RuleWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lastcall.kube.cri.sandbox.shim.loop import Loop
    from lastcall.trace.agent.groups import Groups
    from lastcall.trace.agent.requests import Request
    from lastcall.world.clock import Clock

LOOK_SECONDS = 1.0
"""Between looks at Pods that live: for new containers, and for the counters of what the kernel killed."""
_OFTEN, _LATER, _LATE = 0.02, 0.1, 1.0
_LATER_AFTER, _LATE_AFTER = 5.0, 60.0
_SECONDS_EACH = 0.005
"""How many times the number of Pods that end at the moment is the least time between two looks at them."""


class NodeAgent:
    """Reports on the Pods it is asked about until stdin ends, `end` is said, or nothing was said for `idle` seconds."""

    def __init__(
        self,
        loop: Loop,
        clock: Clock,
        groups: Groups,
        lines: Lines,
        node: str,
        *,
        idle: float,
        traces: bool,
        rules: bool = False,
    ) -> None:
        """`rules`: whether to read the node's rules for Services. Raises OSError where that is not allowed."""
        self._loop, self._clock, self._groups, self._lines = loop, clock, groups, lines
        self._recorder = Recorder(lines, clock, node)
        self._node, self._idle, self._traces = node, idle, traces
        self._pods: dict[str, dict[str, Container]] = {}
        self._ending: dict[str, int] = {}
        self._rules = RuleWatch(loop, clock, self._rules_changed) if rules else None
        self._addresses: dict[str, tuple[str, ...]] = {}
        self._heard = clock.monotonic_ns()
        self._rest = b""
        self._skipping = False
        self.done = False

    def run(self, stdin: int) -> None:
        os.set_blocking(stdin, False)
        self._loop.watch(stdin, lambda events: self._read(stdin))
        self._loop.call_later(LOOK_SECONDS, self._look_at_all)
        while not self.done:
            self._loop.run_once()

    # -- requests ----------------------------------------------------------------------------------------------------

    def _read(self, stdin: int) -> None:
        try:
            data = os.read(stdin, MOST_BYTES)
        except BlockingIOError:
            return
        if not data:
            self.done = True
            return
        self._heard = self._clock.monotonic_ns()
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            if not self._skipping:
                self.hear(line)
            self._skipping = False
        if len(self._rest) > MOST_BYTES:
            self._lines.say(error=f"a line of more than {MOST_BYTES} bytes")
            self._rest, self._skipping = b"", True

    def hear(self, line: bytes) -> None:
        """Do what one line says."""
        if not line.strip():
            return
        try:
            request = parse_request(line)
        except BadRequest as error:
            self._lines.say(error=str(error))
            return
        self._do(request)

    def _do(self, request: Request) -> None:
        clock = self._clock
        if request.verb == "hello":
            self._lines.say(
                agent=1,
                node=self._node,
                cgroups=self._groups.version if self._groups.usable else None,
                traces=self._traces,
                exit_codes=_has_exit_codes(),
                rules=self._rules is not None,
            )
            self._lines.go_on(request.number)
        elif request.verb == "ping":
            self._lines.say(pong=request.number, wall_ns=clock.wall_ns(), at_ns=clock.monotonic_ns())
        elif request.verb == "watch":
            if len(self._pods) >= MOST_PODS and request.uid not in self._pods:
                self._lines.say(error=f"watch: {MOST_PODS} Pods are being looked at")
                return
            self._pods.setdefault(request.uid, {})
            self._groups.look_for_pods({request.uid})
            self._look(request.uid)
        elif request.verb == "ending":
            if request.uid in self._pods and request.uid not in self._ending:
                self._ending[request.uid] = clock.monotonic_ns()
                if self._rules is not None:
                    self._addresses[request.uid] = request.addresses
                    self._rules.follow(request.addresses)
                self._look(request.uid)
                if len(self._ending) == 1:
                    self._loop.call_later(_OFTEN, self._look_at_ending)
        elif request.verb == "forget":
            self._ending.pop(request.uid, None)
            self._groups.forget(request.uid)
            if self._rules is not None:
                self._rules.forget(self._addresses.pop(request.uid, ()))
            for container in self._pods.pop(request.uid, {}).values():
                container.close()
        else:
            self.done = True

    def _rules_changed(self, address: str, service: str, received: bool, receives: bool, at_ns: int) -> None:
        for uid, addresses in self._addresses.items():
            if address in addresses:
                facts = {
                    "node": self._node,
                    "service": service,
                    "address": address,
                    "received": received,
                    "receives": receives,
                    "ready": receives,
                }
                self._recorder.record(kinds.ENDPOINT_RULES_WRITTEN, pod_uid=uid, container="", facts=facts, at_ns=at_ns)

    # -- looking -----------------------------------------------------------------------------------------------------

    def _look(self, uid: str) -> None:
        known = self._pods[uid]
        found = self._groups.containers(uid)
        for id, group in found.items():
            if id not in known:
                known[id] = Container(
                    uid, id, group, self._groups, self._loop, self._recorder, self._clock, traces=self._traces
                )
        for id in [id for id, container in known.items() if container.ended and id not in found]:
            del known[id]
        for container in known.values():
            container.look(ending=uid in self._ending)

    def _look_at_all(self) -> None:
        if (self._clock.monotonic_ns() - self._heard) / 1e9 > self._idle:
            self._lines.say(end=f"nothing was said for {self._idle:.0f} s")
            self.done = True
            return
        self._loop.call_later(LOOK_SECONDS, self._look_at_all)
        self._groups.look_for_pods(set(self._pods))
        for uid in list(self._pods):
            if uid not in self._ending:
                self._look(uid)

    def _look_at_ending(self) -> None:
        if not self._ending:
            return
        since = (self._clock.monotonic_ns() - max(self._ending.values())) / 1e9
        seconds = _OFTEN if since < _LATER_AFTER else _LATER if since < _LATE_AFTER else _LATE
        self._loop.call_later(max(seconds, len(self._ending) * _SECONDS_EACH), self._look_at_ending)
        for uid in list(self._ending):
            self._look(uid)


def _has_exit_codes() -> bool:
    """Return whether this kernel says how a process ended that is not our child: since Linux 6.15."""
    numbers = os.uname().release.split(".")
    try:
        return (int(numbers[0]), int(numbers[1].split("-")[0])) >= (6, 15)
    except (IndexError, ValueError):
        return False
