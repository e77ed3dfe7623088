"""What Kubernetes 1.36.2 answered: sources of claims, phases of volumes, warnings, metadata of reviews, forms."""

import base64
import subprocess

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.pods.key_pairs import why_no_pair
from lastcall.kube.api.pods.warnings import warnings_on_create
from lastcall.kube.api.resources import (
    CSIDRIVERS,
    EVENTS_V1,
    LOCALSUBJECTACCESSREVIEWS,
    NAMESPACES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    ROLES,
    SELFSUBJECTREVIEWS,
    SELFSUBJECTRULESREVIEWS,
    SUBJECTACCESSREVIEWS,
)
from lastcall.kube.apiserver.strategies.workloads import same_data_source
from lastcall.kube.apiserver.wire.negotiation import check_form, negotiate

SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "a"}
CLAIM = {"apiGroup": None, "kind": "PersistentVolumeClaim", "name": "a"}
OTHER = {"apiGroup": "x.io", "kind": "Y", "name": "a"}


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ({"dataSource": SNAPSHOT}, SNAPSHOT),
        ({"dataSourceRef": SNAPSHOT}, SNAPSHOT),
        ({"dataSource": CLAIM}, CLAIM),
        ({"dataSourceRef": CLAIM}, CLAIM),
        ({"dataSource": OTHER}, None),
        ({"dataSource": {"kind": "Pod", "name": "a"}}, None),
        ({"dataSourceRef": OTHER}, OTHER),
        ({"dataSource": SNAPSHOT, "dataSourceRef": {**SNAPSHOT, "namespace": "n"}}, SNAPSHOT),
        ({"dataSourceRef": {**SNAPSHOT, "namespace": "n"}}, None),
    ],
)
def test_both_fields_of_a_claim_name_one_source(virtual, sent, stored) -> None:
    async def scenario(api) -> None:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **sent}
        made = await api.admin.create(PERSISTENTVOLUMECLAIMS, {"metadata": {"name": "c"}, "spec": spec}, "default")
        assert made["spec"].get("dataSource") == stored
        assert made["spec"].get("dataSourceRef") == stored
        assert same_data_source(made["spec"]) == made["spec"]

    virtual(scenario)


def test_a_volume_says_since_when_it_is_in_its_phase(virtual) -> None:
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}

    async def scenario(api) -> None:
        made = dict(await api.admin.create(PERSISTENTVOLUMES, {"metadata": {"name": "v"}, "spec": volume}))
        since = made["metadata"]["creationTimestamp"]
        assert made["status"] == {"phase": "Pending", "lastPhaseTransitionTime": since}

        async def write(**status) -> str:
            await api.world.clock.sleep(5)
            changed = await api.admin.update(PERSISTENTVOLUMES, {**made, "status": status}, subresource="status")
            made["metadata"] = changed["metadata"]
            return changed["status"]["lastPhaseTransitionTime"]

        assert await write(phase="Pending", message="x") == since
        moved = await write(phase="Available", lastPhaseTransitionTime=since)
        assert moved > since
        assert await write(phase="Available") == moved
        told = "2020-01-01T00:00:00Z"
        assert await write(phase="Bound", lastPhaseTransitionTime=told) == told

    virtual(scenario)


@pytest.mark.loopback
def test_what_is_wrong_with_a_key_pair_is_told_in_the_words_of_go(tmp_path) -> None:
    def key(name: str) -> str:
        argv = ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(tmp_path / name)]
        subprocess.run(argv, check=True)
        return (tmp_path / name).read_text()

    mine, others = key("a.key"), key("b.key")
    argv = ["openssl", "req", "-x509", "-new", "-key", str(tmp_path / "a.key"), "-subj", "/CN=a"]
    certificate = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    odd = "-----BEGIN OTHER-----\nYQ==\n-----END OTHER-----\n"
    recorded = [
        (certificate, mine, ""),
        (certificate, others, "tls: private key does not match public key"),
        ("a", "a", "tls: failed to find any PEM data in certificate input"),
        ("", "", "tls: failed to find any PEM data in certificate input"),
        (certificate, "x", "tls: failed to find any PEM data in key input"),
        (mine, certificate, "tls: failed to find certificate PEM data in certificate input, but did find a private "
         "key; PEM inputs may have been switched"),
        (odd, mine, 'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the '
         "following types: [OTHER]"),
        (certificate, odd + odd, 'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after '
         "skipping PEM blocks of the following types: [OTHER OTHER]"),
        (certificate, certificate, "tls: found a certificate rather than a key in the PEM for the private key"),
    ]  # fmt: skip
    for first, second, words in recorded:
        told = why_no_pair(*(base64.b64encode(each.encode()).decode() for each in (first, second)))
        assert told == words


def test_drivers_with_tokens_and_recycled_volumes_are_warned_of() -> None:
    driver = {"metadata": {}, "spec": {"tokenRequests": [{"audience": "a"}]}}
    assert warnings_on_create(CSIDRIVERS, driver)[0].startswith("spec.serviceAccountTokenInSecrets is unset;")
    driver["spec"]["serviceAccountTokenInSecrets"] = False
    assert warnings_on_create(CSIDRIVERS, driver) == []
    volume = {"metadata": {}, "spec": {"persistentVolumeReclaimPolicy": "Recycle"}}
    assert "The Recycle reclaim policy is deprecated." in warnings_on_create(PERSISTENTVOLUMES, volume)[0]


def test_access_reviews_have_no_metadata(virtual) -> None:
    attributes = {"verb": "get", "namespace": "default"}
    spec = {"user": "u", "resourceAttributes": attributes}

    async def scenario(api) -> None:
        for resource, namespace, words in (
            (SUBJECTACCESSREVIEWS, "", "must be empty"),
            (LOCALSUBJECTACCESSREVIEWS, "default", "must be empty except for namespace"),
        ):
            for metadata in ({"name": "n"}, {"labels": {"a": "b"}}, {"generateName": "x-"}):
                with pytest.raises(StatusError) as refused:
                    await api.admin.create(resource, {"metadata": metadata, "spec": spec}, namespace)
                assert refused.value.code == 422
                assert refused.value.message.startswith(
                    '.authorization.k8s.io "" is invalid: metadata: Invalid value: '
                )
                assert refused.value.message.endswith(f": {words}")
            await api.admin.create(resource, {"metadata": {}, "spec": spec}, namespace)
        for resource, asked in ((SELFSUBJECTREVIEWS, {}), (SELFSUBJECTRULESREVIEWS, {"spec": {"namespace": "n"}})):
            answer = await api.admin.create(resource, {"metadata": {"name": "n", "labels": {"a": "b"}}, **asked})
            assert not answer["metadata"].keys() & {"name", "labels"}

    virtual(scenario)


@pytest.mark.parametrize(
    ("form", "resource", "lists", "words"),
    [
        ("PartialObjectMetadata", NAMESPACES, True, "a list (*core.NamespaceList)"),
        ("PartialObjectMetadata", EVENTS_V1, True, "a list (*core.EventList)"),
        ("PartialObjectMetadata", ROLES, True, "a list (*rbac.RoleList)"),
        ("PartialObjectMetadataList", NAMESPACES, False, "not a list (*core.Namespace)"),
    ],
)
def test_a_form_of_lists_is_not_one_of_objects(form, resource, lists, words) -> None:
    for encoding in ("application/json", "application/yaml"):
        wanted = negotiate(f"{encoding};as={form};v=v1;g=meta.k8s.io", list_=lists)
        check_form(wanted, resource, list_=not lists)
        with pytest.raises(StatusError) as refused:
            check_form(wanted, resource, list_=lists)
        assert refused.value.code == 406
        assert refused.value.message == f"you requested {form}, but the requested object is {words}"
