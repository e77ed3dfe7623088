"""Draws sound applications. A shape is a function of a `Draw`; names, images, ports and texts come from the seed."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from bench.diagnosis.application import Application, Object
from bench.diagnosis.programs import Program

FIRST = ("orders", "billing", "search", "mail", "stock", "carts", "maps", "users", "photos", "ledger", "fares", "notes")
SECOND = ("api", "web", "core", "hub", "store", "desk", "gate", "flow")
TEAMS = ("shop", "data", "infra", "mobile", "growth")
HELPERS = ("exporter", "shipper", "agent", "reloader", "cache", "tail")
PATHS = ("/healthz", "/ready", "/status", "/live", "/ping")


@dataclass
class Draw:
    """Draw values from one seed."""

    random: Random

    def name(self) -> str:
        return f"{self.random.choice(FIRST)}-{self.random.choice(SECOND)}"

    def image(self, name: str) -> str:
        random = self.random
        return f"registry.{random.choice(TEAMS)}.example/{name}:{random.randint(1, 9)}.{random.randint(0, 30)}"

    def port(self) -> int:
        return self.random.randrange(3000, 9900)

    def words(self) -> tuple[str, ...]:
        return tuple(self.random.sample(FIRST, 3))


def _program(draw: Draw, kind: Any) -> Program:
    file = draw.random.choice(("main", "run", "serve", "app", "entry"))
    file += ".sh" if kind in ("batch", "shell") else ".py"
    return Program(
        kind, draw.port(), draw.random.choice(PATHS), file, draw.words(), prints_ids=draw.random.random() < 0.5
    )  # fmt: skip


def _app(draw: Draw, shape: str, program_kind: Any, kind: Any = "Pod", **more: Any) -> Application:
    name = draw.name()
    main = draw.random.choice(("app", "main", name.partition("-")[0], name))
    image = draw.image(name)
    container: Object = {"name": main, "image": image, "imagePullPolicy": "IfNotPresent"}
    spec: Object = {"terminationGracePeriodSeconds": draw.random.choice((4, 5)), "containers": [container]}
    if kind == "Pod":
        spec["restartPolicy"] = draw.random.choice(("Always", "OnFailure"))
    if kind == "Job":
        spec["restartPolicy"] = "Never"
    return Application(
        shape, name, image, kind, {"app": name}, main, spec, {main: _program(draw, program_kind)}, **more
    )


def _serving(app: Application, *, probe: bool = True) -> Application:
    """Give the application a port with a name, a Service, a readinessProbe and a pause before its stop."""
    port, container = app.program.port, app.container
    container["ports"] = [{"name": "http", "containerPort": port}]
    if probe:
        asked = {"httpGet": {"path": app.program.ready_path, "port": "http"}}
        container["readinessProbe"] = {**asked, "periodSeconds": 1, "timeoutSeconds": 1}
    container["lifecycle"] = {"preStop": {"sleep": {"seconds": 2}}}
    ports = [{"name": "http", "port": 80, "targetPort": "http"}]
    service = {"selector": {"app": app.name}, "ports": ports}
    app.before.append({"apiVersion": "v1", "kind": "Service", "metadata": {"name": app.name}, "spec": service})
    app.spec["terminationGracePeriodSeconds"] = 6
    return app


def _replicated(app: Application) -> Application:
    """Make a Deployment whose update takes no Pod away before there is another one."""
    app.workload = {"replicas": 2, "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}
    return app


def single(draw: Draw) -> Application:
    """Draw one process: a server."""
    return _serving(_app(draw, "single", "server"))


def master(draw: Draw) -> Application:
    """Draw a master with workers."""
    return _app(draw, "master", "master")


def wrapper(draw: Draw) -> Application:
    """Draw a start script that the server replaces."""
    app = _app(draw, "wrapper", "server")
    app.program.wrapped = "exec"
    return app


def init(draw: Draw) -> Application:
    """Draw an init, as tini is, with a server."""
    app = _app(draw, "init", "server")
    app.program.wrapped = "init"
    return app


def slow_start(draw: Draw) -> Application:
    """Draw a server that loads for a while, with a startupProbe that has the patience."""
    app = _app(draw, "slowStart", "server")
    app.program.start_seconds = 2.0
    port = app.program.port
    asked = {"httpGet": {"path": app.program.ready_path, "port": port}, "periodSeconds": 1}
    app.container["startupProbe"] = {**asked, "failureThreshold": 20}
    app.container["readinessProbe"] = {**asked}
    return app


def pair(draw: Draw) -> Application:
    """Draw two containers."""
    app = _app(draw, "pair", "worker")
    return with_neighbour(app, draw)


def with_neighbour(app: Application, draw: Draw) -> Application:
    """Add a helper in a container of its own."""
    name = draw.random.choice(HELPERS)
    app.spec["containers"].append({"name": name, "image": app.image, "imagePullPolicy": "IfNotPresent"})
    app.programs[name] = _program(draw, "shell")
    app.neighbour = name
    return app


def sidecar(draw: Draw) -> Application:
    """Draw a native sidecar: an init container that is restarted always."""
    app = with_sidecar(_app(draw, "sidecar", "worker"), draw)
    app.neighbour = next(name for name in app.programs if name != app.main)
    return app


def with_sidecar(app: Application, draw: Draw) -> Application:
    """Add a native sidecar."""
    name = f"{draw.random.choice(HELPERS)}-sidecar"
    container = {"name": name, "image": app.image, "imagePullPolicy": "IfNotPresent", "restartPolicy": "Always"}
    app.spec.setdefault("initContainers", []).append(container)
    app.programs[name] = _program(draw, "shell")
    return app


def job(draw: Draw) -> Application:
    """Draw a Job that is still at work when it is deleted."""
    return _app(draw, "job", "worker", "Job")


def stateful(draw: Draw) -> Application:
    """Draw a StatefulSet with a claim."""
    app = _app(draw, "stateful", "worker", "StatefulSet")
    app.container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}}
    app.workload = {"replicas": 1, "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}]}
    headless = {"clusterIP": "None", "selector": {"app": app.name}, "ports": [{"name": "peer", "port": 7000}]}
    app.before.append({"apiVersion": "v1", "kind": "Service", "metadata": {"name": app.name}, "spec": headless})
    return app


def database(draw: Draw) -> Application:
    """Draw a server of long connections, with a client in a Pod of its own that keeps one."""
    app = _app(draw, "database", "database")
    port, name = app.program.port, f"{app.name}-client"
    app.container["readinessProbe"] = {"tcpSocket": {"port": port}, "periodSeconds": 1}
    app.container["ports"] = [{"containerPort": port}]
    ports = [{"port": port, "targetPort": port}]
    service = {"selector": {"app": app.name}, "ports": ports}
    app.before.append({"apiVersion": "v1", "kind": "Service", "metadata": {"name": app.name}, "spec": service})
    app.container["lifecycle"] = {"preStop": {"sleep": {"seconds": 1}}}
    text = (
        "import signal, socket, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
        "while True:\n"
        "    try:\n"
        f"        link = socket.create_connection(('{app.name}', {port}), 2)\n"
        "        link.settimeout(None)\n"
        "        print('connected', flush=True)\n"
        "        link.recv(1)\n"
        "    except OSError:\n"
        "        pass\n"
        "    time.sleep(0.2)\n"
    )
    container = {"name": "client", "image": app.image, "imagePullPolicy": "IfNotPresent"}
    container |= {"command": ["python3", "-u", "-c", text], "lifecycle": {"preStop": {"sleep": {"seconds": 8}}}}
    spec = {"terminationGracePeriodSeconds": 15, "containers": [container]}
    metadata = {"name": name, "labels": {"app": name}}
    app.peers.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    app.args += ["--after", "2s"]
    return app


def queue(draw: Draw) -> Application:
    """Draw a worker that handles one piece after the other."""
    app = _app(draw, "queue", "worker", "Deployment")
    app.workload = {"replicas": 1}
    return app


def batch(draw: Draw) -> Application:
    """Draw a shell script that is PID 1."""
    return _app(draw, "batch", "batch")


def web(draw: Draw) -> Application:
    """Draw a Deployment that is updated under load."""
    app = _replicated(_serving(_app(draw, "web", "server", "Deployment")))
    return _loaded(app, "fresh=40,keep-alive=20")


def streams(draw: Draw) -> Application:
    """Draw a server of server-sent events."""
    app = _replicated(_serving(_app(draw, "streams", "server", "Deployment")))
    return _loaded(app, "fresh=10,stream=6", "--stream-path", "/events", "--stream-length", "4s")


def websockets(draw: Draw) -> Application:
    """Draw a server of WebSockets."""
    app = _replicated(_serving(_app(draw, "websockets", "server", "Deployment")))
    return _loaded(app, "fresh=10,websocket=6", "--websocket-path", "/socket", "--stream-length", "4s")


def http2(draw: Draw) -> Application:
    """Draw HTTP/2 with short requests, on as many connections as a few clients have."""
    return _loaded(_http2(draw, "http2", 0.3), "http2=40", "--http2-connections", "8")


def calls(draw: Draw) -> Application:
    """Draw calls over HTTP/2 whose answers come in pieces for a while, as those of gRPC's server streams."""
    return _loaded(_http2(draw, "calls", 1.0), "http2=10", "--http2-connections", "8")


def channel(draw: Draw) -> Application:
    """Draw one connection of HTTP/2 for all requests, which the server ends after some: the next one goes elsewhere."""
    app = _http2(draw, "channel", 0.1)
    app.program.most_requests = draw.random.choice((9, 10, 11))
    app = _loaded(app, "http2=40", "--http2-connections", "1")
    app.args[app.args.index("--control") + 1] = "3s"  # a dozen connections, so that each Pod gets some
    return app


def _http2(draw: Draw, shape: str, seconds: float) -> Application:
    """Make a server of HTTP/2 without TLS (h2c, prior knowledge), which its probe asks for a connection."""
    app = _replicated(_serving(_app(draw, shape, "http2", "Deployment"), probe=False))
    app.program.slow_seconds = seconds
    name = draw.random.choice(("grpc", "h2c", "rpc"))
    app.container["ports"][0]["name"] = name
    app.container["readinessProbe"] = {"tcpSocket": {"port": name}, "periodSeconds": 1}
    port = app.service["spec"]["ports"][0]
    port |= {"name": name, "targetPort": name}
    if draw.random.random() < 0.5:
        port["appProtocol"] = "kubernetes.io/h2c"
    return app


def _loaded(app: Application, load: str, *more: str) -> Application:
    app.command = "rollout"
    app.args += ["--disrupt", "delete", "--load", load, "--propagation", "500ms", "--control", "1s", "--settle", "1s"]
    app.args += more
    return app


SHAPES: dict[str, Callable[[Draw], Application]] = {
    "single": single,
    "master": master,
    "wrapper": wrapper,
    "init": init,
    "slowStart": slow_start,
    "pair": pair,
    "sidecar": sidecar,
    "job": job,
    "stateful": stateful,
    "database": database,
    "queue": queue,
    "batch": batch,
    "web": web,
    "streams": streams,
    "websockets": websockets,
    "http2": http2,
    "calls": calls,
    "channel": channel,
}


# -- noise -------------------------------------------------------------------------------------------------------------


def add_noise(app: Application, draw: Draw) -> None:
    """Add what has nothing to do with any fault: labels, init containers, probes, helpers, injected sidecars."""
    random = draw.random
    if random.random() < 0.5:
        chart = f"{app.name}-{random.randint(0, 9)}.{random.randint(0, 20)}.{random.randint(0, 9)}"
        app.labels |= {
            "app.kubernetes.io/name": app.name,
            "app.kubernetes.io/managed-by": "Helm",
            "helm.sh/chart": chart,
        }
    if random.random() < 0.4:
        words = f"echo migrated {random.choice(FIRST)}"
        container = {"name": random.choice(("migrate", "prepare", "wait")), "image": app.image}
        container |= {"imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", words]}
        app.spec.setdefault("initContainers", []).append(container)
    if random.random() < 0.3 and app.kind != "Job" and not app.neighbour:
        with_neighbour(app, draw)
    if random.random() < 0.3 and app.shape not in ("sidecar", "job"):
        app.annotations["sidecar.istio.io/status"] = '{"version": "1.21"}'
        with_sidecar(app, draw)
    if random.random() < 0.4 and "readinessProbe" in app.container and app.shape != "slowStart":
        probe = {**app.container["readinessProbe"], "periodSeconds": 2, "failureThreshold": 5, "timeoutSeconds": 3}
        app.container["livenessProbe"] = probe
    if random.random() < 0.4:
        app.container["env"] = [{"name": "LOG_LEVEL", "value": random.choice(("info", "debug"))}]
    if random.random() < 0.3:
        app.container["resources"] = {"requests": {"cpu": "10m", "memory": "16Mi"}}
