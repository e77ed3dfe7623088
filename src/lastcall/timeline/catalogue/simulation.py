"""What a lastcall cluster keeps without acting on it, or does differently from a real one: worth knowing, not a
fault."""

from collections.abc import Mapping

from lastcall.timeline.catalogue.cause import Cause

SIMULATION: Mapping[str, Cause] = {
    "ingressIgnored": Cause(
        title="There is no ingress controller here.",
        texts={"": "$what is kept but no ingress controller acts on it: requests go to the Service itself"},
    ),
    "customResourceIgnored": Cause(
        title="No operator acts on custom resources here.",
        texts={"": "$what is kept but no operator acts on it"},
    ),
    "pullSecretMissing": Cause(
        title="An imagePullSecret is not among the manifests.",
        texts={"": "imagePullSecret $name of $what is not in the manifests: images were pulled without it"},
    ),
    "generatorLate": Cause(
        title="The load generator sent requests later than planned: the machine was busy.",
        remedy="A machine that is less busy, or a lower --load.",
        texts={
            "": "the load generator was late: $share of the requests were sent $limit or more too late, the "
            "latest $most (the machine was busy)",
        },
    ),
}
