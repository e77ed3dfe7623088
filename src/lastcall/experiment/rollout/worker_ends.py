"""Requests that were lost when a process manager ended a worker, by what their Pod printed at that moment. Pure."""

# check: pure

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from lastcall.endings import said
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.records.said import joined
from lastcall.traffic import Judgement, Outcome, PodLife, by_address, led_to

_ENDED = re.compile(
    r"worker timeout|\bharakiri\b|terminating timed out worker|child \d+.* exited on signal|child pid \d+ exit signal"
    r"|execution timed out .*terminating|worker=\d+ pid:\s?\d+ timeout|worker .*was sent sig\w+",
    re.I,
)
"""Words of gunicorn, uWSGI, puma, php-fpm, Apache httpd and unicorn."""
_BEFORE_SECONDS, _AFTER_SECONDS = 0.5, 1.5
"""From a loss to the line, and from the line to a loss: a worker that was asked to end may take a moment."""
_MOST_READ, _MOST_TEXT = 1000, 200
"""Characters of a line that are looked at, and that are quoted."""


def with_worker_ends(
    judgement: Judgement, outcomes: Iterable[Outcome], lives: Sequence[PodLife], records: Iterable[Record]
) -> Judgement:
    """Return the judgement; where requests were lost when their Pod reported the end of a worker, it quotes that."""
    lines: dict[str, list[tuple[float, str]]] = {}
    for record in records:
        if record.kind == kinds.OUTPUT:
            text = str(record.facts_as(kinds.OUTPUT).get("text"))[:_MOST_READ]
            if _ENDED.search(text):
                lines.setdefault(record.pod_uid, []).append((record.at_ns / 1e9, text.strip()[:_MOST_TEXT]))
    if not lines:
        return judgement
    addresses = by_address(lives)
    found: list[str] = []
    for each in outcomes:
        life = led_to(each, addresses) if each.lost else None
        for at, text in lines.get(life.uid, ()) if life is not None else ():
            if -_BEFORE_SECONDS <= each.finished - at <= _AFTER_SECONDS:
                found.append(text)
                break
    if not found:
        return judgement
    words = said("unexplained", "worker", count=len(found), line=found[0])
    between = " " if judgement.sentence.endswith(".") else ". "
    return replace(judgement, sentence=joined([judgement.sentence, words], between))
