"""The story as data: the schema `lastcall/ending/v1` (docs/ending-v1.md).

Keys and values are derived from the dataclasses of the story (`records/json_shape.py`); tools/make_catalogue.py makes
docs/ending-v1.schema.json of the same. Times are seconds after the moment that the story counts from, null where
nobody saw it.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal

from lastcall.endings import node_facts, story
from lastcall.endings.render.envelope import AboutCluster, about_cluster, envelope
from lastcall.endings.render.json_text import quoted_json
from lastcall.endings.verdict import is_ongoing
from lastcall.errors import UnreadyCause
from lastcall.records.json_shape import Layout, key
from lastcall.records.record import Record
from lastcall.world.dataclass import dataclass

SCHEMA: Literal["lastcall/ending/v1"] = "lastcall/ending/v1"
RECORD_SCHEMA = "lastcall/record/v1"


@dataclass(frozen=True, slots=True)
class NotSimulated:
    """What of the manifests did not act."""

    id: str
    what: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """How Pods ended, after the envelope. `error` is the world's error that cut the story short, "" without one.
    `not_ready` are the causes of Pods that did not become Ready; None where all did. `not_simulated` are objects of the
    manifests that nobody acts on; None where no manifests were run. `requests` is what became of those that were sent
    meanwhile, as one of `experiments` of `lastcall/rollout/v1`; None where none were."""

    schema: Literal["lastcall/ending/v1"]
    lastcall_version: str
    kubernetes_version: str = field(metadata=key(schema={"enum": ["1.23", "1.27", "1.36", "1.37"]}))
    exit_status: int = field(metadata=key(schema={"enum": [0, 1, 3, 4]}))
    error: str = field(metadata=key(null=True))
    not_ready: tuple[UnreadyCause, ...] | None = field(metadata=key(optional=True))
    not_simulated: tuple[NotSimulated, ...] | None = field(metadata=key(optional=True))
    requests: dict[str, Any] | None = field(metadata=key(optional=True))
    pods: tuple[story.Ending, ...]


DEFINITIONS: dict[str, type] = {
    "firstReaction": node_facts.FirstReaction,
    "processAtStop": node_facts.ProcessAtStop,
    "processLeft": node_facts.ProcessLeft,
    "processesLeft": node_facts.ProcessesLeft,
    "listener": node_facts.Listener,
    "listenerClosed": node_facts.ListenerClosed,
    "atExit": node_facts.AtExit,
    "sockets": node_facts.Sockets,
    "preStop": story.PreStop,
    "failedProbe": story.FailedProbe,
    "container": story.ContainerEnding,
    "decidedBy": story.DecidedBy,
    "record": story.Entry,
    "budget": story.Budget,
    "endpoint": story.EndpointTransition,
    "signal": story.SentSignal,
    "output": story.OutputLine,
    "finding": story.Finding,
    "change": story.Change,
    "pod": story.Ending,
    "unreadyCause": UnreadyCause,
    "notSimulated": NotSimulated,
}
"""The objects of the document by their names in its schema."""

_CONTAINER = (
    "name", "kind", "started", "exitCode", "reason", "signal", "preStop", "stopSeconds", "killedBy", "stopSignal",
    "stopSignalAt", "killAt", "exitedAt", "disposition", "executable", "oomKills", "firstReaction", "processesLeft",
    "sockets", "startedAt", "endedBy", "failedProbe", "lastLines",
    "processesAtStop",
)  # fmt: skip
_RECORD = ("id", "at", "wall", "actor", "kind", "rule", "container", "facts", "causeId", "evidence")
_POD = (
    "namespace", "name", "uid", "node", "phase", "graceSeconds", "deletedAt", "outcome", "ongoing", "decidedBy",
    "records", "containers", "earlierEnds", "budget", "endpoints", "signals", "output", "gone", "overhead", "findings",
    "notKnown",
)  # fmt: skip


def _removed(endpoint: story.EndpointTransition) -> bool:
    return endpoint.removed


LAYOUT = Layout(
    order={
        story.ContainerEnding: _CONTAINER,
        story.Entry: _RECORD,
        story.Ending: _POD,
        story.PreStop: ("handler", "seconds", "outcome", "exitCode", "detail", "output"),
        story.Finding: ("id", "severity", "container", "text", "advice", "change", "evidence"),
    },
    computed={story.Ending: {"ongoing": is_ongoing}, story.EndpointTransition: {"removed": _removed}},
)
"""The order of keys is older than that of the fields, and readers compare documents line by line."""


def endings_document(
    endings: Sequence[story.Ending],
    *,
    kubernetes_version: str,
    lastcall_version: str,
    exit_status: int,
    error: str = "",
    not_ready: Sequence[UnreadyCause] = (),
    not_simulated: Sequence[NotSimulated] | None = None,
    cluster: AboutCluster | None = None,
    requests: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the whole document, as `Document` describes. `cluster` is by default one that a command started."""
    notes = None if not_simulated is None else tuple(not_simulated)
    causes = tuple(not_ready) or None
    made = Document(
        SCHEMA, lastcall_version, kubernetes_version, exit_status, error, causes, notes, requests, tuple(endings)
    )
    shown: dict[str, Any] = LAYOUT.to_json(made)
    return envelope(SCHEMA, cluster or about_cluster(kubernetes_version)) | shown


def ending_json(ending: story.Ending) -> dict[str, Any]:
    """Return one story as `pods` of the document has it."""
    shown: dict[str, Any] = LAYOUT.to_json(ending)
    return shown


def record_line(record: Record) -> str:
    """Return a record on a line of its own, while its story is not known: without `at`, and with the cause that it
    names."""
    shown = LAYOUT.to_json(story.Entry(record, 0.0, record.cause_id or None))
    fields = {name: value for name, value in shown.items() if name != "at"}
    return quoted_json({"schema": RECORD_SCHEMA, "podUid": record.pod_uid, **fields})
