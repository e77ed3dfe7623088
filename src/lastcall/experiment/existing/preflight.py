"""What is looked at in a namespace before anything is changed there."""

import os
from collections.abc import Sequence

from lastcall.errors import UserError
from lastcall.experiment.existing.ledger import LABEL, claim_templates
from lastcall.experiment.existing.leftovers import ledgers_among
from lastcall.kube.api import (
    CONFIGMAPS,
    DAEMONSETS,
    NAMESPACES,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    SERVICES,
    STATEFULSETS,
    Object,
    Resource,
    StatusError,
    is_not_found,
)
from lastcall.kube.client import Client
from lastcall.manifests import Manifest

_AROUND = (SERVICES, REPLICASETS, REPLICATIONCONTROLLERS, STATEFULSETS, DAEMONSETS, PODS)
_WITH_CLAIMS = (*_AROUND, PERSISTENTVOLUMECLAIMS)


async def check_exists(client: Client, context: str, namespace: str, missing: str) -> None:
    """Raise UserError, which begins with `missing`, if the namespace does not exist."""
    try:
        await client.get(NAMESPACES, namespace)
    except StatusError as error:
        if is_not_found(error):
            create = f"kubectl --context {context} create namespace {namespace}, or name another one"
            raise UserError(f"{missing}\nfix: {create}") from error
        if error.code != 403:  # a user without that right can still have those for what is in it
            raise


async def check_alone(client: Client, context: str, namespace: str) -> None:
    """Raise UserError if another experiment runs in the namespace, or left something there.

    Each of two experiments would take what the other changes for what was there before. The ledgers of this process
    belong to this experiment, and so do those of its parent: a program with a cluster of a context starts a rollout.
    """
    try:
        maps = (await client.list(CONFIGMAPS, namespace, label_selector=LABEL)).items
    except StatusError as error:
        if error.code != 403:
            raise
        return  # what is not allowed to be read is not known
    found = ledgers_among(maps)
    own = (os.getpid(), os.getppid())
    if any(ledger.holder.pid not in own for _, ledger in found.running):
        raise UserError(
            f"another experiment is running in namespace {namespace}\n"
            "fix: wait until it is over, or name another namespace with -n"
        )
    if found.ledgers:
        raise UserError(
            f"an experiment in namespace {namespace} has not put back what it changed\n"
            f"fix: lastcall cleanup --context {context} -n {namespace}"
        )


async def objects_around(
    client: Client, manifests: Sequence[Manifest], namespace: str
) -> tuple[dict[Resource, list[Object]], list[str]]:
    """Return what could affect the Pods of the manifests, by kind, and the kinds that the user may not list."""
    found: dict[Resource, list[Object]] = {}
    unknown: list[str] = []
    for resource in _WITH_CLAIMS if any(claim_templates(each.obj) for each in manifests) else _AROUND:
        try:
            found[resource] = (await client.list(resource, namespace)).items
        except StatusError as error:
            if error.code == 403:
                unknown.append(resource.plural)
            elif error.code != 404:
                raise
    return found, unknown
