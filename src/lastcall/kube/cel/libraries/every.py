"""Every library: `KUBERNETES` has those that every expression of Kubernetes 1.36 may use
(apiserver pkg/cel/environment/base.go), `MUTATION` those of a MutatingAdmissionPolicy.
"""

from lastcall.kube.cel.libraries import (
    authz,
    cidr,
    comparable,
    comprehensions,
    format,
    ip,
    jsonpatch,
    lists,
    optionals,
    quantity,
    regex,
    semver,
    sets,
    standard,
    strings,
    url,
)

KUBERNETES = (
    standard.LIBRARY,
    optionals.LIBRARY,
    strings.LIBRARY,
    sets.LIBRARY,
    comprehensions.LIBRARY,
    lists.LIBRARY,
    url.LIBRARY,
    regex.LIBRARY,
    comparable.LIBRARY,
    quantity.LIBRARY,
    ip.LIBRARY,
    cidr.LIBRARY,
    format.LIBRARY,
    semver.LIBRARY,
    authz.LIBRARY,
)
MUTATION = (*KUBERNETES, jsonpatch.LIBRARY)
