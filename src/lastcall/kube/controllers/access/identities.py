"""Who each controller is where it has no more rights than Kubernetes gives it: a ServiceAccount in kube-system.

Source: cmd/kube-controller-manager/app: the names that each controller's descriptor gives to NewClient; the rights of
each are in plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go. Caches, discovery and the tokens of
Secrets are the process's own, as there.
"""

ROOT_CA_PUBLISHER = "root-ca-cert-publisher"

ACCOUNTS = {
    ROOT_CA_PUBLISHER: ROOT_CA_PUBLISHER,
    "certificatesigningrequest-signing-controller": "certificate-controller",
    "clusterrole-aggregation-controller": "clusterrole-aggregation-controller",
    "cronjob-controller": "cronjob-controller",
    "daemonset-controller": "daemon-set-controller",
    "deployment-controller": "deployment-controller",
    "disruption-controller": "disruption-controller",
    "endpoints-controller": "endpoint-controller",
    "endpointslice-controller": "endpointslice-controller",
    "endpointslice-mirroring-controller": "endpointslicemirroring-controller",
    "ephemeral-volume-controller": "ephemeral-volume-controller",
    "garbage-collector-controller": "generic-garbage-collector",
    "horizontal-pod-autoscaler": "horizontal-pod-autoscaler",
    "job-controller": "job-controller",
    "namespace-controller": "namespace-controller",
    "node-lifecycle-controller": "node-controller",
    "persistentvolume-binder-controller": "persistent-volume-binder",
    "persistentvolume-protection-controller": "pv-protection-controller",
    "persistentvolumeclaim-protection-controller": "pvc-protection-controller",
    "pod-garbage-collector-controller": "pod-garbage-collector",
    "replicaset-controller": "replicaset-controller",
    "replication-controller": "replication-controller",
    "resourcequota-controller": "resourcequota-controller",
    "service-lb-controller": "service-controller",
    "serviceaccount-controller": "service-account-controller",
    "statefulset-controller": "statefulset-controller",
    "taint-eviction-controller": "node-controller",
    "ttl-after-finished-controller": "ttl-after-finished-controller",
    "ttl-controller": "ttl-controller",
    "validatingadmissionpolicy-status-controller": "validatingadmissionpolicy-status-controller",
    "volumeattributesclass-protection-controller": "volumeattributesclass-protection-controller",
}
"""The controllers by their names here → the ServiceAccount that each acts as. Kubernetes's publisher of the root
certificate is a part of `serviceaccount-controller` here."""
