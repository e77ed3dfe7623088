"""Why a Pod does not get Ready, by what the cluster says of it: causes of the catalogue, with their fixes. Pure.

A reason alone is too coarse: a CreateContainerConfigError is a key that is missing as well as a user that is forbidden.
So the message decides, as Kubernetes words it; of a message that no row knows nothing is advised.
"""

# check: pure

import re
from collections.abc import Iterable, Iterator, Mapping

from lastcall.endings.catalogue.lookup import fix
from lastcall.endings.findings.last_words import HOST_STATUSES, refuses_host
from lastcall.endings.story import ProgramChange
from lastcall.kube.api import Object
from lastcall.records.said import Said, fact_of, tell
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _Row:
    """`message` is a regular expression whose groups are the facts of the cause's fix. `stays`: nothing in the cluster
    changes it, however long one waits; else it may change when Pods go or come. `program`: what a person has to
    correct, where the message leaves no doubt of it."""

    message: str
    cause: str
    variant: str = ""
    stays: bool = True
    program: ProgramChange | None = None


PRINTED_BY_INIT = "printed by an init container that still runs"
"""In place of a reason: the message is what it printed last."""

_SOURCES = (
    _Row(r'configmap "(?P<name>[^"]+)" not found', "configMissing", "configMap"),
    _Row(r'secret "(?P<name>[^"]+)" not found', "configMissing", "secret"),
    _Row(r"couldn't find key (?P<key>\S+) in (?P<where>(?:ConfigMap|Secret) \S+)", "configMissing", "key"),
    _Row(r"references non-existent (?:config|secret) key: (?P<key>\S+)", "configMissing", "keyOfVolume"),
)
_CLAIM = _Row(r'persistentvolumeclaim "(?P<name>[^"]+)" not found', "claimMissing")
_PULL = (
    _Row(
        r"(?i)manifest unknown|name unknown|(?:manifest|image|repository)[^:]* not found|: not found\Z",
        "imageNotPulled",
        "unknown",
    ),
    _Row("(?i)unauthorized|denied|authentication required|no basic auth", "imageNotPulled", "denied"),
    _Row("no such host|dial tcp|connection refused|i/o timeout", "imageNotPulled", "unreachable"),
    _Row("", "imageNotPulled"),
)
_POST_START = (
    _Row(r":(?P<port>\d+): connect: connection refused", "restartedPostStart", "tooEarly", program="fixPostStart"),
    _Row("executable file not found|exited with 127:", "restartedPostStart", "notFound", program="fixPostStart"),
    _Row("exited with 126:", "restartedPostStart", "notExecutable", program="fixPostStart"),
    _Row(r"exited with \d+:", "restartedPostStart", "code", program="fixPostStart"),
    _Row("", "restartedPostStart", program="fixPostStart"),
)
_SCHEDULING = (
    _CLAIM,
    _Row(r'persistentvolumeclaim "(?P<name>[^"]+)" is being deleted', "claimMissing", "deleted", stays=False),
    _Row(r'persistentvolumeclaim "(?P<name>[^"]+)" bound to non-existent', "claimMissing", "lost"),
    _Row("unbound immediate PersistentVolumeClaims", "claimMissing", "unbound", stays=False),
    _Row("PersistentVolume's node affinity|available persistent volumes to bind", "claimMissing", "noVolume"),
    _Row("ReadWriteOncePod access mode", "claimInUse", stays=False),
    _Row(r"Insufficient (?P<what>[\w/-]+(?:\.[\w/-]+)*)", "unschedulable", "resources", stays=False),
    _Row("Too many pods", "unschedulable", "pods", stays=False),
    _Row("didn't match Pod's node affinity/selector", "unschedulable", "labels"),
    _Row("didn't match the requested node name", "unschedulable", "nodeName"),
    _Row("untolerated taint", "unschedulable", "taints", stays=False),
    _Row("were unschedulable", "unschedulable", "cordoned", stays=False),
    _Row("free ports for the requested pod ports", "unschedulable", "ports", stays=False),
    _Row("anti-affinity rules", "unschedulable", "antiAffinity", stays=False),
    _Row("didn't match pod affinity rules", "unschedulable", "affinity", stays=False),
    _Row("topology spread constraints", "unschedulable", "spread", stays=False),
)
_ROWS: Mapping[str, tuple[_Row, ...]] = {
    "ErrImageNeverPull": (_Row("", "imageNeverPulled"),),
    "ErrImagePull": _PULL,
    "ImagePullBackOff": _PULL,
    "InvalidImageName": (_Row("", "imageNameInvalid"),),
    "CreateContainerConfigError": (
        _Row("image will run as root", "rootForbidden"),
        _Row(r"image has non-numeric user \((?P<user>[^)]*)\)", "rootForbidden", "name"),
        _Row("runAsUser breaks non-root policy", "rootForbidden", "both"),
        *_SOURCES,
    ),
    PRINTED_BY_INIT: (
        _Row(r"can't find (?P<name>\S+): NXDOMAIN", "initContainerRuns", "unknownName"),
        _Row(r"bad address '(?P<name>[^']+)'", "initContainerRuns", "unknownName"),
        _Row(r'could not translate host name "(?P<name>[^"]+)"', "initContainerRuns", "unknownName"),
        _Row(r"(?i)could not resolve host(?:name)?:? (?P<name>[\w.-]+)", "initContainerRuns", "unknownName"),
        _Row(r"getaddrinfo (?:ENOTFOUND|EAI_AGAIN) (?P<name>[\w.-]+)", "initContainerRuns", "unknownName"),
        _Row(r"lookup (?P<name>[\w.-]+)(?: on \S+)?: no such host", "initContainerRuns", "unknownName"),
        _Row(r"(?P<name>[\w.-]+): Name or service not known", "initContainerRuns", "unknownName"),
        _Row("(?i)connection refused|ECONNREFUSED", "initContainerRuns", "refused"),
        _Row("", "initContainerRuns"),
    ),
    "PostStartHookError": _POST_START,
    "FailedPostStartHook": _POST_START,
    "CrashLoopBackOff": (_Row("", "crashLoop", program="fixCrash"),),
    "FailedScheduling": _SCHEDULING,
    "Unschedulable": _SCHEDULING,
    "FailedMount": (
        *_SOURCES,
        _CLAIM,
        _Row(
            r'(?:volume "(?P<volume>[^"]+)" : )?hostPath type check failed: (?P<path>\S*/docker\.sock) is not a socket',
            "volumeNotMounted",
            "dockerSocket",
        ),
        _Row(
            r"hostPath type check failed: (?P<path>\S+) is not (?P<what>an? [\w ]+)", "volumeNotMounted", "hostPathType"
        ),
        _Row(r"hostPath type check failed: (?P<path>\S+)", "volumeNotMounted", "hostPath"),
    ),
    "FailedCreatePodSandBox": (
        _Row("group [^ ]+ is specified without user|user group is specified without user", "groupWithoutUser"),
        _Row("runAsGroup is specified without a runAsUser", "groupWithoutUser"),
    ),
    "FailedCreate": (
        _Row(r"exceeded quota: (?P<name>[\w.-]+),", "quotaExceeded"),
        _Row(r"failed quota: (?P<name>[\w.-]+): must specify (?P<what>[\w.,-]+)", "quotaExceeded", "unset"),
        _Row(r'serviceaccount "(?P<name>[^"]+)" not found', "podsRefused", "serviceAccount"),
        _Row(r"no PriorityClass with name (?P<name>\S+) was found", "podsRefused", "priorityClass"),
        _Row(r'RuntimeClass "(?P<name>[^"]+)" not found', "podsRefused", "runtimeClass"),
        _Row(r'violates PodSecurity "(?P<policy>[^"]+)"', "podsRefused", "security"),
        _Row(r"(?P<what>m(?:ax|in)imum \S+ usage per \w+ is [^,.]+)", "podsRefused", "limitRange"),
        _Row(" is invalid: ", "podsRefused", "invalid"),
    ),
    "Unhealthy": (
        _Row(
            r'probe failed: (?:Get "?https?://|dial tcp )\[?(?P<host>localhost|127\.[\d.]+|::1)\]?:.*'
            r"connection refused",
            "probeFailed",
            "node",
        ),
        _Row("(Startup|Liveness) probe failed: .*connection refused", "probeFailed", "tooEarly"),
        _Row("connection refused", "probeFailed", "refused"),
        _Row(r"probe failed with statuscode: (?P<status>\d+)", "probeFailed", "status", program="fixProbe"),
        _Row("(?i)deadline exceeded|timeout|timed out", "probeFailed", "timeout"),
        _Row("probe failed|probe errored", "probeFailed"),
    ),
}
"""By the reason of a container's state, of a condition or of an Event; the first row that knows the message. Of what
the scheduler says every row that does: a node may be refused for several reasons. What an init container printed has
the words of busybox, libpq, curl, Node.js, Go and glibc for a name that DNS does not know."""

SURE_SECONDS = 3.0
"""What the scheduler has said for so long, and nothing that goes on can change, it will say forever."""
NOT_STARTED = ("CreateContainerError", "RunContainerError", "StartError")
"""Reasons of a container's state: the runtime could not start it. `failed_starts.py` reads the message."""
_ALL_OF = ("FailedScheduling", "Unschedulable")


_COMMANDS: Mapping[str, tuple[str, str]] = {
    "containerd": ("`ctr -n k8s.io images import FILE` on the node", "`ctr -n k8s.io images ls` on the node"),
    "cri-o": ("`podman load -i FILE` on the node", "`crictl images` on the node"),
    "docker": ("`docker load -i FILE` on the node", "`docker images` on the node"),
}
"""Runtime of a node → what imports an image there, and what lists those that it has."""
_OWN_COMMANDS = ("`lastcall image import FILE`", "`lastcall image ls`")
_ABOUT_IMAGES = ("imageNeverPulled", "imageNotPulled")


def fixes_for(reason: str, message: str, runtime: str = "") -> Iterator[Said]:
    """Yield what to change, in words, with the cause's id.

    `runtime` is the containerRuntimeVersion of the Pod's node, "" for lastcall's own.
    """
    for row, facts in _matching(reason, message):
        if row.cause in _ABOUT_IMAGES:
            importing, listing = _COMMANDS.get(runtime.partition("://")[0], _OWN_COMMANDS)
            facts = {**facts, "importing": importing, "listing": listing}
        yield fix_of(row.cause, row.variant, **facts)


def programs_for(reason: str, message: str) -> Iterator[tuple[str, ProgramChange]]:
    """Yield ids of causes with what a person has to correct."""
    if reason in NOT_STARTED:
        yield "commandNotStarted", "fixCommand"
    for row, _ in _matching(reason, message):
        if row.program is not None:
            yield row.cause, row.program


def fix_of(id_: str, variant: str = "", /, **facts: object) -> Said:
    """Return a fix of the catalogue, with the id of its cause behind it: `fix_alone` is without."""
    return tell("$fix [$id]", fix=fix(id_, variant, **facts), id=id_)


def fix_alone(line: Said) -> str:
    """Return the fix of a line of `fix_of`."""
    return fact_of(line, "fix")


def fix_of_host(line: str, printed: Iterable[str]) -> str:
    """Return a line of what to change with the Host header in place of the path, where the program `printed` that it
    refuses the header: a probe sends the Pod's address."""
    if not refuses_host(printed):
        return line
    for status in HOST_STATUSES:
        line = line.replace(
            fix_of("probeFailed", "status", status=status), fix_of("probeFailed", "host", status=status)
        )
    return line


def unschedulable_message(pod: Object) -> str:
    """Return what the scheduler says of a Pod that no node takes; "" for others."""
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return str(condition.get("message") or "") if condition.get("status") == "False" else ""
    return ""


def waiting_helps(message: str, *, pods_may_go: bool) -> bool:
    """Return whether what the scheduler says may change by itself. `pods_may_go`: some Pod is ending, or may end."""
    rows = _matching("Unschedulable", message)
    return not rows or (pods_may_go and not all(row.stays for row, _ in rows))


def _matching(reason: str, message: str) -> list[tuple[_Row, dict[str, str]]]:
    found = [(row, match.groupdict()) for row in _ROWS.get(reason, ()) if (match := re.search(row.message, message))]
    return found if reason in _ALL_OF else found[:1]
