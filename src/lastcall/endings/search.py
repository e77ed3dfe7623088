"""Find the story that a user asks for among all that records tell. Pure."""

# check: pure

from collections.abc import Sequence

from lastcall.endings.ending import build_endings
from lastcall.endings.findings.restarts import is_over
from lastcall.endings.story import Ending, PodFacts
from lastcall.errors import UserError
from lastcall.records.record import Record

_OF_A_LIFE = ("postStartFailed", "postStartRuns", "probeFailed", "deleteRefused")
"""Findings that are worth a story of a Pod of which nothing has ended yet."""
_NAMED = 12
"""At most so many Pods stand in a message."""


def known_endings(records: Sequence[Record], kubernetes_version: str, now_ns: int = 0) -> list[Ending]:
    """Return the story of every Pod of which there are records, the latest end last. Pods that run have no `zero_kind`.
    `now_ns` as in `build_endings`."""
    uids = dict.fromkeys(record.pod_uid for record in records if record.pod_uid)
    endings = build_endings(
        {record.id: record for record in records}.values(),  # a follower may hear a record twice
        [PodFacts(uid, "", "") for uid in uids],
        kubernetes_version=kubernetes_version,
        now_ns=now_ns,
    )
    return sorted(endings, key=lambda ending: ending.zero_ns)


def find_ending(
    known: Sequence[Ending], name: str | None, namespace: str | None, uid: str | None, cluster: str
) -> Ending:
    """Return the ending asked for; of several Pods of one name the latest that ended. UserError names what is known."""
    where = namespace or "default"
    wanted = name or ""
    if uid is not None:
        found = [e for e in known if e.pod.uid.startswith(uid) and name in (None, e.pod.name)]
        found = [e for e in found if namespace in (None, e.pod.namespace)]
        if len({e.pod.uid for e in found}) > 1:
            raise UserError(f"--uid {uid}: {len(found)} Pods have a uid that begins so: write more of it")
        wanted = f"{wanted} with uid {uid}".strip()
    else:
        found = [e for e in known if e.pod.name == name and e.pod.namespace == where]
    stories = [e for e in found if e.zero_kind or e.earlier or _has_a_story(e)]
    if stories:
        return stories[-1]
    if found:
        there = found[-1].pod
        raise UserError(
            f"Pod {there.namespace}/{there.name} of cluster {cluster!r} is running, and none of its containers has "
            f"ended yet: nothing to tell (kubectl delete pod {there.name} -n {there.namespace} ends it)"
        )
    raise UserError(f"cluster {cluster!r} knows no Pod {wanted} in namespace {where}; {_known(known)}")


def _has_a_story(living: Ending) -> bool:
    """Return whether a Pod that was not deleted has one: a container ended, or something is wrong."""
    return any(is_over(c, living) for c in living.containers) or any(each.id in _OF_A_LIFE for each in living.findings)


def _known(known: Sequence[Ending]) -> str:
    names = list(dict.fromkeys(f"{e.pod.namespace}/{e.pod.name}" for e in reversed(known) if e.zero_kind))
    if not names:
        return "no Pod of it has ended yet"
    more = f" and {len(names) - _NAMED} more (lastcall story shows all)" if len(names) > _NAMED else ""
    return f"the endings it knows are of {', '.join(names[:_NAMED])}{more}"
