"""The kinds that lastcall serves, by group, version and plural name."""

from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Resource:
    """One API resource.

    `group` is "" for the core group. `verbs` and `short_names` are what discovery shows; `subresources` are the names
    after the slash (`status`, `log`, `binding`).
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    # Resources are keys of many dicts: the generated methods would look at every field each time.

    def __hash__(self) -> int:
        return hash(self.plural)  # few share theirs

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Resource):
            return NotImplemented
        if self.plural != other.plural or self.group != other.group or self.version != other.version:
            return False
        return all(getattr(self, name) == getattr(other, name) for name in Resource.__slots__)

    @property
    def api_version(self) -> str:
        """Return `apiVersion` of its objects: `v1`, `discovery.k8s.io/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """Return the name used in Status messages: `pods`, `endpointslices.discovery.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of the collection, the object or a subresource."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)


@dataclass(frozen=True, slots=True, eq=False)
class PartialResource(Resource):
    """A kind that a server serves and we know nothing of: its objects are asked for as PartialObjectMetadata."""


NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False, "namespace", ("ns",), (), ("status", "finalize"))
NODES = Resource("", "v1", "nodes", "Node", False, "node", ("no",), (), ("status", "proxy"))
PODS = Resource(
    "", "v1", "pods", "Pod", True, "pod", ("po",), ("all",),
    ("status", "log", "binding", "eviction", "ephemeralcontainers", "resize", "exec", "attach", "portforward",
     "proxy"),
)  # fmt: skip
SERVICES = Resource("", "v1", "services", "Service", True, "service", ("svc",), ("all",), ("status", "proxy"))
EVENTS = Resource("", "v1", "events", "Event", True, "event", ("ev",))
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap", True, "configmap", ("cm",))
SECRETS = Resource("", "v1", "secrets", "Secret", True, "secret")
SERVICEACCOUNTS = Resource(
    "", "v1", "serviceaccounts", "ServiceAccount", True, "serviceaccount", ("sa",), (), ("token",)
)
BINDINGS = Resource("", "v1", "bindings", "Binding", True, "binding")
ENDPOINTSLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", True, "endpointslice")
EVENTS_V1 = Resource("events.k8s.io", "v1", "events", "Event", True, "event", ("ev",))
CUSTOMRESOURCEDEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False,
    "customresourcedefinition", ("crd", "crds"), ("api-extensions",), ("status",),
)  # fmt: skip
APISERVICES = Resource(
    "apiregistration.k8s.io",
    "v1",
    "apiservices",
    "APIService",
    False,
    "apiservice",
    (),
    ("api-extensions",),
    ("status",),
)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", True, "lease")

ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints", True, "endpoints", ("ep",))
LIMITRANGES = Resource("", "v1", "limitranges", "LimitRange", True, "limitrange", ("limits",))
RESOURCEQUOTAS = Resource(
    "", "v1", "resourcequotas", "ResourceQuota", True, "resourcequota", ("quota",), (), ("status",)
)
PERSISTENTVOLUMES = Resource(
    "", "v1", "persistentvolumes", "PersistentVolume", False, "persistentvolume", ("pv",), (), ("status",)
)
PERSISTENTVOLUMECLAIMS = Resource(
    "",
    "v1",
    "persistentvolumeclaims",
    "PersistentVolumeClaim",
    True,
    "persistentvolumeclaim",
    ("pvc",),
    (),
    ("status",),
)
PODTEMPLATES = Resource("", "v1", "podtemplates", "PodTemplate", True, "podtemplate")
REPLICATIONCONTROLLERS = Resource(
    "", "v1", "replicationcontrollers", "ReplicationController", True, "replicationcontroller", ("rc",), ("all",),
    ("scale", "status"),
)  # fmt: skip
CONTROLLERREVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision", True, "controllerrevision")
DAEMONSETS = Resource("apps", "v1", "daemonsets", "DaemonSet", True, "daemonset", ("ds",), ("all",), ("status",))
DEPLOYMENTS = Resource(
    "apps", "v1", "deployments", "Deployment", True, "deployment", ("deploy",), ("all",), ("scale", "status")
)
REPLICASETS = Resource(
    "apps", "v1", "replicasets", "ReplicaSet", True, "replicaset", ("rs",), ("all",), ("scale", "status")
)
STATEFULSETS = Resource(
    "apps", "v1", "statefulsets", "StatefulSet", True, "statefulset", ("sts",), ("all",), ("scale", "status")
)
CRONJOBS = Resource("batch", "v1", "cronjobs", "CronJob", True, "cronjob", ("cj",), ("all",), ("status",))
JOBS = Resource("batch", "v1", "jobs", "Job", True, "job", (), ("all",), ("status",))
HORIZONTALPODAUTOSCALERS = Resource(
    "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", True, "horizontalpodautoscaler",
    ("hpa",), ("all",), ("status",),
)  # fmt: skip
HORIZONTALPODAUTOSCALERS_V1 = Resource(
    "autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", True, "horizontalpodautoscaler",
    ("hpa",), ("all",), ("status",),
)  # fmt: skip
PODDISRUPTIONBUDGETS = Resource(
    "policy",
    "v1",
    "poddisruptionbudgets",
    "PodDisruptionBudget",
    True,
    "poddisruptionbudget",
    ("pdb",),
    (),
    ("status",),
)
PRIORITYCLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, "priorityclass", ("pc",)
)
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress", True, "ingress", ("ing",), (), ("status",))
INGRESSCLASSES = Resource("networking.k8s.io", "v1", "ingressclasses", "IngressClass", False, "ingressclass")
NETWORKPOLICIES = Resource(
    "networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", True, "networkpolicy", ("netpol",)
)
_RBAC = ("rbac.authorization.k8s.io", "v1")
ROLES = Resource(*_RBAC, "roles", "Role", True, "role")
ROLEBINDINGS = Resource(*_RBAC, "rolebindings", "RoleBinding", True, "rolebinding")
CLUSTERROLES = Resource(*_RBAC, "clusterroles", "ClusterRole", False, "clusterrole")
CLUSTERROLEBINDINGS = Resource(*_RBAC, "clusterrolebindings", "ClusterRoleBinding", False, "clusterrolebinding")
STORAGECLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, "storageclass", ("sc",))
RUNTIMECLASSES = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", False, "runtimeclass")

_ADMISSION = ("admissionregistration.k8s.io", "v1")
MUTATINGWEBHOOKCONFIGURATIONS = Resource(
    *_ADMISSION, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False, "mutatingwebhookconfiguration",
    (), ("api-extensions",),
)  # fmt: skip
VALIDATINGWEBHOOKCONFIGURATIONS = Resource(
    *_ADMISSION, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False,
    "validatingwebhookconfiguration", (), ("api-extensions",),
)  # fmt: skip
VALIDATINGADMISSIONPOLICIES = Resource(
    *_ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False, "validatingadmissionpolicy", (),
    ("api-extensions",), ("status",),
)  # fmt: skip
VALIDATINGADMISSIONPOLICYBINDINGS = Resource(
    *_ADMISSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False,
    "validatingadmissionpolicybinding", (), ("api-extensions",),
)  # fmt: skip
MUTATINGADMISSIONPOLICIES = Resource(
    *_ADMISSION, "mutatingadmissionpolicies", "MutatingAdmissionPolicy", False, "mutatingadmissionpolicy", (),
    ("api-extensions",),
)  # fmt: skip
MUTATINGADMISSIONPOLICYBINDINGS = Resource(
    *_ADMISSION, "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", False,
    "mutatingadmissionpolicybinding", (), ("api-extensions",),
)  # fmt: skip
CERTIFICATESIGNINGREQUESTS = Resource(
    "certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", False,
    "certificatesigningrequest", ("csr",), (), ("approval", "status"),
)  # fmt: skip
IPADDRESSES = Resource("networking.k8s.io", "v1", "ipaddresses", "IPAddress", False, "ipaddress", ("ip",))
SERVICECIDRS = Resource(
    "networking.k8s.io", "v1", "servicecidrs", "ServiceCIDR", False, "servicecidr", (), (), ("status",)
)
CSIDRIVERS = Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", False, "csidriver")
CSINODES = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", False, "csinode")
CSISTORAGECAPACITIES = Resource(
    "storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", True, "csistoragecapacity"
)
VOLUMEATTACHMENTS = Resource(
    "storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", False, "volumeattachment", (), (), ("status",)
)
VOLUMEATTRIBUTESCLASSES = Resource(
    "storage.k8s.io", "v1", "volumeattributesclasses", "VolumeAttributesClass", False, "volumeattributesclass", ("vac",)
)
DEVICECLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False, "deviceclass")
RESOURCECLAIMS = Resource(
    "resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", True, "resourceclaim", (), (), ("status",)
)
RESOURCECLAIMTEMPLATES = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True, "resourceclaimtemplate"
)
RESOURCESLICES = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False, "resourceslice")
_FLOW_CONTROL = ("flowcontrol.apiserver.k8s.io", "v1")
FLOWSCHEMAS = Resource(*_FLOW_CONTROL, "flowschemas", "FlowSchema", False, "flowschema", (), (), ("status",))
PRIORITYLEVELCONFIGURATIONS = Resource(
    *_FLOW_CONTROL, "prioritylevelconfigurations", "PriorityLevelConfiguration", False, "prioritylevelconfiguration",
    (), (), ("status",),
)  # fmt: skip

SERVED: tuple[Resource, ...] = (
    BINDINGS, CONFIGMAPS, ENDPOINTS, EVENTS, LIMITRANGES, NAMESPACES, NODES,
    PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, PODS, PODTEMPLATES, REPLICATIONCONTROLLERS, RESOURCEQUOTAS, SECRETS,
    SERVICEACCOUNTS, SERVICES,
    CONTROLLERREVISIONS, DAEMONSETS, DEPLOYMENTS, REPLICASETS, STATEFULSETS, CRONJOBS, JOBS, HORIZONTALPODAUTOSCALERS,
    PODDISRUPTIONBUDGETS, PRIORITYCLASSES, INGRESSES, INGRESSCLASSES, NETWORKPOLICIES,
    ROLES, ROLEBINDINGS, CLUSTERROLES, CLUSTERROLEBINDINGS, STORAGECLASSES, RUNTIMECLASSES,
    LEASES, ENDPOINTSLICES, EVENTS_V1, HORIZONTALPODAUTOSCALERS_V1, CUSTOMRESOURCEDEFINITIONS,
    CERTIFICATESIGNINGREQUESTS, IPADDRESSES, SERVICECIDRS, CSIDRIVERS, CSINODES, CSISTORAGECAPACITIES,
    VOLUMEATTACHMENTS, VOLUMEATTRIBUTESCLASSES, DEVICECLASSES, RESOURCECLAIMS, RESOURCECLAIMTEMPLATES, RESOURCESLICES,
    FLOWSCHEMAS, PRIORITYLEVELCONFIGURATIONS,
    MUTATINGADMISSIONPOLICIES, MUTATINGADMISSIONPOLICYBINDINGS, MUTATINGWEBHOOKCONFIGURATIONS,
    VALIDATINGADMISSIONPOLICIES, VALIDATINGADMISSIONPOLICYBINDINGS, VALIDATINGWEBHOOKCONFIGURATIONS,
    APISERVICES,
)  # fmt: skip
"""Everything the API server serves."""

CONVERTED: tuple[Resource, ...] = (EVENTS_V1, HORIZONTALPODAUTOSCALERS_V1)
"""Other versions of kinds that are stored under another group-version: their objects are not to be seen twice."""

NODE_METRICS = Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", False)
POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", True)
NODE_METRICS_V1 = Resource("metrics.k8s.io", "v1", "nodes", "NodeMetrics", False)
POD_METRICS_V1 = Resource("metrics.k8s.io", "v1", "pods", "PodMetrics", True)
METRICS: tuple[Resource, ...] = (NODE_METRICS, POD_METRICS)
METRICS_V1: tuple[Resource, ...] = (NODE_METRICS_V1, POD_METRICS_V1)
"""The same without a change, served beside them since 1.37 (KEP-5207, kubernetes#139223)."""
COMPONENTSTATUSES = Resource("", "v1", "componentstatuses", "ComponentStatus", False, "componentstatus", ("cs",))
COMPUTED: tuple[Resource, ...] = (*METRICS, *METRICS_V1, COMPONENTSTATUSES)
"""Made when they are asked for and stored nowhere: they can be read, not watched."""
"""What nodes and Pods use: nothing is stored. Another server may answer it (`kubectl apply` of metrics-server)."""

SELFSUBJECTREVIEWS = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False, "selfsubjectreview"
)
TOKENREVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False, "tokenreview")
LOCALSUBJECTACCESSREVIEWS = Resource(
    "authorization.k8s.io", "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", True,
    "localsubjectaccessreview",
)  # fmt: skip
SELFSUBJECTACCESSREVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False,
    "selfsubjectaccessreview",
)  # fmt: skip
SELFSUBJECTRULESREVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", False, "selfsubjectrulesreview"
)
SUBJECTACCESSREVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False, "subjectaccessreview"
)

REVIEWS: tuple[Resource, ...] = (
    SELFSUBJECTREVIEWS, TOKENREVIEWS, LOCALSUBJECTACCESSREVIEWS, SELFSUBJECTACCESSREVIEWS, SELFSUBJECTRULESREVIEWS,
    SUBJECTACCESSREVIEWS,
)  # fmt: skip
"""Questions: a POST answers the same object with its status, and nothing is stored."""
