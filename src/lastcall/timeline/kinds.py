"""The kinds of records and the facts each carries. `facts` keys are camelCase, seconds are floats, pids as the cluster sees them.

Actors: `client`, `apiserver`, `scheduler`, `endpointslice-controller`, `kube-proxy`, `kubelet`, `runtime` (the shim and what drives it), `init`.
"""

# client (the command that follows the Pods)
DELETE_SENT = "DeleteSent"  # gracePeriodSeconds (None = the Pod's own)
POD_READY_SEEN = "PodReadySeen"  # resourceVersion
POD_GONE_SEEN = "PodGoneSeen"  # resourceVersion: the client saw the DELETED watch event

# apiserver
POD_CREATED = "PodCreated"  # namespace, name, resourceVersion, user, owner (its controller: kind, name, uid; absent without one), containers (list of name, kind: container|sidecar|init, preStop: the handler or "")
EPHEMERAL_CONTAINERS_ADDED = (
    "EphemeralContainersAdded"  # containers (list of name, target: whose processes it sees, ""), user, resourceVersion
)
POD_BOUND = "PodBound"  # node, resourceVersion
DELETE_ACCEPTED = (
    "DeleteAccepted"  # user, userAgent, gracePeriodSeconds, deletionTimestamp, resourceVersion; the zero of a Pod's end
)
GRACE_SHORTENED = "GraceShortened"  # from, to, resourceVersion
POD_STATUS_WRITTEN = "PodStatusWritten"  # phase, ready, reason, resourceVersion, waiting (list of container, reason, message: what keeps it from starting), unschedulable (what the scheduler says)
HELD_BY_FINALIZERS = (
    "HeldByFinalizers"  # finalizers, user, resourceVersion: the last DELETE (grace 0) left the object there
)
OBJECT_REMOVED = "ObjectRemoved"  # resourceVersion, user

# endpointslice-controller
ENDPOINT_CHANGED = (
    "EndpointChanged"  # service, slice, address, ready, serving, terminating, resourceVersion, observedResourceVersion
)
ENDPOINT_REMOVED = "EndpointRemoved"  # service, slice, address, resourceVersion, observedResourceVersion

# kube-proxy (the service proxy of each node)
ENDPOINT_CHANGE_SEEN = "EndpointChangeSeen"  # node, service, slice, address, ready, serving, terminating or removed, observedResourceVersion (of the slice)
ENDPOINT_RULES_WRITTEN = "EndpointRulesWritten"  # node, service, address, received, receives (whether new connections went and go there), ready, seconds (since it was seen): the kernel goes by it from here on
RULES_REFUSED = "RulesRefused"  # error, retryInSeconds: the kernel did not take the rules

# controllers, scheduler, taint eviction, PodGC: who decided that a Pod has to end, written just before the DELETE
DELETION_DECIDED = "DeletionDecided"  # why (one sentence), ownerKind, owner, ownerUid, ownerGeneration, ownerResourceVersion (as observed), step (rollout|scaling|…), observedResourceVersion, and what the decision went by (rank, candidates, taint, preemptor …)

# persistentvolumeclaim-protection-controller
CLAIM_HELD = "ClaimHeld"  # claim, finalizer, pod: a claim that was deleted stays, because this Pod uses it

# owners of Pods and namespaces: who changed and who deleted them. Of no Pod: `ofKind`, `namespace`, `name`, `uid` say of what
OWNER_WRITTEN = "OwnerWritten"  # apiserver: ofKind, namespace, name, uid, generation, resourceVersion, user, userAgent, changed (names of spec fields; empty for a creation), from, to (replicas, when they changed)
OWNER_DELETED = "OwnerDeleted"  # apiserver: ofKind, namespace, name, uid, user, userAgent, ownerUid (its controller's), resourceVersion
SCALE_DECIDED = "ScaleDecided"  # deployment-controller, after its write of a ReplicaSet: step (rollout|scaling), revision, ownerKind, owner, ownerUid, ownerGeneration (observed), ofKind, name, uid, generation, resourceVersion (written), from, to

# scheduler
POD_SCHEDULED = "PodScheduled"  # node

# kubelet: start
POD_ADMITTED = "PodAdmitted"  # observedResourceVersion
POD_REJECTED = "PodRejected"  # reason, message
MIRROR_POD_CREATED = "MirrorPodCreated"  # mirrorUid, namespace, name, resourceVersion: the API object of a static Pod
VOLUME_FAILED = "VolumeFailed"  # volume, error: the first time that it says so
VOLUMES_MOUNTED = "VolumesMounted"  # volumes
SANDBOX_CREATED = "SandboxCreated"  # sandboxId, ips, seconds
IMAGE_SUBSTITUTED = "ImageSubstituted"  # image, substitute
ALL_CONTAINERS_RESTARTING = "AllContainersRestarting"  # exitCode (of the container that asked for it), containers (killed and removed, in order)
CONTAINER_CREATED = "ContainerCreated"  # containerId, image, attempt
CONTAINER_STARTED = "ContainerStarted"  # containerId, attempt
CONTAINER_START_FAILED = "ContainerStartFailed"  # reason, message
POST_START_STARTED = "PostStartStarted"  # handler
POST_START_FINISHED = "PostStartFinished"  # handler, outcome (succeeded|failed), seconds, message
PROBE_CHANGED = "ProbeChanged"  # probe (readiness|liveness|startup), result (success|failure), output, succeededBefore (for a failure: whether a probe of this container ever had, None: not known), port (of the container, that the probe connects to; None: it asks none)
POD_RUNNING = "PodRunning"  # written when the status manager reports phase Running

# kubelet: end
TERMINATION_OBSERVED = "TerminationObserved"  # cause (deletionTimestamp|apiTerminalPhase|kill|removed|completed|runtimeOnly), gracePeriodSeconds, observedResourceVersion
GRACE_DECIDED = "GraceDecided"  # gracePeriodSeconds, shortened, why: calculateEffectiveGracePeriod
KILLING = "Killing"  # message, gracePeriodSeconds, reason (LivenessProbe|StartupProbe|FailedPostStartHook|Unknown; none for the Pod's end)
PRE_STOP_SKIPPED = "PreStopSkipped"  # why (one sentence)
PRE_STOP_STARTED = "PreStopStarted"  # handler (exec|httpGet|sleep|tcpSocket), detail, budgetSeconds
PRE_STOP_FINISHED = (
    "PreStopFinished"  # handler, outcome (succeeded|failed|outlived), seconds, exitCode, stdout, stderr, message
)
STOP_REQUESTED = "StopRequested"  # timeoutSeconds, floor (True when raised to 2 s), deductedSeconds: CRI StopContainer
STOP_FINISHED = "StopFinished"  # seconds, error
SANDBOX_STOPPED = "SandboxStopped"  # sandboxId, seconds, error
VOLUME_BUSY = "VolumeBusy"  # volume, error, holders (list of pid, name, how: open file|working directory|root directory|program|mount, path), more
VOLUMES_UNMOUNTED = "VolumesUnmounted"  # volumes, seconds
STATUS_SENT = "StatusSent"  # phase, resourceVersion
FINAL_DELETE_SENT = "FinalDeleteSent"  # uid
WORKER_FINISHED = "WorkerFinished"

# runtime
PROCESS_STARTED = "ProcessStarted"  # containerId, pid, exe, argv, uid, gid, seccomp (the filter's name)
PRIVILEGE_CALL_ANSWERED = "PrivilegeCallAnswered"  # containerId, call (chown|setuid|…), id (who it asked to be): answered with success without being done, for the cluster has one user id; the first of each call
PROCESS_SIGNAL_STATE = "ProcessSignalState"  # pid, containerPid (in its PID namespace: only 1 is deaf to default), name, exe, signal, disposition (handled|ignored|blocked|default), taken (how a handled one is: handler|sigwait|signalfd), caught, ignored, blocked (lists of names); read from /proc right before the signal
OUT_OF_MEMORY = "OutOfMemory"  # containerId, pid, machineKills: without a control group, inferred from the machine's counter and a SIGKILL that nobody here sent
SIGNAL_SENT = "SignalSent"  # signal, pid, why (StopContainer|grace over|StopPodSandbox|exec timeout|caller gone|the shim died), oomKills (for SIGKILL: how many there had been in the container, None: nobody counts), stopSignalPending (for SIGKILL: the stop signal that was sent before had not been taken by then, None: not known)
PROCESS_EXITED = "ProcessExited"  # containerId, pid, exitCode, signal, oomKilled, oomKills (since the start, None: nobody counts), memoryLimit (bytes, None without)
SOCKETS_AT_STOP = "SocketsAtStop"  # signal, listeners (list of address, port, backlog: connections not accepted yet), connections (established, of either direction), scope (container|pod: whose connections are counted); right after the stop signal
LISTENER_CLOSED = (
    "ListenerClosed"  # address, port, seconds, notBefore: between two looks, both counted from the stop signal
)
CONNECTIONS_CLOSED = (
    "ConnectionsClosed"  # seconds, notBefore, scope: no listener and no connection is left, and it still runs
)
SOCKETS_AT_EXIT = "SocketsAtExit"  # listeners, connections, unread (connections with data that the program had not read), unreadBytes, backlog, scope: at the last look, secondsBefore ago; resets (connections that ended by a reset since that look), closedUnread (closed with data not read, since the stop signal)
PROCESSES_LEFT = "ProcessesLeft"  # when (SIGKILL: they lived right before it|exit: the kernel killed them when PID 1 exited), signal, processes (list of pid, containerPid, name, state, disposition to that signal, child (of PID 1 itself), afterSignal: True when it did not run yet at that signal), more (how many others), zombies (children of PID 1 that it has not reaped), secondsBefore (age of that look; for SIGKILL it is right before it)
EXEC_STARTED = "ExecStarted"  # execId, pid, argv
EXEC_EXITED = "ExecExited"  # execId, pid, exitCode, signal, killedBecause
OUTPUT = "Output"  # stream (stdout|stderr), text, attempt, dropped (lines before this one that were too many to tell)
NETWORK_ATTACHED = "NetworkAttached"  # ip, seconds
NETWORK_DETACHED = "NetworkDetached"  # ip, seconds, error

# init
PROCESS_DIED = "ProcessDied"  # role (control-plane|node-1|shim-1|orphan), pid, exitCode, signal, restartsIn (seconds, when it is started again), hung (when its event loop did not turn and init ended it: seconds, cpuSeconds, takesLonger, stack), workingOn (component, key: its last turn, when the end was its own fault), servesAlone (seconds that the next one answers without controllers)
PROCESS_RESTARTED = "ProcessRestarted"  # role, pid

# every role
FAULT_CAUGHT = "FaultCaught"  # role, component, key, error (its text in one line), times (since it was told last), count (since the role's start): a wall caught what nobody expected
