"""Objects of storage drivers, devices, addresses, flow control, certificates, webhooks and aggregation."""

import base64
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import NameOID

Object = dict[str, Any]
ADDRESS = "10.96.200.7"
API_SERVICE = "v1.a.example.com"


def _certificate_request() -> str:
    key = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))  # the same text in each run
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "somebody")])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, None)
    return base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()


_POLICY_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
_CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "R",
    "message": "m",
    "lastTransitionTime": "2030-01-01T00:00:00Z",
}
_DEVICES = {
    "requests": [{"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}}]
}

BY_KIND: dict[str, Object] = {
    "certificates.k8s.io/v1/CertificateSigningRequest": {
        "spec": {"request": _certificate_request(), "signerName": "example.com/signer", "usages": ["client auth"]}
    },
    "networking.k8s.io/v1/IPAddress": {
        "spec": {"parentRef": {"group": "", "resource": "services", "namespace": "default", "name": "s"}}
    },
    "networking.k8s.io/v1/ServiceCIDR": {"spec": {"cidrs": ["192.168.7.0/24"]}},
    "storage.k8s.io/v1/CSIDriver": {"spec": {"attachRequired": True, "volumeLifecycleModes": ["Persistent"]}},
    "storage.k8s.io/v1/CSINode": {
        "spec": {"drivers": [{"name": "d.example.com", "nodeID": "n", "topologyKeys": ["t"]}]}
    },
    "storage.k8s.io/v1/CSIStorageCapacity": {"storageClassName": "standard", "capacity": "1Gi"},
    "storage.k8s.io/v1/VolumeAttachment": {
        "spec": {"attacher": "d.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    },
    "storage.k8s.io/v1/VolumeAttributesClass": {"driverName": "d.example.com", "parameters": {"a": "b"}},
    "resource.k8s.io/v1/DeviceClass": {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
    "resource.k8s.io/v1/ResourceClaim": {"spec": {"devices": _DEVICES}},
    "resource.k8s.io/v1/ResourceClaimTemplate": {"spec": {"spec": {"devices": _DEVICES}}},
    "resource.k8s.io/v1/ResourceSlice": {
        "spec": {
            "driver": "d.example.com",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "a", "attributes": {"x": {"string": "y"}}}],
        }
    },
    "flowcontrol.apiserver.k8s.io/v1/FlowSchema": {
        "spec": {
            "priorityLevelConfiguration": {"name": "global-default"},
            "matchingPrecedence": 500,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [
                {
                    "subjects": [{"kind": "User", "user": {"name": "u"}}],
                    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/x"]}],
                }
            ],
        }
    },
    "flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration": {
        "spec": {
            "type": "Limited",
            "limited": {"nominalConcurrencyShares": 3, "limitResponse": {"type": "Reject"}},
        }
    },
    # Without webhooks: one that is asked about everything would have the answers of all other inputs.
    "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration": {"webhooks": []},
    "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration": {"webhooks": []},
    "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy": {
        "spec": {
            "matchConstraints": {"resourceRules": [_POLICY_RULE]},
            "variables": [{"name": "a", "expression": "size(object.metadata.name)"}],
            "validations": [{"expression": "variables.a < 300", "messageExpression": "'too long'"}],
        }
    },
    "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding": {
        "spec": {"policyName": "none", "validationActions": ["Deny"]}
    },
    "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy": {
        "spec": {
            "matchConstraints": {"resourceRules": [_POLICY_RULE]},
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}],
        }
    },
    "admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding": {"spec": {"policyName": "none"}},
    "apiregistration.k8s.io/v1/APIService": {
        "spec": {
            "group": "a.example.com",
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "insecureSkipTLSVerify": True,
            "service": {"namespace": "default", "name": "nobody"},
        }
    },
}

STATUS_BY_KIND: dict[str, Object] = {
    "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy": {"observedGeneration": 1, "typeChecking": {}},
    "certificates.k8s.io/v1/CertificateSigningRequest": {"conditions": [{**_CONDITION, "type": "Failed"}]},
    "networking.k8s.io/v1/ServiceCIDR": {"conditions": [_CONDITION]},
    "storage.k8s.io/v1/VolumeAttachment": {"attached": True, "attachmentMetadata": {"a": "b"}},
    "resource.k8s.io/v1/ResourceClaim": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]},
    "flowcontrol.apiserver.k8s.io/v1/FlowSchema": {"conditions": [{**_CONDITION, "type": "Dangling"}]},
    "flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration": {"conditions": [_CONDITION]},
    "apiregistration.k8s.io/v1/APIService": {"conditions": [{**_CONDITION, "type": "Available"}]},
}
NAMES = {"IPAddress": ADDRESS, "APIService": API_SERVICE}
"""Of kinds whose objects cannot have every name."""
