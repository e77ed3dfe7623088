"""What a lastcall cluster keeps without acting on it, or does differently from a real one: worth knowing, not a
fault."""

from collections.abc import Mapping

from lastcall.endings.catalogue.cause import Cause

SIMULATION: Mapping[str, Cause] = {
    "ingressIgnored": Cause(
        title="There is no ingress controller here.",
        texts={"": "$what is kept but no ingress controller acts on it: requests go to the Service itself"},
    ),
    "customResourceIgnored": Cause(
        title="No operator acts on custom resources here.",
        texts={"": "$what is kept but no operator acts on it"},
    ),
    "pullSecretMissing": Cause(
        title="An imagePullSecret is not among the manifests.",
        texts={"": "imagePullSecret $name of $what is not in the manifests: images were pulled without it"},
    ),
    "fieldDropped": Cause(
        title="The API server leaves a field out, because its feature gate is off or this version does not know it.",
        remedy="Switch the feature gate on, use a newer Kubernetes, or do without the field.",
        texts={
            "gate": "Kubernetes $version drops $path of $what, because feature gate $gate is off: nothing acts on it.",
            "version": "Kubernetes $version drops $path of $what, which it does not know: nothing acts on it.",
        },
        fixes={
            "gate": "--feature-gates $gate=true switches it on here; in another cluster the API server and the "
            "kubelets need it. Else do without the field",
            "version": "use Kubernetes 1.$since or newer (--kubernetes-version), or do without the field",
            "unknown": "do without the field",
        },
        lint=("fieldDropped",),
    ),
    "clusterDiffers": Cause(
        title="Something of the workload's own cluster is missing here, or differs.",
        texts={
            "ingress": "$what ($hosts) is not here: requests go to the Service itself",
            "outside": "$what is of type $kind there and has only a cluster's address here",
            "autoscaler": "$what ($least to $most replicas) finds no metrics here: the $replicas replicas of now stay",
            "placement": "$what runs here without $fields: this cluster has one node of its own",
            "nodes": "the Pods run on $count nodes there",
            "injected": "the Pods there have containers that are not in their template ($names): these "
            "containers do not run here",
            "claim": "$what is empty here: no data was copied",
            "policy": "$what is not here: it lets all traffic through",
            "rights": "$what has no permissions here: no Role was copied",
            "token": "$what is the token of a ServiceAccount there, and was not copied",
            "absent": "$what does not exist there either",
            "unknown": "whether $what exists there is not known: $why",
        },
    ),
    "onACluster": Cause(
        title="The experiment ran on an existing cluster.",
        texts={
            "": "on $where, namespace $namespace, through $entrance: what lies between is a part of what was measured",
            "clock": "the load generator's clock and this machine's were aligned: theirs is $offset",
            "server": "the API server's clock and this machine's were aligned: theirs is $offset",
            "notKnown": "why $count of the lost requests were lost is not known: $why",
            "gap": "its Pods were not seen for a while, because the watch was interrupted",
            "right": "an administrator grants the permission: $command",
            "causes": "this command repeats it here, where nodes are seen, too: "
            "lastcall rollout --from-cluster $workload --context $context -n $namespace",
        },
    ),
    "generatorLate": Cause(
        title="The load generator sent requests later than planned: the machine was busy.",
        remedy="A machine that is less busy, or a lower --load.",
        texts={
            "": "the load generator was late: $share of the requests were sent $limit or more too late, the "
            "latest $most (the machine was busy)",
        },
    ),
    "clientErrors": Cause(
        title="The application answered some requests with a client error (4xx), which counts as an answer.",
        remedy="Name a path of your application: --path, --slow-path.",
        texts={"": "$path answered $statuses to $count of $total $kind requests, which counts as an answer"},
    ),
    "slowIsQuick": Cause(
        title="Slow requests were answered at once, so that no long request was tested.",
        remedy="Name a path whose answer takes long: --slow-path.",
        texts={
            "": "the answers of $path took $took: this tested no long request; --slow-path names a path whose answer "
            "takes long",
        },
    ),
}
