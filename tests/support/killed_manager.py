"""Kills the controllers' process at any of its writes and compares what comes of it with an undisturbed run.

    undisturbed = run_killed(STORY)
    for kill in kills(STORY, len(undisturbed.writes)):
        differences(STORY, undisturbed, run_killed(STORY, kill))

A Story is timed by `cluster.sleep` alone, so that every run does the same at the same moments. Events are not counted
as writes: they are told behind the controllers' backs, and one that is lost is lost in Kubernetes too.
"""

import asyncio
import contextlib
import copy
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from counted_writes import WRITES, target_of
from virtual_cluster import KINDS, VirtualCluster, run_cluster

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, name_of, namespace_of, uid_of
from lastcall.kube.api.resources import EVENTS, LEASES, Resource
from lastcall.kube.client.api import Client

MANAGER = "kube-controller-manager"

Moment = Literal["lost", "unanswered", "answered", "late"]
"""The write never reaches the API server; it does, and the manager dies before the answer; right after the answer.
Or it was on its way when the manager died, and arrives when the next one is at work."""
LATE_SECONDS = 2.0
FIRST = 60
"""Each of the first writes is a moment to die at; of those beyond, some."""
BEYOND = 12


@dataclass(frozen=True)
class Kill:
    """`write` counts from 1; `down` are the seconds until there is a new manager."""

    write: int
    moment: Moment
    down: float = 1.0

    def __str__(self) -> str:
        return f"{self.moment} {self.write}"


@dataclass(frozen=True)
class Story:
    """What happens, on which cluster. `options` go to `run_cluster`; `check(cluster)` holds at the end of every run."""

    play: Callable[[VirtualCluster], Awaitable[None]]
    programs: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[[VirtualCluster], None] = lambda cluster: None
    downs: tuple[float, ...] = (0.0, 3.0)
    """How long there is no manager, in seconds; the kills take turns."""
    before_the_first: bool = True
    """Whether a manager may also die before anything was written."""
    may_differ: Mapping[str, str] = field(default_factory=dict)
    """Pattern of a difference that is one in Kubernetes too → why."""


@dataclass
class Outcome:
    """`writes` of all managers; `created` are those that the API server took, by plural and normalised name."""

    writes: list[str] = field(default_factory=list)
    created: Counter[str] = field(default_factory=Counter)
    objects: list[str] = field(default_factory=list)
    cluster: VirtualCluster | None = None


class _Life:
    """Of one manager's process. A call to a dead one's client is never answered."""

    def __init__(self) -> None:
        self.dead = False
        self.reaped = False

    async def silence(self) -> None:
        if self.reaped:
            raise asyncio.CancelledError
        await asyncio.get_running_loop().create_future()


class _Mortal:
    """The client of one manager's life."""

    def __init__(self, client: Client, run: "_Run") -> None:
        self._client, self._run, self._life = client, run, run.new_life()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if name not in (*WRITES, "get", "list"):
            return found

        async def call(*arguments: Any, **options: Any) -> Any:
            if self._life.dead:
                await self._life.silence()
            if name not in WRITES or arguments[0] is EVENTS:
                return await found(*arguments, **options)
            return await self._run.write(self._life, name, found, arguments, options)

        return call


class _Run:
    def __init__(self, story: Story, kill: Kill | None) -> None:
        self.story, self.kill = story, kill
        self.outcome = Outcome()
        self.armed = False
        self.killed = asyncio.Event()
        self._lives: list[_Life] = []
        self.cluster: VirtualCluster

    def wrap(self, client: Client, component: str) -> Client:
        return _Mortal(client, self) if component == MANAGER else client

    def new_life(self) -> _Life:
        self._lives.append(_Life())
        return self._lives[-1]

    async def write(
        self, life: _Life, verb: str, send: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        number = 0
        if self.armed:
            resource, name = target_of(verb, arguments, options)
            subresource = options.get("subresource", "")
            self.outcome.writes.append(f"{verb} {resource.plural}/{subresource} {name}")
            number = len(self.outcome.writes)
        moment = self.kill.moment if self.kill is not None and number == self.kill.write else None
        if moment == "lost":
            life.dead = True
            self.killed.set()
            await life.silence()
        if moment == "late":
            life.dead = True
            self.killed.set()
            self.cluster._tasks.spawn(self._arrive(send, arguments, options), name="late write")
            await life.silence()
        life.dead = life.dead or moment is not None  # the others say nothing more either
        try:
            answer = await send(*arguments, **options)
            if verb == "create" and number and not options.get("subresource"):
                self.outcome.created[f"{arguments[0].plural} {normal_name(answer)}"] += 1
            return answer
        finally:  # a refusal is an answer too
            if moment is not None:
                self.killed.set()
            if moment == "unanswered":
                await life.silence()

    async def _arrive(self, send: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Copied when it was sent: what the dead manager did with its objects afterwards does not matter."""
        arguments = copy.deepcopy(arguments)
        await self.cluster.sleep(LATE_SECONDS)
        with contextlib.suppress(StatusError):
            await send(*arguments, **options)

    async def reaper(self, cluster: VirtualCluster) -> None:
        """Takes the dead manager away and starts the next one."""
        assert self.kill is not None
        await self.killed.wait()
        for life in self._lives:
            life.reaped = True
        await cluster.kill_manager()
        await cluster.sleep(self.kill.down)
        cluster.start_manager()

    async def scenario(self, cluster: VirtualCluster) -> None:
        self.outcome.cluster = self.cluster = cluster
        if self.kill is not None:
            cluster._tasks.spawn(self.reaper(cluster), name="reaper")
        self.armed = True
        await self.story.play(cluster)
        self.armed = False
        assert self.kill is None or self.killed.is_set(), f"no write {self.kill.write}"
        self.outcome.objects = await snapshot(cluster)
        self.story.check(cluster)


def run_killed(story: Story, kill: Kill | None = None) -> Outcome:
    """Play the story with one kill, or undisturbed."""
    run = _Run(story, kill)
    run_cluster(run.scenario, story.programs, wrap=run.wrap, **story.options)
    return run.outcome


def kills(story: Story, writes: int) -> Iterator[Kill]:
    """Before the first write, and after each of the first, its answer heard or not by turns; then a spread."""
    if story.before_the_first:
        yield Kill(1, "lost", story.downs[0])
    beyond = range(FIRST + 1, writes + 1)
    chosen = [*range(1, min(FIRST, writes) + 1), *beyond[:: max(1, len(beyond) // BEYOND)]]
    for turn, number in enumerate(chosen):
        yield Kill(number, ("unanswered", "answered")[turn % 2], story.downs[turn % len(story.downs)])


# -- what a run left -----------------------------------------------------------------------------------------------

_TIME = re.compile(r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"')
_TOKEN_VOLUME = re.compile(r"\bkube-api-access-[a-z0-9]{5}\b")
_ADDRESS = re.compile(r"\b10\.\d+\.\d+\.\d+\b")
_LEFT_OUT = (
    "resourceVersion", "generation", "observedGeneration", "managedFields", "containerID", "lastState",
    "machineID", "systemUUID", "bootID", "endpoints.kubernetes.io/last-change-trigger-time",
)  # fmt: skip
_LEFT_OUT_KINDS = (EVENTS.kind, LEASES.kind)


def normal_name(obj: Object) -> str:
    """Generated names lose what is random."""
    prefix = obj["metadata"].get("generateName")
    claim = (obj.get("spec") or {}).get("claimRef")
    if claim and name_of(obj) == f"pvc-{claim.get('uid')}":
        return f"pvc-<{claim['namespace']}/{claim['name']}>"
    return f"{prefix}*" if prefix else name_of(obj)


async def snapshot(cluster: VirtualCluster) -> list[str]:
    """All objects but Events and Leases, without what two runs may differ in, as sorted lines of JSON."""
    found: list[tuple[Resource, Object]] = []
    for kind, resource in KINDS.items():
        if kind not in _LEFT_OUT_KINDS:
            found += [(resource, each) for each in (await cluster.client.list(resource)).items]
    names: dict[str, str] = {}
    for resource, obj in found:
        names[uid_of(obj)] = f"<{resource.kind} {normal_name(obj)}>"
        if obj["metadata"].get("generateName"):
            names[name_of(obj)] = normal_name(obj)
    replaced = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)")
    lines = []
    for resource, obj in found:
        text = json.dumps({"kind": resource.kind, **_plain(obj)}, sort_keys=True)
        text = replaced.sub(lambda match: names[match[0]], text)
        text = _TOKEN_VOLUME.sub("kube-api-access-*", text)
        lines.append(_ADDRESS.sub("<address>", _TIME.sub('"<time>"', text)))
    return sorted(lines)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _ordered(key, _plain(each)) for key, each in value.items() if key not in _LEFT_OUT}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value


def _ordered(key: str, value: Any) -> Any:
    """Lists whose order says nothing."""
    if key == "conditions" and isinstance(value, list):
        return sorted(value, key=lambda each: str(each.get("type")))
    if key == "endpoints" and isinstance(value, list):
        return sorted(value, key=lambda each: json.dumps(each, sort_keys=True))
    return value


def differences(story: Story, undisturbed: Outcome, killed: Outcome) -> list[str]:
    """What is there and should not be (+), and the other way round (-); what was made more or less often."""
    missing = Counter(undisturbed.objects) - Counter(killed.objects)
    strange = Counter(killed.objects) - Counter(undisturbed.objects)
    found = _told(list(missing.elements()), list(strange.elements()))
    for what in sorted({*undisturbed.created, *killed.created}):
        before, after = undisturbed.created[what], killed.created[what]
        if before != after:
            found.append(f"created {what}: {before} times undisturbed, {after} times here")
    return [line for line in found if not any(re.match(pattern, line) for pattern in story.may_differ)]


def _told(missing: list[str], strange: list[str]) -> list[str]:
    """Objects of one name are compared field by field."""
    others = [json.loads(line) for line in strange]
    found = []
    for line in missing:
        wanted = json.loads(line)
        other = next((each for each in others if _title(each) == _title(wanted)), None)
        if other is None:
            found.append(f"- {_title(wanted)}")
            continue
        others.remove(other)
        before, after = dict(_fields(wanted)), dict(_fields(other))
        for path in sorted({*before, *after}):
            if before.get(path) != after.get(path):
                found.append(f"{_title(wanted)} {path}: {before.get(path)} undisturbed, {after.get(path)} here")
    return found + [f"+ {_title(each)}" for each in others]


def _title(obj: Object) -> str:
    return f"{obj['kind']} {namespace_of(obj)}/{name_of(obj)}"


def _fields(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _fields(each, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for number, each in enumerate(value):
            name = each.get("type") or each.get("name") or number if isinstance(each, dict) else number
            yield from _fields(each, f"{path}[{name}]")
    else:
        yield path, json.dumps(value)
