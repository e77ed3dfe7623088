"""Each HorizontalPodAutoscaler is looked at when it is new or changed, and every 15 seconds.

Source: pkg/controller/podautoscaler/horizontal.go:reconcileAutoscaler.
"""

# check: observes because it writes the size of its targets

from typing import TYPE_CHECKING, Any

from lastcall.kube.api.errors import StatusError, is_conflict, is_not_found
from lastcall.kube.api.features.gates import HPA_SCALE_TO_ZERO, FeatureGates
from lastcall.kube.api.meta import Object, labels_of, name_of, namespace_of, resource_version_of, uid_of
from lastcall.kube.api.pods.spec import get_condition
from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.api.resources import (
    CUSTOMRESOURCEDEFINITIONS,
    HORIZONTALPODAUTOSCALERS,
    POD_METRICS,
    PODS,
    SERVED,
    Resource,
)
from lastcall.kube.api.selectors import parse_label_selector
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.informers import NAMESPACE, Fetch, Informers
from lastcall.kube.controllers.podautoscaler.names import COMPONENT
from lastcall.kube.controllers.podautoscaler.other_metrics import (
    OF_OTHERS,
    measure,
    measures_without_pods,
    question_of,
    status_of,
    values_of,
)
from lastcall.kube.controllers.podautoscaler.replicas import (
    TOLERANCE,
    MetricError,
    Tolerances,
    Wanted,
    by_utilization,
    by_value,
    measured_of,
)
from lastcall.kube.controllers.podautoscaler.scaling import (
    SCALED_TO_ZERO,
    Memory,
    Said,
    bounded,
    remember,
    said_of_zero,
    stays_at_zero,
    with_conditions,
)
from lastcall.kube.controllers.pods.control import owner_facts
from lastcall.kube.controllers.worker import Worker, split_key
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world.clock import monotonic, now, rfc3339_now
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.records.definitions.controllers import ScaleDecided

GENERATION_SINCE = 37
"""Autoscalers have a generation since 1.37 (kubernetes#138228, #138653)."""
SYNC_SECONDS = 15.0
"""--horizontal-pod-autoscaler-sync-period"""


class PodAutoscalerController:
    """`fetch` asks servers of other metrics; without it there are none."""

    def __init__(
        self,
        world: World,
        client: Client,
        informers: Informers,
        recorder: Recorder,
        gates: FeatureGates,
        fetch: Fetch | None = None,
    ) -> None:
        self._world, self._client, self._informers, self._recorder = world, client, informers, recorder
        self._gates = gates
        self._fetch = fetch
        self._events = EventRecorder(client, world, COMPONENT)
        self._worker = Worker(world, COMPONENT, self._sync, events=self._events)
        self._autoscalers: Informer[Object] = informers.get(HORIZONTALPODAUTOSCALERS)
        self._pods: Informer[Object] = informers.get(PODS)
        self._memories: dict[str, Memory] = {}
        self._due: dict[str, float] = {}
        """When each is to be looked at again."""
        self._autoscalers.add_handler(self._added, self._changed, self._gone)

    async def run(self) -> None:
        """Work until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{COMPONENT} events")
            tasks.spawn(self._worker.run([self._autoscalers, self._pods]), name=COMPONENT)

    def _added(self, autoscaler: Object) -> None:
        self._worker.queue.add(_key(autoscaler))

    def _changed(self, old: Object, new: Object) -> None:
        if old.get("spec") != new.get("spec"):
            self._worker.queue.add(_key(new))

    def _gone(self, autoscaler: Object) -> None:
        self._memories.pop(_key(autoscaler), None)
        self._due.pop(_key(autoscaler), None)

    async def _sync(self, key: str) -> None:
        namespace, name = split_key(key)
        autoscaler = self._autoscalers.get(namespace, name)
        if autoscaler is None:
            return
        moment = monotonic(self._world.clock)
        if moment >= self._due.get(key, 0.0):
            self._due[key] = moment + SYNC_SECONDS
            self._worker.queue.add_after(key, SYNC_SECONDS)
        await self._reconcile(key, autoscaler)

    async def _reconcile(self, key: str, autoscaler: Object) -> None:
        spec = autoscaler["spec"]
        if (scaled := await self._scale_of(autoscaler)) is None:
            return
        target, scale = scaled
        able = "the HPA controller was able to get the target's current scale"
        said = [Said("AbleToScale", "True", "SucceededGetScale", able)]
        current, least, most = scale["spec"].get("replicas", 0), spec.get("minReplicas", 1), spec["maxReplicas"]
        shown: Object = {"currentReplicas": (scale.get("status") or {}).get("replicas", 0)}
        metrics: list[Object] | None = None
        if current == 0 and self._stays_at_zero(autoscaler, least):
            why = "scaling is disabled since the replica count of the target is zero"
            said.append(Said("ScalingActive", "False", "ScalingDisabled", why))
            nothing: Object = {"currentReplicas": current, "desiredReplicas": 0, "currentMetrics": None}
            await self._write(autoscaler, tuple(said), nothing)
            return
        if current > most:
            wanted, reason = most, "Current number of replicas above Spec.MaxReplicas"
        elif current < least and not (current == 0 and measures_without_pods(spec)):
            wanted, reason = least, "Current number of replicas below Spec.MinReplicas"
        else:
            try:
                proposed, metric, metrics = await self._by_metrics(autoscaler, scale, current, said)
            except MetricError as error:
                self._events.event(autoscaler, "Warning", "FailedComputeMetricsReplicas", str(error))
                shown["currentMetrics"] = [{"type": ""} for _ in spec.get("metrics") or ()]
                await self._write(autoscaler, tuple(said), shown)
                return
            reason = f"{metric} above target" if proposed > current else "All metrics below target"
            memory = self._memories.setdefault(key, Memory())
            moment = monotonic(self._world.clock)
            found = bounded(memory, spec.get("behavior"), current, proposed, least, most, moment)
            wanted = found.replicas
            said += found.said
        if wanted != current and not await self._rescale(autoscaler, target, scale, wanted, reason, said):
            await self._write(autoscaler, tuple(said), shown)
            return
        shown |= {"desiredReplicas": wanted, "currentMetrics": metrics}
        if wanted != current:
            memory = self._memories.setdefault(key, Memory())
            remember(memory, spec.get("behavior"), current, wanted, monotonic(self._world.clock))
            shown["lastScaleTime"] = rfc3339_now(self._world.clock)
            said += self._said_of_zero(autoscaler, current, wanted, least)
        await self._write(autoscaler, tuple(said), shown)

    def _stays_at_zero(self, autoscaler: Object, least: int) -> bool:
        condition = get_condition(autoscaler.get("status") or {}, SCALED_TO_ZERO)
        scaled = self._gates.enabled(HPA_SCALE_TO_ZERO) and condition is not None and condition.get("status") == "True"
        return stays_at_zero(least, scaled=scaled, measurable=measures_without_pods(autoscaler["spec"]))

    def _said_of_zero(self, autoscaler: Object, current: int, wanted: int, least: int) -> list[Said]:
        if not self._gates.enabled(HPA_SCALE_TO_ZERO):
            return []
        measurable = measures_without_pods(autoscaler["spec"])
        return [said_of_zero(current, wanted, least, measurable=measurable)]

    async def _scale_of(self, autoscaler: Object) -> tuple[Resource, Object] | None:
        """Return the target and its scale; None if there is none, which is written to the status."""
        reference = autoscaler["spec"]["scaleTargetRef"]
        try:
            target = await self._target(reference)
            name, namespace = reference["name"], namespace_of(autoscaler)
            return target, await self._client.get(target, name, namespace, subresource="scale")
        except (StatusError, LookupError) as error:
            words = _words(error)
            self._events.event(autoscaler, "Warning", "FailedGetScale", words)
            unable = f"the HPA controller was unable to get the target's current scale: {words}"
            await self._write(autoscaler, (Said("AbleToScale", "False", "FailedGetScale", unable),), {})
            return None

    # -- the target --------------------------------------------------------------------------------------------------

    async def _target(self, reference: Object) -> Resource:
        """Raises StatusError and LookupError."""
        group, _, version = (reference.get("apiVersion") or "v1").rpartition("/")
        kind = reference.get("kind", "")
        for each in SERVED:
            if (each.group, each.kind) == (group, kind):
                return each
        definitions: Informer[Object] = self._informers.get(CUSTOMRESOURCEDEFINITIONS)
        await definitions.synced()
        for definition in definitions.items():
            spec = definition["spec"]
            if (spec["group"], spec["names"]["kind"]) == (group, kind):
                return Resource(group, version, spec["names"]["plural"], kind, True, subresources=("scale",))
        raise LookupError(f'no matches for kind "{kind}" in group "{group}"')

    async def _plural(self, spec: Object) -> str:
        """Return that of the kind of the object that a metric describes, "" where it is not known or there is none.

        Kubernetes asks its RESTMapper. A kind of an aggregated API server is not known here.
        """
        if spec["type"] != "Object":
            return ""
        try:
            return (await self._target(spec["object"]["describedObject"])).plural
        except LookupError:
            return ""

    async def _rescale(
        self, autoscaler: Object, target: Resource, scale: Object, wanted: int, reason: str, said: list[Said]
    ) -> bool:
        changed = {**scale, "spec": {**scale["spec"], "replicas": wanted}}
        try:
            written = await self._client.update(target, changed, namespace_of(autoscaler), subresource="scale")
        except StatusError as error:
            text = f"New size: {wanted}; reason: {reason}; error: {_words(error)}"
            self._events.event(autoscaler, "Warning", "FailedRescale", text)
            why = f"the HPA controller was unable to update the target scale: {_words(error)}"
            said.append(Said("AbleToScale", "False", "FailedUpdateScale", why))
            return False
        self._record_scale(autoscaler, scale, written, reason)
        why = f"the HPA controller was able to update the target scale to {wanted}"
        said.append(Said("AbleToScale", "True", "SucceededRescale", why))
        self._events.event(autoscaler, "Normal", "SuccessfulRescale", f"New size: {wanted}; reason: {reason}")
        return True

    def _record_scale(self, autoscaler: Object, before: Object, written: Object, reason: str) -> None:
        """The target was written with this resourceVersion: the story joins the two by it."""
        facts: ScaleDecided = {
            **owner_facts({"kind": HORIZONTALPODAUTOSCALERS.kind, **autoscaler}),
            "step": "scaling",
            "revision": "",
            "ofKind": autoscaler["spec"]["scaleTargetRef"].get("kind", ""),
            "name": name_of(written),
            "uid": uid_of(written),
            "generation": 0,
            "resourceVersion": resource_version_of(written),
            "from": before["spec"].get("replicas", 0),
            "to": written["spec"].get("replicas", 0),
            "why": reason,
        }
        self._recorder.record(kinds.SCALE_DECIDED, rule=rules.RECONCILE_AUTOSCALER, facts=facts)

    # -- metrics -----------------------------------------------------------------------------------------------------

    async def _by_metrics(
        self, autoscaler: Object, scale: Object, current: int, said: list[Said]
    ) -> tuple[int, str, list[Object]]:
        """(replicas, the metric that wants most, what is shown of each). Raises MetricError.

        (`computeReplicasForMetrics`)
        """
        selector = (scale.get("status") or {}).get("selector", "")
        if not selector:
            why = "the HPA target's scale is missing a selector"
            self._events.event(autoscaler, "Warning", "SelectorRequired", "selector is required")
            said.append(Said("ScalingActive", "False", "InvalidSelector", why))
            raise MetricError("selector is required")
        specs = autoscaler["spec"].get("metrics") or []
        best, name, statuses = 0, "", []
        failures: list[tuple[str, str, str]] = []
        for spec in specs:
            try:
                wanted, shown, status = await self._by_metric(autoscaler, spec, selector, current)
            except MetricFailure as failure:
                failures.append((failure.reason, failure.words, failure.outer))
                statuses.append({"type": ""})
                continue
            statuses.append(status)
            if not name or wanted > best:
                best, name = wanted, shown
        if failures and (len(failures) >= len(specs) or best < current):
            reason, words, outer = failures[0]
            self._events.event(autoscaler, "Warning", reason, words)
            why = f"the HPA was unable to compute the replica count: {words}"
            said.append(Said("ScalingActive", "False", reason, why))
            raise MetricError(f"invalid metrics ({len(failures)} invalid out of {len(specs)}), first error is: {outer}")
        why = f"the HPA was able to successfully calculate a replica count from {name}"
        said.append(Said("ScalingActive", "True", "ValidMetricFound", why))
        return best, name, statuses

    async def _by_metric(
        self, autoscaler: Object, spec: Object, selector: str, current: int
    ) -> tuple[int, str, Object]:
        """Raises MetricFailure."""
        type_ = spec.get("type", "")
        if type_ in OF_OTHERS:
            return await self._by_others(autoscaler, spec, selector, current)
        field = "resource" if type_ == "Resource" else "containerResource"
        source, container = spec[field], spec[field].get("container", "")
        resource, target = source["name"], source["target"]
        utilization = target.get("averageValue") is None
        try:
            wanted = await self._wanted(autoscaler, resource, container, target, selector, current)
        except MetricError as error:
            words = f"failed to get {resource} {'utilization' if utilization else 'usage'}: {error}"
            outer = f"failed to get {resource} {'container' if container else 'resource'} metric value: {words}"
            raise MetricFailure(f"FailedGet{type_}Metric", words, outer) from None
        measured: Object = {"averageValue": _shown(resource, wanted.average)}
        if wanted.utilization is not None:
            measured["averageUtilization"] = wanted.utilization
        status = {**({"container": container} if container else {}), "name": resource, "current": measured}
        shown = f"{resource} {'container ' if container else ''}resource"
        shown += " utilization (percentage of request)" if utilization else ""
        return wanted.replicas, shown, {"type": type_, field: status}

    async def _by_others(
        self, autoscaler: Object, spec: Object, selector: str, current: int
    ) -> tuple[int, str, Object]:
        """Return the same of a metric that another server measures. Raises MetricFailure."""
        namespace, type_ = namespace_of(autoscaler), spec["type"]
        question = question_of(spec, namespace, selector, await self._plural(spec))
        try:
            values = await values_of(self._fetch, spec, question)
        except MetricError as error:
            name = spec[OF_OTHERS[type_]]["metric"]["name"]
            what = f"external metric {name}" if type_ == "External" else f"{type_.lower()} metric value"
            raise MetricFailure(f"FailedGet{type_}Metric", str(error), f"failed to get {what}: {error}") from None
        labels = parse_label_selector(selector)
        pods = [each for each in self._pods.by_index(NAMESPACE, namespace) if labels.matches(labels_of(each))]
        found = measure(spec, values, current, pods, _tolerances(autoscaler["spec"].get("behavior") or {}))
        return found.replicas, question.shown, status_of(spec, found.current)

    async def _wanted(
        self, autoscaler: Object, resource: str, container: str, target: Object, selector: str, current: int
    ) -> Wanted:
        """Raises MetricError."""
        namespace = namespace_of(autoscaler)
        begins = f"unable to get metrics for resource {resource}: "
        try:
            items = (await self._client.list(POD_METRICS, namespace, label_selector=selector)).items
        except StatusError as error:
            words = f"{_words(error)} (get pods.metrics.k8s.io)"
            raise MetricError(f"{begins}unable to fetch metrics from resource metrics API: {words}") from None
        if not items:
            raise MetricError(f"{begins}no metrics returned from resource metrics API")
        try:
            measured = measured_of(items, resource, container)
        except MetricError as error:
            raise MetricError(f"{begins}failed to get container metrics: {error}") from None
        labels = parse_label_selector(selector)
        pods = [each for each in self._pods.by_index(NAMESPACE, namespace) if labels.matches(labels_of(each))]
        moment, tolerances = now(self._world.clock), _tolerances(autoscaler["spec"].get("behavior") or {})
        if target.get("averageValue") is not None:
            value = parse_quantity(target["averageValue"]).milli
            return by_value(current, value, pods, measured, resource, moment, tolerances)
        percent = target.get("averageUtilization") or 100
        return by_utilization(current, percent, pods, measured, resource, container, moment, tolerances)

    # -- the status --------------------------------------------------------------------------------------------------

    async def _write(self, autoscaler: Object, said: tuple[Said, ...], shown: Object) -> None:
        old = autoscaler.get("status") or {}
        generation = autoscaler["metadata"].get("generation") if self._gates.minor >= GENERATION_SINCE else None
        conditions = with_conditions(old.get("conditions") or [], said, rfc3339_now(self._world.clock), generation)
        status = {**old, **shown, "conditions": conditions}
        if generation is not None:
            status["observedGeneration"] = generation
        if not status.get("currentReplicas"):
            status.pop("currentReplicas", None)
        status.setdefault("desiredReplicas", 0)
        status.setdefault("currentMetrics", None)
        if status == old:
            return
        try:
            written = {**autoscaler, "status": status}
            namespace = namespace_of(autoscaler)
            await self._client.update(HORIZONTALPODAUTOSCALERS, written, namespace, subresource="status")
        except StatusError as error:
            if not (is_conflict(error) or is_not_found(error)):
                raise


class MetricFailure(Exception):
    """`words` for the condition, `outer` for the Event that sums up."""

    def __init__(self, reason: str, words: str, outer: str) -> None:
        super().__init__(words)
        self.reason, self.words, self.outer = reason, words, outer


def _key(autoscaler: Object) -> str:
    return f"{namespace_of(autoscaler)}/{name_of(autoscaler)}"


def _words(error: Exception) -> str:
    return str(error.status.get("message", error)) if isinstance(error, StatusError) else str(error)


def _shown(resource: str, milli: int) -> str:
    """Amounts of memory are whole bytes."""
    return str(parse_quantity(f"{milli}m" if resource == "cpu" else milli // 1000))


def _tolerances(behavior: Object) -> Tolerances:
    def of(direction: str) -> float:
        given: Any = (behavior.get(direction) or {}).get("tolerance")
        return TOLERANCE if given is None else float(parse_quantity(given).value)

    return Tolerances(of("scaleDown"), of("scaleUp"))
