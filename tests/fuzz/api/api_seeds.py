"""A valid object of every kind that a client may write: where mutation begins.

`SEEDS` are whole objects by resource, `STATUSES` what a status write starts from. Names are `NAME`, in the namespace
`NAMESPACE`, so that one object of each kind lives at a time and every verb finds it.
"""

import copy

from cluster_seeds import BY_KIND, NAMES, STATUS_BY_KIND

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import SERVED, Resource

NAME = "fuzzed"
NAMESPACE = "fuzz"
DEFINITION = "others.fuzz.example.com"

_TIME = "2026-01-02T03:04:05Z"
_MICRO_TIME = "2026-01-02T03:04:05.000006Z"

_TEMPLATE: Object = {
    "metadata": {"labels": {"app": NAME}, "annotations": {"note": "x"}},
    "spec": {
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {
                "name": "app",
                "image": "app:1",
                "command": ["app"],
                "ports": [{"containerPort": 80, "name": "http", "protocol": "TCP"}],
                "env": [
                    {"name": "A", "value": "b"},
                    {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ],
                "resources": {"limits": {"memory": "64Mi", "cpu": "100m"}, "requests": {"memory": "1Mi"}},
                "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1},
                "livenessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 5, "failureThreshold": 100},
                "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
                "securityContext": {"runAsUser": 1000},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }
        ],
        "initContainers": [{"name": "init", "image": "quick:1", "command": ["quick"]}],
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 5, "effect": "NoExecute"}],
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "podAffinityTerm": {
                            "topologyKey": "kubernetes.io/hostname",
                            "labelSelector": {"matchLabels": {"app": NAME}},
                        },
                    }
                ]
            },
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "no", "operator": "DoesNotExist"}]}]
                }
            },
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": NAME}},
            }
        ],
        "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Mi"}}],
        "hostAliases": [{"ip": "127.0.0.1", "hostnames": ["a"]}],
    },
}
_JOB_TEMPLATE: Object = {**_TEMPLATE, "spec": {**_TEMPLATE["spec"], "restartPolicy": "Never"}}
_SELECTOR: Object = {"matchLabels": {"app": NAME}, "matchExpressions": [{"key": "app", "operator": "Exists"}]}
_JOB: Object = {
    "parallelism": 1,
    "completions": 2,
    "completionMode": "Indexed",
    "backoffLimit": 2,
    "activeDeadlineSeconds": 60,
    "ttlSecondsAfterFinished": 5,
    "podFailurePolicy": {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}}]},
    "template": _JOB_TEMPLATE,
}
_HPA_STATUS: Object = {"currentReplicas": 1, "desiredReplicas": 1, "lastScaleTime": _TIME}
_CONDITION: Object = {"type": "Ready", "status": "True", "lastTransitionTime": _TIME, "reason": "R", "message": "m"}
_NODE_STATUS: Object = {
    "capacity": {"cpu": "4", "memory": "1Gi", "pods": "10"},
    "allocatable": {"cpu": "4", "memory": "1Gi", "pods": "10"},
    "addresses": [{"type": "InternalIP", "address": "10.9.9.9"}],
    "conditions": [{**_CONDITION, "lastHeartbeatTime": _TIME}],
    "images": [{"names": ["a:1"], "sizeBytes": 5}],
}
_RULE: Object = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["x"]}
_SUBJECTS: list[Object] = [
    {"kind": "User", "name": "y", "apiGroup": "rbac.authorization.k8s.io"},
    {"kind": "ServiceAccount", "name": "default", "namespace": NAMESPACE},
]
_ROLE_REF: Object = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}

_BY_KIND: dict[str, Object] = {
    "v1/ConfigMap": {"data": {"a": "b"}, "binaryData": {"c": "AAAA"}, "immutable": False},
    "v1/Endpoints": {
        "subsets": [
            {"addresses": [{"ip": "10.1.1.1", "targetRef": {"kind": "Pod", "name": "x"}}], "ports": [{"port": 80}]}
        ]
    },
    "v1/Event": {
        "involvedObject": {"kind": "Pod", "namespace": NAMESPACE, "name": "x", "apiVersion": "v1"},
        "reason": "r",
        "message": "m",
        "type": "Normal",
        "count": 1,
        "firstTimestamp": _TIME,
        "lastTimestamp": _TIME,
        "source": {"component": "c"},
    },
    "v1/LimitRange": {"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "10Gi"}}]}},
    "v1/Namespace": {"metadata": {"labels": {"pod-security.kubernetes.io/warn": "baseline"}}},
    "v1/Node": {
        "spec": {"podCIDR": "10.244.99.0/24", "taints": [{"key": "a", "effect": "NoSchedule", "timeAdded": _TIME}]},
        "status": _NODE_STATUS,
    },
    "v1/PersistentVolumeClaim": {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "standard",
        }
    },
    "v1/PersistentVolume": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/tmp/none"},
            "claimRef": {"namespace": NAMESPACE, "name": "x"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]}
                            ]
                        }
                    ]
                }
            },
        }
    },
    "v1/Pod": {**_TEMPLATE, "metadata": {"labels": {"app": NAME}}},
    "v1/PodTemplate": {"template": _TEMPLATE},
    "v1/ReplicationController": {"spec": {"replicas": 1, "selector": {"app": NAME}, "template": _TEMPLATE}},
    "v1/ResourceQuota": {"spec": {"hard": {"count/things.fuzz.example.com": "10", "pods": "100"}}},
    "v1/Secret": {"data": {"a": "AAAA"}, "type": "Opaque", "stringData": {"b": "c"}},
    "v1/ServiceAccount": {"automountServiceAccountToken": True, "secrets": [{"name": "x"}]},
    "v1/Service": {
        "spec": {
            "selector": {"app": NAME},
            "type": "NodePort",
            "ports": [{"name": "p", "port": 80, "targetPort": "http", "protocol": "TCP"}],
            "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}},
            "externalIPs": ["198.51.100.4"],
            "internalTrafficPolicy": "Local",
        }
    },
    "apps/v1/ControllerRevision": {"data": {"a": 1}, "revision": 1},
    "apps/v1/DaemonSet": {
        "spec": {
            "selector": _SELECTOR,
            "template": _TEMPLATE,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
        }
    },
    "apps/v1/Deployment": {
        "metadata": {"annotations": {"deployment.kubernetes.io/revision": "1"}},
        "spec": {
            "replicas": 1,
            "selector": _SELECTOR,
            "template": _TEMPLATE,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
            "minReadySeconds": 1,
            "progressDeadlineSeconds": 60,
            "revisionHistoryLimit": 2,
        },
    },
    "apps/v1/ReplicaSet": {"spec": {"replicas": 1, "selector": _SELECTOR, "template": _TEMPLATE}},
    "apps/v1/StatefulSet": {
        "spec": {
            "replicas": 1,
            "serviceName": "s",
            "selector": _SELECTOR,
            "template": _TEMPLATE,
            "ordinals": {"start": 1},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 1}},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
        }
    },
    "batch/v1/CronJob": {
        "spec": {
            "schedule": "*/1 * * * *",
            "timeZone": "UTC",
            "startingDeadlineSeconds": 20,
            "concurrencyPolicy": "Allow",
            "jobTemplate": {"spec": _JOB},
        }
    },
    "batch/v1/Job": {"spec": _JOB},
    "autoscaling/v2/HorizontalPodAutoscaler": {
        "spec": {
            "maxReplicas": 3,
            "minReplicas": 1,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
                }
            ],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}},
        }
    },
    "autoscaling/v1/HorizontalPodAutoscaler": {
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
            "targetCPUUtilizationPercentage": 50,
        }
    },
    "policy/v1/PodDisruptionBudget": {
        "spec": {"minAvailable": "10%", "selector": _SELECTOR, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    },
    "scheduling.k8s.io/v1/PriorityClass": {"value": 5, "preemptionPolicy": "Never", "globalDefault": False},
    "networking.k8s.io/v1/Ingress": {
        "spec": {
            "rules": [
                {
                    "host": "a.b",
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "x", "port": {"number": 80}}},
                            }
                        ]
                    },
                }
            ]
        }
    },
    "networking.k8s.io/v1/IngressClass": {"spec": {"controller": "example.com/c"}},
    "networking.k8s.io/v1/NetworkPolicy": {
        "spec": {
            "podSelector": {},
            "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}],
        }
    },
    "rbac.authorization.k8s.io/v1/Role": {"rules": [_RULE]},
    "rbac.authorization.k8s.io/v1/RoleBinding": {"roleRef": _ROLE_REF, "subjects": _SUBJECTS},
    "rbac.authorization.k8s.io/v1/ClusterRole": {
        "rules": [_RULE],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"fuzz": "y"}}]},
    },
    "rbac.authorization.k8s.io/v1/ClusterRoleBinding": {"roleRef": _ROLE_REF, "subjects": _SUBJECTS},
    "storage.k8s.io/v1/StorageClass": {
        "provisioner": "x/y",
        "volumeBindingMode": "Immediate",
        "reclaimPolicy": "Delete",
        "parameters": {"a": "b"},
    },
    "node.k8s.io/v1/RuntimeClass": {
        "handler": "h",
        "overhead": {"podFixed": {"cpu": "1m"}},
        "scheduling": {"nodeSelector": {"a": "b"}},
    },
    "coordination.k8s.io/v1/Lease": {
        "spec": {
            "holderIdentity": "x",
            "leaseDurationSeconds": 5,
            "renewTime": _MICRO_TIME,
            "acquireTime": _MICRO_TIME,
            "leaseTransitions": 1,
        }
    },
    "discovery.k8s.io/v1/EndpointSlice": {
        "metadata": {"labels": {"kubernetes.io/service-name": NAME}},
        "addressType": "IPv4",
        "endpoints": [
            {
                "addresses": ["10.1.1.1"],
                "conditions": {"ready": True, "serving": True, "terminating": False},
                "zone": "z",
                "hints": {"forZones": [{"name": "z"}]},
            }
        ],
        "ports": [{"name": "p", "port": 80, "protocol": "TCP"}],
    },
    "events.k8s.io/v1/Event": {
        "eventTime": _MICRO_TIME,
        "regarding": {"kind": "Pod", "namespace": NAMESPACE, "name": "x"},
        "reason": "r",
        "action": "a",
        "note": "n",
        "type": "Normal",
        "reportingController": "example.com/c",
        "reportingInstance": "i",
        "series": {"count": 2, "lastObservedTime": _MICRO_TIME},
    },
    "apiextensions.k8s.io/v1/CustomResourceDefinition": {
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": "fuzz.example.com",
            "scope": "Namespaced",
            "names": {"plural": "others", "singular": "other", "kind": "Other", "listKind": "OtherList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [{"name": "R", "type": "integer", "jsonPath": ".spec.replicas"}],
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                    },
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "x-kubernetes-preserve-unknown-fields": True,
                                    "properties": {
                                        "replicas": {"type": "integer", "minimum": 0, "maximum": 100},
                                        "word": {"type": "string", "pattern": "^[a-z]*$", "default": "a"},
                                        "at": {"type": "string", "format": "date-time"},
                                        "parts": {
                                            "type": "array",
                                            "items": {"type": "object", "properties": {"k": {"type": "string"}}},
                                        },
                                    },
                                },
                                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                            },
                        }
                    },
                }
            ],
        },
    },
}

_STATUS_BY_KIND: dict[str, Object] = {
    "v1/Namespace": {"phase": "Active", "conditions": [_CONDITION]},
    "v1/Node": _NODE_STATUS,
    "v1/PersistentVolumeClaim": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "conditions": [_CONDITION]},
    "v1/PersistentVolume": {"phase": "Available", "lastPhaseTransitionTime": _TIME},
    "v1/Pod": {
        "phase": "Running",
        "podIP": "10.1.1.1",
        "podIPs": [{"ip": "10.1.1.1"}],
        "startTime": _TIME,
        "conditions": [_CONDITION, {**_CONDITION, "type": "DisruptionTarget"}],
        "containerStatuses": [
            {
                "name": "app",
                "image": "app:1",
                "imageID": "",
                "ready": True,
                "restartCount": 1,
                "state": {"running": {"startedAt": _TIME}},
                "lastState": {"terminated": {"exitCode": 1, "startedAt": _TIME, "finishedAt": _TIME}},
            }
        ],
    },
    "v1/ReplicationController": {"replicas": 1, "observedGeneration": 1, "conditions": [_CONDITION]},
    "v1/ResourceQuota": {"hard": {"pods": "1"}, "used": {"pods": "1"}},
    "v1/Service": {"loadBalancer": {"ingress": [{"ip": "198.51.100.1"}]}, "conditions": [_CONDITION]},
    "apps/v1/DaemonSet": {
        "currentNumberScheduled": 1,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 1,
        "numberReady": 1,
        "collisionCount": 2,
    },
    "apps/v1/Deployment": {
        "replicas": 1,
        "updatedReplicas": 1,
        "conditions": [{**_CONDITION, "type": "Progressing", "lastUpdateTime": _TIME}],
        "observedGeneration": 1,
        "collisionCount": 1,
    },
    "apps/v1/ReplicaSet": {"replicas": 1, "readyReplicas": 1, "conditions": [_CONDITION]},
    "apps/v1/StatefulSet": {"replicas": 1, "currentRevision": "x", "updateRevision": "y", "collisionCount": 3},
    "batch/v1/CronJob": {
        "lastScheduleTime": _TIME,
        "lastSuccessfulTime": _TIME,
        "active": [{"kind": "Job", "name": "x", "namespace": NAMESPACE, "uid": "u"}],
    },
    "batch/v1/Job": {
        "active": 1,
        "succeeded": 1,
        "failed": 1,
        "startTime": _TIME,
        "completedIndexes": "0",
        "failedIndexes": "1",
        "uncountedTerminatedPods": {"succeeded": ["x"], "failed": []},
        "conditions": [{**_CONDITION, "type": "Complete", "status": "False", "lastProbeTime": _TIME}],
    },
    "autoscaling/v2/HorizontalPodAutoscaler": _HPA_STATUS,
    "autoscaling/v1/HorizontalPodAutoscaler": _HPA_STATUS,
    "policy/v1/PodDisruptionBudget": {
        "disruptedPods": {NAME: _TIME},
        "disruptionsAllowed": 1,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
        "observedGeneration": 1,
    },
    "networking.k8s.io/v1/Ingress": {"loadBalancer": {"ingress": [{"hostname": "a.b"}]}},
    "apiextensions.k8s.io/v1/CustomResourceDefinition": {
        "acceptedNames": {"plural": "others", "kind": "Other"},
        "conditions": [{"type": "Established", "status": "True", "lastTransitionTime": _TIME}],
        "storedVersions": ["v1"],
    },
}


def _definition(plural: str, kind: str) -> Object:
    """The seed of a CustomResourceDefinition under other names."""
    seed = copy.deepcopy(_BY_KIND["apiextensions.k8s.io/v1/CustomResourceDefinition"])
    seed["spec"]["names"] = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        **seed,
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.fuzz.example.com"},
    }


THINGS = Resource("fuzz.example.com", "v1", "things", "Thing", True, "thing", subresources=("status", "scale"))
"""A declared kind that is there from the start of a batch."""
THINGS_DEFINITION = _definition("things", "Thing")
_THING: Object = {"spec": {"replicas": 1, "word": "abc", "at": _TIME, "parts": [{"k": "v"}], "free": {"x": [1]}}}

BODIES: dict[str, Object] = {
    "binding": {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "node-1"}},
    "eviction": {"apiVersion": "policy/v1", "kind": "Eviction", "deleteOptions": {"gracePeriodSeconds": 1}},
    "token": {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": ["a"], "expirationSeconds": 700},
    },
    "scale": {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 1}},
    "ephemeralcontainers": {"spec": {"ephemeralContainers": [{"name": "debug", "image": "app:1", "command": ["app"]}]}},
    "finalize": {"spec": {"finalizers": ["kubernetes"]}},
}
"""What a subresource takes where that is another kind than its object."""

BOUND: Object = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "bound", "namespace": NAMESPACE},
    "spec": {"hard": {"pods": "30"}},
}
"""Owners may ask for 2**31 Pods; so many are not what is tried."""

OPTIONS: Object = {
    "kind": "DeleteOptions",
    "apiVersion": "v1",
    "gracePeriodSeconds": 0,
    "propagationPolicy": "Background",
    "preconditions": {"uid": "x", "resourceVersion": "1"},
}


def name_of_seed(resource: Resource) -> str:
    """The name of the one object of this kind."""
    return DEFINITION if resource.kind == "CustomResourceDefinition" else NAMES.get(resource.kind, NAME)


def _whole(resource: Resource, parts: Object) -> Object:
    metadata = {**parts.get("metadata", {}), "name": name_of_seed(resource)}
    if resource.namespaced:
        metadata["namespace"] = NAMESPACE
    return {"apiVersion": resource.api_version, "kind": resource.kind, **parts, "metadata": metadata}


def _key(resource: Resource) -> str:
    return f"{resource.api_version}/{resource.kind}"


SEEDS: dict[Resource, Object] = {
    **{each: _whole(each, (_BY_KIND | BY_KIND)[_key(each)]) for each in SERVED if each.plural != "bindings"},
    THINGS: _whole(THINGS, _THING),
}
STATUSES: dict[Resource, Object] = {
    **{each: (_STATUS_BY_KIND | STATUS_BY_KIND)[_key(each)] for each in SERVED if "status" in each.subresources},
    THINGS: {"replicas": 1, "conditions": [_CONDITION]},
}
