"""What-if of the page of a rollout: a process that plays sessions in virtual time, so that nobody waits for it.

It answers the latest question only, three times: the edge by a rule, the session with these values, and the edge in
virtual time. A newer question ends the answers to an older one.
"""

from __future__ import annotations

import json
import select
import signal
import socket
from collections.abc import Callable, Mapping
from typing import Any

from lastcall.experiment.rollout.options import RolloutOptions
from lastcall.experiment.rollout.predict import Predictor, with_lag
from lastcall.experiment.rollout.report import yaml_lines
from lastcall.experiment.rollout.target import find_target, with_advice
from lastcall.kube.cluster import ClusterOptions, PropagationPlan, parse_propagation
from lastcall.manifests import Manifest, manifests_of
from lastcall.traffic import Kind, KindEnd, Load, MeasuredEnd
from lastcall.ui.rollout import Values, picture
from lastcall.world import wire

STEP_SECONDS, MOST_SECONDS = 0.1, 60.0
"""Of the lags among which the edge is looked for."""


class _Newer(BaseException):
    """Another question has come. No Exception: a session that cannot be played is one."""


def main(fd: int) -> None:
    """Answer questions until the other end closes.

    `fd` is its end of the socket pair: lines of JSON, `{"setup": …}` first, then questions.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sock = socket.socket(fileno=fd)
    lines = _Lines(sock)
    forecasts: _Forecasts | None = None
    while (message := lines.last()) is not None:
        if "setup" in message:
            forecasts = _Forecasts(message["setup"], lambda answer: sock.sendall(wire.encode(answer) + b"\n"))
        elif forecasts is not None:
            try:
                forecasts.answer(message, lines.check)
            except _Newer:
                continue
            except Exception as error:
                while isinstance(error, ExceptionGroup):
                    error = error.exceptions[0]
                answer = {"number": message["number"], "error": f"{type(error).__name__}: {error}", "done": True}
                sock.sendall(wire.encode(answer) + b"\n")


class _Lines:
    """Questions, of which the latest counts; a setup is never passed over."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._came = b""

    def last(self) -> dict[str, Any] | None:
        """The next setup, or the latest question; None when nobody asks any more."""
        while b"\n" not in self._came:
            if not self._read():
                return None
        self.fill()
        *lines, rest = self._came.split(b"\n")
        messages = [wire.decode(line) for line in lines]
        first = next((index for index, each in enumerate(messages) if "setup" in each), None)
        taken = len(messages) if first is None else first + 1
        self._came = b"\n".join([*lines[taken:], rest])
        return messages[taken - 1]

    def check(self) -> None:
        """Raises _Newer when something has come."""
        self.fill()
        if b"\n" in self._came:
            raise _Newer

    def fill(self) -> None:
        """Read what is there."""
        while select.select([self._sock], [], [], 0)[0] and self._read():
            pass

    def _read(self) -> bool:
        came = self._sock.recv(1 << 18)
        self._came += came
        return bool(came)


class _Forecasts:
    def __init__(self, setup: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> None:
        asked = dict(setup["options"])
        cluster = ClusterOptions(kubernetes_version=asked.pop("kubernetes_version"))
        self._options = RolloutOptions(cluster=cluster, load=Load(**asked.pop("load")), **asked)
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": setup["manifests"]})
        self._manifests: list[Manifest] = manifests_of([("the manifests", text)])
        self._workload = find_target(self._manifests, self._options).workload.obj
        self._tell = tell

    @property
    def _hop(self) -> str:
        return "balancer" if self._options.source == "balancer" else "watch"

    def answer(self, asked: dict[str, Any], check: Callable[[], None]) -> None:
        """Tell what is predicted, in three answers. Raises _Newer (from `check`), and what a session raises."""
        values, measured = Values.from_wire(asked["values"]), asked["measured"]
        manifests = with_advice(self._manifests, self._workload, asked["patch"])
        plan = parse_propagation([values.propagation] if values.propagation else [])
        options = self._options.with_cluster(propagation=plan)
        end = MeasuredEnd(**measured["end"])
        kinds = tuple(KindEnd(**each) for each in measured["kinds"])
        predictor = Predictor(options, self._hop, end, kinds, lambda text: None)
        others = with_lag(plan, self._hop, 0.0).most_to(self._hop)
        count = round(MOST_SECONDS / STEP_SECONDS) + 1

        def session(index: int) -> tuple[list[Manifest], PropagationPlan]:
            check()
            return manifests, with_lag(plan, self._hop, index * STEP_SECONDS)

        def rule(index: int) -> tuple[float, float | None]:
            return index * STEP_SECONDS + others, None if values.sleep is None else float(values.sleep)

        text = "\n".join(yaml_lines(asked["patch"])) if asked["patch"] else ""
        head: dict[str, Any] = {"number": asked["number"], "hop": self._hop, "patchText": text}
        edges = _edges(predictor.guess(count, session, rule))
        self._tell({**head, **edges, "how": "rule", "done": False})
        check()
        result = predictor.play(manifests, plan)
        until = result.began + result.seconds
        head["picture"] = picture(result.outcomes, result.lives, result.account, result.began, until)
        self._tell({**head, **edges, "how": "rule", "done": False})
        found = predictor.predict(count, session, rule)
        how = "virtual time" if not predictor.why_rule else "rule"
        self._tell({**head, **_edges(found.kinds), "how": how, "done": True})


def _edges(kinds: Mapping[Kind, int]) -> dict[str, Any]:
    """By kind the longest lag of the hop that loses nothing, in seconds; None where even none does."""
    edges = {kind: None if index < 0 else round(index * STEP_SECONDS, 3) for kind, index in kinds.items()}
    return {"edges": edges, "most": MOST_SECONDS}
