"""Deployments, Jobs and their likes through the API: defaults, refusals, generations, scale, what a DELETE answers."""

from copy import deepcopy

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import (
    CLUSTERROLEBINDINGS,
    CLUSTERROLES,
    CRONJOBS,
    CSISTORAGECAPACITIES,
    DAEMONSETS,
    DEPLOYMENTS,
    DEVICECLASSES,
    HORIZONTALPODAUTOSCALERS,
    INGRESSES,
    JOBS,
    LIMITRANGES,
    NETWORKPOLICIES,
    PODDISRUPTIONBUDGETS,
    PRIORITYCLASSES,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    ROLEBINDINGS,
    ROLES,
    STATEFULSETS,
)

CONTAINER = {"name": "m", "image": "quick:1"}
POD_SPEC = {
    "containers": [
        {
            "name": "m",
            "image": "quick:1",
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "IfNotPresent",
        }
    ],
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}


def template(labels=None, **spec):
    labels = {"a": "b"} if labels is None else labels
    return {"metadata": {"labels": labels}, "spec": {"containers": [dict(CONTAINER)], **spec}}


def workload(labels=None, **spec):
    return {
        "metadata": {"name": "x"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template(labels), **spec},
    }


def without(obj, *keys):
    return {key: value for key, value in obj.items() if key not in keys}


CREATED = [
    (DEPLOYMENTS, workload(), {
        "replicas": 1,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
        "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
    }, {}),
    (REPLICASETS, workload(), {"replicas": 1}, {"replicas": 0}),
    (STATEFULSETS, workload(serviceName="x"), {
        "replicas": 1, "serviceName": "x", "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "partition": 0}},
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    }, {"replicas": 0, "availableReplicas": 0}),
    (DAEMONSETS, workload(), {
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
        "revisionHistoryLimit": 10,
    }, {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("resource", "body", "spec", "status"), CREATED, ids=[case[0].kind for case in CREATED])
def test_a_new_workload_has_the_recorded_defaults_and_a_status_of_its_own(virtual, resource, body, spec, status):
    async def scenario(api):
        body["status"] = {"readyReplicas": 9}
        obj = await api.admin.create(resource, body, "default")
        assert without(obj["spec"], "selector", "template") == spec
        assert obj["spec"]["template"]["spec"] == POD_SPEC
        assert obj["status"] == status
        assert obj["metadata"]["generation"] == 1

    virtual(scenario)


def test_a_replication_controller_takes_selector_and_labels_from_its_template(virtual):
    async def scenario(api):
        obj = await api.admin.create(
            REPLICATIONCONTROLLERS, {"metadata": {"name": "x"}, "spec": {"template": template()}}, "default"
        )
        assert obj["spec"]["selector"] == obj["metadata"]["labels"] == {"a": "b"}

    virtual(scenario)


def test_a_job_gets_its_selector_and_labels_from_its_uid(virtual):
    async def scenario(api):
        body = {"metadata": {"name": "x"}, "spec": {"template": template({}, restartPolicy="Never")}}
        obj = await api.admin.create(JOBS, body, "default")
        uid = obj["metadata"]["uid"]
        labels = {
            "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": "x",
            "controller-uid": uid, "job-name": "x",
        }  # fmt: skip
        assert obj["metadata"]["labels"] == obj["spec"]["template"]["metadata"]["labels"] == labels
        assert obj["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
        assert without(obj["spec"], "selector", "template") == {
            "parallelism": 1, "completions": 1, "backoffLimit": 6, "manualSelector": False,
            "completionMode": "NonIndexed", "suspend": False, "podReplacementPolicy": "TerminatingOrFailed",
        }  # fmt: skip

    virtual(scenario)


def test_the_kinds_that_stand_beside_have_their_recorded_defaults(virtual):
    async def scenario(api):
        job = {"spec": {"template": template({}, restartPolicy="Never")}}
        cron = await api.admin.create(
            CRONJOBS, {"metadata": {"name": "x"}, "spec": {"schedule": "* * * * *", "jobTemplate": job}}, "default"
        )
        assert without(cron["spec"], "jobTemplate", "schedule") == {
            "concurrencyPolicy": "Allow", "suspend": False, "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
        }  # fmt: skip
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
        scaler = await api.admin.create(
            HORIZONTALPODAUTOSCALERS,
            {"metadata": {"name": "x"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target}},
            "default",
        )
        assert scaler["spec"]["minReplicas"] == 1
        assert scaler["spec"]["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}
        policy = await api.admin.create(
            NETWORKPOLICIES, {"metadata": {"name": "x"}, "spec": {"podSelector": {}}}, "default"
        )
        assert policy["spec"]["policyTypes"] == ["Ingress"]
        limits = await api.admin.create(
            LIMITRANGES,
            {"metadata": {"name": "x"}, "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}},
            "default",
        )
        assert limits["spec"]["limits"][0]["defaultRequest"] == {"cpu": "1"}
        importance = await api.admin.create(PRIORITYCLASSES, {"metadata": {"name": "x"}, "value": 10})
        assert importance["preemptionPolicy"] == "PreemptLowerPriority"

    virtual(scenario)


def deployment(**spec):
    return workload(replicas=0, **spec)


REFUSED = [
    (DEPLOYMENTS, {"metadata": {"name": "x"}, "spec": {}},
     'Deployment.apps "x" is invalid: [spec.selector: Required value, spec.template.metadata.labels: Invalid value: '
     "null: `selector` does not match template `labels`, spec.template.spec.containers: Required value]"),
    (DEPLOYMENTS, deployment(strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
     "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"),
    (DEPLOYMENTS, deployment(strategy={"type": "Rolling"}),
     'spec.strategy: Unsupported value: {"Type":"Rolling","RollingUpdate":null}: supported values: "Recreate", '
     '"RollingUpdate"'),
    (DEPLOYMENTS, deployment(strategy={"rollingUpdate": {"maxSurge": "abc", "maxUnavailable": "120%"}}),
     "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"120%\": must not be greater than 100%"),
    (DEPLOYMENTS, deployment(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
     "may not be 0 when `maxSurge` is 0"),
    (DEPLOYMENTS, workload(replicas=-1), "spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
    (DEPLOYMENTS, {**deployment(), "spec": {**deployment()["spec"], "template": template(restartPolicy="Never")}},
     'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'),
    (DAEMONSETS, workload({"a": "c"}),
     'spec.template.metadata.labels: Invalid value: {"a":"c"}: `selector` does not match template `labels`'),
    (STATEFULSETS, {"metadata": {"name": "x"}, "spec": {"podManagementPolicy": "Any", "selector": {},
                                                         "template": {"spec": {}}}},
     'StatefulSet.apps "x" is invalid: [spec.podManagementPolicy: Invalid value: "Any": must be \'OrderedReady\' or '
     "'Parallel', spec.selector: Invalid value: {}: empty selector is invalid for statefulset, "
     "spec.template.spec.containers: Required value]"),
    (STATEFULSETS, {"metadata": {"name": "x"}, "spec": {"selector": {}, "template": {"spec": {}},
                                                         "volumeClaimTemplates": [{}]}},
     "[spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required, "
     "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value, spec.selector: Invalid value: {}: "),
    (CRONJOBS, {"metadata": {"name": "x"}, "spec": {
        "schedule": "every day", "concurrencyPolicy": "Never",
        "jobTemplate": {"spec": {"template": template({}, restartPolicy="Never")}}}},
     '[spec.schedule: Invalid value: "every day": expected exactly 5 fields, found 2: [every day], '
     'spec.concurrencyPolicy: Unsupported value: "Never": supported values: "Allow", "Forbid", "Replace"]'),
    (PODDISRUPTIONBUDGETS, {"metadata": {"name": "x"},
                            "spec": {"minAvailable": 1, "maxUnavailable": 1, "selector": {}}},
     'spec: Invalid value: {"MinAvailable":1,"Selector":{},"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}: '
     "minAvailable and maxUnavailable cannot be both set"),
    (HORIZONTALPODAUTOSCALERS, {"metadata": {"name": "x"}, "spec": {
        "minReplicas": 5, "maxReplicas": 1, "scaleTargetRef": {"kind": "", "name": ""}}},
     "[spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`, spec.scaleTargetRef.kind: "
     "Required value, spec.scaleTargetRef.name: Required value, spec.scaleTargetRef.apiVersion: Invalid value: "
     '"": apiVersion must specify API group]'),
    (ROLES, {"metadata": {"name": "x"}, "rules": [{"apiGroups": [""], "resources": ["pods"]}, {"verbs": ["get"]},
                                                  {"verbs": ["get"], "nonResourceURLs": ["/x"]}]},
     "[rules[0].verbs: Required value: verbs must contain at least one value, rules[1].apiGroups: Required value: "
     "resource rules must supply at least one api group, rules[1].resources: Required value: resource rules must "
     'supply at least one resource, rules[2].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to '
     "non-resource URLs]"),
    (ROLEBINDINGS, {"metadata": {"name": "x"}, "roleRef": {"kind": "Nope", "name": ""},
                    "subjects": [{"kind": "ServiceAccount", "name": "a"}, {"kind": "Zed", "name": "z"}]},
     '[roleRef.kind: Unsupported value: "Nope": supported values: "Role", "ClusterRole", roleRef.name: Required '
     'value, subjects[1].kind: Unsupported value: "Zed": supported values: "ServiceAccount", "User", "Group"]'),
    (CLUSTERROLEBINDINGS, {"metadata": {"name": "x"}, "roleRef": {"kind": "ClusterRole", "name": "a/b"},
                           "subjects": [{"kind": "User", "name": "a", "apiGroup": "b"},
                                        {"kind": "ServiceAccount", "name": "a", "apiGroup": "b"}]},
     'roleRef.name: Invalid value: "a/b": may not contain \'/\', subjects[0].apiGroup: Unsupported value: "b": '
     'supported values: "rbac.authorization.k8s.io", subjects[1].apiGroup: Unsupported value: "b": supported values: '
     '"", subjects[1].namespace: Required value]'),
    (CLUSTERROLES, {"metadata": {"name": "x"}, "aggregationRule": {}},
     "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if "
     "aggregationRule is non-nil"),
    (CLUSTERROLES, {"metadata": {"name": "x"}, "aggregationRule": {"clusterRoleSelectors": [
        {"matchExpressions": [{"key": "a", "operator": "Nope"}]}]}},
     'aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid value: "Nope": not a valid '
     "selector operator"),
    (INGRESSES, {"metadata": {"name": "x"}, "spec": {"rules": [{"http": {"paths": [
        {"path": "nope", "pathType": "Prefix", "backend": {}}, {"path": "/", "backend": {"service": {"name": "s"}}},
        ]}}]}},
     '[spec.rules[0].http.paths[0].path: Invalid value: "nope": must be an absolute path, '
     'spec.rules[0].http.paths[0].backend: Invalid value: "": resource or service backend is required, '
     "spec.rules[0].http.paths[1].pathType: Required value: pathType must be specified]"),
]  # fmt: skip


@pytest.mark.parametrize(("resource", "body", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_makes_no_sense_is_refused_in_the_recorded_words(virtual, resource, body, words):
    async def scenario(api):
        with pytest.raises(StatusError) as refused:
            await api.admin.create(resource, body, "default")
        assert refused.value.code == 422
        assert words in refused.value.message

    virtual(scenario)


UPDATES = [
    (DEPLOYMENTS, workload(), lambda o: o["spec"]["selector"]["matchLabels"].update(c="d"), "field is immutable"),
    (STATEFULSETS, workload(), lambda o: o["spec"].update(serviceName="y"), "are forbidden"),
    (JOBS, {"metadata": {"name": "x"}, "spec": {"template": template({}, restartPolicy="Never")}},
     lambda o: o["spec"]["template"]["spec"]["containers"][0].update(image="b"), "spec.template: Invalid value"),
    (PODDISRUPTIONBUDGETS, {"metadata": {"name": "x"}, "spec": {"minAvailable": 1}},
     lambda o: o["metadata"].pop("resourceVersion"), "must be specified for an update"),
]  # fmt: skip


@pytest.mark.parametrize(("resource", "body", "change", "words"), UPDATES, ids=[case[0].kind for case in UPDATES])
def test_what_may_not_change_does_not(virtual, resource, body, change, words):
    async def scenario(api):
        obj = deepcopy(await api.admin.create(resource, body, "default"))
        change(obj)
        with pytest.raises(StatusError, match=words):
            await api.admin.update(resource, obj, "default")

    virtual(scenario)


def test_the_generation_counts_the_spec_and_a_deployments_annotations_but_not_its_status(virtual):
    async def scenario(api):
        await api.admin.create(DEPLOYMENTS, workload(), "default")

        async def generation(patch, subresource=""):
            obj = await api.admin.patch(DEPLOYMENTS, "x", patch, "default", subresource=subresource)
            return obj["metadata"]["generation"]

        assert await generation({"spec": {"replicas": 2}}) == 2
        assert await generation({"metadata": {"labels": {"l": "m"}}}) == 2
        assert await generation({"metadata": {"annotations": {"l": "m"}}}) == 3
        assert await generation({"status": {"replicas": 2}, "spec": {"replicas": 7}}, "status") == 3
        # The controller writes its revision together with the status.
        assert await generation({"metadata": {"annotations": {"revision": "1"}}}, "status") == 3

    virtual(scenario)


def test_a_daemon_sets_template_generation_counts_its_template_only(virtual):
    async def scenario(api):
        key = "deprecated.daemonset.template.generation"
        obj = await api.admin.create(DAEMONSETS, workload(), "default")
        assert obj["metadata"]["annotations"] == {key: "1"}
        obj = await api.admin.patch(DAEMONSETS, "x", {"spec": {"minReadySeconds": 3}}, "default")
        assert obj["metadata"]["annotations"] == {key: "1"}
        change = {"spec": {"template": {"metadata": {"labels": {"c": "d"}}}}}
        obj = await api.admin.patch(DAEMONSETS, "x", change, "default")
        assert obj["metadata"]["annotations"] == {key: "2"}
        change = {"spec": {"template": {"spec": {"schedulingGroup": {}}}}}
        obj = await api.admin.patch(DAEMONSETS, "x", change, "default")
        assert obj["metadata"]["annotations"] == {key: "2"}, "a field that is dropped is no change"
        assert obj["metadata"]["generation"] == 3

    virtual(scenario)


def test_claims_of_a_stateful_set_are_claims_whatever_they_say(virtual):
    async def scenario(api):
        claim = {"kind": "é", "apiVersion": "x", "metadata": {"name": "c"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}  # fmt: skip
        obj = await api.admin.create(STATEFULSETS, workload(serviceName="x", volumeClaimTemplates=[claim]), "default")
        (made,) = obj["spec"]["volumeClaimTemplates"]
        assert (made["apiVersion"], made["kind"]) == ("v1", "PersistentVolumeClaim")

    virtual(scenario)


def test_scale_changes_the_replicas_and_nothing_else(virtual):
    async def scenario(api):
        await api.admin.create(DEPLOYMENTS, workload(replicas=0), "default")
        scale = await api.admin.patch(DEPLOYMENTS, "x", {"spec": {"replicas": 2}}, "default", subresource="scale")
        assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
        assert scale["spec"] == {"replicas": 2}
        assert scale["status"] == {"replicas": 0, "selector": "a=b"}
        stored = await api.admin.get(DEPLOYMENTS, "x", "default")
        assert (stored["spec"]["replicas"], stored["metadata"]["generation"]) == (2, 2)
        scale["spec"]["replicas"] = 3
        scale = await api.admin.update(DEPLOYMENTS, scale, "default", subresource="scale")
        assert scale["spec"] == {"replicas": 3}

    virtual(scenario)


def test_a_scale_that_is_stale_negative_or_another_objects_is_refused(virtual):
    async def scenario(api):
        await api.admin.create(DEPLOYMENTS, workload(), "default")

        async def refused(patch):
            with pytest.raises(StatusError) as error:
                await api.admin.patch(DEPLOYMENTS, "x", patch, "default", subresource="scale")
            return error.value.code, error.value.message

        assert await refused({"spec": {"replicas": -1}}) == (
            422,
            'Scale.autoscaling "x" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
        )
        code, message = await refused({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 2}})
        assert (code, message.partition(":")[0]) == (409, 'Operation cannot be fulfilled on deployments.apps "x"')
        code, message = await refused({"metadata": {"uid": "u"}, "spec": {"replicas": 2}})
        assert code == 409
        assert message.startswith(
            'Operation cannot be fulfilled on deployments/scale.apps "x": Precondition failed: UID in precondition: u'
        )

    virtual(scenario)


def test_a_job_deleted_without_a_policy_leaves_its_pods(virtual):
    async def scenario(api):
        body = {"metadata": {"name": "x"}, "spec": {"template": template({}, restartPolicy="Never")}}
        await api.admin.create(JOBS, body, "default")
        job = await api.admin.delete(JOBS, "x", "default")
        assert job["metadata"]["finalizers"] == ["orphan"]
        await api.admin.create(DEPLOYMENTS, workload(), "default")
        answer = await api.admin.delete(DEPLOYMENTS, "x", "default")
        assert answer["kind"] == "Status"

    virtual(scenario)


def test_containers_of_a_stateful_set_mount_volumes_that_are_made_from_its_claim_templates(virtual) -> None:
    async def scenario(api) -> None:
        container = {**CONTAINER, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        spec = {
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [container]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        }
        made = await api.admin.create(STATEFULSETS, {"metadata": {"name": "db"}, "spec": spec}, "default")
        assert made["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] == container["volumeMounts"]
        wrong = deepcopy(spec)
        wrong["template"]["spec"]["containers"][0]["volumeMounts"][0]["name"] = "logs"
        with pytest.raises(StatusError, match=r'volumeMounts\[0\].name: Not found: "logs"'):
            await api.admin.create(STATEFULSETS, {"metadata": {"name": "no"}, "spec": wrong}, "default")
        # A volume of the claim's name gives way to it.
        spec["template"]["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}]
        await api.admin.create(STATEFULSETS, {"metadata": {"name": "other"}, "spec": spec}, "default")

    virtual(scenario)


def test_the_generation_of_a_priority_class_stays_what_it_was(virtual):
    async def scenario(api):
        await api.admin.create(PRIORITYCLASSES, {"metadata": {"name": "x"}, "value": 1})
        changed = await api.admin.patch(PRIORITYCLASSES, "x", {"description": "other"})
        assert (changed["description"], changed["metadata"]["generation"]) == ("other", 1)

    virtual(scenario)


@pytest.mark.parametrize(
    ("resource", "spec", "kind"),
    [(DEVICECLASSES, {"spec": {}}, "DeviceClass"), (CSISTORAGECAPACITIES, {"storageClassName": "s"}, "Status")],
)
def test_a_delete_answers_the_object_or_a_status_by_its_kind(virtual, resource, spec, kind):
    async def scenario(api):
        namespace = "default" if resource.namespaced else ""
        await api.admin.create(resource, {"metadata": {"name": "x"}, **spec}, namespace)
        assert (await api.admin.delete(resource, "x", namespace))["kind"] == kind

    virtual(scenario)
