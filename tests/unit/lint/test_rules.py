"""Each rule finds what it is for, and nothing in an application that is in order; its patch removes the finding."""

from typing import Any, NamedTuple

import pytest
from lint_objects import (
    NOTHING,
    budget,
    changed,
    container,
    deployment,
    findings,
    in_container,
    in_pod,
    job,
    obj,
    only,
    report,
    rules,
    service,
    worker,
)
from sarif import sarif_problems

from lastcall.lint.catalogue.lookup import RULES
from lastcall.lint.located import LintResult, Located, Spot
from lastcall.lint.patching import patched
from lastcall.lint.render.data import as_sarif


class Case(NamedTuple):
    """`path` ends with this; `fixed`: the patch removes the finding (None: there is no patch)."""

    rule: str
    objects: tuple[dict, ...]
    path: tuple[Any, ...] = ()
    fixed: bool | None = None
    fresh: bool = False
    severity: str = ""


WEB = deployment()
STATEFUL = obj(
    "StatefulSet",
    "db",
    "apps/v1",
    spec={**{key: WEB["spec"][key] for key in ("replicas", "selector", "template")}, "serviceName": "db"},
)
MEMBERS = in_container(STATEFUL, "env", [{"name": "CLUSTER", "value": "db-0.db,db-1.db"}])
CLAIM = obj(
    "PersistentVolumeClaim",
    "data",
    spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
)
VOLUME = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
ENV = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "colour"}}}]
SETTINGS = obj("ConfigMap", "settings", data={"colour": "red"})
SLEEPER = {"exec": {"command": ["sh", "-c", "sleep 20"]}}
ALIVE = {"httpGet": {"path": "/alive", "port": "http"}}
SCALER_V1 = obj(
    "HorizontalPodAutoscaler",
    "web",
    "autoscaling/v1",
    spec={
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 9,
        "targetCPUUtilizationPercentage": 70,
    },
)
NO_REPLICAS = changed(WEB, "spec.replicas", NOTHING)
INGRESS = obj(
    "Ingress",
    "web",
    "networking.k8s.io/v1",
    spec={"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}},
)
BACKEND = "spec.defaultBackend.service"
WORKER = changed(
    changed(
        in_pod(deployment("worker"), "containers", [worker()]),
        "spec.selector.matchLabels",
        {"app": "web", "role": "work"},
    ),
    "spec.template.metadata.labels",
    {"app": "web", "role": "work"},
)
RESTRICTED = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "default", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
}


def quota(**hard: str) -> dict:
    return obj("ResourceQuota", "limits", spec={"hard": hard})


def strategy(**rolling: Any) -> dict:
    return changed(WEB, "spec.strategy", {"type": "RollingUpdate", "rollingUpdate": rolling})


def shell(script: str, **fields: Any) -> dict:
    return in_container(WEB, "command", ["sh", "-c", script])


def private(mode: int, **security: Any) -> dict:
    """The key of a Secret, mounted with this mode."""
    volume = {"name": "key", "secret": {"secretName": "key", "defaultMode": mode}}
    mounted = in_container(in_pod(WEB, "volumes", [volume]), "volumeMounts", [{"name": "key", "mountPath": "/key"}])
    return in_pod(mounted, "securityContext", security)


def webhook(kind: str = "Mutating", **fields: Any) -> dict:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    made = {
        "name": "labels.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"service": {"name": "web", "namespace": "default", "path": "/mutate"}},
        "rules": [rule],
        **fields,
    }
    return obj(f"{kind}WebhookConfiguration", "labels", "admissionregistration.k8s.io/v1", webhooks=[made])


OF_OTHERS = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}
BY_NAME = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"]}]}
LABELLED = {"matchLabels": {"checked": "yes"}}
ON_DEPLOYMENTS = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE"]}
EVERYTHING = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}
STOP_SH = obj("ConfigMap", "hooks", data={"stop.sh": "#!/bin/bash\necho ending\nserver --drain\n"})


SIDECAR = {"name": "proxy", "image": "istio/proxyv2:1.22", "restartPolicy": "Always"}
CQL = [{"name": "cql", "port": 80, "targetPort": "cql"}]
OF_DB = service("db", selector={"app": "db"})
CRLF = obj("ConfigMap", "hooks", data={"stop.sh": "#!/bin/sh\r\necho ending\r\n"})


def scripted(command: list[str], where: str, **volume: Any) -> dict:
    """A file of a ConfigMap, run by the command at `where`."""
    made = in_pod(WEB, "volumes", [{"name": "hooks", "configMap": {"name": "hooks", **volume}}])
    made = in_container(in_container(made, "volumeMounts", [{"name": "hooks", "mountPath": "/hooks"}]), "lifecycle", {})
    return in_container(made, where, command)


def hooked(script: str) -> dict:
    return in_container(WEB, "lifecycle.preStop", {"exec": {"command": ["sh", "-c", script]}})


def shared(script: str) -> dict:
    return in_pod(hooked(script), "shareProcessNamespace", True)


def drains(port: int, **fields: Any) -> dict:
    """The hook asks this port; the container declares 8080."""
    return in_container(WEB, "lifecycle.preStop", {"httpGet": {"path": "/drain", "port": port, **fields}})


def only_connects(liveness: dict, port: str = "http") -> dict:
    """A readinessProbe that only connects to 8080, the port of this name."""
    named = in_container(WEB, "ports", [{"name": port, "containerPort": 8080}])
    return in_container(
        in_container(named, "readinessProbe", {"tcpSocket": {"port": 8080}}),
        "livenessProbe",
        {**liveness, "initialDelaySeconds": 30},
    )


def asks_alive(*command: str) -> dict:
    probe = {"exec": {"command": list(command)}, "failureThreshold": 6, "timeoutSeconds": 5}
    return in_container(WEB, "livenessProbe", probe)


def behind(upstream: str) -> dict:
    """A container that the one of the Service passes requests on to."""
    front = in_container(WEB, "env", [{"name": "UPSTREAM", "value": upstream}])
    (proxy,) = front["spec"]["template"]["spec"]["containers"]
    probes = {"readinessProbe": NOTHING, "livenessProbe": NOTHING}
    app = container("backend", ports=[{"containerPort": 9000}], lifecycle=NOTHING, **probes)
    return in_pod(front, "containers", [proxy, app])


def behind_without_ports() -> dict:
    (web,) = drains(8090)["spec"]["template"]["spec"]["containers"]
    return in_pod(WEB, "containers", [web, worker("manager")])


def set_variable() -> dict:
    return in_container(shell("exec server $CACHE_PORT"), "env", [{"name": "CACHE_PORT", "value": "6379"}])


def mounted(source: dict, sub_path: str, **fields: Any) -> dict:
    """A volume of which one path is mounted."""
    mount = {"name": "settings", "mountPath": "/etc/app.ini", "subPath": sub_path}
    return in_container(in_pod(WEB, "volumes", [{"name": "settings", **source}]), "volumeMounts", [mount])


def in_memory(**empty_dir: Any) -> dict:
    """A volume in memory; the limit of the container is 128Mi."""
    volume = {"name": "cache", "emptyDir": {"medium": "Memory", **empty_dir}}
    mount = {"name": "cache", "mountPath": "/cache"}
    return in_container(in_pod(WEB, "volumes", [volume]), "volumeMounts", [mount])


def on_start(script: str, *others: dict, command: tuple[str, ...] = ("sh", "-c")) -> dict:
    """A postStart hook, and the containers after its own."""
    first = in_container(WEB, "lifecycle.postStart", {"exec": {"command": [*command, script]}})
    return in_pod(first, "containers", [*first["spec"]["template"]["spec"]["containers"], *others])


def beside_sidecar(pre_stop: dict, **lifecycle: Any) -> dict:
    proxy = {**SIDECAR, "ports": [{"containerPort": 15001}], "lifecycle": {"preStop": pre_stop, **lifecycle}}
    return in_pod(WEB, "initContainers", [proxy])


def in_namespaces(database: str | None, web: str | None = "shop") -> tuple[dict, dict]:
    """A Service called database, and what asks for it; None: the manifest says no namespace."""
    there = service("database", selector={"app": "database"})
    asking = in_container(WEB, "env", [{"name": "DB_HOST", "value": "database"}])
    return (
        changed(there, "metadata.namespace", database) if database else there,
        changed(asking, "metadata.namespace", web) if web else asking,
    )


def python(handler: str, **fields: Any) -> dict:
    """A Job in Python with this handler of SIGTERM."""
    source = f"import os, signal, sys\ndef stop(*_):\n    print('leaving')\n    {handler}\nsignal.signal(signal.SIGTERM, stop)\n"
    return job(worker(command=["python3", "-uc", source]))


def proxied(url: str, *args: str) -> dict:
    """A Job whose container connects to this, beside one that serves 5432."""
    return job(
        worker(env=[{"name": "DATABASE_URL", "value": url}]),
        worker("proxy", command=["/proxy", "--port=5432", *args]),
    )


CASES = (
    # what the API server refuses
    Case("tooLongToApply", ({**SETTINGS, "data": {"a": "x" * (256 << 10)}},), ("metadata",)),
    Case("unrendered", (in_pod(WEB, "terminationGracePeriodSeconds", "${GRACE}"),), ("terminationGracePeriodSeconds",)),
    Case("unrendered", (obj("ConfigMap", "a-{{ .Release.Name }}", data={}),), ("metadata", "name")),
    Case("notAnObject", ({"apiVersion": "v1", "kind": "Pod"},), ("metadata",)),
    Case("unknownApiVersion", (changed(budget(maxUnavailable=1), "apiVersion", "policy/v1beta1"),), ("apiVersion",), True),
    Case("unknownApiVersion", (changed(WEB, "apiVersion", "extensions/v1beta1"),), ("apiVersion",), True),
    Case("unknownField", (in_container(WEB, "imagePullpolicy", "Always"),), ("imagePullpolicy",), True),
    Case("unknownField", (changed(WEB, "spec.nonsense", 1),), ("nonsense",)),
    Case("wrongType", (in_pod(WEB, "terminationGracePeriodSeconds", "thirty"),), ("terminationGracePeriodSeconds",)),
    Case("wrongType", (in_container(WEB, "command", "sleep 100"),), ("containers", 0, "command")),
    Case("wrongType", (in_container(WEB, "ports", [{"containerPort": "80a"}]),), ("ports", 0, "containerPort")),
    Case("invalidValue", (changed(WEB, "spec.template.metadata.labels", {"app": "other"}),), ("labels",)),
    Case("invalidValue", (in_container(WEB, "lifecycle.preStop.sleep.seconds", 90),), ("sleep",)),
    Case("duplicateObject", (WEB, deployment()), ("metadata", "name")),
    Case("fieldDropped", (in_container(WEB, "lifecycle", {"stopSignal": "SIGQUIT"}),)),
    Case("apiWarning", (in_pod(WEB, "nodeSelector", {"beta.kubernetes.io/os": "linux"}),)),
    # what a namespace allows
    Case("podSecurityRefuses", (RESTRICTED, WEB), ("template", "spec")),
    Case(
        "limitRangeRefuses",
        (obj("LimitRange", "small", spec={"limits": [{"type": "Container", "max": {"memory": "32Mi"}}]}), WEB),
        ("template", "spec"),
    ),
    Case("quotaTooSmall", (quota(pods="1"), WEB), ("spec", "hard", "pods")),
    Case("quotaTooSmall", (quota(**{"requests.cpu": "150m"}), WEB), ("requests.cpu",)),
    Case("quotaTooSmall", (quota(services="0"), WEB, service()), ("services",)),
    Case("quotaBlocksUpdate", (quota(pods="2"), WEB), ("spec",), True),
    Case("quotaNeedsResources", (quota(**{"limits.cpu": "10"}), WEB), ("template", "spec")),
    # hooks and grace
    Case("hookOutlivesGrace", (in_container(WEB, "lifecycle.preStop", {"exec": {"command": ["sleep", "30"]}}),), ("preStop",), True),
    Case("hookOutlivesGrace", (in_pod(in_container(WEB, "lifecycle.preStop", SLEEPER), "terminationGracePeriodSeconds", 15),), ("preStop",), True),
    Case("hookOutlivesGrace", (in_container(WEB, "lifecycle.preStop.sleep.seconds", 30),), ("preStop",), True),
    Case("hookEatsGrace", (in_container(WEB, "lifecycle.preStop.sleep.seconds", 27),), ("preStop",), True),
    Case(
        "hookCommandMissing",
        (in_container(in_container(WEB, "image", "gcr.io/distroless/static-debian12:nonroot"), "lifecycle.preStop", SLEEPER),),
        ("exec", "command"),
        True,
    ),
    Case("commandIsOneWord", (in_container(WEB, "lifecycle.preStop", {"exec": {"command": ["sleep 5"]}}),), ("preStop", "exec", "command"), True),
    Case("commandIsOneWord", (in_container(WEB, "command", ["/server --port 8080"]),), ("command",), True),
    Case("commandIsOneWord", (in_container(WEB, "livenessProbe", {"exec": {"command": ["test -f /alive && true"]}}),), ("command",)),
    Case("hookPortUnresolved", (in_container(WEB, "lifecycle.preStop", {"httpGet": {"port": "admin"}}),), ("port",)),
    Case("asksNode", (in_container(WEB, "lifecycle.preStop", {"httpGet": {"host": "localhost", "port": 8080}}),), ("preStop", "httpGet", "host"), True),
    Case("asksNode", (in_container(WEB, "livenessProbe.httpGet.host", "127.0.0.1"),), ("livenessProbe", "httpGet", "host"), True),
    Case("hookTcpSocket", (in_container(WEB, "lifecycle.preStop", {"tcpSocket": {"port": 8080}}),), ("tcpSocket",)),
    Case("hookPortUndeclared", (drains(8081),), ("httpGet", "port")),
    Case("hookLoops", (hooked('# a pause while requests run\nuntil [ "$(cat /inflight)" = 0 ]; do sleep 1; done'),), ("command",)),
    Case("signalsPause", (shared("kill -INT 1; sleep 6"),), ("preStop", "exec", "command")),
    Case("signalsPause", (shared("test -f /x && kill -s SIGTERM 1"),), ("preStop", "exec", "command")),
    Case("signalsPause", (shared("kill 1 2>/dev/null || true"),), ("preStop", "exec", "command")),
    Case("signalsPause", (shared("kill -HUP 1"),), ("preStop", "exec", "command")),
    Case("signalsPause", (shared("pkill -INT -P 1"),), ("preStop", "exec", "command")),
    Case("signalsPause", (in_pod(in_container(WEB, "args", ["kill", "-TERM", "1"]), "shareProcessNamespace", True),), ("args",)),
    Case("readinessOnlyConnects", (service(), only_connects(ALIVE)), ("readinessProbe",)),
    Case("readinessOnlyConnects", (service(), only_connects({"tcpSocket": {"port": 8080}})), ("readinessProbe",)),
    Case("readinessOnlyConnects", (service(ports=[{"name": "web", "port": 80, "targetPort": 8080, "appProtocol": "http"}]), only_connects({"tcpSocket": {"port": 8080}}, "web")), ("readinessProbe",)),
    Case("readinessOnlyConnects", (service(ports=CQL), only_connects({"httpGet": {"port": "cql"}}, "cql")), ("readinessProbe",)),
    Case("livenessAsksAnother", (OF_DB, asks_alive("pg_isready", "-h", "db")), ("livenessProbe",)),
    Case("livenessAsksAnother", (OF_DB, asks_alive("sh", "-c", "wget -qO- http://db.default.svc:80/ | grep ok")), ("livenessProbe",)),
    Case("livenessAsksAnother", (OF_DB, in_container(WEB, "livenessProbe", {"tcpSocket": {"host": "db", "port": 80}, "failureThreshold": 6})), ("livenessProbe",)),
    Case("backendEndsFirst", (service(), behind("http://127.0.0.1:9000")), ("containers", 1), True),
    Case("serviceLinkRead", (service("cache"), shell("exec server --cache ${CACHE_PORT:-6379}")), ("containers", 0), True),
    Case("sidecarHoldsJob", (proxied("postgres://app@127.0.0.1:5432/db"),), ("containers", 1), True),
    Case("hookStopsAtOnce", (service(), in_container(WEB, "lifecycle.preStop", {"exec": {"command": ["nginx", "-s", "quit"]}})), ("command",)),
    Case("graceTooShort", (in_pod(in_container(WEB, "lifecycle", NOTHING), "terminationGracePeriodSeconds", 0),), ("terminationGracePeriodSeconds",), True),
    Case("graceTooShort", (in_pod(in_container(WEB, "lifecycle", NOTHING), "terminationGracePeriodSeconds", 1),), ("terminationGracePeriodSeconds",), True, severity="warning"),
    Case("graceTooShort", (in_pod(in_container(STATEFUL, "lifecycle", NOTHING), "terminationGracePeriodSeconds", 0),), ("terminationGracePeriodSeconds",), True, severity="error"),
    Case("noPauseBeforeStop", (service(), in_container(WEB, "lifecycle", NOTHING)), ("containers", 0), True),
    Case("noPauseBeforeStop", (service(), in_container(WEB, "lifecycle", {"postStart": {"sleep": {"seconds": 1}}})), ("containers", 0), True),
    Case("localTrafficCutAtStop", (service(type="LoadBalancer", externalTrafficPolicy="Local"), in_container(WEB, "lifecycle", NOTHING)), ("containers", 0), True),
    # stop signals
    Case("shellKeepsSignal", (shell("migrate && server --port 8080"),), ("command",)),
    Case("shellKeepsSignal", (shell("server | tee /log"),), ("command",)),
    Case("shellKeepsSignal", (shell("while true; do poll; sleep 5; done"),), ("command",)),
    Case("shellKeepsSignal", (in_container(in_container(WEB, "command", ["/bin/bash"]), "args", ["-ec", "setup\nserver > /log"]),), ("args",)),
    Case("wrapperKeepsSignal", (in_container(WEB, "command", ["npm", "run", "start"]),), ("command",)),
    Case("stopSignalReloads", (in_container(WEB, "command", ["uwsgi", "--http", ":8080"]),), ("command",), True),
    Case("stopSignalReloads", (in_container(in_container(WEB, "command", ["uwsgi"]), "args", ["--http", ":8080"]),), ("args",), True),
    Case("stopSignalIgnored", (shell("trap '' TERM; exec server"),), ("command",)),
    Case("stopSignalIgnored", (changed(CRLF, "data", {"stop.sh": '#!/bin/sh\ntrap "" INT SIGTERM\nexec server\n'}), scripted(["sh", "/hooks/stop.sh"], "command")), ("command",)),
    Case("drainLongerThanGrace", (in_container(WEB, "command", ["gunicorn", "--graceful-timeout", "60", "app:app"]),), ("command",), True),
    Case("drainLongerThanGrace", (in_container(WEB, "env", [{"name": "SPRING_LIFECYCLE_TIMEOUT_PER_SHUTDOWN_PHASE", "value": "45s"}]),), ("env", 0), True),
    Case("trapLeavesJob", (shell("server & pid=$!; trap 'kill $pid' TERM; wait $pid"),), ("command",)),
    Case("trapLeavesJob", (shell("server 2>&1 & pid=$!\ntrap 'kill $pid; exit 0' INT TERM\nwait"),), ("command",)),
    Case("trapLeavesJob", (shell("server & pid=$!; trap 'kill $pid' TERM; wait $pid; code=$?; echo $code; exit $code"),), ("command",)),
    Case("trapLeavesJob", (changed(CRLF, "data", {"stop.sh": "#!/bin/bash\nstop() {\n  kill -TERM \"$pid\"\n  exit 0\n}\ntrap stop SIGTERM\nserver &\npid=$!\nwait \"$pid\"\n"}), scripted(["/hooks/stop.sh"], "command", defaultMode=0o755)), ("command",)),
    Case("sidecarHookEndsIt", (beside_sidecar({"httpGet": {"path": "/quitquitquit", "port": 15001}}),), ("initContainers", 0, "lifecycle"), True),
    Case("sidecarHookEndsIt", (beside_sidecar({"exec": {"command": ["sh", "-c", "curl -XPOST localhost:15000/quitquitquit"]}}, postStart={"sleep": {"seconds": 1}}),), ("lifecycle", "preStop"), True),
    Case("postStartWaits", (on_start("until nc -z 127.0.0.1:9000; do sleep 1; done", worker("agent", ports=[{"containerPort": 9000}])),), ("command",), True),
    Case("postStartWaits", (on_start("while True:\n    try:\n        connect(('localhost', 9000))\n        break\n    except OSError: pass", worker("agent", readinessProbe={"tcpSocket": {"port": 9000}}), command=("python3", "-c")),), ("command",), True),
    Case("postStartWaits", (service(), on_start("until curl -sf http://web:80/ready; do sleep 1; done")), ("command",)),
    Case("jobCountsAsDone", (job(worker(command=["sh", "-c", "trap 'echo leaving; exit 0' TERM; work & wait $!"])),), ("command",)),
    Case("jobCountsAsDone", (job(worker(command=["sh", "-c", "stop() { kill $pid; wait $pid; exit 0; }; trap stop TERM; work & pid=$!; wait"]), kind="CronJob", podReplacementPolicy="Failed"),), ("command",)),
    Case("jobCountsAsDone", (python("sys.exit(0)"),), ("command",)),
    Case("jobCountsAsDone", (python("os._exit(0)"),), ("command",)),
    Case("finalizerOnPods", (obj("Pod", "p", spec={"containers": [worker()]}, metadata={"name": "p", "finalizers": ["example.com/hold"]}),), ("metadata", "finalizers")),
    Case("shellKeepsSignal", (shell("server; echo it has left"),), ("command",)),
    Case("shellKeepsSignal", (STOP_SH, scripted(["sh", "/hooks/stop.sh"], "command")), ("command",)),
    Case("shellKeepsSignal", (STOP_SH, scripted(["/hooks/stop.sh"], "command", defaultMode=0o755)), ("command",)),
    Case("fileNotExecutable", (STOP_SH, scripted(["/hooks/stop.sh"], "command")), ("command",), True),
    Case("fileNotExecutable", (STOP_SH, scripted(["sh", "-c", "/hooks/stop.sh --now"], "lifecycle.preStop.exec.command")), ("preStop", "exec", "command"), True),
    Case("scriptLineEnds", (CRLF, scripted(["/hooks/stop.sh"], "command", defaultMode=0o755)), ("command",), severity="error"),
    Case("scriptLineEnds", (CRLF, scripted(["sh", "-c", "exec /hooks/stop.sh"], "lifecycle.preStop.exec.command", defaultMode=0o755)), ("command",), severity="error"),
    Case("scriptLineEnds", (CRLF, scripted(["sh", "/hooks/stop.sh"], "lifecycle.postStart.exec.command")), ("postStart", "exec", "command"), severity="warning"),
    Case("scriptLineEnds", (changed(CRLF, "data", {"stop.sh": "#!/bin/sh\necho a\r\nserver\r\n"}), scripted(["/hooks/stop.sh"], "command", defaultMode=0o755)), ("command",), severity="warning"),
    Case("scriptNoInterpreter", (changed(CRLF, "data", {"stop.sh": "echo ending\n"}), scripted(["/hooks/stop.sh"], "command", defaultMode=0o755)), ("command",)),
    Case("scriptNoInterpreter", (changed(CRLF, "data", {"stop.sh": "\n#!/bin/sh\necho\n"}), scripted(["/hooks/stop.sh"], "readinessProbe.exec.command", defaultMode=0o755)), ("command",)),
    Case("execEndsScript", (in_container(WEB, "command", ["sh", "-c", "exec app --port 80\ntouch /shared/done"]),), ("command",)),
    Case("execEndsScript", (in_container(in_container(WEB, "command", ["/bin/bash"]), "args", ["-c", "exec app; cleanup"]),), ("command",)),
    Case("execEndsScript", (changed(CRLF, "data", {"stop.sh": "#!/bin/sh\nexec app 2>&1\necho ended\ncleanup\n"}), scripted(["/hooks/stop.sh"], "command", defaultMode=0o755)), ("command",)),
    Case("secretLineEnd", (obj("Secret", "upstream", data={"token": "dG9rLTVmM2E5Cg=="}), in_container(WEB, "env", [{"name": "T", "valueFrom": {"secretKeyRef": {"name": "upstream", "key": "token"}}}])), ("data", "token")),
    Case("secretLineEnd", (obj("Secret", "upstream", stringData={"token": "tok\n"}), in_container(WEB, "envFrom", [{"secretRef": {"name": "upstream"}}])), ("stringData", "token")),
    Case("unrendered", (in_container(WEB, "image", "example.com/web:${VERSION}"),), ("image",)),
    Case("hookCommandMissing", (in_container(in_container(WEB, "env", [{"name": "PATH", "value": "/opt/app/bin"}]), "lifecycle.preStop", {"exec": {"command": ["sleep", "5"]}}),), ("command",), True),
    Case("graceOnProbe", (in_container(WEB, "livenessProbe.terminationGracePeriodSeconds", 60),), ("livenessProbe", "terminationGracePeriodSeconds"), True),
    Case("hookCommandMissing", (in_container(in_container(WEB, "image", "python:3.13-slim"), "lifecycle.preStop", {"exec": {"command": ["sh", "-c", "curl -X POST localhost/stop"]}}),), ("command",)),
    Case("finalizerOnPods", (changed(WEB, "spec.template.metadata.finalizers", ["example.com/hold"]),), ("finalizers",)),
    # probes
    Case("noReadinessProbe", (service(), in_container(WEB, "readinessProbe", NOTHING)), ("containers", 0), True),
    Case("probePortUnresolved", (in_container(WEB, "readinessProbe.httpGet.port", "web"),), ("port",), True),
    Case("probeCommandMissing", (in_container(in_container(WEB, "image", "gcr.io/distroless/java21"), "livenessProbe", {"exec": {"command": ["cat", "/alive"]}}),), ("command",)),
    Case("livenessKillsStart", (in_container(WEB, "livenessProbe", {**ALIVE, "periodSeconds": 3}),), ("livenessProbe",), True),
    Case("livenessKillsStart", (in_container(WEB, "startupProbe", {**ALIVE, "periodSeconds": 1, "failureThreshold": 5}),), ("startupProbe",), True),
    Case("livenessKillsAtOnce", (in_container(WEB, "livenessProbe", {**ALIVE, "failureThreshold": 1, "initialDelaySeconds": 30}),), ("failureThreshold",), True),
    Case("livenessNotPatient", (service(), in_container(WEB, "livenessProbe", {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5}),), ("livenessProbe",)),
    Case("startupShorterThanDelay", (in_container(in_container(WEB, "startupProbe", {**ALIVE, "periodSeconds": 2}), "livenessProbe", {**ALIVE, "initialDelaySeconds": 60}),), ("startupProbe",)),
    # Services and Ingresses
    Case("webhookGuardsItself", (WEB, service(), webhook()), ("webhooks", 0), True),
    Case("webhookGuardsItself", (WEB, service(), webhook("Validating", rules=[EVERYTHING])), ("webhooks", 0), True),
    Case("webhookGuardsItself", (WEB, service(), webhook(objectSelector={})), ("webhooks", 0)),
    Case("webhookGuardsItself", (WEB, service(), webhook(failurePolicy="Fail")), ("webhooks", 0), True),
    Case("serviceSelectsNothing", (WEB, service(selector={"app": "webb"})), ("selector",), True, severity="warning"),
    Case("serviceSelectsNothing", (WEB, service(selector={"app": "webb"})), ("selector",), True, fresh=True, severity="error"),
    Case("serviceSelectsNothing", (WEB, service(selector={"run": "frontend"})), ("selector",), True),
    Case("serviceSelectsNothing", (WEB, changed(service(), "metadata.namespace", "other")), ("metadata",)),
    Case("targetPortUnresolved", (WEB, changed(service(), "spec.ports.0.targetPort", "httpp")), ("targetPort",), True),
    Case("targetPortUnresolved", (in_container(WEB, "ports", [{"containerPort": 8080}]), service()), ("targetPort",), True),
    Case("targetPortUndeclared", (WEB, changed(service(), "spec.ports.0.targetPort", 9090)), ("targetPort",), True),
    Case("targetPortUndeclared", (WEB, changed(service(), "spec.ports.0.targetPort", NOTHING)), ("ports", 0), True),
    Case("serviceSelectsJob", (WEB, changed(job(worker()), "spec.template.metadata", {"labels": {"app": "web"}}), service()), ("selector",)),
    Case("serviceSelectsStranger", (WEB, WORKER, changed(service(), "spec.ports.0.targetPort", 8080)), ("selector",)),
    Case("unreadyPodsPublished", (WEB, service(publishNotReadyAddresses=True)), ("publishNotReadyAddresses",), True),
    Case("namesRemembered", (WEB, service(clusterIP="None")), ("clusterIP",)),
    Case("nodePortLost", (WEB, service(type="NodePort")), ("type",)),
    Case("ingressServiceMissing", (WEB, service("webs"), INGRESS), ("service", "name"), True),
    Case("ingressPortUnknown", (WEB, service(), changed(INGRESS, f"{BACKEND}.port", {"number": 8080})), ("port",), True),
    Case("ingressPortUnknown", (WEB, service(), changed(INGRESS, f"{BACKEND}.port", {"name": "web"})), ("port",), True),
    # what Pods refer to
    Case("claimMissing", (in_pod(WEB, "volumes", [VOLUME]),), ("claimName",), fresh=True, severity="error"),
    Case("claimMissing", (in_pod(WEB, "volumes", [VOLUME]), changed(changed(CLAIM, "metadata.name", "dataa"), "spec.accessModes", ["ReadWriteMany"])), ("claimName",), True, severity="warning"),
    Case("configMissing", (in_container(WEB, "env", ENV),), ("name",), fresh=True),
    Case("configMissing", (in_container(WEB, "env", ENV), changed(SETTINGS, "metadata.name", "setings")), ("name",), True),
    Case("configMissing", (in_container(WEB, "env", ENV), changed(SETTINGS, "metadata.namespace", "other")), ("name",)),
    Case("secretMissing", (in_container(WEB, "envFrom", [{"secretRef": {"name": "db"}}]),), ("name",), fresh=True),
    Case("accountMissing", (in_pod(WEB, "serviceAccountName", "shop"),), ("serviceAccountName",), fresh=True),
    Case("configKeyMissing", (in_container(WEB, "env", ENV), obj("ConfigMap", "settings", data={"color": "red"})), ("key",), True),
    Case("configKeyMissing", (SETTINGS, mounted({"configMap": {"name": "settings"}}, "color")), ("subPath",), True, severity="warning"),
    Case("configKeyMissing", (obj("Secret", "tls", data={"tls.key": "aw=="}), mounted({"secret": {"secretName": "tls"}}, "ca.pem")), ("subPath",), severity="warning"),
    Case("configKeyMissing", (SETTINGS, mounted({"configMap": {"name": "settings", "items": [{"key": "colour", "path": "app.ini"}]}}, "colour")), ("subPath",), severity="warning"),
    Case("memoryVolumeFills", (in_memory(),), ("emptyDir",), severity="info"),
    Case("memoryVolumeFills", (in_memory(sizeLimit="128Mi"),), ("emptyDir",), severity="warning"),
    Case("hostNameUnknown", in_namespaces("data"), ("env", 0, "value")),
    Case("hostNameUnknown", (in_container(STATEFUL, "env", [{"name": "MASTER", "value": "db-0.db-headless:6379"}]), service("db-headless", selector={"app": "web"}, clusterIP="None")), ("env", 0, "value")),
    Case("hostNameUnknown", (service("database"), in_pod(WEB, "initContainers", [worker("wait", command=["sh", "-c", "until nc -z databse 5432; do sleep 1; done"])])), ("command", 2)),
    Case("hostNameUnknown", (service("database"), in_container(WEB, "env", [{"name": "DB_HOST", "value": "databases"}])), ("env", 0, "value")),
    Case("hostNameUnknown", (service("database"), in_container(WEB, "env", [{"name": "DB", "value": "postgres://u:p@datbase.default:5432/x"}])), ("value",)),
    # budgets and autoscalers
    Case("budgetNeverAllows", (WEB, budget(minAvailable=2)), ("minAvailable",), True),
    Case("budgetNeverAllows", (WEB, budget(minAvailable="100%")), ("minAvailable",), True),
    Case("budgetNeverAllows", (WEB, budget(maxUnavailable=0)), ("maxUnavailable",), True),
    Case("budgetNeverAllows", (WEB, budget()), ("spec",), True),
    Case("budgetNeverAllows", (NO_REPLICAS, changed(SCALER_V1, "spec.minReplicas", 1), budget(minAvailable=1)), ("minAvailable",), True, severity="warning"),
    Case("budgetSelectsNothing", (WEB, budget(maxUnavailable=1, selector={"matchLabels": {"app": "wep"}})), ("selector",), True),
    Case("budgetsOverlap", (WEB, budget(maxUnavailable=1), budget("other", maxUnavailable=1)), ("selector",)),
    Case("scalerSetBack", (WEB, SCALER_V1), ("replicas",), True),
    Case("scalerNeedsRequests", (in_container(NO_REPLICAS, "resources", NOTHING), SCALER_V1), ("containers", 0)),
    Case("scalerTargetMissing", (WEB, changed(SCALER_V1, "spec.scaleTargetRef.name", "webb")), ("name",), True),
    # updates
    Case("updateTakesAllPods", (strategy(maxUnavailable="100%", maxSurge=1), service()), ("maxUnavailable",), True),
    Case("updateTakesAllPods", (changed(strategy(maxUnavailable=1, maxSurge=0), "spec.replicas", 1), service()), ("maxUnavailable",), True),
    Case("pinnedToNode", (in_pod(WEB, "nodeName", "node-1"),), ("nodeName",), True),
    Case("recreateLeavesGap", (changed(WEB, "spec.strategy", {"type": "Recreate"}), service()), ("strategy",), True),
    Case("hostPortBlocksUpdate", (in_container(WEB, "ports.0.hostPort", 8080),), ("ports", 0), True),
    Case("claimBlocksUpdate", (CLAIM, changed(in_pod(WEB, "volumes", [VOLUME]), "spec.replicas", 1)), ("volumes", 0), True, severity="warning"),
    Case("claimBlocksUpdate", (changed(CLAIM, "spec.accessModes", ["ReadWriteOncePod"]), changed(in_pod(WEB, "volumes", [VOLUME]), "spec.replicas", 1)), ("volumes", 0), True, severity="error"),
    Case("progressDeadlineTooShort", (changed(in_container(WEB, "startupProbe", {**ALIVE, "failureThreshold": 30}), "spec.progressDeadlineSeconds", 120),), ("progressDeadlineSeconds",), True),
    Case("selectorsOverlap", (WEB, changed(deployment(), "metadata.name", "web-2")), ("selector",)),
    # Jobs, users
    Case("sidecarHoldsJob", (job(worker(), {"name": "proxy", "image": "docker.io/istio/proxyv2:1.22"}),), ("containers", 1), True),
    Case("sidecarHoldsJob", (job(worker(), worker("wait", command=["sleep", "infinity"])),), ("containers", 1), True),
    Case("sidecarHoldsJob", (job(worker(), worker("logs", command=["sh", "-c", "trap 'exit 0' TERM; while true; do sync; sleep 1; done"])),), ("containers", 1), True),
    Case("sidecarHoldsJob", (job(worker(), worker("logs", command=["sh", "-c", "touch /log; exec tail -n +1 -F /log"])),), ("containers", 1), True),
    Case("sidecarHoldsJob", (job(worker(env=[{"name": "DATABASE_URL", "value": "postgres://127.0.0.1:5432/db"}]), worker("proxy", startupProbe={"tcpSocket": {"port": 5432}})),), ("containers", 1), True),
    Case("cronJobOverlaps", (changed(job(worker(), kind="CronJob"), "spec.schedule", "*/2 * * * *"),), ("schedule",), True),
    Case("rootForbidden", (in_container(WEB, "securityContext", {"runAsNonRoot": True, "runAsUser": 0}),), ("runAsUser",)),
    Case("peersInOrder", (MEMBERS, service("db", clusterIP="None", publishNotReadyAddresses=True)), ("readinessProbe",), True),
    Case("peersInOrder", (MEMBERS, service("db", clusterIP="None")), ("readinessProbe",)),
    Case("peersInOrder", (in_container(STATEFUL, "command", ["sh", "-c", "for i in $(seq 0 2); do join db-$i.db; done; exec db"]),), ("readinessProbe",), True),
    Case("probeCommandSlow", (in_container(WEB, "livenessProbe", {"exec": {"command": ["sh", "-c", "celery -A app inspect ping"]}, "failureThreshold": 6}),), ("livenessProbe",), True),
    Case("probeCommandSlow", (in_container(in_container(WEB, "readinessProbe", {"exec": {"command": ["check", "-r"]}, "timeoutSeconds": 7}), "livenessProbe", {"exec": {"command": ["check"]}, "failureThreshold": 6}),), ("livenessProbe",), True),
    Case("groupWithoutUser", (in_pod(WEB, "securityContext", {"runAsGroup": 1000}),), ("runAsGroup",)),
    Case("filesUnreadable", (private(0o400, runAsUser=1000),), ("secret", "defaultMode"), True, fresh=False),
    Case("filesUnreadable", (private(0o440, runAsUser=1000, runAsGroup=1000),), ("secret", "defaultMode"), True),
    Case("imageMayRunAsRoot", (in_container(in_pod(WEB, "securityContext", {"runAsNonRoot": True}), "image", "nginx:1.29"),), ("containers", 0)),
)  # fmt: skip


def ids(case: Case) -> str:
    return f"{case.rule}-{CASES.index(case)}"


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_a_rule_finds_what_it_is_for(case: Case):
    finding = only(case.rule, *case.objects, fresh=case.fresh)
    assert finding.path[len(finding.path) - len(case.path) :] == case.path
    assert finding.severity == (case.severity or finding.severity)
    assert finding.message.endswith((".", "?"))
    assert bool(finding.patch) == (case.fixed is not None), finding.patch


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_findings_are_valid_sarif(case: Case):
    found = [Located(each, Spot("a b.yaml", 1, 1)) for each in findings(*case.objects, fresh=case.fresh)]
    assert sarif_problems(as_sarif(LintResult(found, (), ["a b.yaml"], len(case.objects), 1, "0"))) == []


@pytest.mark.parametrize("case", [case for case in CASES if case.fixed], ids=ids)
def test_a_patch_removes_its_finding_and_brings_no_worse_one(case: Case):
    finding = only(case.rule, *case.objects, fresh=case.fresh)
    index = next(at for at, each in enumerate(case.objects) if each is finding.subject.raw)
    after = list(case.objects)
    after[index] = patched(finding.subject.raw, finding.patch)
    left = findings(*after, fresh=case.fresh)
    assert case.rule not in [each.rule for each in left], [each.message for each in left]
    before = {each.rule for each in findings(*case.objects, fresh=case.fresh)}
    assert {each.rule for each in left if each.severity != "info"} <= before


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("migrate && LEVEL=1 /opt/server --port 8080", "Put `exec` before server"),
        ("server | tee /log", 'command: ["sh", "-c", "exec server"]'),
        ("cd /app; server 'a b' | tee /log", "`exec PROGRAM > >(tee FILE)`"),
        ("server & other & wait", "trap 'kill $pid' TERM"),
        ("while true; do poll; sleep 5; done", "`trap 'exit 0' TERM`"),
        ("server; echo it has left", "commands after server"),
    ],
)
def test_exec_is_advised_only_where_it_gives_the_program_the_shells_place(script: str, words: str):
    assert words in only("shellKeepsSignal", shell(script)).fix


@pytest.mark.parametrize(
    "script",
    [
        "trap '' HUP; exec server",
        "trap '' TERM; setup; trap - TERM; exec server",
        "trap 'exit 0' TERM; server & wait",
        "trap '' TERM; setup; trap 'kill $pid' TERM; server & pid=$!; wait",
    ],
)
def test_a_shell_that_ignores_another_signal_or_only_for_a_while_is_no_finding(script: str):
    assert "stopSignalIgnored" not in [each.rule for each in findings(shell(script))]


def test_a_script_in_a_file_that_ends_with_a_pipeline_is_told_so():
    piped = obj("ConfigMap", "hooks", data={"stop.sh": "#!/bin/bash\nsetup\nserver | tee /log\n"})
    finding = only("shellKeepsSignal", piped, scripted(["sh", "/hooks/stop.sh"], "command"))
    assert finding.fix.startswith("A shell waits for its pipeline")


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_an_error_is_certain(case: Case):
    for finding in findings(*case.objects, fresh=case.fresh):
        assert finding.severity != "error" or finding.certainty == "certain"


def test_every_rule_has_a_case():
    elsewhere = {"unreadable", "doubledKey", "suppressionInvalid", "suppressionUnused"}  # test_lint_command.py
    assert {case.rule for case in CASES} | elsewhere == set(RULES)


# -- no alarm where nothing is wrong ---------------------------------------------------------------------------------

PROXIED = in_pod(
    in_pod(WEB, "containers", [container(ports=NOTHING, readinessProbe=NOTHING, livenessProbe=NOTHING)]),
    "initContainers",
    [{**SIDECAR, "ports": [{"name": "http", "containerPort": 80}], "startupProbe": {"tcpSocket": {"port": "http"}}}],
)
TEST_HOOK = changed(
    obj("Pod", "test", spec={"restartPolicy": "Never", "containers": [{"name": "wget", "image": "busybox:1.36"}]}),
    "metadata",
    {
        "name": "test",
        "labels": WEB["spec"]["template"]["metadata"]["labels"],
        "annotations": {"helm.sh/hook": "test"},
    },
)
IN_ORDER = {
    "an exec that only opens files": (in_container(WEB, "command", ["sh", "-c", "exec 2>&1 >/log; migrate; exec app"]),),
    "an exec for some arguments": (in_container(WEB, "command", ["sh", "-c", "if [ -n \"$1\" ]; then\nexec app\nfi\nexec web"]),),
    "an exec and what says that it failed": (in_container(WEB, "command", ["sh", "-c", "exec app; echo 'no app' >&2; exit 127"]),),
    "a Secret of a file with lines": (
        obj("Secret", "tls", stringData={"key": "-----BEGIN\nabc\n-----END\n", "token": "tok"}),
        in_container(WEB, "envFrom", [{"secretRef": {"name": "tls"}}]),
    ),
    "a Secret with a line end in a volume": (
        obj("Secret", "tls", data={"token": "dG9rCg=="}),
        in_pod(WEB, "volumes", [{"name": "tls", "secret": {"secretName": "tls"}}]),
    ),
    "an application": (WEB, service(), budget(maxUnavailable=1), INGRESS, SETTINGS, in_container(deployment("b"), "env", ENV)),
    "a budget that leaves one": (WEB, budget(minAvailable=1)),
    "a budget in percent": (changed(WEB, "spec.replicas", 4), budget(minAvailable="50%")),
    "an autoscaler": (NO_REPLICAS, changed(SCALER_V1, "spec.minReplicas", 3), budget(minAvailable=2)),
    "a headless Service of peers": (STATEFUL, service("db", clusterIP="None", publishNotReadyAddresses=True)),
    "members made at once": (changed(MEMBERS, "spec.podManagementPolicy", "Parallel"),),
    "one member": (changed(MEMBERS, "spec.replicas", 1),),
    "members whose port alone is asked": (in_container(MEMBERS, "readinessProbe", {"tcpSocket": {"port": "http"}}),),
    "a member that names the first one": (in_container(STATEFUL, "args", ["--join=db-0.db"]),),
    "a member that names itself": (in_container(STATEFUL, "args", ["--advertise=db-${ORDINAL}.db"]),),
    "names of members of another StatefulSet": (in_container(STATEFUL, "args", ["--kafka=kafka-0.kafka,other-db-1.db"]),),
    "a slow command with time": (in_container(WEB, "livenessProbe", {"exec": {"command": ["celery", "inspect", "ping"]}, "timeoutSeconds": 10, "failureThreshold": 6}),),
    "a quick command": (in_container(WEB, "livenessProbe", {"exec": {"command": ["cat", "/tmp/java"]}, "failureThreshold": 6}),),
    "a Service of something else": (WEB, service(), service("redis", selector={"app": "redis"})),
    "a Service without a workload": (service("redis", selector={"app": "redis"}),),
    "a Service of an operator's Pods": (
        obj("Cluster", "db", "postgresql.cnpg.io/v1"),
        in_container(deployment(), "lifecycle", {"preStop": {"sleep": {"seconds": 5}}}),
        service("db-rw", selector={"cnpg.io/cluster": "db"}),
    ),
    "an external name": (WEB, obj("Service", "mail", spec={"type": "ExternalName", "externalName": "mail.example"})),
    "a port that is not declared, where none is": (in_container(in_container(in_container(WEB, "ports", NOTHING), "readinessProbe.httpGet.port", 8080), "livenessProbe.httpGet.port", 8080), changed(service(), "spec.ports.0.targetPort", 8080)),
    "a named port, which Pods of others do not have": (WEB, WORKER, service()),
    "a probe whose kills are quicker": (in_container(WEB, "livenessProbe.terminationGracePeriodSeconds", 5),),
    "curl in an image that has it": (in_container(in_container(WEB, "image", "nginx:1.29"), "lifecycle.preStop", {"exec": {"command": ["curl", "localhost/stop"]}}),),
    "hosts that are there, outside, or other things": (
        service("database"),
        in_container(
            in_container(WEB, "args", ["--url=http://database.default.svc/", "https://databases.example.com"]),
            "env",
            [{"name": "DB_HOST", "value": "database"}, {"name": "MODE", "value": "databases"}, {"name": "X_URL", "value": "http://databse.example.org"}],
        ),
    ),
    "a canary": (WEB, changed(changed(changed(deployment(), "metadata.name", "web-canary"), "spec.selector.matchLabels", {"app": "web", "track": "canary"}), "spec.template.metadata.labels", {"app": "web", "track": "canary"}), service()),
    "a list in bash, whose last command takes its place": (in_container(WEB, "command", ["bash", "-c", "migrate && server"]),),
    "a list in Alpine's sh": (in_container(shell("migrate && server"), "image", "node:22-alpine"),),
    "exec in a shell": (shell("migrate && exec server --port 8080"),),
    "a shell that handles signals": (shell("trap 'kill $!; wait $!' TERM; server & wait"),),
    "a shell under an init": (in_container(WEB, "command", ["tini", "--", "sh", "-c", "setup; server"]),),
    "a program of its own": (in_container(WEB, "command", ["/server", "--sh", "-c"]),),
    "a shell in an init container": (in_pod(WEB, "initContainers", [worker("init", command=["sh", "-c", "a; b"])]),),
    "a shell in a Job": (job(worker(command=["sh", "-c", "a; b"])),),
    "npm ci in a Job": (job(worker(command=["npm", "run", "report"])),),
    "uwsgi that ends": (in_container(WEB, "command", ["uwsgi", "--die-on-term"]),),
    "uwsgi with a file": (in_container(WEB, "command", ["uwsgi", "app.ini"]),),
    "gunicorn within its grace": (in_pod(in_container(WEB, "command", ["gunicorn", "--graceful-timeout=60"]), "terminationGracePeriodSeconds", 90),),
    "an exec hook in an image with a shell": (in_container(WEB, "lifecycle.preStop", SLEEPER),),
    "a debug image": (in_container(in_container(WEB, "image", "gcr.io/distroless/base:debug"), "lifecycle.preStop", SLEEPER),),
    "sleep, then quit": (service(), in_container(WEB, "lifecycle.preStop", {"exec": {"command": ["sh", "-c", "sleep 5; nginx -s quit"]}})),
    "a patient livenessProbe": (in_container(WEB, "livenessProbe", {"httpGet": {"path": "/ready", "port": "http"}, "failureThreshold": 6}),),
    "a startupProbe": (in_container(in_container(WEB, "startupProbe", {**ALIVE, "failureThreshold": 30}), "livenessProbe", {**ALIVE, "periodSeconds": 3}),),
    "Recreate with a claim": (CLAIM, changed(in_pod(WEB, "volumes", [VOLUME]), "spec.strategy", {"type": "Recreate"}), service()),
    "a claim for many": (changed(CLAIM, "spec.accessModes", ["ReadWriteMany"]), in_pod(WEB, "volumes", [VOLUME])),
    "claims of a StatefulSet": (changed(in_pod(STATEFUL, "volumes", []), "spec.volumeClaimTemplates", [{"metadata": {"name": "data"}, "spec": CLAIM["spec"]}]),),
    "an optional ConfigMap": (in_container(WEB, "envFrom", [{"configMapRef": {"name": "x", "optional": True}}]),),
    "a Secret of an external operator": (obj("ExternalSecret", "db", "external-secrets.io/v1"), in_container(WEB, "envFrom", [{"secretRef": {"name": "db"}}])),
    "a DaemonSet with a host port": (obj("DaemonSet", "agent", "apps/v1", spec={"selector": WEB["spec"]["selector"], "template": in_container(WEB, "ports.0.hostPort", 9100)["spec"]["template"]}),),
    "a host port that makes room": (in_container(strategy(maxUnavailable=1, maxSurge=0), "ports.0.hostPort", 8080),),
    "a sidecar that is sent to, held by the application's hook": (service(), PROXIED),
    "a headless Service of a port that is not declared": (STATEFUL, service("db", clusterIP="None", ports=[{"name": "gossip", "port": 7946}])),
    "one replica that is recreated": (changed(changed(in_container(WEB, "lifecycle", NOTHING), "spec.strategy", {"type": "Recreate"}), "spec.replicas", 1), service()),
    "a sidecar of a Job": (job(worker(), template={"spec": {"restartPolicy": "Never", "initContainers": [SIDECAR], "containers": [worker()]}}),),
    "a Job that uses redis-cli": (job(worker(), {"name": "flush", "image": "redis:7", "command": ["redis-cli", "flushall"]}),),
    "a CronJob every minute that forbids": (changed(changed(job(worker(), kind="CronJob"), "spec.schedule", "* * * * *"), "spec.concurrencyPolicy", "Forbid"),),
    "non-root by number": (in_container(in_pod(WEB, "securityContext", {"runAsNonRoot": True, "runAsUser": 101}), "image", "nginx:1.29"),),
    "a key for a group": (private(0o400, runAsUser=1000, fsGroup=1000),),
    "a key for root's group": (private(0o440, runAsUser=1000),),
    "a key for root": (private(0o400),),
    "a program with a space in its directory": (in_container(WEB, "command", ["/server", "two words"]),),
    "a file of a ConfigMap that may be run": (STOP_SH, scripted(["/hooks/stop.sh"], "lifecycle.preStop.exec.command", defaultMode=0o555)),
    "a file of a ConfigMap for its interpreter": (STOP_SH, scripted(["bash", "/hooks/stop.sh"], "lifecycle.preStop.exec.command")),
    "a script of a ConfigMap that ends with exec": (changed(STOP_SH, "data", {"stop.sh": "setup\nexec server\n"}), scripted(["sh", "/hooks/stop.sh"], "command")),
    "a script without an interpreter that a shell runs": (changed(STOP_SH, "data", {"stop.sh": "echo ending\n"}), scripted(["sh", "-c", "/hooks/stop.sh"], "lifecycle.preStop.exec.command", defaultMode=0o755)),
    "a script in Python with Windows line ends": (changed(STOP_SH, "data", {"stop.sh": "import time\r\n"}), scripted(["python3", "/hooks/stop.sh"], "lifecycle.preStop.exec.command")),
    "a test of the chart beside the application": (WEB, service(), TEST_HOOK),
    "a PATH with the usual places": (in_container(in_container(WEB, "env", [{"name": "PATH", "value": "/opt/app/bin:/usr/bin"}]), "lifecycle.preStop", SLEEPER),),
    "an unprivileged image": (in_container(in_pod(WEB, "securityContext", {"runAsNonRoot": True}), "image", "nginxinc/nginx-unprivileged:1.29"),),
    "a quota with room": (quota(pods="3", **{"requests.cpu": "1", "limits.memory": "1Gi"}), WEB),
    "a quota, and limits filled in": (quota(**{"limits.cpu": "10"}), obj("LimitRange", "d", spec={"limits": [{"type": "Container", "default": {"cpu": "1"}}]}), WEB),
    "replicas 0": (changed(in_container(WEB, "lifecycle", NOTHING), "spec.replicas", 0), service(), budget(minAvailable=1)),
    "a custom resource named as a kind": (obj("Service", "hello", "serving.knative.dev/v1", spec={"anything": 1}),),
    "a namespace that only warns": (changed(RESTRICTED, "metadata.labels", {"pod-security.kubernetes.io/warn": "restricted"}), WEB),
    "a bare Pod": (obj("Pod", "once", spec={"restartPolicy": "Never", "containers": [worker()]}),),
}  # fmt: skip


def test_hooks_and_kinds_of_other_products_are_said_to_be_not_checked():
    monitor = obj("ServiceMonitor", "web", "monitoring.coreos.com/v1")
    found = report(WEB, service(), TEST_HOOK, monitor)
    assert found.findings == ()
    assert [(str(each.subject), each.why) for each in found.not_checked] == [
        ("Pod test", "hook"),
        ("ServiceMonitor web", "kind"),
    ]


def test_a_hook_that_is_all_there_is_is_checked():
    hook = changed(TEST_HOOK, "spec.containers.0.command", ["wget -q web"])
    assert "commandIsOneWord" in rules(hook)
    assert "commandIsOneWord" not in rules(hook, WEB, service())


def test_a_misspelt_kind_is_a_finding_and_not_one_of_another_product():
    found = report(obj("Deploymant", "web", "apps/v1"))
    assert [each.rule for each in found.findings] == ["unknownApiVersion"]
    assert found.not_checked == ()


@pytest.mark.parametrize("name", IN_ORDER)
def test_nothing_is_found_where_nothing_is_wrong(name: str):
    assert [(each.rule, each.message) for each in findings(*IN_ORDER[name])] == []


def test_what_is_not_in_the_files_is_said_and_no_finding():
    found = report(
        in_container(WEB, "envFrom", [{"secretRef": {"name": "db"}}]), service("redis", selector={"app": "redis"})
    )
    assert found.findings == ()
    assert [(each.kind, each.name) for each in found.not_here] == [("Pod", "app=redis"), ("Secret", "db")]


def test_objects_of_other_namespaces_are_not_mixed():
    other = changed(service(), "metadata.namespace", "other")
    assert "serviceSelectsNothing" in rules(WEB, other)
    assert rules(changed(WEB, "metadata.namespace", "other"), other) == []


def test_a_value_of_the_wrong_type_keeps_other_rules_away_from_its_object():
    assert rules(in_container(WEB, "ports", "none"), service(), budget(minAvailable=2)) == ["wrongType"]


@pytest.mark.parametrize("value", [None, 7, "x", [], {"a": {"b": None}}, [None], [[1]], True])
@pytest.mark.parametrize(
    "path",
    [
        "spec",
        "spec.template",
        "spec.template.spec",
        "spec.template.spec.containers",
        "metadata.labels",
        "metadata.annotations",
    ],
)
def test_no_value_makes_a_rule_fail(path: str, value: Any):
    for made in (changed(WEB, path, value), changed(STATEFUL, path, value), changed(job(worker()), path, value)):
        findings(made, service(), budget(minAvailable=1), SCALER_V1, quota(pods="1"))


@pytest.mark.parametrize(
    "made",
    [
        service(ports=[{"name": "http"}]),
        service(ports=[{}]),
        budget(maxUnavailable=1, selector={"matchExpressions": [{"operator": "Exists"}]}),
        changed(WEB, "spec.selector", {"matchExpressions": [{"operator": "In"}]}),
        in_pod(in_pod(WEB, "containers", []), "initContainers", [SIDECAR]),
        in_container(in_container(WEB, "command", ["/x"]), "volumeMounts", [{"name": "hooks"}]),
    ],
)
def test_what_the_api_refuses_makes_no_other_rule_fail(made: dict):
    assert "invalidValue" in rules(WEB, service("other"), budget("b", maxUnavailable=1), made)


def test_a_sidecar_is_looked_at_like_a_container():
    slow = container(
        "proxy", restartPolicy="Always", lifecycle={"preStop": {"exec": {"command": ["sleep", "60"]}}}, ports=[]
    )
    slow = {key: value for key, value in slow.items() if key not in ("readinessProbe", "livenessProbe")}
    found = only("hookOutlivesGrace", in_pod(WEB, "initContainers", [slow]))
    assert "proxy" in found.message


def test_a_liveness_page_of_its_own_is_also_told_what_an_answer_may_take():
    quick = {**ALIVE, "periodSeconds": 2, "failureThreshold": 2}
    same = in_container(in_container(WEB, "readinessProbe", {**ALIVE}), "livenessProbe", quick)
    own = only("livenessKillsStart", in_container(WEB, "livenessProbe", quick))
    assert "longer than 1 s (timeoutSeconds)" in own.message
    assert "timeoutSeconds" not in only("livenessKillsStart", same).message


@pytest.mark.parametrize(
    ("command", "timeout", "told"),
    [("python3", None, True), ("python3", 1, True), ("python3", 5, False), ("/bin/cat", None, False)],
)
def test_a_startup_probe_that_is_proposed_has_the_time_that_its_check_needs(
    command: str, timeout: int | None, told: bool
) -> None:
    given = {} if timeout is None else {"timeoutSeconds": timeout}
    probe = {"exec": {"command": [command, "/app/ping"]}, "periodSeconds": 2, "failureThreshold": 2, **given}
    found = only("livenessKillsStart", in_container(WEB, "livenessProbe", probe))
    added, *raised = found.patch
    assert added.value.get("timeoutSeconds", 1) == (10 if told else timeout or 1)
    assert [op.value for op in raised] == ([10] if told else [])
    assert ("raise timeoutSeconds of both" in found.message) is told


@pytest.mark.parametrize(
    "made",
    [
        webhook(failurePolicy="Ignore"),
        webhook(objectSelector=OF_OTHERS),
        webhook(namespaceSelector=BY_NAME),
        webhook(namespaceSelector=LABELLED),
        webhook(rules=[ON_DEPLOYMENTS]),
        webhook(matchConditions=[{"name": "not-ours", "expression": "object.metadata.namespace != 'default'"}]),
        webhook(clientConfig={"service": {"name": "elsewhere", "namespace": "default"}}),
        webhook(clientConfig={"url": "https://hooks.example"}),
    ],
)
def test_a_webhook_that_somebody_else_answers_for_or_that_exempts_its_pods_is_in_order(made: dict[str, Any]) -> None:
    assert "webhookGuardsItself" not in rules(WEB, service(), made)


def test_a_webhook_whose_service_has_other_pods_too_is_in_order() -> None:
    apart = changed(deployment("apart"), "spec.template.metadata.labels", {"app": "web", "exempt": "yes"})
    apart = changed(apart, "spec.selector.matchLabels", {"app": "web", "exempt": "yes"})
    selector = {"matchExpressions": [{"key": "exempt", "operator": "DoesNotExist"}]}
    assert "webhookGuardsItself" not in rules(WEB, apart, service(), webhook(objectSelector=selector))


AGENT = worker("agent", ports=[{"containerPort": 9000}])
_UNTIL_DB = "until nc -z db 80; do sleep 1; done"
ITEMS = [{"key": "colour", "path": "conf.d/colour.ini"}]
TLS = [{"name": "https", "port": 443, "targetPort": "https"}]
SOUND = [
    ("a port that is declared", (drains(8080),)),
    ("a host of its own", (drains(8081, host="10.0.0.9"),)),
    ("a port that an argument names", (in_container(drains(8081), "args", ["--admin=:8081"]),)),
    ("a port of a container that declares none", (behind_without_ports(),)),
    ("a loop with a counter", (hooked("i=0; while [ $i -lt 9 ]; do i=$((i+1)); sleep 1; done"),)),
    ("a loop with a time limit", (hooked("timeout 9 sh -c 'while pending; do sleep 1; done'"),)),
    (
        "a loop after the hook's own request",
        (hooked("wget -qO- localhost:8080/drain; while pending; do sleep 1; done"),),
    ),
    ("another process of a shared namespace", (shared("kill -INT $(cat /run/app.pid)"),)),
    ("a question to PID 1", (shared("kill -0 1"),)),
    ("PID 1 of the container", (hooked("kill -INT 1"),)),
    ("probes of different ports", (service(ports=CQL), only_connects({"httpGet": {"port": 9000}}, "cql"))),
    ("a liveness command that asks itself", (OF_DB, asks_alive("wget", "-qO-", "http://localhost:8080/alive"))),
    ("a liveness command that asks its own Service", (service("db"), asks_alive("wget", "http://db/"))),
    ("a liveness command with the word", (OF_DB, asks_alive("pgrep", "db"))),
    (
        "a readinessProbe that asks another",
        (OF_DB, in_container(WEB, "readinessProbe", {"exec": {"command": ["nc", "-z", "db", "80"]}})),
    ),
    (
        "a name that the Pod has from its hostAliases",
        (
            *in_namespaces("data")[:1],
            in_pod(in_namespaces("data")[1], "hostAliases", [{"ip": "10.0.0.9", "hostnames": ["database"]}]),
        ),
    ),
    ("a port for TLS", (service(ports=TLS), only_connects({"httpGet": {"port": 9000}}, "https"))),
    ("a neighbour that nobody asks", (service(), behind("http://app:9000"))),
    ("a variable that is set", (service("cache"), set_variable())),
    ("a variable that the shell sets", (service("cache"), shell("CACHE_PORT=6379; exec server --cache $CACHE_PORT"))),
    ("a link that is read as one", (service("cache"), shell("exec server ${CACHE_PORT#tcp://}"))),
    ("no links", (service("cache"), in_pod(shell("exec server $CACHE_PORT"), "enableServiceLinks", False))),
    ("a server that is told to end", (proxied("postgres://127.0.0.1:5432/db", "--quitquitquit"),)),
    ("a server of somebody else", (proxied("postgres://db:5432/db"),)),
    ("a trap that waits", (shell("server & pid=$!; trap 'kill $pid; wait $pid; exit 0' TERM; wait $pid"),)),
    ("a second wait", (shell("server & pid=$!; trap 'kill $pid' TERM; wait $pid; trap - TERM; wait $pid"),)),
    ("a wait in a loop", (shell("server & p=$!; trap 'kill $p' TERM; while kill -0 $p; do wait $p; done"),)),
    ("a trap that asks nobody to end", (shell("trap 'exit 0' TERM; server & wait"),)),
    ("a job that only sleeps", (shell("trap 'exit 0' TERM; while :; do sleep 5 & wait $!; done"),)),
    ("a trap that means to kill", (shell("server & trap 'kill -9 $!; exit 0' TERM; wait"),)),
    ("a trap for another signal", (shell("server & trap 'kill -HUP $!' HUP; wait"),)),
    (
        "a shell that is not PID 1",
        (in_pod(shell("server & trap 'kill $!' TERM; wait"), "shareProcessNamespace", True),),
    ),
    ("a function of another file", (shell(". /lib.sh; trap stop TERM; server & wait"),)),
    ("a sidecar that begins to drain", (beside_sidecar({"httpGet": {"path": "/drain_listeners", "port": 15001}}),)),
    ("a sidecar that ends later", (beside_sidecar({"exec": {"command": ["sh", "-c", "sleep 9; kill 1"]}}),)),
    ("a hook with a time limit", (on_start("timeout 9 sh -c 'until nc -z 127.0.0.1:9000; do sleep 1; done'", AGENT),)),
    ("a hook that asks its own port", (on_start("until nc -z 127.0.0.1:8080; do sleep 1; done", AGENT),)),
    ("a hook that asks once", (on_start("wget -qO- 127.0.0.1:9000 || true", AGENT),)),
    ("a hook that counts", (on_start("for i in 1 2 3; do nc -z 127.0.0.1:9000 && break; sleep 1; done", AGENT),)),
    ("a hook that waits for another's Service", (service("db", selector={"app": "db"}), on_start(_UNTIL_DB))),
    (
        "a Service of Pods that are not ready",
        (service("db", clusterIP="None", publishNotReadyAddresses=True), on_start(_UNTIL_DB)),
    ),
    ("a Service of others, too", (service("db"), WORKER, on_start(_UNTIL_DB))),
    ("a Job that is interrupted", (job(worker(command=["sh", "-c", "trap 'exit 143' TERM; work & wait $!"])),)),
    (
        "a Job that ends slowly",
        (job(worker(command=["sh", "-c", "trap 'kill $!; wait $!; exit 0' TERM; a & wait $!"])),),
    ),
    ("a helper of a Job", (job(worker(), worker("logs", command=["sh", "-c", "trap 'exit 0' TERM; ship & wait $!"])),)),
    ("a Job that saves its work", (python("save(); sys.exit(0)"),)),
    ("a Job that says that it failed", (python("sys.exit(75)"),)),
    ("a file of a ConfigMap", (SETTINGS, mounted({"configMap": {"name": "settings"}}, "colour"))),
    ("a directory of files", (SETTINGS, mounted({"configMap": {"name": "settings", "items": ITEMS}}, "conf.d/"))),
    (
        "a ConfigMap that others fill",
        (obj("ConfigMap", "settings"), mounted({"configMap": {"name": "settings"}}, "ca")),
    ),
    ("a directory of a claim", (CLAIM, mounted({"persistentVolumeClaim": {"claimName": "data"}}, "a"))),
    ("a small volume in memory", (in_memory(sizeLimit="16Mi"),)),
    ("a volume in memory without a limit", (in_container(in_memory(), "resources", NOTHING),)),
    ("shared memory", (in_container(in_memory(), "volumeMounts.0.mountPath", "/dev/shm"),)),
    ("a volume in memory to read", (in_container(in_memory(), "volumeMounts.0.readOnly", True),)),
    ("a namespace that kubectl chooses", in_namespaces("data", None)),
    ("a Service wherever it is applied", in_namespaces(None)),
    ("a Service in both namespaces", (in_namespaces("shop")[0], *in_namespaces("data"))),
    ("a member by its Service", (in_container(STATEFUL, "args", ["--join=db-0.db"]), service("db", clusterIP="None"))),
    ("a member's name in another domain", (in_container(STATEFUL, "args", ["--url=https://db-0.example.com"]),)),
    ("the end of a file", (job(worker(), worker("logs", command=["tail", "-n", "20", "/log"])),)),
]
NEW = {"hookPortUndeclared", "hookLoops", "signalsPause", "readinessOnlyConnects", "backendEndsFirst", "serviceLinkRead",
       "sidecarHoldsJob", "trapLeavesJob", "sidecarHookEndsIt", "postStartWaits", "jobCountsAsDone", "configKeyMissing",
       "memoryVolumeFills", "hostNameUnknown", "livenessAsksAnother"}  # fmt: skip


@pytest.mark.parametrize("objects", [row[1] for row in SOUND], ids=[row[0] for row in SOUND])
def test_what_may_be_right_is_not_found(objects: tuple[dict, ...]):
    assert not {each.rule for each in findings(*objects)} & NEW


def as_user(workload: dict, user: int) -> dict:
    return in_container(workload, "securityContext", {"runAsUser": user})


@pytest.mark.parametrize(
    ("workload", "says"),
    [
        (shared("kill -INT 1"), "it exits on SIGINT"),
        (as_user(shared("kill -INT 1"), 0), "it exits on SIGINT"),
        (as_user(shared("kill -INT 1"), 1000), "user 1000 may not signal it (EPERM): the program never gets SIGINT"),
        (in_pod(shared("kill -INT 1"), "securityContext", {"runAsUser": 1000}), "it exits on SIGINT"),
    ],
)
def test_pause_ends_only_by_a_signal_of_its_own_user_or_root(workload: dict, says: str):
    said = [each.message for each in findings(workload) if each.rule == "signalsPause"]
    assert len(said) == 1
    assert says in said[0]


def test_a_port_that_a_probe_asks_is_the_containers_own_unless_another_one_declares_it():
    (proxy, app) = behind("http://127.0.0.1:9000")["spec"]["template"]["spec"]["containers"]
    probe = {"exec": {"command": ["nc", "-z", "127.0.0.1:9000"]}}
    probed = {**app, "ports": [], "readinessProbe": probe}
    other = {**worker("queue"), "readinessProbe": probe}
    assert (
        "backend behind it (port 9000)"
        in only("backendEndsFirst", service(), in_pod(WEB, "containers", [proxy, probed])).message
    )
    whole = in_pod(WEB, "containers", [proxy, app, other])
    assert only("backendEndsFirst", service(), whole).path[-1] == 1


def test_a_hook_that_waits_for_a_sidecar_before_it_is_in_order():
    first = on_start("until nc -z 127.0.0.1:15001; do sleep 1; done")
    sidecar = {**SIDECAR, "ports": [{"containerPort": 15001}]}
    assert "postStartWaits" not in rules(in_pod(first, "initContainers", [sidecar]))


def test_the_name_of_a_member_is_that_of_the_service_that_is_there():
    asking = in_container(STATEFUL, "env", [{"name": "MASTER", "value": "db-0.db-all"}])
    both = (service("db", clusterIP="None"), service("db-all", selector={"app": "web"}))
    assert only("hostNameUnknown", asking, *both).fix.startswith("db-0.db,")
    assert only("hostNameUnknown", asking, both[1]).fix.startswith("serviceName: db-all.")
