"""A rollout on an existing cluster: a plan that is agreed to, a ledger of each change, and all of it put back."""

import asyncio
import math
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from lastcall.endings import said
from lastcall.endings.render import AboutCluster, about_cluster
from lastcall.errors import UserError, WorldError
from lastcall.experiment.existing.copy import Taking
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
from lastcall.experiment.existing.kinds import find_kind
from lastcall.experiment.existing.ledger import claim_templates, was
from lastcall.experiment.existing.namespace import ExistingNamespace
from lastcall.experiment.existing.plan import (
    check_copy,
    check_namespace,
    of_copy,
    of_requests,
    of_rollout,
    taken_claims,
)
from lastcall.experiment.existing.pod_ends import LATE_SECONDS, Following
from lastcall.experiment.existing.pod_load import PodLoad, start_in_pod
from lastcall.experiment.load_notes import of_answers, of_load
from lastcall.experiment.not_simulated import Note
from lastcall.experiment.ready.custom import scaled, why_unsettled
from lastcall.experiment.ready.readiness import is_custom, unsettled
from lastcall.experiment.rollout.custom import check_scale_in, check_template
from lastcall.experiment.rollout.fields import RESTARTED_AT
from lastcall.experiment.rollout.target import serving_container, target_of
from lastcall.experiment.rollout.workload import kubectl_name, of_pod
from lastcall.experiment.rollout.workspace import Experiment, Observed, RolloutWorkspace, Sending
from lastcall.kube.api import (
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
from lastcall.manifests import Applied, Document, Manifest, Place
from lastcall.records.said import tell
from lastcall.trace import Target as Followed
from lastcall.traffic import (
    Account,
    LoadClient,
    Traced,
    account,
    listens_when_ready,
    reached,
    reasons,
    serving_containers,
    silent_before,
    with_causes,
    with_lags,
)
from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks

if TYPE_CHECKING:
    from lastcall.experiment.rollout.options import RolloutOptions

WAYS = ("rollout", "scale-in", "delete", "evict")
"""A drain would end the Pods of others."""


@dataclass(slots=True, kw_only=True)
class ExistingWorkspace(ExistingNamespace, RolloutWorkspace):
    """`asked` is KIND/NAME, or KIND.GROUP/NAME of a kind that Kubernetes does not have. With a source of "pod" requests
    come from a Pod of `image`, else from here: to `url`, or, if that is "", to what the Service offers outside. With
    `copy_to` a copy there is disrupted. `url_ca` has the certificates, as PEM, that are trusted at an https `url`; ""
    is whom this machine trusts."""

    asked: str
    url: str
    image: str
    copy_to: str
    url_ca: str
    silence: ClassVar[str] = "answers: requests are lost before anything is disrupted"
    following: Following = field(init=False)
    """Set when everything is agreed to."""
    _kind: Resource = field(init=False)
    _name: str = ""
    _selector: str = ""
    """Of the Pods of a kind that Kubernetes does not have."""
    _entrance: Entrance = field(init=False)
    _pods: Sequence[Object] = ()
    _copied: Sequence[Note] = ()
    _load: LoadClient | PodLoad | None = None
    _since: float = 0.0
    _direct: bool = False

    def about(self, now: Experiment) -> AboutCluster:
        return about_cluster(self.cluster.minor_version, context=self.cluster.context)

    # -- to what is agreed --------------------------------------------------------------------------------------------

    async def prepare(self, now: Experiment) -> None:
        """Look, tell the plan, and make a copy where one is asked for."""
        check_namespace(self.cluster.namespace)
        if now.options.disrupt not in WAYS:
            raise UserError(
                f"--disrupt {now.options.disrupt} ends Pods of other workloads, too, so lastcall does not do it on an "
                f"existing cluster\nfix: one of {', '.join(WAYS)}"
            )
        self._kind, self._name = await find_kind(self.cluster, self.asked)
        if self.copy_to:
            await self._copy(now)
        else:
            await self._look(now)
        await self._reach(now)

    async def join(self, now: Experiment, created: Sequence[Applied]) -> None:
        found = next(each for each in created if kubectl_name(each) == self.asked)
        self._kind = found.resource
        owner = {**found.obj, "kind": self._kind.kind, "apiVersion": self._kind.api_version}
        await self._found(now, of_pod(owner) if self._kind == PODS else owner)
        if self._entrance.tls_name:
            await check_handshake(self._entrance, self.url_ca)
        await self._reach(now)

    async def _reach(self, now: Experiment) -> None:
        """Look up where requests enter, and what follows the Pods."""
        self._entrance = replace(self._entrance, address=await self._resolved(self._entrance))
        followed = Followed(self._kind.kind, name_of(now.owner))
        _, serving = serving_containers(now.owner["spec"]["template"]["spec"], now.target.container_port)
        self.following = Following(
            self.cluster, (followed,), now.world, asked=self.agents, serving=frozenset(serving), selector=self._selector
        )
        if self.agents is not None:
            self.following.on_note = now.say

    async def _look(self, now: Experiment) -> None:
        owner = await self._workload(self._name)
        if is_custom(self._kind):
            owner = await self._custom(owner, now.options.disrupt)
        elif unsettled(self._kind, owner):
            raise UserError(_unsettled(self.asked, "not all of its Pods are of the newest template and available"))
        await self._found(now, owner)
        if self._entrance.tls_name:
            await check_handshake(self._entrance, self.url_ca)
        if not is_custom(self._kind):
            self._pods = await self._own_pods(owner)
        steps, restored = self._planned(now.options, owner, len(self._pods), self._entrance.description)
        await self.agree(self.cluster.namespace, steps, restored, now.world)

    async def _custom(self, owner: Object, disrupt: str) -> Object:
        """Look at a workload whose kind is not Kubernetes's own, and set its Pods. Return it with what others have by
        default. Raises UserError."""
        check_template(self._kind, owner)
        found = await scaled(self._client, self._kind, owner)
        if why := why_unsettled(owner, found):
            raise UserError(_unsettled(self.asked, why))
        if not found.living:
            raise UserError(f"{self.asked} has no Pods to disrupt: it wants none\nfix: scale it to 2 replicas or more")
        if disrupt == "scale-in":
            check_scale_in(self._kind, owner, found.wanted)
        self._selector, self._pods = found.selector, found.living
        spec, template = owner["spec"], owner["spec"]["template"]
        whole = {**template, "metadata": template.get("metadata") or {}}
        return {**owner, "spec": {**spec, "replicas": found.wanted, "template": whole}}

    async def _found(self, now: Experiment, owner: Object) -> None:
        """Set the workload, its Service, and where requests enter."""
        now.owner = owner
        now.target = target_of(_manifest(owner, self._kind), await self._services(), now.options)
        now.service = now.target.service.obj
        self._entrance = await self._entrance_of(now)

    async def _copy(self, now: Experiment) -> None:
        """All of it in another namespace, where nothing is but what is copied."""
        source, copy_to = self.cluster, self.copy_to
        check_copy(source.namespace, copy_to)
        if is_custom(self._kind):
            raise UserError(
                f"--copy-to copies only kinds that Kubernetes has, and {self.asked} is a {self._kind.kind} of "
                f"{self._kind.group}\nfix: leave out --copy-to, or create a copy yourself and name that"
            )
        await self.check_free(copy_to, f"--copy-to {copy_to}: {source.where} has no such namespace")
        taken = await Taking(source.client, source.where, source.namespace, stays=True).run(self.asked)
        workload = taken.manifests[-1].obj
        await self._check_claims(workload)
        copy, removed = of_copy(source.namespace, taken.manifests)
        count = workload["spec"].get("replicas", 1)
        steps, _ = self._planned(now.options, workload, count, "the copy of its Service")
        changes = await self.agree(copy_to, (copy, *steps), (*removed, "delete that Pod"), now.world)
        self._copied = taken.notes
        for each in taken.manifests:
            await changes.create(each.resource, each.obj)
        self.cluster = replace(source, namespace=copy_to)
        await self._found(now, await self._workload(name_of(workload)))
        now.say(tell("waiting for the copy in $namespace to be Ready", namespace=copy_to))
        there = now.of()
        await now.waiting(there).until(there.settled, "the copy's Pods to become available")
        self._pods = await self._own_pods(now.owner)

    async def _check_claims(self, workload: Object) -> None:
        if not claim_templates(workload):
            return
        claims = (await self._client.list(PERSISTENTVOLUMECLAIMS, self.copy_to)).items
        if taken := taken_claims(workload, [name_of(each) for each in claims]):
            raise UserError(
                f"--copy-to {self.copy_to}: the copy would use claims that already exist: {', '.join(taken)}\n"
                "fix: use another namespace, an empty one"
            )

    def _planned(
        self, options: "RolloutOptions", owner: Object, pods: int, entrance: str
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(steps, restored)"""
        disrupt = options.disrupt
        steps, restored = of_rollout(self._kind, owner, pods, disrupt, "delete" if disrupt == "delete" else "evict")
        sent, removed = self.planned(options, entrance)
        return (*sent, *steps), (*restored, *removed)

    def planned(self, options: "RolloutOptions", entrance: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return (steps, restored) of the requests."""
        image = self.image if options.source == "pod" else ""
        return of_requests(sum(options.load.rates.values()), entrance, image)

    async def _entrance_of(self, now: Experiment) -> Entrance:
        if self.url:
            return of_url(self.url)
        if now.options.source == "pod":
            return of_inside(now.service, now.target.port)
        return of_service(now.service, now.target.port, await self._nodes())

    async def _workload(self, name: str) -> Object:
        resource = self._kind
        try:
            found: Object = await self._client.get(resource, name, self.cluster.namespace)
        except StatusError as error:
            if not is_not_found(error):
                raise
            where = f"{self.cluster.where}: namespace {self.cluster.namespace}"
            raise UserError(f"{where} has no {resource.kind} {name}\nfix: give its namespace with -n") from error
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

    # -- requests -----------------------------------------------------------------------------------------------------

    async def send(self, now: Experiment, stack: AsyncExitStack, tasks: Tasks) -> Sending:
        entrance = self._entrance
        # Only nodes' rules for the Service are between the client and the Pods.
        self._direct = not self.url or is_own(entrance, now.service, await self._nodes())
        tasks.spawn(self.following.run(), name="following")
        if not await self.following.synced():
            now.say(tell("its Pods cannot be watched: the report will not say why requests were lost"))
        self._since = monotonic(now.clock)
        self._load = load = await self._started(now, stack)
        seconds = f"{now.options.control:g}"
        now.say(
            tell(
                "$seconds s of requests to $entrance before anything is disrupted",
                seconds=seconds,
                entrance=entrance.description,
            )
        )
        return load

    async def _started(self, now: Experiment, stack: AsyncExitStack) -> LoadClient | PodLoad:
        entrance = self._entrance
        load = replace(
            now.options.load,
            target=(entrance.address, entrance.port),
            host=entrance.host,
            tls_name=entrance.tls_name,
            ca_pem=self.url_ca,
            own_ports=True,
        )
        if now.options.source == "pod":
            assert self.changes is not None
            timeout = now.options.timeout
            generator = await start_in_pod(self.cluster, self.changes, now.clock, self.image, load, timeout)
            await generator.start()
            return generator
        client = await LoadClient.on_host()
        stack.callback(client.close)
        client.start(load)
        return client

    async def _resolved(self, entrance: Entrance) -> str:
        """One address for all requests: a name that is looked up each time would be measured, too."""
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(entrance.address, entrance.port, family=socket.AF_INET)
        except OSError as error:
            raise WorldError(f"{entrance.address} has no address: {error.strerror or error}") from error
        return str(found[0][4][0])

    def begin(self, now: Experiment) -> None:
        self.following.began = now.moment

    async def disturb(self, now: Experiment) -> str:
        return await self.disrupted(now, self._pods, self._change)

    async def _change(self, resource: Resource, name: str, path: tuple[str, ...], value: Any) -> Object:
        """Set a field, the ledger first. Raises UserError if its kind does not keep it."""
        assert self.changes is not None
        changed = await self.changes.change(resource, name, path, value)
        if path == RESTARTED_AT and was(changed, path) != value:
            raise UserError(
                f"{resource.kind} {name} does not keep annotations of its Pod template, so a rollout cannot be asked "
                "for\nfix: --disrupt delete, evict or scale-in; or let its CustomResourceDefinition keep spec.template"
                ".metadata (x-kubernetes-preserve-unknown-fields)"
            )
        return changed

    # -- what was found -----------------------------------------------------------------------------------------------

    async def settle(self, now: Experiment) -> None:
        await now.clock.sleep(max(0.0, LATE_SECONDS - now.options.settle))

    async def observe(self, now: Experiment, load: Sending) -> Observed:
        traced = self.traced(now)
        assert traced is not None
        # Only Pods without an owner are not replaced.
        ends = [each.deleted.latest for each in traced.pods if each.deleted is not None] if self._kind == PODS else ()
        left = max(ends, default=None) if now.of_run else None
        found = account(now.outcomes, [], (), now.disrupted_at, begun=load.begun, whole_output=False, nobody_left=left)
        found, lives = with_causes(found, traced), self.following.lives()
        notes = (
            *self._copied,
            *self._notes(now, found),
            *of_load(now.outcomes),
            *of_answers(now.outcomes, now.options.load),
        )
        return Observed(found, lives, with_lags(found, lives), notes=notes)

    def traced(self, now: Experiment) -> Traced | None:
        """Return what is known of the Pods' ends by now; None before requests are sent."""
        load, following, target, direct = self._load, self.following, now.target, self._direct
        if load is None:
            return None
        error = load.offset.error if isinstance(load, PodLoad) else 0.0
        pods = following.bounded_lives()
        ends = [each.deleted.earliest for each in pods if each.deleted is not None]
        service = target.service.obj["spec"]
        container = serving_container(target.workload.obj["spec"]["template"]["spec"], target.container_port)
        unready = bool(service.get("publishNotReadyAddresses"))
        return Traced(
            pods,
            self._since,
            error,
            printed=following.printed(),
            probed=listens_when_ready(container, target.container_port) and not unready,
            whole_service=not (is_local(target.service.obj) or following.has_gaps),
            silent_before=silent_before(now.outcomes, min(ends, default=math.inf), error),
            failed=not following.is_followed,
            direct=direct,
            reached=reached(now.outcomes)
            if direct and is_even(target.service.obj, now.options.source == "pod")
            else (),
        )

    def _notes(self, now: Experiment, found: Account) -> list[Note]:
        load, following = self._load, self.following
        facts = {"where": self.cluster.where, "workload": self.asked, "namespace": self.cluster.namespace}
        notes = [Note("onACluster", "", said("onACluster", entrance=self._entrance.description, **facts))]
        if isinstance(load, PodLoad):
            notes.append(Note("onACluster", "", said("onACluster", "clock", offset=load.offset.text)))
        if offset := following.describe_clock_skew():
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


def _unsettled(asked: str, why: str) -> str:
    return f"{asked} is not settled: {why}\nfix: wait for it (kubectl rollout status), or repair it first"


def _manifest(obj: Object, resource: Resource) -> Manifest:
    place = Place(f"{namespace_of(obj)}/{name_of(obj)}", Document(obj, 1, 1))
    return Manifest(obj, resource, place)
