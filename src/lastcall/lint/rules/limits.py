"""What a namespace allows: quotas, limit ranges, the Pod Security Standards.

Admission's own code is asked, and imported only where the manifests have such an object.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from lastcall.kube.api import (
    JOBS,
    LIMITRANGES,
    NAMESPACES,
    PODS,
    RESOURCEQUOTAS,
    Object,
    Quantity,
    concerned,
    concerns,
    copy_object,
    in_scope,
    parse,
    set_defaults,
    unspecified,
    usage,
)
from lastcall.kube.apiserver import pod_problems
from lastcall.kube.apiserver import set_defaults as fill
from lastcall.lint.application import TEMPLATES, Application, Workload
from lastcall.lint.subject import Finding, Op, Subject, found

_ENFORCE = "pod-security.kubernetes.io/enforce"
_SOME_TIME = datetime(2000, 1, 1, tzinfo=UTC)
"""Any time will do: a quota needs it only for Pods that are being deleted, and manifests have none."""


def findings(app: Application) -> Iterator[Finding]:
    for namespace in app.of(NAMESPACES):
        if _ENFORCE in (namespace.metadata.get("labels") or {}):
            yield from _security(app, namespace)
    for limits in app.of(LIMITRANGES):
        yield from _limit_range(app, limits)
    for quota in app.of(RESOURCEQUOTAS):
        yield from _quota(app, quota)


def _security(app: Application, namespace: Subject) -> Iterator[Finding]:
    # late: 2.8 ms of `lint --help`
    from lastcall.kube.apiserver import evaluate, policy_of

    policy, _ = policy_of(namespace.metadata.get("labels") or {})
    for workload in app.in_namespace(namespace.name):
        meta = workload.template.get("metadata") or {}
        violations = evaluate(*policy.enforce, 36, meta, workload.pod_spec)
        if violations:
            said = "; ".join(f"{each.reason} ({each.detail})" if each.detail else each.reason for each in violations)
            text = f'Namespace {namespace.name} enforces "{policy.enforce.level}", which {workload} violates: {said}.'
            yield found("podSecurityRefuses", workload.subject, workload.spec_path, text)


def _pod(app: Application, workload: Workload) -> Object:
    """A Pod of the workload as admission sees it."""
    meta = workload.template.get("metadata") or {}
    pod: Object = copy_object({"metadata": {**meta, "name": workload.subject.name}, "spec": workload.pod_spec})
    pod["metadata"]["namespace"] = workload.subject.namespace
    ranges = [each.obj for each in app.of(LIMITRANGES) if each.namespace == workload.subject.namespace]
    if ranges:
        fill(pod, ranges)
    set_defaults(PODS, pod)
    return pod


def _limit_range(app: Application, limits: Subject) -> Iterator[Finding]:
    for workload in app.in_namespace(limits.namespace):
        problems = list(dict.fromkeys(pod_problems(limits.obj, _pod(app, workload))))
        if problems:
            text = f"{limits} refuses the Pods of {workload}: {'; '.join(problems)}."
            yield found("limitRangeRefuses", workload.subject, workload.spec_path, text)


def _count(workload: Workload) -> int:
    """How many Pods it has at least at a time, when all is well."""
    if workload.resource == JOBS:
        spec = workload.subject.spec
        wanted = int(spec.get("parallelism", 1) if spec.get("parallelism") is not None else 1)
        return 0 if spec.get("suspend") else min(wanted, int(spec.get("completions") or wanted))
    if workload.is_job:
        return 0  # a CronJob has none most of the time
    replicas = workload.replicas
    return 1 if replicas is None else replicas


def _quota(app: Application, quota: Subject) -> Iterator[Finding]:
    hard = parse(quota.spec.get("hard"))
    used: dict[str, Any] = dict.fromkeys(hard, 0)
    of_pod: dict[Workload, dict[str, Quantity]] = {}
    for workload in app.in_namespace(quota.namespace):
        pod = _pod(app, workload)
        if not in_scope(quota.obj, PODS, pod):
            continue
        missing = unspecified(pod, concerned(PODS, hard))
        if missing:
            text = f"{quota} counts resources that {workload} does not specify: {missing}."
            yield found("quotaNeedsResources", workload.subject, workload.spec_path, text)
        of_pod[workload] = amounts = usage(PODS, pod, _SOME_TIME)
        for name in used:
            if name in amounts and concerns(PODS, name):
                used[name] += amounts[name].value * _count(workload)
    for subject in app.sound:
        if subject.namespace == quota.namespace and subject.resource is not None and subject.resource != PODS:
            amounts = usage(subject.resource, subject.obj, _SOME_TIME)
            for name in used:
                if concerns(subject.resource, name) and in_scope(quota.obj, subject.resource, subject.obj):
                    used[name] += amounts[name].value if name in amounts else 0
    over = [name for name in hard if used[name] > hard[name].value]
    for name in over:
        need = Quantity(used[name], hard[name].format)
        text = f"{quota} allows {name}: {hard[name]}, and these manifests need {need}."
        yield found("quotaTooSmall", quota, ("spec", "hard", name), text)
    for workload, amounts in of_pod.items():
        yield from _surge(quota, workload, amounts, hard, used, over)


def _surge(
    quota: Subject, workload: Workload, amounts: Any, hard: Any, used: Any, over: list[str]
) -> Iterator[Finding]:
    """Whether one Pod more is allowed, where an update needs it."""
    rolling = workload.unavailable_and_surge
    if rolling is None or rolling[0] or workload.idle:
        return
    short = [
        name
        for name in hard
        if name in amounts and name not in over and used[name] + amounts[name].value > hard[name].value
    ]
    if not short:
        return
    name = short[0]
    path = (*TEMPLATES[workload.resource][:1], "strategy")
    has = workload.subject.has(path)
    text = (
        f"{quota} allows {name}: {hard[name]}, which the replicas of these manifests take up: an update of {workload} "
        "needs one Pod more (maxUnavailable is 0), and hangs."
    )
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    patch = [Op("replace" if has else "add", path, strategy)]
    where = path if has else ("spec",)
    yield found("quotaBlocksUpdate", workload.subject, where, text, patch=patch)
