"""Causes about a Pod as a whole, its object, its node and its cluster."""

from collections.abc import Mapping

from lastcall.endings.catalogue.cause import Cause

PODS: Mapping[str, Cause] = {
    "imageSubstituted": Cause(
        title="An image is not available, and another one ran in its place.",
        remedy="Import the image: `lastcall image import FILE`, or let it be pulled.",
        texts={
            "": "Image $image is not available: $substitute ran in its place. Programs in it may behave differently.",
        },
    ),
    "processDied": Cause(
        title="A process of the cluster itself died while the Pod ended.",
        texts={
            "": "The cluster's $role $died at $at s; $after",
            "killed": "was killed by $signal",
            "exited": "exited with $code",
            "hung": "hung (its event loop did not turn for $seconds s) and was ended",
            "node-1": "it was started again and took its containers over, and a grace period under way began anew.",
            "control-plane": "it was started again and continued from its store.",
            "shim-1": "every container that ran ended with it, and it was started again without them.",
            "unknown": "what it did after that is not known.",
        },
    ),
    "volumeBusy": Cause(
        title="A volume is still in use when the Pod's containers have ended, so it is not unmounted.",
        remedy="End the process, or remove the mount, that holds it: the finding names it.",
        texts={
            "": "Volume $volume could not be unmounted ($error): it is held by $holders. The object stays until it is "
            "unmounted.",
            "mount": "a mount at $path",
            "process": "$name (pid $pid) by $how $path",
            "more": "$holders and $more more",
            "nobody": "no process that can be seen",
        },
        fixes={
            "": "End the process, or remove the mount, that holds it: the unmount is tried again until it succeeds.",
        },
    ),
    "claimHeldByPod": Cause(
        title="A PersistentVolumeClaim that was deleted stays Terminating while a Pod uses it.",
        remedy="Delete the Pods that use the claim: it goes when the last of them is gone.",
        texts={
            "": "PersistentVolumeClaim $claim$when is Terminating, held by finalizer $finalizer, because Pod $pod uses "
            "it: it goes when the last Pod that uses it is gone.",
            "before": ", deleted $seconds s before this end began,",
        },
    ),
    "deleteRefused": Cause(
        title="The API server refuses the DELETE of a Pod, because admission does not let it pass.",
        remedy="Do what the message says, exclude the Pod with the webhook's selectors, or set failurePolicy: Ignore.",
        texts={"": "The API server refused the DELETE by $user: $message"},
        fixes={
            "": "Correct what the message names: the Pod lives until its DELETE is accepted.",
            "webhook": "The API server asks webhook $webhook before it deletes a Pod. Correct what its message names. "
            "If the webhook itself fails, repair its server, exclude these Pods with its selectors, or set "
            "failurePolicy: Ignore.",
        },
    ),
    "networkTeardownFailed": Cause(
        title="The network plugin (CNI) fails to tear the Pod's network down, and the Pod stays Terminating.",
        remedy="Fix the CNI plugin (its binary, its configuration, what it talks to): DEL is tried again until it "
        "succeeds.",
        texts={
            "": "The Pod's network $ip could not be torn down: $error. The Pod stays Terminating until that succeeds.",
        },
        fixes={
            "": "Fix the CNI plugin (its binary, its configuration, what it talks to): DEL is tried again until it "
            "succeeds.",
        },
    ),
    "graceShortened": Cause(
        title="A second DELETE made the grace period shorter.",
        texts={
            "": "A second DELETE shortened the grace period from $before s to $after s; a hook or stop that is under "
            "way is not interrupted by it.",
        },
    ),
    "goneBeforeContainers": Cause(
        title="A forced deletion removed the object while the containers still ran: the same Pod can run twice.",
        remedy="Delete without --force and --grace-period=0, and wait until the node has ended the Pod.",
        texts={
            "": "The object was gone after $gone, its containers lived on until $last: a forced deletion does not wait "
            "for the node.",
        },
        fixes={
            "": "Delete without `--force --grace-period=0`: the name is free when the containers have ended, and not "
            "before. A StatefulSet's Pod would run twice meanwhile.",
        },
    ),
    "heldByFinalizers": Cause(
        title="Finalizers hold an object that was deleted.",
        remedy="See why the finalizer's controller does not remove it, or remove it by hand.",
        texts={
            "stayed": "Nothing ran any more, but the object stayed for $seconds s more, held by $names. Usually "
            "removed by: $removers.",
            "": "The Pod has ended, but its object stays Terminating: it is held by $names. Usually removed by: "
            "$removers.",
        },
        fixes={
            "": "See why that did not happen, or remove it by hand: `kubectl patch pod $pod -n $namespace --type merge "
            '-p \'{"metadata":{"finalizers":null}}\'`.',
        },
        lint=("finalizerOnPods",),
    ),
    "waitsFor": Cause(
        title="What a Pod, or another object that is being deleted, still waits for.",
        remedy="Wait if a time is given. Otherwise: bring back the node, the controller or the API that it waits for.",
        texts={
            "hook": "$container waits for its preStop hook ($handler), which has run for $since; $signal comes when "
            "it has ended.",
            "hookUntil": "$container waits for its preStop hook ($handler), which has run for $since and has $left "
            "left; $signal comes when it has ended, or when that time is over.",
            "signal": "$container got $signal $since ago and has not ended.",
            "signalUntil": "$container got $signal $since ago and has not ended; SIGKILL comes in $left.",
            "killed": "$container got SIGKILL $since ago and has not ended: the kernel cannot end a process that "
            "waits for a disk or a network file system.",
            "pod": "$what is ending, to be over by $deadline (grace period $grace s). Still running: "
            "$containers$hooks.",
            "podUntil": "$what is ending, and $left of its grace period of $grace s are left. Still running: "
            "$containers$hooks.",
            "late": "$what is ending, and its grace period of $grace s was over $over ago: node $node has not "
            "reported the end of $containers.",
            "hooks": " (preStop hooks: $hooks)",
            "all": "its containers",
            "cleanup": "$what has ended, and node $node has not finished its clean-up: it unmounts volumes ($volumes) "
            "and takes the network down.",
            "node": "$what waits for node $node, which is not Ready: only its kubelet can end the containers and "
            "report it.",
            "runtime": "$what waits for node $node, whose container runtime does not answer: nothing ends the "
            "containers, or tells how they ended, before it is back.",
            "claim": "$what is ending, and stays because Pods use it: $pods.",
            "bound": "$what is ending, and stays because claim $claim is bound to it.",
            "namespace": "$what is ending: $messages",
            "finalizers": "$what is ending, and finalizers hold it ($names). Usually removed by: $by.",
        },
        fixes={
            "killed": "Look at what the process waits for on its node (`cat /proc/PID/stack`): an NFS or iSCSI server "
            "that does not answer, a disk that fails.",
            "late": "See whether the kubelet of $node runs and what it logs about the Pod (`kubectl describe node "
            "$node`).",
            "node": "Bring node $node back. Only if it is shut down for good: `kubectl taint node $node "
            "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`, which ends its Pods and frees their volumes.",
            "runtime": "Start the container runtime of $node again (`systemctl restart containerd`); see its log.",
            "claim": "Delete the Pods that use it ($pods): it goes with the last of them.",
            "bound": "Delete claim $claim: the volume goes after it.",
            "NamespaceDeletionDiscoveryFailure": "Make the API that does not answer available again, or delete its "
            "APIService if nobody needs it (`kubectl get apiservices`).",
            "NamespaceFinalizersRemaining": "Delete these objects while the operator that removes their finalizers "
            "still runs.",
            "finalizers": "See why its controller does not remove it. Only if that controller is gone for good: "
            '`kubectl patch $kind $name$where --type merge -p \'{"metadata":{"finalizers":null}}\'`.',
        },
    ),
    "nodePressure": Cause(
        title="The kubelet evicted the Pod because its node was short of memory, disk or process numbers.",
        remedy="Set requests to what the Pod needs, limit each emptyDir (sizeLimit), and use nodes with room.",
        texts={
            "": "The node was short of something, and the kubelet evicted the Pod: $why. Pods above their requests, "
            "and of lower priority, go first.",
        },
        fixes={
            "": "Request what the Pod needs ($what in resources.requests), bound what it writes (sizeLimit of an "
            "emptyDir, limits of ephemeral-storage), or give the node more.",
        },
    ),
    "nodeShutdown": Cause(
        title="The node was shut down, and gave the Pod less time than its own grace period.",
        remedy="Set the kubelet's shutdownGracePeriod above the longest grace period of its Pods.",
        texts={
            "": "The node was shut down and gave the Pod $given s instead of the $wanted s of its grace period; "
            "killed: $names.",
        },
        fixes={
            "": "shutdownGracePeriod of the kubelet (or shutdownGracePeriodByPodPriority) of at least $wanted s for "
            "this priority, where the machine's notice allows it; else an end of the application within $given s.",
        },
    ),
    "nodeLifecycle": Cause(
        title="The Pod's node was being drained, was in maintenance or was shutting down, by its own conditions.",
        texts={
            "": "Node $node reported $conditions while the Pod ended. Administrators and their tools set these "
            "conditions; Kubernetes itself acts on none of them.",
        },
    ),
    "nodeUnreachable": Cause(
        title="The Pod's node does not answer: its object stays Terminating, and it is not known whether it still "
        "runs.",
        remedy="Bring the node back; when the machine is certainly off, taint it node.kubernetes.io/out-of-service.",
        texts={
            "": "Pod $pod was deleted $seconds s ago ($why), and node $node has not seen it: the object stays, and "
            "its containers may still run there.",
        },
        fixes={
            "": "Bring node $node back. When the machine is certainly off: `kubectl taint node $node "
            "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`; `--force` only then, or the Pod may run twice.",
        },
    ),
    "sidecarHoldsJob": Cause(
        title="A container beside the Job's own keeps running when the work is done: the Job never completes.",
        remedy="Make it a native sidecar: put the container under initContainers with restartPolicy: Always.",
        texts={
            "": "$done ended with exit code 0 $before before the DELETE, and $left still ran: a Job is complete only "
            "when every ordinary container of its Pod has ended.",
        },
        fixes={
            "": "Move $left to initContainers with restartPolicy: Always (a native sidecar): it is stopped when the "
            "work is done.",
        },
        lint=("sidecarHoldsJob",),
    ),
    "ranTwice": Cause(
        title="Two Pods ran for the same work at the same time: the next one began before the old one had ended.",
        remedy="For a Job, set podReplacementPolicy: Failed. Do not delete a StatefulSet's Pod by force.",
        texts={
            "Job": "The Job began $next while $pod was still ending: both ran for $seconds s.",
            "StatefulSet": "The next $next began while the old one still ran: two of one name for $seconds s.",
        },
        fixes={
            "Job": "podReplacementPolicy: Failed (the next Pod begins when the old one has ended).",
            "StatefulSet": "Delete without `--force --grace-period=0`: the next Pod then begins after the end of the "
            "old one.",
        },
    ),
}
