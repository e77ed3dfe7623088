"""Causes for which Pods do not become Ready, or do not go, while a command waits."""

from collections.abc import Mapping

from lastcall.timeline.catalogue.cause import Cause

_PULL = (
    "`lastcall image from-host NAME` makes an image of this machine's own programs, `lastcall image import FILE` takes "
    "one from `docker save`; a private registry wants `docker login`, or an imagePullSecret"
)
_COMMAND = "correct command, args or workingDir"

WAITING: Mapping[str, Cause] = {
    "imageNeverPulled": Cause(
        title="The image is not there and imagePullPolicy is Never.",
        remedy="Import the image, or another imagePullPolicy.",
        fixes={"": "the image is not there and imagePullPolicy is Never: `lastcall image ls` shows what is there"},
    ),
    "imageNotPulled": Cause(
        title="The image cannot be pulled.",
        remedy="Correct the image's name or the registry's credentials (imagePullSecrets).",
        fixes={"": _PULL},
    ),
    "imageNameInvalid": Cause(
        title="The image's name is not one.",
        remedy="Correct spec.containers[].image.",
        fixes={"": "correct spec.containers[].image"},
    ),
    "configMissing": Cause(
        title="A ConfigMap or Secret, or a key of it, that the container needs does not exist.",
        remedy="Add it to the manifests, with the key that is asked for.",
        fixes={"": "add the ConfigMap or Secret to the manifests, with the key that is asked for"},
        lint=("configMissing", "secretMissing", "configKeyMissing"),
    ),
    "commandNotStarted": Cause(
        title="The container's command cannot be started.",
        remedy="Correct command, args or workingDir.",
        fixes={"": _COMMAND},
    ),
    "crashLoop": Cause(
        title="The container keeps crashing.",
        remedy="See its exit code and its last log lines.",
        fixes={"": "the container ends again and again: see its last exit code"},
    ),
    "unschedulable": Cause(
        title="No node takes the Pod.",
        remedy="Ask for less (resources.requests), or for what the nodes have (nodeSelector, affinity, tolerations).",
        fixes={
            "": "ask for less (resources.requests), or for what the nodes have (nodeSelector, affinity, tolerations, "
            "claims): `kubectl describe node` shows it",
        },
        lint=("claimMissing", "hostPortBlocksUpdate", "claimBlocksUpdate"),
    ),
    "probeFailed": Cause(
        title="A probe fails.",
        remedy="Correct the probe (port, path, scheme, timeoutSeconds), or what the container answers it.",
        fixes={"": "correct the probe (port, path, scheme, timeoutSeconds), or what the container answers it"},
        lint=("probePortUnresolved", "probeCommandMissing"),
    ),
    "volumeNotMounted": Cause(
        title="A volume cannot be mounted: what it is made of does not exist.",
        remedy="Add the ConfigMap, Secret or claim to the manifests.",
        fixes={"": "add the ConfigMap, Secret or claim to the manifests, with the key that is asked for"},
        lint=("configMissing", "secretMissing", "configKeyMissing"),
    ),
    "podsRefused": Cause(
        title="The API server refuses the owner's Pods (quota, limits, Pod security, a template that is not valid).",
        remedy="As the message says: correct the template, or what refuses it.",
        fixes={"": "the API server refuses the Pods, as the message says: correct the template"},
        lint=(
            "quotaTooSmall",
            "quotaBlocksUpdate",
            "quotaNeedsResources",
            "limitRangeRefuses",
            "podSecurityRefuses",
            "accountMissing",
        ),
    ),
    "budgetBlocks": Cause(
        title="A PodDisruptionBudget allows no eviction: a drain waits for ever.",
        remedy="minAvailable below the number of replicas, or maxUnavailable: 1.",
        lint=("budgetNeverAllows", "budgetsOverlap"),
    ),
    "notAvailableYet": Cause(
        title="Pods are Ready and do not count as available yet: minReadySeconds.",
        remedy="A smaller minReadySeconds, below progressDeadlineSeconds.",
    ),
    "stateFull": Cause(
        title="The cluster's file system, which is in memory, is full.",
        remedy="More room: --state-size.",
        fixes={"": "the cluster's files are in memory: give them more room with --state-size"},
    ),
}
"""Which reason of a container's state or of an Event stands for which: `lastcall.cli.why_not_ready.CAUSES`."""
