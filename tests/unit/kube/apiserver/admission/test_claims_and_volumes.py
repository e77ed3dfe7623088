"""Claims, volumes and classes through the API: what is filled in, what is refused, what may still change."""

from typing import Any

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, PODS, STORAGECLASSES
from lastcall.kube.controllers.volumes.storage_class import STANDARD_CLASS

MARK = {"storageclass.kubernetes.io/is-default-class": "true"}


def claim(**spec: Any) -> Object:
    resources = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec}}


def volume(**spec: Any) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}, **spec}
    return {"metadata": {"name": "v"}, "spec": {key: value for key, value in spec.items() if value is not None}}


def storage_class(name: str, **more: Any) -> Object:
    return {**STANDARD_CLASS, "metadata": {"name": name, "annotations": MARK}, **more}


def test_a_claim_without_a_word_about_its_class_gets_the_newest_default_one(virtual):
    async def scenario(api):
        before = await api.admin.create(PERSISTENTVOLUMECLAIMS, claim(), "default")
        assert "storageClassName" not in before["spec"]
        for name in ("one", "two"):
            await api.admin.create(STORAGECLASSES, storage_class(name))
            await api.world.clock.sleep(2)
        made = await api.admin.create(PERSISTENTVOLUMECLAIMS, {**claim(), "metadata": {"name": "d"}}, "default")
        assert made["spec"]["storageClassName"] == "two" and made["spec"]["volumeMode"] == "Filesystem"
        assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
        assert made["status"] == {"phase": "Pending"}
        none = {**claim(storageClassName=""), "metadata": {"name": "e"}}
        assert (await api.admin.create(PERSISTENTVOLUMECLAIMS, none, "default"))["spec"]["storageClassName"] == ""

    virtual(scenario)


def test_a_volume_is_protected_and_retained(virtual):
    async def scenario(api):
        made = await api.admin.create(PERSISTENTVOLUMES, volume())
        assert made["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
        assert made["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
        assert made["spec"]["hostPath"] == {"path": "/x", "type": ""} and made["status"]["phase"] == "Pending"

    virtual(scenario)


REFUSED = [
    (PERSISTENTVOLUMECLAIMS, claim(accessModes=[]), "spec.accessModes: Required value: at least 1 access mode"),
    (PERSISTENTVOLUMECLAIMS, claim(accessModes=["Once"]), 'spec.accessModes: Unsupported value: "Once"'),
    (PERSISTENTVOLUMECLAIMS, claim(accessModes=["ReadWriteOnce", "ReadWriteOncePod"]), "may not use ReadWriteOncePod"),
    (PERSISTENTVOLUMECLAIMS, claim(resources={}), "spec.resources[storage]: Required value"),
    (PERSISTENTVOLUMECLAIMS, claim(resources={"requests": {"storage": "0"}}), "must be greater than zero"),
    (PERSISTENTVOLUMECLAIMS, claim(volumeMode="Tape"), "spec.volumeMode: Unsupported value"),
    (PERSISTENTVOLUMECLAIMS, claim(storageClassName="A_B"), "spec.storageClassName: Invalid value"),
    (PERSISTENTVOLUMES, volume(capacity={}), "spec.capacity: Required value"),
    (PERSISTENTVOLUMES, volume(hostPath=None), "spec: Required value: must specify a volume type"),
    (PERSISTENTVOLUMES, volume(hostPath={"path": "/a/../b"}), "must not contain '..'"),
    (PERSISTENTVOLUMES, volume(local={"path": "/y"}), "spec.local: Forbidden: may not specify more than 1 volume type"),
    (PERSISTENTVOLUMES, volume(hostPath=None, local={"path": "/y"}), "Local volume requires node affinity"),
    (PERSISTENTVOLUMES, volume(nodeAffinity={}), "must specify required node constraints"),
    (PERSISTENTVOLUMES, volume(persistentVolumeReclaimPolicy="Burn"), "ReclaimPolicy: Unsupported value"),
    (STORAGECLASSES, storage_class("x", provisioner=""), "provisioner: Required value"),
    (STORAGECLASSES, storage_class("x", reclaimPolicy="Recycle"), "reclaimPolicy: Unsupported value"),
    (STORAGECLASSES, storage_class("x", volumeBindingMode="Never"), "volumeBindingMode: Unsupported value"),
]  # fmt: skip


@pytest.mark.parametrize(("resource", "body", "text"), REFUSED)
def test_what_is_wrong_is_said(virtual, resource, body, text):
    async def scenario(api):
        with pytest.raises(StatusError) as refused:
            await api.admin.create(resource, body, "default" if resource.namespaced else "")
        assert refused.value.code == 422 and text in refused.value.message

    virtual(scenario)


def test_of_a_claim_only_its_volumes_name_is_given_once(virtual):
    async def scenario(api):
        await api.admin.create(PERSISTENTVOLUMECLAIMS, claim(), "default")
        patch = api.admin.patch
        await patch(PERSISTENTVOLUMECLAIMS, "c", {"spec": {"volumeName": "v"}}, "default")
        await patch(PERSISTENTVOLUMECLAIMS, "c", {"spec": {"storageClassName": "given-later"}}, "default")
        for spec in ({"volumeName": "w"}, {"accessModes": ["ReadWriteMany"]}, {"storageClassName": "other"}):
            with pytest.raises(StatusError, match="spec is immutable after creation except"):
                await patch(PERSISTENTVOLUMECLAIMS, "c", {"spec": spec}, "default")

    virtual(scenario)


def test_a_claim_grows_only_when_it_is_bound_and_its_class_allows_it(virtual):
    async def scenario(api):
        more = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
        await api.admin.create(STORAGECLASSES, storage_class("fixed"))
        await api.admin.create(STORAGECLASSES, storage_class("grows", allowVolumeExpansion=True))
        for name, text in (("fixed", "only dynamically provisioned pvc can be resized"), ("grows", "")):
            body = {**claim(storageClassName=name), "metadata": {"name": name}}
            await api.admin.create(PERSISTENTVOLUMECLAIMS, body, "default")
            with pytest.raises(StatusError):
                await api.admin.patch(PERSISTENTVOLUMECLAIMS, name, more, "default")
            status = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
            await api.admin.patch(PERSISTENTVOLUMECLAIMS, name, status, "default", subresource="status")
            if text:
                with pytest.raises(StatusError, match=text):
                    await api.admin.patch(PERSISTENTVOLUMECLAIMS, name, more, "default")
            else:
                grown = await api.admin.patch(PERSISTENTVOLUMECLAIMS, name, more, "default")
                assert grown["spec"]["resources"]["requests"]["storage"] == "2Gi"

    virtual(scenario)


def test_where_a_volume_is_and_who_makes_it_never_change(virtual):
    async def scenario(api):
        await api.admin.create(PERSISTENTVOLUMES, volume())
        with pytest.raises(StatusError, match="is immutable after creation"):
            await api.admin.patch(PERSISTENTVOLUMES, "v", {"spec": {"hostPath": {"path": "/other"}}})
        await api.admin.patch(PERSISTENTVOLUMES, "v", {"spec": {"persistentVolumeReclaimPolicy": "Delete"}})
        await api.admin.create(STORAGECLASSES, storage_class("x"))
        with pytest.raises(StatusError, match=r'provisioner: Invalid value: "example\.com/p": field is immutable'):
            await api.admin.patch(STORAGECLASSES, "x", {"provisioner": "example.com/p"})

    virtual(scenario)


def test_an_ephemeral_volume_needs_a_template_of_a_claim(virtual):
    async def scenario(api):
        for source, text in (
            ({}, "ephemeral.volumeClaimTemplate: Required value"),
            ({"volumeClaimTemplate": {"spec": {}}}, "volumeClaimTemplate.spec.accessModes: Required value"),
            ({"volumeClaimTemplate": {"metadata": {"name": "x"}, **claim()}}, "metadata.name: Forbidden"),
        ):
            if text.startswith("metadata"):
                source["volumeClaimTemplate"]["metadata"] = {"name": "x"}
            spec = {"containers": [{"name": "m", "image": "a:1"}], "volumes": [{"name": "s", "ephemeral": source}]}
            with pytest.raises(StatusError) as refused:
                await api.admin.create(PODS, {"metadata": {"name": "p"}, "spec": spec}, "default")
            assert text in refused.value.message

    virtual(scenario)
