"""Defines what a fault is: how it is injected, which ids name it, and which changes repair it."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

from bench.diagnosis.application import Application

Apply = Callable[[Application, str, Random], "tuple[str, ...] | None"]
"""Breaks an application in the container of this name; returns words that its repair has to mention, if any."""

SIGNAL_SYMPTOMS = frozenset({"killed"})
START_SYMPTOMS = frozenset({"crashed", "crashLoop", "probeFailed", "endsAndIsRestarted"})


@dataclass(frozen=True)
class Fault:
    """One fault.

    - `shapes`: which applications it can be injected into.
    - `causes`: ids that name it. `proposed` is the id that it would need where the catalogue has none.
    - `symptoms`: ids of what it leads to. They are true, but no answer; alone they count as silence.
    - `verbs`: changes of the program that repair it.
    - `needs`: words that the advice beside such a verb must have, where the verb alone is half of the repair.
    - `by_words`: the harness cannot make the repair: it is outside of the Pod (a ConfigMap that is missing), or nobody
      but the author knows it (the right path of a probe). Then the advice is a change if it mentions the words that
      `apply` returned, or, with "finding", if its finding does.
    - `worded`: ids that name it only if their advice mentions these words. Alone they are symptoms.
    - `shows`: measured facts differ from those of a sound application. If they do not, it was not to be seen this
      time (no request happened to be lost), and the case proves nothing.
    - `args`: what its command gets more than the shape's has.
    - `lint`: rules of `lastcall lint` that name it, which `run` and `rollout` report before they start a cluster.
    - `beside`: a finding about another container of the Pod names it, too: the fault is one of both, or of that one.
    - `anywhere`: it can be injected into a neighbour's script, too, so that there are two faults.
    """

    id: str
    group: Literal["stop", "start", "serving"]
    shapes: tuple[str, ...]
    apply: Apply
    causes: frozenset[str]
    verbs: frozenset[str] = frozenset()
    symptoms: frozenset[str] = SIGNAL_SYMPTOMS
    needs: tuple[str, ...] = ()
    by_words: Literal["", "advice", "finding"] = ""
    worded: frozenset[str] = frozenset()
    proposed: str = ""
    args: tuple[str, ...] = ()
    lint: frozenset[str] = frozenset()
    beside: bool = False
    anywhere: bool = False
    shows: bool = True


@dataclass(frozen=True)
class Injected:
    """Name a fault that was injected, its container, and the words that its repair has to mention."""

    fault: Fault
    container: str
    words: tuple[str, ...] = ()
