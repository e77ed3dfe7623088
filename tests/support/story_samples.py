"""Endings to draw: whole clusters in virtual time, and a Pod that is hostile in every field that a user can fill."""

import functools
from collections.abc import Sequence
from pathlib import Path

import yaml
from scenario.programs import ShellPrograms
from virtual_cluster import VirtualCluster, run_cluster

from lastcall.endings.ending import build_endings
from lastcall.endings.facts.pod import pod_facts
from lastcall.endings.story import ContainerFacts, Ending, PodFacts
from lastcall.records import kinds as k
from lastcall.records.record import Record

EXAMPLES = Path(__file__).parents[2] / "examples"

LONG_NAMES = """
apiVersion: v1
kind: Pod
metadata: {name: checkout-service-with-a-long-name-7d9f8b6c5d-x2x4q, labels: {app: shop}}
spec:
  terminationGracePeriodSeconds: 30
  initContainers:
    - name: mesh-proxy
      image: busybox
      restartPolicy: Always
      command: [sh, -c, "trap 'echo mesh drains; sleep 1; exit 0' TERM; while true; do sleep 1; done"]
  containers:
    - name: web
      image: busybox
      command: [sh, -c, "trap 'echo closing 12 connections; sleep 20; exit 0' TERM; while true; do sleep 1; done"]
      lifecycle: {preStop: {sleep: {seconds: 5}}}
    - name: cache
      image: busybox
      command: [sh, -c, "trap 'echo saving; sleep 3; exit 3' TERM; while true; do sleep 1; done"]
"""

OVERRUN = """
apiVersion: v1
kind: Pod
metadata: {name: overrun}
spec:
  terminationGracePeriodSeconds: 4
  containers:
    - name: app
      image: busybox
      command: [sh, -c, "trap 'echo bye; sleep 1; exit 0' TERM; while true; do sleep 1; done"]
      lifecycle: {preStop: {exec: {command: [sh, -c, "sleep 60"]}}}
"""


def ended(manifests: Sequence[str], names: Sequence[str], version: str = "1.36") -> list[Ending]:
    """Create everything in `manifests`, delete the Pods `names` together and follow them to their end."""
    holder: list[ShellPrograms] = []

    async def scenario(cluster: VirtualCluster) -> None:
        holder.append(ShellPrograms(cluster.world, cluster.volumes.messages))
        for manifest in manifests:
            for document in yaml.safe_load_all(manifest):
                await cluster.create(document)
        for name in names:
            await cluster.wait_ready(name)
        await cluster.sleep(0.3)
        for name in names:
            await cluster.delete(f"pod/{name}")
        for name in names:
            await cluster.wait_gone(name)

    cluster = run_cluster(scenario, lambda config, sandbox: holder[0](config, sandbox), kubernetes_version=version)
    pods = [pod_facts(cluster.pod(name)) for name in names]
    return build_endings(cluster.all_records, pods, kubernetes_version=version)


@functools.cache
def samples() -> dict[str, list[Ending]]:
    """By name: graceful, sigkill, sidecar (30 s of grace), overrun, several, hostile, many (20 Pods), chatty."""
    term, kill = ((EXAMPLES / f"{name}-demo.yaml").read_text() for name in ("term", "sigkill"))
    graceful = ended([term], ["term-demo"])
    sigkill = ended([kill], ["sigkill-demo"])
    sidecar = ended([LONG_NAMES], ["checkout-service-with-a-long-name-7d9f8b6c5d-x2x4q"])
    overrun = ended([OVERRUN], ["overrun"])
    return {
        "graceful": graceful,
        "sigkill": sigkill,
        "sidecar": sidecar,
        "overrun": overrun,
        "several": [*sidecar, *sigkill, *overrun, *graceful],
        "hostile": [hostile()],
        "many": (sigkill + graceful + sidecar + overrun) * 5,
        "chatty": [chatty()],
    }


BOMB = (
    "</script></style></title><script>window.pwned=1</script><img src=x onerror=window.pwned=2>\"'><svg onload=pwned>"
)


def hostile(text: str = "", markup: str = BOMB) -> Ending:
    """Every name, line and fact is an attack: on HTML, on the terminal, on the reader's eyes, on encoders."""
    text = text or f"{markup}\x1b[31m\u202edrowssap\x00\ud800]]>{{{{7*7}}}}${{x}}%3Cscript%3E"
    pod = PodFacts("u-<b>", f"ns{markup}", f"pod{text}", f"node{text}", "Failed", (ContainerFacts(f"c{markup}"),))
    made: list[Record] = []

    def add(at: float, actor: str, kind: str, container: str = "", cause: str = "", **facts: object) -> None:
        name = f"{actor}-b-{len(made) + 1}"
        rule = f"pkg/{markup}.go:f{markup}"
        at_ns = 10**12 + round(at * 1e9)
        made.append(Record(name, at_ns, at_ns, actor, kind, "u-<b>", container, rule, dict(facts), cause))

    name = f"c{markup}"
    add(-1, "runtime", k.PROCESS_STARTED, name, pid=7, containerPid=1, exe=text, argv=[text])
    add(0, "apiserver", k.DELETE_ACCEPTED, user=text, userAgent=text, gracePeriodSeconds=3)
    add(0.001, "endpointslice-controller", k.ENDPOINT_CHANGED, service=text, slice=text, address=text, ready=True)
    add(0.002, f"actor{markup}", "Kind<b>", name, f"apiserver-b-{2}", **{f"key{markup}": text, "deep": {"a": [text]}})
    add(0.003, "kubelet", k.PRE_STOP_STARTED, name, handler=text, detail=text, budgetSeconds=3)
    add(
        0.9,
        "kubelet",
        k.PRE_STOP_FINISHED,
        name,
        handler=text,
        outcome="failed",
        message=text,
        stdout=text,
        seconds=0.9,
    )
    add(1, "runtime", k.SIGNAL_SENT, name, signal=text, pid=7, containerPid=1, why=text)
    add(1.5, "runtime", k.OUTPUT, name, stream=markup, text=text)
    add(2, "runtime", k.PROCESS_EXITED, name, pid=7, exitCode=137, signal="SIGKILL")
    add(2.1, "apiserver", k.OBJECT_REMOVED, user=text)
    return build_endings(made, [pod], kubernetes_version="1.36")[0]


def chatty(lines: int = 10_000) -> Ending:
    """A container that prints `lines` lines in a second while it drains."""
    pod = PodFacts("u", "default", "chatty", "node-1", "Succeeded", (ContainerFacts("app"),))
    made: list[Record] = []

    def add(at: float, actor: str, kind: str, container: str = "app", **facts: object) -> None:
        at_ns = 10**12 + round(at * 1e9)
        made.append(Record(f"{actor}-b-{len(made) + 1}", at_ns, at_ns, actor, kind, "u", container, "", dict(facts)))

    add(-1, "runtime", k.PROCESS_STARTED, pid=7, containerPid=1, exe="/bin/app", argv=["app"])
    add(0, "apiserver", k.DELETE_ACCEPTED, "", user="me", gracePeriodSeconds=30)
    add(0.001, "runtime", k.SIGNAL_SENT, signal="SIGTERM", pid=7, containerPid=1, why="StopContainer")
    for number in range(lines):
        add(0.01 + number / lines, "runtime", k.OUTPUT, stream="stdout", text=f"line {number} {'x' * (number % 90)}")
    add(1.2, "runtime", k.PROCESS_EXITED, pid=7, exitCode=0, signal=None)
    add(1.21, "client", k.POD_GONE_SEEN, "", resourceVersion="9")
    return build_endings(made, [pod], kubernetes_version="1.36")[0]
