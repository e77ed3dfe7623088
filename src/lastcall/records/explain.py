"""The Kubernetes rule behind a step, in plain words.

Records name their rule as source path and function. `explain` answers one or two sentences on it. The path's beginning
does not matter: `pkg/kubelet/pod_workers.go:UpdatePod` and `pod_workers.go:UpdatePod` are the same rule.
"""

# check: pure

import posixpath

from lastcall.records.record import Record
from lastcall.records.said import Said
from lastcall.records.words import meaning


def explain(rule: str) -> str:
    """What the rule says; "" for a rule that is not in the table."""
    path, _, function = rule.partition(":")
    return _said(RULES.get(f"{posixpath.basename(path)}:{function}", ""))


def explain_record(record: Record) -> str:
    """What its rule says; for a record that follows no rule of Kubernetes, what its kind means."""
    return explain(record.rule) if record.rule else meaning(record.kind)


def _said(text: str) -> str:
    """Return the text as one that can be translated."""
    return Said(text, {}) if text else ""


RULES: dict[str, str] = {
    # runtime
    "shim_manager.go:cleanupAfterDeadShim": (
        "When the process that holds a container's parent dies, the runtime kills and cleans up what it left."
    ),
    # API server
    "store.go:Create": "A new object gets its uid, creationTimestamp and first resourceVersion when it is stored.",
    "store.go:Delete": (
        "A DELETE marks the object first when a grace period or a finalizer asks for it, and removes it otherwise. "
        "Watchers of a removal always get the last state."
    ),
    "delete.go:BeforeDelete": (
        "deletionTimestamp becomes now plus the grace period. A later DELETE may only shorten it, never lengthen it."
    ),
    "store.go:markAsDeleting": "An object with finalizers is marked with grace period 0 and waits for them.",
    "store.go:ShouldDeleteDuringUpdate": (
        "An update removes a marked object when its grace period is 0 and no finalizer is left."
    ),
    "strategy.go:CheckGracefulDelete": (
        "A Pod's grace period is what the DELETE asks for, else its terminationGracePeriodSeconds. A Pod that is not "
        "scheduled, or has finished, needs none and is removed at once."
    ),
    "strategy.go:podEphemeralContainersStrategy": (
        "A write to the subresource ephemeralcontainers adds containers to a running Pod, and changes nothing else."
    ),
    "kuberuntime_manager.go:doPodResizeAction": (
        "A resize in place changes the limits of a container that runs: the Pod's group grows before its containers' "
        "and shrinks after them, and no memory limit is set below what is used."
    ),
    "strategy.go:podStatusStrategy.PrepareForUpdate": (
        "A write to the status subresource changes the status only; spec and deletionTimestamp stay as they are."
    ),
    "pvc_protection_controller.go:processPVC": (
        "A claim that was deleted keeps its finalizer while a Pod with a node uses it, also one that has ended: no "
        "data may disappear under a Pod."
    ),
    "storage.go:Delete": "A Namespace is marked first; its contents are deleted before it.",
    "storage.go:assignPod": "A binding writes spec.nodeName once, together with the condition PodScheduled.",
    # scheduler
    "schedule_one.go:bind": "The scheduler binds the Pod to its node through the binding subresource.",
    "schedule_one.go:handleSchedulingFailure": (
        "A Pod that fits on no node gets PodScheduled=False with the reason, and is tried again later."
    ),
    "executor.go:PreemptPod": (
        "A Pod that fits on no node may preempt Pods of lower priority, on the node where that does the least harm: "
        "fewest budgets violated, then lowest priorities, then fewest Pods. They keep their grace period, and the Pod "
        "waits."
    ),
    # nodes
    "taint_eviction.go:processPodOnNode": (
        "A NoExecute taint ends the Pods that do not tolerate it, others when their tolerationSeconds are over. A node "
        "that is lost for 50 s gets such a taint, which every Pod tolerates for 300 s unless it says otherwise."
    ),
    # owners
    "daemon_controller.go:podsShouldBeOnNode": (
        "A DaemonSet keeps one Pod on every node that fits. Pods on other nodes, surplus ones and ended ones go, and "
        "in an update old ones within maxUnavailable and maxSurge."
    ),
    "stateful_set_control.go:updateStatefulSet": (
        "A StatefulSet does one thing at a time: it fills the ordinals upwards, removes those beyond its size and old "
        "revisions downwards, and creates a name again only when the old Pod's object is gone."
    ),
    "job_controller.go:deleteActivePods": (
        "When it is certain how a Job ends, its remaining Pods are deleted. The Job is Complete or Failed only when "
        "all of them have ended and are counted."
    ),
    "ttlafterfinished_controller.go:processJob": (
        "A Job that has finished longer than its ttlSecondsAfterFinished ago is deleted, its Pods before it."
    ),
    "cronjob_controllerv2.go:deleteJob": (
        "A CronJob deletes finished Jobs beyond its history limits, and with concurrencyPolicy Replace the one that "
        "still runs when the next is due."
    ),
    "job_controller.go:manageJob": (
        "A Job runs as many Pods as its parallelism and its missing completions ask for, and none while it is "
        "suspended. Surplus ones are deleted and do not count as failed."
    ),
    "rolling.go:reconcileOldReplicaSets": (
        "A rollout makes the old ReplicaSets smaller, within maxUnavailable: Pods that are not Ready first, "
        "then as many as new ones have become available."
    ),
    "sync.go:scale": (
        "A Deployment of another size without another template changes the size of its ReplicaSets, in proportion when "
        "there are several."
    ),
    "garbagecollector.go:attemptToDeleteItem": (
        "An object whose owners are all gone, or wait for it in a foreground deletion, is deleted. What else it owns "
        "follows by the same rule."
    ),
    "namespaced_resources_deleter.go:deleteAllContent": (
        "The Pods of a namespace that is deleted go first, each with its own grace period; everything else follows "
        "when the last of them is gone, then the namespace."
    ),
    "gc_controller.go:gcTerminated": (
        "Only a limited number of ended Pods is kept; evicted ones are removed first, then the oldest."
    ),
    "gc_controller.go:gcTerminating": (
        "A Pod that ends on a node that is not Ready and has the taint out-of-service is not waited for."
    ),
    "gc_controller.go:gcOrphaned": (
        "The Pods of a node that is gone for 40 seconds are marked Failed and removed: no kubelet will do it."
    ),
    "gc_controller.go:gcUnscheduledTerminating": (
        "A Pod that is being deleted and has no node is removed, because no kubelet can end it."
    ),
    "eviction.go:Create": (
        "An eviction is a DELETE that asks first: of the one PodDisruptionBudget that selects the Pod it uses up an "
        "allowance. A Pod that is not Ready may go without one, and one that is Pending or has ended always may."
    ),
    "replica_set.go:manageReplicas": (
        "A Pod that is marked for deletion does not count: its ReplicaSet creates what it lacks at once."
    ),
    "replica_set.go:getPodsToDelete": (
        "If there are too many Pods, those go first that are not assigned, not Running, not Ready, cheaper by "
        "annotation, crowded on their node, Ready for a shorter time, restarted more often or younger; the first "
        "difference decides."
    ),
    # device taint eviction controller
    "device_taint_eviction.go:addConditionAndDeletePod": (
        "A Pod that was given a device with a NoExecute taint, which its claim does not tolerate, is deleted."
    ),
    # HorizontalPodAutoscaler controller
    "horizontal.go:reconcileAutoscaler": (
        "Every 15 s an autoscaler compares its metrics with what they are to be, and writes the size that it wants "
        "into the subresource scale of its target, within minReplicas and maxReplicas."
    ),
    # EndpointSlice controller
    "utils.go:podToEndpoint": (
        "A terminating Pod is never ready; it stays serving for as long as its Ready condition is True, so that a "
        "proxy may still send it connections that no other endpoint can take."
    ),
    "controller_utils.go:ShouldPodBeInEndpoints": (
        "A Pod leaves the EndpointSlice when its phase is Succeeded or Failed, or when it is gone. Being marked for "
        "deletion is not enough."
    ),
    # service proxy
    "proxier.go:OnEndpointSliceUpdate": (
        "The proxy of every node watches the EndpointSlices by itself; until it has seen a change and written its "
        "rules, that node still sends new connections as before."
    ),
    "topology.go:CategorizeEndpoints": (
        "New connections go to ready endpoints; when none is ready, to those that still serve while they terminate. "
        "Connections that exist are never cut by a change of the rules."
    ),
    # kubelet: workers
    "pod_workers.go:UpdatePod": (
        "Each change of a Pod goes to its worker. deletionTimestamp makes it terminating, and that is final."
    ),
    "pod_workers.go:calculateEffectiveGracePeriod": (
        "The Pod's grace period is the least of what was asked for, at least 1 s, and can only become shorter."
    ),
    "pod_workers.go:completeSync": "A Pod whose containers have all ended for good becomes terminating by itself.",
    "pod_workers.go:completeTerminating": "All containers have stopped: volumes may be unmounted from here on.",
    "pod_workers.go:completeTerminated": "Nothing of the Pod is left on the node: the API object can be removed.",
    "pod_workers.go:completeTerminatingRuntimePod": "A Pod that only the runtime knew has been stopped.",
    "pod_workers.go:removeTerminatedWorker": "The Pod's object vanished before the node had stopped it.",
    "kubelet.go:HandlePodAdditions": "The kubelet accepts a new Pod or rejects it for good; then its worker starts.",
    "kubelet.go:rejectPod": "A Pod that the node cannot take is Failed at once and never started.",
    "kubelet.go:SyncPod": "The Pod is brought to what its spec wants: volumes, sandbox, then containers in order.",
    "kubelet.go:SyncTerminatingPod": (
        "Liveness and startup probes end, every container is stopped, then the sandbox; the last status is made after "
        "that. Readiness probes continue."
    ),
    "kubelet.go:SyncTerminatingRuntimePod": (
        "A Pod without an API object is stopped with 1 s of grace and without its hooks."
    ),
    "kubelet.go:SyncTerminatedPod": "After the containers: volumes are unmounted, then the final status is settled.",
    # kubelet: containers
    "kuberuntime_container.go:killContainer": (
        "preStop hook, then CRI StopContainer with what the hook left of the grace period, but at least 2 s. "
        "From 1.22 to 1.27 the hook's time was not taken off for Pods that were deleted."
    ),
    "kuberuntime_container.go:executePreStopHook": (
        "The kubelet waits for the hook at most for the grace period. It does not cancel it then: the hook continues "
        "beside the stop signal."
    ),
    "kuberuntime_container.go:setTerminationGracePeriod": (
        "deletionGracePeriodSeconds, else a failed probe's own period, else the Pod's terminationGracePeriodSeconds."
    ),
    "kuberuntime_container.go:startContainer": (
        "Pull the image, create the container, start it, run postStart. A failure is the container's reason to wait."
    ),
    "kuberuntime_container_linux.go:startContainer": "The container is created and started by the runtime.",
    "kuberuntime_manager.go:killPodWithSyncResult": (
        "All containers stop in parallel; the sandbox, and with it the network, goes only when the last has ended."
    ),
    "kuberuntime_manager.go:killContainersWithSyncResult": "Every running container is stopped, all at the same time.",
    "kuberuntime_manager.go:SyncPod": "Sandbox first, then init containers one by one, then all others.",
    "kuberuntime_manager.go:computePodActions": "Spec and status decide what is started, restarted or killed.",
    "kuberuntime_sandbox.go:createPodSandbox": "The sandbox holds the Pod's network; every container joins it.",
    "kuberuntime_termination_order.go:waitForTurn": "Sidecars stop after the regular containers, the last one first.",
    "handlers.go:Run": (
        "exec fails on a non-zero exit code, httpGet only if there is no answer: any HTTP status counts as success. A "
        "failed hook delays nothing."
    ),
    "worker.go:doProbe": "A probe's result changes after failureThreshold or successThreshold results in a row.",
    "image_manager.go:EnsureImageExists": "imagePullPolicy decides whether an image on the node is good enough.",
    # kubelet: status and volumes
    "nodeshutdown_manager.go:killPods": (
        "A node that shuts down ends its Pods group after group, lowest priority first; each gets its own grace "
        "period, at most its group's."
    ),
    "eviction_manager.go:synchronize": (
        "Under pressure the node ends one Pod at a time: those that use more than they requested first, then the "
        "lowest priority, then those farthest above their request. At a hard threshold it has one second."
    ),
    "eviction_manager.go:localStorageEviction": (
        "A Pod that writes more than its own limits allow (emptyDir sizeLimit, ephemeral-storage) has one second."
    ),
    "preemption.go:evictPodsToFreeRequests": (
        "A critical Pod that does not fit makes room: other Pods of the node end with their own grace periods."
    ),
    "mirror_client.go:CreateMirrorPod": "A static Pod is shown in the API by a mirror; deleting that stops nothing.",
    "file.go:listConfig": "The node's manifest directory says what runs; what leaves it ends with its grace.",
    "status_manager.go:syncPod": "The newest status is sent as a PATCH; when everything has ended, the final DELETE "
    "follows it.",
    "status_manager.go:canBeDeleted": (
        "The kubelet deletes the object itself, with grace period 0 and its uid, once the phase is terminal and "
        "nothing is left on the node."
    ),
    "status_manager.go:TerminatePod": "Containers that cannot be found any more count as ended with 137.",
    "kubelet_pods.go:generateAPIPodStatus": "Phase and conditions follow from the states of the containers.",
    "volume_manager.go:WaitForAttachAndMount": "Containers start only when all volumes are mounted.",
    "volume_manager.go:WaitForUnmount": "The object stays until the volumes are unmounted.",
    # runtime
    "container_stop.go:stopContainer": (
        "The stop signal goes to PID 1 once in a container's life; when the timeout is over, SIGKILL ends all its "
        "processes."
    ),
    "sandbox_stop.go:stopPodSandbox": "What still runs is killed, then the network is torn down (CNI DEL).",
    "sandbox_stop.go:StopPodSandbox": "What still runs is killed, then the network is torn down (CNI DEL).",
    "sandbox_run.go:RunPodSandbox": "The network is set up (CNI ADD) before the first container.",
}
"""`file:function` → what it says. Paths are of Kubernetes 1.36, and of containerd for the runtime."""
