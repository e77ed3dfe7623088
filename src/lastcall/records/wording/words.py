"""A record in words: one short line each, for the live timeline and the table of steps. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from lastcall.records import kinds
from lastcall.records.quoting import is_plain, one_line
from lastcall.records.record import Record
from lastcall.records.said import beginning, shown
from lastcall.records.text import LONGEST
from lastcall.records.wording import apiserver, kubelet, runtime
from lastcall.records.wording.parts import DETAIL, NOISE, STEP, Words, fixed

if TYPE_CHECKING:
    from lastcall.records.record import Kind

Told = TypeVar("Told", bound=Mapping[str, object])


def words_for(record: Record) -> Words:
    """The words for a record. Text from containers and manifests is made safe for a terminal."""
    writer = _WORDS.get(record.kind)
    words = writer(record.facts) if writer else Words(record.kind, DETAIL, "dim")
    if is_plain(words.text) and len(words.text) <= LONGEST:
        return words
    return Words(beginning(shown(words.text, one_line), LONGEST), words.level, words.style)


def _row(kind: Kind[Told], words: Callable[[Told], Words]) -> tuple[str, Callable[[Any], Words]]:
    """mypy sees that the words read the facts of that kind."""
    return kind, words


_WORDS = dict(
    (
        _row(kinds.DELETE_SENT, apiserver.delete_sent),
        _row(kinds.POD_READY_SEEN, fixed("Ready", STEP, "good")),
        _row(kinds.POD_GONE_SEEN, fixed("sees DELETED: the Pod is gone", STEP, "good")),
        _row(kinds.NOT_SHOWN, fixed("not known: $text", NOISE, recall=("text",))),
        _row(kinds.NODE_STATE_SEEN, apiserver.node_state),
        _row(kinds.POD_CREATED, fixed("$namespace/$name created", STEP, "api")),
        _row(kinds.EPHEMERAL_CONTAINERS_ADDED, apiserver.ephemeral_added),
        _row(kinds.POD_BOUND, fixed("bound to $node", DETAIL, "api")),
        _row(kinds.DELETE_ACCEPTED, apiserver.delete_accepted),
        _row(kinds.GRACE_SHORTENED, apiserver.grace_shortened),
        _row(kinds.POD_STATUS_WRITTEN, apiserver.status_written),
        _row(kinds.HELD_BY_FINALIZERS, apiserver.held_by_finalizers),
        _row(kinds.OBJECT_REMOVED, fixed("object removed from the store", STEP, "api")),
        _row(kinds.ENDPOINT_CHANGED, apiserver.endpoint_changed),
        _row(kinds.ENDPOINT_REMOVED, apiserver.endpoint_removed),
        _row(kinds.ENDPOINT_CHANGE_SEEN, apiserver.endpoint_change_seen),
        _row(kinds.ENDPOINT_RULES_WRITTEN, apiserver.endpoint_rules_written),
        _row(kinds.RULES_REFUSED, apiserver.rules_refused),
        _row(kinds.POD_SCHEDULED, fixed("scheduled to $node", STEP)),
        _row(kinds.POD_ADMITTED, fixed("admitted", DETAIL)),
        _row(kinds.POD_REJECTED, fixed("rejected: $reason: $message", STEP, "bad")),
        _row(kinds.MIRROR_POD_CREATED, fixed("mirror Pod $name made in the API", DETAIL)),
        _row(kinds.VOLUME_FAILED, fixed("volume $volume cannot be mounted: $error", STEP, "bad")),
        _row(kinds.VOLUMES_MOUNTED, fixed("volumes mounted", DETAIL)),
        _row(kinds.ALL_CONTAINERS_RESTARTING, fixed("exit $exitCode restarts all containers of the Pod", STEP, "bad")),
        _row(kinds.CONTAINER_RESIZED, kubelet.container_resized),
        _row(kinds.SANDBOX_CREATED, fixed("sandbox created", DETAIL)),
        _row(kinds.IMAGE_SUBSTITUTED, kubelet.image_substituted),
        _row(kinds.CONTAINER_CREATED, fixed("container created from $image", DETAIL)),
        _row(kinds.CONTAINER_STARTED, fixed("container started", STEP)),
        _row(kinds.CONTAINER_START_FAILED, kubelet.container_start_failed),
        _row(kinds.POST_START_STARTED, fixed("postStart $handler starts", STEP)),
        _row(kinds.POST_START_FINISHED, kubelet.post_start_finished),
        _row(kinds.PROBE_CHANGED, kubelet.probe_changed),
        _row(kinds.POD_RUNNING, fixed("phase Running", STEP)),
        _row(kinds.TERMINATION_OBSERVED, kubelet.termination_observed),
        _row(kinds.GRACE_DECIDED, kubelet.grace_decided),
        _row(kinds.KILLING, kubelet.killing),
        _row(kinds.PRE_STOP_SKIPPED, fixed("preStop not run: $why", STEP, "bad", recall=("why",))),
        _row(kinds.PRE_STOP_STARTED, kubelet.pre_stop_started),
        _row(kinds.PRE_STOP_FINISHED, kubelet.pre_stop_finished),
        _row(kinds.STOP_REQUESTED, kubelet.stop_requested),
        _row(kinds.STOP_FINISHED, kubelet.stop_finished),
        _row(kinds.SANDBOX_STOPPED, kubelet.sandbox_stopped),
        _row(kinds.VOLUMES_UNMOUNTED, kubelet.volumes_unmounted),
        _row(kinds.STATUS_SENT, fixed("sent the status: phase $phase", DETAIL)),
        _row(kinds.FINAL_DELETE_SENT, fixed("final DELETE: grace 0, this uid only")),
        _row(kinds.WORKER_FINISHED, fixed("the Pod's worker is done", DETAIL)),
        _row(kinds.PROCESS_STARTED, fixed("process started: pid $pid, $exe", DETAIL)),
        _row(
            kinds.OUT_OF_MEMORY,
            fixed("the machine ran out of memory meanwhile: probably killed for that", STEP, "bad"),
        ),
        _row(kinds.PROCESS_SIGNAL_STATE, runtime.signal_state),
        _row(kinds.SIGNAL_SENT, runtime.signal_sent),
        _row(kinds.PROCESS_EXITED, runtime.process_exited),
        _row(kinds.SOCKETS_AT_STOP, runtime.sockets_at_stop),
        _row(kinds.LISTENER_CLOSED, runtime.listener_closed),
        _row(kinds.CONNECTIONS_CLOSED, runtime.connections_closed),
        _row(kinds.SOCKETS_AT_EXIT, runtime.sockets_at_exit),
        _row(kinds.PROCESSES_LEFT, runtime.processes_left),
        _row(kinds.VOLUME_BUSY, kubelet.volume_busy),
        _row(
            kinds.CLAIM_HELD,
            fixed("claim $claim was deleted and stays, held by finalizer $finalizer, because this Pod uses it", STEP),
        ),
        _row(kinds.EXEC_STARTED, fixed("exec: pid $pid", NOISE)),
        _row(kinds.EXEC_EXITED, fixed("exec: exit $exitCode", NOISE)),
        _row(kinds.OUTPUT, runtime.output),
        _row(
            kinds.PRIVILEGE_CALL_ANSWERED,
            fixed("$call to id $id answered with success, not done (one user id)", STEP),
        ),
        _row(kinds.NETWORK_ATTACHED, fixed("network $ip set up", DETAIL)),
        _row(kinds.NETWORK_POLICIES_APPLIED, runtime.network_policies_applied),
        _row(kinds.NETWORK_DETACHED, runtime.network_detached),
        _row(kinds.PROCESS_DIED, runtime.process_died),
        _row(kinds.OWNER_WRITTEN, apiserver.owner_written),
        _row(kinds.OWNER_DELETED, apiserver.owner_deleted),
        _row(kinds.SCALE_DECIDED, apiserver.scale_decided),
        _row(kinds.DELETION_DECIDED, fixed("decides the end: $why", STEP, recall=("why",))),
        _row(kinds.PROCESS_RESTARTED, fixed("$role started again (pid $pid)", STEP)),
        _row(kinds.FAULT_CAUGHT, fixed("an internal error was caught: $component $key: $error", STEP)),
    )
)
