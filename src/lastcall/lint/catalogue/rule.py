"""The shape of an entry of the catalogue. Data only."""

from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "info"]
"""error: refused, or it cannot work. warning: it works, and loses requests, data or time. info: worth knowing."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""From the worst on."""

Certainty = Literal["certain", "dependsOnApplication", "dependsOnCluster"]
"""What the manifests alone prove; what the program or its image decides (`lastcall rollout` would tell); what objects
or nodes that are not in these files decide."""


class Rule(NamedTuple):
    """`severity` and `certainty` are the usual ones: a finding may be milder, and is `certain` where the files prove
    it. `title` says in a sentence what is wrong, `why` what follows, `source` whose rule it is (a function of
    Kubernetes, a page of its documentation), `fix` what to do about it in general."""

    id: str
    severity: Severity
    certainty: Certainty
    title: str
    why: str
    source: str
    fix: str
