"""Rolling updates: whether they can proceed, and what they leave of a Service meanwhile."""

from collections.abc import Iterator
from itertools import combinations

from lastcall.kube.api import DAEMONSETS, DEPLOYMENTS, selector_of_expressions
from lastcall.lint.application import REPLICATED, Application, Container, Workload
from lastcall.lint.rules.probes import allowed
from lastcall.lint.subject import Finding, Op, found

_STRATEGY = ("spec", "strategy")


def findings(app: Application) -> Iterator[Finding]:
    for workload in app.workloads:
        if workload.idle:
            continue
        yield from _gap(workload)
        yield from _pinned(workload)
        yield from _host_ports(workload)
        yield from _claims(app, workload)
        yield from _deadline(workload)
    yield from _overlaps(app)


def _pinned(workload: Workload) -> Iterator[Finding]:
    path = (*workload.spec_path, "nodeName")
    if workload.resource in REPLICATED and workload.pod_spec.get("nodeName"):
        text = (
            f"All Pods of {workload} are put on node {workload.pod_spec['nodeName']} (nodeName): when it is lost, no "
            f"other node replaces it."
        )
        yield found("pinnedToNode", workload.subject, path, text, patch=[Op("remove", path)])


def _gap(workload: Workload) -> Iterator[Finding]:
    if workload.resource != DEPLOYMENTS or not workload.serving:
        return
    subject, replicas = workload.subject, workload.replicas or 0
    services = ", ".join(each.name for each in workload.serving)
    single = _node_bound(workload)
    if (subject.spec.get("strategy") or {}).get("type") == "Recreate":
        if single or replicas < 2:
            return
        text = (
            f"{subject} is behind Service {services} and has strategy Recreate: each update ends all Pods before the "
            "first new one is started."
        )
        patch = [Op("replace", _STRATEGY, {"type": "RollingUpdate"})]
        yield found("recreateLeavesGap", subject, _STRATEGY, text, patch=patch)
        return
    rolling = workload.unavailable_and_surge
    if rolling is not None and rolling[0] >= replicas and not (single and not rolling[1]):
        text = (
            f"maxUnavailable lets an update of {subject} take {'its only Pod' if replicas == 1 else 'all its Pods'} "
            f"away before new ones are ready: Service {services} has no endpoints then."
        )
        patch = [
            Op("replace", _STRATEGY, {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}})
        ]
        path = (*_STRATEGY, "rollingUpdate", "maxUnavailable")
        yield found("updateTakesAllPods", subject, path, text, patch=patch, automatic=True)


def _node_bound(workload: Workload) -> bool:
    """Whether old and new Pods cannot run side by side: a claim, a host port."""
    has_claim = any(each.get("persistentVolumeClaim") for each in workload.pod_spec.get("volumes") or ())
    return has_claim or bool(list(_host(workload)))


def _host(workload: Workload) -> Iterator[tuple[Container, int]]:
    for container in workload.containers:
        for index, port in enumerate(container.ports):
            if port.get("hostPort"):
                yield container, index


def _host_ports(workload: Workload) -> Iterator[Finding]:
    ports = list(_host(workload))
    if not ports:
        return
    subject, (container, index) = workload.subject, ports[0]
    number = container.ports[index].get("hostPort")
    path = (*container.path, "ports", index)
    if workload.resource == DAEMONSETS:
        rolling = (subject.spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
        if rolling.get("maxSurge") not in (None, 0, "0%"):
            text = (
                f"maxSurge starts the new Pod of {subject} on a node before the old one goes, and both want port "
                f"{number} of the node: the update hangs."
            )
            strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
            patch = [Op("replace", ("spec", "updateStrategy"), strategy)]
            fix = "maxSurge: 0, maxUnavailable: 1."
            where = ("spec", "updateStrategy")
            yield found(
                "hostPortBlocksUpdate", subject, where, text, fix=fix, patch=patch, automatic=True, certainty="certain"
            )
        return
    rolling_numbers = workload.unavailable_and_surge
    if rolling_numbers is None or rolling_numbers[0]:
        return
    text = (
        f"{container.name} of {subject} wants port {number} of its node, and an update starts a new Pod before an old "
        "one goes: without a free node it stays Pending, and the update hangs."
    )
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    patch = [Op("replace" if subject.has(_STRATEGY) else "add", _STRATEGY, strategy)]
    yield found("hostPortBlocksUpdate", subject, path, text, patch=patch, severity="warning")


def _claims(app: Application, workload: Workload) -> Iterator[Finding]:
    rolling = workload.unavailable_and_surge
    if rolling is None or not rolling[1]:
        return
    subject = workload.subject
    for index, volume in enumerate(workload.pod_spec.get("volumes") or ()):
        use = volume.get("persistentVolumeClaim")
        claim = app.get("PersistentVolumeClaim", subject.namespace, str((use or {}).get("claimName")))
        if not use or claim is None:
            continue
        modes = set(claim.spec.get("accessModes") or ())
        if modes & {"ReadWriteMany", "ReadOnlyMany"}:
            continue
        alone = "ReadWriteOncePod" in modes
        hangs = "stays Pending" if alone else "waits for the volume as long as it is on another node"
        text = (
            f"An update of {subject} starts a new Pod while the old one has {claim} "
            f"({', '.join(sorted(modes))}): the new one {hangs}, and the old one is not ended before that is ready."
        )
        if rolling[0]:
            text = text.rpartition(", and the old")[0] + "."
        patch = []
        if (workload.replicas or 0) == 1:
            patch = [Op("replace" if subject.has(_STRATEGY) else "add", _STRATEGY, {"type": "Recreate"})]
        certain = alone and not rolling[0]
        yield found(
            "claimBlocksUpdate",
            subject,
            (*workload.spec_path, "volumes", index),
            text,
            patch=patch,
            automatic=certain,
            severity="error" if certain else "warning",
            certainty="certain" if certain else None,
        )


def _deadline(workload: Workload) -> Iterator[Finding]:
    if workload.resource != DEPLOYMENTS:
        return
    spec = workload.subject.spec
    deadline = spec.get("progressDeadlineSeconds") or 600
    start, whose = max(
        (
            (allowed(each.spec["startupProbe"]), each.name)
            for each in workload.containers
            if each.spec.get("startupProbe")
        ),
        default=(0, ""),
    )
    needed = start + int(spec.get("minReadySeconds") or 0)
    if needed <= deadline:
        return
    said = ("spec", "progressDeadlineSeconds")
    has = workload.subject.has(said)
    text = (
        f"An update counts as failed after {deadline} s without progress{'' if has else ' (the default)'}, and "
        f"the probes give {whose or 'a Pod'} {needed} s to become available."
    )
    wanted = needed + 60
    patch = [Op("replace" if has else "add", said, wanted)]
    fix = f"progressDeadlineSeconds: {wanted}."
    path = said if has else ("spec",)
    yield found("progressDeadlineTooShort", workload.subject, path, text, fix=fix, patch=patch)


def _overlaps(app: Application) -> Iterator[Finding]:
    owners = [each for each in app.workloads if each.resource in (*REPLICATED, DAEMONSETS)]
    for first, second in combinations(owners, 2):
        if first.subject.namespace == second.subject.namespace and _takes(first, second) and _takes(second, first):
            text = f"{first} and {second} select each other's Pods."
            yield found("selectorsOverlap", second.subject, ("spec", "selector"), text)


def _takes(owner: Workload, other: Workload) -> bool:
    selector = owner.subject.spec.get("selector") or {}
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        selector = {"matchLabels": selector}  # a ReplicationController's
    if not any(selector.values()):
        return False  # reported as an invalid value
    try:
        return selector_of_expressions(selector).matches(other.labels)
    except ValueError:
        return False  # reported as an invalid value
