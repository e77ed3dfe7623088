"""An operator on kopf: for each Greeting a Pod that says it, ready while the Greeting stands, gone with it."""

import os

import kopf
import kr8s
from kr8s.asyncio.objects import Pod

SAYS = "trap 'echo bye; exit 0' TERM; echo \"$TEXT\"; touch /tmp/said; sleep 600 & wait"


@kopf.on.login()
def login(**arguments):
    """In a Pod its ServiceAccount, elsewhere $KUBECONFIG as it is now: `kubernetes` reads that when it is imported."""
    return kopf.login_with_service_account(**arguments) or kopf.login_with_kubeconfig(**arguments)


@kopf.on.create("example.com", "v1", "greetings")
async def say_it(spec, name, patch, **_):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {
            "terminationGracePeriodSeconds": 5,
            "containers": [
                {
                    "name": "says",
                    "image": "busybox:1.36",
                    "command": ["sh", "-c", SAYS],
                    "env": [{"name": "TEXT", "value": spec["text"]}],
                    "readinessProbe": {"exec": {"command": ["test", "-e", "/tmp/said"]}, "periodSeconds": 1},
                }
            ],
        },
    }
    kopf.harmonize_naming(pod, name, forced=True, strict=True)
    kopf.adopt(pod)
    api = await kr8s.asyncio.api(kubeconfig=os.environ.get("KUBECONFIG"))
    await (await Pod(pod, api=api)).create()
    patch.status["pod"] = name
