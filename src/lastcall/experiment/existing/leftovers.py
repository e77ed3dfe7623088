"""What experiments have left on a cluster: their ledgers, and objects with their label that no ledger names."""

from collections.abc import Callable, Iterable
from dataclasses import field

from lastcall.errors import WorldError
from lastcall.experiment.existing.changes import how_to_delete, is_running, restore
from lastcall.experiment.existing.ledger import KINDS, LABEL, PREFIX, Changed, Ledger, NotALedger, from_config_map
from lastcall.experiment.existing.plan import RESERVED
from lastcall.experiment.lookups import delete_if_exists
from lastcall.kube.api import (
    CONFIGMAPS,
    Object,
    Resource,
    StatusError,
    labels_of,
    name_of,
    namespace_of,
)
from lastcall.kube.client import Client
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass

_FIX = "fix: delete each ConfigMap that no experiment of yours has written: kubectl delete configmap NAME -n NAMESPACE"


@dataclass(slots=True)
class Leftovers:
    """`ledgers` by namespace; `orphans` have the label and no ledger; `unknown`: what could not be looked at;
    `unreadable`: ConfigMaps that call themselves ledgers, each with why it is none."""

    ledgers: list[tuple[str, Ledger]] = field(default_factory=list)
    running: list[tuple[str, Ledger]] = field(default_factory=list)
    orphans: list[tuple[Resource, Object]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    @property
    def left_alone(self) -> list[str]:
        """Return a line for each thing that cleanup skips."""
        return [*self.unknown, *self.unreadable]

    @property
    def lines(self) -> list[str]:
        """Return a line for each thing that cleanup undoes."""
        found = []
        for namespace, ledger in self.ledgers:
            if not ledger.entries:
                found.append(f"namespace {namespace}: delete ConfigMap {ledger.name}, a ledger without entries")
            for entry in reversed(ledger.entries):
                if isinstance(entry, Changed):
                    found.append(f"namespace {namespace}: restore {'.'.join(entry.path)} of {entry.target.description}")
                else:
                    found.append(f"namespace {namespace}: delete {entry.target.description}")
        for resource, obj in self.orphans:
            found.append(f"namespace {namespace_of(obj)}: delete {resource.kind} {name_of(obj)}, which no ledger names")
        return found


async def find_leftovers(client: Client, namespace: str, fallback: str) -> Leftovers:
    """Find them in one namespace, or, for "", in all; in `fallback` if the user may not list all.

    Raises StatusError where the ledgers cannot be listed there either."""
    unknown: list[str] = []
    try:
        maps = (await client.list(CONFIGMAPS, namespace, label_selector=LABEL)).items
    except StatusError as error:
        if error.code != 403 or namespace:
            raise
        unknown.append(f"other namespaces than {fallback}: the user may not list configmaps of all namespaces")
        namespace = fallback
        maps = (await client.list(CONFIGMAPS, namespace, label_selector=LABEL)).items
    found = ledgers_among(maps)
    found.unknown += unknown
    known = {(where, ledger.id) for where, ledger in (*found.ledgers, *found.running)}
    for resource in KINDS:
        try:
            labelled = (await client.list(resource, namespace, label_selector=LABEL)).items
        except StatusError as error:
            if error.code not in (403, 404):
                raise
            if error.code == 403:
                found.unknown.append(f"{resource.plural}: {error.message}")
            continue
        found.orphans += [
            (resource, each)
            for each in labelled
            if (namespace_of(each), labels_of(each)[LABEL]) not in known
            and not each["metadata"].get("ownerReferences")
            and not (resource == CONFIGMAPS and name_of(each).startswith(PREFIX))
            and not namespace_of(each).startswith(RESERVED)
        ]
    return found


def ledgers_among(maps: Iterable[Object]) -> Leftovers:
    """Return the ledgers among ConfigMaps with the label, those of running experiments apart."""
    found = Leftovers()
    for each in maps:
        namespace = namespace_of(each)
        if namespace.startswith(RESERVED):
            where = f"namespace {namespace}: ConfigMap {name_of(each)}"
            found.unreadable.append(f"{where} is not a ledger: no experiment is made in this namespace")
            continue
        try:
            ledger = from_config_map(each)
        except NotALedger as error:
            found.unreadable.append(f"namespace {namespace}: {error}")
            continue
        (found.running if is_running(ledger.holder) else found.ledgers).append((namespace, ledger))
    return found


async def put_back(client: Client, clock: Clock, found: Leftovers, say: Callable[[str], None]) -> None:
    """Put all of it back. Raise WorldError with what is left, after the rest was put back."""
    left = [*found.unreadable, *([_FIX] if found.unreadable else [])]
    for namespace, ledger in found.ledgers:
        try:
            await restore(client, clock, namespace, ledger, say)
        except WorldError as error:
            left.append(str(error))
        except StatusError as error:
            left.append(f"namespace {namespace}: {error.message}")
    for resource, obj in found.orphans:
        try:
            if await delete_if_exists(client, resource, obj, policy=how_to_delete(resource)):
                say(f"deleted {resource.kind} {name_of(obj)}")
        except StatusError as error:
            left.append(f"namespace {namespace_of(obj)}: {resource.kind} {name_of(obj)}: {error.message}")
    if left:
        raise WorldError("\n".join(left))
