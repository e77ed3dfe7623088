"""Recognize sentences that components write into records, so that they can be translated. Pure.

A record keeps a sentence as it was written. Here it is recognized by its template: a new sentence needs a new row, and
tests/unit/records/test_recorded_sentences.py fails without one.
"""

# check: pure

import re
from functools import cache, lru_cache

from lastcall.records.said import Said, str_of

SENTENCES = (
    # GraceDecided, Killing
    "the least of the deletion grace period and any override",
    "the least of the deletion grace period and any override; it may only shrink, and does not interrupt a hook or "
    "stop that is under way",
    "Stopping container $container",
    "Container $container failed $probe probe",
    "Container $container failed $probe probe, will be restarted",
    "Container $container definition changed",
    "Container $container definition changed, will be restarted",
    "Container $container resize requires restart",
    "Init container $container failed $probe probe",
    "Init container $container failed $probe probe, will be restarted",
    "Init container $container definition changed",
    "Init container $container definition changed, will be restarted",
    "Container is in $state state, try killing it before restart",
    "Init container is in $state state, try killing it before restart",
    "Container is in unknown state, try killing it before removal",
    # PreStopSkipped
    "a grace period of $budget s leaves no time for the hook",
    "only the runtime knows this Pod: there is no spec to take a hook from",
    "the hook of the stop before still runs: it is waited for, not started again",
    "the container had already ended",
    "the container never ran",
    # StopRequested
    "a Pod without configuration loses its cgroup in the same pass: SIGKILL at once",
    "Kubernetes $version does not take the preStop hook's time off the grace period: the container gets the full "
    "period again after the hook (1.22 to 1.27, fixed in 1.28)",
    # DeletionDecided: the kubelet
    "its manifest was removed from the node's directory, or says something else now",
    "the node is shutting down, and Pods of priority $priority and above have $seconds s",
    "the critical Pod $pod does not fit on the node beside it",
    "The node was low on resource: $resource. $why",
    "The node was low on resource: $resource$end",
    'Usage of EmptyDir volume "$volume" exceeds the limit "$limit"$end',
    "Pod ephemeral local storage usage exceeds the total limit of containers $limit$end",
    'Container $container exceeded its local ephemeral storage limit "$limit"$end',
    # the API server and the scheduler
    "evicted by $user from $addresses: $why",
    "evicted by $user: $why",
    "preempted by $pod: it needs $needs on $node and has priority $priority, this Pod $own",
    # controllers
    "$owner goes from $active to $wanted Pods, and this one is number $rank to go: $why",
    "$owner scales to $count, the highest ordinal goes first",
    "$owner rolls out revision $revision, from the highest ordinal down",
    "$owner rolls out revision $revision, $most Pods at once at most",
    "$owner rolls out revision $revision",
    "$owner recreates all Pods for revision $revision",
    "it has ended ($phase), and $owner creates it again",
    "node $node does not fit DaemonSet $owner any more",
    "one Pod of DaemonSet $owner is enough on a node",
    "its node $node is gone",
    "its owner is gone: $why",
    "its namespace $namespace is deleted",
    "more than $count Pods have ended",
    "it is being deleted and has no node that would end it",
    "its node $node is not Ready and out of service",
    "its node $node no longer exists",
    "evicted from $node: it has a NoExecute taint",
    "evicted because a device that it uses has a NoExecute taint",
    "evicted from $node by its taint $taint, tolerated for $seconds s",
    "evicted from $node by its taint $taint, which this Pod does not tolerate",
    "Job $job of CronJob $owner is beyond its history limit",
    "Job $job of CronJob $owner still runs when the next is due, and concurrencyPolicy is Replace",
    "Job $job finished longer than its ttlSecondsAfterFinished of $seconds s ago",
    "Job $job is suspended",
    "Job $job wants $wanted active Pods and has $active: $why",
    "Job $job was active longer than its activeDeadlineSeconds of $seconds s",
    "Job $job has $count failed Pods at a backoffLimit of $limit",
    "Job $job has met its success policy ($message)",
    "Job $job has its completions",
    "Job $job has failed: $message",
    # what a trace of another cluster concludes
    "evicted through the Eviction API; the API does not say by whom",
    "evicted through the Eviction API; the API does not say by whom; PodDisruptionBudget $budget allowed it",
    "preempted by $pod, a Pod of higher priority",
    "preempted by a Pod of higher priority",
    "preempted by a Pod of higher priority ($message)",
    "$owner had too many Pods, and chose this one",
    "$owner deleted it, as its Event says",
    "$owner rolls out a new template",
    "$owner has finished: $condition",
    "$owner was suspended",
    # NotShown
    "What PID 1 did with its stop signal, who else sent signals, which processes were left, and what was printed: the "
    "container runtime does not tell.",
    "Who deleted it is not known: the API does not expose it; an audit log of the API server does.",
    "Who deleted it is not known: the API does not expose it, and its owner does not say that it was; an audit log of "
    "the "
    "API server does.",
    "Who deleted it is not known: the audit log has no such request, or it came too late.",
    "Who changed $owner is not certain: by the audit log $users did at that time.",
    "Only the node sees $why: not known.",
    "When containers ended is known to a second: finishedAt of their status, by the node's clock.",
    "Earlier runs of $containers are not in this report: a status keeps only the last one that ended.",
    "Whether the preStop hook of $container failed before $again ended, or because it ended, is not known: both were "
    "in the same second.",
    "The stop signal of $containers is taken to be SIGTERM: an image may name another (STOPSIGNAL).",
    "It was followed from about $seconds s after the DELETE on: what came before is concluded from its object and its "
    "Events.",
    "$count of its records were too many to keep.",
    "The clock of node $node is about $seconds s behind this machine's, or all its Events came so late: its times "
    "were moved by that.",
    "The clock of node $node is about $seconds s ahead of this machine's: its times were moved by that.",
    "It went while the watch was interrupted: how its end went on was not seen.",
    "What it printed is not known: too many Pods end at the same time.",
    "For $seconds s the $what were not watched ($error): the report has only what was left of them.",
    "For $seconds s no news of $what arrived ($error): the report shows what happened then too late.",
    "What nodes and controllers say about what they do (Killing, a hook that failed, who scaled in) is not known: "
    "reading $resource is not allowed.",
    "When its address left the Services is not known: reading $resource is not allowed.",
    "What its containers printed after the DELETE is not known: reading $resource is not allowed.",
    "Whether its namespace was deleted is not known: reading $resource is not allowed.",
    "Whether its node was lost is not known: reading $resource is not allowed.",
    "Which PodDisruptionBudget allowed its eviction is not known: reading $resource is not allowed.",
    "The rollout or the scaling that it ended for is not known: reading $resource is not allowed.",
    "Which HorizontalPodAutoscaler scaled it in is not known: reading $resource is not allowed.",
    "The rollout or the scaling of its StatefulSet is not known: reading $resource is not allowed.",
    "The rollout of its DaemonSet is not known: reading $resource is not allowed.",
    "Whether its Job was over is not known: reading $resource is not allowed.",
    "What $resource tell is not known: reading $again is not allowed.",
)
"""Templates as of `said.tell`. A fact `why…` is one itself or one of PARTS; `end` is a full stop or nothing."""

LISTS = ("$why, $why2", "$why and $why2")
"""Looked for last, in this order: words of their own may have an `and`."""

PARTS = (
    "no PodDisruptionBudget selects it",
    "it is not Ready, and PodDisruptionBudget $budget always allows that",
    "it is not Ready, and PodDisruptionBudget $budget has $healthy healthy of $desired needed",
    "PodDisruptionBudget $budget allowed it",
    "through the Eviction API",
    "no budget is asked for a Pod in phase $phase",
    "all of them go",
    "no rule tells them apart",
    "not assigned to a node",
    "phase before Running",
    "not Ready",
    "lower pod-deletion-cost",
    "more related Pods on its node",
    "Ready for a shorter time",
    "Ready for a shorter time (in buckets of powers of two, then by uid)",
    "more restarts",
    "more restarts of sidecars",
    "created later",
    "created later (in buckets of powers of two, then by uid)",
    "$what, which $above had owned",
    "the Job does not ask for its completion index",
    "another Pod has its completion index $index",
    "what PID 1 does with its stop signal",
    "open connections and ports",
    "processes that were left",
    "when a node's rules for Services changed",
    "Threshold quantity: $quantity, available: $available. $why",
    "Threshold quantity: $quantity, available: $available$end",
    "Container $container was using $used, request is $request, has larger consumption of $resource. $why",
    "Container $container was using $used, request is $request, has larger consumption of $resource$end",
    *LISTS,
)
"""What occurs only within a sentence."""

_PIECES = re.compile(r"\$(\w+)")
"""Splits a template into its words and the names of its facts, in turn."""


def recalled(value: object) -> str:
    """Return the same text; one of SENTENCES can be translated then."""
    return _recalled(value, SENTENCES) if isinstance(value, str) else str_of(value)


@lru_cache(maxsize=1024)
def _recalled(text: str, templates: tuple[str, ...]) -> str:
    for template, words in _ordered(templates):
        if words in text and (found := _pattern(template).fullmatch(text)):
            facts = {
                name: _recalled(fact, (*SENTENCES, *PARTS)) if name.startswith("why") else fact
                for name, fact in found.groupdict().items()
            }
            return Said(template, facts)
    return text


@lru_cache(maxsize=2)
def _ordered(templates: tuple[str, ...]) -> list[tuple[str, str]]:
    """Each template with its longest words. Those with most words of their own first."""
    found = []
    for template in templates:
        texts = _PIECES.split(template)[::2]
        own = 0 if template in LISTS else len("".join(texts))
        found.append((own, template, max(texts, key=len)))
    return [(template, words) for _, template, words in sorted(found, key=lambda each: -each[0])]


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """Compile what a template matches. A story needs a few of them: all at once took 19 ms of its first line."""
    pieces = _PIECES.split(template)
    texts, names = pieces[::2], [*pieces[1::2], ""]
    facts = ["" if not name else f"(?P<{name}>{'[.]?' if name == 'end' else '.+?'})" for name in names]
    return re.compile("".join(re.escape(text) + fact for text, fact in zip(texts, facts, strict=True)), re.DOTALL)
