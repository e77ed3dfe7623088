"""Advice before it is shown: the experiment's API server is asked, by a dry run, whether it would take the patch."""

from dataclasses import replace
from typing import Any

from lastcall.kube.api import Object, Resource, StatusError, name_of, namespace_of
from lastcall.kube.client import STRATEGIC_MERGE_PATCH, Client, ConnectionLost
from lastcall.records.said import tell
from lastcall.traffic import Judgement, refused, with_advice


async def checked_by_server(client: Client, judgement: Judgement, owner: Object, resource: Resource) -> Judgement:
    """Return the judgement without the patches that the server refuses: each of them, and all of them together."""
    kept = []
    for advice in judgement.advice:
        why = await _refusal(client, resource, owner, advice.patch) if advice.patch else ""
        kept.append(refused(advice, why))
    checked = replace(judgement, advice=tuple(kept), sentence=_with_first(judgement, kept[0].sentence if kept else ""))
    while checked.patch and (why := await _refusal(client, resource, owner, checked.patch)):
        # Each alone is taken, and not all at once: those that save the least are left out, one after the other.
        last = max(index for index, each in enumerate(checked.advice) if each.patch)
        fewer = list(checked.advice)
        fewer[last] = refused(fewer[last], tell("not together with the others: $why", why=why))
        checked = replace(checked, advice=tuple(fewer))
    return checked


def of_pods(judgement: Judgement) -> Judgement:
    """Return the judgement with patches of a Pod itself, not of a workload that has it as its template."""
    patched = [replace(each, patch=each.patch.get("spec", {}).get("template", {})) for each in judgement.advice]
    return replace(judgement, advice=tuple(patched))


def _with_first(judgement: Judgement, first: str) -> str:
    """The verdict's sentence ends with the first advice, which may have changed."""
    was = judgement.advice[0].sentence if judgement.advice else ""
    return with_advice(judgement.sentence, first) if was and judgement.sentence.endswith(was) else judgement.sentence


async def _refusal(client: Client, resource: Resource, owner: Object, patch: dict[str, Any]) -> str:
    """Why the server does not take a patch, "" where it does."""
    try:
        await client.patch(
            resource,
            name_of(owner),
            patch,
            namespace_of(owner),
            content_type=STRATEGIC_MERGE_PATCH,
            dry_run=True,
        )
    except StatusError as error:
        return tell("the API server refuses it: $message", message=error.message)
    except ConnectionLost as error:
        return tell("the API server could not be asked: $error", error=error)
    return ""
