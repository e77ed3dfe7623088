"""Which kind of workload a user means on an existing cluster: one of Kubernetes, or one that only discovery knows."""

from lastcall.errors import UserError
from lastcall.experiment.existing.connection import Reached
from lastcall.experiment.ready.readiness import is_custom
from lastcall.experiment.rollout.workload import WORKLOADS, resource_of
from lastcall.kube.api import Resource
from lastcall.kube.client import discover
from lastcall.manifests import closest

KINDS = ", ".join(each.kind.lower() for each in WORKLOADS)


def split_workload(asked: str) -> tuple[str, str]:
    """Split `deployment/web` into its two words. Raises UserError."""
    kind, _, name = asked.partition("/")
    if not kind or not name or "/" in name:
        raise not_a_workload(asked, f"{KINDS}, or KIND.GROUP")
    return kind, name


def not_a_workload(asked: str, kinds: str) -> UserError:
    """Return the error for a word that names no workload."""
    return UserError(f"{asked!r} is not a workload: write KIND/NAME, such as deployment/web; KIND is {kinds}")


async def find_kind(cluster: Reached, asked: str) -> tuple[Resource, str]:
    """Return kind and name of `KIND/NAME` or `KIND.GROUP/NAME`. Raises UserError, StatusError, ConnectionLost."""
    word, name = split_workload(asked)
    if (known := resource_of(word)) is not None:
        return known, name
    served = [each.resource for each in (await discover(cluster.client.request)).kinds if each.preferred]
    custom = [each for each in served if each.namespaced and is_custom(each)]
    found = [each for each in custom if word.lower() in _words(each)]
    if len(found) > 1:
        groups = " and ".join(sorted(each.group_resource for each in found))
        first = f"{found[0].kind.lower()}.{found[0].group}/{name}"
        raise UserError(f"{asked} is ambiguous: {cluster.where} serves {groups}\nfix: name its group, as in {first}")
    if not found:
        if any(word.lower() in _words(each) for each in served):
            raise UserError(
                f"{asked}: a {word} is not a workload that can be disrupted\n"
                f"fix: name one of {KINDS}, or KIND.GROUP/NAME of a kind that Kubernetes does not have"
            )
        names = [text for each in custom for text in (each.kind.lower(), f"{each.kind.lower()}.{each.group}")]
        near = closest(word.lower(), names)
        meant = f" (did you mean {near}/{name}?)" if near else ""
        raise UserError(
            f"{asked}: {cluster.where} serves no kind {word}{meant}\nfix: name one of {KINDS}, or KIND.GROUP of a kind "
            f"with a Pod template and a scale subresource: kubectl --context {cluster.context} api-resources shows all"
        )
    (kind,) = found
    return Resource(kind.group, kind.version, kind.plural, kind.kind, True), name


def _words(kind: Resource) -> set[str]:
    """What a user may call a kind: plural and kind, each also with its group."""
    plain = {kind.plural, kind.kind.lower()}
    return {*plain, *(f"{each}.{kind.group}" for each in plain), f"{kind.plural}.{kind.version}.{kind.group}"}
