"""`lastcall rollout --context`: disrupts a workload of somebody's cluster under load, and puts back what it changed."""

# check: long functions ExistingRollout._disrupted because it waits for the one session of all commands

import asyncio
import math
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lastcall.endings import said
from lastcall.errors import UserError, WorldError
from lastcall.experiment.existing.changes import Changes, is_settled
from lastcall.experiment.existing.connection import Reached
from lastcall.experiment.existing.copy import Taking, parsed_workload
from lastcall.experiment.existing.entrance import (
    Entrance,
    is_even,
    is_local,
    is_own,
    of_inside,
    of_service,
    of_url,
)
from lastcall.experiment.existing.handshake import check_handshake
from lastcall.experiment.existing.ledger import REPLICAS, RESTARTED_AT, claim_templates
from lastcall.experiment.existing.plan import (
    Plan,
    check_copy,
    check_namespace,
    of_copy,
    of_rollout,
    replicas_after,
    taken_claims,
)
from lastcall.experiment.existing.pod_ends import LATE_SECONDS, Following
from lastcall.experiment.existing.pod_load import PodLoad, start_in_pod
from lastcall.experiment.existing.retries import PatientClient
from lastcall.experiment.not_simulated import Note, of_load
from lastcall.experiment.rollout.disruption import Disruption
from lastcall.experiment.rollout.result import Result
from lastcall.experiment.rollout.target import Target, find_target, never_heard, serving_container
from lastcall.experiment.rollout.waiting import LOOK_SECONDS, Waiting
from lastcall.kube.api import (
    NAMESPACES,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    SERVICES,
    Object,
    Resource,
    StatusError,
    is_not_found,
    name_of,
    namespace_of,
    selector_of_expressions,
)
from lastcall.kube.client import commands_for
from lastcall.manifests import Document, Manifest, Place
from lastcall.records.said import tell
from lastcall.trace import Target as Followed
from lastcall.traffic import (
    Account,
    Control,
    Judgement,
    Load,
    LoadClient,
    Outcome,
    PodLife,
    Traced,
    account,
    asks_the_application,
    judge,
    listens_when_ready,
    reached,
    reasons,
    serving_containers,
    silent_before,
    with_causes,
    with_lags,
)
from lastcall.world.clock import Clock, monotonic, now, rfc3339
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.experiment.rollout.options import RolloutOptions

WAYS = ("rollout", "scale-in", "delete", "evict")
"""A drain would end the Pods of others."""

Confirm = Callable[[Plan], None]
"""Raises UserError where nobody said yes."""


@dataclass(slots=True)
class ExistingRollout:
    """`run` once. `asked` is KIND/NAME. With a source of "pod" requests come from a Pod of `image`, else from here: to
    `url`, or, if that is "", to what the Service offers outside. With `copy_to` a copy there is disrupted.
    `url_ca` has the certificates, as PEM, that are trusted at an https `url`; "" is whom this machine trusts."""

    cluster: Reached
    options: "RolloutOptions"
    asked: str
    url: str
    image: str
    copy_to: str
    url_ca: str
    confirm: Confirm
    say: Callable[[str], None] = lambda text: None
    show: Callable[[float, float, str], None] = lambda at, waited, text: None
    world: World = field(default_factory=World)
    before_load: Callable[[Target, Following], Awaitable[None]] | None = None
    """Awaited when it is allowed, before its Pods are followed and before the first request."""
    began: float | None = None
    """The moment of the disruption, by the monotonic clock."""
    foreign: set[str] = field(default_factory=set)
    """As `RolloutSession` has them: none here."""
    outcomes: list[Outcome] = field(default_factory=list)
    _concluded: Callable[[], Traced] | None = None
    _client: PatientClient = field(init=False)

    def __post_init__(self) -> None:
        self._client = PatientClient(self.cluster.client, self.world.clock)

    @property
    def clock(self) -> Clock:
        return self.world.clock

    def traced(self) -> Traced | None:
        """What is known of its Pods' ends by now; None before requests are sent."""
        return self._concluded() if self._concluded is not None else None

    async def run(self) -> Result:
        """Raises UserError, WorldError, StatusError, ConnectionLost."""
        namespace, disrupt = self.cluster.namespace, self.options.disrupt
        check_namespace(namespace)
        if disrupt not in WAYS:
            raise UserError(
                f"--disrupt {disrupt} ends Pods of others, too: on a cluster that is not lastcall's own it is refused\n"
                f"fix: one of {', '.join(WAYS)}"
            )
        if self.copy_to:
            return await self._with_a_copy()
        _, name = parsed_workload(self.asked)
        owner = await self._workload(name)
        if not is_settled(owner):
            raise UserError(
                f"{self.asked} is not settled: not all of its Pods are of the newest template and available\n"
                "fix: wait for it (kubectl rollout status), or repair it first"
            )
        target = await self._target(owner)
        entrance = await self._entrance(target)
        if entrance.tls_name:
            await check_handshake(entrance, self.url_ca)
        pods = await self._own_pods(owner)
        steps, restored = self._planned(owner, len(pods), entrance.told)
        self.confirm(Plan(self.cluster.context, self.cluster.server, namespace, steps, restored))
        changes = Changes(self._client, namespace, self.world)
        try:
            return await self._disrupted(target, owner, pods, entrance, self._waiting(target.workload), changes)
        finally:
            await self._put_back(changes)

    async def _with_a_copy(self) -> Result:
        """All of it in another namespace, where nothing is but what is copied."""
        source, copy_to = self.cluster, self.copy_to
        check_copy(source.namespace, copy_to)
        await self._check_scratch()
        taken = await Taking(source.client, source.where, source.namespace, stays=True).run(self.asked)
        workload = taken.manifests[-1].obj
        await self._check_claims(workload)
        copy, removed = of_copy(source.namespace, taken.manifests)
        steps, _ = self._planned(workload, workload["spec"].get("replicas", 1), "the copy of its Service")
        self.confirm(Plan(source.context, source.server, copy_to, (copy, *steps), (*removed, "delete that Pod")))
        changes = Changes(self._client, copy_to, self.world)
        try:
            for each in taken.manifests:
                await changes.create(each.resource, each.obj)
            self.cluster = replace(source, namespace=copy_to)
            owner = await self._workload(name_of(workload))
            target = await self._target(owner)
            waiting = self._waiting(target.workload)
            self.say(tell("waiting for the copy in $namespace to be Ready", namespace=copy_to))
            await waiting.until(waiting.settled, "the copy's Pods to become available")
            pods, entrance = await self._own_pods(owner), await self._entrance(target)
            result = await self._disrupted(target, owner, pods, entrance, waiting, changes)
            return replace(result, notes=(*taken.notes, *result.notes))
        finally:
            await self._put_back(changes)

    async def _check_scratch(self) -> None:
        try:
            await self._client.get(NAMESPACES, self.copy_to)
        except StatusError as error:
            if is_not_found(error):
                raise UserError(
                    f"--copy-to {self.copy_to}: {self.cluster.where} has no such namespace\n"
                    f"fix: kubectl --context {self.cluster.context} create namespace {self.copy_to}"
                ) from error
            if error.code != 403:  # a user without that right can still have those for what is in it
                raise

    async def _check_claims(self, workload: Object) -> None:
        if not claim_templates(workload):
            return
        claims = (await self._client.list(PERSISTENTVOLUMECLAIMS, self.copy_to)).items
        if taken := taken_claims(workload, [name_of(each) for each in claims]):
            raise UserError(
                f"--copy-to {self.copy_to}: the copy would take claims that are there: {', '.join(taken)}\n"
                "fix: name another namespace, an empty one"
            )

    async def _put_back(self, changes: Changes) -> None:
        if changes.id:
            self.say(tell("puts back what was changed"))
            await changes.restore(self.say)

    def _planned(self, owner: Object, pods: int, entrance: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(steps, restored)"""
        disrupt = self.options.disrupt
        resource, _ = parsed_workload(self.asked)
        steps, restored = of_rollout(resource, owner, pods, disrupt, "delete" if disrupt == "delete" else "evict")
        steps = (f"send {sum(self.options.load.rates.values()):g} requests a second to {entrance}", *steps)
        if self._from_pod:
            steps = (f"create a Pod of image {self.image}, which sends requests", *steps)
            restored = (*restored, "delete that Pod")
        return steps, restored

    async def _target(self, owner: Object) -> Target:
        resource, _ = parsed_workload(self.asked)
        return find_target([_manifest(owner, resource), *await self._services()], self.options)

    @property
    def _from_pod(self) -> bool:
        return self.options.source == "pod"

    async def _entrance(self, target: Target) -> Entrance:
        if self.url:
            return of_url(self.url)
        if self._from_pod:
            return of_inside(target.service.obj, target.port)
        return of_service(target.service.obj, target.port, await self._nodes())

    async def _workload(self, name: str) -> Object:
        resource, _ = parsed_workload(self.asked)
        try:
            found: Object = await self._client.get(resource, name, self.cluster.namespace)
        except StatusError as error:
            if not is_not_found(error):
                raise
            where = f"{self.cluster.where}: namespace {self.cluster.namespace}"
            raise UserError(f"{where} has no {resource.kind} {name}\nfix: name its namespace with -n") from error
        return {**found, "kind": resource.kind, "apiVersion": resource.api_version}

    async def _services(self) -> list[Manifest]:
        listed = await self._client.list(SERVICES, self.cluster.namespace)
        return [_manifest({**each, "kind": "Service", "apiVersion": "v1"}, SERVICES) for each in listed.items]

    async def _nodes(self) -> list[Object]:
        try:
            found: list[Object] = (await self._client.list(NODES)).items
        except StatusError:
            return []
        return found

    async def _own_pods(self, owner: Object) -> list[Object]:
        wanted = selector_of_expressions(owner["spec"].get("selector"))
        listed = await self._client.list(PODS, self.cluster.namespace)
        return [
            each
            for each in listed.items
            if wanted.matches(each["metadata"].get("labels") or {}) and "deletionTimestamp" not in each["metadata"]
        ]

    def _waiting(self, workload: Manifest) -> Waiting:
        return Waiting(
            client=lambda: self._client,
            clock=self.clock,
            workload=workload,
            records=[],
            limit=self.options.timeout,
            show=self.show,
            died=asyncio.Event(),
            death=lambda: "",
            version=self.options.kubernetes_version,
        )

    async def _disrupted(
        self,
        target: Target,
        owner: Object,
        pods: Sequence[Object],
        entrance: Entrance,
        waiting: Waiting,
        changes: Changes,
    ) -> Result:
        address = await self._resolved(entrance)
        following = self._following(owner, target)
        if self.before_load is not None:
            await self.before_load(target, following)
        direct = await self._is_direct(replace(entrance, address=address), target)
        async with AsyncExitStack() as stack, Tasks() as tasks:
            watching = tasks.spawn(following.run(), name="following")
            if not await following.synced():
                self.say(tell("its Pods cannot be followed: why requests are lost will not be known"))
            since = monotonic(self.clock)
            load = await self._started(stack, self._load_of(entrance, address), changes)
            self._concluded = lambda: self._traced(following, target, since, load, direct)
            collecting = tasks.spawn(self._collect(load), name="outcomes")
            self.say(
                tell(
                    "$seconds s of requests to $entrance before anything is disrupted",
                    seconds=f"{self.options.control:g}",
                    entrance=entrance.told,
                )
            )
            unheard = await self._control(owner, target)
            began = following.began = monotonic(self.clock)
            if unheard is None:
                self.began = began
                self.say(tell("$disruption begins", disruption=self.options.disrupt))
                await self._disrupt(target.workload, pods, changes)
                await waiting.until(waiting.over, f"the {self.options.disrupt} to be over")
            seconds = monotonic(self.clock) - began
            if unheard is None:
                self.say(tell("$disruption is over; the last requests", disruption=self.options.disrupt))
                await self.clock.sleep(self.options.settle)
            load.stop()
            await collecting
            await self.clock.sleep(max(0.0, LATE_SECONDS - self.options.settle))
            watching.cancel()
        moment = began if unheard is None else math.inf
        found = account(self.outcomes, [], (), moment, begun=load.begun, whole_output=False)
        found = with_causes(found, self._traced(following, target, since, load, direct))
        lives = following.lives()
        judgement = unheard or self._judge(found, with_lags(found, lives), owner, target)
        return Result(
            account=found,
            judgement=judgement,
            lives=lives,
            outcomes=self.outcomes,
            owner=owner,
            what=f"{target.workload.resource.kind} {name_of(owner)}",
            service=name_of(target.service.obj),
            disrupt=self.options.disrupt,
            propagation="",
            source=self.options.source,
            began=began,
            seconds=seconds,
            unheard=unheard is not None,
            notes=(*self._notes(found, entrance, load, following), *of_load(self.outcomes)),
        )

    def _following(self, owner: Object, target: Target) -> Following:
        resource, name = target.workload.resource, name_of(owner)
        _, serving = serving_containers(owner["spec"]["template"]["spec"], target.container_port)
        followed = Followed(resource.kind, name)
        return Following(self.cluster, followed, self.world, frozenset(serving))

    async def _is_direct(self, entrance: Entrance, target: Target) -> bool:
        """Whether only nodes' rules for the Service are between the client and the Pods."""
        return not self.url or is_own(entrance, target.service.obj, await self._nodes())

    def _traced(
        self, following: Following, target: Target, since: float, load: LoadClient | PodLoad, direct: bool
    ) -> Traced:
        error = load.offset.error if isinstance(load, PodLoad) else 0.0
        pods = following.bounded_lives()
        ends = [each.deleted.earliest for each in pods if each.deleted is not None]
        service = target.service.obj["spec"]
        container = serving_container(target.workload.obj["spec"]["template"]["spec"], target.container_port)
        unready = bool(service.get("publishNotReadyAddresses"))
        return Traced(
            pods,
            since,
            error,
            printed=following.printed(),
            probed=listens_when_ready(container, target.container_port) and not unready,
            whole_service=not (is_local(target.service.obj) or following.has_gaps),
            silent_before=silent_before(self.outcomes, min(ends, default=math.inf), error),
            failed=following.failed,
            direct=direct,
            reached=reached(self.outcomes) if direct and is_even(target.service.obj, self._from_pod) else (),
        )

    async def _started(self, stack: AsyncExitStack, load: Load, changes: Changes) -> LoadClient | PodLoad:
        if self._from_pod:
            generator = await start_in_pod(self.cluster, changes, self.clock, self.image, load, self.options.timeout)
            await generator.start()
            return generator
        client = await LoadClient.on_host()
        stack.callback(client.close)
        client.start(load)
        return client

    async def _disrupt(self, workload: Manifest, pods: Sequence[Object], changes: Changes) -> None:
        name, disrupt = name_of(workload.obj), self.options.disrupt
        if disrupt == "rollout":
            await changes.change(workload.resource, name, RESTARTED_AT, rfc3339(now(self.clock)))
        elif disrupt == "scale-in":
            await changes.change(workload.resource, name, REPLICAS, replicas_after(len(pods)))
        else:
            disruption = Disruption(
                client=self.cluster.client,
                clock=self.clock,
                workload=workload,
                how=disrupt,
                timeout=self.options.timeout,
                waiting=lambda waited, text: self.show(monotonic(self.clock), waited, text),
            )
            await disruption.begin(pods)

    async def _resolved(self, entrance: Entrance) -> str:
        """One address for all requests: a name that is looked up each time would be measured, too."""
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(entrance.address, entrance.port, family=socket.AF_INET)
        except OSError as error:
            raise WorldError(f"{entrance.address} has no address: {error.strerror or error}") from error
        return str(found[0][4][0])

    def _load_of(self, entrance: Entrance, address: str) -> Load:
        return replace(
            self.options.load,
            target=(address, entrance.port),
            host=entrance.host,
            tls_name=entrance.tls_name,
            ca_pem=self.url_ca,
            own_ports=True,
        )

    async def _collect(self, load: LoadClient | PodLoad) -> None:
        async for outcome in load.outcomes():
            self.outcomes.append(outcome)

    async def _control(self, owner: Object, target: Target) -> Judgement | None:
        """As `RolloutSession` does: None when requests have shown enough, else why they never will."""
        container = serving_container(owner["spec"]["template"]["spec"], target.container_port)
        control = Control(monotonic(self.clock), self.options.control, asks_the_application(container))
        await self.clock.sleep(self.options.control)
        while (decision := control.decide(self.outcomes, at := monotonic(self.clock))) == "wait":
            self.show(at, at - control.began, "answers: requests are lost before anything is disrupted")
            await self.clock.sleep(LOOK_SECONDS)
        if decision == "go":
            return None
        return never_heard(self.outcomes, monotonic(self.clock) - control.began, target, container)

    def _judge(self, found: Account, lives: Sequence[PodLife], owner: Object, target: Target) -> Judgement:
        disrupt, path = self.options.disrupt, self.options.load.path
        return judge(found, lives, owner, target.container_port, disrupt=disrupt, path=path)

    def _notes(
        self, found: Account, entrance: Entrance, load: LoadClient | PodLoad, following: Following
    ) -> list[Note]:
        facts = {"where": self.cluster.where, "workload": self.asked, "namespace": self.cluster.namespace}
        notes = [Note("onACluster", "", said("onACluster", entrance=entrance.told, **facts))]
        if isinstance(load, PodLoad):
            notes.append(Note("onACluster", "", said("onACluster", "clock", offset=load.offset.text)))
        if offset := following.told_clocks():
            notes.append(Note("onACluster", "", said("onACluster", "server", offset=offset)))
        if following.has_gaps:
            notes.append(Note("onACluster", "", said("onACluster", "gap")))
        notes += [Note("onACluster", "", each.sentence) for each in following.missing]
        for command in commands_for(right for each in following.missing for right in each.rights):
            notes.append(Note("onACluster", "", said("onACluster", "right", command=command)))
        for why, count in reasons(found):
            notes.append(Note("onACluster", "", said("onACluster", "notKnown", count=count, why=why)))
        if reasons(found):
            notes.append(Note("onACluster", "", said("onACluster", "causes", context=self.cluster.context, **facts)))
        return notes


def _manifest(obj: Object, resource: Resource) -> Manifest:
    place = Place(f"{namespace_of(obj)}/{name_of(obj)}", Document(obj, 1, 1))
    return Manifest(obj, resource, place)
