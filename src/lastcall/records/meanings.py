# ruff: noqa: E501 - made by a tool, one kind a line
"""What each kind of record means: the first words of its type in records/fields.

Made by tools/make_catalogue.py: change it there.
"""

MEANINGS: dict[str, str] = {
    # client: client.py
    "DeleteSent": "The command sends the DELETE.",
    "PodReadySeen": "A watch shows the Pod with the condition Ready for the first time.",
    "PodGoneSeen": "The client sees the watch event DELETED.",
    "NotShown": "Something of this Pod's end cannot be known from where it was followed. The story says it as it stands.",
    "NodeStateSeen": "A watch shows the state of the Pod's node, at the DELETE and whenever it changes until the Pod is gone.",
    # apiserver: apiserver.py
    "PodCreated": "The Pod's object is stored.",
    "EphemeralContainersAdded": "Somebody adds ephemeral containers (`kubectl debug`).",
    "PodBound": "The Pod is assigned to a node.",
    "DeleteAccepted": "The API server accepts the DELETE: the zero of a Pod's end.",
    "GraceShortened": "Another DELETE makes the grace period shorter.",
    "PodStatusWritten": "The Pod's status is written.",
    "HeldByFinalizers": "The last DELETE (grace period 0) leaves the object there, because it has finalizers.",
    "ObjectRemoved": "The Pod's object is removed from the store.",
    "OwnerDeleted": "Somebody deletes an owner of Pods, or a namespace. The record is of no Pod.",
    "OwnerWritten": "Somebody creates an owner of Pods or changes its spec. The record is of no Pod.",
    # endpointslice-controller: endpointslice_controller.py
    "EndpointRemoved": "A Pod's address leaves an EndpointSlice.",
    "EndpointChanged": "A Pod's address comes into an EndpointSlice, or its conditions change there.",
    # kube-proxy: kube_proxy.py
    "EndpointChangeSeen": "The proxy of a node sees a changed EndpointSlice. With `removed` there are no conditions.",
    "EndpointRulesWritten": "The kernel of a node goes by the changed rules from here on. One that a node's agent read has no `seconds`; its `service` is empty when no rule leads to the address.",
    "RulesRefused": "The kernel does not take the rules.",
    # the component that decides: controllers.py
    "DeletionDecided": "A component decides that a Pod (or the Job that owns it) has to end. Written just before the DELETE.",
    "ClaimHeld": "A claim that was deleted stays, because this Pod uses it.",
    "ScaleDecided": "The Deployment controller has changed the size of a ReplicaSet. The record is of no Pod.",
    "PodScheduled": "The scheduler has bound the Pod to a node.",
    # kubelet: kubelet_start.py
    "PodAdmitted": "The node takes the Pod.",
    "PodRejected": "The node cannot take the Pod: it is Failed at once.",
    "MirrorPodCreated": "A static Pod has got its mirror, its object in the API.",
    "VolumeFailed": "A volume cannot be mounted. Written once for each error.",
    "VolumesMounted": "All volumes are mounted: containers may start.",
    "SandboxCreated": "The Pod has its sandbox, and with it its network.",
    "ImageSubstituted": "An image is not available; another one is used in its place.",
    "ContainerResized": "A container that runs has other limits from now on (`pods/resize`).",
    "AllContainersRestarting": "A container's exit asks for a restart of all (restartPolicyRules).",
    "ContainerCreated": "CRI CreateContainer has succeeded.",
    "ContainerStarted": "CRI StartContainer has succeeded.",
    "ContainerStartFailed": "The container cannot be started; the kubelet tries again.",
    "PostStartStarted": "The postStart hook begins.",
    "PostStartFinished": "The postStart hook is over. A failed one ends the container.",
    "ProbeChanged": "A probe's result changes.",
    "PodRunning": "The kubelet has reported the phase Running for the first time.",
    # kubelet: kubelet_end.py
    "TerminationObserved": "The Pod's worker turns to terminating. There is no way back.",
    "GraceDecided": "The grace period that the kubelet works with (calculateEffectiveGracePeriod).",
    "Killing": "The kubelet begins to stop a container.",
    "PreStopSkipped": "The preStop hook does not run.",
    "PreStopStarted": "The preStop hook begins.",
    "PreStopFinished": "The preStop hook is over, or has outlived its budget: then it goes on, and its end is told `late`.",
    "StopRequested": "The kubelet calls CRI StopContainer.",
    "StopFinished": "CRI StopContainer has answered.",
    "SandboxStopped": "CRI StopPodSandbox has answered: the Pod's network is gone.",
    "VolumeBusy": "A volume cannot be unmounted, because it is in use.",
    "VolumesUnmounted": "All volumes are unmounted.",
    "StatusSent": "The kubelet has sent a status.",
    "FinalDeleteSent": "The kubelet sends the final DELETE, with grace period 0.",
    "WorkerFinished": "Nothing of the Pod is left on the node.",
    # runtime: runtime.py
    "ProcessStarted": "A container's PID 1 runs.",
    "PrivilegeCallAnswered": "A call was answered with success without being done, because the cluster has one user id; the first of each call.",
    "ProcessSignalState": "How PID 1 meets the stop signal, read from /proc right before it.",
    "OutOfMemory": "Without a control group: concluded from the machine's counter and a SIGKILL that nobody here sent.",
    "SignalSent": "A signal is on its way.",
    "ProcessExited": "A container's PID 1 has ended.",
    "ExecStarted": "An exec (of a hook, a probe or a user) runs.",
    "ExecExited": "An exec has ended.",
    "Output": "A container has printed a line.",
    "NetworkAttached": "The Pod has its network (CNI ADD).",
    "NetworkPoliciesApplied": "The kernel drops new connections of the Pod that these NetworkPolicies do not allow. Written at each change.",
    "NetworkDetached": "The Pod's network is taken down (CNI DEL), or cannot be.",
    # runtime: witness.py
    "SocketsAtStop": "The TCP sockets right after the stop signal.",
    "ListenerClosed": "A listener has closed, between two looks.",
    "ConnectionsClosed": "No listener and no connection is left, and the container still runs.",
    "SocketsAtExit": "The TCP sockets at the last look before the exit, and what ended by a reset since.",
    "ProcessesLeft": "Other processes of the container at its end.",
    # init: init.py
    "ProcessDied": "A process of the cluster has ended.",
    "ProcessRestarted": "A process of the cluster is started again.",
    # every role: every_role.py
    "FaultCaught": "A turn failed as nobody expected; the component continues with the next one.",
}
