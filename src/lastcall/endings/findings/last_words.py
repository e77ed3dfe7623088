"""What to do about a program, by the last lines that it printed. Pure."""

# check: pure

import re
from collections.abc import Container, Iterable

from lastcall.endings.catalogue.lookup import fix
from lastcall.endings.story import PodFacts

_LAST_WORDS = (
    (r"already (?:running|locked|in use by).*?(?P<file>/[\w./-]+\.(?:pid|lock))\b", "left"),
    (r"(?P<file>/[\w./-]*\.(?:pid|lock))\b.*\b(?:exists|is another|held|locked)", "left"),
    (r"already running \(?\s*(?:with |as )?pid", "leftUnknown"),
    (r"permission denied\W+(?P<file>/\.\w[\w./-]*)|(?P<beside>/\.\w[\w-]*): permission denied", "home"),
    ("read-only file system", "readOnly"),
    ("permission denied", "denied"),
    ("address already in use", "inUse"),
    ("connection refused|ECONNREFUSED", "refused"),
    (
        "name or service not known|name resolution|no such host|could not resolve host|ENOTFOUND|EAI_AGAIN",
        "unknownName",
    ),
    ("bad address '|could not translate host name|unknown ?host ?exception|getaddrinfo failed", "unknownName"),
    (
        r"(?:invalid|pars|input string|number|integer|received).*?(?P<value>(?:tcp|udp|sctp)://[\d.]+:\d+)",
        "serviceLink",
    ),
)
"""What strerror(3) and gai_strerror(3) say, which programs in most languages print as it is, and what the kubelet's
variables of Services look like (pkg/kubelet/envvars) → the variant of the advice."""
_OF_FILES = ("home", "readOnly", "denied")
_OWN_LIMITS = (
    (re.compile("JavaScript heap out of memory|FatalProcessOutOfMemory"), "nodeHeap"),
    (re.compile(r"java\.lang\.OutOfMemoryError: (?:Java heap space|GC overhead limit)"), "javaHeap"),
)
"""What runtimes print that reached the limit of their own heap, before a long stack → the variant of the advice."""
_PEER = re.compile(r"\b(?P<set>[a-z0-9]([-a-z0-9]*[a-z0-9])?)-(?P<number>\d+)\.(?P<service>[a-z0-9][-a-z0-9]*)\b")


_REFUSES_HOST = re.compile(
    r"DisallowedHost|(?i:invalid (?:http_)?host\b(?: header)?|host header .*not allowed|blocked hosts?:)"
)
"""What Django, Starlette, webpack and Rails print of a request whose Host header they do not know."""
HOST_STATUSES = ("400", "403", "421")
"""What a program may answer such a request."""


def advice_by(line: str, pod: PodFacts) -> str:
    """Return what to do about a program whose last line this is; "" where it says nothing known."""
    variant, facts = _known(line)
    if variant == "unknownName" and (peer := _peer_elsewhere(pod, line)):
        return fix("crashed", "otherService", **peer)
    return fix("crashed", variant, **facts) if variant else ""


def advice_about_files(line: str) -> str:
    """Return what to do about a file that could not be written or read; "" for anything else.

    A program that was told to end may complain of a peer that ends, too: that says nothing.
    """
    variant, facts = _known(line, _OF_FILES)
    return fix("crashed", variant, **facts) if variant else ""


def own_limit(lines: Iterable[str]) -> str:
    """Return the variant of the advice for a runtime that reached the limit of its own heap; "" for none."""
    lines = list(lines)
    return next((variant for words, variant in _OWN_LIMITS if any(map(words.search, lines))), "")


def refuses_host(lines: Iterable[str]) -> bool:
    """Return whether a program printed that it refuses a Host header: a probe sends the Pod's address in it
    (pkg/probe/http/request.go:NewRequestForHTTPGetAction)."""
    return any(map(_REFUSES_HOST.search, lines))


def _known(line: str, among: Container[str] | None = None) -> tuple[str, dict[str, str]]:
    for words, variant in _LAST_WORDS:
        if (among is None or variant in among) and (match := re.search(words, line, re.I)):
            return variant, match.groupdict()
    return "", {}


def _peer_elsewhere(pod: PodFacts, line: str) -> dict[str, str]:
    """Return a Pod of its own StatefulSet that it looked up below another Service than serviceName, {} for none.

    Only serviceName gives those Pods names (stateful_set_utils.go:updateIdentity).
    """
    own = pod.name.rpartition("-")[0]
    for match in _PEER.finditer(line) if pod.subdomain else ():
        if match["set"] == own and match["service"] != pod.subdomain:
            peer = f"{match['set']}-{match['number']}"
            return {"peer": peer, "service": match["service"], "subdomain": pod.subdomain}
    return {}
