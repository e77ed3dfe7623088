"""The Job that runs the agent on one node. Pure.

A Job, because a cluster removes it by itself: the agent ends 60 s after the last word of its client, `backoffLimit: 0`
does not run it again, and `ttlSecondsAfterFinished` has the Job deleted with its Pod (Kubernetes: ttl-after-finished).
So nothing is left of a client that was killed.
"""

# check: pure

import hashlib
from typing import Any

from lastcall._version import __version__
from lastcall.kube.api import Object

NAME_LABEL, CLIENT_LABEL = "app.kubernetes.io/name", "lastcall.dev/client"
AGENT_NAME, AGENT_IMAGE_NAME = "lastcall-node-agent", "lastcall-agent"
CONTAINER = "agent"
DEFAULT_IMAGE = f"localhost/{AGENT_IMAGE_NAME}:{__version__.replace('+', '-')}"
"""What `lastcall image build-agent` makes with this version of lastcall."""
IDLE_SECONDS = 60
"""Without a word from its client the agent ends."""
TTL_SECONDS = 30
LONGEST_SECONDS = 24 * 3600
"""`activeDeadlineSeconds`: whatever happens, the node is rid of it then. The client starts another one."""
_NOBODY = 65534


def job_name(client: str, node: str) -> str:
    """Return the name of a client's Job on a node, with a hash: node names may be longer than a label."""
    return f"{AGENT_NAME}-{client}-{hashlib.sha256(node.encode()).hexdigest()[:10]}"


def selector(client: str = "") -> str:
    """Return the label selector for the Jobs and Pods of one client, or of all clients."""
    own = f",{CLIENT_LABEL}={client}" if client else ""
    return f"{NAME_LABEL}={AGENT_NAME}{own}"


def is_agents_own(pod: Object) -> bool:
    """Return True if a Pod is an agent's."""
    return (pod["metadata"].get("labels") or {}).get(NAME_LABEL) == AGENT_NAME


def agent_job(client: str, node: str, namespace: str, image: str, *, traces: bool, rules: bool = False) -> Object:
    """Return the Job that runs an agent on a node. `client` is the id of the client that starts it.

    With `traces` the agent has CAP_SYS_PTRACE and runs as root: it then also knows of programs that take their signals
    by sigwait or signalfd, and their executables. With `rules` it is in the node's network, as root with CAP_NET_ADMIN,
    and also knows when the node's rules for Services changed.

    Without either, it runs as an ordinary user without any capability. It sees the node's processes (hostPID) and its
    control groups (read-only), and nothing else: no token, no network of the node, no writable file.
    """
    labels = {NAME_LABEL: AGENT_NAME, "app.kubernetes.io/managed-by": "lastcall", CLIENT_LABEL: client}
    added = [name for name, wanted in (("NET_ADMIN", rules), ("SYS_PTRACE", traces)) if wanted]
    user = 0 if added else _NOBODY
    security: dict[str, Any] = {
        "runAsUser": user,
        "runAsGroup": user,
        "runAsNonRoot": not added,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], **({"add": added} if added else {})},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", "lastcall.trace.agent", f"--idle={IDLE_SECONDS}", *(["--rules"] if rules else [])],
        "env": [{"name": "NODE_NAME", "value": node}],
        "stdin": True,
        "securityContext": security,
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
        "volumeMounts": [{"name": "cgroup", "mountPath": "/host/cgroup", "readOnly": True}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job_name(client, node), "namespace": namespace, "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": LONGEST_SECONDS,
            "ttlSecondsAfterFinished": TTL_SECONDS,
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeName": node,
                    "hostPID": True,
                    **({"hostNetwork": True} if rules else {}),
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 1,
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [container],
                    "volumes": [{"name": "cgroup", "hostPath": {"path": "/sys/fs/cgroup", "type": "Directory"}}],
                },
            },
        },
    }


def how_it_ended(pod: Object) -> str:
    """Return how an agent's Pod ended, "" if it has not."""
    status = pod.get("status") or {}
    if status.get("phase") not in ("Succeeded", "Failed"):
        return ""
    said = str(status.get("message") or status.get("reason") or "")
    for each in status.get("containerStatuses") or ():
        ended = (each.get("state") or {}).get("terminated") or {}
        said = said or f"exit code {ended.get('exitCode')} ({ended.get('reason')})"
    return f"it has ended: {said or status['phase']}"


def why_not_running(pod: Object) -> str:
    """Return what keeps the agent's Pod from running, for a person; "" if it runs or may still start."""
    status = pod.get("status") or {}
    for each in status.get("containerStatuses") or ():
        waiting = (each.get("state") or {}).get("waiting") or {}
        reason = str(waiting.get("reason") or "")
        if reason in ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"):
            return (
                f"its image {each.get('image')} is not on the node ({reason}); fix: `lastcall image build-agent -o "
                "agent.tar`, and load agent.tar into the nodes, or push it and give its name with --node-agent-image"
            )
        if reason not in ("", "ContainerCreating", "PodInitializing"):
            return f"{reason}: {waiting.get('message') or ''}".rstrip(": ")
    return ""


def is_running(pod: Object) -> bool:
    """Return True if its container runs, so that a client can attach to it."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any((each.get("state") or {}).get("running") is not None for each in statuses)


def rights_fix(namespace: str) -> str:
    """Return the command that grants a client the permissions for its agents."""
    role = f"kubectl create role {AGENT_NAME} -n {namespace}"
    return (
        f"fix: {role} --verb=get,list,create,delete --resource=jobs.batch,pods,pods/attach,events, and a rolebinding; "
        f"with Pod Security, the namespace must admit privileged Pods, because of hostPID"
    )
