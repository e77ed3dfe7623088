"""Causes about ends of containers that were not the Pod's: crashes, and restarts by probes."""

from collections.abc import Mapping

from lastcall.endings.catalogue.cause import Cause

_HOST = (
    "The program answers $status, and printed that it refuses the Host header, in which a probe sends the Pod's "
    "address: httpHeaders: [{name: Host, value: a name that the program knows}] in the probe's httpGet, or let the "
    "program allow the Pod's address."
)
RESTARTS: Mapping[str, Cause] = {
    "crashed": Cause(
        title="A container crashed: it ended by itself with a failure, and nothing had told it to stop.",
        remedy="See its exit code and its last log lines.",
        texts={
            "": "$container crashed$times$after ($end): nothing had told it to stop. $output",
            "output": "The last line that it printed: $line",
            "first": "The first of them had ended with another line: $line",
            "silent": "It printed nothing.",
        },
        fixes={
            "": "See what it printed: nothing else shows why it ended.",
            "left": "If $file is left from the run before: remove it at the program's start, or keep it out of the "
            "Pod's volumes, which outlive a container. A process number in it says nothing: each container has its own "
            "PID 1.",
            "leftUnknown": "If a PID or lock file is left from the run before: remove it at the program's start, or "
            "keep it out of the Pod's volumes, which outlive a container. A process number in it says nothing: each "
            "container has its own PID 1.",
            "home": "Set HOME in env to a directory that its user may write to, such as that of an emptyDir: a user "
            "without a home directory in the image has HOME=/.",
            "subPath": "subPath $key is no file of $kind $source, and the kubelet makes a directory of what is not "
            "there: mount a key that it has at $path.",
            "notFound": "A shell exits with 127 if a command is not in the image: correct the command, or the image.",
            "notExecutable": "A shell exits with 126 if it may not execute a file: make the file executable.",
            "signal": "The program failed in its own code (or a library): a core dump or its log says where.",
            "readOnly": "Mount a volume that can be written (an emptyDir) where it writes: that place is read-only.",
            "denied": "Give its user permission for that file: fsGroup or defaultMode for a volume, otherwise the "
            "file's owner in the image.",
            "unknownName": "DNS does not resolve a name that it looked up: correct the name, or add its Service to the "
            "manifests. A Service of another namespace is found by NAME.NAMESPACE.",
            "otherService": "$peer.$service has no address: the Pods of this StatefulSet are named below its "
            "serviceName. Use $peer.$subdomain, with a headless Service $subdomain; or serviceName: $service.",
            "nodeHeap": "Node.js reached the limit of its own heap, not that of the container: a larger "
            "--max-old-space-size in NODE_OPTIONS (some 75 % of limits.memory), or less in memory.",
            "javaHeap": "The JVM reached the limit of its own heap, not that of the container: a larger -Xmx or "
            "-XX:MaxRAMPercentage (some 75 % of limits.memory), or less in memory.",
            "refused": "What it connects to refuses: see whether that is in the manifests, Ready, and listens on this "
            "port. If it may start later, retry the connection in the program or in an init container.",
            "refusedByNeighbour": "Nothing listened on port $port yet, which is that of $other in the same Pod: "
            "containers of a Pod start side by side. Make $other a native sidecar (under initContainers, with "
            "`restartPolicy: Always`) with a startupProbe of that port: the kubelet starts the others when it has "
            "succeeded.",
            "refusedPerhaps": "What it connects to refuses. If that is $other in the same Pod (port $port): containers "
            "of a Pod start side by side, so make $other a native sidecar (under initContainers, with `restartPolicy: "
            "Always`) with a startupProbe of that port. Else see whether it is in the manifests, Ready, and listens.",
            "refusedEarly": "What it connects to refuses, and $other in the same Pod did not listen on its port $port "
            "at that moment. If it connects to that: containers of a Pod start side by side, so make $other a native "
            "sidecar (under initContainers, with `restartPolicy: Always`) with a startupProbe of that port. Else see "
            "whether it is in the manifests, Ready, and listens.",
            "refusedInPod": "The Pod itself refused the connection (to 127.0.0.1 or its own address), and $other, "
            "which declares port $port, did not listen at that moment: it connects to $other (inferred). Containers "
            "of a Pod start side by side. Make $other a native sidecar (under initContainers, with `restartPolicy: "
            "Always`) with a startupProbe of that port: the kubelet starts the others when it has succeeded.",
            "refusedInPodEarly": "The Pod itself refused the connection (to 127.0.0.1 or its own address), and $other, "
            "which declares port $port, did not listen at that moment, but did later: it connects to $other "
            "(inferred). Containers of a Pod start side by side. Make $other a native sidecar (under initContainers, "
            "with `restartPolicy: Always`) with a startupProbe of that port: the kubelet starts the others when it has "
            "succeeded.",
            "refusedByPod": "127.0.0.1 is the Pod itself, and nothing listened in it on port $port, nor on any other, "
            "right after the crash: connect to the name of a Service, or add the container that is to listen there.",
            "refusedByOthers": "127.0.0.1 is the Pod itself, and nothing listened in it on port $port right after the "
            "crash (what listened: $listeners). Correct the port, connect to the name of a Service, or add the "
            "container that is to listen there.",
            "serviceLink": "The kubelet sets a variable NAME_PORT for each Service of the namespace, and $value is "
            "such a value: set enableServiceLinks: false in the Pod's spec, or set the variable in env.",
            "inUse": "Another process of the Pod (or of the node, with hostNetwork) has that port: change one of them.",
        },
        lint=("serviceLinkRead",),
    ),
    "mountHidesFile": Cause(
        title="A container crashed because a volume hides a file that it reads: a directory is mounted at the file's "
        "path.",
        remedy="subPath in volumeMounts mounts one file of a volume.",
        texts={
            "": "$container crashed$times$after ($end): it reads $path as a file, and volume $volume ($kind $source) "
            "is mounted there as a directory. $output",
        },
        fixes={
            "": "volumeMounts of $container: subPath: $file for mountPath: $path, which mounts one file of volume "
            "$volume.",
        },
    ),
    "initContainerFailed": Cause(
        title="An init container fails, and the Pod's containers are not started.",
        remedy="See its exit code and its last log lines.",
        texts={
            "": "Init container $container failed$times$after ($end): no container is started before it succeeds. "
            "$output",
            "succeeded": "Init container $container failed$times$after ($end), and succeeded when it was tried again. "
            "$output",
        },
        fixes={"": "See what it printed: the Pod's containers wait for its success."},
    ),
    "livenessProbeKilled": Cause(
        title="The kubelet ended a container because its livenessProbe failed (exit code 137, or 143).",
        remedy="Add a startupProbe for a slow start; raise timeoutSeconds and failureThreshold above what load causes.",
        texts={
            "": "The kubelet $did $container$times$after because its livenessProbe failed$output$state ($end).",
            "notYetState": ": it did not listen yet",
            "noMoreState": ": it no longer listened",
            "otherPortState": ": it listened on port $others",
            "statusState": ": it listened, and answered with an error",
            "lateState": ": it did not answer in time",
            "nodeState": ": it asks $host, which is the node",
        },
        fixes={
            "": "Correct the livenessProbe, or what the container answers it.",
            "node": "Leave host out of the livenessProbe: the kubelet asks from the node, where $host is the node "
            "itself. Without host it asks the Pod.",
            "notYet": "A startupProbe with the same check, failureThreshold * periodSeconds at least $seconds s "
            "($took were not enough; it ends with its first success): the livenessProbe waits for it.",
            "never": "If it starts slowly, a startupProbe with the same check, failureThreshold * periodSeconds at "
            "least $seconds s ($took were not enough); else correct the probe: it has never succeeded.",
            "lateNever": "If it starts slowly, a startupProbe with the same check, failureThreshold * periodSeconds at "
            "least $seconds s ($took were not enough); if it answers slowly, a longer livenessProbe.timeoutSeconds.",
            "lateCommand": "A longer livenessProbe.timeoutSeconds: its command took longer each time, so a "
            "startupProbe with the same command needs it, too.",
            "noMore": "It had answered before: see what it printed. If it recovers by itself, a larger "
            "livenessProbe.failureThreshold waits for that.",
            "otherPort": "livenessProbe port: $others, because nothing listens on $port.",
            "status": "Correct the probe's path, or why the container answers $status.",
            "host": _HOST,
            "error": "See what the container printed: why it answers $status. If its page asks other services, their "
            "faults restart this container, which does not help them: let the livenessProbe ask a page that only says "
            "that the process works.",
            "late": "A longer livenessProbe.timeoutSeconds or a larger failureThreshold, or an endpoint that does not "
            "wait for what the application waits for.",
        },
        lint=("livenessAsksAnother",),
    ),
    "startupProbeKilled": Cause(
        title="The kubelet ended a container because its startupProbe had not succeeded in time.",
        remedy="Raise startupProbe.failureThreshold, or start faster.",
        texts={
            "": "The kubelet $did $container$times$after because its startupProbe had not succeeded in "
            "time$output$state ($end).",
            "notYetState": ": it did not listen yet",
            "noMoreState": ": it no longer listened",
            "otherPortState": ": it listened on port $others",
            "statusState": ": it listened, and answered with an error",
            "lateState": ": it did not answer in time",
            "nodeState": ": it asks $host, which is the node",
        },
        fixes={
            "": "startupProbe: a larger failureThreshold, or correct the probe: it has never succeeded.",
            "node": "Leave host out of the startupProbe: the kubelet asks from the node, where $host is the node "
            "itself. Without host it asks the Pod.",
            "notYet": "startupProbe: failureThreshold * periodSeconds at least $seconds s ($took were not enough; it "
            "ends with its first success).",
            "never": "startupProbe: failureThreshold * periodSeconds at least $seconds s ($took were not enough), or "
            "correct the probe: it has never succeeded.",
            "noMore": "It had answered before: see what it printed.",
            "otherPort": "startupProbe port: $others, because nothing listens on $port.",
            "status": "Correct the probe's path, or why the container answers $status.",
            "host": _HOST,
            "late": "startupProbe: a longer timeoutSeconds; failureThreshold * periodSeconds at least $seconds s "
            "($took were not enough).",
        },
    ),
    "restartedPostStart": Cause(
        title="A container was restarted because its postStart hook failed.",
        remedy="Correct the hook's command.",
        texts={
            "": "The kubelet $did $container$times$after because its postStart hook failed$because ($end).",
            "said": "The hook's last line: $line",
            "listened": "$container listened on port $port later.",
        },
        fixes={
            "": "Correct the postStart hook: its Event FailedPostStartHook says how it failed.",
            "tooEarly": "Let the postStart hook try again until port $port answers, with a time limit, or do its work "
            "in the application: the hook runs beside the container's command and is not repeated. To see whether the "
            "application is up, use a startupProbe or readinessProbe in its place.",
            "notFound": "Correct the command of the postStart hook, or use an image that has it.",
            "notExecutable": "Make the command of the postStart hook executable.",
            "code": "Correct the command of the postStart hook, or let it end with 0 where its failure does not "
            "matter (… || true): a hook that fails ends its container.",
        },
    ),
    "postStartFailed": Cause(
        title="The kubelet is ending a container because its postStart hook failed.",
        remedy="Let the hook try again until what it needs is there, or correct its command.",
        texts={"": "The kubelet is ending $container because its postStart hook failed$because."},
    ),
    "postStartRuns": Cause(
        title="A postStart hook does not end: its container is not Running before, and a deletion waits for it.",
        remedy="Let the hook not wait for what comes only after it, and give it a time limit.",
        texts={
            "": "The postStart hook of $container has run for $seconds s ($detail): the container counts as Running "
            "only when the hook has ended.",
            "delete": "The DELETE waits for the postStart hook of $container, which has run for $seconds s ($detail): "
            "the kubelet stops the container only when the hook has ended.",
            "later": "It names port $port, which is that of $other: the kubelet starts $other only when this hook has "
            "ended.",
        },
        fixes={
            "": "See what the hook waits for. What comes only after its end never comes in it: the containers below "
            "$container in the list, and an address of this Pod behind a Service, which needs the Pod to be Ready. "
            "Give it a time limit, too (timeout 30 COMMAND): a hook that fails ends its container.",
            "later": "Put $other before $container in the list, or under initContainers with restartPolicy: Always.",
            "delete": "Give the postStart hook a time limit (timeout 30 COMMAND). To free this Pod now, end the hook's "
            "process, or give it what it waits for.",
        },
        lint=("postStartWaits",),
    ),
    "restartedByRule": Cause(
        title="A container ended with an exit code for which its restartPolicyRules restart it: this is not a crash.",
        texts={
            "": "$container was restarted by its restartPolicyRules$times$after: exit code $code.",
            "waits": "$container ended$times$after, with exit code $code, for which its restartPolicyRules restart it.",
        },
    ),
    "endsAndIsRestarted": Cause(
        title="A container succeeds and is started again, because restartPolicy is Always.",
        remedy="Use a Job for a program that ends, a Deployment for one that keeps running.",
        texts={
            "": "$container ended by itself with exit code 0$times, and was started again (restartPolicy Always).",
            "signalled": "$container ended with exit code 0$times, and was started again (restartPolicy Always). It "
            "says that a signal ended it ($line), and neither the kubelet nor a probe had sent one: a process in the "
            "Pod did (inferred).",
        },
        fixes={
            "signalled": "Find what sends it: a supervisor or a script in the container, `kubectl exec`, another "
            "container with shareProcessNamespace.",
            "": "A Job (or CronJob) for a program that ends; else let it keep running in the foreground.",
        },
    ),
}
