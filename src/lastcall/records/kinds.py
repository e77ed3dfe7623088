"""The kinds of records, each typed with the facts that it carries.

Made of records/definitions by tools/make_catalogue.py: change it there. docs/ending-v1.md explains each.
"""

# check: standard library

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lastcall.records.definitions import (
        apiserver,
        client,
        controllers,
        endpointslice_controller,
        every_role,
        init,
        kube_proxy,
        kubelet_end,
        kubelet_start,
        runtime,
        witness,
    )
    from lastcall.records.record import Kind
else:
    Kind = str

# client
DELETE_SENT: Kind[client.DeleteSent] = Kind("DeleteSent")
POD_READY_SEEN: Kind[client.PodReadySeen] = Kind("PodReadySeen")
POD_GONE_SEEN: Kind[client.PodGoneSeen] = Kind("PodGoneSeen")
NOT_SHOWN: Kind[client.NotShown] = Kind("NotShown")
NODE_STATE_SEEN: Kind[client.NodeStateSeen] = Kind("NodeStateSeen")

# apiserver
POD_CREATED: Kind[apiserver.PodCreated] = Kind("PodCreated")
EPHEMERAL_CONTAINERS_ADDED: Kind[apiserver.EphemeralContainersAdded] = Kind("EphemeralContainersAdded")
POD_BOUND: Kind[apiserver.PodBound] = Kind("PodBound")
DELETE_ACCEPTED: Kind[apiserver.DeleteAccepted] = Kind("DeleteAccepted")
DELETE_REFUSED: Kind[apiserver.DeleteRefused] = Kind("DeleteRefused")
GRACE_SHORTENED: Kind[apiserver.GraceShortened] = Kind("GraceShortened")
POD_STATUS_WRITTEN: Kind[apiserver.PodStatusWritten] = Kind("PodStatusWritten")
HELD_BY_FINALIZERS: Kind[apiserver.HeldByFinalizers] = Kind("HeldByFinalizers")
OBJECT_REMOVED: Kind[apiserver.ObjectRemoved] = Kind("ObjectRemoved")
OWNER_DELETED: Kind[apiserver.OwnerDeleted] = Kind("OwnerDeleted")
OWNER_WRITTEN: Kind[apiserver.OwnerWritten] = Kind("OwnerWritten")

# endpointslice-controller
ENDPOINT_REMOVED: Kind[endpointslice_controller.EndpointRemoved] = Kind("EndpointRemoved")
ENDPOINT_CHANGED: Kind[endpointslice_controller.EndpointChanged] = Kind("EndpointChanged")

# kube-proxy
ENDPOINT_CHANGE_SEEN: Kind[kube_proxy.EndpointChangeSeen] = Kind("EndpointChangeSeen")
ENDPOINT_RULES_WRITTEN: Kind[kube_proxy.EndpointRulesWritten] = Kind("EndpointRulesWritten")
RULES_REFUSED: Kind[kube_proxy.RulesRefused] = Kind("RulesRefused")

# the component that decides
DELETION_DECIDED: Kind[controllers.DeletionDecided] = Kind("DeletionDecided")
CLAIM_HELD: Kind[controllers.ClaimHeld] = Kind("ClaimHeld")
SCALE_DECIDED: Kind[controllers.ScaleDecided] = Kind("ScaleDecided")
POD_SCHEDULED: Kind[controllers.PodScheduled] = Kind("PodScheduled")

# kubelet
POD_ADMITTED: Kind[kubelet_start.PodAdmitted] = Kind("PodAdmitted")
POD_REJECTED: Kind[kubelet_start.PodRejected] = Kind("PodRejected")
MIRROR_POD_CREATED: Kind[kubelet_start.MirrorPodCreated] = Kind("MirrorPodCreated")
VOLUME_FAILED: Kind[kubelet_start.VolumeFailed] = Kind("VolumeFailed")
VOLUMES_MOUNTED: Kind[kubelet_start.VolumesMounted] = Kind("VolumesMounted")
SANDBOX_CREATED: Kind[kubelet_start.SandboxCreated] = Kind("SandboxCreated")
IMAGE_SUBSTITUTED: Kind[kubelet_start.ImageSubstituted] = Kind("ImageSubstituted")
CONTAINER_RESIZED: Kind[kubelet_start.ContainerResized] = Kind("ContainerResized")
ALL_CONTAINERS_RESTARTING: Kind[kubelet_start.AllContainersRestarting] = Kind("AllContainersRestarting")
CONTAINER_CREATED: Kind[kubelet_start.ContainerCreated] = Kind("ContainerCreated")
CONTAINER_STARTED: Kind[kubelet_start.ContainerStarted] = Kind("ContainerStarted")
CONTAINER_START_FAILED: Kind[kubelet_start.ContainerStartFailed] = Kind("ContainerStartFailed")
POST_START_STARTED: Kind[kubelet_start.PostStartStarted] = Kind("PostStartStarted")
POST_START_FINISHED: Kind[kubelet_start.PostStartFinished] = Kind("PostStartFinished")
PROBE_CHANGED: Kind[kubelet_start.ProbeChanged] = Kind("ProbeChanged")
PROBE_FAILING: Kind[kubelet_start.ProbeFailing] = Kind("ProbeFailing")
POD_RUNNING: Kind[kubelet_start.PodRunning] = Kind("PodRunning")

# kubelet
TERMINATION_OBSERVED: Kind[kubelet_end.TerminationObserved] = Kind("TerminationObserved")
GRACE_DECIDED: Kind[kubelet_end.GraceDecided] = Kind("GraceDecided")
KILLING: Kind[kubelet_end.Killing] = Kind("Killing")
PRE_STOP_SKIPPED: Kind[kubelet_end.PreStopSkipped] = Kind("PreStopSkipped")
PRE_STOP_STARTED: Kind[kubelet_end.PreStopStarted] = Kind("PreStopStarted")
PRE_STOP_FINISHED: Kind[kubelet_end.PreStopFinished] = Kind("PreStopFinished")
LISTENER_CLOSED_IN_HOOK: Kind[kubelet_end.ListenerClosedInHook] = Kind("ListenerClosedInHook")
STOP_REQUESTED: Kind[kubelet_end.StopRequested] = Kind("StopRequested")
STOP_FINISHED: Kind[kubelet_end.StopFinished] = Kind("StopFinished")
SANDBOX_STOPPED: Kind[kubelet_end.SandboxStopped] = Kind("SandboxStopped")
VOLUME_BUSY: Kind[kubelet_end.VolumeBusy] = Kind("VolumeBusy")
VOLUMES_UNMOUNTED: Kind[kubelet_end.VolumesUnmounted] = Kind("VolumesUnmounted")
STATUS_SENT: Kind[kubelet_end.StatusSent] = Kind("StatusSent")
FINAL_DELETE_SENT: Kind[kubelet_end.FinalDeleteSent] = Kind("FinalDeleteSent")
WORKER_FINISHED: Kind[kubelet_end.WorkerFinished] = Kind("WorkerFinished")

# runtime
PROCESS_STARTED: Kind[runtime.ProcessStarted] = Kind("ProcessStarted")
PRIVILEGE_CALL_ANSWERED: Kind[runtime.PrivilegeCallAnswered] = Kind("PrivilegeCallAnswered")
PROCESS_SIGNAL_STATE: Kind[runtime.ProcessSignalState] = Kind("ProcessSignalState")
OUT_OF_MEMORY: Kind[runtime.OutOfMemory] = Kind("OutOfMemory")
SIGNAL_SENT: Kind[runtime.SignalSent] = Kind("SignalSent")
PROCESS_EXITED: Kind[runtime.ProcessExited] = Kind("ProcessExited")
EXEC_STARTED: Kind[runtime.ExecStarted] = Kind("ExecStarted")
EXEC_EXITED: Kind[runtime.ExecExited] = Kind("ExecExited")
OUTPUT: Kind[runtime.Output] = Kind("Output")
IMAGE_PULL_PROGRESS: Kind[runtime.ImagePullProgress] = Kind("ImagePullProgress")
PAUSE_ENDED: Kind[runtime.PauseEnded] = Kind("PauseEnded")
NETWORK_ATTACHED: Kind[runtime.NetworkAttached] = Kind("NetworkAttached")
NETWORK_POLICIES_APPLIED: Kind[runtime.NetworkPoliciesApplied] = Kind("NetworkPoliciesApplied")
NETWORK_DETACHED: Kind[runtime.NetworkDetached] = Kind("NetworkDetached")

# runtime
SOCKETS_AT_STOP: Kind[witness.SocketsAtStop] = Kind("SocketsAtStop")
LISTENER_CLOSED: Kind[witness.ListenerClosed] = Kind("ListenerClosed")
CONNECTIONS_CLOSED: Kind[witness.ConnectionsClosed] = Kind("ConnectionsClosed")
SOCKETS_AT_EXIT: Kind[witness.SocketsAtExit] = Kind("SocketsAtExit")
PROCESSES_AT_STOP: Kind[witness.ProcessesAtStop] = Kind("ProcessesAtStop")
WAITS_AT_KILL: Kind[witness.WaitsAtKill] = Kind("WaitsAtKill")
PROCESSES_LEFT: Kind[witness.ProcessesLeft] = Kind("ProcessesLeft")
CHILD_ENDED: Kind[witness.ChildEnded] = Kind("ChildEnded")

# init
PROCESS_DIED: Kind[init.ProcessDied] = Kind("ProcessDied")
PROCESS_RESTARTED: Kind[init.ProcessRestarted] = Kind("ProcessRestarted")

# every role
FAULT_CAUGHT: Kind[every_role.FaultCaught] = Kind("FaultCaught")
