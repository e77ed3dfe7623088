"""Does an experiment of the tour on a cluster, in a namespace of its own, and takes everything away again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import orjson

from lastcall.endings import Ending, waits_of
from lastcall.kube.api import (
    DEPLOYMENTS,
    NAMESPACES,
    PODDISRUPTIONBUDGETS,
    PODS,
    SERVICEACCOUNTS,
    SERVICES,
    AnyObject,
    Object,
    Resource,
    StatusError,
    eviction,
    is_not_found,
    name_of,
    parse_rfc3339,
    uid_of,
)
from lastcall.kube.client import Client, ConnectionLost
from lastcall.records.language import LANGUAGES, translate
from lastcall.records.said import Said, joined, tell
from lastcall.ui.texts import Text
from lastcall.ui.tour.claims import checked, is_over
from lastcall.ui.tour.experiments import LABEL, Act, Experiment, Until
from lastcall.ui.tour.giving_up import Why, why_give_up
from lastcall.ui.tour.goals import check_goal, happened, verdict
from lastcall.ui.tour.seen import Answer, Seen
from lastcall.world.clock import monotonic, now
from lastcall.world.tasks import whole
from lastcall.world.world import World

KINDS: dict[str, Resource] = {each.kind: each for each in (DEPLOYMENTS, PODDISRUPTIONBUDGETS, PODS, SERVICES)}
MANAGED = {"app.kubernetes.io/managed-by": "lastcall-tour"}
BASELINE = {"pod-security.kubernetes.io/enforce": "baseline"}
"""The label of the tour's namespaces: nothing without it is touched."""
LOOK_SECONDS = 0.1
READY_SECONDS = 60.0
END_SECONDS = 90.0
LEFT_SECONDS = 600.0
"""A namespace of the tour that is older belongs to a run that was killed."""
CLEAN_SECONDS = 10.0
SETTLE_SECONDS = 0.3
"""Between Ready and the DELETE, so that endpoints and proxies know the Pod."""

_POD_TO_BE: dict[Until, Said] = {
    "ready": tell("the Pod to be ready"),
    "pending": tell("the Pod to be pending"),
    "finished": tell("the Pod to be finished"),
}

Show = Callable[[dict[str, Any]], None]
EndingOf = Callable[[str], Ending]


class TourError(Exception):
    """A run cannot go on; the text says what to do. `words` are those of the runtime or the scheduler behind it."""

    def __init__(self, text: Said, words: str = "") -> None:
        super().__init__(text)
        self.text, self.words = text, words


class Run:
    """One run of `experiment`. `ending_of(uid)` raises LookupError; `show` gets what the page draws, at each change.

    What is shown of a level also says whether its goal is reached.
    """

    def __init__(self, experiment: Experiment, client: Client, world: World, ending_of: EndingOf, show: Show) -> None:
        self._experiment = experiment
        self._client = client
        self._world = world
        self._ending_of = ending_of
        self._show = show
        self._namespace = f"lastcall-tour-{world.new_uid()[:5]}"
        self._why = Why()
        """What keeps the Pods from being Ready, and at last why the run has failed."""
        self._pod: AnyObject = {}
        self._answers: list[Answer] = []
        self._replaced: float | None = None
        self._began = 0.0
        self.over = False
        """Nothing more will be shown; it may still take its namespace away."""

    async def run(self) -> None:
        """Run to its end, or until it is cancelled; in both cases nothing of it stays. Errors are shown, not raised."""
        try:
            self._tell("preparing")
            await self._sweep()
            await self._prepare()
            await self._act()
            await self._watch_the_end()
            self._tell("done")
        except (StatusError, ConnectionLost, TourError, TimeoutError, OSError, RuntimeError) as error:
            # RuntimeError: the client was closed, because the cluster behind the page ended.
            self._why = _why_failed(error)
            self._tell("failed")
        except asyncio.CancelledError:
            self._tell("stopped")
            raise
        finally:
            self.over = True  # also after an error that nobody foresaw: no later step waits for this one
            await whole(self._clean())

    # -- before -------------------------------------------------------------------------------------------------------

    async def _sweep(self) -> None:
        """Take away what runs that were killed have left."""
        selector = ",".join(f"{key}={value}" for key, value in MANAGED.items())
        for namespace in (await self._client.list(NAMESPACES, label_selector=selector)).items:
            made = parse_rfc3339(namespace["metadata"]["creationTimestamp"])
            if (now(self._world.clock) - made).total_seconds() > LEFT_SECONDS:
                await remove_namespace(self._client, name_of(namespace))

    async def _prepare(self) -> None:
        meta = {"name": self._namespace, "labels": {**MANAGED, **BASELINE}}
        await self._client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        # Pods are refused until their namespace has its ServiceAccount.
        await self._until(self._has_account, READY_SECONDS, tell("the ServiceAccount default"))
        for made in self._experiment.objects:
            await self._client.create(KINDS[made["kind"]], orjson.loads(orjson.dumps(made)), self._namespace)
        self._tell("waiting")
        await self._until(self._is_far_enough, READY_SECONDS, _POD_TO_BE[self._experiment.until])
        await self._world.clock.sleep(SETTLE_SECONDS)

    async def _has_account(self) -> bool:
        return await self._read(SERVICEACCOUNTS, "default") is not None

    async def _is_far_enough(self) -> bool:
        pods = (await self._client.list(PODS, self._namespace)).items
        found = [each for each in pods if LABEL in (each["metadata"].get("labels") or {})]
        if not found:
            return False
        self._pod = found[0]
        if all(_is(self._experiment.until, pod) for pod in pods):
            return True
        if self._experiment.until == "ready":
            self._look_why(pods)
        return False

    def _look_why(self, pods: Sequence[Object]) -> None:
        """Show what keeps the Pods from being Ready. Raises TourError where waiting changes nothing."""
        for pod in pods:
            why = why_give_up(pod, now(self._world.clock))
            if why.text:
                raise TourError(why.text, why.words)
        found = next((each for pod in pods for each in waits_of(pod)), ())
        if (waits := joined(found, ": ")) != self._why.text:
            self._why = Why(waits)
            self._tell("waiting")

    # -- what is done -------------------------------------------------------------------------------------------------

    async def _act(self) -> None:
        self._began = monotonic(self._world.clock)
        for act in self._experiment.acts:
            if act.held:
                await self._until(self._is_held_or_gone, END_SECONDS, tell("the Pod to be held by its finalizers"))
            await self._world.clock.sleep(act.after)
            if act.held and await self._read(PODS, name_of(self._pod)) is None:
                continue
            self._answers.append(await self._done(act))
            self._tell("ending")

    async def _is_held_or_gone(self) -> bool:
        """As the kubelet's last DELETE leaves it: marked with 0, because there are finalizers."""
        pod = await self._read(PODS, name_of(self._pod))
        return pod is None or pod["metadata"].get("deletionGracePeriodSeconds") == 0

    async def _done(self, act: Act) -> Answer:
        name = name_of(self._pod)
        command = command_of(act, name, self._namespace, self._experiment)
        began = monotonic(self._world.clock)
        code, message, marked = 200, "", None
        try:
            answer = await self._asked(act, name)
        except StatusError as error:
            code, message = error.code, error.message
        else:
            marked = _marked(answer)
        return Answer(act.what, command, code, monotonic(self._world.clock) - began, message, marked)

    async def _asked(self, act: Act, name: str) -> Object:
        namespace = self._namespace
        if act.what == "delete":
            uid = uid_of(self._pod)
            return await self._client.delete(PODS, name, namespace, grace_period_seconds=act.grace, uid=uid)
        if act.what == "evict":
            body = eviction(name, namespace, {})
            return await self._client.create(PODS, body, namespace, name=name, subresource="eviction")
        if act.what == "patch":
            return await self._client.patch(PODS, name, {"metadata": {"finalizers": None}}, namespace)
        return await self._client.delete(PODDISRUPTIONBUDGETS, self._experiment.id.lower(), namespace)

    # -- afterwards ---------------------------------------------------------------------------------------------------

    async def _watch_the_end(self) -> None:
        await self._until(self._is_over, END_SECONDS, tell("the end of the Pod"))

    async def _is_over(self) -> bool:
        """Look whether the owner has made another Pod, and send the page how far everything is."""
        if self._owned and self._replaced is None:
            pods = (await self._client.list(PODS, self._namespace, label_selector=LABEL)).items
            if any(uid_of(each) != uid_of(self._pod) for each in pods):
                self._replaced = monotonic(self._world.clock) - self._began
        self._tell("ending")
        ending = self._ending()
        return ending is not None and is_over(ending) and (not self._owned or self._replaced is not None)

    @property
    def _owned(self) -> bool:
        return bool(self._pod.get("metadata", {}).get("ownerReferences"))

    def _ending(self) -> Ending | None:
        if not self._pod or not self._answers:
            return None
        with suppress(LookupError):
            ending = self._ending_of(uid_of(self._pod))
            return ending if ending.zero_kind else None
        return None

    async def _read(self, resource: Resource, name: str) -> Object | None:
        try:
            return await self._client.get(resource, name, self._namespace)
        except StatusError as error:
            if is_not_found(error):
                return None
            raise

    async def _until(self, is_so: Callable[[], Awaitable[bool]], seconds: float, what: Said) -> None:
        """Raises TourError after so many seconds."""
        ends = monotonic(self._world.clock) + seconds
        while not await is_so():
            if monotonic(self._world.clock) > ends:
                why = joined((": ", self._why.text), "") if self._why.text and not self._answers else ""
                text = tell("timed out waiting $seconds s for $what$why", seconds=f"{seconds:g}", what=what, why=why)
                raise TourError(text)
            await self._world.clock.sleep(LOOK_SECONDS)

    async def _clean(self) -> None:
        """Not longer than `CLEAN_SECONDS`: what is left then is taken away by a later run."""
        with suppress(StatusError, ConnectionLost, TimeoutError, OSError, RuntimeError):
            async with asyncio.timeout(CLEAN_SECONDS):
                await remove_namespace(self._client, self._namespace)

    def _result(self, ending: Ending | None, state: str) -> dict[str, Any]:
        """Of a level that is done, the goal with what was found, and which choices were right; None of others."""
        checks = right = None
        if ending is not None and state == "done" and self._experiment.expect is not None:
            # late: 250 ms, at the end of a level
            from lastcall.endings.render import ending_json

            document = ending_json(ending)
            checks = check_goal(self._experiment.goal, document)
            right = happened(self._experiment.expect, document)
        return {
            "goal": None if checks is None else [asdict(each) for each in checks],
            "verdict": None if checks is None else verdict(checks),
            "happened": right,
        }

    # -- what the page gets -------------------------------------------------------------------------------------------

    def _tell(self, state: str) -> None:
        self.over = state in ("done", "failed", "stopped")
        ending = self._ending()
        why = self._why if state == "failed" else Why()
        seen = Seen(ending, self._pod, self._answers, self._replaced) if ending is not None else None
        self._show(
            {
                "experiment": self._experiment.id,
                "namespace": self._namespace,
                "state": state,
                "error": in_each_language(why.text),
                "words": why.words,
                "pod": name_of(self._pod) if self._pod else "",
                # Before anything was asked of the Pod, its only end is that of the namespace.
                "uid": uid_of(self._pod) if self._answers else "",
                "waits": in_each_language(self._why.text if state == "waiting" else ""),
                "answers": [asdict(each) for each in self._answers],
                "claims": checked(seen, self.over),
                **self._result(ending, state),
                "guess": self._experiment.guess,
                "manifest": self._experiment.manifest,
                "grace": self._experiment.acts[0].grace,
            }
        )


def _why_failed(error: Exception) -> Why:
    if isinstance(error, TourError):
        return Why(error.text, error.words)
    return Why(tell("the cluster has ended")) if isinstance(error, RuntimeError) else Why(tell("$error", error=error))


async def remove_namespace(client: Client, name: str) -> None:
    """Delete the namespace, and the finalizers of its Pods, without which it would stay. Raises StatusError."""
    for pod in (await client.list(PODS, name)).items:
        if pod["metadata"].get("finalizers"):
            with suppress(StatusError):
                await client.patch(PODS, name_of(pod), {"metadata": {"finalizers": None}}, name)
    try:
        await client.delete(NAMESPACES, name)
    except StatusError as error:
        if not is_not_found(error):
            raise


def in_each_language(text: str) -> Text:
    """Return a text in each language; one that is no sentence of ours is the same in all."""
    return {each: str(translate(text, each)) for each in LANGUAGES}


def command_of(act: Act, name: str, namespace: str, experiment: Experiment) -> str:
    """Return the kubectl command that does the same."""
    where = f"{name} -n {namespace}"
    if act.what == "evict":
        body = orjson.dumps(eviction(name, namespace, {})).decode()
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        return f"echo '{body}' | kubectl create --raw {path} -f -"
    if act.what == "patch":
        return f'kubectl patch pod {where} --type=merge -p \'{{"metadata":{{"finalizers":null}}}}\''
    if act.what == "allow":
        return f"kubectl delete poddisruptionbudget {experiment.id.lower()} -n {namespace}"
    if act.grace == 0:
        return f"kubectl delete pod {where} --grace-period=0 --force"
    return f"kubectl delete pod {where}" + ("" if act.grace is None else f" --grace-period={act.grace}")


def _is(until: Until, pod: AnyObject) -> bool:
    status = pod.get("status") or {}
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    if until == "ready":
        return conditions.get("Ready") == "True"
    if until == "finished":
        return status.get("phase") in ("Succeeded", "Failed")
    return conditions.get("PodScheduled") == "False"


def _marked(answer: AnyObject) -> tuple[str, int] | None:
    meta = answer.get("metadata") or {}
    if not meta.get("deletionTimestamp"):
        return None
    return str(meta["deletionTimestamp"]), int(meta.get("deletionGracePeriodSeconds") or 0)
