"""The rules of Kubernetes and of containerd that records name, each with its source and what it says.

A record names its rule by source path and function. Paths are of Kubernetes 1.36, and of containerd for the runtime. A
record takes no other rule: type checkers refuse a string that is none of these. One without a name is in no record:
the tour or the live page names it.
"""

# check: standard library

from typing import NewType

Rule = NewType("Rule", str)
"""Source path and function, such as `pkg/kubelet/pod_workers.go:UpdatePod`."""

SAYS: dict[str, str] = {}
"""`file:function` → what the rule says."""


def explanation(rule: str) -> str:
    """Return what a rule says, whatever its path begins with; "" for a string that is not a rule."""
    return SAYS.get(_short(rule), "")


def _rule(source: str, says: str) -> Rule:
    SAYS[_short(source)] = says
    return Rule(source)


def _short(rule: str) -> str:
    path, _, function = rule.partition(":")
    return f"{path.rpartition('/')[2]}:{function}"


# API server
CREATE = _rule(
    "staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go:Create",
    "A new object gets its uid, creationTimestamp and first resourceVersion when it is stored.",
)
DELETE = _rule(
    "staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go:Delete",
    "A DELETE marks the object first when a grace period or a finalizer asks for it, and removes it otherwise. "
    "Watchers of a removal always get the last state.",
)
BEFORE_DELETE = _rule(
    "staging/src/k8s.io/apiserver/pkg/registry/rest/delete.go:BeforeDelete",
    "deletionTimestamp becomes now plus the grace period. A later DELETE may only shorten it, never lengthen it.",
)
MARK_AS_DELETING = _rule(
    "staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go:markAsDeleting",
    "An object with finalizers is marked with grace period 0 and waits for them.",
)
_rule(
    "pkg/registry/core/pod/strategy.go:CheckGracefulDelete",
    "A Pod's grace period is what the DELETE asks for, else its terminationGracePeriodSeconds. A Pod that is not "
    "scheduled, or has finished, needs none and is removed at once.",
)
UPDATE_EPHEMERAL_CONTAINERS = _rule(
    "pkg/registry/core/pod/strategy.go:podEphemeralContainersStrategy",
    "A write to the subresource ephemeralcontainers adds containers to a running Pod, and changes nothing else.",
)
UPDATE_POD_STATUS = _rule(
    "pkg/registry/core/pod/strategy.go:podStatusStrategy.PrepareForUpdate",
    "A write to the status subresource changes the status only; spec and deletionTimestamp stay as they are.",
)
DELETE_NAMESPACE = _rule(
    "pkg/registry/core/namespace/storage/storage.go:Delete",
    "A Namespace is marked first; its contents are deleted before it.",
)
ASSIGN_POD = _rule(
    "pkg/registry/core/pod/storage/storage.go:assignPod",
    "A binding writes spec.nodeName once, together with the condition PodScheduled.",
)
CREATE_EVICTION = _rule(
    "pkg/registry/core/pod/storage/eviction.go:Create",
    "An eviction is a DELETE that asks first: of the one PodDisruptionBudget that selects the Pod it uses up an "
    "allowance. A Pod that is not Ready may go without one, and one that is Pending or has ended always may.",
)

# scheduler
BIND = _rule(
    "pkg/scheduler/schedule_one.go:bind",
    "The scheduler binds the Pod to its node through the binding subresource.",
)
PREEMPT_POD = _rule(
    "pkg/scheduler/framework/preemption/executor.go:PreemptPod",
    "A Pod that fits on no node may preempt Pods of lower priority, on the node where that does the least harm: "
    "fewest budgets violated, then lowest priorities, then fewest Pods. They keep their grace period, and the Pod "
    "waits.",
)

# controllers: Pods of an owner
_rule(
    "pkg/controller/replicaset/replica_set.go:manageReplicas",
    "A Pod that is marked for deletion does not count: its ReplicaSet creates what it lacks at once.",
)
GET_PODS_TO_DELETE = _rule(
    "pkg/controller/replicaset/replica_set.go:getPodsToDelete",
    "If there are too many Pods, those go first that are not assigned, not Running, not Ready, cheaper by annotation, "
    "crowded on their node, Ready for a shorter time, restarted more often or younger; the first difference decides.",
)
RECONCILE_OLD_REPLICA_SETS = _rule(
    "pkg/controller/deployment/rolling.go:reconcileOldReplicaSets",
    "A rollout makes the old ReplicaSets smaller, within maxUnavailable: Pods that are not Ready first, then as many "
    "as new ones have become available.",
)
SCALE_DEPLOYMENT = _rule(
    "pkg/controller/deployment/sync.go:scale",
    "A Deployment of another size without another template changes the size of its ReplicaSets, in proportion when "
    "there are several.",
)
PODS_SHOULD_BE_ON_NODE = _rule(
    "pkg/controller/daemon/daemon_controller.go:podsShouldBeOnNode",
    "A DaemonSet keeps one Pod on every node that fits. Pods on other nodes, surplus ones and ended ones go, and in "
    "an update old ones within maxUnavailable and maxSurge.",
)
UPDATE_STATEFUL_SET = _rule(
    "pkg/controller/statefulset/stateful_set_control.go:updateStatefulSet",
    "A StatefulSet does one thing at a time: it fills the ordinals upwards, removes those beyond its size and old "
    "revisions downwards, and creates a name again only when the old Pod's object is gone.",
)
MANAGE_JOB = _rule(
    "pkg/controller/job/job_controller.go:manageJob",
    "A Job runs as many Pods as its parallelism and its missing completions ask for, and none while it is suspended. "
    "Surplus ones are deleted and do not count as failed.",
)
DELETE_ACTIVE_PODS = _rule(
    "pkg/controller/job/job_controller.go:deleteActivePods",
    "When it is certain how a Job ends, its remaining Pods are deleted. The Job is Complete or Failed only when all "
    "of them have ended and are counted.",
)
DELETE_FINISHED_JOB = _rule(
    "pkg/controller/ttlafterfinished/ttlafterfinished_controller.go:processJob",
    "A Job that has finished longer than its ttlSecondsAfterFinished ago is deleted, its Pods before it.",
)
DELETE_JOB_OF_CRON_JOB = _rule(
    "pkg/controller/cronjob/cronjob_controllerv2.go:deleteJob",
    "A CronJob deletes finished Jobs beyond its history limits, and with concurrencyPolicy Replace the one that still "
    "runs when the next is due.",
)
RECONCILE_AUTOSCALER = _rule(
    "pkg/controller/podautoscaler/horizontal.go:reconcileAutoscaler",
    "Every 15 s an autoscaler compares its metrics with what they are to be, and writes the size that it wants into "
    "the subresource scale of its target, within minReplicas and maxReplicas.",
)

# controllers: what is left over, nodes, volumes
ATTEMPT_TO_DELETE_ITEM = _rule(
    "pkg/controller/garbagecollector/garbagecollector.go:attemptToDeleteItem",
    "An object whose owners are all gone, or wait for it in a foreground deletion, is deleted. What else it owns "
    "follows by the same rule.",
)
DELETE_ALL_CONTENT = _rule(
    "pkg/controller/namespace/deletion/namespaced_resources_deleter.go:deleteAllContent",
    "The Pods of a namespace that is deleted go first, each with its own grace period; everything else follows when "
    "the last of them is gone, then the namespace.",
)
GC_TERMINATED = _rule(
    "pkg/controller/podgc/gc_controller.go:gcTerminated",
    "Only a limited number of ended Pods is kept; evicted ones are removed first, then the oldest.",
)
GC_TERMINATING = _rule(
    "pkg/controller/podgc/gc_controller.go:gcTerminating",
    "A Pod that ends on a node that is not Ready and has the taint out-of-service is not waited for.",
)
GC_ORPHANED = _rule(
    "pkg/controller/podgc/gc_controller.go:gcOrphaned",
    "The Pods of a node that is gone for 40 seconds are marked Failed and removed: no kubelet will do it.",
)
GC_UNSCHEDULED_TERMINATING = _rule(
    "pkg/controller/podgc/gc_controller.go:gcUnscheduledTerminating",
    "A Pod that is being deleted and has no node is removed, because no kubelet can end it.",
)
PROCESS_POD_ON_NODE = _rule(
    "pkg/controller/tainteviction/taint_eviction.go:processPodOnNode",
    "A NoExecute taint ends the Pods that do not tolerate it, others when their tolerationSeconds are over. A node "
    "that is lost for 50 s gets such a taint, which every Pod tolerates for 300 s unless it says otherwise.",
)
DELETE_POD_OF_TAINTED_DEVICE = _rule(
    "pkg/controller/devicetainteviction/device_taint_eviction.go:addConditionAndDeletePod",
    "A Pod that was given a device with a NoExecute taint, which its claim does not tolerate, is deleted.",
)
PROCESS_PVC = _rule(
    "pkg/controller/volume/pvcprotection/pvc_protection_controller.go:processPVC",
    "A claim that was deleted keeps its finalizer while a Pod with a node uses it, also one that has ended: no data "
    "may disappear under a Pod.",
)

# EndpointSlices and the service proxy
POD_TO_ENDPOINT = _rule(
    "staging/src/k8s.io/endpointslice/utils.go:podToEndpoint",
    "A terminating Pod is never ready; it stays serving for as long as its Ready condition is True, so that a proxy "
    "may still send it connections that no other endpoint can take.",
)
SHOULD_POD_BE_IN_ENDPOINTS = _rule(
    "staging/src/k8s.io/endpointslice/util/controller_utils.go:ShouldPodBeInEndpoints",
    "A Pod leaves the EndpointSlice when its phase is Succeeded or Failed, or when it is gone. Being marked for "
    "deletion is not enough.",
)
ON_ENDPOINT_SLICE_UPDATE = _rule(
    "pkg/proxy/nftables/proxier.go:OnEndpointSliceUpdate",
    "The proxy of every node watches the EndpointSlices by itself; until it has seen a change and written its rules, "
    "that node still sends new connections as before.",
)
CATEGORIZE_ENDPOINTS = _rule(
    "pkg/proxy/topology.go:CategorizeEndpoints",
    "New connections go to ready endpoints; when none is ready, to those that still serve while they terminate. "
    "Connections that exist are never cut by a change of the rules.",
)

# kubelet: Pods
HANDLE_POD_ADDITIONS = _rule(
    "pkg/kubelet/kubelet.go:HandlePodAdditions",
    "The kubelet accepts a new Pod or rejects it for good; then its worker starts.",
)
REJECT_POD = _rule(
    "pkg/kubelet/kubelet.go:rejectPod",
    "A Pod that the node cannot take is Failed at once and never started.",
)
LIST_CONFIG = _rule(
    "pkg/kubelet/config/file.go:listConfig",
    "The node's manifest directory says what runs; what leaves it ends with its grace.",
)
CREATE_MIRROR_POD = _rule(
    "pkg/kubelet/pod/mirror_client.go:CreateMirrorPod",
    "A static Pod is shown in the API by a mirror; deleting that stops nothing.",
)
UPDATE_POD = _rule(
    "pkg/kubelet/pod_workers.go:UpdatePod",
    "Each change of a Pod goes to its worker. deletionTimestamp makes it terminating, and that is final.",
)
CALCULATE_EFFECTIVE_GRACE_PERIOD = _rule(
    "pkg/kubelet/pod_workers.go:calculateEffectiveGracePeriod",
    "The Pod's grace period is the least of what was asked for, at least 1 s, and can only become shorter.",
)
COMPLETE_SYNC = _rule(
    "pkg/kubelet/pod_workers.go:completeSync",
    "A Pod whose containers have all ended for good becomes terminating by itself.",
)
COMPLETE_TERMINATED = _rule(
    "pkg/kubelet/pod_workers.go:completeTerminated",
    "Nothing of the Pod is left on the node: the API object can be removed.",
)
COMPLETE_TERMINATING_RUNTIME_POD = _rule(
    "pkg/kubelet/pod_workers.go:completeTerminatingRuntimePod",
    "A Pod that only the runtime knew has been stopped.",
)
REMOVE_TERMINATED_WORKER = _rule(
    "pkg/kubelet/pod_workers.go:removeTerminatedWorker",
    "The Pod's object vanished before the node had stopped it.",
)
EVICT_PODS_TO_FREE_REQUESTS = _rule(
    "pkg/kubelet/preemption/preemption.go:evictPodsToFreeRequests",
    "A critical Pod that does not fit makes room: other Pods of the node end with their own grace periods.",
)
EVICT_UNDER_PRESSURE = _rule(
    "pkg/kubelet/eviction/eviction_manager.go:synchronize",
    "Under pressure the node ends one Pod at a time: those that use more than they requested first, then the lowest "
    "priority, then those farthest above their request. At a hard threshold it has one second.",
)
LOCAL_STORAGE_EVICTION = _rule(
    "pkg/kubelet/eviction/eviction_manager.go:localStorageEviction",
    "A Pod that writes more than its own limits allow (emptyDir sizeLimit, ephemeral-storage) has one second.",
)
KILL_PODS_AT_SHUTDOWN = _rule(
    "pkg/kubelet/nodeshutdown/nodeshutdown_manager.go:killPods",
    "A node that shuts down ends its Pods group after group, lowest priority first; each gets its own grace period, "
    "at most its group's.",
)


# kubelet: containers
SYNC_POD = _rule(
    "pkg/kubelet/kuberuntime/kuberuntime_manager.go:SyncPod",
    "Sandbox first, then init containers one by one, then all others.",
)
START_CONTAINER = _rule(
    "pkg/kubelet/kuberuntime/kuberuntime_container.go:startContainer",
    "Pull the image, create the container, start it, run postStart. A failure is the container's reason to wait.",
)
DO_POD_RESIZE_ACTION = _rule(
    "pkg/kubelet/kuberuntime/kuberuntime_manager.go:doPodResizeAction",
    "A resize in place changes the limits of a container that runs: the Pod's group grows before its containers' and "
    "shrinks after them, and no memory limit is set below what is used.",
)
DO_PROBE = _rule(
    "pkg/kubelet/prober/worker.go:doProbe",
    "A probe's result changes after failureThreshold or successThreshold results in a row.",
)
KILL_CONTAINER = _rule(
    "pkg/kubelet/kuberuntime/kuberuntime_container.go:killContainer",
    "preStop hook, then CRI StopContainer with what the hook left of the grace period, but at least 2 s. From 1.22 to "
    "1.27 the hook's time was not taken off for Pods that were deleted.",
)
EXECUTE_PRE_STOP_HOOK = _rule(
    "pkg/kubelet/kuberuntime/kuberuntime_container.go:executePreStopHook",
    "The kubelet waits for the hook at most for the grace period. It does not cancel it then: the hook continues "
    "beside the stop signal.",
)
_rule(
    "pkg/kubelet/kuberuntime/kuberuntime_manager.go:killContainersWithSyncResult",
    "Every running container is stopped, all at the same time.",
)
_rule(
    "pkg/kubelet/kuberuntime/kuberuntime_manager.go:computePodActions",
    "Spec and status decide what is started, restarted or killed.",
)
KILL_POD_WITH_SYNC_RESULT = _rule(
    "pkg/kubelet/kuberuntime/kuberuntime_manager.go:killPodWithSyncResult",
    "All containers stop in parallel; the sandbox, and with it the network, goes only when the last has ended.",
)
WAIT_FOR_TURN = _rule(
    "pkg/kubelet/kuberuntime/kuberuntime_termination_order.go:waitForTurn",
    "Sidecars stop after the regular containers, the last one first.",
)
RUN_HANDLER = _rule(
    "pkg/kubelet/lifecycle/handlers.go:Run",
    "exec fails on a non-zero exit code, httpGet only if there is no answer: any HTTP status counts as success. A "
    "failed hook delays nothing.",
)

# kubelet: status and volumes
SYNC_POD_STATUS = _rule(
    "pkg/kubelet/status/status_manager.go:syncPod",
    "The newest status is sent as a PATCH; when everything has ended, the final DELETE follows it.",
)
CAN_BE_DELETED = _rule(
    "pkg/kubelet/status/status_manager.go:canBeDeleted",
    "The kubelet deletes the object itself, with grace period 0 and its uid, once the phase is terminal and nothing "
    "is left on the node.",
)
_rule(
    "pkg/kubelet/kubelet_pods.go:generateAPIPodStatus",
    "Phase and conditions follow from the states of the containers.",
)
WAIT_FOR_ATTACH_AND_MOUNT = _rule(
    "pkg/kubelet/volumemanager/volume_manager.go:WaitForAttachAndMount",
    "Containers start only when all volumes are mounted.",
)
WAIT_FOR_UNMOUNT = _rule(
    "pkg/kubelet/volumemanager/volume_manager.go:WaitForUnmount",
    "The object stays until the volumes are unmounted.",
)

# container runtime
RUN_POD_SANDBOX = _rule(
    "containerd internal/cri/server/sandbox_run.go:RunPodSandbox",
    "The network is set up (CNI ADD) before the first container.",
)
STOP_CONTAINER = _rule(
    "containerd internal/cri/server/container_stop.go:stopContainer",
    "The stop signal goes to PID 1 once in a container's life; when the timeout is over, SIGKILL ends all its "
    "processes.",
)
HANDLE_CONTAINER_EXIT = _rule(
    "containerd internal/cri/server/events.go:handleContainerExit",
    "When PID 1 of a container has ended, the runtime keeps its exit code and the time for the container's status. "
    "StopContainer then returns.",
)
HANDLE_SANDBOX_EXIT = _rule(
    "containerd internal/cri/server/events.go:handleSandboxExit",
    "When the first process of a Pod's sandbox has ended, the sandbox is not ready any more.",
)
STOP_POD_SANDBOX = _rule(
    "containerd internal/cri/server/sandbox_stop.go:stopPodSandbox",
    "What still runs is killed, then the network is torn down (CNI DEL).",
)
CLEANUP_AFTER_DEAD_SHIM = _rule(
    "containerd core/runtime/v2/shim_manager.go:cleanupAfterDeadShim",
    "When the process that holds a container's parent dies, the runtime kills and cleans up what it left.",
)
