"""Objects that no server should have taken, in a store: what was written before checks were as strict as they are.

`poisoned(world)` makes them with a server of its own, as valid objects that are changed afterwards; `put(store, ...)`
writes them past every check.
"""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from lastcall.kube.api.meta import Object, name_of, namespace_of
from lastcall.kube.api.resources import (
    CRONJOBS,
    DAEMONSETS,
    DEPLOYMENTS,
    ENDPOINTSLICES,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODDISRUPTIONBUDGETS,
    PODS,
    REPLICASETS,
    RESOURCEQUOTAS,
    SERVICEACCOUNTS,
    SERVICES,
    Resource,
)
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.store.api import Store
from lastcall.kube.store.memory import MemoryStore
from lastcall.kube.store.value import Value
from lastcall.records.memory import NoRecorder
from lastcall.world.world import World

BEFORE = "0001-01-01T00:00:00+05:00"
AFTER = "9999-12-31T23:59:59-05:00"
LAST = "9999-12-31T23:59:59Z"
SMALL = "2026-01-01t00:00:00z"
DIGITS = "9" * 5000
PERCENT = DIGITS + "%"
NAMESPACE = "default"
CLAIMS = "persistentvolumeclaims"


class Poison(NamedTuple):
    """An object and what is changed of it after it was stored."""

    resource: Resource
    object: Object
    change: Callable[[Object], Any]


def _template(app: str, **spec: Any) -> Object:
    container = {"name": "c", "image": "busybox:1.36", "command": ["sleep", "1000"]}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container], **spec}
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


def _pod(name: str, change: Callable[[Object], Any], **spec: Any) -> Poison:
    made = _template(name, nodeName="node-1", **spec)
    made["metadata"]["name"] = name
    return Poison(PODS, made, change)


def _workload(resource: Resource, name: str, change: Callable[[Object], Any], **spec: Any) -> Poison:
    spec = {"selector": {"matchLabels": {"app": name}}, "template": _template(name), **spec}
    return Poison(resource, {"metadata": {"name": name}, "spec": spec}, change)


def _job(name: str, change: Callable[[Object], Any], **spec: Any) -> Poison:
    spec = {"template": _template(name, restartPolicy="Never"), **spec}
    return Poison(JOBS, {"metadata": {"name": name}, "spec": spec}, change)


def _cron(name: str, change: Callable[[Object], Any]) -> Poison:
    job = {"spec": {"template": _template(name, restartPolicy="Never")}}
    return Poison(CRONJOBS, {"metadata": {"name": name}, "spec": {"schedule": "* * * * *", "jobTemplate": job}}, change)


def _budget(name: str, change: Callable[[Object], Any], app: str = "ready-after") -> Poison:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}
    return Poison(PODDISRUPTIONBUDGETS, {"metadata": {"name": name}, "spec": spec}, change)


def _status(**status: Any) -> Callable[[Object], Any]:
    return lambda obj: obj.setdefault("status", {}).update(copy.deepcopy(status))


def _annotated(**annotations: str) -> Callable[[Object], Any]:
    found = {key.replace("__", "/").replace("_", "-"): value for key, value in annotations.items()}
    return lambda obj: obj["metadata"].setdefault("annotations", {}).update(found)


def _spec(**spec: Any) -> Callable[[Object], Any]:
    return lambda obj: obj["spec"].update(copy.deepcopy(spec))


def _condition(type_: str, at: str) -> Object:
    return {"type": type_, "status": "True", "lastTransitionTime": at, "lastProbeTime": at, "lastUpdateTime": at}


def _both(*changes: Callable[[Object], Any]) -> Callable[[Object], Any]:
    return lambda obj: [change(obj) for change in changes]


def _ended(at: str) -> Callable[[Object], Any]:
    ended = {"exitCode": 1, "reason": "Error", "startedAt": at, "finishedAt": at}
    container = {"name": "c", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    return _status(phase="Failed", startTime=at, containerStatuses=[{**container, "state": {"terminated": ended}}])


def _event(obj: Object) -> None:
    obj.update(lastTimestamp=BEFORE, firstTimestamp=AFTER)


INDEX = "batch.kubernetes.io/job-completion-index"


def _of_job(job: str, change: Callable[[Object], Any]) -> Callable[[Object], Any]:
    """A Pod that this Job controls; `job-...-uid` is set when all are there."""

    def changed(obj: Object) -> None:
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": "", "controller": True}
        obj["metadata"]["ownerReferences"] = [reference]
        obj["metadata"]["labels"] |= {"batch.kubernetes.io/job-name": job, "job-name": job}
        obj["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
        change(obj)

    return changed


POISON: tuple[Poison, ...] = (
    _pod("ready-after", _status(phase="Running", conditions=[_condition("Ready", AFTER)])),
    _pod("target-before", _status(phase="Running", conditions=[_condition("DisruptionTarget", BEFORE)])),
    _pod("target-after", _status(phase="Running", conditions=[_condition("DisruptionTarget", AFTER)])),
    _pod("target-small", _status(phase="Running", conditions=[_condition("DisruptionTarget", SMALL)])),
    _pod("start-before", _status(phase="Running", startTime=BEFORE), activeDeadlineSeconds=1000),
    _pod("start-last", _status(phase="Running", startTime=LAST), activeDeadlineSeconds=1000),
    _pod("ended-before", _of_job("job-start", _ended(BEFORE))),
    _pod("index-digits", _of_job("job-indexed", lambda pod: pod["metadata"].update(annotations={INDEX: DIGITS}))),
    _job("job-start", _status(startTime=BEFORE), activeDeadlineSeconds=5000),
    _job(
        "job-indexed",
        _status(completedIndexes=DIGITS, failedIndexes=f"0-{DIGITS}"),
        completions=3,
        parallelism=1,
        completionMode="Indexed",
        backoffLimitPerIndex=3,
    ),
    _job("job-over", _status(conditions=[_condition("Complete", BEFORE)]), ttlSecondsAfterFinished=60),
    _job("job-last", _status(conditions=[_condition("Complete", LAST)]), ttlSecondsAfterFinished=60),
    _cron("cron-before", _status(lastScheduleTime=BEFORE, lastSuccessfulTime=AFTER)),
    _cron("cron-every", _spec(schedule="@every 1" + "0" * 400 + "h")),
    _cron("cron-step", _spec(schedule=f"*/{DIGITS} * * * *")),
    _budget("budget-times", _status(disruptedPods={"ready-after": AFTER, "q": BEFORE, "r": LAST})),
    _budget("budget-percent", _spec(minAvailable=PERCENT), app="start-last"),
    Poison(
        EVENTS,
        {
            "metadata": {"name": "event", "namespace": NAMESPACE},
            "involvedObject": {"kind": "Pod", "namespace": NAMESPACE, "name": "x"},
            "reason": "r",
            "message": "m",
            "type": "Normal",
        },
        _event,
    ),
    _workload(
        DEPLOYMENTS,
        "deployment",
        _both(
            _annotated(deployment_kubernetes_io__revision=DIGITS),
            lambda obj: obj["metadata"]["annotations"].update({"deployment.kubernetes.io/revision": DIGITS}),
            _spec(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": PERCENT, "maxUnavailable": 1}}),
            _status(conditions=[_condition("Progressing", AFTER)]),
        ),
    ),
    _workload(REPLICASETS, "replicaset", _annotated(deployment_kubernetes_io__revision=DIGITS)),
    _workload(
        DAEMONSETS,
        "daemonset",
        lambda obj: obj["metadata"].update(annotations={"deprecated.daemonset.template.generation": DIGITS}),
    ),
    Poison(
        RESOURCEQUOTAS,
        {"metadata": {"name": "quota"}, "spec": {"hard": {CLAIMS: "100"}}},
        _both(_spec(hard={CLAIMS: DIGITS}), _status(used={CLAIMS: DIGITS}, hard={CLAIMS: "x"})),
    ),
    Poison(
        NODES,
        {"metadata": {"name": "fake"}},
        _both(
            lambda obj: obj["metadata"].update(annotations={"node.alpha.kubernetes.io/ttl": DIGITS}),
            _spec(taints=[{"key": "a", "effect": "NoExecute", "timeAdded": BEFORE}]),
            _status(
                allocatable={"cpu": "1e1000", "pods": "-5", "memory": DIGITS},
                capacity={"cpu": "1"},
                conditions=[{**_condition("Ready", BEFORE), "lastHeartbeatTime": AFTER}],
            ),
        ),
    ),
    Poison(
        LEASES,
        {"metadata": {"name": "fake", "namespace": "kube-node-lease"}, "spec": {"holderIdentity": "fake"}},
        _spec(renewTime=BEFORE, acquireTime=AFTER, leaseDurationSeconds=2**31 - 1),
    ),
    Poison(
        SERVICES,
        {
            "metadata": {"name": "service"},
            "spec": {"selector": {"app": "ready-after"}, "ports": [{"port": 80}], "sessionAffinity": "ClientIP"},
        },
        _spec(sessionAffinityConfig={"clientIP": {"timeoutSeconds": 2**63}}),
    ),
    Poison(
        ENDPOINTSLICES,
        {
            "metadata": {"name": "slice", "labels": {"kubernetes.io/service-name": "service"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.244.0.200"]}],
            "ports": [{"name": "p", "port": 1}],
        },
        lambda obj: obj.update(endpoints=[{"addresses": None}, {"conditions": "x"}], ports=[{"port": 2**40}]),
    ),
    Poison(
        PERSISTENTVOLUMES,
        {
            "metadata": {"name": "volume"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/x"},
                "storageClassName": "none",
            },
        },
        _spec(capacity={"storage": DIGITS}),
    ),
    Poison(
        PERSISTENTVOLUMECLAIMS,
        {
            "metadata": {"name": "claim"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "none",
            },
        },
        _spec(resources={"requests": {"storage": DIGITS}}),
    ),
)


class Stored(NamedTuple):
    resource: Resource
    key: str
    object: Object

    @property
    def name(self) -> str:
        return name_of(self.object)

    @property
    def namespace(self) -> str:
        return namespace_of(self.object)


async def poisoned(world: World) -> list[Stored]:
    """All of them, as a store would have them."""
    store = MemoryStore()
    server = APIServer(world=world, store=store, recorder=NoRecorder(), config=APIServerConfig())
    await server.bootstrap()
    client = server.client(UserInfo("admin", ("system:masters",)))
    await client.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, NAMESPACE)
    if "kube-node-lease" not in [name_of(each) for each in (await client.list(NAMESPACES)).items]:
        await client.create(NAMESPACES, {"metadata": {"name": "kube-node-lease"}})
    found = []
    for resource, obj, change in POISON:
        namespace = (namespace_of(obj) or NAMESPACE) if resource.namespaced else ""
        made = copy.deepcopy(dict(await client.create(resource, copy.deepcopy(obj), namespace)))
        change(made)
        key = f"{resource.plural}/{namespace}/{name_of(made)}" if namespace else f"{resource.plural}/{name_of(made)}"
        assert await store.get(key) is not None, key
        found.append(Stored(resource, key, made))
    uids = {name_of(each.object): each.object["metadata"]["uid"] for each in found if each.resource == JOBS}
    for each in found:
        for reference in each.object["metadata"].get("ownerReferences") or ():
            reference["uid"] = uids[reference["name"]]
    return found


async def put(store: Store, objects: list[Stored]) -> None:
    """Write them, past everything."""
    for each in objects:

        def encode(revision: int, each: Stored = each) -> Value:
            head = {"kind": each.resource.kind, "apiVersion": each.resource.api_version}
            meta = {**each.object["metadata"], "resourceVersion": str(revision)}
            return Value(_json({**head, **each.object, "metadata": meta}))

        await store.create(each.key, encode)


def _json(obj: Object) -> bytes:
    """orjson knows 64 bits; a store may have more."""
    import json

    try:
        return orjson.dumps(obj)
    except TypeError:
        return json.dumps(obj, separators=(",", ":"), ensure_ascii=False).encode()
