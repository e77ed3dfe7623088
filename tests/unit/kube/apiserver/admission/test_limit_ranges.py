"""LimitRanges: what Pods get, and what is refused, word for word."""

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import LIMITRANGES, PERSISTENTVOLUMECLAIMS, PODS, SERVICEACCOUNTS, STORAGECLASSES
from lastcall.kube.apiserver.admission.limits import ANNOTATION, check, claim_problems, pod_problems, set_defaults


def limits(*items):
    return {"metadata": {"name": "l"}, "spec": {"limits": list(items)}}


def container(name="main", requests=None, limits=None):
    kinds = {"requests": requests, "limits": limits}
    return {"name": name, "resources": {kind: dict(its) for kind, its in kinds.items() if its}}


def pod(*containers, init=()):
    return {"metadata": {"name": "p"}, "spec": {"containers": list(containers), "initContainers": list(init)}}


DEFAULTS = {"type": "Container", "default": {"cpu": "2", "memory": "1Gi"}, "defaultRequest": {"cpu": "1"}}


def test_containers_get_what_they_do_not_say():
    made = pod(container(requests={"cpu": "500m"}), container("full", {"cpu": "1"}, {"cpu": "1", "memory": "1"}))
    made["spec"]["initContainers"] = [container("first")]
    set_defaults(made, [limits(DEFAULTS)])
    main, full = made["spec"]["containers"]
    assert main["resources"] == {"requests": {"cpu": "500m"}, "limits": {"cpu": "2", "memory": "1Gi"}}
    assert full["resources"] == {"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "1"}}
    assert made["spec"]["initContainers"][0]["resources"] == {
        "requests": {"cpu": "1"},
        "limits": {"cpu": "2", "memory": "1Gi"},
    }
    assert made["metadata"]["annotations"] == {
        ANNOTATION: "LimitRanger plugin set: cpu, memory limit for container main; "
        "cpu request for init container first; cpu, memory limit for init container first"
    }


def test_a_limit_range_is_not_changed_by_the_pods_it_fills_in():
    range_ = limits(DEFAULTS)
    before = repr(range_)
    made = pod(container())
    set_defaults(made, [range_])
    made["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "9"
    assert repr(range_) == before


def test_a_pod_that_says_everything_is_left_alone():
    made = pod(container("full", {"cpu": "1"}, {"cpu": "1", "memory": "1"}))
    set_defaults(made, [limits(DEFAULTS), limits({"type": "Pod", "max": {"cpu": "1"}})])
    assert "annotations" not in made["metadata"]


def of(type_, **item):
    return limits({"type": type_, **item})


CPU = {"cpu": "1"}


@pytest.mark.parametrize(
    ("range_", "made", "expected"),
    [
        (of("Container", min=CPU), pod(container(requests=CPU, limits=CPU)), []),
        (of("Container", min=CPU), pod(container()), [
            "minimum cpu usage per Container is 1.  No request is specified"
        ]),
        (of("Container", min=CPU), pod(container(requests={"cpu": "900m"})), [
            "minimum cpu usage per Container is 1, but request is 900m"
        ]),
        (of("Container", min=CPU), pod(container(requests=CPU, limits={"cpu": "0.5"})), [
            "minimum cpu usage per Container is 1, but limit is 500m"
        ]),
        (of("Container", max=CPU), pod(container()), ["maximum cpu usage per Container is 1.  No limit is specified"]),
        (of("Container", max=CPU), pod(container(limits={"cpu": "5"})), [
            "maximum cpu usage per Container is 1, but limit is 5"
        ]),
        (of("Container", max=CPU), pod(container(requests={"cpu": "2"}, limits=CPU)), [
            "maximum cpu usage per Container is 1, but request is 2"
        ]),
        (of("Container", max={"memory": "1Gi"}), pod(container(limits={"memory": "1025Mi"})), [
            "maximum memory usage per Container is 1Gi, but limit is 1025Mi"
        ]),
        (of("Container", maxLimitRequestRatio={"cpu": "2"}), pod(container(requests=CPU, limits={"cpu": "2"})), []),
        (of("Container", maxLimitRequestRatio={"cpu": "2"}), pod(container(requests=CPU, limits={"cpu": "2500m"})), [
            "cpu max limit to request ratio per Container is 2, but provided ratio is 2.500000"
        ]),
        (of("Container", maxLimitRequestRatio={"cpu": "2"}), pod(container(limits=CPU)), [
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0"
        ]),
        (of("Container", maxLimitRequestRatio={"cpu": "2"}), pod(container(requests=CPU)), [
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0"
        ]),
        (of("Container", max=CPU), pod(container(limits=CPU), init=[container("i", limits={"cpu": "2"})]), [
            "maximum cpu usage per Container is 1, but limit is 2"
        ]),
        (of("Pod", max={"cpu": "3"}), pod(container(limits={"cpu": "2"}), container("b", limits={"cpu": "2"})), [
            "maximum cpu usage per Pod is 3, but limit is 4"
        ]),
        (of("Pod", max={"cpu": "3"}), pod(container(limits=CPU), init=[container("i", limits={"cpu": "3"})]), []),
        (of("Pod", min={"cpu": "3"}), pod(container(requests=CPU), container("b", requests=CPU)), [
            "minimum cpu usage per Pod is 3, but request is 2"
        ]),
        (of("PersistentVolumeClaim", max={"storage": "1"}), pod(container()), []),
        (of("Container", min={"cpu": "1", "memory": "1"}, max={"cpu": "1"}), pod(container()), [
            "minimum cpu usage per Container is 1.  No request is specified",
            "minimum memory usage per Container is 1.  No request is specified",
            "maximum cpu usage per Container is 1.  No limit is specified",
        ]),
    ],
)  # fmt: skip
def test_what_a_pod_may_not_ask_for(range_, made, expected):
    assert list(pod_problems(range_, made)) == expected


def claim(size):
    return {"metadata": {"name": "c"}, "spec": {"resources": {"requests": {"storage": size}}}}


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("2Gi", []),
        ("1Gi", ["minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi"]),
        ("4Gi", ["maximum storage usage per PersistentVolumeClaim is 3Gi, but request is 4Gi"]),
    ],
)
def test_what_a_claim_may_not_ask_for(size, expected):
    range_ = of("PersistentVolumeClaim", min={"storage": "2Gi"}, max={"storage": "3Gi"})
    assert list(claim_problems(range_, claim(size))) == expected


def test_several_problems_are_told_together_and_equal_ones_once():
    made = pod(container(), container("b"))
    with pytest.raises(StatusError) as refused:
        check(PODS, made, [of("Container", min=CPU, max=CPU)])
    assert refused.value.message == (
        'pods "p" is forbidden: [minimum cpu usage per Container is 1.  No request is specified, '
        "maximum cpu usage per Container is 1.  No limit is specified]"
    )


def test_a_claim_is_held_to_the_limits_also_when_it_grows(virtual):
    async def scenario(api):
        classes = {"metadata": {"name": "s"}, "provisioner": "a.b/c", "allowVolumeExpansion": True}
        await api.admin.create(STORAGECLASSES, classes)
        await api.admin.create(LIMITRANGES, of("PersistentVolumeClaim", max={"storage": "3Gi"}), "default")
        made = claim("2Gi")
        made["spec"] |= {"accessModes": ["ReadWriteOnce"], "storageClassName": "s"}
        made = await api.admin.create(PERSISTENTVOLUMECLAIMS, made, "default")
        bound = {**made, "status": {"phase": "Bound"}}
        await api.admin.update(PERSISTENTVOLUMECLAIMS, bound, "default", subresource="status")
        patch = {"spec": {"resources": {"requests": {"storage": "4Gi"}}}}
        with pytest.raises(StatusError) as refused:
            await api.admin.patch(PERSISTENTVOLUMECLAIMS, "c", patch, "default")
        assert refused.value.message == (
            'persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 3Gi, but '
            "request is 4Gi"
        )

    virtual(scenario)


def test_pods_of_one_template_each_keep_to_a_limit_range_that_comes_between_them(virtual):
    async def scenario(api):
        body = {"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
        for _ in range(2):
            made = await api.admin.create(PODS, body, "default")
            assert made["spec"]["containers"][0]["resources"] == {}
        await api.admin.create(LIMITRANGES, limits(DEFAULTS), "default")
        for _ in range(2):
            made = await api.admin.create(PODS, body, "default")
            assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
            assert made["status"]["qosClass"] == "Burstable"
        await api.admin.create(SERVICEACCOUNTS, {"metadata": {"name": "other"}}, "default")
        await api.admin.delete(LIMITRANGES, "l", "default")
        assert (await api.admin.create(PODS, body, "default"))["spec"]["containers"][0]["resources"] == {}

    virtual(scenario)
