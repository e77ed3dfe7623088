"""Causes for which Pods do not become Ready, or do not go, while a command waits."""

from collections.abc import Mapping

from lastcall.endings.catalogue.cause import Cause

_PULL = "$importing takes it from `docker save`; a private registry wants `docker login`, or an imagePullSecret"

WAITING: Mapping[str, Cause] = {
    "imageNeverPulled": Cause(
        title="The image is not there and imagePullPolicy is Never.",
        remedy="Import the image, or another imagePullPolicy.",
        fixes={"": "the image is not there and imagePullPolicy is Never: $listing shows what is there"},
    ),
    "imageNotPulled": Cause(
        title="The image cannot be pulled.",
        remedy="Correct the image's name or the registry's credentials (imagePullSecrets).",
        fixes={
            "": _PULL,
            "unknown": "image: the registry has no image of this name and tag: correct spec.containers[].image, or "
            "push it. $importing takes one that only this machine has from `docker save`",
            "denied": "imagePullSecrets: the registry wants credentials, or has no such image: name a Secret with "
            "them, or `docker login`",
            "unreachable": "$importing takes the image from `docker save`: the node does not reach the registry",
        },
    ),
    "imageNameInvalid": Cause(
        title="The image's name is invalid.",
        remedy="Correct spec.containers[].image.",
        fixes={"": "correct spec.containers[].image"},
    ),
    "configMissing": Cause(
        title="A ConfigMap or Secret, or a key of it, that the container needs does not exist.",
        remedy="Add it to the manifests, with the key that is asked for.",
        fixes={
            "configMap": "add ConfigMap $name to the manifests",
            "secret": "add Secret $name to the manifests",
            "key": "add the key $key to $where",
            "keyOfVolume": "add the key $key to the ConfigMap or Secret of the volume",
        },
        lint=("configMissing", "secretMissing", "configKeyMissing"),
    ),
    "rootForbidden": Cause(
        title="The container's user is forbidden by runAsNonRoot.",
        remedy="Set securityContext.runAsUser to a number above 0, or use an image whose USER is one.",
        fixes={
            "": "the image runs as root, which runAsNonRoot forbids: securityContext: {runAsUser: 1000}, or another "
            "number above 0, or use an image whose USER is one",
            "name": "the image's user $user is a name, which runAsNonRoot cannot check: set securityContext.runAsUser "
            "to its number",
            "both": "runAsUser: 0 contradicts runAsNonRoot: true: change one of them",
        },
    ),
    "commandNotStarted": Cause(
        title="The container's program cannot be started.",
        remedy="Correct command or args, or use an image that has the program.",
        texts={
            "": "$container could not execute its program$times$after ($end). $output",
            "source": "$path is key $key of $kind $source (volume $volume).",
        },
        fixes={
            "notInPath": "$field: no directory of the image's PATH has $program: write its whole path, or use an image "
            "that has it",
            "oneWord": '$field: $words (each word is an item of its own; "$program" is taken for the name of one '
            "program)",
            "missing": "$field: $path does not exist in the image or in a volume: correct the path",
            "directory": "$field: $path is a directory: name a program in it",
            "mode": "volume $volume: defaultMode: 0755, which lets $path be executed; or command: [sh, $path]",
            "notExecutable": "make $path executable for the container's user in the image (chmod +x), or command: [sh, "
            "$path] for a script",
            "none": "command: the image has neither ENTRYPOINT nor CMD: name its program",
            "inShell": "$program is not in the image: correct the command that the shell runs, or use an image that "
            "has it.",
            "byEnv": "$program, which env is to start, is not in the image: correct the first line of the script "
            "(#!/usr/bin/env $program) or the command, or use an image that has it.",
            "deniedInShell": "Make $program executable (chmod +x in the image, defaultMode: 0755 of a volume), or let "
            "the shell read it (sh $program).",
            "interpreterReturn": "Save $path with LF line ends: its first line ends with a carriage return (CRLF), so "
            'the kernel looks for an interpreter called "$interpreter\\r".',
            "interpreterMissing": "Use an image that has $interpreter, or change the first line of $path, which names "
            "it: the image has no such interpreter.",
            "loaderMissing": "Build $path for the C library of this image, or link it statically: its loader, "
            "$interpreter, is not in the image.",
            "interpreterUnknown": "$path is there: what is missing is the interpreter that its first line names (#!), "
            "or the loader of a program. If that line ends with a carriage return (CRLF), save the file with LF line "
            "ends; else use an image that has it.",
            "noInterpreter": "Begin $path with a line such as #!/bin/sh, or command: [sh, $path]: it is a text, and "
            "the kernel executes none without that line.",
            "architecture": "Use an image for this node's architecture: $path is built for $machine.",
            "formatUnknown": "The kernel does not know the format of $path: a script begins with a line such as "
            "#!/bin/sh, and a program is built for the node's architecture.",
            "carriageReturn": "Save the script with LF line ends: the shell read a carriage return (CRLF) as a part of "
            "what the line says.",
            "scriptNotFound": "Either $path does not exist, or the interpreter that its first line names (#!): correct "
            "the path, save the file with LF line ends if that line ends with a carriage return (CRLF), or use an "
            "image that has the interpreter.",
        },
        lint=("scriptLineEnds", "scriptNoInterpreter"),
    ),
    "workingDirRefused": Cause(
        title="The container's working directory cannot be entered.",
        remedy="Correct workingDir, or let the container's user enter it.",
        fixes={
            "notDirectory": "$field: $path is not a directory, or is below a file: name a directory",
            "denied": "$field: the container's user may not enter $path: name a directory that it may enter, or change "
            "runAsUser",
            "readOnly": "$field: $path does not exist, and cannot be made in a volume that is read-only: name a "
            "directory that exists",
        },
    ),
    "mountRefused": Cause(
        title="A volume cannot be mounted into the container: a directory over a file, or a file over a directory.",
        remedy="subPath mounts one file of a volume; else mount the volume at a directory.",
        fixes={
            "": "volumeMounts of $container: what is to be mounted at $path, and what the image has there, are not "
            "both files or both directories: correct mountPath or subPath",
            "subPath": "volumeMounts of $container: subPath: $name for $path, which is a file in the image, while "
            "volume $volume ($kind) is a directory",
            "directory": "volumeMounts of $container: mountPath: a directory in place of $path, which is a file in the "
            "image, while volume $volume ($kind) is a directory",
            "either": "volumeMounts of $container: mountPath: $path/$name, if $path is a directory in the image; else "
            "a subPath that volume $volume has (where it has none of that name, the kubelet makes a directory)",
            "hostPath": "volume $volume: hostPath.type: File or Directory, as $path in the image is: $host on the node "
            "is not the same",
            "belowFile": "volumeMounts of $container: a mountPath that is not below a file: a part of $path is a file "
            "in the image",
            "readOnly": "volumeMounts of $container: a mountPath outside of $outer, which is read-only: $path cannot "
            "be made in it",
            "hostPathMissing": "volume $volume: hostPath.type: DirectoryOrCreate, or a path that exists on the node: "
            "$source does not",
            "sourceMissing": "volumeMounts of $container: what is to be mounted at $path does not exist on the node "
            "($source): correct the volume",
        },
    ),
    "userMissing": Cause(
        title="The user or group that the image names is not in the image.",
        remedy="securityContext.runAsUser and runAsGroup with numbers.",
        fixes={
            "": "securityContext.runAsUser: a number: the image's USER$name is not in its /etc/passwd",
            "group": "securityContext.runAsGroup: a number: the group$name of the image's USER is not in its "
            "/etc/group",
        },
    ),
    "groupWithoutUser": Cause(
        title="The Pod has a group and no user, and its runtime refuses the sandbox.",
        remedy="Set runAsUser beside runAsGroup in the securityContext of the Pod, or runAsGroup in the containers.",
        fixes={
            "": "securityContext of the Pod: runAsUser beside runAsGroup (its sandbox needs both), or runAsGroup in "
            "the securityContext of each container instead",
        },
        lint=("groupWithoutUser",),
    ),
    "crashLoop": Cause(
        title="The container keeps crashing.",
        remedy="See its exit code and its last log lines.",
        fixes={"": "the container keeps crashing: its exit code and what it printed last say why"},
    ),
    "initContainerRuns": Cause(
        title="An init container does not end, and no container after it is started.",
        remedy="See what it waits for: a name, a port, a file. Make it a sidecar (restartPolicy: Always) if it is to "
        "run beside the others.",
        fixes={
            "": "see what it waits for; if it is to run beside the other containers, restartPolicy: Always makes it a "
            "sidecar",
            "unknownName": "it looks for $name, and no DNS record has that name: correct it, or add the Service to the "
            "manifests",
            "refused": "what it connects to refuses: see whether that is in the manifests, Ready, and listens on this "
            "port",
        },
    ),
    "claimMissing": Cause(
        title="A PersistentVolumeClaim that the Pod uses does not exist, or has no volume.",
        remedy="Add the claim to the manifests, with a storage class that makes volumes (standard).",
        fixes={
            "": "add PersistentVolumeClaim $name to the manifests",
            "deleted": "let PersistentVolumeClaim $name go, then create it again",
            "lost": "bind PersistentVolumeClaim $name to a volume again",
            "unbound": "a PersistentVolumeClaim has no volume: use a storageClassName that makes volumes (see kubectl "
            "get storageclass; lastcall's own is standard), or add the PersistentVolume",
            "noVolume": "no volume fits the claims on this node: use a storageClassName that makes volumes (see "
            "kubectl get storageclass; lastcall's own is standard), or add the PersistentVolume",
        },
        lint=("claimMissing",),
    ),
    "claimInUse": Cause(
        title="A new Pod waits for a claim that another Pod holds and that only one Pod may have (ReadWriteOncePod).",
        remedy="strategy Recreate (the old Pod goes first), or another access mode.",
        fixes={
            "": "another Pod has its ReadWriteOncePod claim. An update that starts the new Pod first waits forever: "
            "strategy: {type: Recreate}, or another access mode",
        },
        lint=("claimBlocksUpdate",),
    ),
    "unschedulable": Cause(
        title="No node takes the Pod.",
        remedy="Ask for less (resources.requests), or for what the nodes have (nodeSelector, affinity, tolerations).",
        fixes={
            "resources": "Insufficient $what: lower resources.requests, or ask for fewer replicas",
            "pods": "ask for fewer replicas, or raise --max-pods",
            "labels": "no node has the labels that nodeSelector or nodeAffinity ask for: leave them out, the nodes "
            "here are plain",
            "nodeName": "spec.nodeName names no node: leave it out",
            "taints": "the nodes' taints are not tolerated: add tolerations",
            "cordoned": "every node that is left is cordoned",
            "ports": "another Pod of the node has the hostPort: leave hostPort out, or use maxSurge: 0",
            "antiAffinity": "podAntiAffinity wants more nodes than there are: make it preferred, or use maxSurge: 0",
            "affinity": "no running Pod matches podAffinity: add it to the manifests",
            "spread": "topologySpreadConstraints cannot be kept on these nodes (the label of topologyKey, maxSkew): "
            "use whenUnsatisfiable: ScheduleAnyway",
        },
        lint=("hostPortBlocksUpdate",),
    ),
    "probeFailed": Cause(
        title="A probe fails.",
        remedy="Correct the probe (port, path, scheme, timeoutSeconds), or what the container answers it.",
        texts={
            "otherPort": "The readinessProbe of $container asks port $port, on which nothing listens: $container "
            "listens on port $others.",
            "loopback": "The readinessProbe of $container asks port $port, on which $container listens only at "
            "$address: the kubelet asks at the Pod's address.",
        },
        fixes={
            "": "correct the probe, or what the container answers it",
            "tooEarly": "nothing listened on the probe's port: correct the port, or give the program more time to "
            "start (startupProbe: failureThreshold times periodSeconds)",
            "node": "leave host out of the probe: the kubelet asks from the node, where $host is the node itself (but "
            "for hostNetwork); without host it asks the Pod",
            "refused": "nothing listened on the probe's port: correct the port, or see whether the program has started",
            "status": "the program answered the probe with $status: correct the probe's path, or what the program "
            "answers",
            "host": "the program answered the probe with $status, and printed that it refuses the Host header, in "
            "which a probe sends the Pod's address: httpHeaders: [{name: Host, value: a name that the program knows}] "
            "in the probe's httpGet, or let the program allow the Pod's address",
            "otherPort": "port of the probe: $others, because nothing listens on $port; the containerPort and the "
            "targetPort of Services likewise",
            "loopback": "let the program listen on all addresses (0.0.0.0 or ::), not only at $address",
            "timeout": "the program did not answer the probe within timeoutSeconds: raise it, or see what the "
            "program waits for",
        },
        lint=("probePortUnresolved", "probeCommandMissing", "asksNode"),
    ),
    "volumeNotMounted": Cause(
        title="A volume cannot be mounted: what it is made of does not exist.",
        remedy="Add what the volume is made of, or correct its type.",
        fixes={
            "hostPath": "hostPath.path $path cannot be used as hostPath.type asks for: see the message",
            "hostPathType": "hostPath.path: a path of the node that is $what, as hostPath.type asks for; $path is "
            "of another type, or does not exist. Or another hostPath.type: with DirectoryOrCreate and FileOrCreate the "
            "kubelet makes it",
            "dockerSocket": "hostPath.path: the socket of the container runtime that the node has (containerd: "
            "/run/containerd/containerd.sock, CRI-O: /run/crio/crio.sock). $path is Docker's, which Kubernetes has not "
            "used since 1.24. What only reads logs needs none: hostPath /var/log/pods",
        },
    ),
    "quotaExceeded": Cause(
        title="A ResourceQuota has no room for another Pod, or wants resources that the Pod does not state.",
        remedy="Raise the quota, or let the update take an old Pod away first (maxSurge: 0, maxUnavailable: 1).",
        fixes={
            "": "ResourceQuota $name has no room for another Pod: raise it, or let the update take an old Pod away "
            "first (strategy.rollingUpdate: {maxSurge: 0, maxUnavailable: 1})",
            "unset": "ResourceQuota $name wants $what of every container: add them under resources",
        },
        lint=("quotaTooSmall", "quotaBlocksUpdate", "quotaNeedsResources"),
    ),
    "podsRefused": Cause(
        title="The API server refuses the owner's Pods (limits, Pod security, what they name, an invalid template).",
        remedy="As the message says: correct the template, or what refuses it.",
        fixes={
            "serviceAccount": "add ServiceAccount $name to the manifests",
            "priorityClass": "add PriorityClass $name to the manifests",
            "runtimeClass": "add RuntimeClass $name to the manifests, or leave runtimeClassName out",
            "security": "the namespace's label pod-security.kubernetes.io/enforce ($policy) forbids the Pod: correct "
            "its securityContext as the message says",
            "limitRange": "a LimitRange refuses it ($what): correct resources",
            "invalid": "correct the template as the message says",
        },
        lint=("limitRangeRefuses", "podSecurityRefuses", "accountMissing"),
    ),
    "webhookRefuses": Cause(
        title="An admission webhook refuses the owner's Pods, or does not answer for them.",
        remedy="Do what the webhook says, exclude the Pods with its selectors, or set failurePolicy: Ignore.",
        fixes={
            "": "$webhook (failurePolicy: $policy) does not answer, as the message says: repair its server, or set "
            "failurePolicy: Ignore",
            "denied": "$webhook refuses it: correct what its message names",
            "itself": "$webhook (failurePolicy: $policy) has to allow the Pods of $owner, but its Service $service "
            "selects only these, so nobody answers for it. Exclude them with its objectSelector: {matchExpressions: "
            "[{key: $key, operator: NotIn, values: [$value]}]}, or set failurePolicy: Ignore",
            "noEndpoints": "$webhook (failurePolicy: $policy) does not answer: its Service $service has no Pod that is "
            "Ready and listens. Find out why, or set failurePolicy: Ignore",
            "noService": "$webhook (failurePolicy: $policy) does not answer: its Service $service does not exist. Add "
            "it to the manifests, or remove the webhook",
            "timeout": "$webhook (failurePolicy: $policy) did not answer within its timeoutSeconds: find out what its "
            "server waits for, or set failurePolicy: Ignore",
            "certificate": "$webhook (failurePolicy: $policy) is not trusted: set clientConfig.caBundle to the CA of "
            "the certificate of its server",
        },
        lint=("webhookGuardsItself",),
    ),
    "oldPodInTheWay": Cause(
        title="A new Pod does not become Ready while the old one, which has the same containers, runs.",
        remedy="strategy Recreate, which ends the old Pod first; or a program that becomes Ready without what the old "
        "one holds: a lock, a lease, a place among its peers.",
        fixes={
            "": "$old has the same containers and was Ready $took s after it was made; $new is not after $waited s, "
            "while $old runs. If it waits for what $old holds (a lock, a lease): strategy: {type: Recreate} ends the "
            "old Pod first",
            "claim": "$old has the same containers and was Ready $took s after it was made; $new is not after $waited "
            "s, while $old runs, and both have $claims. If it waits for what $old holds (a lock in it, say): strategy: "
            "{type: Recreate} ends the old Pod first",
        },
        lint=("claimBlocksUpdate",),
    ),
    "peersNotPublished": Cause(
        title="A Pod of a StatefulSet becomes Ready only with its peers, and they are made and named by DNS only "
        "when it is Ready.",
        remedy="podManagementPolicy: Parallel, and publishNotReadyAddresses: true in the headless Service.",
        fixes={
            "": "it looks for $peer, which a StatefulSet makes only when $name is Ready, and DNS names only Pods that "
            "are Ready: podManagementPolicy: Parallel in the StatefulSet, and publishNotReadyAddresses: true in its "
            "Service $service",
            "named": "$where names $peer, which the StatefulSet makes only when $name is Ready. If $name is Ready only "
            "with its peers: podManagementPolicy: Parallel in the StatefulSet, and publishNotReadyAddresses: true in "
            "its Service $service, unless it has that",
        },
        lint=("peersInOrder",),
    ),
    "budgetBlocks": Cause(
        title="A PodDisruptionBudget allows no eviction: a drain waits forever.",
        remedy="The budget's maxUnavailable: 1 in place of minAvailable, or more replicas than it wants healthy.",
        texts={
            "": "PodDisruptionBudget $name wants $desired healthy Pods and has $healthy of $expected: it allows no "
            "eviction",
            "several": "more than one PodDisruptionBudget selects it, which the Eviction API does not support",
        },
        fixes={
            "": "maxUnavailable: 1 in PodDisruptionBudget $name (in place of minAvailable), or more than $desired "
            "replicas",
            "several": "let only one PodDisruptionBudget select the Pods",
        },
        lint=("budgetNeverAllows", "budgetsOverlap"),
    ),
    "strandedByDrain": Cause(
        title="After a drain no node takes a Pod.",
        remedy="Another node, or a preferred podAntiAffinity; until then the Service has a Pod less.",
        texts={"": "$name waits for a node since $node was drained: $why"},
    ),
    "targetPortUnresolved": Cause(
        title="A Service sends to a named port that no container of its Pods has.",
        remedy="Correct the Service's targetPort, or name the container's port so.",
        texts={
            "": "Service $service sends to the port named $port, and no container of the Pods has a port of that name "
            "(named are: $names)",
        },
        fixes={"": "correct targetPort of Service $service, or name the container's port $port"},
    ),
    "notAvailableYet": Cause(
        title="Pods are Ready and do not count as available yet: minReadySeconds.",
        remedy="A smaller minReadySeconds, below progressDeadlineSeconds.",
        fixes={"": "lower spec.minReadySeconds ($seconds), or wait longer (--timeout)"},
    ),
    "stateFull": Cause(
        title="A file system of the cluster is full: its memory for images, or the disk that containers write to.",
        remedy="More room: --state-size, or free space on the disk.",
        fixes={
            "": "images are in memory: give them more room with --state-size. What containers write is on the disk "
            "that lastcall doctor names"
        },
    ),
}
"""Reason of a container's state or of an Event → the cause that it means: `lastcall.experiment.reasons.causes`."""
